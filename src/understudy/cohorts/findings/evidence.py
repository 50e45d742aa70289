"""The tests that analyses are made of: an effect and a p-value each, two-sided.

Where the data cannot answer (too few learners, no variation), the effect is 0 and the p-value 1: an
analysis of a poor synthetic cohort then finds nothing instead of failing. Missing values (a learner
who was never active has no minutes per active week) are left out pairwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, fdtrc, ndtr, stdtr
from scipy.stats import hypergeom, rankdata

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# A smaller spread is rounding. Habits are shares, log-minutes and minutes: of order one or larger.
_FLAT = 1e-12


class Evidence(NamedTuple):
    """An effect whose sign is its direction, and a two-sided p-value."""

    effect: float
    p_value: float


NOTHING = Evidence(0.0, 1.0)


def correlation(x: ArrayLike, y: ArrayLike) -> Evidence:
    """Pearson's r and the p-value of its t statistic."""
    a, b = _complete(x, y)
    n = len(a)
    if n < 4 or _flat(a) or _flat(b):
        return NOTHING
    a, b = a - a.mean(), b - b.mean()
    r = float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))
    return Evidence(r, _p_of_t(r * np.sqrt((n - 2) / max(1.0 - r * r, 1e-300)), n - 2))


def rank_correlation(x: ArrayLike, y: ArrayLike) -> Evidence:
    """Spearman's rho; ties share a rank."""
    a, b = _complete(x, y)
    return correlation(_ranks(a), _ranks(b)) if len(a) else NOTHING


def partial_rank_correlation(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> Evidence:
    """Spearman's rho of what is left of the ranks of x and y after those of `given` are regressed out."""
    a, b, c = _complete(x, y, given)
    n = len(a)
    if n < 5 or _flat(a) or _flat(b):
        return NOTHING
    design = np.column_stack([np.ones(n), _ranks(c)])
    left = []
    for ranks in (_ranks(a), _ranks(b)):
        rest = ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0]
        if np.abs(rest).max() < 1e-9 * n:
            return NOTHING
        left.append(rest)
    r = correlation(*left).effect
    return Evidence(r, _p_of_t(r * np.sqrt((n - 3) / max(1.0 - r * r, 1e-300)), n - 3))


def mean_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Welch's t test; the effect is the difference first - second in pooled standard deviations."""
    (a,), (b,) = _complete(first), _complete(second)
    if len(a) < 2 or len(b) < 2:
        return NOTHING
    var_a, var_b = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    difference = float(a.mean() - b.mean())
    if var_a + var_b <= (_FLAT * max(np.abs(a).max(), np.abs(b).max(), 1.0)) ** 2:
        return NOTHING
    freedom = (var_a + var_b) ** 2 / (var_a**2 / (len(a) - 1) + var_b**2 / (len(b) - 1))
    spread = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    return Evidence(difference / float(spread), _p_of_t(difference / np.sqrt(var_a + var_b), freedom))


def mean_away_from_zero(values: ArrayLike) -> Evidence:
    """One-sample t test, also of paired differences; the effect is the mean in standard deviations."""
    (a,) = _complete(values)
    if len(a) < 3 or _flat(a):
        # All alike: either rounding, or so certain that no test is needed and none is possible.
        return NOTHING
    effect = float(a.mean() / a.std(ddof=1))
    return Evidence(effect, _p_of_t(effect * np.sqrt(len(a)), len(a) - 1))


def rank_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Mann-Whitney test (normal approximation, ties, continuity); the effect is rank-biserial."""
    (a,), (b,) = _complete(first), _complete(second)
    n_a, n_b = len(a), len(b)
    n = n_a + n_b
    if n_a < 2 or n_b < 2:
        return NOTHING
    ranks = _ranks(np.concatenate([a, b]))
    _, ties = np.unique(ranks, return_counts=True)
    variance = n_a * n_b / 12.0 * (n + 1.0 - (ties**3.0 - ties).sum() / (n * (n - 1.0)))
    if variance <= 0:
        return NOTHING
    u = ranks[:n_a].sum() - n_a * (n_a + 1) / 2.0
    excess = u - n_a * n_b / 2.0
    z = max(abs(excess) - 0.5, 0.0) / np.sqrt(variance)
    return Evidence(float(2.0 * excess / (n_a * n_b)), float(2.0 * ndtr(-z)))


def rank_differences(values: ArrayLike, group: ArrayLike) -> Evidence:
    """Kruskal and Wallis: do the groups differ at all? The effect is epsilon squared, without direction."""
    a, g = _complete(values, group)
    n = len(a)
    codes, place, sizes = np.unique(g, return_inverse=True, return_counts=True)
    if n < 5 or len(codes) < 2:
        return NOTHING
    ranks = _ranks(a)
    _, ties = np.unique(ranks, return_counts=True)
    correction = 1.0 - (ties**3.0 - ties).sum() / (n**3.0 - n)
    if correction <= 0:
        return NOTHING
    sums = np.bincount(place, weights=ranks)
    h = (12.0 / (n * (n + 1.0)) * (sums**2 / sizes).sum() - 3.0 * (n + 1.0)) / correction
    return Evidence(float(h / (n - 1.0)), float(chdtrc(len(codes) - 1, max(h, 0.0))))


def mean_differences(values: ArrayLike, group: ArrayLike) -> Evidence:
    """One-way analysis of variance; the effect is eta squared, without direction."""
    a, g = _complete(values, group)
    n = len(a)
    codes, place, sizes = np.unique(g, return_inverse=True, return_counts=True)
    if n - len(codes) < 2 or len(codes) < 2 or _flat(a):
        return NOTHING
    means = np.bincount(place, weights=a) / sizes
    between = float((sizes * (means - a.mean()) ** 2).sum())
    within = float(((a - means[place]) ** 2).sum())
    if within <= 0:
        return NOTHING
    f = (between / (len(codes) - 1)) / (within / (n - len(codes)))
    return Evidence(between / (between + within), float(fdtrc(len(codes) - 1, n - len(codes), f)))


def spread_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Brown and Forsythe's test of two spreads; the effect is the log-ratio of the mean deviations."""
    (a,), (b,) = _complete(first), _complete(second)
    if len(a) < 3 or len(b) < 3:
        return NOTHING
    deviations = [np.abs(one - np.median(one)) for one in (a, b)]
    if min(one.mean() for one in deviations) <= 0:
        return NOTHING
    group = np.repeat([0, 1], [len(a), len(b)])
    effect = float(np.log(deviations[0].mean() / deviations[1].mean()))
    return Evidence(effect, mean_differences(np.concatenate(deviations), group).p_value)


def share_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Fisher's exact test of two shares of flags; the effect is the difference first - second."""
    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if not len(a) or not len(b):
        return NOTHING
    hits, n = int(a.sum() + b.sum()), len(a) + len(b)
    possible = np.arange(max(0, hits - len(b)), min(hits, len(a)) + 1)
    chances = hypergeom.pmf(possible, n, hits, len(a))
    observed = chances[int(a.sum()) - possible[0]]
    p = float(chances[chances <= observed * (1.0 + 1e-7)].sum())
    return Evidence(float(a.mean() - b.mean()), min(p, 1.0))


def regression(predictors: ArrayLike, y: ArrayLike) -> list[Evidence]:
    """Least squares of y on standardised predictors with an intercept: a test for each of them.

    Effects are standardised coefficients. Where predictors determine each other, nothing is found.
    """
    x, target = _complete_rows(predictors, y)
    usable = np.array([not _flat(column) for column in x.T], dtype=bool)
    fit = _least_squares(x[:, usable], target)
    if fit is None:
        return [NOTHING] * x.shape[1]
    tests = iter(
        Evidence(float(slope), _p_of_t(float(slope / error), fit.freedom))
        for slope, error in zip(fit.slopes, fit.errors, strict=True)
    )
    return [next(tests) if one else NOTHING for one in usable]


class _Fit(NamedTuple):
    slopes: Floats
    errors: Floats
    freedom: int


def _least_squares(x: Floats, y: Floats) -> _Fit | None:
    """Standardised slopes and their errors; none where they are not determined."""
    n, k = x.shape
    if not k or n < k + 4 or _flat(y) or any(_flat(column) for column in x.T):
        return None
    design = np.column_stack([np.ones(n), _standardised(x)])
    if np.linalg.matrix_rank(design) < k + 1:
        return None
    goal = _standardised(y[:, None])[:, 0]
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ goal
    rest = goal - design @ slopes
    freedom = n - k - 1
    errors = np.sqrt(np.diag(inverse) * max(float(rest @ rest), 1e-300) / freedom)
    return _Fit(slopes[1:], errors[1:], freedom)


def logistic_regression(predictors: ArrayLike, flag: ArrayLike) -> list[Evidence]:
    """Logistic regression of a flag on standardised predictors, Wald tests."""
    return ordinal_regression(predictors, np.asarray(flag, dtype=np.int64))


def ordinal_regression(predictors: ArrayLike, level: ArrayLike) -> list[Evidence]:
    """Proportional-odds regression of an ordered level on standardised predictors, Wald tests.

    P(level <= j) = expit(cut_j - x b); Newton's method with halved steps. The log-likelihood is
    concave (Pratt 1981). Where the levels are separated, the estimates run away and nothing is found.
    """
    x, levels = _complete_rows(predictors, level)
    codes, y = np.unique(levels, return_inverse=True)
    n, k = x.shape
    usable = np.array([not _flat(column) for column in x.T], dtype=bool)
    n_cuts = len(codes) - 1
    if n_cuts < 1 or n < k + n_cuts + 3 or not usable.any():
        return [NOTHING] * k
    z = _standardised(x[:, usable])
    if np.linalg.matrix_rank(np.column_stack([np.ones(n), z])) < z.shape[1] + 1:
        return [NOTHING] * k
    below = np.cumsum(np.bincount(y))[:-1] / n
    theta = np.concatenate([np.log(below / (1.0 - below)), np.zeros(z.shape[1])])
    fitted = _maximise(theta, z, y, n_cuts)
    if fitted is None:
        return [NOTHING] * k
    theta, errors = fitted
    tests = iter(
        Evidence(float(slope), float(2.0 * ndtr(-abs(slope / error))))
        for slope, error in zip(theta[n_cuts:], errors[n_cuts:], strict=True)
    )
    return [next(tests) if one else NOTHING for one in usable]


def _maximise(theta: Floats, z: Floats, y: NDArray[np.intp], n_cuts: int) -> tuple[Floats, Floats] | None:
    value, slope, curvature = _log_odds_fit(theta, z, y, n_cuts)
    for _ in range(50):
        try:
            step = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:
            return None
        for _ in range(30):
            tried = theta - step
            if (np.diff(tried[:n_cuts]) > 0).all():
                result = _log_odds_fit(tried, z, y, n_cuts)
                if result[0] >= value - 1e-12:
                    break
            step = step / 2
        else:
            return None
        theta, (value, slope, curvature) = tried, result
        if np.abs(step).max() < 1e-8:
            break
    if np.abs(theta[n_cuts:]).max() > 25:
        return None
    try:
        variances = np.diag(np.linalg.inv(-curvature))
    except np.linalg.LinAlgError:
        return None
    return (theta, np.sqrt(variances)) if (variances > 0).all() else None


def _log_odds_fit(theta: Floats, z: Floats, y: NDArray[np.intp], n_cuts: int) -> tuple[float, Floats, Floats]:
    """Log-likelihood of the proportional-odds model, its gradient and its Hessian."""
    n = len(y)
    rows = np.arange(n)
    # The design of the upper and the lower edge of each learner's level; outer edges are infinite.
    edges, laws = [], []
    for place in (y, y - 1):
        inner = (place >= 0) & (place < n_cuts)
        design = np.zeros((n, len(theta)))
        design[rows[inner], place[inner]] = 1.0
        design[inner, n_cuts:] = -z[inner]
        chance = np.where(place < 0, 0.0, 1.0)
        chance[inner] = 1.0 / (1.0 + np.exp(-np.clip(design[inner] @ theta, -500, 500)))
        edges.append(design)
        laws.append(chance)
    (upper, lower), (f_upper, f_lower) = edges, laws
    p = np.maximum(f_upper - f_lower, 1e-100)
    d_upper, d_lower = f_upper * (1 - f_upper), f_lower * (1 - f_lower)
    slope = ((d_upper / p)[:, None] * upper - (d_lower / p)[:, None] * lower).sum(axis=0)
    bend_upper = d_upper * (1 - 2 * f_upper) / p - (d_upper / p) ** 2
    bend_lower = -d_lower * (1 - 2 * f_lower) / p - (d_lower / p) ** 2
    cross = upper.T @ (((d_upper / p) * (d_lower / p))[:, None] * lower)
    curvature = (
        upper.T @ (bend_upper[:, None] * upper) + lower.T @ (bend_lower[:, None] * lower) + cross + cross.T
    )
    return float(np.log(p).sum()), slope, curvature


def sobel(cause: ArrayLike, mediator: ArrayLike, y: ArrayLike) -> Evidence:
    """Sobel's test of the indirect effect a b: mediator = a cause, y = b mediator + c cause (1982)."""
    first, second, third = _complete(cause, mediator, y)
    on_mediator = _least_squares(first[:, None], second)
    on_outcome = _least_squares(np.column_stack([second, first]), third)
    if on_mediator is None or on_outcome is None:
        return NOTHING
    a, b = float(on_mediator.slopes[0]), float(on_outcome.slopes[0])
    error = float(np.hypot(b * on_mediator.errors[0], a * on_outcome.errors[0]))
    return Evidence(a * b, float(2.0 * ndtr(-abs(a * b) / error))) if error > 0 else NOTHING


def serial_correlation(series: Floats) -> Evidence:
    """Wald and Wolfowitz's test (1943), pooled over learners (rows): are the weeks in random order?

    The effect is the mean autocorrelation r of successive weeks, less its expected value of -1/T. Its
    variance over all orders of a learner's weeks is exact; a t test on the r of learners with few active
    weeks, whose law is skewed, raised twice as many false alarms as it should.
    """
    n_weeks = series.shape[1]
    centred = series - series.mean(axis=1, keepdims=True)
    power = (centred**2).sum(axis=1)
    varies = power > 1e-12
    if varies.sum() < 3 or n_weeks < 4:
        return NOTHING
    c = centred[varies] / np.sqrt(power[varies])[:, None]
    fourth = (c**4).sum(axis=1)
    excess = (c[:, 1:] * c[:, :-1]).sum(axis=1) + 1.0 / n_weeks
    # Expected products of two, three and four different weeks, by how many pairs of neighbours share one.
    t = float(n_weeks)
    same = (t - 1) * (1 - fourth) / (t * (t - 1))
    chained = 2 * (t - 2) * (2 * fourth - 1) / (t * (t - 1) * (t - 2))
    apart = (t - 2) * (t - 3) * (3 - 6 * fourth) / (t * (t - 1) * (t - 2) * (t - 3))
    variance = float((same + chained + apart - 1.0 / t**2).sum())
    if variance <= 1e-12:
        return NOTHING
    z = float(excess.sum()) / np.sqrt(variance)
    return Evidence(float(excess.mean()), float(2.0 * ndtr(-abs(z))))


def gini(values: ArrayLike) -> float:
    """Gini's coefficient: 0 when all have the same."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n, total = len(ordered), float(ordered.sum())
    if not n or total <= 0:
        return 0.0
    return float(2.0 * (np.arange(1, n + 1) @ ordered) / (n * total) - (n + 1.0) / n)


def inequality_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Difference of two Gini coefficients with jackknife errors, t with the smaller group's freedom."""
    (a,), (b,) = _complete(first), _complete(second)
    if min(len(a), len(b)) < 5 or a.sum() <= 0 or b.sum() <= 0:
        return NOTHING
    variances = []
    for one in (a, b):
        left_out = np.array([gini(np.delete(one, i)) for i in range(len(one))])
        variances.append((len(one) - 1) * left_out.var())
    error = float(np.sqrt(sum(variances)))
    difference = gini(a) - gini(b)
    if error < 1e-12:
        return NOTHING
    return Evidence(difference, _p_of_t(difference / error, min(len(a), len(b)) - 1))


def clusters(points: Floats, k: int) -> NDArray[np.intp]:
    """k-means on standardised columns, without chance: starts far apart, from the point next to the mean."""
    if not len(points):
        return np.zeros(0, dtype=np.intp)
    z = _standardised(points)
    centres = [z[np.argmin((z**2).sum(axis=1))]]
    while len(centres) < k:
        distance = np.min([((z - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
        centres.append(z[np.argmax(distance)])
    middle = np.array(centres)
    place = np.zeros(len(z), dtype=np.intp)
    for _ in range(100):
        nearest = np.argmin(((z[:, None, :] - middle[None]) ** 2).sum(axis=2), axis=1)
        for cluster in range(k):
            if (nearest == cluster).any():
                middle[cluster] = z[nearest == cluster].mean(axis=0)
        if (nearest == place).all():
            break
        place = nearest
    return place


def _ranks(values: Floats) -> Floats:
    """Ranks with ties; what differs by rounding only (two learners with one active week each) is a tie."""
    ranks: Floats = rankdata(np.round(values, 12))
    return ranks


def _complete(*columns: ArrayLike) -> list[Floats]:
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    present = np.all([np.isfinite(array) for array in arrays], axis=0)
    return [array[present] for array in arrays]


def _complete_rows(predictors: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    x, target = np.asarray(predictors, dtype=np.float64), np.asarray(y, dtype=np.float64)
    present = np.isfinite(x).all(axis=1) & np.isfinite(target)
    return x[present], target[present]


def _flat(values: Floats) -> bool:
    return not len(values) or bool(np.ptp(values) <= _FLAT * max(np.abs(values).max(), 1.0))


def _standardised(x: Floats) -> Floats:
    spread = x.std(axis=0)
    scaled: Floats = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def _p_of_t(t: float, freedom: float) -> float:
    return float(2.0 * stdtr(freedom, -abs(t)))
