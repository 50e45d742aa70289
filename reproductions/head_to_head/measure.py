"""Measures the comparison with generators of others."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import typer

from reproductions.head_to_head.claims import measure_claims
from reproductions.head_to_head.environments import ENVIRONMENTS
from reproductions.head_to_head.methods import PEERS
from reproductions.head_to_head.trials import try_method
from reproductions.pages import DATA, rows_of, tables_of, write_rows
from understudy.errors import UnderstudyError
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulate import RARE_PATHS, Classroom

TABLES = tables_of("head_to_head")
RESULTS = TABLES / "results.csv"
# A long measurement leaves the machine to others.
NICENESS = 15


def _assistments() -> Interactions:
    return read_log(DATA / "assistments2009.csv.gz")


LOGS: dict[str, Callable[[], Interactions]] = {
    "classroom": lambda: Classroom().simulate(np.random.default_rng(1)),
    "assistments": _assistments,
    "rare-paths": lambda: RARE_PATHS.simulate(np.random.default_rng(1)),
}


def measure_methods(part: str) -> None:
    """The methods of a part on every log; a method that cannot be run has a row that says why."""
    os.nice(max(0, NICENESS - os.nice(0)))
    for name, read in LOGS.items():
        log = read().declare()
        for method in PEERS[part]:
            for seed in range(method.n_seeds):
                typer.echo(f"{name}: {method.label}, half {seed + 1} of {method.n_seeds}")
                try:
                    row = try_method(log, method, seed)
                except UnderstudyError as error:
                    typer.echo(f"  skipped: {error.message}")
                    row = {"method": method.label, "seed": seed, "problem": error.message}
                keep({"log": name, "problem": "", **row})


def keep(row: dict[str, Any]) -> None:
    """Write a row in the place of the one that was measured before."""
    key = (row["log"], row["method"], str(row["seed"]))
    rows: list[dict[str, Any]] = rows_of(RESULTS) if RESULTS.exists() else []
    rows = [old for old in rows if (old["log"], old["method"], old["seed"]) != key]
    rows.append({name: f"{value:.4f}" if isinstance(value, float) else value for name, value in row.items()})
    place = {method.label: number for number, method in enumerate(sum(PEERS.values(), ()))}
    rows.sort(key=lambda r: (list(LOGS).index(r["log"]), place.get(r["method"], len(place)), int(r["seed"])))
    header = list(dict.fromkeys(name for written in rows for name in written))
    write_rows(RESULTS, header, [[written.get(name, "") for name in header] for written in rows])


def measure_versions() -> None:
    """The versions of the peers, or why they are not there."""
    rows = []
    for environment in ENVIRONMENTS:
        try:
            rows.append((environment.name, environment.version(), ""))
        except UnderstudyError as error:
            rows.append((environment.name, "", error.message))
    write_rows(TABLES / "peers.csv", ("peer", "version", "problem"), rows)


PARTS: dict[str, Callable[[], None]] = {
    "versions": measure_versions,
    "claims": measure_claims,
    **{part: partial(measure_methods, part) for part in PEERS},
}
