"""Speed against what a user would use instead, in one run: `make benchmarks`.

Uses ASSISTments when ../shared/data has it, else a simulated log of the same size.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from understudy.logs.attacks.subsequence import as_strings, common_lengths
from understudy.logs.interactions import Interactions
from understudy.logs.models.markov import AliasTables, TransitionCounts, sample_walks
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.reading import read_log
from understudy.logs.simulate import Classroom

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "assistments2009.csv.gz"


def best_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The fastest of a few runs: what the code needs when nothing else disturbs it."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def load() -> tuple[str, Interactions]:
    if DATA.exists():
        return "ASSISTments 2009", read_log(DATA)
    shape = Classroom(
        n_learners=4138, n_actions=102, median_length=20, length_spread=1.5, shortest=1, longest=1000
    )
    return "a simulated log", shape.simulate(np.random.default_rng(1))


def solver(log: Interactions) -> None:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    rows = np.arange(log.n_rows)
    ones = np.ones(log.n_rows)
    design = hstack(
        [
            csr_matrix((ones, (rows, log.learner)), shape=(log.n_rows, log.n_learners)),
            csr_matrix((ones, (rows, log.action)), shape=(log.n_rows, log.n_actions)),
        ]
    ).tocsr()
    fit_rasch(log)  # compiled
    ours = best_seconds(lambda: fit_rasch(log))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its default stops before it has converged
        theirs = best_seconds(lambda: LogisticRegression().fit(design, log.outcome), 1)
    print(
        f"Rasch fit: {ours * 1e3:.0f} ms; scikit-learn's default {theirs * 1e3:.0f} ms: {theirs / ours:.0f} times"
    )


def matcher(log: Interactions) -> None:
    import pylcs

    some = log.select(np.argsort(-log.lengths)[100:300])
    texts = as_strings(some.action, some.offsets)
    ours = best_seconds(lambda: common_lengths(texts, texts))
    exact = common_lengths(texts, texts)
    began = time.perf_counter()
    theirs_lengths = [[pylcs.lcs_sequence_length(a, b) for b in texts] for a in texts[:10]]
    theirs = (time.perf_counter() - began) * len(texts) / 10
    assert (np.array(theirs_lengths) == exact[:10]).all(), "the matchers disagree"
    cells = float(some.n_rows) ** 2 / ours
    print(
        f"Subsequence matching: {ours * 1e3:.0f} ms for {len(texts)} x {len(texts)} sequences "
        f"({cells / 1e9:.1f} billion cells a second); pylcs {theirs:.1f} s, equal lengths: {theirs / ours:.0f} times"
    )


def sampler(log: Interactions) -> None:
    counts = TransitionCounts.of(log)
    rasch = fit_rasch(log)
    tables = AliasTables.of(counts)
    rng = np.random.default_rng(0)
    ability = rng.normal(size=300_000)
    sample_walks(tables, -rasch.difficulty, ability[:10], counts.longest, rng)
    began = time.perf_counter()
    action, _, _ = sample_walks(tables, -rasch.difficulty, ability, counts.longest, rng)
    seconds = time.perf_counter() - began
    rate = len(action) / seconds
    # The published figure: 1.2 million rows in 3 seconds.
    print(
        f"Markov sampler: {rate / 1e6:.0f} million rows a second on one core, outcomes included "
        f"({len(action) / 1e6:.0f} million rows of {log.n_actions} actions): {rate / 0.4e6:.0f} times the seed's"
    )


def exam_fits() -> None:
    """Difficulties of a complete exam without privacy, against what people use for that."""
    from girth import rasch_mml
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    from understudy.exams.estimators.joint import fit_joint
    from understudy.exams.estimators.marginal import fit_marginal
    from understudy.exams.simulate import Exam

    sitting = Exam(5000, 50).simulate(np.random.default_rng(1))
    correct = sitting.responses.correct
    fit_marginal(correct, sd=None)
    ours = best_seconds(lambda: fit_marginal(correct, sd=None))
    by_item = np.ascontiguousarray(correct.T)
    rasch_mml(by_item[:, :100])
    theirs = best_seconds(lambda: rasch_mml(by_item), 1)
    print(
        f"Marginal fit, 5,000 x 50: {ours * 1e3:.0f} ms; girth {theirs * 1e3:.0f} ms: {theirs / ours:.0f} times"
    )

    n_learners, n_items = 1000, 20
    few = Exam(n_learners, n_items).simulate(np.random.default_rng(2)).responses.correct
    rows = np.arange(few.size)
    ones = np.ones(few.size)
    design = hstack(
        [
            csr_matrix((ones, (rows, rows // n_items)), shape=(few.size, n_learners)),
            csr_matrix((-ones, (rows, rows % n_items)), shape=(few.size, n_items)),
        ]
    ).tocsr()
    model = LogisticRegression(C=100.0, fit_intercept=False, tol=1e-6, max_iter=5000)
    theirs = best_seconds(lambda: model.fit(design, few.ravel()), 1)
    scores = few.sum(axis=1), few.sum(axis=0)
    fit_joint(*scores)
    ours = best_seconds(lambda: fit_joint(*scores))
    assert np.allclose(fit_joint(*scores).difficulty, model.coef_[0][n_learners:], atol=1e-2), (
        "the fits disagree"
    )
    print(
        f"Joint fit, 1,000 x 20, lambda 0.01: {ours * 1e3:.1f} ms; scikit-learn {theirs * 1e3:.0f} ms, "
        f"same difficulties: {theirs / ours:.0f} times"
    )


def large_exam() -> None:
    """A million learners from Parquet to private difficulties, as the command does it."""
    import subprocess
    import sys
    import tempfile

    import polars as pl

    from understudy.exams.simulate import Exam

    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "exam.parquet"
        correct = Exam(1_000_000, 100).simulate(np.random.default_rng(1)).responses.correct
        learners = pl.select(pl.format("simulated-{}", pl.int_range(len(correct)))).to_series()
        items = {f"item {i + 1}": correct[:, i] for i in range(100)}
        pl.DataFrame({"learner": learners, **items}).write_parquet(sheet)
        code = (
            "import sys; from understudy.cli import main\n"
            "try: main()\n"
            "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
        )
        began = time.perf_counter()
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                code,
                "difficulties",
                sheet,
                "--epsilon",
                "1",
                "-o",
                Path(folder) / "d.json",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - began
        gigabytes = int(done.stderr.split()[-1]) / 1e6
    print(f"1,000,000 x 100 from Parquet to private difficulties: {seconds:.1f} s, {gigabytes:.1f} GB")


if __name__ == "__main__":
    name, the_log = load()
    print(f"On {name}: {the_log.n_rows} rows, {the_log.n_learners} learners, {the_log.n_actions} actions.")
    solver(the_log)
    matcher(the_log)
    sampler(the_log)
    exam_fits()
    large_exam()
