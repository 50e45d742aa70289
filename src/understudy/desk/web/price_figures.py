"""Figures of what a project's requests cost: the seed's Figures 5 to 8 (two-stage-sharing, section V-B).

Prices depend on the data, so these figures are for reviewers and custodians, unless the learners are simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from understudy.core.pages.charts import heading_of, panels_of
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure, data
from understudy.desk.service.views import Interval, PricedRequest
from understudy.errors import UsageError

# Methods that react to single learners are shown apart from the others.
HIGHLIGHTED = "causal"
_TOGETHER = "measured, everything together"
_PUBLISHED = "published formula, not a bound"
_STAGE_ONE = "guaranteed by stage one alone"
_ROW = 17
_COLUMNS = 2
# Points that a rank correlation needs at least.
_FEWEST = 3


Projects = Mapping[str, Sequence[PricedRequest]]
"""Requests in the order of their release, by data set."""


def mu_by_request(projects: Projects, stage_one_mu: float | None) -> Figure:
    """Figure 5: mu of everything so far at each request; the dashed line is what stage one guarantees alone."""
    return _by_request(projects, "mu", stage_one_mu)


def advantage_by_request(projects: Projects) -> Figure:
    """Figure 6: the advantage over the worst-placed learner of everything so far, at each request."""
    return _by_request(projects, "advantage", None)


def advantage_by(group: Literal["researcher", "kind"], requests: Sequence[PricedRequest]) -> Figure:
    """Figure 7: the advantage of each request alone, by researcher or by kind of analysis."""
    import altair as alt

    requests = _some(requests)
    named = sorted(requests, key=lambda one: getattr(one, group))
    points = [
        {
            "group": getattr(one, group),
            "place": f"{place:04}",
            "request": one.label,
            "sort": _sort_of(one),
            **_ends(one.advantage),
        }
        for place, one in enumerate(named)
    ]
    groups = list(dict.fromkeys(point["group"] for point in points))
    # A band per group, in which every request has its line: a group of one gets as much room as it needs.
    order = [point["place"] for point in points]
    title = ["advantage over the worst-placed", "learner, each request alone"]
    highest = max(0.1, *(point["high"] for point in points))
    scale = alt.Scale(domain=[0.0, highest], nice=True)
    few = alt.Axis(tickCount=4, labelFlush=False)
    x = alt.X("value:Q", title=title, scale=scale, axis=few)
    y = alt.Y("place:N", sort=order, title=None, axis=None)
    colour, shape = _by_sort(points)
    names = [
        {"group": group, "place": next(point["place"] for point in points if point["group"] == group)}
        for group in groups
    ]
    above = alt.Y("place:N", sort=order, title=None, axis=None, bandPosition=0)
    edges = alt.Chart(data(names[1:])).mark_rule(color="#d5dbe1").encode(y=above)
    base = alt.Chart(data(points))
    rules = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=few), x2="high:Q", y=y, color=colour
    )
    dots = base.mark_point(filled=True, size=75, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    labels = (
        alt.Chart(data(names))
        .mark_text(align="right", baseline="middle", dx=-14, fontSize=13, color=INK)
        .encode(x=alt.value(0), y=y, text="group:N")
    )
    words = f"Advantage of each request alone, by {group}. " + _listed(named, "advantage")
    return Figure.of((edges + rules + dots + labels).properties(height=_ROW * len(points)), words)


def pairs(requests: Sequence[PricedRequest]) -> Figure:
    """Figure 8: output size, precision, mu and advantage of each request alone, against each other."""
    requests = _some(requests)
    measures = ("n_outputs", "precision", "mu", "advantage")
    chosen = [pair for pair in combinations(measures, 2) if _pairs_of(requests, *pair)]
    said = []
    charts = []
    for place, (across, up) in enumerate(chosen):
        shown = _correlation_of(_pairs_of(requests, across, up))
        charts.append(_pair_chart(requests, across, up, shown, legend=place < _COLUMNS))
        said.append(f"{_AXES[up]} against {_AXES[across]}: {shown}")
    words = f"Pairs of measures of {len(requests)} requests, with rank correlations. {'; '.join(said)}."
    return panels_of(charts, words, columns=_COLUMNS)


def _correlation_of(points: Sequence[tuple[float, float]]) -> str:
    if len(points) < _FEWEST:
        return f"too few requests to say ({len(points)})"
    found = rank_correlation(points)
    return (
        "one of the two is always the same"
        if found is None
        else (f"rank correlation {found:+.2f}".replace("-", "−"))
    )


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation; None where it is not defined."""
    from scipy.stats import spearmanr

    if len(points) < _FEWEST or any(len({point[side] for point in points}) < 2 for side in (0, 1)):
        return None
    return float(spearmanr([x for x, _ in points], [y for _, y in points]).statistic)


_AXES = {
    "n_outputs": "numbers in the answer",
    "precision": "epistemic precision",
    "mu": "mu",
    "advantage": "advantage",
}


def _by_request(projects: Projects, measure: Literal["mu", "advantage"], stage_one: float | None) -> Figure:
    shown = {name: requests for name, requests in projects.items() if requests}
    every = _some([one for requests in shown.values() for one in requests])
    tops = [0.1, stage_one or 0.0, *(getattr(one, f"together_{measure}")[2] for one in every)]
    if measure == "mu":
        tops += [one.published_mu for one in every]
    charts = [
        _request_chart(requests, measure, stage_one, max(tops), legend=place == 0)
        for place, requests in enumerate(shown.values())
    ]
    if len(charts) > 1:
        charts = [chart.properties(title=heading_of(name)) for name, chart in zip(shown, charts, strict=True)]
    words = f"Measured {measure} of everything released so far, at each request."
    if stage_one is not None:
        words += f" The dashed line is stage one's guarantee, mu {stage_one:.2f}."
    for name, requests in shown.items():
        words += f" {name}: " + _listed(requests, f"together_{measure}")
    return Figure.of(charts[0], words) if len(charts) == 1 else panels_of(charts, words, columns=1)


def _request_chart(
    requests: Sequence[PricedRequest],
    measure: str,
    stage_one: float | None,
    highest: float,
    *,
    legend: bool,
) -> Any:
    import altair as alt

    places = list(range(1, len(requests) + 1))
    points = [
        {"request": place, "series": _TOGETHER, **_ends(getattr(one, f"together_{measure}"))}
        for place, one in zip(places, requests, strict=True)
    ]
    names, colours, shapes = [_TOGETHER], [ACCENT], ["circle"]
    if measure == "mu":
        points += [
            {"request": place, "series": _PUBLISHED, **_ends((one.published_mu,) * 3)}
            for place, one in zip(places, requests, strict=True)
        ]
        names, colours, shapes = [*names, _PUBLISHED], [*colours, MUTED], [*shapes, "diamond"]
    if stage_one is not None:
        names, colours, shapes = [*names, _STAGE_ONE], [*colours, WARNING], [*shapes, "stroke"]
    above = alt.Legend(orient="top", title=None, columns=1, labelLimit=300)
    shown = above if legend and len(names) > 1 else None
    scale = alt.Scale(domain=[0.0, highest], nice=True)
    title = "mu" if measure == "mu" else ["advantage over the", "worst-placed learner"]
    x = alt.X(
        "request:O",
        title="request",
        axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=False),
        scale=alt.Scale(domain=places),
    )
    axis = alt.Axis(tickCount=5)
    y = alt.Y("value:Q", title=title, scale=scale, axis=axis)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=shown)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), legend=shown)
    base = alt.Chart(data(points))
    layers = [
        base.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour),
        base.transform_filter(f"datum.series == '{_TOGETHER}'")
        .mark_rule(strokeWidth=2)
        .encode(x=x, y=alt.Y("low:Q", title=title, scale=scale, axis=axis), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
    ]
    if stage_one is not None:
        line = alt.Chart(data([{"at": stage_one, "series": _STAGE_ONE}]))
        at = alt.Y("at:Q", title=title, scale=scale, axis=axis)
        layers.insert(0, line.mark_rule(strokeWidth=1.5, strokeDash=[6, 4]).encode(y=at, color=colour))
    return alt.layer(*layers).properties(height=190)


def _pair_chart(
    requests: Sequence[PricedRequest], across: str, up: str, heading: str, *, legend: bool
) -> Any:
    import altair as alt

    points = [
        {"across": _of(one, across), "up": _of(one, up), "sort": _sort_of(one), "request": one.label}
        for one in requests
        if _of(one, across) is not None and _of(one, up) is not None
    ]
    sorts = [{"sort": _sort_of(one)} for one in requests]
    colour, shape = _by_sort(sorts, legend=legend)
    chart = (
        alt.Chart(data(points))
        .mark_point(filled=True, size=65, opacity=0.75)
        .encode(
            x=_axis(alt.X, "across:Q", across),
            y=_axis(alt.Y, "up:Q", up),
            color=colour,
            shape=shape,
        )
    )
    return chart.properties(height=170, title=heading_of(heading))


def _axis(channel: Any, field: str, measure: str) -> Any:
    import altair as alt

    if measure == "precision":
        scale, axis = alt.Scale(domain=[-0.1, 1.1], nice=False), alt.Axis(values=[0, 0.5, 1])
    else:
        scale, axis = alt.Scale(zero=True, nice=True), alt.Axis(tickCount=4)
    return channel(field, title=_AXES[measure], scale=scale, axis=axis)


def _by_sort(points: Sequence[dict[str, Any]], *, legend: bool = True) -> tuple[Any, Any]:
    """Colour and shape: methods that are highlighted, and the others."""
    import altair as alt

    names = [name for name in ("other", HIGHLIGHTED) if any(point["sort"] == name for point in points)]
    colours = {"other": ACCENT, HIGHLIGHTED: WARNING}
    shapes = {"other": "circle", HIGHLIGHTED: "diamond"}
    shown = alt.Legend(orient="top", title=None) if legend and len(names) > 1 else None
    return (
        alt.Color("sort:N", scale=alt.Scale(domain=names, range=[colours[n] for n in names]), legend=shown),
        alt.Shape("sort:N", scale=alt.Scale(domain=names, range=[shapes[n] for n in names]), legend=shown),
    )


def _some(requests: Sequence[PricedRequest]) -> list[PricedRequest]:
    if not requests:
        raise UsageError("there is no released request to draw.", hint="release one first.")
    return list(requests)


def _of(one: PricedRequest, measure: str) -> float | None:
    found: Interval | float | None = getattr(one, measure)
    return found[0] if isinstance(found, tuple) else found


def _pairs_of(requests: Sequence[PricedRequest], across: str, up: str) -> list[tuple[float, float]]:
    found = [(_of(one, across), _of(one, up)) for one in requests]
    return [(x, y) for x, y in found if x is not None and y is not None]


def _sort_of(one: PricedRequest) -> str:
    return HIGHLIGHTED if one.kind == HIGHLIGHTED else "other"


def _ends(interval: Interval) -> dict[str, float]:
    return dict(zip(("value", "low", "high"), interval, strict=True))


def _listed(requests: Sequence[PricedRequest], measure: str) -> str:
    def said(one: PricedRequest) -> str:
        value, low, high = getattr(one, measure)
        return f"{one.label} ({one.researcher}, {one.kind}) {value:.2f} ({low:.2f} to {high:.2f})"

    return "; ".join(map(said, requests)) + "."
