"""Charts that every wing draws: dots with intervals, curves with intervals or bands, and panels of them.

Each comes with its values in words, made from the same points, for readers who cannot see it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from understudy.core.pages.figures import ACCENT, INK, MUTED, Figure, data

Words = str | list[str]
"""The title of an axis, in one line or more."""

HEIGHT = 230
# A row of one dot, and what a further series in a row adds, in pixels.
_ROW, _SERIES = 30, 13
# What a panel's axis and the space beside it take of the width, in pixels.
_MARGIN = 66
# Panels on a telephone are stacked; cells of a grid stay beside each other.
_NARROWEST = 400
# Letters that fit across a telephone.
_LETTERS = 48
# Series with more points than this are described by their ends.
_MOST_SAID = 12


@dataclass(frozen=True)
class Point:
    """A measured value with its interval: of a series, in a row or at a number along the axis."""

    at: str | float
    value: float
    low: float | None = None
    high: float | None = None
    series: str = ""


@dataclass(frozen=True)
class Look:
    """How a series is drawn. A dashed one is for comparison: a line without dots and intervals.

    Where many bands would cover each other, those that matter least have `band` off.
    """

    colour: str = ACCENT
    shape: str = "circle"
    dashed: bool = False
    dots: bool = True
    band: bool = True


Looks = Mapping[str, Look]
_PLAIN: Looks = {"": Look()}


@dataclass(frozen=True)
class Drawing:
    """A chart and its values in words; alone it is a figure, with others it is a panel of one."""

    chart: Any
    words: str

    def figure(self, title: str, remark: str = "") -> Figure:
        """The drawing as a figure, described by a title, its values and a remark."""
        return Figure.of(self.chart, " ".join(filter(None, (f"{title}: {self.words}.", remark))))

    def headed(self, words: str) -> Drawing:
        """The same under a heading."""
        return Drawing(self.chart.properties(title=heading(words)), self.words)


def heading(words: str) -> Any:
    """The title of a panel."""
    import altair as alt

    # Over the plot and not over its axis, so that the headings of a row are at one height.
    return alt.Title(words, fontSize=14, frame="group")


def dots(
    points: Sequence[Point],
    title: Words,
    *,
    looks: Looks = _PLAIN,
    domain: Sequence[float] | None = None,
    axis: str = "",
    number: str = ".2f",
    reference: float | None = None,
    labels: Mapping[str, str] | None = None,
    named: bool = True,
    row: int | None = None,
    legend: Literal["top", "bottom"] | None = "top",
) -> Drawing:
    """Dots with intervals in rows, as many in a row as there are series.

    `axis` is the format of the axis, `number` that of values in words; a dashed line is drawn at `reference`. With
    `labels` only the rows that it names are labelled, and a line is drawn above each of them. `named` is
    whether the rows are labelled at all: in a row of panels only the first one needs it.
    """
    import altair as alt

    rows = list(dict.fromkeys(str(point.at) for point in points))
    looks = {name: look for name, look in looks.items() if any(point.series == name for point in points)}
    crowded = len(points) > len(rows)
    scale = (
        alt.Scale(zero=True, nice=True)
        if domain is None
        else alt.Scale(domain=list(domain), clamp=True, nice=True)
    )
    # So few marks that they stay apart on a telephone.
    marks = alt.Axis(tickCount=4, labelOverlap=True, labelSeparation=8, labelFlush=False, **_format(axis))

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=marks)

    # A dot at the axis keeps clear of its label.
    style: dict[str, Any] = {"labelLimit": 240, "ticks": False, "domain": False, "labelPadding": 14}
    if labels is not None:
        style["labelExpr"] = f"{json.dumps(dict(labels))}[datum.value] || ''"
    band = alt.Y("at:N", sort=rows, title=None, axis=alt.Axis(labels=named, **style))
    place: dict[str, Any] = {"y": band}
    if crowded:
        inside = alt.Scale(paddingOuter=0.6)
        place["yOffset"] = alt.YOffset("series:N", sort=list(looks), scale=inside)
    beside = [] if not named else list(rows if labels is None else labels.values())
    colour, shape = colour_and_shape(looks, legend, beside)
    base = alt.Chart(data([_datum(point) for point in points]))
    layers = [
        base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q", color=colour, **place),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            x=x("value"), color=colour, shape=shape, **place
        ),
    ]
    if reference is not None:
        line = alt.Chart(data([{"value": reference}])).mark_rule(color=INK, strokeDash=[4, 4])
        layers.insert(0, line.encode(x=x("value")))
    if labels is not None:
        edges = alt.Chart(data([{"at": name} for name in list(labels)[1:]])).mark_rule(color="#d5dbe1")
        above = alt.Y("at:N", sort=rows, title=None, axis=alt.Axis(labels=named, **style), bandPosition=0)
        layers.insert(0, edges.encode(y=above))
    height = row or (12 + _SERIES * len(looks) if crowded else _ROW)
    return Drawing(alt.layer(*layers).properties(height=height * len(rows)), described(points, number))


def curves(
    points: Sequence[Point],
    x_title: Words | None,
    y_title: Words | None,
    *,
    looks: Looks = _PLAIN,
    domain: Sequence[float] | None = None,
    axis: str = "",
    number: str = ".2f",
    bands: bool = False,
    logarithmic: bool = False,
    ticks: Sequence[float] | None = None,
    reference: float | None = None,
    height: int = HEIGHT,
    legend: Literal["top", "bottom", "ends"] | None = "top",
) -> Drawing:
    """A line per series over numbers along the axis, with intervals as lines or as `bands`.

    Lines of intervals stand a little beside each other, so that they can be distinguished. With the legend at the
    `ends` each series is named where it ends.
    """
    import altair as alt

    looks = {name: look for name, look in looks.items() if any(point.series == name for point in points)}
    across = sorted({float(point.at) for point in points})
    step = min((b - a for a, b in pairwise(across)), default=across[0] or 1.0)
    shown = list(domain) if domain is not None else [0.0, max(_high(point) for point in points)]
    room = 0.0 if bands else 0.25 * step
    if legend == "ends":
        room = max(map(len, looks)) / 20 * (across[-1] - across[0] + step)
    ends = [across[0] - (0.0 if bands else 0.4 * step), across[-1] + room]
    along = (
        alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(domain=ends, nice=False, zero=False)
    )
    marks = alt.Axis(
        values=list(ticks or across),
        format="d" if all(place.is_integer() for place in across) else ".3~g",
        grid=False,
        labelOverlap=True,
        labelSeparation=4,
        titleAnchor="start" if legend == "ends" else "middle",
    )
    if bands and ticks is None and not logarithmic:
        marks = alt.Axis(tickCount=6, grid=False)
    x = alt.X("at:Q", title=x_title, scale=along, axis=marks)
    upwards = alt.Scale(domain=shown, nice=True, clamp=True, zero=False)
    y_axis = alt.Axis(tickCount=5, **_format(axis))

    def y(field: str) -> Any:
        return alt.Y(f"{field}:Q", title=y_title, scale=upwards, axis=y_axis)

    colour, shape = colour_and_shape(looks, None if legend == "ends" else legend)
    solid = [name for name, look in looks.items() if not look.dashed]
    aside = {} if bands else {name: (n - (len(solid) - 1) / 2) * 0.08 * step for n, name in enumerate(solid)}
    values = [{**_datum(point), "at": float(point.at) + aside.get(point.series, 0.0)} for point in points]
    base = alt.Chart(data(values))
    measured = base.transform_filter(alt.FieldOneOfPredicate("series", solid))
    dotted = base.transform_filter(alt.FieldOneOfPredicate("series", [n for n in solid if looks[n].dots]))
    dashed = base.transform_filter(
        alt.FieldOneOfPredicate("series", [name for name, look in looks.items() if look.dashed])
    )
    banded = base.transform_filter(alt.FieldOneOfPredicate("series", [n for n in solid if looks[n].band]))
    interval = banded.mark_area(opacity=0.15) if bands else measured.mark_rule(strokeWidth=1.5)
    layers = [
        interval.encode(x=x, y=y("low"), y2="high:Q", color=colour),
        dashed.mark_line(strokeWidth=1.5, strokeDash=[5, 4]).encode(x=x, y=y("value"), color=colour),
        measured.mark_line(strokeWidth=2).encode(x=x, y=y("value"), color=colour),
        dotted.mark_point(filled=True, size=55, opacity=1).encode(
            x=x, y=y("value"), color=colour, shape=shape
        ),
    ]
    if reference is not None:
        line = alt.Chart(data([{"value": reference}])).mark_rule(color=MUTED)
        layers.insert(0, line.encode(y=y("value")))
    if legend == "ends":
        names = alt.Chart(data(end_labels(points, shown, height))).mark_text(align="left", dx=9, fontSize=13)
        layers.append(names.encode(x=x, y=y("value"), text="series:N", color=colour))
    return Drawing(alt.layer(*layers).properties(height=height), described(points, number))


def end_labels(
    points: Sequence[Point], domain: Sequence[float], height: int = HEIGHT
) -> list[dict[str, Any]]:
    """Names at the lines' ends, pushed apart where the lines come together."""
    last = max(float(point.at) for point in points)
    ends = sorted((point for point in points if point.at == last), key=lambda point: -point.value)
    apart = 17 / height * (domain[1] - domain[0])
    heights: list[float] = []
    for point in ends:
        highest = heights[-1] - apart if heights else domain[1] - apart / 4
        heights.append(min(point.value, highest))
    # What was pushed out below comes back up, and pushes in turn.
    for place in range(len(heights) - 1, -1, -1):
        floor = domain[0] + apart / 4 if place == len(heights) - 1 else heights[place + 1] + apart
        heights[place] = max(heights[place], floor)
    return [
        {"series": point.series, "at": last, "value": height}
        for point, height in zip(ends, heights, strict=True)
    ]


def described(points: Sequence[Point], number: str = ".2f") -> str:
    """The points in words; of a long series its ends."""
    by_series: dict[str, list[Point]] = {}
    for point in points:
        by_series.setdefault(point.series, []).append(point)
    said = [
        point
        for series in by_series.values()
        for point in (series if len(series) <= _MOST_SAID or isinstance(series[0].at, str) else _ends(series))
    ]

    def words(point: Point) -> str:
        place = point.at if isinstance(point.at, str) else f"{point.at:g}"
        text = f"{', '.join(filter(None, (place, point.series)))}: {point.value:{number}}"
        if point.low is None or point.high is None or point.low == point.high:
            return text
        return f"{text} ({point.low:{number}} to {point.high:{number}})"

    return "; ".join(map(words, said))


def _ends(series: Sequence[Point]) -> list[Point]:
    ordered = sorted(series, key=lambda point: float(point.at))
    return [ordered[0], ordered[-1]]


@dataclass(frozen=True)
class Panels(Figure):
    """Charts beside each other; below each other where there is no room."""

    columns: int = 3
    shares: tuple[float, ...] = ()
    stacked: bool = True

    def _at(self, width: int) -> dict[str, Any]:
        columns = 1 if self.stacked and width < _NARROWEST else self.columns
        shares = self.shares if columns == len(self.shares) else (1.0,) * columns
        room = width - columns * (_MARGIN if self.stacked else 38) - (0 if self.stacked else 24)
        parts = [
            {**part, "width": max(60, round(room * shares[place % columns] / sum(shares)))}
            for place, part in enumerate(self.specification["concat"])
        ]
        if columns == 1:
            # Names that stand once beside a row of panels are needed at each when they are stacked.
            parts = json.loads(json.dumps(parts).replace('"labels": false', '"labels": true'))
        return {**self.specification, "concat": parts, "columns": columns}


def panels(
    drawings: Sequence[Drawing],
    words: str,
    *,
    columns: int,
    shares: tuple[float, ...] = (),
    stacked: bool = True,
) -> Panels:
    """Drawings as one figure, described by `words`.

    `shares` divide the width between the columns. Those that are not `stacked` stay beside each other on a telephone.
    """
    alone = Figure.of(drawings[0].chart, words).specification
    parts = [drawing.chart.to_dict() for drawing in drawings]
    for part in parts:
        # The page's look is said once, for all of them.
        part.pop("$schema", None)
        part.pop("config", None)
    specification = {
        "$schema": alone["$schema"],
        "config": alone["config"],
        "concat": parts,
        "spacing": {"column": 14, "row": 18},
        # The same names have the same colours everywhere, but each panel has scales of its own.
        "resolve": {
            "scale": dict.fromkeys(("color", "shape", "xOffset", "yOffset"), "independent"),
        },
    }
    return Panels(specification, words, columns, shares, stacked)


def colour_and_shape(
    looks: Looks, legend: Literal["top", "bottom"] | None, beside: Sequence[str] = ()
) -> tuple[Any, Any]:
    """The channels of a series' colour and shape, for a chart that the others here do not cover.

    On a telephone the legend has the room that the labels `beside` the plot leave.
    """
    import altair as alt

    names = list(looks)
    shown = None
    if legend is not None and len(names) > 1:
        room = _LETTERS - max(map(len, beside), default=8)
        in_one_row = sum(len(name) + 4 for name in names) <= room
        columns = 0 if in_one_row else max(1, room // (max(map(len, names)) + 4))
        shown = alt.Legend(orient=legend, title=None, columns=columns, labelLimit=300)
    colours = alt.Scale(domain=names, range=[look.colour for look in looks.values()])
    # A comparison has no dots; in the legend a stroke stands for its line.
    shapes = alt.Scale(
        domain=names, range=["stroke" if look.dashed else look.shape for look in looks.values()]
    )
    return (
        alt.Color("series:N", scale=colours, legend=shown),
        alt.Shape("series:N", scale=shapes, legend=shown),
    )


def _format(axis: str) -> dict[str, Any]:
    return {"format": axis} if axis else {}


def _datum(point: Point) -> dict[str, Any]:
    low = point.value if point.low is None else point.low
    return {"at": point.at, "series": point.series, "value": point.value, "low": low, "high": _high(point)}


def _high(point: Point) -> float:
    return point.value if point.high is None else point.high
