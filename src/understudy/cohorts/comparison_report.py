"""What a comparison writes: the table, figures (AJS, findings that hold, kinds of analyses, risk) and a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.cohorts.methods import GUARANTEE
from understudy.core.attacks.transcript import EXPOSED
from understudy.core.files.writing import new_folder, results_csv, write_json, write_text
from understudy.core.pages.charts import Drawing, Look, Point, Words, dots
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure
from understudy.core.pages.levels import levels_figure
from understudy.core.pages.render import render

if TYPE_CHECKING:
    from understudy.cohorts.comparison import Comparison, Shown

# With fewer seeds their spread is not shown: two or three numbers do not make a distribution.
FEWEST_FOR_INTERVAL = 3
MEASURES = (
    "ajs",
    "precision",
    "recall",
    "n_synthetic",
    "auc_worst",
    "control_auc_worst",
    "auc_transcript",
    "seconds",
    "outcome_precision",
    "outcome_recall",
)
LABELS = {
    "pool": "pool of the three",
    "zero-inflated": "zero-inflated alone",
    "habit-chain": "habit chain alone",
    "copula": "copula alone",
    "deep": "deep baseline",
    "nobody": "a guess, no learner",
    "pool-no-noise": "pool, no noise",
    "resample": "real learners, resampled",
}


def figures(found: Comparison) -> dict[str, Figure]:
    """All figures of a comparison, by the name of their files."""
    shown = {
        "ajs": ajs_figure(found),
        "findings": findings_figure(found),
        "kinds": kinds_figure(found),
    }
    if found.interval("pool", "auc_worst") is not None:
        shown["risk"] = risk_figure(found)
    if levels := found.levels():
        shown["levels"] = levels_figure([dict(vars(level)) for level in levels])
    return shown


def ajs_figure(found: Comparison) -> Figure:
    """AJS of each method with its interval over seeds (Figure 3 of Ito, Hsu and Ogata 2026)."""
    return dots(_points(found, "ajs", ""), "AJS, from 0 (alike) to 1", number=".3f").figure("AJS")


def findings_figure(found: Comparison) -> Figure:
    """Epistemic precision and recall of each method."""
    points = [*_points(found, "precision", "precision"), *_points(found, "recall", "recall")]
    return _shares(points, "share of findings").figure("Precision and recall")


def risk_figure(found: Comparison) -> Figure:
    """The strongest attack on each method, its control, and what whoever sees the summary finds."""
    looks = {
        "strongest attack": Look(WARNING),
        "summary seen": Look(ACCENT, "square"),
        "luck alone": Look(MUTED, "diamond"),
    }
    points = [
        *_points(found, "auc_worst", "strongest attack"),
        *_points(found, "auc_transcript", "summary seen"),
        *_points(found, "control_auc_worst", "luck alone"),
    ]
    lowest = min(0.4, *(math.floor(10 * (point.low or point.value)) / 10 for point in points))
    title = ["members distinguished", "(AUC; 0.5 is guessing)"]
    return dots(points, title, looks=looks, domain=[lowest, 1.0], number=".3f").figure("AUC")


def kinds_figure(found: Comparison) -> Figure:
    """Precision and recall of the pool by kind of analysis."""
    points = []
    for kind in found.kinds():
        measured = found.of_kind("pool", kind)
        n = measured.pop("n_synthetic")
        name = f"{kind.replace('_', ' ')} ({0 if n is None else n.mean:.0f})"
        points += [_point(name, what, shown) for what, shown in measured.items() if shown is not None]
    drawing = _shares(points, ["share of findings", "(in brackets: synthetic findings)"])
    return drawing.figure("By kind of analysis")


def _points(found: Comparison, measure: str, series: str) -> list[Point]:
    shown = [(method, found.shown(method, measure)) for method in found.methods]
    return [_point(LABELS.get(method, method), series, value) for method, value in shown if value is not None]


def _point(name: str, series: str, shown: Shown) -> Point:
    return Point(name, shown.mean, shown.low, shown.high, series)


def _shares(points: Sequence[Point], title: Words) -> Drawing:
    looks = {"precision": Look(ACCENT), "recall": Look(WARNING, "diamond")}
    return dots(points, title, looks=looks, domain=[0.0, 1.0], number=".3f")


# What each attack of `attacks.py` looks for; the learner is called Ada there and here.
ATTACKS = {
    "dcr-l1": "A synthetic learner lies next to Ada: the sum of all differences over the weeks is small.",
    "dcr-l2": "A synthetic learner lies next to Ada: the differences over the weeks, squared, are small.",
    "dcr-max": "A synthetic learner lies next to Ada: even the largest difference of a week is small.",
    "dcr-relative": "A synthetic learner lies closer to Ada than other real learners do.",
    "tracing": "The averages of the synthetic cohort lean towards Ada's weeks.",
    "tracing-habits": "The average habits of the synthetic learners with Ada's label lean towards hers.",
    "joint-linear": "All learners are weighed at once: whose presence moved the statistics that a summary measures?",
    "shadow": "The attacker runs the method many times, with Ada and without, and asks which fits better.",
}


def floor_sentences(found: Comparison) -> list[str]:
    """Where the pool and every given file do no better than a guess; empty if nowhere."""
    methods = ("pool", *found.given)
    sentences = {LABELS.get(method, method): found.beside_the_floor(method) for method in methods}
    return [f"{name[:1].upper()}{name[1:]} {words}" for name, words in sentences.items() if words]


def write_report(folder: Path, found: Comparison) -> None:
    """Write every figure as SVG and PNG, and `report.html`."""
    drawn = figures(found)
    for name, figure in drawn.items():
        figure.inside().save(folder, name)
    rows = [
        (
            LABELS.get(method, method),
            found.guarantee(method),
            {measure: found.shown(method, measure) for measure in MEASURES},
        )
        for method in found.methods
    ]
    kinds = [(kind.replace("_", " "), found.of_kind("pool", kind)) for kind in found.kinds()]
    strongest = sorted({name for method in found.methods for name in found.strongest_attacks(method)})
    page = render(
        "cohorts/compare.html",
        figures=drawn,
        found=found,
        plan=found.plan,
        rows=rows,
        kinds=kinds,
        levels=found.levels(),
        luck=found.shown("pool", "control_auc_worst"),
        exposed=found.exposed_share(),
        limit=EXPOSED,
        attacks=[(name, ATTACKS.get(name, "")) for name in strongest],
        floor=floor_sentences(found),
        enough=found.plan.n_seeds >= FEWEST_FOR_INTERVAL,
        fewest=FEWEST_FOR_INTERVAL,
        guarantee=GUARANTEE,
        n_real=round(found.rows[0]["n_real"]),
    )
    write_text(folder / "report.html", page)


def write_comparison(found: Comparison, folder: Path) -> None:
    """Write `results.csv`, figures, `report.html` and what was done, whole or not at all."""
    with new_folder(folder) as temporary:
        write_text(temporary / "results.csv", results_csv(found.rows))
        write_json(
            temporary / "study.json",
            {
                "internal": "computed from the learners' records; no guarantee covers these files",
                "plan": vars(found.plan),
                "given": list(found.given),
                "outsiders": found.n_outsiders,
                "learners": found.n_learners,
                "analyses": list(found.analyses),
                "methods": _plain_json(found.by_method()),
            },
        )
        write_report(temporary, found)
        # Functions of the learners' records, like the cohort itself: only the owner may read them.
        for path in temporary.iterdir():
            path.chmod(0o600)


def _plain_json(content: Any) -> Any:
    """The content without what JSON does not know."""
    if isinstance(content, dict):
        return {key: _plain_json(value) for key, value in content.items()}
    return None if isinstance(content, float) and not math.isfinite(content) else content
