"""Difficulties of several schools on one scale: shifts from common items, and how far schools differ.

What school s found for item i is, on its own scale,

    y_is = d_i + a_s + t_is z_s + u_is + e_is,

d_i being the difficulty on the joint scale and -a_s the mean ability of the school on it (the mean over all learners is
0). e_is has the stated variance; t_is z_s, z_s ~ N(0, 1), is the stated doubt about the school's spread of abilities,
which stretches all of its items together; u_is ~ N(0, tau^2) is what makes an item harder in one school than in
another beside the ability of its learners. Items and shifts are fixed effects, so shifts follow from common items
alone. tau is found by restricted maximum likelihood (Viechtbauer 2005). The errors of the difficulties are averaged
over what tau may be: the restricted likelihood times a half-normal prior of scale 0.5 (Roever et al. 2021).

An item whose deviation in a school is more than chance explains, corrected for the number of tests (Holm 1979), gets a
variance between schools of its own (the moments of DerSimonian and Laird 1986), so that it hardly counts for the
shifts, and its error is honest.

The difficulties are N(mean, spread^2) at last, as within a school: mean and spread are found from all items.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from understudy.exams.estimators.noisy_totals import Prior

Floats = NDArray[np.float64]

# The chance that any item is said to misfit where none does.
MISFIT_LEVEL = 0.05
# What is usual of the standard deviation between schools: half-normal with this scale, in log-odds.
_USUAL_BETWEEN = 0.5
_BETWEEN = np.linspace(0.0, 2.0, 41)
_MOST_BETWEEN = 3.0
_ROUNDS = 20
_STEPS, _STILL = 15, 1e-3
# The variance of a cell that a school does not have.
_UNKNOWN = 1e9
_SPREADS = np.geomspace(0.3, 5.0, 25)


@dataclass(frozen=True, eq=False)
class Found:
    """What schools found, items by schools; nan where a school does not have the item.

    `difficulty` is without the pull of a prior, `variance` its own error's, `stretch` the signed error that all items
    of a school share when the spread of abilities was found wrong. `n_learners` weighs the schools. `log_density` is
    the likelihood that these are an approximation of: at difficulties of items by points, on the scale of a school (by
    number), with this variance between schools; None where they are all that is known.
    """

    difficulty: Floats
    variance: Floats
    stretch: Floats
    n_learners: Floats
    log_density: Callable[[Floats, Floats, int], Floats] | None = None


# Estimates that lower the variance of the prior by less than this share say nothing.
_LEAST_INFORMATION = 0.02


def without_prior(mean: Floats, variance: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """The estimates of a school as its totals alone give them: a posterior divided by its normal prior.

    nan where the totals told next to nothing: then the posterior is the prior.
    """
    precision = 1.0 / variance - prior.spread**-2
    precision = np.where(precision > _LEAST_INFORMATION * prior.spread**-2, precision, np.nan)
    return (mean / variance - prior.mean * prior.spread**-2) / precision, 1.0 / precision


@dataclass(frozen=True, eq=False)
class Misfit:
    """Per item and school: how much harder the item is there than elsewhere, the error of that, and its p-value.

    p-values are those of single tests; `flagged` says which hold after the correction. nan where there is nothing
    to compare with.
    """

    deviation: Floats
    standard_error: Floats
    p_value: Floats
    flagged: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Joint:
    """Difficulties on the joint scale, and what schools differ in.

    `ability` is each school's mean ability, with its error; `between` the standard deviation tau between schools, and
    `between_high` what it is at most, with 95 % of its posterior. `order_error` leaves out of the errors what moves all
    items together.
    """

    difficulty: Floats
    standard_error: Floats
    order_error: Floats
    ability: Floats
    ability_error: Floats
    between: float
    between_high: float
    misfit: Misfit
    prior: Prior
    places: Floats
    """Where each item lies on each school's own scale."""
    prior_doubt: float
    variance_between: Floats
    """Per item, averaged over what tau may be."""
    shared_variance: Floats
    """What items share with others: of the standard error, and of the order error."""


def link_schools(measure: Callable[[Floats], Found], places: Floats, sampled: float = 0.0) -> Joint:
    """All items on one scale; `sampled` is the variance of the joint zero, from which learners were there.

    `measure` gives what schools found, if items lie about at these `places` of their scales, items by schools. It is
    asked again with where they are found to lie, until that does not move. Then each item's posterior is summed over a
    grid: far from the middle of a scale a total bounds a difficulty on one side only.
    """
    for _ in range(_STEPS):
        joint = _link(found := measure(places), sampled)
        moved = np.nanmax(np.abs(joint.places - places))
        places = joint.places
        if moved < _STILL:
            break
    return joint if found.log_density is None else _summed(joint, found.log_density)


def _summed(joint: Joint, log_density: Callable[[Floats, Floats, int], Floats]) -> Joint:
    """Difficulties and errors from the likelihood itself, mean and spread of all items integrated out."""
    grid = joint.difficulty[:, None] + joint.order_error[:, None] * np.linspace(-9.0, 9.0, 145)
    value = np.zeros_like(grid)
    for school, ability in enumerate(joint.ability):
        value += log_density(grid - ability, joint.variance_between, school)
    likelihood = np.exp(value - value.max(axis=1, keepdims=True))
    spreads = joint.prior.spread * np.geomspace(1 / 2.5, 2.5, 11)
    centres = joint.prior.mean + joint.prior_doubt * np.linspace(-3.0, 3.0, 7)
    logs, first, second = [], [], []
    for spread in spreads:
        for centre in centres:
            prior = likelihood * np.exp(-0.5 * ((grid - centre) / spread) ** 2) / spread
            total = np.maximum(prior.sum(axis=1), 1e-290)
            logs.append(np.log(total).sum() - 2.0 * math.log(spread / 1.5) ** 2)
            first.append((prior * grid).sum(axis=1) / total)
            second.append((prior * grid**2).sum(axis=1) / total)
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    mean = weight @ np.array(first)
    own = np.maximum(weight @ np.array(second) - mean**2, 0.0)
    shared = np.maximum(joint.shared_variance, 0.0)
    pairs = np.array([(centre, math.log(spread)) for spread in spreads for centre in centres])
    prior = Prior(float(weight @ pairs[:, 0]), math.exp(float(weight @ pairs[:, 1])))
    return replace(
        joint,
        difficulty=mean,
        standard_error=np.sqrt(own + shared[0]),
        order_error=np.sqrt(own + shared[1]),
        prior=prior,
    )


def _link(found: Found, sampled: float) -> Joint:
    cells = _Cells.of(found)
    own = np.zeros(len(found.difficulty))
    between = _restricted_maximum(cells, own)
    for _ in range(_ROUNDS):
        usual = cells.at(np.maximum(own, between**2))
        odd = _test(usual, cells, between**2).flagged.any(axis=1) & (own == 0.0)
        if not odd.any():
            break
        own = np.where(odd, _own_variance(usual, cells), own)
        between = _restricted_maximum(cells, own)
    misfit = _one_by_one(cells.at(np.maximum(own, between**2)), cells)
    grid = np.union1d(_BETWEEN, between)
    fits = [cells.at(np.maximum(own, tau**2)) for tau in grid]
    log_weight = np.array([fit.log_likelihood for fit in fits]) - 0.5 * (grid / _USUAL_BETWEEN) ** 2
    # The grid has one point more where the maximum is: each point counts for the room around it.
    weight = np.exp(log_weight - log_weight.max()) * np.gradient(grid)
    weight /= weight.sum()
    mean, error, order, shared = _mixture(fits, weight, sampled)
    prior, doubt_of_mean, mean, error, order = _drawn_together(mean, error, order)
    best = np.maximum(own, between**2)[:, None]
    shift = fits[int(np.searchsorted(grid, between))].shift
    places = mean[:, None] + shift
    places = places + best / (best + cells.variance) * np.where(cells.known, cells.y - places, 0.0)
    shifts = np.array([fit.shift for fit in fits])
    shift = weight @ shifts
    doubt = weight @ (np.array([fit.shift_variance for fit in fits]) + shifts**2) - shift**2
    high = float(grid[min(int(np.searchsorted(np.cumsum(weight), 0.95)), len(grid) - 1)])
    return Joint(
        mean,
        error,
        order,
        -shift,
        np.sqrt(np.maximum(doubt, 0.0)),
        between,
        max(high, between),
        misfit,
        prior,
        places,
        doubt_of_mean,
        np.maximum(own, float(weight @ grid**2)),
        shared,
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells that say something, with zeros in the others."""

    known: NDArray[np.bool_]
    y: Floats
    variance: Floats
    stretch: Floats
    basis: Floats
    """Shifts whose mean over learners is 0."""

    @classmethod
    def of(cls, found: Found) -> _Cells:
        known = np.isfinite(found.difficulty) & np.isfinite(found.variance)
        share = found.n_learners / found.n_learners.sum()
        return cls(
            known,
            np.where(known, found.difficulty, 0.0),
            np.where(known, found.variance, 1.0),
            np.where(known, found.stretch, 0.0),
            null_space(share[None, :]),
        )

    def at(self, between: Floats) -> _Fit:
        return _Fit.of(self, between)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Generalised least squares with this variance between schools, per item."""

    weight: Floats
    difficulty: Floats
    variance: Floats
    own_variance: Floats
    """Of each difficulty, without what it shares with all items."""
    shift: Floats
    shift_variance: Floats
    log_likelihood: float
    rows: Floats
    """What each item takes of the effects that all share."""
    precision: Floats
    """Of these effects: shifts along the basis, then stretches."""
    right: Floats

    @classmethod
    def of(cls, cells: _Cells, between: Floats) -> _Fit:
        n_schools = cells.y.shape[1]
        spread = cells.variance + between[:, None]
        weight = np.where(cells.known, 1.0 / spread, 0.0)
        total = np.maximum(weight.sum(axis=1), 1e-12)
        # Effects that all items share: a shift and a stretch per school, items taken out.
        share = weight / total[:, None]
        rows = np.hstack([share @ cells.basis, share * cells.stretch])
        places = np.einsum("is,is->s", weight, np.ones_like(weight))
        both = np.einsum("is,is->s", weight, cells.stretch)
        twice = np.einsum("is,is->s", weight, cells.stretch**2)
        basis = cells.basis
        full = np.block(
            [
                [basis.T @ (places[:, None] * basis), basis.T * both],
                [both[:, None] * basis, np.diag(twice)],
            ]
        )
        full -= rows.T @ (total[:, None] * rows)
        full += np.diag(np.r_[np.zeros(basis.shape[1]), np.ones(n_schools)])
        middle = (share * cells.y).sum(axis=1)
        right = np.r_[
            basis.T @ (weight * cells.y).sum(axis=0), (weight * cells.stretch * cells.y).sum(axis=0)
        ]
        right -= rows.T @ (total * middle)
        inverse = np.linalg.inv(full)
        common = inverse @ right
        shift, stretched = basis @ common[: basis.shape[1]], common[basis.shape[1] :]
        difficulty = middle - rows @ common
        residual = cells.y - difficulty[:, None] - shift - cells.stretch * stretched
        centred = rows - rows.mean(axis=0)
        known = cells.known
        log_likelihood = -0.5 * (
            np.log(spread[known]).sum()
            + np.log(total[known.any(axis=1)]).sum()
            + np.linalg.slogdet(full)[1]
            + float((weight * residual**2).sum())
            + float(stretched @ stretched)
        )
        place = basis @ inverse[: basis.shape[1], : basis.shape[1]] @ basis.T
        return cls(
            weight,
            difficulty,
            1.0 / total + np.einsum("ij,jk,ik->i", rows, inverse, rows),
            1.0 / total + np.einsum("ij,jk,ik->i", centred, inverse, centred),
            shift,
            np.diag(place),
            log_likelihood,
            rows,
            full,
            right,
        )

    def without(self, cells: _Cells) -> tuple[Floats, Floats]:
        """For each item, its cells minus what the other items say about its schools, and the covariance of that."""
        n_items, n_schools = cells.y.shape
        n_shifts = cells.basis.shape[1]
        effect = np.zeros((n_items, n_schools, n_shifts + n_schools))
        effect[:, :, :n_shifts] = cells.basis
        effect[:, range(n_schools), range(n_shifts, n_shifts + n_schools)] = cells.stretch
        centred = (effect - self.rows[:, None, :]) * self.weight[:, :, None]
        precision = self.precision - np.einsum("isj,isk->ijk", centred, effect)
        right = self.right - np.einsum("isj,is->ij", centred, cells.y)
        # An item that alone links two schools leaves nothing to test it by: its deviation has no bounded error.
        covariance = np.linalg.inv(precision + 1e-9 * np.eye(precision.shape[1]))
        common = np.einsum("ijk,ik->ij", covariance, right)
        away = cells.y - np.einsum("isj,ij->is", effect, common)
        return away, np.einsum("isj,ijk,irk->isr", effect, covariance, effect)


def _one_by_one(fit: _Fit, cells: _Cells) -> Misfit:
    """The test of all cells against chance alone; one that stands out is set aside before the item's others are tested.

    Otherwise the others would differ from their mean with it.
    """
    first = _test(fit, cells, 0.0)
    flagged, aside = np.zeros((2, *cells.known.shape), dtype=bool)
    found = first
    while found.flagged.any():
        smallest = np.nanmin(np.where(found.flagged, found.p_value, 2.0), axis=1, keepdims=True)
        clearest = found.flagged & (found.p_value == smallest)
        flagged |= clearest
        aside |= clearest
        found = _test(fit, cells, 0.0, aside)
    return replace(first, flagged=flagged)


def _test(fit: _Fit, cells: _Cells, between: float, aside: NDArray[np.bool_] | None = None) -> Misfit:
    """Each cell against the item's others, on the scale that all other items make; Holm's correction for all tests.

    Deviations beyond those of a variance `between` count. In two schools an item has one test: they differ from each
    other. Cells that are `aside` are not there.
    """
    known = cells.known if aside is None else cells.known & ~aside
    n_schools = known.sum(axis=1)
    away, covariance = fit.without(cells)
    covariance[:, range(cells.y.shape[1]), range(cells.y.shape[1])] += np.where(
        known, cells.variance + between, _UNKNOWN
    )
    precision = np.linalg.inv(covariance)
    total = precision.sum(axis=2)
    precision -= total[:, :, None] * total[:, None, :] / total.sum(axis=1)[:, None, None]
    score = np.einsum("isr,ir->is", precision, np.where(known, away, 0.0))
    known_by = np.diagonal(precision, axis1=1, axis2=2)
    tested = known & (n_schools > 1)[:, None] & (known_by > 1e-6)
    known_by = np.where(tested, known_by, np.nan)
    p_value = 2.0 * norm.sf(np.abs(score) / np.sqrt(known_by))
    counts = tested & ((n_schools > 2)[:, None] | (np.cumsum(tested, axis=1) == 1))
    order = np.argsort(np.where(counts, p_value, np.inf), axis=None)[: int(counts.sum())]
    n_tests = len(order)
    ordered = p_value.ravel()[order]
    held = np.cumprod(ordered <= MISFIT_LEVEL / (n_tests - np.arange(n_tests))).astype(bool)
    found = np.zeros(tested.shape, dtype=bool)
    found.ravel()[order[held]] = True
    both = (n_schools == 2) & found.any(axis=1)
    return Misfit(score / known_by, 1.0 / np.sqrt(known_by), p_value, found | (tested & both[:, None]))


def _own_variance(fit: _Fit, cells: _Cells) -> Floats:
    """The variance between schools of each item, from its own deviations (DerSimonian and Laird 1986)."""
    away, _ = fit.without(cells)
    weight = np.where(cells.known, 1.0 / cells.variance, 0.0)
    total = np.maximum(weight.sum(axis=1), 1e-12)
    middle = (weight * away).sum(axis=1) / total
    excess = (weight * (away - middle[:, None]) ** 2).sum(axis=1) - (cells.known.sum(axis=1) - 1)
    scale = np.maximum(total - (weight**2).sum(axis=1) / total, 1e-12)
    return np.asarray(np.maximum(excess / scale, 1e-6))


def _restricted_maximum(cells: _Cells, own: Floats) -> float:
    """The standard deviation between schools, of items that have none of their own."""
    if (cells.known.sum(axis=1) > 1).sum() < 2:
        return 0.0

    def loss(tau: float) -> float:
        return -cells.at(np.maximum(own, tau**2)).log_likelihood

    start = float(_BETWEEN[np.argmin([loss(tau) for tau in _BETWEEN])])
    bounds = max(start - 0.05, 0.0), min(start + 0.05, _MOST_BETWEEN)
    best = float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)
    return best if loss(best) < loss(0.0) - 1e-9 else 0.0


def _mixture(fits: list[_Fit], weight: Floats, sampled: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Means, standard errors, order errors, and the parts of the squares of both that items share."""
    means = np.array([fit.difficulty for fit in fits])
    mean = weight @ means
    moved = np.maximum(weight @ means**2 - mean**2, 0.0)
    own = weight @ np.array([1.0 / np.maximum(fit.weight.sum(axis=1), 1e-12) for fit in fits])
    error = weight @ np.array([fit.variance for fit in fits]) + moved + sampled
    order = weight @ np.array([fit.own_variance for fit in fits]) + moved
    return mean, np.sqrt(error), np.sqrt(order), np.array([error - own, order - own])


def _drawn_together(
    mean: Floats, error: Floats, order: Floats
) -> tuple[Prior, float, Floats, Floats, Floats]:
    """The estimates under a normal law of all items, whose mean and spread are found from them.

    The spread has the same weak prior as within a school; mean and spread are integrated out.
    """
    known = error < 1e5
    value, variance = mean[known], order[known] ** 2
    total = variance + _SPREADS[:, None] ** 2
    centre = (value / total).sum(axis=1) / (1.0 / total).sum(axis=1)
    doubt = 1.0 / (1.0 / total).sum(axis=1)
    log_weight = -0.5 * (np.log(total) + (value - centre[:, None]) ** 2 / total).sum(axis=1) + 0.5 * np.log(
        doubt
    )
    log_weight -= 2.0 * np.log(_SPREADS / 1.5) ** 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    every = order**2 + _SPREADS[:, None] ** 2
    pull = order**2 / every
    means = mean + pull * (centre[:, None] - mean)
    variances = pull * _SPREADS[:, None] ** 2 + pull**2 * doubt[:, None]
    found = weight @ means
    own = weight @ variances + np.maximum(weight @ means**2 - found**2, 0.0)
    shared = np.maximum(error**2 - order**2, 0.0)
    prior = Prior(float(weight @ centre), math.exp(float(weight @ np.log(_SPREADS))))
    doubt_of_mean = math.sqrt(float(weight @ (doubt + centre**2) - (weight @ centre) ** 2))
    return prior, doubt_of_mean, found, np.sqrt(own + shared), np.sqrt(own)
