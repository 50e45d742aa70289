"""The jobs: what people wait for, at the sizes that we promise.

A job takes the unit's seconds and an empty folder, and yields its figures by name (`accepted.py` says what they are).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.logs import assistments_like, long_sequences
from benchmarks.measuring import best_seconds, run_command
from understudy.core.attacks.subsequences import largest_common
from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.estimators.joint import fit_joint
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.simulate import Exam
from understudy.logs.models.markov import AliasTables, TransitionCounts, sample_walks
from understudy.logs.models.rasch import fit_rasch

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


def fits(unit: float, folder: Path) -> Figures:
    """Fits of a complete exam and of a log, the matcher and the sampler of logs."""
    correct = Exam(5000, 50).simulate(np.random.default_rng(1)).responses.correct
    fit_marginal(correct, sd=None)
    yield "marginal fit of 5,000 x 50", best_seconds(lambda: fit_marginal(correct, sd=None), 10) / unit

    log = assistments_like()
    rasch = fit_rasch(log)
    yield "Rasch fit of a log", best_seconds(lambda: fit_rasch(log), 10) / unit

    originals, fakes = long_sequences(log)
    power = fakes.lengths**0.97
    largest_common(originals, fakes, power)
    yield "subsequence matching", best_seconds(lambda: largest_common(originals, fakes, power)) / unit

    counts = TransitionCounts.of(log)
    tables, rng = AliasTables.of(counts), np.random.default_rng(0)
    ability = rng.normal(size=300_000)
    sample_walks(tables, -rasch.difficulty, ability[:10], counts.longest, rng)
    walks = best_seconds(lambda: sample_walks(tables, -rasch.difficulty, ability, counts.longest, rng), 3)
    yield "walks of 300,000 learners", walks / unit


JOBS: dict[str, Callable[[float, Path], Figures]] = {
    "million-rows": million_rows,
    "million-learners": million_learners,
    "sparse": sparse_fits,
    "fits": fits,
}
