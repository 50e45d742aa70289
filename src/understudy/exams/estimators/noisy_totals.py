"""Difficulties from noisy totals: marginal likelihood, with the noise taken into account.

Of an item's noisy totals the right answers have mean n P(d), where n learners answered and P(d) is the chance of
`chances.py`, and variance n E[p (1 - p)] from sampling answers of the same learners, p
being a learner's own chance; the law of the noise is the mechanism's own (`noise_likelihood.py`), and the radius that
all items share under K-norm noise is integrated out. Where learners skip items, those who
answer one are n drawn from all N, which adds n (1 - n / N) Var(p); and n itself is only known with noise and lies
between 0 and N: it is integrated out, under a beta distribution of answer rates that is found from all items
(`answer_rates.py`).

Difficulties are N(mean, spread^2); mean and spread are integrated out over a weak prior of their own (mean
N(0, 2.5^2) where abilities spread by 1.5, spread about 1.5 within a factor of e), or given. So is the spread of
abilities, sd, unless it is declared: the measured agreement of answers tells it as far as the noise allows
(`agreement.py`), and where it does not, a prior around `_USUAL_SD` decides. That the learners at hand are not all
learners moves all difficulties together, by sd / sqrt(N). The estimate is the posterior mean; its standard error, the
posterior standard deviation, includes sampling, noise and the doubt about mean, spread and sd. All of it is
post-processing of the noisy totals and costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from understudy.errors import UsageError
from understudy.exams.agreement import expected_agreement
from understudy.exams.estimators.answer_rates import NumbersOfAnswers
from understudy.exams.estimators.chances import FURTHEST, Answering, chance_curve, difficulties_at
from understudy.exams.estimators.noise_likelihood import agreement_log_likelihood, log_likelihood
from understudy.exams.mechanisms.totals import NoisyTotals

Floats = NDArray[np.float64]

# So many that a prior as narrow as the narrowest below is wider than the step between them, at any sd.
_POINTS = 81
# Log-likelihood below the highest one that is still looked at (7.7 standard deviations).
_DEPTH = 30.0
_MEANS = np.linspace(-7.0, 7.0, 15)
_SPREADS = np.geomspace(0.3, 5.0, 8)
# What one expects of difficulties before looking: exams that nearly all or nearly none can solve are rare. At the
# reference sd; what is expected are chances, whatever abilities spread by.
_DOUBT_OF_MEAN = 2.5
# And of the spread of abilities: from a class of equals to a mixture of school years.
_USUAL_SD, _DOUBT_OF_SD = 1.5, 0.6
_SDS = np.geomspace(0.4, 4.5, 9)
_LEAST_SD, _MOST_SD = 0.3, 5.0
_ROUNDS_OF_SDS = 5
# The sd at which likely chances are searched for; any would do.
_REFERENCE_SD = 1.5
# Standard deviations at which a normal law is looked at: sums over them have 97 and 89 % of its variance.
_STEPS, _FEW_STEPS = np.linspace(-2.2, 2.2, 5), np.array([-1.5, 0.0, 1.5])


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
    likely = _likely(points, prior)
    if ability_sd is not None:
        return _mixture([_given_sd(points, ability_sd, likely)], np.ones(1))
    logs = np.log(_SDS)
    for closer in range(_ROUNDS_OF_SDS):
        integrated = likely if closer else likely.roughly()
        found = [_given_sd(points, float(sd), integrated) for sd in np.exp(logs)]
        weight = _weights(found)
        centre, width = _moments(weight, logs)
        step = float(np.diff(logs).min(initial=math.inf))
        if closer and width > step:
            break
        # What is narrower than the step of the grid may lie anywhere between two of its points.
        logs = centre + max(width, step / 2.0, 1e-3) * np.linspace(-2.5, 2.5, 9)
        logs = np.unique(np.clip(logs, math.log(_LEAST_SD), math.log(_MOST_SD)))
    return _mixture(found, weight)


@dataclass(frozen=True, eq=False)
class _Points:
    """Per item, log-odds of the chance to know the answer that hold all that is likely: the same for every sd."""

    totals: NoisyTotals
    answering: Answering
    guess: Floats
    log_odds: Floats
    answers: NumbersOfAnswers

    @classmethod
    def of(cls, totals: NoisyTotals, answering: Answering) -> _Points:
        n_items = len(totals.correct)
        guess = np.broadcast_to(np.asarray(answering.guess, dtype=np.float64), n_items)[:, None]
        answers = NumbersOfAnswers.of(totals)
        # What the largest radius does not allow, no smaller one does.
        radius = float(totals.law.radii()[-1])
        low, high = np.full(n_items, -FURTHEST), np.full(n_items, FURTHEST)
        unit = np.linspace(0.0, 1.0, _POINTS)
        curve = chance_curve(_REFERENCE_SD)
        # Each round zooms in by up to twenty times; precise totals of millions of learners need three.
        for _ in range(4):
            grid = low[:, None] + (high - low)[:, None] * unit
            know = np.clip(curve(grid), 1e-300, 1.0 - 1e-16)
            log_odds = np.log(know) - np.log1p(-know)
            points = cls(totals, answering, guess, log_odds, answers)
            chance = guess + (1.0 - guess) * know
            value = points.log_likelihood(chance, chance * (1.0 - chance), radius)
            inside = value > value.max(axis=1, keepdims=True) - _DEPTH
            first = np.maximum(inside.argmax(axis=1) - 1, 0)
            last = np.minimum(_POINTS - inside[:, ::-1].argmax(axis=1), _POINTS - 1)
            rows = np.arange(n_items)
            if ((last - first) > _POINTS / 2).all():
                break
            low, high = grid[rows, first], grid[rows, last]
        return points

    def log_likelihood(self, chance: Floats, scatter: Floats, radius: float) -> Floats:
        """Of the totals, if an answer is right with this chance, and given the learner scatters by this variance."""
        answers = self.answers
        return log_likelihood(
            self.totals, answers.numbers, answers.log_weight(radius), radius, chance, scatter
        )


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


def _given_sd(points: _Points, sd: float, likely: _Likely) -> _GivenSd:
    """Radii of the noise are summed out, as far as they are likely."""
    placed = _Placed.of(points, sd)
    means, spreads, cell = likely.laws_at(sd)
    pairs = np.array([(mean, spread) for mean in means for spread in spreads])
    logs, firsts, seconds, priors = [], [], [], []
    for radius, of_law in zip(likely.radii, points.totals.law.log_density(likely.radii), strict=True):
        weight, first, second, evidence = placed.posterior(radius, means, spreads)
        difficulty, square = weight @ first, weight @ second
        evidence += of_law + math.log(cell)
        evidence += _agreement(points, sd, radius, difficulty, np.maximum(square - difficulty**2, 0.0))
        logs.append(evidence)
        firsts.append(difficulty)
        seconds.append(square)
        priors.append((weight @ pairs[:, 0], weight @ np.log(pairs[:, 1])))
    whole = float(logsumexp(logs))
    of_radius = np.exp(np.array(logs) - whole)
    difficulty = of_radius @ np.array(firsts)
    mean, log_spread = of_radius @ np.array(priors)
    know = np.asarray(chance_curve(sd)(np.clip(difficulty, -FURTHEST, FURTHEST)))
    guess = points.guess[:, 0]
    return _GivenSd(
        sd,
        whole,
        difficulty,
        np.maximum(of_radius @ np.array(seconds) - difficulty**2, 0.0),
        Prior(float(mean), math.exp(log_spread)),
        points.totals.n_learners,
        guess + (1.0 - guess) * know,
    )


@dataclass(frozen=True, eq=False)
class _Placed:
    """The points as difficulties at one sd, with chance, scatter and the logarithm of their width.

    An item of discrimination a has the chance of one of discrimination 1 and difficulty a d where abilities spread
    by a sd: each discrimination maps the same chances to other difficulties.
    """

    points: _Points
    sd: float
    places: Floats
    chance: Floats
    scatter: Floats
    log_width: Floats

    @classmethod
    def of(cls, points: _Points, sd: float) -> _Placed:
        guess = points.guess
        know = expit(points.log_odds)
        discriminations, weights = points.answering.discriminations()
        places, scatters, widths = [], [], []
        for discrimination, weight in zip(discriminations, weights, strict=True):
            curve = chance_curve(float(sd * discrimination))
            scaled = difficulties_at(points.log_odds, float(sd * discrimination))
            # -P' is E[sigma (1 - sigma)]: the variance of an answer given the learner, on average.
            within = np.clip(-curve(scaled, 1), 1e-12, 0.25)
            scatters.append(guess * (1.0 - guess) * (1.0 - know) + (1.0 - guess) ** 2 * within)
            places.append(scaled / discrimination)
            widths.append(np.log(weight * np.maximum(np.gradient(places[-1], axis=1), 1e-12)))
        chance = np.tile(guess + (1.0 - guess) * know, (1, len(weights)))
        return cls(
            points, sd, *(np.concatenate(each, axis=1) for each in (places, [chance], scatters, widths))
        )

    def posterior(
        self, radius: float, means: Floats, spreads: Floats
    ) -> tuple[Floats, Floats, Floats, float]:
        """Weight of each (mean, spread), the moments of each difficulty under it, and the evidence of all."""
        logs = self.points.log_likelihood(self.chance, self.scatter, radius) + self.log_width
        top = logs.max(axis=1, keepdims=True)
        mean, spread = (values.ravel() for values in np.meshgrid(means, spreads, indexing="ij"))
        total, first, second = _weighted_moments(self.places, np.exp(logs - top), mean, spread)
        evidence = np.log(total / spread[:, None]).sum(axis=1)
        usual = _DOUBT_OF_MEAN * _stretch(self.sd)
        evidence -= 0.5 * (mean / usual) ** 2 + math.log(usual) + 2.0 * np.log(spread / 1.5) ** 2
        whole = float(logsumexp(evidence))
        return np.exp(evidence - whole), first, second, whole + float(top.sum())


def _agreement(points: _Points, sd: float, radius: float, difficulty: Floats, variance: Floats) -> float:
    """The log-likelihood of the measured agreement of answers."""
    measured = points.totals.agreement
    if measured is None:
        return 0.0
    mean, scatter = expected_agreement(
        difficulty,
        variance,
        sd,
        guess=points.guess[:, 0],
        answers=points.answers.expected,
        n_learners=points.totals.n_learners,
        fewest=measured.fewest,
    )
    return agreement_log_likelihood(points.totals, mean, scatter, radius)


def _weights(found: list[_GivenSd]) -> Floats:
    """The weight of each sd: items, the agreement of answers, and what is usual."""
    logs = np.array(
        [fit.evidence - 0.5 * (math.log(fit.sd / _USUAL_SD) / _DOUBT_OF_SD) ** 2 for fit in found]
    )
    return np.asarray(np.exp(logs - logsumexp(logs)))


def _mixture(found: list[_GivenSd], weight: Floats) -> Estimate:
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


def _stretch(sd: float) -> float:
    """How much further apart difficulties are than at the reference sd, at the same chances.

    The mean of a logistic curve over normal abilities is flatter than the curve (Camilli 1994).
    """
    return math.sqrt((1.0 + sd**2 / 1.702**2) / (1.0 + _REFERENCE_SD**2 / 1.702**2))


@dataclass(frozen=True)
class _Laws:
    """Which priors of the difficulties are likely at the reference sd: mean and log spread, with doubts."""

    mean: float
    mean_doubt: float
    log_spread: float
    log_spread_doubt: float

    def at(self, sd: float, steps: Floats) -> tuple[Floats, Floats, float]:
        """Means and spreads to integrate over at this sd, and the size of a cell."""
        scale = _stretch(sd)
        logs = np.clip(
            self.log_spread + math.log(scale) + self.log_spread_doubt * steps,
            math.log(_SPREADS[0]),
            math.log(_SPREADS[-1]),
        )
        size = (steps[1] - steps[0]) ** 2 * scale * self.mean_doubt * self.log_spread_doubt
        return scale * (self.mean + self.mean_doubt * steps), np.exp(np.unique(logs)), size


@dataclass(frozen=True, eq=False)
class _Likely:
    """What is integrated over at every sd: radii of the noise, and priors of the difficulties or the given one."""

    radii: Floats
    laws: _Laws | Prior
    steps: Floats

    def roughly(self) -> _Likely:
        """The middle radius, and few priors."""
        return replace(self, radii=self.radii[len(self.radii) // 2 :][:1], steps=_FEW_STEPS)

    def laws_at(self, sd: float) -> tuple[Floats, Floats, float]:
        """Means and spreads, and the size of a cell."""
        if isinstance(self.laws, Prior):
            return np.array([self.laws.mean]), np.array([self.laws.spread]), 1.0
        return self.laws.at(sd, self.steps)


def _likely(points: _Points, prior: Prior | None) -> _Likely:
    """What is likely at the reference sd: first priors at the middle radius, then radii."""
    law = points.totals.law
    placed = _Placed.of(points, _REFERENCE_SD)
    laws: _Laws | Prior
    if prior is not None:
        laws, means, spreads = prior, np.array([prior.mean]), np.array([prior.spread])
    else:
        weight, *_ = placed.posterior(law.middle, _MEANS, _SPREADS)
        table = weight.reshape(len(_MEANS), len(_SPREADS))
        mean, width = _moments(table.sum(axis=1), _MEANS)
        scale, doubt = _moments(table.sum(axis=0), np.log(_SPREADS))
        laws = _Laws(mean, max(width, 0.1), scale, max(doubt, 0.05))
        means = mean + laws.mean_doubt * _FEW_STEPS
        spreads = np.exp(scale + laws.log_spread_doubt * _FEW_STEPS)
    if not law.in_a_body:
        return _Likely(np.ones(1), laws, _STEPS)
    radii = law.radii()
    logs = law.log_density(radii)
    logs += np.array([placed.posterior(float(radius), means, spreads)[3] for radius in radii])
    middle, width = _moments(np.exp(logs - logsumexp(logs)), np.log(radii))
    # At least a third of a step of the radii, which could not tell less.
    width = max(width, (math.log(radii[1]) - math.log(radii[0])) / 3.0)
    return _Likely(np.exp(middle + width * _FEW_STEPS), laws, _STEPS)


def _moments(weight: Floats, values: Floats) -> tuple[float, float]:
    mean = float(weight @ values)
    return mean, math.sqrt(max(float(weight @ values**2) - mean**2, 0.0))


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
