"""Partial credit: marginal maximum likelihood for items with points, and for items that discriminate differently.

At ability t a learner has k of an item's steps with a chance proportional to exp(a k t - b_k), where abilities are
N(0, 1) and b_0 = 0 (Masters 1982; Muraki 1992). With one slope `a` for all items this is Masters' partial credit model
with abilities of standard deviation a; items of one step make it the Rasch model. With a slope per item it is the
generalised model, and for items of one step the two-parameter model (Bock and Aitkin 1981).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Abilities are integrated up to so many standard deviations; beyond are 1e-15 of them.
_REACH = 8.0
# Slopes stay in here: below, answers say nothing about abilities; above, they say everything.
SMALLEST_SLOPE, LARGEST_SLOPE = 0.01, 20.0
_LOG_SLOPES = (math.log(SMALLEST_SLOPE), math.log(LARGEST_SLOPE))
# Where the expected points are half of all is searched for within these abilities.
_FURTHEST = 60.0
_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Credit:
    """What steps of an item cost: the chance of k at ability b is proportional to exp(slope k b - costs[k]).

    Costs are on the scale of abilities N(0, sd^2) where the slope is 1 (or by item, where slopes differ); a number of
    steps that no learner had costs inf. `difficulty` is the ability at which half of the points are expected: -inf
    (inf) where the learners' fewest (most) points are more (less) than that, nan where all had equally many.
    """

    costs: Floats
    difficulty: float
    standard_error: float
    slope: float = 1.0
    slope_error: float = 0.0

    @property
    def thresholds(self) -> Floats:
        """Where k steps become more likely than k - 1, for k from 1 on; not finite around steps that no learner had."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.diff(self.costs) / self.slope)


@dataclass(frozen=True, eq=False)
class PartialCredit:
    """Items, and the standard deviation of abilities; `sd_error` is nan where the answers do not bound it."""

    items: tuple[Credit, ...]
    sd: float
    sd_error: float
    log_likelihood: float


def fit_partial_credit(
    points: NDArray[np.int8], maxima: Ints, *, slopes: bool = False, tolerance: float = 1e-7
) -> PartialCredit:
    """Fit a matrix of learners by items: steps from 0 to the item's maximum, below 0 not answered.

    With `slopes` each item has its own slope and abilities are N(0, 1); else there is one for all, which is the
    standard deviation of abilities. An item where all learners have equally many points tells nothing and is left out.
    """
    seen = [_seen(points[:, i], int(maximum)) for i, maximum in enumerate(maxima)]
    used = [i for i, counts in enumerate(seen) if np.count_nonzero(counts) > 1]
    if not used:
        return PartialCredit(tuple(_alike(counts) for counts in seen), math.nan, math.nan, 0.0)
    model = _Model.of(points[:, used], [seen[i] for i in used], slopes=slopes)
    found = model.maximise(tolerance)
    items = [_alike(counts) for counts in seen]
    n_costs = len(model.step)
    covariance = _inverse(found.information)
    slope = np.exp(found.parameters[n_costs:])
    sd = 1.0 if slopes else float(slope[0])
    for place, i in enumerate(used):
        own = np.flatnonzero(model.item == place)
        if slopes:
            # Abilities are N(0, 1): the slope is part of the item.
            items[i] = _credit(seen[i], model, found, covariance, own, n_costs + place)
        else:
            items[i] = _credit(seen[i], model, found, covariance, own, n_costs, scale=sd)
    error = math.sqrt(max(float(covariance[n_costs, n_costs]), 0.0)) if not slopes else 0.0
    at_limit = not slopes and not SMALLEST_SLOPE * 1.01 < sd < LARGEST_SLOPE * 0.99
    sd_error = math.nan if at_limit or not math.isfinite(error) else sd * error
    return PartialCredit(tuple(items), sd, sd_error, -found.value)


def half_points(costs: Floats, slope: float = 1.0) -> float:
    """The ability at which half of all points are expected; infinite where they always, or never, are."""
    steps = np.arange(len(costs), dtype=np.float64)
    # Imported here, and below: it is slow to load, and not every command needs it.
    from scipy.optimize import brentq

    possible = np.flatnonzero(np.isfinite(costs))
    half = float(steps[-1]) / 2.0
    if possible[0] >= half:
        return -math.inf
    if possible[-1] <= half:
        return math.inf

    def beyond(place: float) -> float:
        logs = steps[possible] * place - costs[possible]
        return float(np.exp(logs - logsumexp(logs)) @ steps[possible]) - half

    # Between the steepest and the flattest rise of the costs, and a little beyond.
    slopes = np.diff(costs[possible]) / np.diff(possible)
    reach = float(np.abs(slopes).max()) + _FURTHEST
    return float(brentq(beyond, -reach, reach, xtol=1e-12)) / slope


def _seen(column: NDArray[np.int8], maximum: int) -> Ints:
    return np.bincount(column[column >= 0], minlength=maximum + 1).astype(np.int64)


def _alike(counts: Ints) -> Credit:
    """An item where all learners had as many points, or none answered."""
    costs = np.full(len(counts), np.inf)
    costs[counts > 0] = 0.0
    difficulty = half_points(costs) if counts.any() else math.nan
    return Credit(costs, difficulty, abs(difficulty))


def _credit(
    counts: Ints,
    model: _Model,
    found: _Maximum,
    covariance: Floats,
    own: Ints,
    slope_at: int,
    scale: float | None = None,
) -> Credit:
    """An item's costs, relative to none; `scale` is the common slope, which belongs to the abilities."""
    first = int(np.flatnonzero(counts)[0])
    costs = np.full(len(counts), np.inf)
    costs[first] = 0.0
    costs[model.step[own]] = found.parameters[own]
    slope = 1.0 if scale is not None else float(np.exp(found.parameters[slope_at]))
    slope_error = 0.0 if scale is not None else slope * math.sqrt(max(covariance[slope_at, slope_at], 0.0))
    difficulty = half_points(costs, slope)
    if not math.isfinite(difficulty):
        return Credit(costs, difficulty, math.inf, slope, slope_error)
    # The implicit function theorem: where the expected points stay half, and the delta method.
    steps = np.arange(len(costs), dtype=np.float64)
    logs = slope * steps * difficulty - costs
    chance = np.exp(logs - logsumexp(logs))
    variance = float(chance @ (steps - steps[-1] / 2.0) ** 2)
    gradient = chance[model.step[own]] * (model.step[own] - steps[-1] / 2.0) / (variance * slope)
    places = own
    if scale is None:
        gradient, places = np.append(gradient, -difficulty), np.append(own, slope_at)
    error = math.sqrt(max(float(gradient @ covariance[np.ix_(places, places)] @ gradient), 0.0))
    return Credit(costs, difficulty, error, slope, slope_error)


def _inverse(information: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.inv(information))
    except np.linalg.LinAlgError:
        return np.full_like(information, np.nan)


@dataclass(frozen=True, eq=False)
class _Maximum:
    parameters: Floats
    information: Floats
    value: float


@dataclass(frozen=True, eq=False)
class _Model:
    """Answers in groups, and which parameter is what: costs of (`item`, `step`), then logarithms of slopes.

    With one slope, a learner's points and which items were answered are sufficient for the ability, so that learners
    with equal ones are a group; with a slope per item, learners with equal answers are.
    """

    item: Ints
    step: Ints
    first: Ints
    counts: Floats
    patterns: Bools
    pattern: Ints
    """Of each group; groups are in the order of their patterns."""
    size: Floats
    score: Floats
    """Steps of each group: groups by slopes."""
    slope_of: Floats
    """Items by slopes: which one an item has."""

    @classmethod
    def of(cls, points: NDArray[np.int8], seen: list[Ints], *, slopes: bool) -> _Model:
        n_items = points.shape[1]
        slope_of = np.eye(n_items) if slopes else np.ones((n_items, 1))
        patterns, pattern = np.unique(points >= 0, axis=0, return_inverse=True)
        scores = np.maximum(points, 0).astype(np.int64) @ slope_of.astype(np.int64)
        groups, size = np.unique(np.column_stack([pattern.ravel(), scores]), axis=0, return_counts=True)
        observed = [np.flatnonzero(counts) for counts in seen]
        return cls(
            item=np.concatenate([np.full(len(steps) - 1, i) for i, steps in enumerate(observed)]),
            step=np.concatenate([steps[1:] for steps in observed]),
            first=np.array([steps[0] for steps in observed]),
            counts=np.concatenate(
                [counts[steps[1:]] for counts, steps in zip(seen, observed, strict=True)]
            ).astype(np.float64),
            patterns=patterns,
            pattern=groups[:, 0],
            size=size.astype(np.float64),
            score=groups[:, 1:].astype(np.float64),
            slope_of=slope_of,
        )

    def maximise(self, tolerance: float) -> _Maximum:
        """Newton's method within a trust region, with the observed information."""
        n_slopes = self.slope_of.shape[1]
        start = np.zeros(len(self.step) + n_slopes)
        # Of abilities that are all alike: the logarithm of how often the first number of steps was seen for another.
        n_answers = np.zeros(len(self.first))
        for place, answered in enumerate(self.patterns):
            n_answers += answered * self.size[self.pattern == place].sum()
        firsts = n_answers - np.bincount(self.item, self.counts, minlength=len(self.first))
        start[: len(self.step)] = np.log(firsts[self.item] / self.counts)
        known: dict[bytes, tuple[float, Floats, Floats]] = {}

        def at(parameters: Floats) -> tuple[float, Floats, Floats]:
            key = parameters.tobytes()
            if key not in known:
                known.clear()
                known[key] = self.evaluate(parameters)
            return known[key]

        from scipy.optimize import minimize

        scale = float(self.size.sum())
        found: Any = minimize(  # type: ignore[call-overload]
            lambda p: at(p)[0] / scale,
            start,
            jac=lambda p: at(p)[1] / scale,
            hess=lambda p: at(p)[2] / scale,
            method="trust-exact",
            options={"gtol": tolerance, "maxiter": 300},
        )
        value, _, information = at(found.x)
        parameters = found.x.copy()
        parameters[len(self.step) :] = np.clip(parameters[len(self.step) :], *_LOG_SLOPES)
        return _Maximum(parameters, information, value)

    def evaluate(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        """Negative log-likelihood, its gradient and second derivatives (Louis 1982).

        With u the derivatives of a learner's term given the ability t, the derivatives of the likelihood are E u and
        the second ones E du - Cov u, over the posterior of t. For the cost of k steps u is -1[k] + P_k(t), for the
        logarithm of a slope a it is a t (steps - expected steps).
        """
        n_costs, n_slopes = len(self.step), self.slope_of.shape[1]
        slope = np.exp(np.clip(parameters[n_costs:], *_LOG_SLOPES))
        by_item = self.slope_of @ slope
        costs = parameters[:n_costs]
        ability, log_prior = self._nodes(by_item)
        first_logs = by_item * self.first * ability[:, None]
        logs = by_item[self.item] * self.step * ability[:, None] - costs
        top = np.maximum(first_logs, _by_item(np.maximum, logs, self.item))
        chance = np.exp(logs - top[:, self.item])
        total = np.exp(first_logs - top) + _by_item(np.add, chance, self.item)
        log_total = top + np.log(total)
        chance /= total[:, self.item]
        mean = self.first + _by_item(np.add, chance * (self.step - self.first[self.item]), self.item)
        offset = self.step - mean[:, self.item]
        at_first = (self.first - mean) ** 2 * np.exp(first_logs - log_total)
        variance = at_first + _by_item(np.add, chance * offset**2, self.item)
        same = self.item[:, None] == self.item[None, :]

        value = float(self.counts @ costs)
        gradient = np.concatenate([self.counts, np.zeros(n_slopes)])
        information = np.zeros((n_costs + n_slopes, n_costs + n_slopes))
        starts = np.searchsorted(self.pattern, np.arange(len(self.patterns) + 1))
        for place, answered in enumerate(self.patterns):
            if not answered.any():
                continue
            own = answered[self.item]
            c = np.flatnonzero(own)
            weight_of = self.slope_of * answered[:, None]
            p = chance[:, c]
            moved = ability[:, None] * (mean @ weight_of)  # t times the expected steps, by slope
            spread = ability[:, None] ** 2 * (variance @ weight_of)
            for start in range(starts[place], starts[place + 1], _BLOCK):
                rows = slice(start, min(start + _BLOCK, starts[place + 1]))
                size, score = self.size[rows], self.score[rows]
                log_posterior = (score @ slope)[:, None] * ability - log_total @ answered + log_prior
                log_mean = logsumexp(log_posterior, axis=1)
                posterior = np.exp(log_posterior - log_mean[:, None])
                value -= float(size @ log_mean)
                by_node = size @ posterior
                expected = posterior @ p
                first, second = posterior @ ability, posterior @ ability**2
                tilt = slope * (score * first[:, None] - posterior @ moved)
                gradient[c] -= size @ expected
                gradient[n_costs:] -= size @ tilt
                products = (p * by_node[:, None]).T @ p
                costs_block = expected.T @ (expected * size[:, None]) - products
                costs_block -= products * same[np.ix_(c, c)]
                costs_block[np.arange(len(c)), np.arange(len(c))] += by_node @ p
                information[np.ix_(c, c)] += costs_block
                # E[u u'] of costs and slopes, and what the slopes change about the costs.
                both = (posterior @ (p * ability[:, None])).T @ (score * size[:, None])
                both -= (p * by_node[:, None]).T @ moved
                own_change = (by_node * ability) @ (p * offset[:, c])
                cross = expected.T @ (tilt * size[:, None]) - both * slope
                cross -= own_change[:, None] * self.slope_of[self.item[c]] * slope
                information[np.ix_(c, np.arange(n_costs, n_costs + n_slopes))] += cross
                information[np.ix_(np.arange(n_costs, n_costs + n_slopes), c)] += cross.T
                mixed = score.T @ ((posterior @ (ability[:, None] * moved)) * size[:, None])
                twice = score.T @ (score * (size * second)[:, None]) - mixed - mixed.T
                twice += (moved * by_node[:, None]).T @ moved
                slopes_block = tilt.T @ (tilt * size[:, None]) - twice * np.outer(slope, slope)
                slopes_block += np.diag(by_node @ spread * slope**2 - size @ tilt)
                information[n_costs:, n_costs:] += slopes_block
        # A slope at its smallest or largest stays there.
        for stuck in n_costs + np.flatnonzero(slope != np.exp(parameters[n_costs:])):
            gradient[stuck], information[stuck, :], information[:, stuck] = 0.0, 0.0, 0.0
            information[stuck, stuck] = 1.0
        return value, gradient, information

    def _nodes(self, slope: Floats) -> tuple[Floats, Floats]:
        """Equally spaced abilities and the logarithms of their weights.

        As in `marginal.py`: the narrowest posterior has a precision of at most 1 + sum of (slope steps)^2 / 4, and the
        sum over a grid of 0.9 times its standard deviation misses 5e-11 of it.
        """
        most = np.maximum(np.zeros(len(self.first)), self.first)
        np.maximum.at(most, self.item, self.step)
        spacing = min(0.5, 0.9 / math.sqrt(1.0 + float(((slope * most) ** 2).sum()) / 4.0))
        half = math.ceil(_REACH / spacing)
        ability = spacing * np.arange(-half, half + 1, dtype=np.float64)
        log_prior = -0.5 * ability**2
        return ability, log_prior - logsumexp(log_prior)


def _by_item(combine: np.ufunc, values: Floats, item: Ints) -> Floats:
    """Values by (node, cost) combined into (node, item); costs are in the order of their items."""
    starts = np.searchsorted(item, np.arange(item[-1] + 1))
    return np.asarray(combine.reduceat(values, starts, axis=1))
