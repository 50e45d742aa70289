"""The figure and the page of a study."""

from __future__ import annotations

import math
import statistics
from itertools import product
from pathlib import Path
from typing import Any

from understudy.core.files.writing import write_text
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure, data
from understudy.core.pages.render import render
from understudy.core.pages.words import GUESSING
from understudy.logs.audit import MEMBERSHIP_ATTACKS
from understudy.logs.histograms import compared, comparison_figure
from understudy.logs.interactions import Interactions
from understudy.logs.utility import METRICS

Row = dict[str, Any]

# What the error of difficulties means where a generator told no name: absent actions count as of medium difficulty.
NO_NAMES = (
    "none of the real actions is in the synthetic log, so that nothing is known about difficulties; their error is "
    "that of taking all of them for the same."
)
STRONGEST = "strongest attack"
PUBLISHED = "published attack (lcs)"

# Left, right, bottom and top in the figure.
Box = tuple[float, float, float, float]

# What a letter of a method's name takes there; on a telephone names come closer to each other.
LETTER_WIDTH = 0.014
LETTER_HEIGHT = 0.03


def write_report(folder: Path, rows: list[Row], log: Interactions, n_shadows: int, source: str) -> None:
    """Write `tradeoff.svg`, `tradeoff.png` and `report.html`."""
    summaries = summarise(rows)
    figure = tradeoff(summaries)
    figure.inside().save(folder, "tradeoff")
    measured = {name for summary in summaries for name in summary}
    page = render(
        "logs/study.html",
        summaries=summaries,
        figure=figure,
        metrics=[metric for metric in METRICS if metric.name in measured],
        attacks=[name for name in MEMBERSHIP_ATTACKS if f"auc_{name.replace('-', '_')}" in measured],
        log=log,
        n_shadows=n_shadows,
        n_seeds=len({row["seed"] for row in rows}),
        source=source,
        n_constant=0 if log.outcome is None else int(log.constant_actions().sum()),
        compared=compared(log),
        no_names=NO_NAMES,
        comparisons=[
            (summary["method"], comparison_figure(found))
            for summary in summaries
            if (
                found := next(
                    (row.get("histograms") for row in rows if row["method"] == summary["method"]), None
                )
            )
        ],
    )
    write_text(folder / "report.html", page)


def summarise(rows: list[Row]) -> list[Row]:
    """Means over seeds, a row per generator in the order given."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    summaries = []
    for method in methods:
        mine = [row for row in rows if row["method"] == method]
        numbers = [name for name, value in mine[0].items() if isinstance(value, (int, float))]
        summary: Row = {name: statistics.fmean(row[name] for row in mine) for name in numbers}
        summary.update(
            method=method,
            names=mine[0]["names"],
            n_seeds=len(mine),
            worst_attacks=sorted({row["worst_attack"] for row in mine}),
        )
        summaries.append(summary)
    return summaries


def tradeoff(summaries: list[Row]) -> Figure:
    """Utility against risk: how far difficulties, or shares of actions, are off, how well members are found."""
    import altair as alt

    measure = error_of(summaries)
    widest = max(summary[measure] for summary in summaries) or 0.1
    points = [point for summary in summaries for point in _points(summary, measure)]
    # The root spreads the small errors apart; room on the right for the names.
    room = 1.5
    x = alt.X(
        "error:Q",
        scale=alt.Scale(type="sqrt", domain=[0.0, room * widest], nice=False),
        axis=alt.Axis(tickCount=5),
        title=[_ERRORS[measure], "further left is more useful"],
    )
    y = alt.Y(
        "auc:Q",
        scale=alt.Scale(domain=[0.4, 1.0]),
        axis=alt.Axis(format=".1f", tickCount=6),
        title=["members distinguished (AUC)", "further down is less risk"],
    )
    domain = [STRONGEST, PUBLISHED]
    legend = alt.Legend(orient="top", title=None)
    colour = alt.Color("attack:N", scale=alt.Scale(domain=domain, range=[WARNING, ACCENT]), legend=legend)
    shape = alt.Shape("attack:N", scale=alt.Scale(domain=domain, range=["diamond", "circle"]), legend=legend)
    base = alt.Chart(data(points))
    strongest = base.transform_filter(f"datum.attack == '{STRONGEST}'")
    line = alt.Chart(data([{"auc": GUESSING, "error": room * widest, "word": "guessing"}]))
    guessing = line.mark_rule(color=MUTED, strokeDash=[4, 4]).encode(y=y)
    word = line.mark_text(color=INK, align="right", dy=11, fontSize=13).encode(x=x, y=y, text="word:N")
    joined = base.mark_line(color="#b9c3cd", strokeWidth=1).encode(x=x, y=y, detail="method:N")
    interval = strongest.mark_rule(color=WARNING, strokeWidth=2).encode(x=x, y="low:Q", y2="high:Q")
    dots = base.mark_point(filled=True, size=100, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    names = alt.Chart(data(name_places(summaries, room * widest))).encode(x=x, y=y, text="method:N")
    style: dict[str, Any] = {"fontSize": 13, "fontWeight": 600, "color": INK}
    right = names.transform_filter("!datum.left").mark_text(align="left", dx=10, **style)
    left = names.transform_filter("datum.left").mark_text(align="right", dx=-10, **style)
    chart = (guessing + word + joined + interval + dots + right + left).properties(height=360)
    words = "; ".join(
        f"{s['method']}: {_ERRORS[measure]} {s[measure]:.3f}, strongest attack AUC {s['auc_worst']:.3f}, "
        f"published attack {s['auc_lcs']:.3f}"
        for s in summaries
    )
    return Figure.of(chart, f"Utility against risk. {words}. The dashed line at 0.5 is guessing.")


# What is plotted against risk: the first that every method has.
_ERRORS = {
    "wrmse": "error of the difficulties (weighted RMSE)",
    "action_tv": "share of rows with another action than they should have",
}


def error_of(summaries: list[Row]) -> str:
    """The measure of utility in the figure: where there are no outcomes there are no difficulties."""
    return next(name for name in _ERRORS if all(name in summary for summary in summaries))


def _points(summary: Row, measure: str) -> list[Row]:
    """The two points of a method: what the strongest attack finds, and what the published one does."""
    common = {"method": summary["method"], "error": summary[measure]}
    low, high = summary["auc_worst_low"], summary["auc_worst_high"]
    return [
        common | {"attack": STRONGEST, "auc": summary["auc_worst"], "low": low, "high": high},
        common | {"attack": PUBLISHED, "auc": summary["auc_lcs"]},
    ]


def short_name(method: str) -> str:
    """A method's name for a figure: of a private one its epsilon alone beside it."""
    return method.replace(":epsilon=", " ")


def name_places(summaries: list[Row], widest: float) -> list[Row]:
    """Where the methods' names go: beside their points, where they cover no point and no other name.

    Boxes are (left, right, bottom, top); across the figure from 0 to 1, upwards in AUC.
    """
    measure = error_of(summaries)
    taken = [box for summary in summaries for box in _marks(summary, measure, widest)]
    places = []
    for summary in sorted(summaries, key=lambda s: -s["auc_worst"]):
        name = short_name(summary["method"])
        across, width = math.sqrt(summary[measure] / widest), LETTER_WIDTH * len(name)
        for step, left in product(
            (0, 1, -1, 2, -2, 3, -3, -4, -5, -6, 4, 5, 6), (across > 0.6, across <= 0.6)
        ):
            height = summary["auc_worst"] - step * LETTER_HEIGHT
            start = across - 0.03 - width if left else across + 0.03
            box = (start, start + width, height - LETTER_HEIGHT / 2, height + LETTER_HEIGHT / 2)
            inside = start >= 0 and start + width <= 1 and 0.42 <= height <= 0.99
            if inside and not any(_overlap(box, other) for other in taken):
                break
        taken.append(box)
        place = {"method": name, "error": summary[measure], "auc": height, "left": left}
        places.append(place)
    return places


def _marks(summary: Row, measure: str, widest: float) -> list[Box]:
    """The room that a method's points and interval take."""
    across = math.sqrt(summary[measure] / widest)
    return [
        (across - 0.015, across + 0.015, low - 0.015, high + 0.015)
        for low, high in (
            (summary["auc_worst_low"], summary["auc_worst_high"]),
            (summary["auc_lcs"], summary["auc_lcs"]),
        )
    ]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
