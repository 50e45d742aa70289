"""The page of `cohort compare`, with its figures."""

from __future__ import annotations

from pathlib import Path

from understudy.pages import render
from understudy.pages.writing import write_text
from understudy.studies.cohort_compare import MEASURES, Comparison
from understudy.studies.cohort_figures import LABELS, figures
from understudy.studies.cohort_trials import GUARANTEE


def write_report(folder: Path, found: Comparison) -> None:
    """Write every figure as SVG and PNG, and `report.html`."""
    drawn = figures(found)
    for name, figure in drawn.items():
        figure.save(folder, name)
    rows = [
        (LABELS.get(method, method), found.guarantee(method), [found.interval(method, m) for m in MEASURES])
        for method in found.methods
    ]
    kinds = [
        (
            kind.replace("_", " "),
            [found.interval("pool", f"{name}_{kind}") for name in ("precision", "recall", "n_synthetic")],
        )
        for kind in found.kinds()
    ]
    attacks = sorted({str(row["worst_attack"]) for row in found.rows if "worst_attack" in row})
    page = render(
        "studies/cohort_compare.html",
        figures=drawn,
        found=found,
        plan=found.plan,
        rows=rows,
        kinds=kinds,
        attacks=attacks,
        guarantee=GUARANTEE,
        n_real=round(found.rows[0]["n_real"]),
    )
    write_text(folder / "report.html", page)
