"""Measures the tables and figures of the private Rasch model.

What is kept of the real classes are means, intervals and histograms over bootstrap samples, never a student's row.
"""

from __future__ import annotations

import time

from reproductions.dp_rasch.audit import run_audit
from reproductions.dp_rasch.figures import figures
from reproductions.dp_rasch.study import DifficultyPlan, Findings, read_table, run_experiments, table_of
from reproductions.pages import DATA, tables_of, write_rows
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import Responses

TABLES = tables_of("dp_rasch")
CLASSES = {"EPM": "epm_exam_second.csv", "fraction": "fraction.csv"}


def _classes() -> dict[str, Responses]:
    return {name: read_responses(DATA / file) for name, file in CLASSES.items()}


def measure_experiments() -> None:
    """All experiments (some ten minutes)."""
    findings = run_experiments(DifficultyPlan(), _classes())
    (TABLES / "results.csv").write_text(table_of(findings.results), encoding="utf-8")
    _draw(findings)
    # Thousands of cells: only as an image, and only the one that the page shows.
    (TABLES / "probabilities-epm.png").write_bytes(figures(findings)["probabilities-epm"].png())


def measure_spreads() -> None:
    """How much abilities spread in each real class, fitted without noise."""
    rows = []
    for name, responses in _classes().items():
        sd = fit_marginal(responses.missing_as_wrong().correct, sd=None).sd
        rows.append((name, responses.n_learners, responses.n_items, f"{sd:.1f}"))
    write_rows(TABLES / "classes.csv", ("class", "learners", "items", "ability_sd"), rows)


def measure_audit() -> None:
    """The audit of what is claimed."""
    write_rows(
        TABLES / "audit.csv",
        ("mechanism", "setting", "measure", "claimed", "found", "verdict", "story"),
        [
            (f.mechanism, f.setting, f.measure, f"{f.claimed:.2f}", f"{f.found:.2f}", f.verdict, f.story)
            for f in run_audit()
        ],
    )


def measure_seconds() -> None:
    """The time of 1,000 repetitions with 200 learners: simulate, knorm, abilities, every measure."""
    plan = DifficultyPlan(repetitions=1000, sizes=(200,), epsilons=(1.0,), methods=("knorm",))
    start = time.perf_counter()
    run_experiments(plan)
    seconds = time.perf_counter() - start
    write_rows(TABLES / "seconds.csv", ("repetitions", "seconds"), [(1000, f"{seconds:.0f}")])


def draw_figures() -> None:
    """Every figure that can be drawn from the table again."""
    _draw(read_table((TABLES / "results.csv").read_text(encoding="utf-8")))


def _draw(findings: Findings) -> None:
    for name, figure in figures(findings).items():
        if not name.startswith("probabilities-"):
            figure.save(TABLES, name)


PARTS = {
    "experiments": measure_experiments,
    "spreads": measure_spreads,
    "audit": measure_audit,
    "seconds": measure_seconds,
    "figures": draw_figures,
}
