"""Figures of what a project's requests cost: Figures 5 to 8 of Ito et al. (2026, section V-B).

Prices depend on the data, so these figures are for reviewers and custodians, unless the learners are simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from understudy.core.pages.charts import Drawing, Look, Point, colour_and_shape, curves, dots, panels
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure, data
from understudy.desk.service.views import Interval, PricedRequest
from understudy.errors import UsageError

# Methods that react to single learners are shown apart from the others.
HIGHLIGHTED = "causal"
_TOGETHER = "measured, everything together"
_PUBLISHED = "published formula, not a bound"
_STAGE_ONE = "guaranteed by stage one alone"
_LINES = {
    _TOGETHER: Look(ACCENT),
    _PUBLISHED: Look(MUTED, "diamond"),
    _STAGE_ONE: Look(WARNING, dashed=True),
}
_SORTS = {"other": Look(ACCENT), HIGHLIGHTED: Look(WARNING, "diamond")}
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
    named = sorted(_some(requests), key=lambda request: getattr(request, group))
    # A band per group, in which every request has its row: a group of one gets as much room as it needs.
    points = [
        Point(f"{place:04}", *request.advantage, _sort_of(request)) for place, request in enumerate(named)
    ]
    labels: dict[str, str] = {}
    for point, request in zip(points, named, strict=True):
        if getattr(request, group) not in labels.values():
            labels[str(point.at)] = getattr(request, group)
    drawing = dots(
        points,
        ["advantage over the worst-placed", "learner, each request alone"],
        looks=_SORTS,
        domain=[0.0, max(0.1, *(request.advantage[2] for request in named))],
        labels=labels,
        row=_ROW,
    )
    words = f"Advantage of each request alone, by {group}. " + _listed(named, "advantage")
    return Figure.of(drawing.chart, words)


def pairs(requests: Sequence[PricedRequest]) -> Figure:
    """Figure 8: output size, precision, mu and advantage of each request alone, against each other."""
    requests = _some(requests)
    measures = ("n_outputs", "precision", "mu", "advantage")
    chosen = [pair for pair in combinations(measures, 2) if _pairs_of(requests, *pair)]
    said, drawings = [], []
    for place, (across, up) in enumerate(chosen):
        shown = _correlation_of(_pairs_of(requests, across, up))
        drawings.append(_pair(requests, across, up, legend=place < _COLUMNS).headed(shown))
        said.append(f"{_AXES[up]} against {_AXES[across]}: {shown}")
    words = f"Pairs of measures of {len(requests)} requests, with rank correlations. {'; '.join(said)}."
    return panels(drawings, words, columns=_COLUMNS)


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
    tops = [0.1, stage_one or 0.0, *(_together(one, measure)[2] for one in every)]
    if measure == "mu":
        tops += [one.published_mu for one in every]
    drawings = [
        _request_curves(requests, measure, stage_one, max(tops), legend=place == 0)
        for place, requests in enumerate(shown.values())
    ]
    words = f"Measured {measure} of everything released so far, at each request."
    if stage_one is not None:
        words += f" The dashed line is stage one's guarantee, mu {stage_one:.2f}."
    for name, requests in shown.items():
        words += f" {name}: " + _listed(requests, f"together_{measure}")
    if len(drawings) == 1:
        return Figure.of(drawings[0].chart, words)
    headed = [drawing.headed(name) for name, drawing in zip(shown, drawings, strict=True)]
    return panels(headed, words, columns=1)


def _request_curves(
    requests: Sequence[PricedRequest],
    measure: Literal["mu", "advantage"],
    stage_one: float | None,
    highest: float,
    *,
    legend: bool,
) -> Drawing:
    places = range(1, len(requests) + 1)
    points = [
        Point(place, *_together(request, measure), _TOGETHER)
        for place, request in zip(places, requests, strict=True)
    ]
    if measure == "mu":
        points += [
            Point(place, request.published_mu, series=_PUBLISHED)
            for place, request in zip(places, requests, strict=True)
        ]
    if stage_one is not None:
        points += [Point(place, stage_one, series=_STAGE_ONE) for place in (1, len(requests))]
    return curves(
        points,
        "request",
        "mu" if measure == "mu" else ["advantage over the", "worst-placed learner"],
        looks=_LINES,
        domain=[0.0, highest],
        height=190,
        legend="top" if legend else None,
    )


def _together(request: PricedRequest, measure: Literal["mu", "advantage"]) -> Interval:
    return request.together_mu if measure == "mu" else request.together_advantage


def _pair(requests: Sequence[PricedRequest], across: str, up: str, *, legend: bool) -> Drawing:
    import altair as alt

    points = [
        {"across": _of(request, across), "up": _of(request, up), "series": _sort_of(request)}
        for request in requests
        if _of(request, across) is not None and _of(request, up) is not None
    ]
    sorts = {name: look for name, look in _SORTS.items() if name in map(_sort_of, requests)}
    colour, shape = colour_and_shape(sorts, "top" if legend else None)
    chart = alt.Chart(data(points)).mark_point(filled=True, size=65, opacity=0.75)
    chart = chart.encode(
        x=_axis(alt.X, "across:Q", across), y=_axis(alt.Y, "up:Q", up), color=colour, shape=shape
    )
    return Drawing(chart.properties(height=170), "")


def _axis(channel: Any, field: str, measure: str) -> Any:
    import altair as alt

    if measure == "precision":
        scale, axis = alt.Scale(domain=[-0.1, 1.1], nice=False), alt.Axis(values=[0, 0.5, 1])
    else:
        scale, axis = alt.Scale(zero=True, nice=True), alt.Axis(tickCount=4)
    return channel(field, title=_AXES[measure], scale=scale, axis=axis)


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


def _listed(requests: Sequence[PricedRequest], measure: str) -> str:
    def said(one: PricedRequest) -> str:
        value, low, high = getattr(one, measure)
        return f"{one.label} ({one.researcher}, {one.kind}) {value:.2f} ({low:.2f} to {high:.2f})"

    return "; ".join(map(said, requests)) + "."
