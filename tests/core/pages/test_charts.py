"""Charts: what is drawn is also said, names do not cover each other, and every chart has a narrow form."""

import itertools
import json

import pytest

from understudy.core.pages.charts import (
    HEIGHT,
    Look,
    Point,
    curves,
    described,
    dots,
    end_labels,
    panels,
)
from understudy.core.pages.figures import NARROW, WIDE

LOOKS = {"ours": Look("#0b6e8a"), "theirs": Look("#b4451f", "diamond"), "none": Look("#1d2733", dashed=True)}


def methods():
    return [
        Point(name, value, value - 0.1, value + 0.1, series)
        for name, value in (("first", 0.4), ("second", 0.7))
        for series in ("ours", "theirs")
    ]


def sizes():
    measured = [Point(n, 0.5 + n / 1000, 0.4, 0.9, s) for s in ("ours", "theirs") for n in (40, 80, 120)]
    return [*measured, *(Point(n, 0.95, series="none") for n in (40, 120))]


DRAWINGS = {
    "dots": lambda: dots(methods(), "share", looks=LOOKS, domain=[0.0, 1.0], reference=0.5),
    "plain dots": lambda: dots([Point("only", 0.3, 0.2, 0.4)], ["in two", "lines"]),
    "grouped dots": lambda: dots(
        [Point(f"{n:04}", n / 10, 0, 1, "ours") for n in range(4)],
        "share",
        looks=LOOKS,
        labels={"0000": "A", "0002": "B"},
    ),
    "curves": lambda: curves(sizes(), "learners", "share", looks=LOOKS, domain=[0.0, 1.0], legend="ends"),
    "bands": lambda: curves(sizes(), "learners", "share", looks=LOOKS, bands=True, logarithmic=True),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_chart_can_be_drawn_wide_and_narrow(name):
    figure = DRAWINGS[name]().figure("Shares")
    for width in (WIDE, NARROW):
        assert figure.svg(width).startswith("<svg")


def test_every_value_is_said_with_its_interval():
    figure = DRAWINGS["dots"]().figure("Shares", "Half is chance.")
    assert figure.description == (
        "Shares: first, ours: 0.40 (0.30 to 0.50); second, ours: 0.70 (0.60 to 0.80); "
        "first, theirs: 0.40 (0.30 to 0.50); second, theirs: 0.70 (0.60 to 0.80). Half is chance."
    )


def test_a_long_series_is_said_by_its_ends_and_values_without_an_interval_by_themselves():
    long = [Point(n, n / 100, series="ours") for n in range(50, 0, -1)]
    assert described(long, ".0%") == "1, ours: 1%; 50, ours: 50%"


def test_dots_of_one_series_stand_in_the_middle_of_their_rows():
    assert "yOffset" not in json.dumps(DRAWINGS["plain dots"]().chart.to_dict())
    assert "yOffset" in json.dumps(DRAWINGS["dots"]().chart.to_dict())


def test_series_without_points_are_not_in_the_legend():
    drawing = dots(methods(), "share", looks=LOOKS)
    assert "none" not in json.dumps(drawing.chart.to_dict())


def test_names_of_lines_do_not_cover_each_other():
    points = [
        Point(200, mean, series=method)
        for method, mean in (("knorm", 0.96), ("objective", 0.955), ("statistics", 0.305), ("joint", 0.31))
    ]
    heights = sorted(label["value"] for label in end_labels(points, [0.3, 1.0]))
    apart = 16 / HEIGHT * 0.7
    assert all(b - a >= apart for a, b in itertools.pairwise(heights))
    assert heights[0] >= 0.3
    assert heights[-1] <= 1.0


def test_panels_are_stacked_on_a_telephone_and_then_all_are_labelled():
    parts = [dots(methods(), "share", looks=LOOKS, named=place == 0).headed(str(place)) for place in range(3)]
    figure = panels(parts, "Three.", columns=3)
    assert figure.svg(WIDE).count(">first<") == 1
    assert figure.svg(NARROW).count(">first<") == 3
    assert figure.description == "Three."
