"""Measures the prices of 25 analyses, and draws Figures 5 to 8. All learners are simulated."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from reproductions.validation_desk.study import (
    StudyPlan,
    rows_of,
    run_study,
    year_of,
)
from reproductions.validation_desk.tables import FIRST, TABLES, every, measured, stage_one_mu
from understudy.core.files.writing import results_csv
from understudy.desk.researcher.examples import read_examples
from understudy.desk.web.price_figures import advantage_by, advantage_by_request, mu_by_request, pairs
from understudy.sandbox import Sandbox

# What was measured is kept there, so that a measurement that was interrupted goes on.
KEPT = Path(tempfile.gettempdir()) / "understudy-desk-study"
PLAN = StudyPlan()


def measure_requests() -> None:
    """Run and price all analyses (half an hour; needs the sandbox)."""
    with Sandbox(workers=1) as sandbox:
        found = run_study(PLAN, read_examples(), sandbox, KEPT, typer.echo)
    mu = year_of(PLAN, 1).stage_one.mu
    rows = [{**row, "stage_one_mu": mu} for row in rows_of(found)]
    (TABLES / "requests.csv").write_text(results_csv(rows), encoding="utf-8")


def draw_figures() -> None:
    """The figures, from the table."""
    by_year = {f"simulated year {year}": requests for year, requests in measured().items()}
    mu_by_request(by_year, stage_one_mu()).save(TABLES, "figure-5")
    advantage_by_request(by_year).save(TABLES, "figure-6")
    advantage_by("researcher", every(FIRST)).save(TABLES, "figure-7-first")
    advantage_by("researcher", every()).save(TABLES, "figure-7")
    advantage_by("kind", every()).save(TABLES, "figure-7-kinds")
    pairs(every()).save(TABLES, "figure-8")


PARTS = {"requests": measure_requests, "figures": draw_figures}
