"""Ours against what a user would pick instead, in one run on the same data.

A comparison yields ratios: processor seconds of the peer and of ours, round by round in turns, and how many times ours
goes into the peer's. Results are checked to be the same where they can be. Peers that are not among the packages of the
tests run in environments of their own, outside of the repository (`reproductions/head_to_head/environments.py`).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.logs import assistments_like, long_sequences
from benchmarks.measuring import Work, in_turns, seconds_of
from benchmarks.results import Rate, Ratio
from reproductions.head_to_head.environments import MOSTLYAI, OPENDP, SDV, Environment
from reproductions.head_to_head.methods import PEERS, Method
from reproductions.head_to_head.trials import run, run_method
from understudy.core.attacks.subsequences import Sequences, largest_common
from understudy.errors import MissingError
from understudy.exams.estimators.joint import fit_joint
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.simulate import Exam
from understudy.logs.generators.baselines import Markov
from understudy.logs.models.markov import AliasTables, TransitionCounts, draw_walks, sample_walks
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.simulated.classroom import Classroom

PROGRAMS = Path(__file__).parent / "programs"
LEA = Environment("lea", ("lea",))
ROUNDS = 5
# Of peers that take minutes.
FEW_ROUNDS = 3
MARGINAL = "marginal fit, 5,000 learners x 50 items"


def matching(folder: Path) -> Iterator[Ratio]:
    """The nearest synthetic sequence to each of 100 learners, as the published attack looks for it."""
    import pylcs

    log = assistments_like()
    rng = np.random.default_rng(1)
    half = rng.permutation(log.n_learners) < log.n_learners // 2
    synthetic = Markov().fit(log.select(half), rng).sample(None, rng)
    some = log.select(np.sort(rng.permutation(log.n_learners)[:100]))
    tasks = {
        "matching, 100 x 100 long sequences": long_sequences(log),
        f"matching, 100 x {synthetic.n_learners:,} learners of a log": tuple(
            Sequences(each.action, each.offsets, log.n_actions) for each in (some, synthetic)
        ),
    }
    for task, (originals, fakes) in tasks.items():
        power = np.maximum(fakes.lengths, 1) ** 0.97
        texts, fake_texts = (
            ["".join(map(chr, each.codes[a:b] + 0x21)) for a, b in pairwise(each.offsets)]
            for each in (originals, fakes)
        )
        ours = partial(largest_common, originals, fakes, power)
        theirs = partial(_nearest, pylcs.lcs_sequence_length, texts, fake_texts, power)
        assert (theirs() == ours()[0]).all(), "the matchers disagree"
        yield _side_by_side(task, _named("pylcs"), ours, theirs, goal=150)


def _nearest(common: Callable[[str, str], int], texts: list[str], fakes: list[str], power: Any) -> Any:
    lengths = [[common(own, fake) for fake in fakes] for own in texts]
    return (np.array(lengths) / power).max(axis=1)


def rasch(folder: Path) -> Iterator[Ratio]:
    """The Rasch model of a log, at equal parameters: scikit-learn's usual solver and its fastest one."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    log = assistments_like()
    rows, ones = np.arange(log.n_rows), np.ones(log.n_rows)
    design = hstack(
        [
            csr_matrix((ones, (rows, log.learner)), shape=(log.n_rows, log.n_learners)),
            csr_matrix((ones, (rows, log.action)), shape=(log.n_rows, log.n_actions)),
        ]
    ).tocsr()
    found = fit_rasch(log)
    # With its own tolerance the usual solver ends up to 0.4 away from the optimum.
    for solver, tolerance in (("lbfgs", 1e-7), ("newton-cg", 1e-7)):
        model = LogisticRegression(solver=solver, tol=tolerance, max_iter=10_000)
        model.fit(design, log.outcome)
        assert np.allclose(model.coef_[0], [*found.ability, *-found.difficulty], atol=5e-3), (
            "the fits disagree"
        )
        yield _side_by_side(
            f"Rasch model of a log, {log.n_rows:,} rows",
            f"{_named('scikit-learn')}, {solver}",
            partial(fit_rasch, log),
            partial(model.fit, design, log.outcome),
            goal=20,
        )


def exams(folder: Path) -> Iterator[Ratio]:
    """Difficulties of a complete exam: the marginal fit of girth and the joint one of scikit-learn."""
    from girth import rasch_mml
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    correct = Exam(5000, 50).simulate(np.random.default_rng(1)).responses.correct
    by_item = np.ascontiguousarray(correct.T)
    ours: Work = partial(fit_marginal, correct, sd=None)
    yield _side_by_side(MARGINAL, _named("girth"), ours, partial(rasch_mml, by_item))

    n_learners, n_items, penalty = 1000, 20, 0.01
    few = Exam(n_learners, n_items).simulate(np.random.default_rng(2)).responses.correct
    rows, ones = np.arange(few.size), np.ones(few.size)
    design = hstack(
        [
            csr_matrix((ones, (rows, rows // n_items)), shape=(few.size, n_learners)),
            csr_matrix((-ones, (rows, rows % n_items)), shape=(few.size, n_items)),
        ]
    ).tocsr()
    model = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-6, max_iter=5000)
    model.fit(design, few.ravel())
    ours = partial(fit_joint, few.sum(axis=1), few.sum(axis=0), penalty=penalty)
    assert np.allclose(ours().difficulty, model.coef_[0][n_learners:], atol=1e-2), "the fits disagree"
    name = f"{_named('scikit-learn')}, lbfgs"
    yield _side_by_side(
        "joint fit, 1,000 learners x 20 items", name, ours, partial(model.fit, design, few.ravel())
    )


def mirt(folder: Path) -> Iterator[Ratio]:
    """The marginal fit of mirt, where R and mirt are installed."""
    asked = ["Rscript", "-e", "cat(as.character(packageVersion('mirt')))"]
    if shutil.which("Rscript") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        raise MissingError(
            "mirt is not compared: R with the package mirt is not installed.",
            hint="install R, and in R: install.packages('mirt')",
            code="no-environment",
        )
    release = subprocess.run(asked, capture_output=True, check=True, text=True).stdout
    correct = Exam(5000, 50).simulate(np.random.default_rng(1)).responses.correct
    answers = folder / "answers.csv"
    pl.DataFrame(correct, schema=[f"item{i}" for i in range(50)]).write_csv(answers)
    words = ["Rscript", str(PROGRAMS / "mirt_rasch.R"), str(answers)]
    spent = in_turns(
        partial(seconds_of, partial(fit_marginal, correct, sd=None)), partial(_printed, words), rounds=ROUNDS
    )
    yield Ratio(MARGINAL, f"mirt {release}", *spent)


def walks(folder: Path) -> Iterator[Ratio]:
    """Actions of a chain by lea, which the published generator samples with."""
    log = Classroom(n_learners=1000, n_actions=100).simulate(np.random.default_rng(1))
    train, counts, n_rows = folder / "train.csv", TransitionCounts.of(log), 20_000
    log.to_polars("learner-").write_csv(train)
    words = [str(LEA.python()), str(PROGRAMS / "lea_walks.py"), str(train), str(n_rows), "1"]
    tables, limits = AliasTables.of(counts), np.full(100_000, counts.longest)
    drawn = len(draw_walks(tables, limits, np.uint64(1))[0])

    def ours() -> float:
        return seconds_of(lambda: draw_walks(tables, limits, np.uint64(1))) * n_rows / drawn

    spent = in_turns(ours, partial(_printed, words), rounds=ROUNDS)
    yield Ratio(f"sampling {n_rows:,} actions of a chain", f"lea {LEA.version()}", *spent)


def generators(environment: Environment, method: Method, ours: Method, folder: Path) -> Iterator[Ratio]:
    """Whole processes from a file to a synthetic one with as many learners, start and imports included."""
    log = Classroom(n_learners=100, n_actions=20).simulate(np.random.default_rng(1)).declare()

    def seconds(some: Method) -> float:
        return run_method(some, log, 0, np.random.default_rng(0))[1].seconds

    spent = in_turns(partial(seconds, ours), partial(seconds, method), rounds=FEW_ROUNDS)
    task = f"{ours.label}, {log.n_learners} learners, {log.n_rows:,} rows"
    yield Ratio(task, f"{method.label} ({environment.version()})", *spent)


def memory(folder: Path) -> Iterator[Rate]:
    """Sampling of a chain of 100 actions on one core, beside a plain copy of as many bytes."""
    log = Classroom(n_learners=4000, n_actions=100).simulate(np.random.default_rng(1))
    counts, rasch = TransitionCounts.of(log), fit_rasch(log)
    tables, n_learners = AliasTables.of(counts), 500_000
    limits, key = np.full(n_learners, counts.longest), np.uint64(1)
    ability, rng = np.zeros(n_learners), np.random.default_rng(1)
    action, _ = draw_walks(tables, limits, key)
    copied = np.empty_like(action)
    spent = in_turns(
        partial(seconds_of, lambda: draw_walks(tables, limits, key)),
        partial(seconds_of, lambda: sample_walks(tables, -rasch.difficulty, ability, counts.longest, rng)),
        partial(seconds_of, lambda: np.copyto(copied, action)),
        rounds=ROUNDS,
    )
    walks, both, copies = ([len(action) / seconds / 1e6 for seconds in each] for each in spent)
    yield Rate("sampling the actions of a chain of 100 actions", walks, goal=60)
    yield Rate("the same with outcomes", both)
    yield Rate("a plain copy of these actions by numpy: the machine's memory", copies)


def _side_by_side(task: str, peer: str, ours: Work, theirs: Work, goal: float | None = None) -> Ratio:
    spent = in_turns(partial(seconds_of, ours), partial(seconds_of, theirs), rounds=ROUNDS)
    return Ratio(task, peer, *spent, goal=goal)


def _printed(words: list[str]) -> float:
    """The seconds that a program of a peer prints."""
    return float(run(words)[0])


def _named(package: str) -> str:
    return f"{package} {version(package)}"


_MARKOV, _RUNS_DP = (
    next(m for m in PEERS["ours"] if m.label == label) for label in ("markov", "runs-dp:epsilon=8")
)
_PAR = PEERS["sdv"][0]
# Its training ends by the clock.
_MOSTLYAI = replace(PEERS["mostlyai"][0], command=(*PEERS["mostlyai"][0].command[:-1], "1"))
_AIM = next(method for method in PEERS["opendp"] if method.label == "opendp AIM, per learner")

COMPARISONS: dict[str, Callable[[Path], Iterator[Ratio] | Iterator[Rate]]] = {
    "matching": matching,
    "rasch": rasch,
    "exams": exams,
    "mirt": mirt,
    "memory": memory,
    "lea": walks,
    "sdv": partial(generators, SDV, _PAR, _MARKOV),
    "opendp": partial(generators, OPENDP, _AIM, _RUNS_DP),
    "mostlyai": partial(generators, MOSTLYAI, _MOSTLYAI, _RUNS_DP),
}
