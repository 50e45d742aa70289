"""Measures the tables and figures of two-stage sharing, stage one.

What is kept of the Moodle cohort are figures of whole synthetic cohorts (AJS, shares of findings, AUC), never a
student's row.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.command import understudy
from reproductions.pages import DATA, ROOT
from reproductions.two_stage.cycles import MEASURES, CyclesPlan, gains_figure, run_cycles
from reproductions.two_stage.tables import DATASETS, DEEP_ROWS, N_SEEDS, TABLES, compared, cycle_gains
from understudy.cohorts.cohort import Cohort, read_cohort
from understudy.cohorts.comparison import CompareOptions, compare
from understudy.cohorts.comparison_report import ajs_figure, findings_figure
from understudy.cohorts.methods import GUARANTEE, CohortMetrics, Deep
from understudy.cohorts.simulate import School
from understudy.core.files.writing import results_csv

N_SHADOWS = 16
N_SCHOOLS = 30


def _cohort(name: str) -> Cohort | None:
    if name != "moodle":
        return School().years(np.random.default_rng(2026))[int(name[-1]) - 1]
    log, grades = DATA / "moodle_activity.csv.gz", DATA / "moodle_grades.csv"
    if not log.exists() or not grades.exists():
        return None
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "cohort.parquet"
        understudy(
            *("cohort", "build", str(log), "--scores", str(grades), "--score", "Overall"),
            *("--schema", str(ROOT / "examples" / "moodle-cohort.toml"), "--term-start", "2018-01-22"),
            *("--time-zone", "Europe/Dublin", "-o", str(out)),
            *("--ledger", str(Path(scratch) / "study.ledger")),
        )
        return read_cohort(out)


def _cohorts() -> Iterator[tuple[str, Cohort]]:
    for name in DATASETS:
        if (cohort := _cohort(name)) is not None:
            yield name, cohort


def measure_compare() -> None:
    """Every method but the deep baseline, on every cohort."""
    for name, cohort in _cohorts():
        # Shadow attacks take most of the time: once on simulated learners, once on real ones.
        n_shadows = N_SHADOWS if name in ("year-1", "moodle") else 0
        found = compare(cohort, CompareOptions(delta=1e-3, n_seeds=N_SEEDS, n_shadows=n_shadows))
        (TABLES / f"compare-{name}.csv").write_text(results_csv(found.rows), encoding="utf-8")


def measure_deep() -> None:
    """The deep baseline by itself, since it takes as long as all others together."""
    for name, cohort in _cohorts():
        (TABLES / f"deep-{name}.csv").write_text(results_csv(_deep_rows(cohort)), encoding="utf-8")


def _deep_rows(cohort: Cohort) -> list[dict[str, Any]]:
    begun = time.perf_counter()
    deep = Deep(3.0, 1e-3, cohort.schema, DEEP_ROWS)
    pretraining = time.perf_counter() - begun
    rows = []
    for seed in range(N_SEEDS):
        begun = time.perf_counter()
        synthetic = deep.sample(cohort, np.random.default_rng([1, 99, seed]))
        rows.append(
            {
                "method": "deep",
                "seed": seed,
                "n_learners": cohort.n_learners,
                "epsilon": 3.0,
                "delta": 1e-3,
                "guarantee": GUARANTEE,
                **CohortMetrics.of(cohort, synthetic).row(),
                "seconds": time.perf_counter() - begun + pretraining,
            }
        )
    return rows


def measure_cycles() -> None:
    """What yearly cycles gain in simulated schools."""
    names = ("school", "year", "arm", "n_real", "n_holding", *MEASURES)
    rows = [{name: row[name] for name in names} for row in run_cycles(CyclesPlan(n_schools=N_SCHOOLS))]
    (TABLES / "cycles.csv").write_text(results_csv(rows), encoding="utf-8")


def measure_seconds() -> None:
    """The offline path end to end, as a custodian runs it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        steps = {
            "simulate": ("simulate", str(folder / "cohort.parquet"), "--shape", "cohort", "--seed", "1"),
            "summarize": (
                *("cohort", "summarize", str(folder / "cohort.parquet"), "--epsilon", "3", "--delta", "1e-3"),
                *("-o", str(folder / "summary.json")),
            ),
            "synthesize": (
                *("cohort", "synthesize", str(folder / "summary.json"), "-o", str(folder / "s.parquet")),
                *("--seed", "1"),
            ),
        }
        rows = []
        for step, arguments in steps.items():
            begun = time.perf_counter()
            understudy(*arguments)
            rows.append({"method": step, "seconds": time.perf_counter() - begun})
    (TABLES / "seconds.csv").write_text(results_csv(rows), encoding="utf-8")


def draw_figures() -> None:
    """The figures, from the tables."""
    for name in ("year-1", "moodle"):
        found = compared(name)
        if found is not None:
            ajs_figure(found).save(TABLES, f"ajs-{name}")
            findings_figure(found).save(TABLES, f"findings-{name}")
    for measure, words in (
        ("ajs", "change of AJS (below 0 is better)"),
        ("precision", "change of precision (above 0 is better)"),
    ):
        gains_figure(cycle_gains(), measure, words).save(TABLES, f"gain-{measure}")


PARTS = {
    "seconds": measure_seconds,
    "compare": measure_compare,
    "deep": measure_deep,
    "cycles": measure_cycles,
    "figures": draw_figures,
}
