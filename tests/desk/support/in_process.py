"""Runs analyses as the sandbox does, but in this process: for tests of what is done with their answers.

Only code that these tests wrote. It goes through the sandbox's own reading and writing of jobs and results.
"""

from __future__ import annotations

from functools import lru_cache
from unittest import mock

import numpy as np
import polars as pl

from understudy.cohorts.simulate import School
from understudy.desk.disclosure.examination import Examination, examine
from understudy.desk.disclosure.probing import probe
from understudy.desk.disclosure.replacement import plan_replacements
from understudy.desk.domain.analysis import Analysis, Failure
from understudy.desk.domain.learners import LearnerTable, learner_table
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.sandbox import inside
from understudy.sandbox.jobs import packed, sealed
from understudy.sandbox.outcome import read_result

MOST = 1 << 26

# Tests ask about the same learners over and over, and to read a table takes longer than most analyses of it.
_read = lru_cache(maxsize=2000)(inside.frame_from)


class InProcess:
    """Stands in for the sandbox."""

    @mock.patch.object(inside, "frame_from", lambda content: _read(content).copy())
    def run_many(self, jobs, progress=None):
        outcomes = []
        for job in jobs:
            try:
                content = inside.run_job(sealed(packed(job)), MOST)
            except Exception as error:
                content = inside.packed(inside.described(error), [], MOST)
            outcomes.append(read_result(content, job.code.count("\n") + 1))
            if progress is not None:
                progress(len(outcomes), len(jobs))
        return outcomes

    @staticmethod
    def frame(content):
        """A table as an analysis sees it."""
        return inside.frame_from(content)


def school_frame(seed: int, n_learners: int = 120) -> pl.DataFrame:
    """A row per learner of a simulated school: minutes per window, a score, and the exam in three bins."""
    rng = np.random.default_rng(seed)
    frame = School(n_learners).simulate(0, rng).to_polars()
    minutes = {
        window: frame.select(pl.sum_horizontal(pl.selectors.starts_with(window))).to_series().round(2)
        for window in ("morning", "afternoon", "evening")
    }
    weeks = [frame[f"evening_{week:02}"].alias(f"week_{week}") for week in range(1, 7)]
    code = frame["achievement"].replace_strict({"low": 0, "average": 1, "high": 2}).to_numpy()
    score = np.round(45 + 10 * code + rng.normal(0, 8, n_learners), 1)
    return pl.DataFrame(
        {"learner": frame["learner"], "achievement": frame["achievement"], **minutes, "score": score}
    ).with_columns(*weeks, passed=pl.Series(score >= 50).cast(pl.Int64))


def log_frame(seed: int, n_learners: int = 60) -> pl.DataFrame:
    """Many rows per learner: who answered which task, in which week, rightly or not, in how many seconds."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(10, 40, n_learners)
    learner = np.repeat(np.arange(n_learners), rows)
    ability = rng.normal(size=n_learners)[learner]
    return pl.DataFrame(
        {
            "learner": [f"s{one}" for one in learner],
            "room": np.where(learner % 3 == 0, "a", "b"),
            "week": rng.integers(1, 5, len(learner)),
            "correct": (rng.random(len(learner)) < 1 / (1 + np.exp(-ability))).astype(int),
            "seconds": np.round(rng.lognormal(3 - 0.2 * ability, 0.6), 2),
        }
    )


def table_of(frame: pl.DataFrame, seed: int = 5) -> LearnerTable:
    return learner_table(frame, np.random.default_rng(seed))


def analysis(body: str) -> Analysis:
    """`analyze(data)` with this body, after the usual imports."""
    head = "import numpy as np\nimport pandas as pd\n\n\ndef analyze(data):\n"
    return Analysis(head + "".join(f"    {line}\n" for line in body.strip("\n").splitlines()))


def probed(body: str, real: LearnerTable):
    """The answer on all learners and the probes."""
    answer, probes = probe(analysis(body), real, InProcess(), np.random.default_rng(0))
    assert probes is not None, answer
    return answer, probes


def judged(body: str, real: LearnerTable, synthetic: LearnerTable, policy: Policy) -> Examination | Failure:
    """The examination as the desk does it, with learners replaced by others, or how the run on all of them failed."""
    code = analysis(body)
    plan = plan_replacements(code.code, real, synthetic, policy, np.random.default_rng(1))
    answer, probes = probe(code, real, InProcess(), np.random.default_rng(0), plan=plan)
    if isinstance(answer, Failure):
        return answer
    assert probes is not None
    trial = code.answer(InProcess(), synthetic.whole())
    assert isinstance(trial, Results), "a request is run on the real data after its trial"
    texts = synthetic.texts
    return examine(answer, probes, trial, code.code, policy, n_learners=real.n_learners, declared_texts=texts)


def examined(body: str, real: LearnerTable, synthetic: LearnerTable, policy: Policy | None = None, **more):
    """The examination of an analysis with this body."""
    answer, probes = probed(body, real)
    trial = analysis(body).answer(InProcess(), synthetic.whole())
    return examine(
        answer,
        probes,
        trial,
        analysis(body).code,
        policy or Policy(),
        n_learners=real.n_learners,
        **more,
    )
