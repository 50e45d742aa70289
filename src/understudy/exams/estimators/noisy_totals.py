"""Difficulties from noisy totals: marginal likelihood, with the noise taken into account.

Of an item's noisy totals the right answers have mean n P(d), where n learners answered and P(d) is the chance of
`chances.py`, and the known variance of the noise plus n E[p (1 - p)] from sampling answers of the same learners, p
being a learner's own chance (exactly for Gaussian noise; K-norm noise in many items is near enough: the exact
likelihood changed no correlation by more than 0.002 in 40 simulated classes). Where learners skip items, those who
answer one are n drawn from all N, which adds n (1 - n / N) Var(p); and n itself is only known with noise and lies
between 0 and N: it is integrated out, under a beta distribution of answer rates that is found from all items
(`_answer_rates`).

Difficulties are N(mean, spread^2); mean and spread are integrated out over a weak prior of their own (mean
N(0, 1.25^2), spread about 1.5 within a factor of e), or given. So is the spread of abilities, sd, unless it is
declared: the measured agreement of answers tells it as far as the noise allows (`agreement.py`), and where it does
not, a prior around `_USUAL_SD` decides. That the learners at hand are not all learners moves all difficulties
together, by sd / sqrt(N). The estimate is the posterior mean; its standard error, the posterior standard deviation,
includes sampling, noise and the doubt about mean, spread and sd. All of it is post-processing of the noisy totals and
costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import betaln, expit, logsumexp

from understudy.errors import UsageError
from understudy.exams.agreement import expected_agreement, log_density
from understudy.exams.estimators.chances import FURTHEST, Answering, chance_curve, difficulties_at
from understudy.exams.totals_mechanism import NoisyTotals

Floats = NDArray[np.float64]

# So many that a prior as narrow as the narrowest below is wider than the step between them, at any sd.
_POINTS = 81
# Log-likelihood below the highest one that is still looked at (7.7 standard deviations).
_DEPTH = 30.0
_MEANS = np.linspace(-5.0, 5.0, 13)
_SPREADS = np.geomspace(0.3, 5.0, 8)
# What one expects of difficulties before looking: their mean lies around that of the abilities.
_DOUBT_OF_MEAN = 1.25
# And of the spread of abilities: from a class of equals to a mixture of school years.
_USUAL_SD, _DOUBT_OF_SD = 1.5, 0.6
_SDS = np.geomspace(0.4, 4.5, 9)
_LEAST_SD, _MOST_SD = 0.3, 5.0
_ROUNDS_OF_SDS = 5
# The sd at which likely chances are searched for; any would do.
_REFERENCE_SD = 1.5
_RATE_MEANS = expit(np.linspace(-6.0, 6.0, 25))
_RATE_SIZES = np.geomspace(1.5, 25.0, 5)
_N_ANSWER_NODES = 17


@dataclass(frozen=True)
class Prior:
    """Difficulties are N(mean, spread^2)."""

    mean: float
    spread: float

    @classmethod
    def parse(cls, text: str) -> Prior:
        """The prior as people write it: MEAN,SD."""
        mean, _, spread = text.partition(",")
        try:
            prior = cls(float(mean), float(spread))
        except ValueError:
            raise UsageError(
                f"a prior is MEAN,SD or a difficulties file, not '{text}'.",
                hint="for example 0,2.",
                settings=("prior",),
            ) from None
        if not (abs(prior.mean) <= 10 and 0.01 <= prior.spread <= 20):
            raise UsageError(
                f"difficulties around {prior.mean:g} that spread by {prior.spread:g} were asked for.",
                hint="the mean lies between -10 and 10, the standard deviation between 0.01 and 20.",
                settings=("prior",),
            )
        return prior


@dataclass(frozen=True, eq=False)
class Estimate:
    """Posterior means and standard deviations; `chance` is a random learner's at each item.

    `order_error` is the standard error without what moves or stretches all items together (the doubt about the
    learners and about sd): it is what the order of two items depends on. `log_sd_error` is the doubt about the
    logarithm of sd.
    """

    difficulty: Floats
    standard_error: Floats
    order_error: Floats
    chance: Floats
    prior: Prior
    ability_sd: float
    log_sd_error: float = 0.0


def estimate_difficulties(
    totals: NoisyTotals,
    ability_sd: float | None = 1.0,
    prior: Prior | None = None,
    answering: Answering = Answering(),  # noqa: B008 (frozen)
) -> Estimate:
    """Difficulties of all items; the prior's mean and spread are estimated too unless given, and sd if it is None."""
    points = _Points.of(totals, answering)
    laws = None if prior is not None else _likely_laws(points)
    if ability_sd is not None:
        return _mixture([_given_sd(points, ability_sd, prior, laws)], np.zeros(1))
    logs = np.log(_SDS)
    for closer in range(_ROUNDS_OF_SDS):
        found = [_given_sd(points, float(sd), prior, laws) for sd in np.exp(logs)]
        weight = _weights(points, found)
        centre, width = _moments(weight, logs)
        step = float(np.diff(logs).min(initial=math.inf))
        if closer and width > step:
            break
        # What is narrower than the step of the grid may lie anywhere between two of its points.
        logs = centre + max(width, step / 2.0, 1e-3) * np.linspace(-2.5, 2.5, 9)
        logs = np.unique(np.clip(logs, math.log(_LEAST_SD), math.log(_MOST_SD)))
    return _mixture(found, np.log(weight))


@dataclass(frozen=True, eq=False)
class _Points:
    """Per item, log-odds of the chance to know the answer that hold all that is likely: the same for every sd."""

    totals: NoisyTotals
    answering: Answering
    guess: Floats
    log_odds: Floats
    n_answers: Floats
    """Numbers of answers to integrate over: items by nodes."""
    log_weight: Floats

    @classmethod
    def of(cls, totals: NoisyTotals, answering: Answering) -> _Points:
        n_items = len(totals.correct)
        guess = np.broadcast_to(np.asarray(answering.guess, dtype=np.float64), n_items)[:, None]
        n_answers, log_weight = _answer_rates(totals)
        low, high = np.full(n_items, -FURTHEST), np.full(n_items, FURTHEST)
        unit = np.linspace(0.0, 1.0, _POINTS)
        curve = chance_curve(_REFERENCE_SD)
        # Each round zooms in by up to twenty times; precise totals of millions of learners need three.
        for _ in range(4):
            grid = low[:, None] + (high - low)[:, None] * unit
            know = np.clip(curve(grid), 1e-300, 1.0 - 1e-16)
            log_odds = np.log(know) - np.log1p(-know)
            points = cls(totals, answering, guess, log_odds, n_answers, log_weight)
            chance = guess + (1.0 - guess) * know
            value = points.log_likelihood(chance, chance * (1.0 - chance))
            inside = value > value.max(axis=1, keepdims=True) - _DEPTH
            first = np.maximum(inside.argmax(axis=1) - 1, 0)
            last = np.minimum(_POINTS - inside[:, ::-1].argmax(axis=1), _POINTS - 1)
            rows = np.arange(n_items)
            if ((last - first) > _POINTS / 2).all():
                break
            low, high = grid[rows, first], grid[rows, last]
        return points

    def log_likelihood(self, chance: Floats, scatter: Floats) -> Floats:
        """Of the totals, if an answer is right with this chance, and given the learner scatters by this variance."""
        totals = self.totals
        (own, shared), (_, other) = totals.covariance
        slope = shared / other if other else 0.0
        # The noise of the answers tells part of the noise of the right ones.
        right = totals.correct[:, None] - slope * (totals.answered[:, None] - self.n_answers)
        value = np.empty_like(chance)
        _sum_over_answers(
            right,
            self.n_answers,
            self.log_weight,
            own - slope * shared,
            float(totals.n_learners),
            chance,
            scatter,
            value,
        )
        return value


@njit(cache=True, nogil=True)
def _sum_over_answers(  # type: ignore[no-untyped-def]
    right, n_answers, log_weight, noise, n_learners, chance, scatter, value
):
    """The log-likelihood of each item's right answers at each of its chances, summed over numbers of answers."""
    n_items, n_points = chance.shape
    n_nodes = n_answers.shape[1]
    terms = np.empty(n_nodes)
    for i in range(n_items):
        for j in range(n_points):
            top = -np.inf
            between = max(chance[i, j] * (1.0 - chance[i, j]) - scatter[i, j], 0.0)
            for k in range(n_nodes):
                each = scatter[i, j] + (1.0 - n_answers[i, k] / n_learners) * between
                # Without noise a total of 0 or N would make the variance vanish at the ends.
                variance = max(n_answers[i, k] * each + noise, 1e-6)
                difference = right[i, k] - n_answers[i, k] * chance[i, j]
                terms[k] = -0.5 * (difference**2 / variance + math.log(variance)) + log_weight[i, k]
                top = max(top, terms[k])
            total = 0.0
            for k in range(n_nodes):
                total += math.exp(terms[k] - top)
            value[i, j] = top + math.log(total)


def _answer_rates(totals: NoisyTotals) -> tuple[Floats, Floats]:
    """Per item the numbers of answers that are likely, and the logarithms of their weights.

    Rates of answers are beta distributed over items, with the mean and the concentration that make the noisy
    numbers most likely: of many items, each with much noise, the mean rate is known well.
    """
    n = totals.n_learners
    noise = math.sqrt(totals.covariance[1, 1])
    if not noise:
        return np.clip(totals.answered, 1.0, n)[:, None], np.zeros((len(totals.answered), 1))
    middle = np.clip(totals.answered, 0.0, n)
    # A number that noise has moved out of what is possible leaves the possible ones close to it. Equal steps of the
    # angle whose squared sine is the rate: a beta distribution is about as wide in it everywhere.
    ends = np.array([np.maximum(middle - 4.5 * noise, 0.0), np.minimum(middle + 4.5 * noise, n)])
    low, high = np.arcsin(np.sqrt(ends / n))
    angle = low[:, None] + (high - low)[:, None] * (np.arange(_N_ANSWER_NODES) + 0.5) / _N_ANSWER_NODES
    rate = np.clip(np.sin(angle) ** 2, 1e-9, 1.0 - 1e-9)
    n_answers = n * rate
    likelihood = -0.5 * ((totals.answered[:, None] - n_answers) / noise) ** 2
    likelihood += np.log((high - low)[:, None] * np.sin(2.0 * angle))
    log_rate, log_rest = np.log(rate), np.log1p(-rate)

    def log_beta(mean: float, size: float) -> Floats:
        a, b = mean * size, (1.0 - mean) * size
        return np.asarray((a - 1.0) * log_rate + (b - 1.0) * log_rest - betaln(a, b))

    # A density without bound at 0 or 1 could not be summed over a few nodes.
    laws = [(mean, size) for mean in _RATE_MEANS for size in _RATE_SIZES if min(mean, 1 - mean) * size >= 0.5]
    best = max(
        laws,
        key=lambda law: float(logsumexp(likelihood + log_beta(*law), axis=1).sum()),
    )
    log_weight = likelihood + log_beta(*best)
    return n_answers, log_weight - logsumexp(log_weight, axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _GivenSd:
    """The posterior at one sd: its evidence, and mean and variance of each difficulty."""

    sd: float
    evidence: float
    difficulty: Floats
    variance: Floats
    prior: Prior
    n_learners: int
    chance: Floats


def _given_sd(points: _Points, sd: float, prior: Prior | None, laws: _Laws | None) -> _GivenSd:
    places, log_likelihood = _difficulties(points, sd)
    top = log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.exp(log_likelihood - top)
    if laws is not None:
        means, spreads, cell = laws.at(sd)
    else:
        assert prior is not None
        means, spreads, cell = np.array([prior.mean]), np.array([prior.spread]), 1.0
    weight, first, second, evidence = _posterior(places, likelihood, means, spreads)
    difficulty = weight @ first
    variance = np.maximum(weight @ second - difficulty**2, 0.0)
    pairs = np.array([(mean, spread) for mean in means for spread in spreads])
    found = Prior(float(weight @ pairs[:, 0]), float(np.exp(weight @ np.log(pairs[:, 1]))))
    know = np.asarray(chance_curve(sd)(np.clip(difficulty, -FURTHEST, FURTHEST)))
    guess = points.guess[:, 0]
    return _GivenSd(
        sd,
        evidence + math.log(cell) + float(top.sum()),
        difficulty,
        variance,
        found,
        points.totals.n_learners,
        guess + (1.0 - guess) * know,
    )


def _difficulties(points: _Points, sd: float) -> tuple[Floats, Floats]:
    """The points as difficulties at this sd, and the logarithm of their likelihood times their width.

    An item of discrimination a has the chance of one of discrimination 1 and difficulty a d where abilities spread
    by a sd: each discrimination maps the same chances to other difficulties.
    """
    guess = points.guess
    know = expit(points.log_odds)
    chance = guess + (1.0 - guess) * know
    places, values = [], []
    for discrimination, weight in zip(*points.answering.discriminations(), strict=True):
        curve = chance_curve(float(sd * discrimination))
        scaled = difficulties_at(points.log_odds, float(sd * discrimination))
        # -P' is E[sigma (1 - sigma)]: the variance of an answer given the learner, on average.
        within = np.clip(-curve(scaled, 1), 1e-12, 0.25)
        scatter = guess * (1.0 - guess) * (1.0 - know) + (1.0 - guess) ** 2 * within
        place = scaled / discrimination
        width = np.maximum(np.gradient(place, axis=1), 1e-12)
        places.append(place)
        values.append(points.log_likelihood(chance, scatter) + np.log(weight * width))
    return np.concatenate(places, axis=1), np.concatenate(values, axis=1)


def _weights(points: _Points, found: list[_GivenSd]) -> Floats:
    """The weight of each sd: items, the agreement of answers, and what is usual."""
    logs = np.array(
        [fit.evidence - 0.5 * (math.log(fit.sd / _USUAL_SD) / _DOUBT_OF_SD) ** 2 for fit in found]
    )
    agreement = points.totals.agreement
    if agreement is not None:
        n_answers = (np.exp(points.log_weight) * points.n_answers).sum(axis=1)
        for place, fit in enumerate(found):
            mean, variance = expected_agreement(
                fit.difficulty,
                fit.variance,
                fit.sd,
                guess=points.guess[:, 0],
                answers=n_answers,
                n_learners=points.totals.n_learners,
                fewest=agreement.fewest,
            )
            logs[place] += log_density(agreement.total, mean, variance + agreement.variance)
    return np.asarray(np.exp(logs - logsumexp(logs)))


def _mixture(found: list[_GivenSd], log_weight: Floats) -> Estimate:
    weight = np.exp(log_weight)
    difficulties = np.array([fit.difficulty for fit in found])
    variances = np.array([fit.variance for fit in found])
    sampled = np.array([fit.sd**2 / fit.n_learners for fit in found])
    difficulty = weight @ difficulties
    alone = weight @ variances
    together = np.maximum(weight @ difficulties**2 - difficulty**2, 0.0) + weight @ sampled
    prior = Prior(
        float(weight @ [fit.prior.mean for fit in found]), float(weight @ [fit.prior.spread for fit in found])
    )
    log_sd, log_sd_error = _moments(weight, np.log([fit.sd for fit in found]))
    chance = weight @ np.array([fit.chance for fit in found])
    return Estimate(
        difficulty, np.sqrt(alone + together), np.sqrt(alone), chance, prior, math.exp(log_sd), log_sd_error
    )


@dataclass(frozen=True)
class _Laws:
    """Which priors of the difficulties are likely at the reference sd: mean and log spread, with doubts."""

    mean: float
    mean_doubt: float
    log_spread: float
    log_spread_doubt: float

    def at(self, sd: float) -> tuple[Floats, Floats, float]:
        """Means and spreads to integrate over at this sd, and the size of a cell."""
        # The mean of a logistic curve over normal abilities is flatter than the curve (Camilli 1994): the same
        # chances belong to difficulties that are further apart where abilities are.
        scale = math.sqrt((1.0 + sd**2 / 1.702**2) / (1.0 + _REFERENCE_SD**2 / 1.702**2))
        steps = np.linspace(-2.5, 2.5, 7)
        logs = np.clip(
            self.log_spread + math.log(scale) + self.log_spread_doubt * steps,
            math.log(_SPREADS[0]),
            math.log(_SPREADS[-1]),
        )
        size = (steps[1] - steps[0]) ** 2 * scale * self.mean_doubt * self.log_spread_doubt
        return scale * (self.mean + self.mean_doubt * steps), np.exp(np.unique(logs)), size


def _likely_laws(points: _Points) -> _Laws:
    places, log_likelihood = _difficulties(points, _REFERENCE_SD)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    weight, _, _, _ = _posterior(places, likelihood, _MEANS, _SPREADS)
    table = weight.reshape(len(_MEANS), len(_SPREADS))
    mean, width = _moments(table.sum(axis=1), _MEANS)
    scale, spread = _moments(table.sum(axis=0), np.log(_SPREADS))
    return _Laws(mean, max(width, 0.1), scale, max(spread, 0.05))


def _moments(weight: Floats, values: Floats) -> tuple[float, float]:
    mean = float(weight @ values)
    return mean, math.sqrt(max(float(weight @ values**2) - mean**2, 0.0))


def _posterior(
    places: Floats, likelihood: Floats, means: Floats, spreads: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Weight of each (mean, spread), the moments of each difficulty under it, and the evidence of all."""
    mean, spread = (values.ravel() for values in np.meshgrid(means, spreads, indexing="ij"))
    total, first, second = _weighted_moments(places, likelihood, mean, spread)
    evidence = np.log(total / spread[:, None]).sum(axis=1)
    evidence -= 0.5 * (mean / _DOUBT_OF_MEAN) ** 2 + 2.0 * np.log(spread / 1.5) ** 2
    whole = float(logsumexp(evidence))
    return np.exp(evidence - whole), first, second, whole


@njit(cache=True, nogil=True)
def _weighted_moments(places, likelihood, mean, spread):  # type: ignore[no-untyped-def]
    """Per pair of mean and spread and per item: the sum of likelihood times prior, and the posterior moments."""
    n_pairs, (n_items, n_points) = len(mean), places.shape
    total = np.empty((n_pairs, n_items))
    first = np.empty((n_pairs, n_items))
    second = np.empty((n_pairs, n_items))
    for i in range(n_items):
        for k in range(n_pairs):
            whole, once, twice = 0.0, 0.0, 0.0
            for j in range(n_points):
                place = places[i, j]
                weight = likelihood[i, j] * math.exp(-0.5 * ((place - mean[k]) / spread[k]) ** 2)
                whole += weight
                once += weight * place
                twice += weight * place * place
            # Far from everything likely, the least number keeps the ratio defined.
            whole = max(whole, 1e-290)
            total[k, i], first[k, i], second[k, i] = whole, once / whole, twice / whole
    return total, first, second
