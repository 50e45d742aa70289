"""Fits of an exam's items, one function per method: with noise from the operating system where a plan has some."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.noise import Noise
from understudy.errors import DataError
from understudy.exams.estimation import Estimation
from understudy.exams.estimators.chances import Answering, mean_chances
from understudy.exams.estimators.choice import choose_spread
from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.estimators.credits import filled_credits
from understudy.exams.estimators.joint import estimate_ability
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.estimators.noisy_discriminations import estimate_discriminations
from understudy.exams.estimators.noisy_points import estimate_from_points
from understudy.exams.estimators.noisy_totals import Prior, estimate_difficulties
from understudy.exams.estimators.partial_credit import fit_partial_credit
from understudy.exams.estimators.penalised import Penalty, penalised_fit, settle_penalty
from understudy.exams.estimators.reused_items import Reused, with_reused_items
from understudy.exams.mechanisms.discrimination import (
    DiscriminationMeasurement,
)
from understudy.exams.mechanisms.points import PointsMeasurement
from understudy.exams.mechanisms.totals import (
    NoisyTotals,
    below_guess,
)
from understudy.exams.plan import DifficultiesPlan
from understudy.exams.released_file import Ability
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fit:
    """Difficulties (infinite where unbounded, nan where unknown), standard errors (nan where unknown).

    `order_error` leaves out of them what moves all items together; the order of items rests on it. `chance` is that
    of a learner drawn at random, None where it follows from the distribution of abilities. `below_guess` counts items
    that were solved less often than their `guess` explains. `totals` are what a private fit rests on: with them
    releases of several schools can be combined.
    """

    difficulty: Floats
    standard_error: Floats
    ability: Ability
    prior: Prior | None = None
    order_error: Floats | None = None
    guess: Floats | None = None
    below_guess: int = 0
    discrimination: Floats | None = None
    credits: tuple[Floats, ...] = ()
    reused: Reused | None = None
    penalty: Penalty | None = None
    chance: Floats | None = None
    totals: NoisyTotals | None = None
    log_sd_error: float = 0.0


def _private(responses: Responses, plan: DifficultiesPlan, noise: Noise, rng: np.random.Generator) -> Fit:
    options, measurement = plan.options, plan.measurement
    if plan.points_measurement is not None:
        return _private_points(responses, plan.points_measurement, options, noise)
    if plan.discriminations is not None:
        return _private_discriminations(responses, plan.discriminations, options, noise)
    assert measurement is not None
    counted = _counted(responses, plan)
    if measurement.at_most is not None:
        counted = counted.at_most(measurement.at_most, rng)
    totals = measurement.release(counted, noise)
    sd: float | None = None
    if options.ability_sd == "choose":
        sd = choose_spread(responses, plan.missing, plan.choice_epsilon, noise, rng)
        source = "chosen privately among a few"
    elif options.ability_sd != "estimate":
        sd, source = float(options.ability_sd or 1.0), "declared"
    else:
        source = "estimated privately, along with the items" if totals.agreement else "what is usual"
    guess = _guesses(responses, options)
    answering = Answering(guess, options.discrimination_spread)
    estimate = estimate_difficulties(totals, sd, options.expected, answering)
    fit = Fit(
        estimate.difficulty,
        estimate.standard_error,
        Ability(0.0, round(estimate.ability_sd, 6), source),
        prior=estimate.prior,
        order_error=estimate.order_error,
        guess=guess,
        below_guess=below_guess(totals, guess),
        totals=totals,
        log_sd_error=estimate.log_sd_error,
    )
    return _with_earlier(fit, responses, options)


def _with_earlier(fit: Fit, responses: Responses, options: Estimation) -> Fit:
    """Items that were in the earlier exam too have their difficulty there as a prior, up to a common shift."""
    if options.earlier is None or fit.prior is None or fit.order_error is None:
        return fit
    known = {item.name: item for item in options.earlier.items if item.difficulty is not None}
    steps = responses.steps
    pairs = np.full((responses.n_items, 2), np.nan)
    for place, name in enumerate(responses.items):
        item = known.get(name)
        if item is not None and item.standard_error is not None and item.points.steps == steps[place]:
            pairs[place] = float(item.difficulty or 0.0), item.standard_error
    reused = with_reused_items(
        fit.difficulty, fit.order_error**2, fit.prior.mean, fit.prior.spread, pairs[:, 0], pairs[:, 1]
    )
    together = np.maximum(fit.standard_error**2 - fit.order_error**2, 0.0)
    return replace(
        fit,
        difficulty=reused.difficulty,
        standard_error=np.sqrt(reused.variance + together),
        order_error=np.sqrt(reused.variance),
        reused=reused,
    )


def _private_discriminations(
    responses: Responses, measurement: DiscriminationMeasurement, options: Estimation, noise: Noise
) -> Fit:
    noisy = measurement.release(responses, noise)
    estimate = estimate_discriminations(noisy, options.expected)
    fit = Fit(
        estimate.difficulty,
        estimate.standard_error,
        Ability(0.0, 1.0, "the scale of the discriminations"),
        prior=estimate.prior,
        order_error=estimate.order_error,
        discrimination=np.exp(estimate.log_slope),
    )
    return _with_earlier(fit, responses, options)


def _private_points(
    responses: Responses, measurement: PointsMeasurement, options: Estimation, noise: Noise
) -> Fit:
    assert responses.points is not None
    noisy = measurement.release(responses, noise)
    sd = None if options.ability_sd == "estimate" else float(options.ability_sd or 1.0)
    source = "declared" if sd is not None else "estimated privately, along with the items"
    estimate = estimate_from_points(noisy, responses.points, sd, options.expected)
    fit = Fit(
        estimate.difficulty,
        estimate.standard_error,
        Ability(0.0, round(estimate.ability_sd, 6), source),
        prior=estimate.prior,
        order_error=estimate.order_error,
        credits=estimate.credits,
    )
    return _with_earlier(fit, responses, options)


def _guesses(responses: Responses, options: Estimation) -> Floats:
    """The chance of a right answer without knowing it, of each item: by its choices, or as declared for all."""
    if responses.guesses is not None:
        return np.array(responses.guesses)
    return np.full(responses.n_items, float(options.guess))


def _marginal(responses: Responses, plan: DifficultiesPlan, noise: Noise, rng: np.random.Generator) -> Fit:
    if responses.points is not None:
        return _partial_credit(responses, plan, noise, rng)
    fit = fit_marginal(_counted(responses, plan).correct, sd=None)
    return Fit(fit.difficulty, fit.standard_error, _ability(0.0, fit.sd))


def _partial_credit(
    responses: Responses, plan: DifficultiesPlan, noise: Noise, rng: np.random.Generator
) -> Fit:
    """Items with points, or with discriminations of their own, or both."""
    correct = _counted(responses, plan).correct
    slopes = plan.method == "two-parameter"
    fit = fit_partial_credit(correct, responses.steps, slopes=slopes)
    ability = _ability(0.0, fit.sd)
    answered = np.count_nonzero(correct >= 0, axis=0)
    return Fit(
        np.array([item.difficulty for item in fit.items]),
        np.array([item.standard_error for item in fit.items]),
        ability,
        discrimination=np.array([item.slope for item in fit.items]) if slopes else None,
        credits=()
        if responses.points is None
        else tuple(
            filled_credits(item, fit.sd, int(n)) if math.isfinite(item.difficulty) else np.zeros(0)
            for item, n in zip(fit.items, answered, strict=True)
        ),
    )


def _conditional(responses: Responses, plan: DifficultiesPlan, noise: Noise, rng: np.random.Generator) -> Fit:
    correct = _counted(responses, plan).correct
    fit = fit_conditional(correct)
    # Conditional estimates know nothing about abilities: mean and spread are those of the marginal fit,
    # moved to the same zero.
    other = fit_marginal(correct, sd=None)
    bounded = np.isfinite(fit.difficulty) & np.isfinite(other.difficulty)
    shift = fit.difficulty[bounded] - other.difficulty[bounded]
    mean = float(shift.mean()) if bounded.any() else 0.0
    return Fit(fit.difficulty, fit.standard_error, _ability(mean, other.sd))


def _ability(mean: float, sd: float) -> Ability:
    if not math.isfinite(sd):
        raise DataError(
            "these answers do not show how much abilities differ: no item was solved by some learners and not by "
            "others.",
            hint="give the answers of more learners, or release difficulties with an epsilon.",
            code="no-spread",
            settings=("epsilon",),
        )
    return Ability(mean, sd, "estimated without noise")


def _penalised(responses: Responses, plan: DifficultiesPlan, noise: Noise, rng: np.random.Generator) -> Fit:
    options, counted = plan.options, _counted(responses, plan)
    public = options.public
    if public is not None and plan.missing == "wrong":
        public = public.missing_as_wrong()
    left = None if options.epsilon is None else options.epsilon - plan.choice_epsilon
    tried = penalised_fit(plan.method, plan.choice_epsilon or left)
    penalty = settle_penalty(tried, counted, options.penalty, public, plan.choice_epsilon, noise, rng)
    difficulty = penalised_fit(plan.method, left)(counted, penalty.value, rng)
    fit = Fit(
        difficulty,
        np.full(len(difficulty), np.nan),
        Ability(0.0, penalty.ability_sd, "the penalty of the fit"),
        penalty=penalty,
    )
    return _with_chances(fit, counted.correct) if plan.method == "joint" else fit


def _with_chances(fit: Fit, correct: NDArray[np.int8]) -> Fit:
    """The joint fit with chances over the abilities that it found, and without items that no learner answered.

    A penalty is no statement about a class: abilities that spread by 7, as that of 0.02 has it, would bring every
    chance near one half.
    """
    assert fit.penalty is not None
    answered = correct >= 0
    ability = estimate_ability(correct, fit.difficulty, penalty=fit.penalty.value)
    chance = mean_chances(ability[answered.any(axis=1)], fit.difficulty)
    difficulty = np.where(answered.any(axis=0), fit.difficulty, np.nan)
    return replace(fit, difficulty=difficulty, chance=chance)


METHODS: dict[str, Callable[[Responses, DifficultiesPlan, Noise, np.random.Generator], Fit]] = {
    "knorm": _private,
    "gaussian": _private,
    "marginal": _marginal,
    "two-parameter": _partial_credit,
    "conditional": _conditional,
    "joint": _penalised,
    "objective": _penalised,
    "statistics": _penalised,
}


def _counted(responses: Responses, plan: DifficultiesPlan) -> Responses:
    return responses.missing_as_wrong() if plan.missing == "wrong" else responses
