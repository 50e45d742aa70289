"""Measures the tables and figures of the private Rasch model.

What is kept of the real classes are means, intervals and histograms over bootstrap samples, never a student's row.
"""

from __future__ import annotations

import time
from dataclasses import astuple, fields

import numpy as np

from reproductions.dp_rasch.audit import run_audit
from reproductions.dp_rasch.coverage import (
    COLUMNS,
    Foreseen,
    cases,
    measure_class,
    measure_forecast,
    measure_grid,
)
from reproductions.dp_rasch.figures import figures
from reproductions.dp_rasch.penalties import (
    PenaltyRow,
    draw_sweep,
    measure_choice,
    measure_sweep,
    penalty_rows,
)
from reproductions.dp_rasch.pictures import save_workflow, scatter
from reproductions.dp_rasch.study import DifficultyPlan, Findings, read_table, run_experiments, table_of
from reproductions.pages import DATA, tables_of, write_rows
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

TABLES = tables_of("dp_rasch")
CLASSES = {"EPM": "epm_exam_second.csv", "fraction": "fraction.csv"}


# The paper's second class was withdrawn by its owners: an exam of its shape, as the paper simulates exams.
SIMULATED_CLASS = "simulated 212 x 27"


def _classes() -> dict[str, Responses]:
    return {name: read_responses(DATA / file) for name, file in CLASSES.items()}


def _studied() -> dict[str, Responses]:
    """The paper's first class, one like its second, and a real one of other origin: experiments 3, 4 and 5."""
    real = _classes()
    second = Exam(212, 27).simulate(np.random.default_rng(212)).responses
    return {"EPM": real["EPM"], SIMULATED_CLASS: second, "fraction": real["fraction"]}


def measure_experiments() -> None:
    """All experiments (some ten minutes)."""
    findings = run_experiments(DifficultyPlan(), _studied())
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


def measure_coverage() -> None:
    """How often 95 % intervals hold the truth: simulated exams, and both exams of EPM and the fraction test."""
    (TABLES / "coverage.csv").unlink(missing_ok=True)
    measure_grid(TABLES / "coverage.csv")
    measure_real_coverage()


def measure_real_coverage() -> None:
    """The same on real classes alone."""
    rows = []
    for name, file in {"EPM, first exam": "epm_exam_first.csv", **CLASSES}.items():
        responses = read_responses(DATA / file)
        for epsilon in (0.5, 1.0, 5.0, 10.0):
            for method in ("knorm", "gaussian"):
                found = measure_class(responses, epsilon, method)
                rows.append((name, *(("" if v is None else v) for v in astuple(found))))
    write_rows(TABLES / "coverage-real.csv", ("class", *COLUMNS), rows)


def measure_exam_forecasts() -> None:
    """What `--explain` predicts for a third of the cells of the same grid, and what comes out."""
    rows = [measure_forecast(case) for case in [case for case in cases() if case.n_items <= 400][::3]]
    write_rows(
        TABLES / "forecasts.csv",
        tuple(field.name for field in fields(Foreseen)),
        [tuple("" if value is None else value for value in astuple(row)) for row in rows],
    )


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


def measure_penalties() -> None:
    """The sweep over lambda, and the ways of choosing it."""
    for name, rows in (("penalty-sweep", measure_sweep()), ("penalty-choice", measure_choice())):
        write_rows(
            TABLES / f"{name}.csv",
            tuple(field.name for field in fields(PenaltyRow)),
            [
                tuple(
                    f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
                    for value in astuple(row)
                )
                for row in rows
            ],
        )
    draw_penalties()


def draw_pictures() -> None:
    """The workflow, and the probabilities of simulated students."""
    save_workflow(TABLES)
    # Thousands of points: only as an image.
    (TABLES / "probabilities-simulated.png").write_bytes(scatter().png())


def draw_penalties() -> None:
    """The sweep as a figure, from its table."""
    draw_sweep(penalty_rows(TABLES / "penalty-sweep.csv")).save(TABLES, "penalty-sweep")


def measure_seconds() -> None:
    """The processor time of 100 repetitions with 200 learners: simulate, fit, abilities, every measure."""
    rows = []
    for method in ("knorm", "objective"):
        start = time.process_time()
        run_experiments(DifficultyPlan(repetitions=100, sizes=(200,), epsilons=(1.0,), methods=(method,)))
        rows.append((method, 100, f"{time.process_time() - start:.1f}"))
    write_rows(TABLES / "seconds.csv", ("method", "repetitions", "seconds"), rows)


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
    "coverage": measure_coverage,
    "coverage-real": measure_real_coverage,
    "forecasts": measure_exam_forecasts,
    "audit": measure_audit,
    "penalties": measure_penalties,
    "pictures": draw_pictures,
    "seconds": measure_seconds,
    "figures": draw_figures,
}
