"""From responses to released difficulties: the methods by name, what they promise, what they give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import understudy
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError, UsageError
from understudy.exams.ability_spread import estimate_spread
from understudy.exams.difficulties_file import Ability, Difficulties, Item
from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.estimators.joint import PENALTY, fit_joint
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.estimators.noisy_totals import Prior, chance_curve, estimate_difficulties
from understudy.exams.estimators.published import (
    OBJECTIVE_REASON,
    STATISTICS_REASON,
    check_choice,
    choose_spread,
    objective,
    statistics,
)
from understudy.exams.ranking import TELLING, order_of, reading
from understudy.exams.responses import Responses
from understudy.exams.totals_mechanism import Measurement, Missing, choose_measurement, noise_variance

Floats = NDArray[np.float64]

PRIVATE = ("knorm", "gaussian")
PUBLISHED = ("objective", "statistics")
NOT_PRIVATE = ("marginal", "conditional", "joint")
METHODS = (*PRIVATE, *NOT_PRIVATE, *PUBLISHED)

NO_EPSILON = "no epsilon was given: the difficulties are fitted without any noise"

# Below, there is nothing but noise; above, nothing of it; both leave the range of the samplers.
LEAST_EPSILON, MOST_EPSILON = 0.001, 100.0
MOST_ITEMS = 20_000

# What finding the spread of abilities takes of epsilon when it is asked for.
SPREAD_SHARE = 0.2


@dataclass(frozen=True)
class Request:
    """What is wanted of a fit. `ability_sd` is a number, or how to find it at a charge."""

    method: str = "knorm"
    epsilon: float | None = None
    delta: float | None = None
    missing: Missing = "wrong"
    at_most: int | None = None
    ability_sd: float | Literal["estimate", "choose"] = 1.0
    prior: Prior | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(
                f"there is no method '{self.method}'.", hint="the methods are " + ", ".join(METHODS) + "."
            )
        if self.epsilon is not None and not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise UsageError(
                f"epsilon {self.epsilon:g} was asked for; it lies between {LEAST_EPSILON:g} and {MOST_EPSILON:g}.",
                hint="1 is a good start.",
            )
        if self.method in NOT_PRIVATE and self.epsilon is not None:
            raise UsageError(
                f"epsilon was given, but the method {self.method} adds no noise.",
                hint="leave --epsilon out, or choose -m knorm or -m gaussian.",
            )
        if self.method not in NOT_PRIVATE and self.epsilon is None:
            raise UsageError(f"the method {self.method} needs an epsilon.", hint="give --epsilon 1.")
        if self.delta is not None and self.method != "gaussian":
            raise UsageError(
                f"delta was given, but the method {self.method} has none.", hint="delta is for -m gaussian."
            )
        if self.delta is not None and not 0 < self.delta < 1:
            raise UsageError(
                f"delta {self.delta:.3g} was asked for; it lies between 0 and 1.", hint="1e-6 is usual."
            )
        if isinstance(self.ability_sd, float) and not 0.05 <= self.ability_sd <= 10:
            raise UsageError(
                f"abilities that spread by {self.ability_sd:g} were asked for.",
                hint="the standard deviation of abilities is a number from 0.05 to 10; 1 is usual.",
            )
        if isinstance(self.ability_sd, str) and self.method not in PRIVATE:
            raise UsageError(
                f"the method {self.method} does not spend epsilon on the spread of abilities.",
                hint="leave --ability-sd out.",
            )
        if self.ability_sd == "estimate" and self.missing == "skipped":
            raise UsageError(
                "the spread of abilities cannot be estimated from scores when learners skipped items.",
                hint="give --ability-sd as a number; 1 is usual.",
            )


def prior_of(earlier: Difficulties) -> Prior:
    """The prior that an earlier exam's released difficulties suggest: their mean, and their own spread.

    Errors make estimates spread differently from true difficulties: private ones, which are
    posterior means, are drawn together by the mean squared error, others driven apart by it.
    """
    known = [item for item in earlier.items if item.difficulty is not None]
    if len(known) < 2:
        raise DataError(
            f"a prior takes at least 2 items with a difficulty; the earlier exam has {len(known)}.",
            hint="give --prior MEAN,SD, or leave it out.",
        )
    values = np.array([item.difficulty for item in known], dtype=np.float64)
    errors = np.array([item.standard_error or 0.0 for item in known])
    missing = float((errors**2).mean()) * (1.0 if earlier.guarantee.formal else -1.0)
    return Prior(float(values.mean()), math.sqrt(max(float(values.var()) + missing, 0.01)))


@dataclass(frozen=True)
class Plan:
    """A request with all that follows from public numbers: what will be done, and what it costs."""

    request: Request
    guarantee: Guarantee
    measurement: Measurement | None = None
    spread_epsilon: float = 0.0


def plan(request: Request, n_items: int, n_learners: int) -> Plan:
    """Settle the mechanism and its guarantee before anybody's answers are touched."""
    if request.method in NOT_PRIVATE:
        return Plan(request, Guarantee.none(NO_EPSILON))
    if request.method in PUBLISHED:
        reason = OBJECTIVE_REASON if request.method == "objective" else STATISTICS_REASON
        return Plan(request, Guarantee.none(reason))
    assert request.epsilon is not None
    if n_items > MOST_ITEMS:
        raise UsageError(
            f"private difficulties of {n_items} items were asked for; {MOST_ITEMS} are possible.",
            hint="release them in parts; their epsilons add up.",
        )
    if request.ability_sd == "choose":
        check_choice(n_learners)
    share = SPREAD_SHARE if isinstance(request.ability_sd, str) else 0.0
    measurement = choose_measurement(
        request.method,
        n_items=n_items,
        missing=request.missing,
        at_most=request.at_most,
        epsilon=request.epsilon * (1.0 - share),
        delta=request.delta if request.delta is not None else default_delta(n_learners),
    )
    guarantee = measurement.guarantee
    if share:
        # Basic composition: epsilons add up, and only the totals have a delta.
        name = {"estimate": "discrete Laplace mechanism on the spread of scores"}
        name["choose"] = "exponential mechanism on a choice of the spread of abilities"
        guarantee = Guarantee(
            request.epsilon,
            guarantee.delta,
            mechanisms=(*guarantee.mechanisms, name[str(request.ability_sd)]),
        )
    return Plan(request, guarantee, measurement, request.epsilon * share)


def fit_difficulties(
    responses: Responses, plan: Plan, noise: Noise, rng: np.random.Generator, *, title: str = ""
) -> Difficulties:
    """The difficulties of all items, as they may be released with the plan's guarantee."""
    if responses.n_learners < 2:
        raise DataError(
            f"difficulties describe a class; this file has {responses.n_learners} learner.",
            hint="a student's own answers go to `understudy ability`.",
        )
    fit = _METHODS[plan.request.method](responses, plan, noise, rng)
    private = plan.measurement is not None
    guarantee = plan.guarantee if noise.secret or not private else Guarantee.seeded(plan.guarantee)
    order = order_of(fit.difficulty, fit.standard_error)
    items = tuple(
        _item(name, fit, place, int(order.rank_from[place]), int(order.rank_to[place]))
        for place, name in enumerate(responses.items)
    )
    return Difficulties(
        items,
        tuple(tuple(responses.items[place] for place in step) for step in order.steps),
        fit.ability,
        guarantee,
        _provenance(responses, plan, fit),
        title,
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """Difficulties (infinite where unbounded, nan where unknown), standard errors (nan where unknown)."""

    difficulty: Floats
    standard_error: Floats
    ability: Ability
    prior: Prior | None = None


def _private(responses: Responses, plan: Plan, noise: Noise, rng: np.random.Generator) -> _Fit:
    request, measurement = plan.request, plan.measurement
    assert measurement is not None
    counted = responses.missing_as_wrong() if request.missing == "wrong" else responses
    if measurement.at_most is not None:
        counted = counted.at_most(measurement.at_most, rng)
    totals = measurement.measure(counted.totals(), noise)
    if request.ability_sd == "estimate":
        sd = estimate_spread(responses, totals, plan.spread_epsilon, noise)
        source = "estimated privately from the spread of scores"
    elif request.ability_sd == "choose":
        sd = choose_spread(responses, request.missing, plan.spread_epsilon, noise, rng)
        source = "chosen privately among a few"
    else:
        sd, source = float(request.ability_sd), "declared"
    estimate = estimate_difficulties(totals, sd, request.prior)
    return _Fit(estimate.difficulty, estimate.standard_error, Ability(0.0, sd, source), prior=estimate.prior)


def _marginal(responses: Responses, plan: Plan, noise: Noise, rng: np.random.Generator) -> _Fit:
    fit = fit_marginal(_counted(responses, plan).correct, sd=None)
    return _Fit(fit.difficulty, fit.standard_error, Ability(0.0, fit.sd, "estimated without noise"))


def _conditional(responses: Responses, plan: Plan, noise: Noise, rng: np.random.Generator) -> _Fit:
    correct = _counted(responses, plan).correct
    fit = fit_conditional(correct)
    # Conditional estimates say nothing about abilities: mean and spread are those of the marginal fit,
    # moved to the same zero.
    other = fit_marginal(correct, sd=None)
    bounded = np.isfinite(fit.difficulty) & np.isfinite(other.difficulty)
    shift = fit.difficulty[bounded] - other.difficulty[bounded]
    mean = float(shift.mean()) if bounded.any() else 0.0
    return _Fit(fit.difficulty, fit.standard_error, Ability(mean, other.sd, "estimated without noise"))


def _joint(responses: Responses, plan: Plan, noise: Noise, rng: np.random.Generator) -> _Fit:
    correct = _counted(responses, plan).correct
    answered = correct >= 0
    right = correct > 0
    fit = fit_joint(right.sum(axis=1), right.sum(axis=0), mask=None if answered.all() else answered)
    return _penalised(fit.difficulty)


def _published(responses: Responses, plan: Plan, noise: Noise, rng: np.random.Generator) -> _Fit:
    assert plan.request.epsilon is not None
    method = objective if plan.request.method == "objective" else statistics
    return _penalised(method(responses, plan.request.epsilon, rng).difficulty)


def _penalised(difficulty: Floats) -> _Fit:
    unknown = np.full(len(difficulty), np.nan)
    # The penalty lambda/2 beta^2 is a normal prior with variance 1 / lambda (seed, section 3).
    return _Fit(difficulty, unknown, Ability(0.0, PENALTY**-0.5, "the penalty of the fit"))


_METHODS: dict[str, Callable[[Responses, Plan, Noise, np.random.Generator], _Fit]] = {
    "knorm": _private,
    "gaussian": _private,
    "marginal": _marginal,
    "conditional": _conditional,
    "joint": _joint,
    "objective": _published,
    "statistics": _published,
}


def _counted(responses: Responses, plan: Plan) -> Responses:
    return responses.missing_as_wrong() if plan.request.missing == "wrong" else responses


def _item(name: str, fit: _Fit, place: int, rank_from: int, rank_to: int) -> Item:
    difficulty, error = float(fit.difficulty[place]), float(fit.standard_error[place])
    if math.isnan(difficulty):
        # Nobody answered it: anything is possible.
        return Item(name, None, None, 0.5, "answered by nobody", 1, len(fit.difficulty))
    if math.isinf(difficulty):
        hard = difficulty > 0
        words = "solved by nobody" if hard else "solved by everybody"
        return Item(
            name, None, None, 0.0 if hard else 1.0, words, rank_from, rank_to, "hard" if hard else "easy"
        )
    beyond = min(max(difficulty - fit.ability.mean, -15.0), 15.0)
    chance = min(max(float(chance_curve(fit.ability.sd)(beyond)), 0.0), 1.0)
    return Item(
        name,
        round(difficulty, 6),
        None if math.isnan(error) else round(error, 6),
        round(chance, 6),
        reading(chance),
        rank_from,
        rank_to,
    )


def _provenance(responses: Responses, plan: Plan, fit: _Fit) -> dict[str, Any]:
    request = plan.request
    return {
        "method": request.method,
        "mechanism": None if plan.measurement is None else plan.measurement.name,
        "epsilon": request.epsilon,
        "learners": responses.n_learners,
        "items": responses.n_items,
        "missing": "counted as wrong" if request.missing == "wrong" else "not asked",
        "answers_at_most": None if plan.measurement is None else plan.measurement.at_most,
        "difficulties_prior": None
        if fit.prior is None
        else {
            "mean": round(fit.prior.mean, 4),
            "sd": round(fit.prior.spread, 4),
            "source": "given" if request.prior is not None else "estimated from the noisy totals",
        },
        "simulated": responses.simulated,
        "made": datetime.now(UTC).date().isoformat(),
        "understudy": understudy.__version__,
    }


EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Precision:
    """Expected standard errors of difficulties on the scale of log-odds, sampling included.

    `total_noise` is the standard deviation of the noise in learners; `even` and `hard` are the
    errors of items that half and a tenth of the learners solve; two items of medium difficulty
    can be told apart when they differ by `apart`: one solved by half of the learners and one solved
    by a share of `other`.
    """

    epsilon: float
    method: str
    total_noise: float
    even: float
    hard: float
    apart: float
    other: float


def explain(request: Request, n_items: int, n_learners: int) -> list[Precision]:
    """The precision of each epsilon, by the better of the private methods."""
    rows = []
    for epsilon in EPSILONS:
        options = [
            _precision(replace(request, epsilon=epsilon, method=method), n_items, n_learners)
            for method in PRIVATE
        ]
        rows.append(min(options, key=lambda row: row.even))
    return rows


def _precision(request: Request, n_items: int, n_learners: int) -> Precision:
    """The delta method: noise and sampling of a share, divided by the slope of the chance."""
    assert request.epsilon is not None
    measurement = plan(request, n_items, n_learners).measurement
    assert measurement is not None
    sd = request.ability_sd if isinstance(request.ability_sd, float) else 1.0
    curve = chance_curve(sd)
    # Bounded answers thin out the counts; how many answers a learner gives is not public.
    answered = n_learners * (1.0 if measurement.at_most is None else measurement.at_most / n_items)

    def error(chance: float) -> float:
        places = np.linspace(-10.0, 10.0, 4001)
        difficulty = places[int(np.argmin(np.abs(np.asarray(curve(places)) - chance)))]
        noise = float(noise_variance(measurement.covariance, np.array([chance]))[0])
        deviation = math.sqrt(noise + answered * chance * (1.0 - chance)) / answered
        return deviation / abs(float(curve(difficulty, 1)))

    even = error(0.5)
    return Precision(
        request.epsilon,
        request.method,
        math.sqrt(float(noise_variance(measurement.covariance, np.array([0.5]))[0])),
        even,
        error(0.1),
        TELLING * math.sqrt(2.0) * even,
        float(curve(max(-15.0, -TELLING * math.sqrt(2.0) * even))),
    )
