"""What a researcher can see at home: the trial as the desk will make it, and the checks on the synthetic table.

No account, no desk and no real data: everything here is a function of the code and the synthetic table.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np

from understudy.desk.disclosure.examination import Examination, examine
from understudy.desk.disclosure.probing import MOST_BLOCKS, N_TRIPLES, probe
from understudy.desk.domain.analysis import Answer, Failure, Progress, RunsJobs, of_a_trial
from understudy.desk.domain.learners import LEARNER, LearnerTable, learner_table, read_table
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.desk.worker.answering import analysis_of, declared_texts

# Checks that take longer than this are left to the desk.
MOST_SECONDS = 300.0
# A sandbox runs so many at once.
_AT_ONCE = 2


@dataclass(frozen=True)
class Tried:
    """What the code gave on the synthetic table, and what the checks would say if that table were the real one."""

    answer: Answer
    seconds: float
    """Of one run."""
    n_runs: int
    """Of a desk, for the checks and the price."""
    examination: Examination | None = None
    """None without an answer, and if the runs for it would take too long here."""

    @property
    def desk_minutes(self) -> float:
        """How long a desk will need, about."""
        return self.n_runs * self.seconds / _AT_ONCE / 60


def synthetic_table(path: Path, learner: str = LEARNER) -> LearnerTable:
    """The synthetic table of a file."""
    return learner_table(read_table(path, path.name), np.random.default_rng(0), learner=learner)


def try_out(
    code: str, table: LearnerTable, policy: Policy, sandbox: RunsJobs, progress: Progress | None = None
) -> Tried:
    """Run the code as the desk's trial does; if that was quick, without each synthetic learner, for the checks."""
    n_checks = 1 + min(table.n_learners, MOST_BLOCKS) + 4 * N_TRIPLES
    begun = monotonic()
    first = of_a_trial(analysis_of(code).answer(sandbox, table.whole()))
    tried = Tried(first, monotonic() - begun, n_checks + policy.n_shadows)
    if isinstance(first, Failure) or n_checks * tried.seconds / _AT_ONCE > MOST_SECONDS:
        return tried
    answer, probes = probe(analysis_of(code), table, sandbox, np.random.default_rng(0), progress)
    if not isinstance(answer, Results) or probes is None:
        return Tried(answer, tried.seconds, tried.n_runs)
    found = examine(
        answer,
        probes,
        answer,
        code,
        policy,
        n_learners=table.n_learners,
        declared_texts=declared_texts(table),
    )
    return Tried(answer, tried.seconds, tried.n_runs, found)
