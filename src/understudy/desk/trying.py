"""What a researcher can see at home: the trial as the desk will make it, and the checks on the synthetic table.

No account, no desk and no real data: everything here is a function of the code and the synthetic table.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.desk.answering import analysis_of, declared_texts
from understudy.desk.disclosure.examination import Examination, examine
from understudy.desk.disclosure.probing import probe
from understudy.desk.learners import LEARNER, LearnerTable, learner_table, read_table
from understudy.desk.policies import Policy
from understudy.desk.results import Results
from understudy.desk.running import Answer, Progress, RunsJobs


@dataclass(frozen=True)
class Tried:
    """What the code gave on the synthetic table, and what the checks would say if that table were the real one."""

    answer: Answer
    examination: Examination | None


def synthetic_table(path: Path, learner: str = LEARNER) -> LearnerTable:
    """The synthetic table of a file."""
    return learner_table(read_table(path, path.name), np.random.default_rng(0), learner=learner)


def try_out(
    code: str, table: LearnerTable, policy: Policy, sandbox: RunsJobs, progress: Progress | None = None
) -> Tried:
    """Run the code as the desk's trial does, and without each synthetic learner, for the checks."""
    answer, probes = probe(analysis_of(code), table, sandbox, np.random.default_rng(0), progress)
    if not isinstance(answer, Results) or probes is None:
        return Tried(answer, None)
    found = examine(
        answer,
        probes,
        answer,
        code,
        policy,
        n_learners=table.n_learners,
        declared_texts=declared_texts(table),
    )
    return Tried(answer, found)
