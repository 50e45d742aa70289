"""The page of the study of difficulties, with its figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from understudy.core.files.writing import write_text
from understudy.core.pages.charts import LABELS
from understudy.core.pages.render import render
from understudy.exams.responses import Responses
from understudy.reproductions.dp_rasch.figures import figures
from understudy.reproductions.dp_rasch.study import (
    GUARANTEE,
    REAL_EPSILON,
    REAL_METHODS,
    DifficultyPlan,
    Findings,
    Result,
)

BOTH = ("probabilities_true", "difficulties_true")


def write_report(
    folder: Path, findings: Findings, plan: DifficultyPlan, data: Mapping[str, Responses]
) -> None:
    """Write every figure as SVG and PNG, and `report.html`."""
    found = figures(findings)
    for name, figure in found.items():
        figure.save(folder, name)
    page = render(
        "reproductions/dp_rasch/difficulties.html",
        figures=found,
        plan=plan,
        data=data,
        labels=LABELS,
        guarantee=GUARANTEE,
        findings=findings,
        both=both(findings, plan),
        gains=gains(findings, plan),
        real=real_rows(findings),
        real_epsilon=REAL_EPSILON,
        real_methods=REAL_METHODS,
        histograms=[name for name in found if name.startswith("probabilities-")],
    )
    write_text(folder / "report.html", page)


def both(findings: Findings, plan: DifficultyPlan) -> list[tuple[float, int, list[list[Result | None]]]]:
    """A row per epsilon and size: for each method, then without privacy, the two correlations with the truth."""
    return [
        (
            epsilon,
            n,
            [
                [findings.one(experiment=2, method=m, epsilon=e, n_learners=n, measure=name) for name in BOTH]
                for m, e in (*((method, epsilon) for method in plan.methods), ("joint", None))
            ],
        )
        for epsilon in plan.epsilons
        for n in plan.sizes
    ]


def gains(findings: Findings, plan: DifficultyPlan) -> list[tuple[float, int, list[Result]]]:
    """A row per epsilon and size: what knorm gains over the published method in both correlations."""
    rows = []
    for epsilon in plan.epsilons:
        for n in plan.sizes:
            mine = [
                findings.one(
                    experiment=2, method="knorm - objective", epsilon=epsilon, n_learners=n, measure=m
                )
                for m in BOTH
            ]
            rows.append((epsilon, n, [row for row in mine if row is not None]))
    return [row for row in rows if row[2]]


def real_rows(findings: Findings) -> list[tuple[str, int, str, list[Result]]]:
    """A row per class, size and method: like its own fit without noise, like the seed's, and how often wrong."""
    measures = ("probabilities_noiseless", "probabilities_nonprivate", "misclassification")
    keys = dict.fromkeys(
        (row.data, row.n_learners, row.method)
        for row in findings.results
        if row.experiment > 2 and row.method in REAL_METHODS
    )
    return [
        (
            data,
            n,
            method,
            [row for m in measures for row in findings.of(data=data, n_learners=n, method=method, measure=m)],
        )
        for data, n, method in keys
    ]
