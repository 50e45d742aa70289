"""The page of `cohort compare`, with its figures."""

from __future__ import annotations

from pathlib import Path

from understudy.cohorts.compare import FEWEST_FOR_INTERVAL, MEASURES, Comparison
from understudy.cohorts.compare_report import LABELS, figures
from understudy.cohorts.trials import GUARANTEE
from understudy.core.files.writing import write_text
from understudy.core.pages.render import render

# What each attack of `attacks.cohorts` looks for, about a learner called Ada there and here.
ATTACKS = {
    "dcr-l1": "A synthetic learner lies next to Ada: the sum of all differences over the weeks is small.",
    "dcr-l2": "A synthetic learner lies next to Ada: the differences over the weeks, squared, are small.",
    "dcr-max": "A synthetic learner lies next to Ada: even the largest difference of a week is small.",
    "dcr-relative": "A synthetic learner lies closer to Ada than other real learners do.",
    "tracing": "The averages of the synthetic cohort lean towards Ada's weeks.",
    "tracing-habits": "The average habits of the synthetic learners with Ada's label lean towards hers.",
    "shadow": "Rehearsal: the attacker runs the method many times, with Ada and without, and asks which fits better.",
}


def floor_sentences(found: Comparison) -> list[str]:
    """For the pool and for every file: where it does no better than a guess; empty if nowhere."""
    said = {LABELS.get(one, one): found.beside_the_floor(one) for one in ("pool", *found.given)}
    return [f"{name[:1].upper()}{name[1:]} {words}" for name, words in said.items() if words]


def write_report(folder: Path, found: Comparison) -> None:
    """Write every figure as SVG and PNG, and `report.html`."""
    drawn = figures(found)
    for name, figure in drawn.items():
        figure.save(folder, name)
    rows = [
        (
            LABELS.get(method, method),
            found.guarantee(method),
            {measure: found.shown(method, measure) for measure in MEASURES},
        )
        for method in found.methods
    ]
    kinds = [(kind.replace("_", " "), found.of_kind("pool", kind)) for kind in found.kinds()]
    strongest = sorted({str(row["worst_attack"]) for row in found.rows if "worst_attack" in row})
    page = render(
        "cohorts/compare.html",
        figures=drawn,
        found=found,
        plan=found.plan,
        rows=rows,
        kinds=kinds,
        attacks=[(name, ATTACKS.get(name, "")) for name in strongest],
        floor=floor_sentences(found),
        enough=found.plan.n_seeds >= FEWEST_FOR_INTERVAL,
        fewest=FEWEST_FOR_INTERVAL,
        guarantee=GUARANTEE,
        n_real=round(found.rows[0]["n_real"]),
    )
    write_text(folder / "report.html", page)
