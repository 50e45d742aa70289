"""study(): generators x seeds on the same splits; a folder's finished cells stay, and are never computed twice."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from understudy.core.engine import progress
from understudy.core.engine.cells import FinishedCells
from understudy.core.engine.tasks import run_tasks
from understudy.core.files.writing import check_parent, results_csv, write_text
from understudy.core.pages.notebook import notebook_table
from understudy.errors import UsageError
from understudy.logs.attacks.plugins import plugged_attacks
from understudy.logs.attacks.shadow import N_SHADOWS, ShadowAttack
from understudy.logs.audit import MEMBERSHIP_ATTACKS
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import chosen_generator
from understudy.logs.interactions import Interactions, as_log
from understudy.logs.study_report import summarise, tradeoff, write_report
from understudy.logs.trial import Split, attacker_knowledge, check_size, shadow_attack_on, with_names_found
from understudy.logs.utility import METRICS

Row = dict[str, Any]
# A generator, and where it has the names of actions from.
_Way = tuple[Generator, str]

# Where the names of actions come from: declared (for the game, whatever is declared about the log), found privately,
# or as they are in the log, by a generator that promises nothing about them.
TAKEN_AS_PUBLIC, FOUND, TOLD = "taken as public", "found", "as in the log"

_BEFORE = (
    "method",
    "names",
    "seed",
    "n_rows",
    "n_learners",
    "names_kept",
    *(metric.name for metric in METRICS),
)
_AFTER = (
    "auc_worst",
    "auc_worst_low",
    "auc_worst_high",
    "auc_chance",
    "auc_chance_low",
    "auc_chance_high",
    "auc_transcript",
    "worst_attack",
    "tpr_attack",
    "tpr_at_1pct",
    "tpr_at_1pct_low",
    "tpr_at_1pct_high",
    "tpr_chance",
    "tpr_chance_high",
    "auc_attribute",
    "attribute_advantage",
    "attribute_advantage_low",
    "attribute_advantage_high",
    "attribute_column",
    "auc_attribute_column",
    "attribute_column_advantage",
    "attribute_column_advantage_low",
    "attribute_column_advantage_high",
    "epsilon",
    "delta",
    "fit_seconds",
    "sample_seconds",
)


def columns() -> tuple[str, ...]:
    """The columns of `results.csv`: one `auc_` column per attack, those of others included."""
    attacks = (*MEMBERSHIP_ATTACKS, *plugged_attacks())
    return (*_BEFORE, *(f"auc_{name.replace('-', '_')}" for name in attacks), *_AFTER)


@dataclass(frozen=True)
class StudyOptions:
    """How much a study tries."""

    n_seeds: Annotated[int, "Number of random halves."] = 3
    n_shadows: Annotated[int, "Refits per generator for the shadow attack."] = N_SHADOWS
    found_names: Annotated[
        bool,
        "Try generators with a guarantee a second time, with names of actions that are not public: found at the cost "
        "of the budget, or pooled. Without it names are taken as public.",
    ] = False

    def __post_init__(self) -> None:
        if self.n_seeds < 1 or self.n_shadows < 8:
            raise UsageError(
                f"a study needs one seed and 8 shadows at least; asked for {self.n_seeds} and {self.n_shadows}.",
                hint="3 seeds and 64 shadows are usual.",
                settings=("n_seeds", "n_shadows"),
            )


@dataclass(frozen=True)
class Study:
    """What a study found: internal, since it is computed from real learners."""

    rows: list[Row]
    folder: Path | None = None

    @property
    def summaries(self) -> list[Row]:
        """Means over seeds, a row per generator."""
        return summarise(self.rows)

    def to_json(self) -> dict[str, Any]:
        """The study for machines."""
        return {
            "out": None if self.folder is None else str(self.folder),
            "internal": True,
            "methods": [
                {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
                for row in self.summaries
            ],
        }

    def to_frame(self) -> pl.DataFrame:
        """`results.csv` as a frame: a row per generator and seed."""
        return pl.DataFrame([{name: row.get(name) for name in columns()} for row in self.rows])

    def plot(self) -> Any:
        """Utility against risk, as an altair chart."""
        return tradeoff(self.summaries).chart

    def _repr_html_(self) -> str:
        shown = [
            "method",
            "names",
            "wrmse",
            "action_tv",
            "transition_tv",
            "auc_worst",
            "auc_worst_low",
            "auc_worst_high",
        ]
        frame = pl.DataFrame([{name: row.get(name) for name in shown} for row in self.summaries])
        return notebook_table("Means over seeds. Internal: computed from real learners.", frame)


def study(
    log: Interactions,
    generators: Sequence[Any],
    options: StudyOptions = StudyOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    seeds: int | None = None,
) -> Study:
    """Try every generator on every split; with a folder, write its table and report, and add to what is there.

    A generator is an object or its words. `seeds` is short for the number of splits in `options`.
    """
    options = options if seeds is None else replace(options, n_seeds=seeds)
    out = None if out is None else Path(out)
    check_size(as_log(log))
    # With the epsilon that a release of this log would have, where none is named.
    chosen = [chosen_generator(each, None, "", log) for each in generators]
    given = {generator.label: generator for generator in chosen}
    if not given:
        raise UsageError("a study needs a generator.", hint="for example 'markov'.", settings=("methods",))
    tried: dict[str, _Way] = {}
    for generator in given.values():
        tried |= _ways(generator, log.n_learners, found_too=options.found_names)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="understudy-study-") as scratch:
            return Study(_rows(log, tried, Path(scratch) / "study", options))
    rows = _rows(log, tried, out, options)
    write_text(out / "results.csv", results_csv(rows, columns()))
    with progress.task("Writing the report"):
        write_report(out, rows, log, options.n_shadows, log.origin.name)
    return Study(rows, out)


def _ways(generator: Generator, n_learners: int, *, found_too: bool) -> dict[str, _Way]:
    """How a generator is tried, by what its rows are called. Only a guarantee depends on whether names are public."""
    formal = generator.guarantee(n_learners).formal
    ways = {generator.label: (generator, TAKEN_AS_PUBLIC if formal else TOLD)}
    if formal and found_too and not generator.needs_names:
        ways[f"{generator.label}, names found"] = (generator, FOUND)
    return ways


def _rows(log: Interactions, tried: dict[str, _Way], folder: Path, options: StudyOptions) -> list[Row]:
    """The rows of all cells; those that are missing in the folder are computed."""
    check_parent(folder)
    plan = {
        "n_rows": log.n_rows,
        "n_learners": log.n_learners,
        "n_actions": log.n_actions,
        "n_shadows": options.n_shadows,
    }
    included = (
        log.time if log.has_times else None,
        *(part for column in log.columns for part in (repr(column.declared), column.cells)),
    )
    cells = FinishedCells(
        folder, "study", plan, (log.action, log.outcome, log.offsets, "\n".join(log.actions), *included)
    )
    wanted = [(label, seed) for label in tried for seed in range(options.n_seeds)]
    missing = [(label, seed) for label, seed in wanted if cells.find(_label(label, seed)) is None]
    pending = list(dict.fromkeys(label for label, _ in missing))
    # Every half is a part of this log, whose vocabulary is thus given, or has to be found.
    used = {tried[label][1] == FOUND for label in pending}
    known = {found: attacker_knowledge(with_names_found(log) if found else log.declare()) for found in used}
    with progress.task("Trying generators", len(pending) * options.n_shadows + len(missing)) as step:
        splits = {
            (found, seed): Split(knowledge.population, seed, knowledge=knowledge)
            for found, knowledge in known.items()
            for seed in {seed for _, seed in missing}
        }

        def fill(label: str, shadow: ShadowAttack, seed: int) -> None:
            generator, names = tried[label]
            trial = splits[names == FOUND, seed].try_generator(generator, shadow)
            cells.keep(_label(label, seed), {**trial.row(), "method": label, "names": names})

        # One generator after the other: a study that is stopped loses the shadows of one at most.
        for label in pending:
            generator, names = tried[label]
            shadow = shadow_attack_on(generator, known[names == FOUND], options.n_shadows, step.advance)
            seeds = [seed for other, seed in missing if other == label]
            run_tasks([partial(fill, label, shadow, seed) for seed in seeds], step.advance)
    rows = [cells.find(_label(label, seed)) or {} for label, seed in wanted]
    # What the folder holds from before stays in its table.
    return [*rows, *(row for row in cells.all() if (row["method"], row["seed"]) not in wanted)]


def _label(method: str, seed: int) -> str:
    return f"{method} seed {seed}"
