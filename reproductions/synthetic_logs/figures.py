"""Figures 1 to 4 of Vie, Rigaux and Minn (2022) and ours beside them, drawn from the measured tables."""

from __future__ import annotations

import altair as alt
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from reproductions.pages import rows_of, tables_of
from reproductions.synthetic_logs import practice
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure, data
from understudy.logs.study_report import tradeoff

TABLES = tables_of("synthetic_logs")
# Boxes of the study's plan: words, column and row of the centre; and which box leads to which.
_BOXES = {
    "log": (["the log:", "all learners"], 0, 1),
    "training": (["training half"], 1, 0),
    "other": (["other half"], 1, 2),
    "generator": (["generator"], 2, 0),
    "synthetic": (["synthetic log"], 3, 0),
    "utility": (["utility: are the", "difficulties alike?"], 2, 1),
    "attack": (["attack: who was in", "the training half?"], 3, 2),
}
_ARROWS = (
    ("log", "training"),
    ("log", "other"),
    ("training", "generator"),
    ("generator", "synthetic"),
    ("training", "utility"),
    ("synthetic", "utility"),
    ("synthetic", "attack"),
    ("other", "attack"),
)
_HALF_WIDTH, _HALF_HEIGHT = 0.43, 0.3


def draw_figures() -> None:
    """Draw all four, success by attempt, and the trade-off with a guarantee."""
    abilities().save(TABLES, "abilities")
    plan().save(TABLES, "plan")
    actions().save(TABLES, "actions")
    practice.figure().save(TABLES, "practice")
    tradeoff(table_summaries("assistments", "samples")).save(TABLES, "tradeoff")
    tradeoff(table_summaries("private")).save(TABLES, "private")
    # What drops a quarter of the rows is next to what drops none, where there is no room for its name.
    long = [row for row in table_summaries("duolingo-shape") if row["method"] != "drop:0.25"]
    tradeoff(long).save(TABLES, "tradeoff-duolingo")


def abilities() -> Figure:
    """Estimated abilities and the normal law that synthetic ones are drawn from (Figure 1)."""
    bars = [{name: float(value) for name, value in row.items()} for row in rows_of(TABLES / "abilities.csv")]
    (law,) = rows_of(TABLES / "ability-law.csv")
    mean, spread = float(law["mean"]), float(law["spread"])
    at = np.linspace(bars[0]["from"], bars[-1]["to"], 200)
    curve = [{"ability": x, "density": y} for x, y in zip(at, norm.pdf(at, mean, spread), strict=True)]
    ends = alt.Scale(domain=[bars[0]["from"], bars[-1]["to"]], nice=True)
    x = alt.X("from:Q", title="estimated ability (log-odds)", scale=ends, axis=alt.Axis(tickCount=6))
    y = alt.Y("density:Q", title="density", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=True))
    histogram = alt.Chart(data(bars)).mark_rect(color=MUTED, opacity=0.6)
    histogram = histogram.encode(x=x, x2="to:Q", y=y, y2=alt.datum(0))
    normal = alt.Chart(data(curve)).mark_line(color=WARNING, strokeWidth=2.5).encode(x="ability:Q", y=y)
    words = f"Histogram of estimated abilities with a normal law of mean {mean:.2f} and spread {spread:.2f}."
    return Figure.of((histogram + normal).properties(height=220), words)


def ability_histogram(ability: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Bars (from, to, density) of abilities."""
    heights, edges = np.histogram(ability, bins=40, density=True)
    return [(float(a), float(b), float(h)) for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)]


def plan() -> Figure:
    """How the study goes (Figure 2): boxes and arrows."""
    boxes = [
        {"x": x - _HALF_WIDTH, "x2": x + _HALF_WIDTH, "y": -y - _HALF_HEIGHT, "y2": -y + _HALF_HEIGHT}
        | {"judged": name in ("utility", "attack")}
        for name, (_, x, y) in _BOXES.items()
    ]
    lines = [
        {"x": x, "y": -y + 0.11 * (len(words) - 1) - 0.22 * number, "text": text}
        for words, x, y in _BOXES.values()
        for number, text in enumerate(words)
    ]
    arrows = [_arrow(*_BOXES[a][1:], *_BOXES[b][1:]) for a, b in _ARROWS]
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.5, 3.5], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-2.4, 0.4], nice=False))
    fill = alt.condition("datum.judged", alt.value("#fbeee9"), alt.value("#eaf3f6"))
    edge = alt.condition("datum.judged", alt.value(WARNING), alt.value(ACCENT))
    rectangle = alt.Chart(data(boxes)).mark_rect(strokeWidth=1.5, cornerRadius=4)
    text = alt.Chart(data(lines)).mark_text(fontSize=15, color=INK).encode(x=x, y=y, text="text:N")
    line = (
        alt.Chart(data(arrows)).mark_rule(color=MUTED, strokeWidth=1.5).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    )
    head = alt.Chart(data(arrows)).mark_point(shape="triangle", filled=True, size=90, color=MUTED, opacity=1)
    tip = alt.Angle("angle:Q", scale=None)
    chart = (
        line
        + head.encode(x=alt.X("x2:Q", axis=None), y=alt.Y("y2:Q", axis=None), angle=tip)
        + rectangle.encode(x=x, y=y, x2="x2:Q", y2="y2:Q", fill=fill, stroke=edge)
        + text
    )
    words = (
        "The log is split in a training half and another half. A generator learns from the training half and "
        "writes a synthetic log. Utility compares the difficulties of the training half and of the synthetic log; the "
        "attack uses the synthetic log to distinguish the training half from the other half."
    )
    return Figure.of(chart.properties(height=300), words)


def _arrow(x: float, y: float, x2: float, y2: float) -> dict[str, float]:
    """From the edge of one box to the edge of another, across or down."""
    if y == y2:
        side = np.sign(x2 - x)
        return {
            "x": x + side * _HALF_WIDTH,
            "y": -y,
            "x2": x2 - side * (_HALF_WIDTH + 0.05),
            "y2": -y,
            "angle": 90 * side,
        }
    down = np.sign(y2 - y)
    # Arrows from two sides end beside each other.
    x2 -= 0.2 * np.sign(x2 - x)
    start, end = -y - down * _HALF_HEIGHT, -y2 + down * (_HALF_HEIGHT + 0.06)
    # A triangle points upwards; the angle is that on the page, where a column is 170 and a row 107 pixels.
    angle = np.degrees(np.arctan2((x2 - x) * 170, (end - start) * 107))
    return {"x": x, "y": start, "x2": x2, "y2": end, "angle": float(angle)}


def actions() -> Figure:
    """Shares of actions in the training half, in the chain's output and in the network's (Figure 3)."""
    rows = [{name: float(value) for name, value in row.items()} for row in rows_of(TABLES / "shares.csv")]
    series = {"markov": ACCENT, "gru": WARNING}
    values = [
        {"rank": row["rank"], "share": row[name], "log": name}
        for row in rows
        for name in ("training", *series)
    ]
    names, colours = ["training", *series], [MUTED, *series.values()]
    base = alt.Chart(data(values)).encode(
        x=alt.X("rank:Q", title="actions, most frequent first", scale=alt.Scale(nice=False)),
        y=alt.Y("share:Q", title="share of attempts", axis=alt.Axis(format=".0%", tickCount=5), stack=None),
        color=alt.Color(
            "log:N",
            scale=alt.Scale(domain=names, range=colours),
            legend=alt.Legend(orient="top", title=None),
        ),
    )
    area = base.transform_filter("datum.log == 'training'").mark_area(interpolate="step", opacity=0.4)
    lines = base.transform_filter("datum.log != 'training'").mark_line(interpolate="step", strokeWidth=1.8)
    distance = {name: 0.5 * sum(abs(row[name] - row["training"]) for row in rows) for name in series}
    words = "; ".join(f"{name} differs by {value:.3f} in total variation" for name, value in distance.items())
    return Figure.of(
        (area + lines).properties(height=260), f"Shares of actions in the training half; {words}."
    )


def table_summaries(*tables: str) -> list[dict[str, object]]:
    """The rows of tables as the trade-off wants them; of a method that two tables attack the first one counts."""
    found: dict[str, dict[str, object]] = {}
    for table in tables:
        for row in rows_of(TABLES / f"{table}.csv"):
            if row["auc_worst"] and row["method"] not in found:
                names = ("wrmse", "auc_lcs", "auc_worst", "auc_worst_low", "auc_worst_high")
                found[row["method"]] = {name: float(row[name]) for name in names}
    return [{"method": short_method(method), **row} for method, row in found.items()]


def short_method(method: str) -> str:
    """A method's name without how long it was trained."""
    return method.split(":epochs=")[0]
