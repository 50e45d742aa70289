"""The plan of an analysis: which sums are measured, and what of the budget each of them gets.

Everything here is computed from public numbers: the questions, the schema, the number of learners, epsilon and delta.
Answers are predicted by computing them from sums as they would be if nothing were known (groups of equal size, means in
the middle, a spread of a quarter of the range), and the budget is split so that the predicted intervals are narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from understudy.core.privacy.composition import analytic_rho, default_delta, from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.desk.private import from_cells, from_moments
from understudy.desk.private.answers import MOST_OF_WHAT_IS_POSSIBLE, Answer, Enough
from understudy.desk.private.comparisons import compare_answer, independence_answer
from understudy.desk.private.logistic import Round, assumed_round, logistic_answer
from understudy.desk.private.measurements import Cells, Features, Measurement, Moments, Noisy, Slopes
from understudy.desk.private.questions import (
    MOST_QUESTIONS,
    Compare,
    Correlation,
    Count,
    Histogram,
    Independence,
    Linear,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    Question,
    Variance,
)
from understudy.desk.private.schema import Schema
from understudy.errors import UsageError

# What the accounting rests on: no more noisy integers than this in all, none with less noise than this many lattice
# steps. Both are checked.
MOST_CELLS = 1_000_000
LEAST_SIGMA = 2.0**12
MECHANISM = "discrete Gaussian mechanism on sums over learners"

# What is assumed of numbers before anything is known: a standard deviation of a quarter of the range, which is 2.
ASSUMED_SPREAD = 0.5
# A budget so large that noise hardly matters: widths there are those of sampling.
_AMPLE_RHO = 1e8
_ROUNDS = 60
_LARGEST_EPSILON = 100.0
_MOST_LEARNERS = 10_000_000

Released = Noisy | Round


@lru_cache(maxsize=512)
def rho_of(epsilon: float, delta: float) -> float:
    """What discrete Gaussians may spend together for (epsilon, delta)."""
    return analytic_rho(epsilon, delta, n_cells=MOST_CELLS, sigma=LEAST_SIGMA)


@dataclass(frozen=True)
class Plan:
    """The questions of one analysis, and what they may spend together."""

    questions: tuple[Question, ...]
    schema: Schema
    n_learners: int
    epsilon: float
    delta: float
    spread: float = ASSUMED_SPREAD

    @property
    def rho(self) -> float:
        """What all measurements may spend together."""
        return rho_of(self.epsilon, self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about all answers together."""
        return from_gaussians(
            self.rho, self.epsilon, self.delta, (MECHANISM,), n_cells=MOST_CELLS, sigma=LEAST_SIGMA
        )

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """What is measured, each of it once; the place of a question's measurement is in `needs`."""
        return tuple(dict.fromkeys(self.needs))

    @cached_property
    def needs(self) -> tuple[Measurement, ...]:
        """What each question is answered from."""
        return tuple(self._measurement(question) for question in self.questions)

    @cached_property
    def shares(self) -> dict[Measurement, float]:
        """The share of rho of each measurement: see `_split`."""
        return _split(self)

    def rho_for(self, measurement: Measurement) -> float:
        """What one measurement may spend."""
        return self.rho * self.shares[measurement]

    def predict(self, question: Question) -> Answer:
        """The answer if nothing is known of the learners: its widths are what is to be expected."""
        need = self._measurement(question)
        return self._predicted(question, need, self.rho_for(need))

    def predictions(self) -> tuple[Answer, ...]:
        """All of them."""
        return tuple(self.predict(question) for question in self.questions)

    def answer(self, question: Question, released: Released, *, tested: bool = True) -> Answer:
        """The answer from what was released of its measurement."""
        schema, n, need = self.schema, self.n_learners, self._measurement(question)
        if isinstance(question, Logistic):
            assert isinstance(need, Slopes)
            assert isinstance(released, Round)
            return logistic_answer(question, need, released, schema, n)
        assert isinstance(released, Noisy)
        if isinstance(need, Moments):
            if isinstance(question, Mean):
                return from_moments.mean_answer(question, released, schema)
            if isinstance(question, Variance):
                return from_moments.variance_answer(question, released, schema)
            if isinstance(question, Correlation):
                return from_moments.correlation_answer(question, need.features, released, schema)
            if isinstance(question, Linear):
                return from_moments.linear_answer(question, need.features, released, schema)
            assert isinstance(question, Compare)
            return compare_answer(question, released, schema, tested=tested)
        assert isinstance(need, Cells)
        if isinstance(question, Count | Histogram):
            return from_cells.count_answer(question, need, released, schema, n)
        if isinstance(question, Proportion):
            return from_cells.proportion_answer(question, released, schema, n)
        if isinstance(question, Quantile):
            return from_cells.quantile_answer(question, need, released, schema, n)
        assert isinstance(question, Independence)
        return independence_answer(question, released, schema, n, tested=tested)

    def enough_for(self, answer: Answer) -> Enough:
        """The epsilon, or the number of learners, with which the answer's intervals would not be too wide.

        By prediction: what was found to be wider than predicted, as a group is that has few learners, is taken to be
        so much wider then, too. Where an interval holds all that is possible, the spread is not known, and half of
        what is usually assumed is assumed.
        """
        wanted, share = MOST_OF_WHAT_IS_POSSIBLE, self.shares[self._measurement(answer.question)]
        found = min(max(estimate.width for estimate in answer.estimates), 1.0)
        usual = replace(self, spread=self.spread / 2.0) if found == 1.0 else self

        def width(plan: Plan) -> float:
            need = plan._measurement(answer.question)
            expected = plan._predicted(answer.question, need, plan.rho * share)
            return max(estimate.width for estimate in expected.estimates)

        factor = max(1.0, found / width(usual))
        epsilon = _smallest(
            lambda x: factor * width(replace(usual, epsilon=x)) <= wanted, self.epsilon, _LARGEST_EPSILON
        )
        n_learners = _smallest(
            lambda x: factor * width(replace(usual, n_learners=round(x))) <= wanted,
            float(self.n_learners),
            _MOST_LEARNERS,
        )
        return Enough(
            None if epsilon is None else _rounded_up(epsilon),
            None if n_learners is None else int(_rounded_up(n_learners)),
        )

    def _predicted(self, question: Question, need: Measurement, rho: float) -> Answer:
        return self.answer(question, self._assumed(need, rho), tested=False)

    def _assumed(self, need: Measurement, rho: float) -> Released:
        """What would be released if nothing were known, without noise in it."""
        if isinstance(need, Slopes):
            return assumed_round(need, self.schema, self.n_learners, rho, self.spread)
        values = need.assumed(self.schema, self.n_learners, self.spread)
        blank = need.released(np.zeros(values.shape), self.schema, self.n_learners, rho)
        return Noisy(values, blank.sd)

    def _measurement(self, question: Question) -> Measurement:
        schema = self.schema
        if isinstance(question, Count):
            return from_cells.count_cells(question)
        if isinstance(question, Proportion | Independence):
            return from_cells.proportion_cells(question.column, question.by)
        if isinstance(question, Histogram):
            return from_cells.histogram_cells(question, schema)
        if isinstance(question, Quantile):
            return from_cells.quantile_cells(question, schema, self.n_learners, math.sqrt(2.0 * self.rho))
        if isinstance(question, Mean | Variance | Compare):
            return Moments(Features.of(schema, (question.column,)), question.by)
        if isinstance(question, Correlation):
            return Moments(Features.of(schema, question.columns))
        if isinstance(question, Linear):
            return Moments(Features.of(schema, (question.outcome, *question.on)))
        assert isinstance(question, Logistic)
        return Slopes(question.outcome, question.value, Features.of(schema, question.on))


def propose(
    questions: Sequence[Question],
    schema: Schema,
    n_learners: int,
    epsilon: float,
    delta: float | None = None,
) -> Plan:
    """The plan of an analysis, checked against the schema. It costs nothing: it knows public numbers alone."""
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        raise UsageError(
            f"an analysis asks 1 to {MOST_QUESTIONS} questions, not {len(questions)}.",
            hint="ask for something, or for less.",
            code="questions",
        )
    if not 1e-3 <= epsilon <= _LARGEST_EPSILON:
        raise UsageError(
            f"epsilon {epsilon:g} is not between 0.001 and {_LARGEST_EPSILON:g}.",
            hint="1 is usual.",
            code="bad-epsilon",
            settings=("epsilon",),
        )
    if delta is not None and not 0 < delta < 1:
        raise UsageError(
            f"delta {delta:.2e} is not between 0 and 1.",
            hint="leave it out: then it is below one over the squared number of learners.",
            code="bad-delta",
            settings=("delta",),
        )
    for question in questions:
        question.check(schema)
    delta = default_delta(n_learners) if delta is None else delta
    plan = Plan(tuple(dict.fromkeys(questions)), schema, n_learners, epsilon, delta)
    n_cells = sum(3 * need.n_cells(schema) for need in plan.measurements)
    if n_cells > MOST_CELLS:
        raise UsageError(
            f"the questions need {n_cells:,} noisy sums; {MOST_CELLS:,} is the most.",
            hint="ask less at once.",
            code="too-many-cells",
        )
    return plan


def _split(plan: Plan) -> dict[Measurement, float]:
    """Shares with which the sum of predicted widths, a mean per question, is least.

    With c the noise at rho = 1 and s the width without noise, an interval has the width sqrt(s^2 + c^2 / rho). Its sum
    is least where rho^2 is in proportion to the sum of c^2 / width over the questions of a measurement: that is
    repeated until it stays.
    """
    parts: dict[Measurement, list[tuple[float, float]]] = {need: [] for need in plan.measurements}
    for question, need in zip(plan.questions, plan.needs, strict=True):
        estimates = plan._predicted(question, need, _AMPLE_RHO).estimates
        for estimate in estimates:
            known = estimate.possible[1] - estimate.possible[0]
            finite = (known, estimate.high - estimate.low, estimate.noise)
            if all(map(math.isfinite, finite)):
                noise = 4.0 * estimate.noise * math.sqrt(_AMPLE_RHO) / known / len(estimates)
                parts[need].append(((estimate.high - estimate.low) / known / len(estimates), noise))
    shares = dict.fromkeys(plan.measurements, 1.0 / len(plan.measurements))
    for _ in range(_ROUNDS):
        weights = {
            need: math.sqrt(
                math.fsum(
                    noise**2 / math.hypot(still, noise / math.sqrt(plan.rho * shares[need]))
                    for still, noise in parts[need]
                    if noise > 0
                )
                + 1e-12
            )
            for need in plan.measurements
        }
        total = math.fsum(weights.values())
        shares = {need: weight / total for need, weight in weights.items()}
    # A little less than all, so that rounding never makes the parts more than the whole.
    return {need: share * (1.0 - 1e-9) for need, share in shares.items()}


def _smallest(fits: Callable[[float], bool], start: float, most: float) -> float | None:
    """The smallest number from `start` to `most` that fits, within a hundredth."""
    if not fits(most):
        return None
    low, high = start, most
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _rounded_up(value: float) -> float:
    """Two digits, not less than the value."""
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / scale - 1e-9) * scale:.6g}")
