"""The picture of the comparison: how far a synthetic log is off, against the strongest attack on it."""

from __future__ import annotations

from math import exp, log
from statistics import fmean
from typing import Any

import altair as alt

from reproductions.head_to_head.methods import EPSILON, LEARNER, NOTHING, ROW
from reproductions.head_to_head.page import METHODS, OUR_LABELS, TABLES, means
from understudy.core.pages.charts import Drawing, panels
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure, data

SHOWN = {
    "wrmse_centred": "difficulties: weighted RMSE, centred",
    "transition_tv": "transitions: total variation",
}
COVERED = {LEARNER: (ACCENT, "circle"), ROW: (WARNING, "diamond"), NOTHING: (MUTED, "square")}
# Large letters: the page shows the same picture on a telephone, at half the size.
HEIGHT, FONT = 380, 18
# Room for a name, in pixels, and where the names of the many points on the left stand.
LINE, NAMES_AT = 21, 0.6
# Across: from a little below guessing to where the names of the points on the right end.
ACROSS = (0.49, 0.82)
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def draw_figures() -> None:
    """Draw it from the measured table."""
    against_attacks().save(TABLES, "against-attacks")


def against_attacks(log_name: str = "assistments") -> Figure:
    """A point per method: errors upwards, the strongest attack that was made across, by what a guarantee covers."""
    points = measured(log_name)
    drawings = [
        _panel(points, column, title, last=column == list(SHOWN)[-1]) for column, title in SHOWN.items()
    ]
    words = "Errors against the strongest attack, by method. " + " ".join(
        f"{title}: {drawing.words}." for drawing, title in zip(drawings, SHOWN.values(), strict=True)
    )
    return panels(drawings, words, columns=1)


def measured(log_name: str) -> list[dict[str, Any]]:
    """What was measured of each method on a log: errors, the strongest attack, refits included, and its name."""
    return [
        {
            "name": short_name(label),
            "covers": METHODS[label].covers,
            "ours": label in OUR_LABELS,
            "auc": max(float(row["auc"]), float(row.get("auc_refits", 0.0))),
            **{column: float(row[column]) for column in SHOWN},
        }
        for label, row in means(log_name).items()
        if "auc" in row and label in METHODS
    ]


def short_name(label: str) -> str:
    """A method's name for a picture."""
    return (
        label.replace(":epsilon=", " ")
        .replace("privtrace:8", f"PrivTrace {EPSILON:g}")
        .replace("opendp ", "")
    )


def _panel(points: list[dict[str, Any]], column: str, title: str, *, last: bool) -> Drawing:
    values = [{**point, "error": point[column]} for point in points]
    low, high = (f(point["error"] for point in values) for f in (min, max))
    domain = [0.8 * low, 1.25 * high]
    x = alt.X(
        "auc:Q",
        scale=alt.Scale(domain=list(ACROSS), nice=False),
        axis=alt.Axis(values=[0.5, 0.6, 0.7, 0.8], format=".1f", labelFontSize=FONT, titleFontSize=FONT),
        title="strongest attack: AUC (0.5 is guessing)" if last else None,
    )
    y = alt.Y(
        "error:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(
            values=[tick for tick in TICKS if domain[0] < tick < domain[1]],
            format="~g",
            labelFontSize=FONT,
            titleFontSize=FONT,
        ),
        title=title,
    )
    covers = list(COVERED)
    # One legend for both panels.
    label = "'covers ' + datum.label"
    legend = None if last else alt.Legend(orient="top", title=None, labelFontSize=FONT, labelExpr=label)
    colour = alt.Color(
        "covers:N",
        scale=alt.Scale(domain=covers, range=[look[0] for look in COVERED.values()]),
        legend=legend,
    )
    shape = alt.Shape(
        "covers:N",
        scale=alt.Scale(domain=covers, range=[look[1] for look in COVERED.values()]),
        legend=legend,
    )
    base = alt.Chart(data(values)).encode(x=x, y=y)
    guessing = alt.Chart(data([{"auc": 0.5}])).mark_rule(color=MUTED, strokeDash=[4, 4]).encode(x=x)
    dots = [
        base.transform_filter(f"datum.ours == {str(ours).lower()}")
        .mark_point(filled=ours, size=130, opacity=1, strokeWidth=2.5)
        .encode(color=colour, shape=shape)
        for ours in (True, False)
    ]
    names = places(values, domain)
    lines = [
        {"auc": place, "error": error, "name": name["name"]}
        for name in names
        for place, error in ((name["auc"], name["error"]), (name["at"] - 0.003, name["level"]))
    ]
    leader = (
        alt.Chart(data(lines)).mark_line(color="#c3ccd4", strokeWidth=1).encode(x=x, y=y, detail="name:N")
    )
    text = alt.Chart(data(names)).mark_text(align="left", fontSize=FONT, color=INK)
    written = text.encode(x=alt.X("at:Q"), y=alt.Y("level:Q"), text="name:N")
    chart = alt.layer(guessing, leader, *dots, written).properties(height=HEIGHT)
    words = "; ".join(
        f"{point['name']}, covers {point['covers']}: {point['error']:.3f} at AUC {point['auc']:.3f}"
        for point in values
    )
    return Drawing(chart, words)


def places(values: list[dict[str, Any]], domain: list[float]) -> list[dict[str, Any]]:
    """Where names stand: in two columns, one for the many points on the left and one for those further right.

    `at` is the place across and `level` the height, as an error; in a column no name stands on another.
    """
    pixels = HEIGHT / log(domain[1] / domain[0])
    left = [value for value in values if value["auc"] < NAMES_AT - 0.01]
    right = [value for value in values if value not in left]
    named: list[dict[str, Any]] = []
    for points, at in ((left, NAMES_AT), (right, max((value["auc"] for value in right), default=0.0) + 0.01)):
        rising = sorted(points, key=lambda value: value["error"])
        levels = apart([log(value["error"] / domain[0]) * pixels for value in rising])
        named += [
            {**value, "at": at, "level": domain[0] * exp(level / pixels)}
            for value, level in zip(rising, levels, strict=True)
        ]
    return named


def apart(heights: list[float]) -> list[float]:
    """Rising heights moved as little as possible, until each is a line above the one before, within the picture."""
    # Less what the lines below take they have to rise: those that fall share the mean.
    blocks: list[list[float]] = []
    for number, height in enumerate(heights):
        blocks.append([height - LINE * number])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    highest = HEIGHT - LINE * (len(heights) - 0.5)
    moved = [min(max(fmean(block), LINE / 2), highest) for block in blocks for _ in block]
    return [height + LINE * number for number, height in enumerate(moved)]
