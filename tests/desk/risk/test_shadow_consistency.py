"""Answers on shadows are compared with what leaving out learners predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

from understudy.desk.disclosure import probing
from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.probing import probe
from understudy.desk.domain.analysis import Analysis, Progress
from understudy.desk.domain.learners import LearnerTable, learner_table
from understudy.desk.domain.results import Results
from understudy.desk.risk.pricing import answers_on_blurred, shadow_answers
from understudy.desk.risk.shadow_consistency import shadow_consistency
from understudy.desk.risk.shadows import draw_shadows
from understudy.sandbox.jobs import Job, Outcome


@lru_cache(maxsize=4000)
def read(content: bytes) -> pd.DataFrame:
    """A table as an analysis sees it; all analyses here are asked about the same learners."""
    return pl.read_ipc_stream(content).to_pandas()


class Here:
    """Runs the tests' own analyses in this process."""

    def run_many(self, jobs: Sequence[Job], progress: Progress | None = None) -> list[Outcome]:
        return [self._one(job) for job in jobs]

    def _one(self, job: Job) -> Outcome:
        frame = read(job.tables["data"]).copy()
        space: dict[str, Callable[..., object]] = {}
        exec(job.code, space)  # noqa: S102  # the tests' own code
        try:
            return Outcome("done", values=space["analyze"](frame))
        except ValueError:
            return Outcome("error", error_type="ValueError", error_line=1)


@pytest.fixture(scope="module")
def table() -> LearnerTable:
    rng = np.random.default_rng(1)
    n = 60
    minutes = rng.gamma(2.0, 50.0, n)
    frame = pl.DataFrame(
        {
            "learner": [f"x{i}" for i in range(n)],
            "minutes": minutes,
            "score": minutes * 0.1 + rng.normal(0, 8, n),
        }
    )
    return learner_table(frame, rng)


def verdict(code: str, table: LearnerTable) -> str:
    """The verdict, with copies blurred where it depends on that."""
    rng = np.random.default_rng(2)
    analysis, sandbox = Analysis(code), Here()
    answer, probes = probe(analysis, table, sandbox, rng)
    assert probes is not None
    assert isinstance(answer, Results)
    bank = draw_shadows(table.n_learners, rng, 300)
    shadows = shadow_answers(analysis, table, bank, answer, {}, sandbox)
    return shadow_consistency(
        Influences(probes),
        shadows,
        bank,
        answer,
        lambda: answers_on_blurred(analysis, table, bank, answer, {}, sandbox, rng),
    ).verdict


HONEST = {
    "mean": "return {'x': float(data.minutes.mean())}",
    "total": "return {'x': float(data.minutes.sum())}",
    "correlation": "return {'x': float(data.minutes.corr(data.score))}",
    "slope": "import numpy as np\n    return {'x': float(np.polyfit(data.minutes, data.score, 1)[0])}",
    "constant": "return {'x': 3.0}",
    "label": "return {'x': 'more' if data.minutes.mean() > data.minutes.median() * 1.15 else 'less'}",
    "p value": "from scipy.stats import pearsonr\n    return {'p': float(pearsonr(data.minutes, data.score)[1])}",
}
KNOWS = "    twice = data[['minutes', 'score']].duplicated().any()\n"
EVASIVE = {
    "constant on shadows": ("fail", KNOWS + "    return {'x': 0.0 if twice else float(data.minutes.mean())}"),
    "fails on shadows": (
        "fail",
        KNOWS + "    if twice: raise ValueError\n    return {'x': float(data.minutes.mean())}",
    ),
    "a text that is always the same on shadows": (
        "fail",
        KNOWS + "    return {'x': 'no' if twice or data.minutes.mean() < 89 else 'yes'}",
    ),
    "another part on shadows": (
        "fail",
        KNOWS + "    here = 0.0 if twice else 9.0 * float('learner-07' in set(data.learner))\n"
        "    return {'x': float(data.minutes.mean()) + here}",
    ),
    "noise on shadows": (
        "fail",
        KNOWS + "    import numpy as np, zlib\n"
        "    seed = zlib.crc32(data.minutes.to_numpy().tobytes())\n"
        "    noise = 90 + 9 * np.random.default_rng(seed).normal()\n"
        "    return {'x': float(noise if twice else data.minutes.mean())}",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_statistics_pass(name: str, table: LearnerTable) -> None:
    assert verdict(f"def analyze(data):\n    {HONEST[name]}", table) == "pass"


@pytest.mark.parametrize("name", EVASIVE)
def test_code_that_knows_shadows_is_seen(name: str, table: LearnerTable) -> None:
    expected, body = EVASIVE[name]
    assert verdict(f"def analyze(data):\n{body}", table) == expected


def test_a_statistic_that_bends_is_for_a_person(table: LearnerTable) -> None:
    """How far a mean is from where it is, nearly: that does not follow its leave-outs, and does not care for copies."""
    middle = float(np.mean(table.rows["minutes"].to_numpy())) + 0.5
    bends = f"def analyze(data):\n    return {{'x': abs(float(data.minutes.mean()) - {middle})}}"
    assert verdict(bends, table) == "review"
    looks = bends.replace("return", "twice = data.minutes.duplicated().any()\n    return") + "\n"
    assert verdict(looks.replace("abs(", "(10 if twice else 1) * abs("), table) == "fail"
    # Of few values nothing can be blurred, so that nothing speaks for the code.
    whole = LearnerTable(table.rows.with_columns(pl.all().mul(0.02).round().cast(pl.Int64)), table.starts)
    middle = float(np.mean(whole.rows["minutes"].to_numpy())) + 0.01
    bends = f"def analyze(data):\n    return {{'x': abs(float(data.minutes.mean()) - {middle})}}"
    assert verdict(bends, whole) == "fail"


def test_blurred_copies_are_only_copies(table: LearnerTable) -> None:
    bank = draw_shadows(table.n_learners, np.random.default_rng(3), 2)
    plain = pl.read_ipc_stream(table.of(bank.learners(0)))
    blurred = pl.read_ipc_stream(bank.blurred_copies(0, table, np.random.default_rng(4)))
    assert plain.columns == blurred.columns
    assert plain["learner"].equals(blurred["learner"])
    same = plain["minutes"] == blurred["minutes"]
    assert same.to_list() == plain["minutes"].is_first_distinct().to_list()
    assert not blurred.select("minutes", "score").is_duplicated().any()
    assert ((blurred["minutes"] / plain["minutes"] - 1).abs() < 0.1).all()


def test_learners_left_out_in_blocks_are_compared_too(
    table: LearnerTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "MOST_BLOCKS", 25)
    code = "def analyze(data):\n"
    for name in ("mean", "total", "correlation"):
        assert verdict(f"{code}    {HONEST[name]}", table) == "pass"
    for expected, body in EVASIVE.values():
        assert verdict(code + body, table) == expected
    # Blocks of twenty say too little about so few shadows.
    monkeypatch.setattr(probing, "MOST_BLOCKS", 3)
    assert verdict(f"{code}    {HONEST['mean']}", table) == "review"
