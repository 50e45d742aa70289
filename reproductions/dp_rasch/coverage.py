"""Do 95 % intervals of private difficulties hold the truth? Simulated exams of very different shapes.

`python -m reproductions.dp_rasch coverage` measures a grid: 30 to 5,000 learners, 10 to 2,000 items, complete and
sparse answers, abilities that spread by 0.8 and 2.5, guessing, epsilon from 0.5 to 10, both private methods. Each exam
draws its own difficulties (mean N(0, 0.5^2), spread between 1 and 2) and, where answers are sparse, how popular each
item is. Some exams are far too easy or far too hard: their difficulties lie 2.5 below or above the abilities.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.difficulties import DifficultiesOptions, fit_difficulties
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.forecast import precision
from understudy.exams.plan import DifficultiesPlan, plan
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]

# Learners, items, and how many answers each learner gives (None: to every item).
SHAPES: tuple[tuple[int, int, int | None], ...] = (
    (30, 10, None),
    (120, 20, None),
    (500, 20, None),
    (120, 40, 20),
    (5000, 20, None),
    (500, 100, None),
    (5000, 200, 20),
    (500, 400, 60),
    (5000, 100, None),
    (542, 1774, 120),
    (500, 2000, None),
)
# Of these every combination is measured, and of the others, which take longer, the extremes.
FULL = SHAPES[:3]
# Of these the extremes are measured for difficulties far from the abilities, too.
FAR = (*SHAPES[:3], SHAPES[6])
MEANS = (-2.5, 2.5)
SPREADS = (0.8, 2.5)
GUESSES = (0.0, 0.25)
EPSILONS = (0.5, 2.0, 10.0)
METHODS = ("knorm", "gaussian")
# Simulated difficulties per cell, about; an exam's intervals fail together, so there are at least a few exams.
_DIFFICULTIES, _FEWEST_EXAMS, _MOST_EXAMS = 2400, 12, 60


@dataclass(frozen=True)
class Case:
    """One cell of the grid."""

    n_learners: int
    n_items: int
    answers: int | None
    spread: float
    guess: float
    epsilon: float
    method: str
    mean: float = field(default=0.0, kw_only=True)

    def simulate(self, rng: np.random.Generator) -> tuple[Responses, Floats]:
        """The answers of one exam, and its true difficulties."""
        difficulty = rng.normal(
            rng.normal(self.mean, 0.5), math.exp(rng.uniform(0.0, math.log(2.0))), self.n_items
        )
        ability = rng.normal(0.0, self.spread, self.n_learners)
        know = expit(ability[:, None] - difficulty)
        right = rng.random(know.shape) < self.guess + (1.0 - self.guess) * know
        correct = right.astype(np.int8)
        if self.answers is not None:
            # The items that come first in a race in which popular ones run faster.
            race = rng.normal(0.0, 0.5, self.n_items) + rng.gumbel(size=know.shape)
            last = np.partition(race, self.n_items - self.answers, axis=1)[:, self.n_items - self.answers]
            correct[race < last[:, None]] = -1
        names = tuple(f"item {i + 1}" for i in range(self.n_items))
        return Responses(correct, names, declared=True, simulated=True), difficulty

    @property
    def options(self) -> DifficultiesOptions:
        """The settings that a teacher of such an exam would give."""
        return DifficultiesOptions(
            method=self.method,
            epsilon=self.epsilon,
            delta=1e-6 if self.method == "gaussian" else None,
            missing="wrong" if self.answers is None else "skipped",
            at_most=self.answers,
            guess=self.guess,
        )


@dataclass(frozen=True)
class Coverage(Case):
    """What was found for a case, over all of its exams.

    `covered` is the share of 95 % intervals that hold the truth, and `doubt` its standard error over exams. `error` is
    the root mean square error and `stated` the root mean squared standard error; `prior_only` says that hardly
    anything but the expected difficulties is left. `ordered` is the share of pairs whose order is stated, `wrong`
    the share of these that is wrong.
    """

    exams: int
    covered: float
    doubt: float
    error: float
    stated: float
    correlation: float
    spread_found: float
    ordered: float
    wrong: float
    prior_only: bool

    def line(self) -> str:
        """For people."""
        answers = "" if self.answers is None else f", {self.answers} answers each"
        if self.mean:
            answers += f", difficulties around {self.mean:g}"
        return (
            f"{self.n_learners} x {self.n_items}{answers}, spread {self.spread:g}, guess {self.guess:g}, epsilon "
            f"{self.epsilon:g}, {self.method}: {100 * self.covered:.1f} % hold the truth; error {self.error:.2f}, "
            f"stated {self.stated:.2f}; {100 * self.wrong:.1f} % of the stated orders are wrong."
        )


@dataclass(frozen=True)
class Foreseen(Case):
    """A forecast beside what came out: bounds, the mean of some exams, and the share of them within the bounds."""

    exams: int
    error_low: float
    error_expected: float
    error_high: float
    error_found: float
    error_inside: float
    correlation_low: float
    correlation_expected: float
    correlation_high: float
    correlation_found: float
    correlation_inside: float


COLUMNS = tuple(field.name for field in fields(Coverage))
_KEY = len(fields(Case))


def measure_grid(table: Path, tell: Callable[[Coverage], None] = lambda row: None, seed: int = 1) -> None:
    """Measure every case of the grid that the table does not hold yet, and add it there as soon as it is known."""
    done = set()
    if table.exists():
        with open(table, newline="", encoding="utf-8") as file:
            done = {tuple(row[:_KEY]) for row in csv.reader(file)}
    else:
        table.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    for case in cases():
        if tuple(_text(value) for value in astuple(case)) in done:
            continue
        row = measure(case, n_exams(case), seed)
        with open(table, "a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow([_text(value) for value in astuple(row)])
        tell(row)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def cases() -> Iterator[Case]:
    """The grid, from small exams to large ones."""
    for shape in SHAPES:
        for spread, guess, epsilon, method in product(SPREADS, GUESSES, EPSILONS, METHODS):
            extreme = (spread == SPREADS[0]) == (guess == GUESSES[0]) and epsilon != EPSILONS[1]
            if extreme or shape in FULL:
                yield Case(*shape, spread, guess, epsilon, method)
            if extreme and shape in FAR:
                yield from (Case(*shape, spread, guess, epsilon, method, mean=mean) for mean in MEANS)


def n_exams(case: Case) -> int:
    """How many exams of a case are simulated."""
    return min(max(_DIFFICULTIES // case.n_items, _FEWEST_EXAMS), _MOST_EXAMS)


def measure(case: Case, exams: int, seed: int = 1) -> Coverage:
    """Simulate exams of a case, release their difficulties, and compare with the truth."""
    planned = _plan(case)
    found = []
    for number in range(exams):
        rng = _generator(case, seed, number)
        responses, truth = case.simulate(rng)
        released = fit_difficulties(responses, planned, seeded_noise(rng), rng)
        found.append(_one(released, truth))
    return _summary(case, exams, found)


def _generator(case: Case, seed: int, number: int) -> np.random.Generator:
    far = [round(10 * case.mean) + 100] if case.mean else []
    return np.random.default_rng([seed, number, case.n_learners, case.n_items, round(10 * case.spread), *far])


def _plan(case: Case) -> DifficultiesPlan:
    return plan(case.options, case.n_items, case.n_learners, "wide" if case.answers is None else "long")


def _summary(case: Case, exams: int, found: list[tuple[float, ...]]) -> Coverage:
    covered, squared, stated, correlation, spread, prior, ordered, wrong = np.array(found).T
    pairs = case.n_items * (case.n_items - 1) / 2
    return Coverage(
        **vars(case),
        exams=exams,
        covered=round(float(covered.mean()), 4),
        doubt=round(float(covered.std(ddof=1)) / math.sqrt(exams), 4),
        error=round(math.sqrt(float(squared.mean())), 3),
        stated=round(math.sqrt(float(stated.mean())), 3),
        correlation=round(float(correlation.mean()), 3),
        spread_found=round(float(spread.mean()), 2),
        ordered=round(float(ordered.mean()) / pairs, 4),
        wrong=round(float(wrong.sum()) / max(float(ordered.sum()), 1.0), 4),
        prior_only=bool(math.sqrt(float(stated.mean())) > 0.8 * float(prior.mean())),
    )


def measure_forecast(case: Case, exams: int = 4) -> Foreseen:
    """What `--explain` predicts for a case, and how many of some fresh exams lie within the bounds."""
    planned = _plan(case)
    expected = precision(planned, case.n_items, case.n_learners, case.answers)
    found = []
    for number in range(exams):
        rng = _generator(case, 2, number)
        responses, truth = case.simulate(rng)
        _, squared, _, correlation, *_ = _one(
            fit_difficulties(responses, planned, seeded_noise(rng), rng), truth
        )
        found.append((math.sqrt(squared), correlation))
    inside = [
        sum(bounds.low <= value <= bounds.high for value in values) / exams
        for bounds, values in zip(
            (expected.error, expected.correlation), zip(*found, strict=True), strict=True
        )
    ]
    return Foreseen(
        **vars(case),
        exams=exams,
        **{f"error_{name}": round(value, 3) for name, value in vars(expected.error).items()},
        error_found=round(float(np.mean([error for error, _ in found])), 3),
        error_inside=inside[0],
        **{f"correlation_{name}": round(value, 3) for name, value in vars(expected.correlation).items()},
        correlation_found=round(float(np.mean([correlation for _, correlation in found])), 3),
        correlation_inside=inside[1],
    )


def measure_class(responses: Responses, epsilon: float, method: str, runs: int = 60) -> Coverage:
    """Release a real class several times, with other noise; the truth is the fit of all of it without noise.

    That fit saw the same learners, so its difference from a release is noise alone, while the stated errors include
    how learners are sampled: with little noise more than 95 % of the intervals hold it.
    """
    counted = responses.missing_as_wrong()
    fit = fit_marginal(counted.correct, sd=None)
    bounded = np.isfinite(fit.difficulty)
    planned = plan(
        DifficultiesOptions(method=method, epsilon=epsilon), responses.n_items, responses.n_learners
    )
    found = []
    for number in range(runs):
        rng = np.random.default_rng([number, 3])
        released = fit_difficulties(counted, planned, seeded_noise(rng), rng)
        items = tuple(item for item, known in zip(released.items, bounded, strict=True) if known)
        found.append(_one(replace(released, items=items), fit.difficulty[bounded]))
    case = Case(responses.n_learners, responses.n_items, None, round(fit.sd, 2), 0.0, epsilon, method)
    return _summary(case, runs, found)


def _one(released: Difficulties, truth: Floats) -> tuple[float, ...]:
    difficulty = np.array([item.difficulty for item in released.items])
    error = np.array([item.standard_error for item in released.items])
    # An item comes before another for sure if its last place is before the other's first.
    first = np.array([item.rank_from for item in released.items])
    last = np.array([item.rank_to for item in released.items])
    before = last[:, None] < first
    return (
        float((np.abs(difficulty - truth) <= 1.96 * error).mean()),
        float(((difficulty - truth) ** 2).mean()),
        float((error**2).mean()),
        float(np.corrcoef(difficulty, truth)[0, 1]),
        released.ability.sd,
        float(released.provenance["difficulties_prior"]["sd"]),
        float(before.sum()),
        float((before & (truth[:, None] > truth)).sum()),
    )
