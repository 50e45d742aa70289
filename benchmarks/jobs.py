"""The jobs: what people wait for, at the sizes that we promise, and fits beside those of peers.

A job takes the unit's seconds and an empty folder, and yields its figures by name (`ratios.py` says what they are).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measuring import best_seconds, run_command
from understudy.core.attacks.subsequences import Sequences, largest_common
from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.estimators.joint import fit_joint
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.simulate import Exam
from understudy.logs.interactions import Interactions
from understudy.logs.models.markov import AliasTables, TransitionCounts, sample_walks
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.simulated.classroom import Classroom

Figures = Iterator[tuple[str, float]]


def million_rows(unit: float, folder: Path) -> Figures:
    """A log of a million rows: inspect, and a synthetic one."""
    log, out = folder / "log.parquet", folder / "out.parquet"
    run_command("simulate", log, "--learners", 30_000, repeats=1)
    yield "inspect a million rows", run_command("inspect", log).seconds / unit
    made = run_command("synthesize", log, "-o", out, "-m", "markov", "--seed", 1, new=[out])
    yield "markov, a million rows", made.seconds / unit


def million_learners(unit: float, folder: Path) -> Figures:
    """From Parquet to private difficulties of 100 items, with names of three kinds."""
    rng = np.random.default_rng(1)
    answers = {f"item {i}": rng.integers(0, 2, 1_000_000).astype(np.int8) for i in range(100)}
    places = pl.int_range(1_000_000, eager=True)
    kinds = {
        "ordinary names": pl.select(pl.format("u{}", places)).to_series(),
        "names like simulated ones": pl.select(pl.format("simulated-{}", places)).to_series(),
        "numbers": places + 1,
    }
    for kind, learners in kinds.items():
        sheet = pl.DataFrame({"learner": learners, **answers})
        spent = {}
        for n_learners in (100_000, 1_000_000):
            exam, out, ledger = (folder / name for name in ("exam.parquet", "out.json", "exam.ledger"))
            sheet.head(n_learners).write_parquet(exam)
            spent[n_learners] = run_command(
                *("difficulties", exam, "--epsilon", 1, "--ledger", ledger, "-o", out), new=[out, ledger]
            )
        million = spent[1_000_000]
        name = f"private difficulties of a million learners, {kind}"
        yield name, million.seconds / unit
        yield f"{name}, GB", million.gigabytes
        yield f"{name}, against a tenth of them", million.seconds / spent[100_000].seconds


def sparse_exam() -> np.ndarray:
    """542 learners and 1,774 items, popular and rare: some 67,000 answers."""
    rng = np.random.default_rng(5)
    popular, busy = rng.lognormal(0.0, 1.2, 1774), rng.lognormal(0.0, 0.8, 542)
    # The rate at which a learner comes by an item, scaled such that 7 % of all pairs meet.
    answered = rng.random((542, 1774)) < -np.expm1(-0.0322 * np.outer(busy, popular))
    correct = Exam(542, 1774, difficulty_sd=1.5).simulate(rng).responses.correct
    return np.where(answered, correct, np.int8(-1))


def sparse_fits(unit: float, folder: Path) -> Figures:
    """Difficulties of sparse answers by every method; the private one from a list of answers, as a command."""
    correct = sparse_exam()
    right, answered = correct > 0, correct >= 0
    fits: dict[str, Callable[[], object]] = {
        "marginal": lambda: fit_marginal(correct, sd=None),
        "conditional": lambda: fit_conditional(correct),
        "joint": lambda: fit_joint(right.sum(axis=1), right.sum(axis=0), mask=answered),
    }
    for name, fit in fits.items():
        yield f"sparse answers, {name}", best_seconds(fit, 2) / unit
    learner, item = np.nonzero(answered)
    answers, out, ledger = (folder / name for name in ("answers.csv", "sparse.json", "sparse.ledger"))
    columns = {"learner": learner, "item": item, "correct": correct[learner, item]}
    pl.DataFrame(columns).with_columns(
        pl.format("pupil {}", "learner").alias("learner"), pl.format("task {}", "item").alias("item")
    ).write_csv(answers)
    private = ("difficulties", answers, "--epsilon", 5, "--public-items", "--ledger", ledger, "-o", out)
    yield "sparse answers, private", run_command(*private, new=[out, ledger]).seconds / unit


def exam_fits(unit: float, folder: Path) -> Figures:
    """Difficulties of a complete exam, beside what people use for that."""
    from girth import rasch_mml
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    correct = Exam(5000, 50).simulate(np.random.default_rng(1)).responses.correct
    fit_marginal(correct, sd=None)
    ours = best_seconds(lambda: fit_marginal(correct, sd=None), 10)
    by_item = np.ascontiguousarray(correct.T)
    rasch_mml(by_item[:, :100])
    yield "marginal fit of 5,000 x 50", ours / unit
    yield "marginal fit of 5,000 x 50, against girth", ours / best_seconds(lambda: rasch_mml(by_item), 1)

    n_learners, n_items = 1000, 20
    few = Exam(n_learners, n_items).simulate(np.random.default_rng(2)).responses.correct
    rows, ones = np.arange(few.size), np.ones(few.size)
    design = hstack(
        [
            csr_matrix((ones, (rows, rows // n_items)), shape=(few.size, n_learners)),
            csr_matrix((-ones, (rows, rows % n_items)), shape=(few.size, n_items)),
        ]
    ).tocsr()
    penalty = 0.01
    model = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-6, max_iter=5000)
    theirs = best_seconds(lambda: model.fit(design, few.ravel()), 1)
    scores = few.sum(axis=1), few.sum(axis=0)
    found = fit_joint(*scores, penalty=penalty).difficulty
    assert np.allclose(found, model.coef_[0][n_learners:], atol=1e-2), "the fits disagree"
    ours = best_seconds(lambda: fit_joint(*scores, penalty=penalty), 10)
    yield "joint fit of 1,000 x 20, against scikit-learn", ours / theirs


def _log() -> Interactions:
    """A simulated log of the size of ASSISTments 2009."""
    shape = Classroom(
        n_learners=4138, n_actions=102, median_length=20, length_spread=1.5, shortest=1, longest=1000
    )
    return shape.simulate(np.random.default_rng(1))


def log_models(unit: float, folder: Path) -> Figures:
    """The Rasch fit, the matcher and the sampler of logs, beside what people use for that."""
    import pylcs
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    log = _log()
    rows, ones = np.arange(log.n_rows), np.ones(log.n_rows)
    design = hstack(
        [
            csr_matrix((ones, (rows, log.learner)), shape=(log.n_rows, log.n_learners)),
            csr_matrix((ones, (rows, log.action)), shape=(log.n_rows, log.n_actions)),
        ]
    ).tocsr()
    rasch = fit_rasch(log)
    ours = best_seconds(lambda: fit_rasch(log), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its default stops before it has converged
        theirs = best_seconds(lambda: LogisticRegression().fit(design, log.outcome), 1)
    yield "Rasch fit of a log", ours / unit
    yield "Rasch fit of a log, against scikit-learn", ours / theirs

    long = log.select(np.argsort(-log.lengths)[100:300])
    texts = ["".join(map(chr, long.action[a:b] + 0x21)) for a, b in pairwise(long.offsets)]
    # The nearest of the first half of them to each of the others, as the published attack looks for it.
    own, fakes = (long.select(np.arange(len(texts)) % 2 == odd) for odd in (0, 1))
    sequences = [Sequences(each.action, each.offsets, each.n_actions) for each in (own, fakes)]
    power = fakes.lengths**0.97
    nearest, _ = largest_common(*sequences, power)
    ours = best_seconds(lambda: largest_common(*sequences, power))
    began = time.process_time()
    lengths = [[pylcs.lcs_sequence_length(a, b) for b in texts[1::2]] for a in texts[:20:2]]
    theirs = (time.process_time() - began) * len(texts[::2]) / 10
    assert ((np.array(lengths) / power).max(axis=1) == nearest[:10]).all(), "the matchers disagree"
    yield "subsequence matching", ours / unit
    yield "subsequence matching, against pylcs", ours / theirs

    counts = TransitionCounts.of(log)
    tables, rng = AliasTables.of(counts), np.random.default_rng(0)
    ability = rng.normal(size=300_000)
    sample_walks(tables, -rasch.difficulty, ability[:10], counts.longest, rng)
    walks = best_seconds(lambda: sample_walks(tables, -rasch.difficulty, ability, counts.longest, rng), 2)
    yield "walks of 300,000 learners", walks / unit


JOBS: dict[str, Callable[[float, Path], Figures]] = {
    "million-rows": million_rows,
    "million-learners": million_learners,
    "sparse": sparse_fits,
    "exams": exam_fits,
    "logs": log_models,
}
