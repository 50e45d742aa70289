"""Measures the comparison with generators of others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial
from typing import Any

import numpy as np
import typer

from reproductions.head_to_head.claims import measure_claims
from reproductions.head_to_head.environments import ENVIRONMENTS
from reproductions.head_to_head.figures import draw_figures
from reproductions.head_to_head.flat_table import flatten, walk
from reproductions.head_to_head.methods import PEERS, Method
from reproductions.head_to_head.trials import FAST_SECONDS, LONGEST, N_HALVES, as_written, try_method
from reproductions.pages import DATA, rows_of, tables_of, write_rows
from understudy.errors import MissingError, UnderstudyError
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import RARE_PATHS, Classroom
from understudy.logs.trial import Split
from understudy.logs.utility import measure

TABLES = tables_of("head_to_head")
RESULTS = TABLES / "results.csv"
# A long measurement leaves the machine to others.
NICENESS = 19


def _assistments() -> Interactions:
    return read_log(DATA / "assistments2009.csv.gz")


LOGS: dict[str, Callable[[], Interactions]] = {
    "classroom": lambda: Classroom().simulate(np.random.default_rng(1)),
    "assistments": _assistments,
    "rare-paths": lambda: RARE_PATHS.simulate(np.random.default_rng(1)),
}


def _logs() -> Iterator[tuple[str, Interactions]]:
    """The logs that are there, by name."""
    for name, read in LOGS.items():
        try:
            log = read().declare()
        except UnderstudyError as error:
            typer.echo(f"{name}: skipped: {error.message}")
            continue
        yield name, log


def measure_logs() -> None:
    """How large the logs are, and what the walk alone loses: over the real table of steps of the first half."""
    table = TABLES / "logs.csv"
    found = {row["log"]: row for row in rows_of(table)} if table.exists() else {}
    for name, log in _logs():
        real = Split(log, 0).real
        rng = np.random.default_rng(0)
        walked = walk(flatten(real.training), real.training.n_learners, log.actions, LONGEST, rng)
        sizes = {"learners": log.n_learners, "actions": log.n_actions, "rows": log.n_rows}
        lost = {metric: f"{value:.4f}" for metric, value in measure(real, walked).items()}
        found[name] = {"log": name, **{size: str(n) for size, n in sizes.items()}, **lost}
    write_rows(table, list(next(iter(found.values()))), [list(row.values()) for row in found.values()])


def measure_methods(part: str) -> None:
    """The methods of a part on every log that is there: one half, and two more where a fit is fast.

    What was measured by the same program before stays as it is, so a run that was stopped goes on where it ended; of
    a program that changed and makes the same log, only the cost is measured again.
    """
    os.nice(max(0, NICENESS - os.nice(0)))
    for name, log in _logs():
        for method in PEERS[part]:
            for seed in range(N_HALVES):
                row = _cell(name, log, method, seed)
                if not row.get("seconds") or float(row["seconds"]) > FAST_SECONDS:
                    break


def _cell(name: str, log: Interactions, method: Method, seed: int) -> dict[str, Any]:
    """The row of a method on one half: what was measured before, or is now."""
    words = f"{name}: {method.label}, half {seed + 1}"
    key = (name, method.label, str(seed))
    before = next((row for row in _measured() if _key(row) == key), None)
    try:
        made_by = method.fingerprint()
        if before and before.get("made_by") == made_by:
            typer.echo(f"{words}: measured before")
            return before
        typer.echo(words)
        row = try_method(log, method, seed, before)
    except UnderstudyError as error:
        typer.echo(f"  skipped: {error.message}")
        if isinstance(error, MissingError) and before:
            return before
        made_by = "" if isinstance(error, MissingError) else made_by
        row = {"method": method.label, "seed": seed, "problem": error.message}
    # A row that stays since its log came out the same has the mark of the program before.
    same_logs = {made_by, row.get("made_by", made_by)}
    row = {"log": name, "problem": "", **row, "made_by": made_by}
    keep(row, same_logs)
    return row


def keep(row: dict[str, Any], same_logs: Set[str] = frozenset()) -> None:
    """Write a row in the place of the one that was measured before, and of other halves by another program.

    Halves by programs that make the same logs stay until they are looked at.
    """
    current = {row.get("made_by"), *same_logs}
    rows: list[dict[str, Any]] = [old for old in _measured() if not _is_replaced(old, row, current)]
    rows.append({name: as_written(value) for name, value in row.items()})
    place = {method.label: number for number, method in enumerate(sum(PEERS.values(), ()))}
    rows.sort(key=lambda r: (list(LOGS).index(r["log"]), place.get(r["method"], len(place)), int(r["seed"])))
    header = list(dict.fromkeys(name for each in rows for name in each))
    write_rows(RESULTS, header, [[each.get(name, "") for name in header] for each in rows])


def _measured() -> list[dict[str, str]]:
    return rows_of(RESULTS) if RESULTS.exists() else []


def _is_replaced(old: Mapping[str, Any], row: Mapping[str, Any], current: Set[str | None]) -> bool:
    *method, half = _key(old)
    *same, this = _key(row)
    return method == same and (half == this or old.get("made_by") not in current)


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["log"], row["method"], str(row["seed"])


def measure_versions() -> None:
    """The versions of the peers; of those that do not install, the version that was measured before."""
    table = TABLES / "peers.csv"
    found = {row["peer"]: tuple(row.values()) for row in rows_of(table)} if table.exists() else {}
    for environment in ENVIRONMENTS:
        try:
            found[environment.name] = (environment.name, environment.version(), "")
        except UnderstudyError as error:
            typer.echo(f"{environment.name}: skipped: {error.message}")
            found.setdefault(environment.name, (environment.name, "", error.message))
    write_rows(table, ("peer", "version", "problem"), list(found.values()))


PARTS: dict[str, Callable[[], None]] = {
    "versions": measure_versions,
    "logs": measure_logs,
    "claims": measure_claims,
    **{part: partial(measure_methods, part) for part in PEERS},
    "figures": draw_figures,
}
