"""Evidence: an effect and a two-sided p-value, from scipy's tests and a few of our own.

Where the data cannot answer (too few learners, no variation), there is `NO_EVIDENCE`: an analysis of a
poor synthetic cohort then finds nothing instead of failing. Missing values (a learner who was never
active has no minutes per active week) are left out, pairwise where values are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.cluster.vq import kmeans, vq
from scipy.special import fdtrc, ndtr, stdtr

Floats = NDArray[np.float64]

# A smaller spread is rounding. Habits are shares, log-minutes and minutes: of order one or larger.
_FLAT = 1e-12


class Evidence(NamedTuple):
    """An effect whose sign is its direction, and a two-sided p-value."""

    effect: float
    p_value: float


NO_EVIDENCE = Evidence(0.0, 1.0)
Test = Callable[..., Evidence]


def _paired(test: Test) -> Test:
    """A test of columns with a value per learner: enough learners with all of them, and none flat."""

    @wraps(test)
    def checked(*columns: ArrayLike) -> Evidence:
        known = _complete(*columns)
        if len(known[0]) < 4 or any(_flat(column) for column in known):
            return NO_EVIDENCE
        return test(*known)

    return checked


def _apart(test: Test) -> Test:
    """A test of two groups: enough learners in both, and not all the same value."""

    @wraps(test)
    def checked(*groups: ArrayLike) -> Evidence:
        known = [_complete(group)[0] for group in groups]
        if min(map(len, known)) < 2 or _flat(np.concatenate(known)):
            return NO_EVIDENCE
        return test(*known)

    return checked


@_paired
def correlation(x: Floats, y: Floats) -> Evidence:
    """Pearson's r."""
    return Evidence(*map(float, stats.pearsonr(x, y)))


@_paired
def rank_correlation(x: Floats, y: Floats) -> Evidence:
    """Spearman's rho; ties share a rank."""
    return Evidence(*map(float, stats.spearmanr(_tied(x), _tied(y))))


@_paired
def partial_rank_correlation(x: Floats, y: Floats, given: Floats) -> Evidence:
    """Spearman's rho of what is left of the ranks of x and y after those of `given` are regressed out."""
    rho = np.asarray(stats.spearmanr(np.column_stack([_tied(x), _tied(y), _tied(given)])).statistic)
    xy, xz, yz = rho[0, 1], rho[0, 2], rho[1, 2]
    left = (1.0 - xz**2) * (1.0 - yz**2)
    freedom = len(x) - 3
    if left < 1e-12 or freedom < 2:
        return NO_EVIDENCE
    r = float(np.clip((xy - xz * yz) / np.sqrt(left), -1.0, 1.0))
    return Evidence(r, _p_of_t(r * np.sqrt(freedom / max(1.0 - r * r, 1e-300)), freedom))


@_apart
def mean_difference(first: Floats, second: Floats) -> Evidence:
    """Welch's t test; the effect is the difference first - second in pooled standard deviations."""
    (mean, sd, n), (other, other_sd, m) = ((x.mean(), x.std(ddof=1), len(x)) for x in (first, second))
    if _flat(first) and _flat(second):
        return NO_EVIDENCE
    # From the moments: thirty times as fast as from the values.
    p = stats.ttest_ind_from_stats(mean, sd, n, other, other_sd, m, equal_var=False).pvalue
    return Evidence(float((mean - other) / np.sqrt((sd**2 + other_sd**2) / 2)), float(p))


def mean_away_from_zero(values: ArrayLike) -> Evidence:
    """One-sample t test, also of paired differences; the effect is the mean in standard deviations."""
    (known,) = _complete(values)
    if len(known) < 3 or _flat(known):
        return NO_EVIDENCE
    effect = float(known.mean() / known.std(ddof=1))
    return Evidence(effect, _p_of_t(effect * np.sqrt(len(known)), len(known) - 1))


@_apart
def rank_difference(first: Floats, second: Floats) -> Evidence:
    """Mann-Whitney test (normal approximation, ties, continuity); the effect is rank-biserial."""
    u, p = stats.mannwhitneyu(_tied(first), _tied(second), method="asymptotic")
    return Evidence(float(2.0 * u / (len(first) * len(second)) - 1.0), float(p))


@_paired
def rank_differences(values: Floats, group: Floats) -> Evidence:
    """Kruskal and Wallis: do the groups differ at all? The effect is epsilon squared, without direction."""
    h, p = stats.kruskal(*_parts(_tied(values), group))
    return Evidence(float(h / (len(values) - 1.0)), float(p))


@_paired
def mean_differences(values: Floats, group: Floats) -> Evidence:
    """One-way analysis of variance; the effect is eta squared, without direction."""
    parts = _parts(values, group)
    if len(values) - len(parts) < 2 or all(_flat(part) for part in parts):
        return NO_EVIDENCE
    f, p = stats.f_oneway(*parts)
    between = float(f) * (len(parts) - 1)
    return Evidence(between / (between + len(values) - len(parts)), float(p))


@_apart
def spread_difference(first: Floats, second: Floats) -> Evidence:
    """Brown and Forsythe's test of two spreads; the effect is the log-ratio of the mean deviations."""
    if min(len(first), len(second)) < 3 or _flat(first) or _flat(second):
        return NO_EVIDENCE
    ratio = np.divide(*(np.abs(x - np.median(x)).mean() for x in (first, second)))
    return Evidence(float(np.log(ratio)), float(stats.levene(first, second, center="median").pvalue))


def share_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Fisher's exact test of two shares of flags; the effect is the difference first - second."""
    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if not len(a) or not len(b):
        return NO_EVIDENCE
    table = np.array([[part.sum(), (~part).sum()] for part in (a, b)])
    return Evidence(float(a.mean() - b.mean()), float(stats.fisher_exact(table).pvalue))


def common_rhythm(series: Floats) -> Evidence:
    """F test of week effects with learner effects removed, learners by weeks; without direction.

    The effect is partial eta squared.
    """
    n, n_weeks = series.shape
    if n < 3:
        return NO_EVIDENCE
    rhythm = series.mean(axis=0) - series.mean()
    rest = series - series.mean(axis=1, keepdims=True) - rhythm
    between, within = n * float((rhythm**2).sum()), float((rest**2).sum())
    if within <= 1e-12 * series.size:
        return NO_EVIDENCE
    freedom = (n_weeks - 1, (n - 1) * (n_weeks - 1))
    f = (between / freedom[0]) / (within / freedom[1])
    return Evidence(between / (between + within), float(fdtrc(*freedom, f)))


def regression(predictors: ArrayLike, y: ArrayLike) -> list[Evidence]:
    """Least squares of y on standardised predictors with an intercept: a test for each of them.

    Effects are standardised coefficients. Where predictors determine each other, nothing is found.
    """
    x, target = _complete_rows(predictors, y)
    usable = np.array([not _flat(column) for column in x.T], dtype=bool)
    fit = _least_squares(x[:, usable], target)
    if fit is None:
        return [NO_EVIDENCE] * x.shape[1]
    tests = iter(
        Evidence(float(slope), _p_of_t(float(slope / error), fit.freedom))
        for slope, error in zip(fit.slopes, fit.errors, strict=True)
    )
    return [next(tests) if is_usable else NO_EVIDENCE for is_usable in usable]


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
        return [NO_EVIDENCE] * k
    z = _standardised(x[:, usable])
    if np.linalg.matrix_rank(np.column_stack([np.ones(n), z])) < z.shape[1] + 1:
        return [NO_EVIDENCE] * k
    below = np.cumsum(np.bincount(y))[:-1] / n
    theta = np.concatenate([np.log(below / (1.0 - below)), np.zeros(z.shape[1])])
    fitted = _maximise(theta, z, y, n_cuts)
    if fitted is None:
        return [NO_EVIDENCE] * k
    theta, errors = fitted
    tests = iter(
        Evidence(float(slope), float(2.0 * ndtr(-abs(slope / error))))
        for slope, error in zip(theta[n_cuts:], errors[n_cuts:], strict=True)
    )
    return [next(tests) if is_usable else NO_EVIDENCE for is_usable in usable]


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
        return NO_EVIDENCE
    a, b = float(on_mediator.slopes[0]), float(on_outcome.slopes[0])
    error = float(np.hypot(b * on_mediator.errors[0], a * on_outcome.errors[0]))
    return Evidence(a * b, float(2.0 * ndtr(-abs(a * b) / error))) if error > 0 else NO_EVIDENCE


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
        return NO_EVIDENCE
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
        return NO_EVIDENCE
    z = float(excess.sum()) / np.sqrt(variance)
    return Evidence(float(excess.mean()), float(2.0 * ndtr(-abs(z))))


def gini(values: ArrayLike) -> Floats:
    """Gini's coefficient along the last axis: 0 when all have the same, and where there is nothing."""
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    n = ordered.shape[-1]
    total = ordered.sum(axis=-1)
    weighted = ordered @ np.arange(1.0, n + 1.0)
    some = total > 0
    return np.where(
        some, 2.0 * weighted / (max(n, 1) * np.where(some, total, 1.0)) - (n + 1.0) / max(n, 1), 0.0
    )


def inequality_difference(first: ArrayLike, second: ArrayLike) -> Evidence:
    """Difference of two Gini coefficients with jackknife errors, t with the smaller group's freedom."""
    (a,), (b,) = _complete(first), _complete(second)
    if min(len(a), len(b)) < 5 or a.sum() <= 0 or b.sum() <= 0:
        return NO_EVIDENCE
    variance = 0.0
    for part in (a, b):
        n = len(part)
        left_out = gini(np.broadcast_to(part, (n, n))[~np.eye(n, dtype=bool)].reshape(n, n - 1))
        variance += (n - 1) * float(left_out.var())
    error = float(np.sqrt(variance))
    if error < 1e-12:
        return NO_EVIDENCE
    difference = float(gini(a) - gini(b))
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
    settled, _ = kmeans(z, np.array(centres), thresh=0.0)
    return np.asarray(vq(z, settled)[0], dtype=np.intp)


def _tied(values: Floats) -> Floats:
    """Values to be ranked: what differs by rounding only (two learners with one active week each) is a tie."""
    return np.round(values, 12)


def _parts(values: Floats, group: Floats) -> list[Floats]:
    return [values[group == code] for code in np.unique(group)]


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
