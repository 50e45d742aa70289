"""What was measured of two-stage sharing, read from its tables."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.pages import tables_of
from reproductions.two_stage.cycles import Gain, gains
from understudy.cohorts.comparison import CompareOptions, Comparison
from understudy.core.files.writing import read_results

TABLES = tables_of("two_stage")

# Five seeds could not distinguish the pool from the deep baseline on Moodle.
N_SEEDS = 20
# The deep baseline's public rows: our default; the paper has 100,000.
DEEP_ROWS = 20_000
# Schools of the goals' table: other learners and other noise each.
SIMULATED = ("year-1", "year-2", "year-3")
DATASETS = {
    "year-1": "simulated, year 1",
    "year-2": "simulated, year 2",
    "year-3": "simulated, year 3",
    "moodle": "Moodle course",
}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a measured table, with numbers as numbers."""
    words = ("method", "guarantee", "worst_attack", "arm", "measure", "control_worst_attack", "data")
    return read_results(path.read_text(encoding="utf-8"), words)


@lru_cache
def compared(name: str) -> Comparison | None:
    """The comparison of methods on a cohort, with the deep baseline; None if it was not measured."""
    path = TABLES / f"compare-{name}.csv"
    if not path.exists():
        return None
    rows = read_rows(path)
    deep = TABLES / f"deep-{name}.csv"
    if deep.exists():
        rows[4 * N_SEEDS : 4 * N_SEEDS] = read_rows(deep)
    return Comparison(
        CompareOptions(delta=1e-3, n_seeds=N_SEEDS), tuple(rows), int(rows[0]["n_learners"]), name != "moodle"
    )


@lru_cache
def cycle_rows() -> tuple[dict[str, Any], ...]:
    """A row for each school, year and arm of the cycles."""
    return tuple(read_rows(TABLES / "cycles.csv"))


@lru_cache
def cycle_gains() -> tuple[Gain, ...]:
    """What cycles gain over one-shot."""
    return tuple(gains(cycle_rows(), np.random.default_rng(0)))
