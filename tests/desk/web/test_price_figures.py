"""Figures of a project's prices: what is drawn is what was measured, and can be drawn at both widths."""

import json
from dataclasses import replace

import pytest

from understudy.desk.web.price_figures import (
    PricedRequest,
    advantage_by,
    advantage_by_request,
    mu_by_request,
    pairs,
    rank_correlation,
)
from understudy.errors import UsageError

ONE = PricedRequest(
    label="minutes by time of day",
    researcher="P1",
    kind="time of day",
    n_outputs=12,
    precision=0.5,
    mu=(0.41, 0.3, 0.5),
    advantage=(0.16, 0.1, 0.2),
    together_mu=(0.97, 0.9, 1.1),
    together_advantage=(0.36, 0.3, 0.4),
    published_mu=1.05,
    simulated=True,
)
REQUESTS = [
    ONE,
    replace(
        ONE, label="causes", researcher="P4", kind="causal", n_outputs=4, precision=1.0, mu=(0.8, 0.7, 0.9)
    ),
    replace(
        ONE, label="trends", researcher="P3", kind="trends", n_outputs=30, precision=None, mu=(0.2, 0.1, 0.3)
    ),
]


def values(specification):
    """Every point in a chart, its layers and its panels."""
    found = list(specification.get("data", {}).get("values", []))
    for part in (*specification.get("layer", []), *specification.get("concat", [])):
        found += values(part)
    return found


def test_figure_5_has_the_measured_mu_the_published_one_and_the_line_of_stage_one():
    figure = mu_by_request({"2022": REQUESTS}, stage_one_mu=0.96)
    points = values(figure.specification)
    measured = [point for point in points if point.get("series") == "measured, everything together"]
    # A little beside the place, so that intervals can be distinguished.
    assert {(round(p["at"]), p["value"], p["low"], p["high"]) for p in measured} == {
        (place, 0.97, 0.9, 1.1) for place in (1, 2, 3)
    }
    assert {p["value"] for p in points if p.get("series") == "published formula, not a bound"} == {1.05}
    assert {p["value"] for p in points if p.get("series") == "guaranteed by stage one alone"} == {0.96}
    assert "causes (P4, causal) 0.97 (0.90 to 1.10)" in figure.description


def test_without_a_guarantee_of_stage_one_there_is_no_line():
    points = values(mu_by_request({"2022": REQUESTS}, stage_one_mu=None).specification)
    assert not any(point["series"] == "guaranteed by stage one alone" for point in points)


def test_figure_6_shows_advantages_of_everything_by_data_set():
    figure = advantage_by_request({"2022": REQUESTS, "2023": REQUESTS[:1], "2024": []})
    assert len(figure.specification["concat"]) == 2
    assert {point["value"] for point in values(figure.specification)} == {0.36}


@pytest.mark.parametrize(
    ("group", "names"), [("researcher", ["P1", "P3", "P4"]), ("kind", ["causal", "time of day", "trends"])]
)
def test_figure_7_shows_each_request_alone_in_its_group(group, names):
    figure = advantage_by(group, REQUESTS)
    points = [point for point in values(figure.specification) if "series" in point]
    written = json.dumps(figure.specification)
    assert written.index(names[0]) < written.index(names[1]) < written.index(names[2])
    assert sorted(series for _, series in {(point["at"], point["series"]) for point in points}) == [
        *("causal", "other", "other"),
    ]
    assert {point["value"] for point in points} == {0.16}
    for request in REQUESTS:
        assert f"{request.label} ({request.researcher}, {request.kind}) 0.16" in figure.description


def test_figure_8_leaves_a_request_without_precision_out_of_its_panels_only():
    figure = pairs(REQUESTS)
    panels = figure.specification["concat"]
    assert [len(values(panel)) for panel in panels] == [2, 3, 3, 2, 2, 3]
    assert "mu against numbers in the answer: rank correlation −1.00" in figure.description


def test_pairs_of_requests_that_nobody_judged():
    assert len(pairs([replace(one, precision=None) for one in REQUESTS]).specification["concat"]) == 3


def test_rank_correlation_where_there_is_none():
    assert rank_correlation([(1, 2), (2, 1)]) is None
    assert rank_correlation([(1, 1), (1, 2), (1, 3)]) is None
    assert rank_correlation([(1, 9), (2, 8), (3, 1)]) == pytest.approx(-1)


def test_every_figure_can_be_drawn_wide_and_narrow():
    projects = {"2022": REQUESTS, "2023": REQUESTS[:1]}
    drawn = [mu_by_request(projects, 0.96), advantage_by_request(projects), pairs(REQUESTS)]
    for figure in (*drawn, advantage_by("kind", REQUESTS), advantage_by("researcher", REQUESTS[:1])):
        assert figure.svg().startswith("<svg")
        assert figure.narrow_svg().startswith("<svg")


def test_nothing_to_draw_is_said():
    for draw in (
        lambda: mu_by_request({"2022": []}, 0.96),
        lambda: advantage_by("kind", []),
        lambda: pairs([]),
    ):
        with pytest.raises(UsageError, match="no released request"):
            draw()
