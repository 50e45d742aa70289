"""Measures what attacks find with times and columns and without, and how close synthetic times and columns are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reproductions.pages import tables_of, write_rows
from reproductions.times_and_columns.logs import CLASSROOM, classroom, plain, timed_logs
from understudy.core.engine import progress
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.registry import parse_generator
from understudy.logs.inspect import inspect
from understudy.logs.interactions import Interactions
from understudy.logs.study import StudyOptions, study
from understudy.logs.utility import METRICS, Real, measure

TABLES = tables_of("times_and_columns")
METHODS = ("drop:0.5", "markov", "markov-dp:epsilon=8", "runs-dp:epsilon=8")
PRIVATE = METHODS[2:]
WITH, WITHOUT = "with", "without"
# Of so few learners a single half tells little: the interval of an AUC is a tenth wide.
OPTIONS = StudyOptions(n_seeds=10, n_shadows=24)
# Refits of 4,000 learners are slow.
LARGE = StudyOptions(n_seeds=2, n_shadows=16)
N_DRAWS = 3

ATTACKED = (
    *("auc_timing", "auc_timing_likelihood", "auc_columns", "auc_columns_likelihood", "auc_joint_linear"),
    *("auc_shadow", "auc_stacked", "auc_worst", "auc_worst_low", "auc_worst_high", "auc_chance_high"),
    *("auc_transcript", "tpr_at_1pct", "tpr_chance_high", "auc_attribute", "attribute_advantage"),
)
MEASURED = tuple(metric.name for metric in METRICS if metric.about in ("rows", "times", "columns"))


def measure_attacks() -> None:
    """Every attack on the three logs, with times and columns and without."""
    rows = []
    for name, log in timed_logs().items():
        options = LARGE if name == CLASSROOM else OPTIONS
        for told, some in ((WITH, log), (WITHOUT, plain(log))):
            rows += [(name, told, *row) for row in attacked(some, options)]
            # What is measured so far is kept: the last log takes longest.
            write_rows(TABLES / "attacks.csv", ("log", "told", "method", "strongest", *ATTACKED), rows)


def attacked(log: Interactions, options: StudyOptions) -> list[tuple[str, ...]]:
    """A row for each method: the strongest attacks, and the figures of those that look at times and columns."""
    return [
        (summary["method"], " and ".join(summary["worst_attacks"]), *_numbers(summary, ATTACKED))
        for summary in study(log, METHODS, options).summaries
    ]


def measure_utility() -> None:
    """How close synthetic logs of all 4,000 learners are, with times and columns and without."""
    write_rows(
        TABLES / "utility.csv", ("method", "told", "draw", *MEASURED), list(drawn(classroom(4000), N_DRAWS))
    )


def drawn(log: Interactions, n_draws: int) -> Iterable[tuple[object, ...]]:
    """The metrics of each synthetic log."""
    with progress.task("Synthetic logs", len(PRIVATE) * 2 * n_draws) as task:
        for method in PRIVATE:
            for told, some in ((WITH, log), (WITHOUT, plain(log))):
                for draw in range(n_draws):
                    rng = np.random.default_rng((2026, draw))
                    fitted = parse_generator(method).fit(some, rng, seeded_noise(rng))
                    found = measure(Real(some, some), fitted.sample(None, rng))
                    yield (method, told, draw, *_numbers(found, MEASURED))
                    task.advance()


def measure_uniqueness() -> None:
    """How many known points single a learner out, by what is known about each."""
    rows = [
        (name, share.points, share.k, f"{share.share:.4f}", f"{share.low:.4f}", f"{share.high:.4f}")
        for name, log in timed_logs().items()
        for share in inspect(log).uniqueness
    ]
    write_rows(TABLES / "uniqueness.csv", ("log", "points", "k", "share", "low", "high"), rows)


def _numbers(found: dict[str, Any], names: Iterable[str]) -> list[str]:
    return [f"{found[name]:.4f}" if found.get(name) is not None else "" for name in names]


PARTS = {"uniqueness": measure_uniqueness, "utility": measure_utility, "attacks": measure_attacks}
