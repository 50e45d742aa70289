"""Panels of a figure: lines over the size of a class, with intervals, named where they end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure, data

Point = dict[str, Any]


class Result(Protocol):
    """A measure of a method in a class of some size, with its interval."""

    @property
    def method(self) -> str:
        """The line that it belongs to."""

    @property
    def n_learners(self) -> int:
        """Where it stands."""

    @property
    def mean(self) -> float:
        """How high."""

    @property
    def low(self) -> float:
        """The lower end of its interval."""

    @property
    def high(self) -> float:
        """The upper end."""


# What a panel's axis and the space beside it take of the width, in pixels.
_MARGIN = 66
HEIGHT = 230
# Panels on a telephone are stacked; cells of a grid stay beside each other.
_NARROWEST = 400

LABELS = {
    "knorm": "knorm (ours)",
    "knorm:ability-sd=2": "knorm, ability sd 2",
    "gaussian": "gaussian (ours)",
    "objective": "objective (published)",
    "statistics": "statistics (published)",
    "gradients": "per-learner gradients",
    "spectral": "spectral",
    "joint": "not private",
    "totals": "totals, no noise",
}
COLOURS = {
    "knorm": ACCENT,
    "knorm:ability-sd=2": "#6fb3c7",
    "objective": WARNING,
    "statistics": "#c9a227",
    "joint": INK,
    "re-estimated": ACCENT,
    "global": WARNING,
    "true model": INK,
}


@dataclass(frozen=True)
class Panels(Figure):
    """Charts beside each other; below each other where there is no room."""

    columns: int = 3
    shared: tuple[float, ...] = ()
    stacked: bool = True

    def _at(self, width: int) -> dict[str, Any]:
        columns = 1 if self.stacked and width < _NARROWEST else self.columns
        shares = self.shared if columns == len(self.shared) else (1.0,) * columns
        room = width - columns * (_MARGIN if self.stacked else 38) - (0 if self.stacked else 24)
        parts = [
            {**part, "width": max(60, round(room * shares[place % columns] / sum(shares)))}
            for place, part in enumerate(self.specification["concat"])
        ]
        if columns == 1:
            # Names that stand once beside a row of panels are needed at each when they are stacked.
            parts = json.loads(json.dumps(parts).replace('"labels": false', '"labels": true'))
        return {**self.specification, "concat": parts, "columns": columns}


def panels_of(
    charts: Sequence[Any], words: str, *, columns: int, shared: tuple[float, ...] = (), stacked: bool = True
) -> Panels:
    """Charts as one figure, with words for those who cannot see it."""
    alone = Figure.of(charts[0], words).specification
    parts = [chart.to_dict() for chart in charts]
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
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }
    return Panels(specification, words, columns, shared, stacked)


def heading_of(words: str) -> Any:
    """The title of a panel."""
    import altair as alt

    # Over the plot and not over its axis, so that the headings of a row are at one height.
    return alt.Title(words, fontSize=14, frame="group")


def is_share(measure: str) -> bool:
    """Whether a measure is shown in percent."""
    return measure.startswith("misclassification")


def domain_of(rows: Sequence[Result], *, percent: bool) -> list[float]:
    """The ends of the axis: round numbers around all intervals; a correlation ends at 1."""
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    if not percent:
        step = 0.1 if low < 0.8 else 0.02
        return [min(0.98, step * int(max(low, 0.0) / step)), 1.0]
    return [0.02 * int(50 * low), 0.02 * (1 + int(50 * high))]


def lines_panel(
    rows: Sequence[Result],
    *,
    title: str | list[str] | None,
    heading: str = "",
    labelled: bool = False,
    dashed: str | None = None,
    domain: list[float] | None = None,
    percent: bool = False,
) -> Any:
    """One panel: a line per method over the number of learners, with intervals."""
    import altair as alt

    domain = domain or domain_of(rows, percent=percent)
    sizes = sorted({row.n_learners for row in rows})
    methods = list(dict.fromkeys(row.method for row in rows))
    points = [_point(row, methods, sizes) for row in rows]
    step = sizes[1] - sizes[0] if len(sizes) > 1 else sizes[0]
    # Room on the right for the names of the lines.
    longest = max(len(LABELS.get(method, method)) for method in methods)
    last = sizes[-1] + (longest / 20 * (sizes[-1] - sizes[0] + step) if labelled else 0.25 * step)
    x = alt.X(
        "n:Q",
        title="learners",
        scale=alt.Scale(domain=[sizes[0] - 0.4 * step, last], nice=False),
        axis=alt.Axis(
            values=sizes[::2] if len(sizes) > 3 else sizes,
            format="d",
            grid=False,
            titleAnchor="start" if labelled else "middle",
        ),
    )
    axis = alt.Axis(format=".0%" if percent else ".2~f", tickCount=5)
    height = alt.Scale(domain=domain, nice=False, clamp=True, zero=False)
    y = alt.Y("mean:Q", title=title, scale=height, axis=axis)
    colours = alt.Scale(domain=methods, range=[COLOURS.get(m, MUTED) for m in methods])
    colour = alt.Color("method:N", scale=colours, legend=None)
    base = alt.Chart(data(points))
    solid = base.transform_filter(f"datum.method != '{dashed}'")
    layers = [
        solid.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        solid.mark_rule(strokeWidth=1.5).encode(
            x=x, y=alt.Y("low:Q", scale=height), y2="high:Q", color=colour
        ),
        solid.mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=colour),
        base.transform_filter(f"datum.method == '{dashed}'")
        .mark_line(strokeWidth=1.5, strokeDash=[5, 4])
        .encode(x=x, y=y, color=colour),
    ]
    if labelled:
        names = alt.Chart(data(end_labels(rows, methods, domain))).mark_text(align="left", dx=9, fontSize=13)
        layers.append(names.encode(x=x, y=y, text="name:N", color=colour))
    chart = alt.layer(*layers).properties(height=HEIGHT)
    return chart.properties(title=heading_of(heading)) if heading else chart


def _point(row: Result, methods: Sequence[str], sizes: Sequence[int]) -> Point:
    """Points of the same class stand a little beside each other, so that intervals can be told apart."""
    step = sizes[1] - sizes[0] if len(sizes) > 1 else sizes[0]
    aside = (methods.index(row.method) - (len(methods) - 1) / 2) * 0.06 * step
    return {
        "method": row.method,
        "n": row.n_learners + aside,
        "mean": row.mean,
        "low": row.low,
        "high": row.high,
    }


def end_labels(rows: Sequence[Result], methods: Sequence[str], domain: Sequence[float]) -> list[Point]:
    """Names at the lines' ends, pushed apart where the lines come together."""
    largest = max(row.n_learners for row in rows)
    ends = sorted((row for row in rows if row.n_learners == largest), key=lambda row: -row.mean)
    apart = 17 / HEIGHT * (domain[1] - domain[0])
    heights: list[float] = []
    for row in ends:
        heights.append(
            min(row.mean, heights[-1] - apart) if heights else min(row.mean, domain[1] - apart / 4)
        )
    # What was pushed out below comes back up, and pushes in turn.
    for place in range(len(heights) - 1, -1, -1):
        floor = domain[0] + apart / 4 if place == len(heights) - 1 else heights[place + 1] + apart
        heights[place] = max(heights[place], floor)
    return [
        {"method": row.method, "n": largest, "mean": height, "name": LABELS.get(row.method, row.method)}
        for row, height in zip(ends, heights, strict=True)
    ]
