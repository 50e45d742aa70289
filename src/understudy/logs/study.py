"""A study: methods x seeds on the same splits; finished cells are never computed twice."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import understudy
from understudy.core.engine.tasks import run_tasks
from understudy.core.files.writing import check_parent, write_json, write_text
from understudy.errors import DataError, UsageError
from understudy.logs.attacks.shadow import N_SHADOWS, ShadowAttack
from understudy.logs.audit import MEMBERSHIP_ATTACKS
from understudy.logs.generators.generator import make_method
from understudy.logs.interactions import Interactions
from understudy.logs.study_report import write_report
from understudy.logs.trial import Stage, everybody, rehearsal
from understudy.logs.utility import METRICS

Row = dict[str, Any]
SMALLEST = 8

COLUMNS = (
    "method",
    "seed",
    "n_rows",
    "n_learners",
    *(metric.name for metric in METRICS),
    *(f"auc_{name.replace('-', '_')}" for name in MEMBERSHIP_ATTACKS),
    "auc_worst",
    "auc_worst_low",
    "auc_worst_high",
    "worst_attack",
    "tpr_at_1pct",
    "auc_attribute",
    "attribute_advantage",
    "attribute_advantage_low",
    "attribute_advantage_high",
    "epsilon",
    "delta",
    "fit_seconds",
    "sample_seconds",
)


@dataclass(frozen=True)
class Plan:
    """What a study tries: every method on every seed, with a control beside each."""

    methods: tuple[str, ...]
    n_seeds: int = 3
    n_shadows: int = N_SHADOWS
    control: bool = True

    def __post_init__(self) -> None:
        if not self.methods or self.n_seeds < 1 or self.n_shadows < 8:
            raise UsageError(
                "a study needs a method, a seed and 8 shadows at least; "
                f"asked for {len(self.methods)} methods, {self.n_seeds} seeds and {self.n_shadows} shadows.",
                hint="for example: understudy study log.csv -m drop:0.5 -m markov --seeds 3 -o study",
            )
        for method in self.methods:
            make_method(method)


def run_study(
    log: Interactions,
    plan: Plan,
    folder: Path,
    *,
    source: str = "",
    progress: Callable[[int], Callable[[], None]] | None = None,
) -> list[Row]:
    """Run what is missing of a study, write its results and report, and return its rows.

    `progress` is told the number of steps and returns what to call after each.
    """
    check_size(log)
    # Every half is a part of this log, whose vocabulary is thus given: public for the game.
    log = log.declare()
    _open_folder(log, plan, folder)
    missing = [
        (method, seed)
        for method in plan.methods
        for seed in range(plan.n_seeds)
        if not _cell(folder, method, seed).exists()
    ]
    pending = [method for method in plan.methods if any(method == m for m, _ in missing)]
    tick = progress(len(pending) * plan.n_shadows + len(missing)) if progress else lambda: None

    knowledge = everybody(log)
    rehearsals = {method: rehearsal(knowledge, method, plan.n_shadows, tick) for method in pending}
    stages = {seed: Stage(log, seed, knowledge=knowledge) for seed in {seed for _, seed in missing}}
    run_tasks(
        [partial(_fill, folder, stages[seed], method, rehearsals[method], plan) for method, seed in missing],
        tick,
    )
    rows = [
        row
        for method in plan.methods
        for seed in range(plan.n_seeds)
        for row in json.loads(_cell(folder, method, seed).read_text(encoding="utf-8"))
        if plan.control or not row["method"].startswith("control:")
    ]
    write_text(folder / "results.csv", table_of(rows))
    write_report(folder, rows, log, plan.n_shadows, source)
    return rows


def check_size(log: Interactions) -> None:
    """Refuse logs on which half against half means nothing."""
    if log.n_learners < SMALLEST or log.n_actions < 2:
        raise DataError(
            f"learners are split in halves, which needs {SMALLEST} learners and 2 actions at least"
            f"; found {log.n_learners} and {log.n_actions}.",
            hint="use a larger log; `understudy inspect` shows what is in this one.",
        )


def table_of(rows: Sequence[Row]) -> str:
    """Rows as CSV text with the columns in their order; what was not measured is left empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _plain(row[name]) if name in row else "" for name in COLUMNS})
    return text.getvalue()


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else value


def _open_folder(log: Interactions, plan: Plan, folder: Path) -> None:
    """Make the folder, or check that it holds the same study."""
    check_parent(folder)
    identity = {
        "internal": "computed from real learners; no guarantee covers these files",
        "version": understudy.__version__,
        "n_rows": log.n_rows,
        "n_learners": log.n_learners,
        "n_actions": log.n_actions,
        "n_shadows": plan.n_shadows,
        "control": plan.control,
    }
    path = folder / "study.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"key": secrets.token_hex(16)}
    identity["key"] = before["key"]
    identity["data"] = _fingerprint(log, before["key"])
    if path.exists() and before != identity:
        raise UsageError(
            f"{folder} holds another study (other data, options or version).",
            hint="choose another folder with -o, or remove this one.",
        )
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "cells").mkdir(exist_ok=True)
    write_json(path, identity)


def _fingerprint(log: Interactions, key: str) -> str:
    """Tells one log from another inside the study's folder; the random key makes it useless elsewhere."""
    digest = hashlib.blake2b(key=key.encode(), digest_size=16)
    for column in (log.action, log.outcome, log.offsets):
        digest.update(np.ascontiguousarray(column).tobytes())
    digest.update("\n".join(log.actions).encode())
    return digest.hexdigest()


def _cell(folder: Path, method: str, seed: int) -> Path:
    return folder / "cells" / f"{method.replace(':', '_').replace('=', '-')}-seed{seed}.json"


def _fill(folder: Path, stage: Stage, method: str, shadow: ShadowAttack, plan: Plan) -> None:
    trial = stage.try_method(method, shadow, n_shadows=plan.n_shadows, control=plan.control)
    rows = [row for row in (trial.row(), trial.control_row()) if row is not None]
    # Infinite epsilons are written as Python's json does; these files are read only here.
    write_text(_cell(folder, method, stage.seed), json.dumps(rows))
