"""The figure and the page of a study."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from understudy.attacks import MEMBERSHIP_ATTACKS
from understudy.pages import Figure, render
from understudy.pages.figures import ACCENT, MUTED, WARNING, data
from understudy.pages.writing import write_text
from understudy.records import Interactions
from understudy.utility import METRICS

Row = dict[str, Any]

STRONGEST = "strongest attack"
PUBLISHED = "published attack (lcs)"


def write_report(
    folder: Path, rows: list[Row], log: Interactions, n_shadows: int, source: str, n_constant: int
) -> None:
    """Write `tradeoff.svg`, `tradeoff.png` and `report.html`."""
    summaries = summarise(rows)
    figure = tradeoff(summaries)
    figure.save(folder, "tradeoff")
    page = render(
        "studies/report.html",
        summaries=summaries,
        figure=figure,
        metrics=METRICS,
        attacks=MEMBERSHIP_ATTACKS,
        log=log,
        n_shadows=n_shadows,
        n_seeds=len({row["seed"] for row in rows}),
        source=source,
        n_constant=n_constant,
    )
    write_text(folder / "report.html", page)


def summarise(rows: list[Row]) -> list[Row]:
    """Means over seeds, a row per method in the order given; controls last."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    methods.sort(key=lambda method: method.startswith("control:"))
    summaries = []
    for method in methods:
        mine = [row for row in rows if row["method"] == method]
        numbers = [name for name, value in mine[0].items() if isinstance(value, (int, float))]
        summary: Row = {name: statistics.fmean(row[name] for row in mine) for name in numbers}
        summary.update(
            method=method, n_seeds=len(mine), worst_attacks=sorted({row["worst_attack"] for row in mine})
        )
        summaries.append(summary)
    return summaries


def tradeoff(summaries: list[Row]) -> Figure:
    """Utility against risk: how far the difficulties are off, how well members are found."""
    import altair as alt

    points: list[Row] = []
    for summary in summaries:
        if summary["method"].startswith("control:"):
            continue
        common = {"method": summary["method"], "error": summary["wrmse"]}
        points.append(
            common
            | {
                "attack": STRONGEST,
                "auc": summary["auc_worst"],
                "low": summary["auc_worst_low"],
                "high": summary["auc_worst_high"],
            }
        )
        published = summary["auc_lcs"]
        points.append(common | {"attack": PUBLISHED, "auc": published, "low": published, "high": published})
    widest = max(point["error"] for point in points) or 0.1
    # The root spreads the small errors apart; room on the right for the names.
    x_scale = alt.Scale(type="sqrt", domain=[0.0, 1.35 * widest], nice=False)
    y_scale = alt.Scale(domain=[0.4, 1.0])
    few = alt.Axis(tickCount=6)
    x = alt.X(
        "error:Q", scale=x_scale, axis=few, title="error of difficulties (weighted RMSE), lower is better"
    )
    y = alt.Y("auc:Q", scale=y_scale, title="members found (AUC), lower is better")
    low = alt.Y("low:Q", scale=y_scale)
    attacks, colours = [STRONGEST, PUBLISHED], [WARNING, ACCENT]
    legend = alt.Legend(orient="top", title=None)
    colour = alt.Color("attack:N", scale=alt.Scale(domain=attacks, range=colours), legend=legend)
    shape = alt.Shape("attack:N", scale=alt.Scale(domain=attacks, range=["diamond", "circle"]), legend=legend)
    base = alt.Chart(data(points))
    strongest = base.transform_filter(f"datum.attack == '{STRONGEST}'")
    line = alt.Chart(data([{"auc": 0.5, "error": 1.35 * widest, "word": "guessing"}]))
    guessing = line.mark_rule(color=MUTED, strokeDash=[4, 4]).encode(y=y)
    word = line.mark_text(color=MUTED, align="right", dy=10, fontSize=12).encode(x=x, y=y, text="word:N")
    joined = base.mark_line(color="#c9d1d9", strokeWidth=1).encode(x=x, y=y, detail="method:N")
    interval = strongest.mark_rule(color=WARNING, strokeWidth=2).encode(x=x, y=low, y2="high:Q")
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    names = strongest.mark_text(align="left", dx=9, dy=-7, fontSize=12).encode(x=x, y=y, text="method:N")
    layers = guessing + word + joined + interval + dots + names
    chart = layers.properties(width=560, height=340)
    words = "; ".join(
        f"{s['method']}: weighted RMSE {s['wrmse']:.3f}, strongest attack AUC {s['auc_worst']:.3f}, "
        f"published attack {s['auc_lcs']:.3f}"
        for s in summaries
        if not s["method"].startswith("control:")
    )
    return Figure.of(chart, f"Utility against risk. {words}. The dashed line at 0.5 is guessing.")
