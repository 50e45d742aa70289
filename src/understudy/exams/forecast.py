"""forecast(): how exact private difficulties will be at each risk and epsilon, by the size of the exam.

The mean number of answers of a learner is part of that size: it is shown to the custodian and not released.

A few exams of the same size are simulated: abilities and difficulties as classes have them, totals with the noise of
the mechanism, and the estimator that a release uses. Totals are drawn from their normal approximation, and of many
items a part stands for all, so that it takes seconds at any size.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from understudy.core.engine import progress
from understudy.core.privacy.risk import RISKS, RiskLimit, StatedRisk
from understudy.errors import UsageError
from understudy.exams.agreement import expected_agreement, fewest_answers
from understudy.exams.estimation import PRIVATE, Estimation
from understudy.exams.estimators.chances import FURTHEST, Answering, chance_curve
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.mechanisms.totals import NoisyTotals, predicted_variance
from understudy.exams.plan import DifficultiesPlan, plan
from understudy.exams.ranking import distinguished

Floats = NDArray[np.float64]

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
_N_EXAMS = 12
# Of the mean difficulty, from exam to exam.
_SD_OF_MEANS = 1.75
# Student's t for a new value outside of 90 %, with eleven degrees of freedom: two times 5 %.
_REACH = 1.796 * math.sqrt(1.0 + 1.0 / _N_EXAMS)
# So many items stand for all; more where a learner answers few of them, as agreement needs some answers of each.
_ENOUGH_ITEMS, _MOST_ITEMS, _ENOUGH_ANSWERS = 60, 200, 12.0


@dataclass(frozen=True)
class Range:
    """What to expect, and the bounds within which nine of ten exams lie."""

    low: float
    expected: float
    high: float

    @classmethod
    def of(cls, values: Floats, scale: Callable[[Floats], Floats], back: Callable[[float], float]) -> Range:
        """From simulated values, which are about normal on `scale`; `back` is its inverse.

        Exams far too easy or too hard are a tail on one side: all simulated values are within.
        """
        scaled = scale(values)
        middle, reach = float(scaled.mean()), _REACH * float(scaled.std(ddof=1))
        low, high = min(middle - reach, float(scaled.min())), max(middle + reach, float(scaled.max()))
        return cls(float(back(low)), float(back(middle)), float(back(high)))

    def cells(self) -> str:
        """For people."""
        return f"{self.expected:.2f} ({self.low:.2f}–{self.high:.2f})"


@dataclass(frozen=True)
class Precision:
    """What a release would be like.

    `total_noise` is the standard deviation of the noise in learners; `error` the root mean square error of the
    difficulties, in log-odds; `correlation` that with the true ones; `ordered` the share of pairs of items whose order
    would be stated. `better` is another private method whose noise, `better_noise`, would be smaller.
    """

    risk: StatedRisk
    method: str
    total_noise: float
    error: Range
    correlation: Range
    ordered: float
    better: str = ""
    better_noise: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The precision for machines."""
        return {
            **vars(self.risk),
            "method": self.method,
            "total_noise": self.total_noise,
            "error": vars(self.error),
            "correlation": vars(self.correlation),
            "ordered": self.ordered,
            "better": self.better,
            "better_noise": self.better_noise,
        }


def forecast(
    options: Estimation,
    n_items: int,
    n_learners: int,
    answers: float | None = None,
    layout: str = "wide",
    guesses: Sequence[float] | None = None,
) -> list[Precision]:
    """The precision that each risk and each epsilon buys by the method that would be used; nothing is spent.

    Where another private method has less noise at the same risk or epsilon, the row names it. `answers` is how many
    answers a learner gives on average where items may be skipped (None: to all that count); `guesses` are the items'
    chances of a guess where they differ.
    """

    def settled(method: str, epsilon: float) -> DifficultiesPlan:
        delta = options.delta if method == "gaussian" else None
        asked = replace(
            options, epsilon=epsilon, method=method, delta=delta, risk="", penalty=None, penalty_from=None
        )
        return plan(asked, n_items, n_learners, layout)

    used = str(options.method) if options.method in PRIVATE else PRIVATE[0]

    def row(epsilons: dict[str, float]) -> list[Precision]:
        plans = {method: settled(method, epsilon) for method, epsilon in epsilons.items()}
        if used not in plans:
            return []
        found = precision(plans[used], n_items, n_learners, answers, guesses)
        best = min(plans.values(), key=_noise)
        if _noise(best) >= _noise(plans[used]):
            return [found]
        return [replace(found, better=best.method, better_noise=math.sqrt(_noise(best)))]

    def within(limit: RiskLimit) -> dict[str, float]:
        """The epsilon of each method that can keep to a risk: each kind of noise has another one."""

        def epsilon_of(method: str) -> float:
            return limit.epsilon(lambda epsilon: settled(method, epsilon).guarantee)

        epsilons = {}
        for method in PRIVATE:
            with contextlib.suppress(UsageError):  # a large delta alone may pass a small risk
                epsilons[method] = epsilon_of(method)
        return epsilons

    rows = []
    with progress.task("Simulating exams", len(EPSILONS) + len(RISKS)) as step:
        for epsilon in EPSILONS:
            rows += row(dict.fromkeys(PRIVATE, epsilon))
            step.advance()
        for risk in RISKS:
            rows += row(within(RiskLimit.parse(risk)))
            step.advance()
    return sorted(rows, key=lambda each: -each.total_noise)


def _noise(planned: DifficultiesPlan) -> float:
    assert planned.measurement is not None
    return predicted_variance(planned.measurement)


def precision(
    planned: DifficultiesPlan,
    n_items: int,
    n_learners: int,
    answers: float | None = None,
    guesses: Sequence[float] | None = None,
) -> Precision:
    """What a release by this plan would be like."""
    # The same exams for every epsilon: a smaller one is then worse, as it should be.
    rng = np.random.default_rng(1)
    given = np.array([float(planned.options.guess)] if guesses is None else guesses)
    found = np.array(
        [_simulated(planned, n_items, n_learners, answers, given, each, rng) for each in _classes(rng)]
    )
    return Precision(
        StatedRisk.of(planned.guarantee),
        planned.method,
        math.sqrt(_noise(planned)),
        Range.of(found[:, 0], np.log, math.exp),
        Range.of(found[:, 1], np.arctanh, math.tanh),
        float(found[:, 2].mean()),
    )


def _classes(rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """What classes are like, as far as nothing is declared: mean and spread of difficulties, spread of abilities.

    Some exams are far too easy or too hard for their learners. A Latin hypercube: few exams hold all of it.
    """
    share = (np.arange(_N_EXAMS) + 0.5) / _N_EXAMS
    mean, spread, sd = (rng.permutation(share) for _ in range(3))
    columns = (
        _SD_OF_MEANS * ndtri(mean),
        np.exp(math.log(0.9) + (math.log(2.2) - math.log(0.9)) * spread),
        np.exp(math.log(0.7) + (math.log(2.8) - math.log(0.7)) * sd),
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _simulated(
    planned: DifficultiesPlan,
    n_items: int,
    n_learners: int,
    answers: float | None,
    guesses: Floats,
    a_class: tuple[float, float, float],
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Error, correlation and share of stated orders of one simulated exam."""
    options, measurement = planned.options, planned.measurement
    assert measurement is not None
    complete = planned.missing == "wrong"
    most = n_items if measurement.at_most is None else min(measurement.at_most, n_items)
    given = float(n_items if complete else most if answers is None else min(answers, most))
    enough = max(_ENOUGH_ITEMS, math.ceil(_ENOUGH_ANSWERS * n_items / max(given, 1.0)))
    shown = min(n_items, enough, _MOST_ITEMS)
    mean, spread, drawn_sd = a_class
    sd = options.ability_sd if isinstance(options.ability_sd, float) else drawn_sd
    if options.expected is not None:
        mean, spread = options.expected.mean, options.expected.spread
    truth = rng.normal(mean, spread, shown)
    rate = np.full(shown, 1.0)
    if not complete:
        rate = np.minimum(given / n_items * np.exp(rng.normal(-0.125, 0.5, shown)), 1.0)
    n_answers = np.round(n_learners * rate)
    # In equal steps through the list, so that a part has the guesses of all.
    guess = guesses[(np.arange(shown) * len(guesses)) // shown]
    curve = chance_curve(sd)
    # The learners at hand are a little better or worse than all.
    place = np.clip(truth + sd * rng.normal() / math.sqrt(n_learners), -FURTHEST, FURTHEST)
    know, within = curve(place), -curve(place, 1)
    scatter = guess * (1 - guess) * (1 - know) + (1 - guess) ** 2 * within
    chance = guess + (1 - guess) * know
    scatter += (1 - n_answers / n_learners) * np.maximum(chance * (1 - chance) - scatter, 0.0)
    right = n_answers * chance + np.sqrt(n_answers * scatter) * rng.normal(size=shown)
    drawn = measurement.law.draw(measurement.covariance, shown + measurement.agreement_cells, rng)
    noise = drawn[:shown]
    totals = NoisyTotals(
        np.clip(right, 0.0, n_answers) + noise[:, 0],
        n_answers + noise[:, 1],
        measurement.covariance,
        n_learners,
        law=measurement.law,
    )
    if measurement.agreement_cells:
        fewest = fewest_answers(shown, complete=complete)
        expected, scatter_of_agreement = expected_agreement(
            truth,
            np.zeros(shown),
            sd,
            guess=guess,
            answers=np.maximum(n_answers, 1e-6),
            n_learners=n_learners,
            fewest=fewest,
        )
        total = expected + math.sqrt(scatter_of_agreement) * rng.normal()
        cells = np.array([total, float(n_learners)]) + drawn[shown:]
        totals = replace(totals, agreement=measurement.agreement_of(cells, n_learners, fewest))
    declared = options.ability_sd if isinstance(options.ability_sd, float) else None
    found = estimate_difficulties(
        totals, declared, options.expected, Answering(guess, options.discrimination_spread)
    )
    pairs = np.triu(distinguished(found.difficulty, found.order_error), 1).sum()
    return (
        math.sqrt(float(((found.difficulty - truth) ** 2).mean())),
        _correlation(found.difficulty, truth),
        float(pairs) / max(shown * (shown - 1) / 2, 1.0),
    )


def _correlation(first: Floats, second: Floats) -> float:
    """Within what can be put on Fisher's scale; 0 where there is nothing to correlate."""
    if len(first) < 3 or not first.std() or not second.std():
        return 0.0
    return float(np.clip(np.corrcoef(first, second)[0, 1], -0.9999, 0.9999))
