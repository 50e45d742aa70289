"""Answers from noisy moments: means, variances, correlations, linear regression.

All of it is computed on the scale of the features, on which numbers are from -1 to 1, and then brought to the column's
own units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.desk.private.answers import Answer, Estimate
from understudy.desk.private.intervals import Z, clipped, critical, ratio_interval, ratio_noise
from understudy.desk.private.measurements import Features, Noisy
from understudy.desk.private.questions import Correlation, Linear, Mean, Variance
from understudy.desk.private.schema import Floats, Schema

# Noise that may move a matrix by more than this share of itself may have turned it round: then nothing is concluded.
MOST_RELATIVE_NOISE = 0.5
# That of the exponential distribution; the normal one has 3.
_MOST_KURTOSIS = 9.0


@dataclass(frozen=True)
class Group:
    """Noisy number of learners, mean and variance of one column, in one group, on the scale of -1 to 1."""

    n: float
    total: float
    squares: float
    n_sd: float
    total_sd: float
    squares_sd: float

    @classmethod
    def of(cls, noisy: Noisy, place: int) -> Group:
        """The group at this place; the column is the only feature."""
        values, sd = noisy.values[place], noisy.sd[place]
        moments = [(0, 0), (0, 1), (1, 1)]
        return cls(*(float(values[i]) for i in moments), *(float(sd[i]) for i in moments))

    @property
    def mean(self) -> float:
        """The noisy mean; the middle where nothing is known."""
        return clipped(self.total / self.n, (-1.0, 1.0)) if self.n > 0 else 0.0

    @property
    def mean_noise(self) -> float:
        """Standard deviation of the mean's noise."""
        return ratio_noise(self.total, self.n, total_sd=self.total_sd, n_sd=self.n_sd)

    @property
    def variance(self) -> float:
        """The noisy variance, of n - 1, between what is possible with this mean."""
        if self.n <= 1:
            return 1.0 - self.mean**2
        # The square of the noisy mean is larger than that of the mean by the variance of its noise.
        raw = self.squares / self.n - self.mean**2 + min(self.mean_noise, 1.0) ** 2
        return clipped(raw * self.n / (self.n - 1.0), (0.0, 1.0 - self.mean**2))

    @property
    def variance_noise(self) -> float:
        """Standard deviation of the variance's noise, to first order."""
        if self.n <= 0:
            return math.inf
        m = self.mean
        parts = (self.squares_sd, 2.0 * m * self.total_sd, (2.0 * m**2 - self.squares / self.n) * self.n_sd)
        return math.hypot(*parts) / self.n

    @property
    def variance_above(self) -> float:
        """What the variance is at most, but for a standard deviation of noise: intervals use this, not the estimate."""
        most = max(1.0 - self.mean**2, 0.0)
        return clipped(self.variance + min(self.variance_noise, 1.0), (0.0, most))

    def mean_interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        return ratio_interval(
            self.total, self.n, total_sd=self.total_sd, n_sd=self.n_sd, variance=self.variance_above
        )


def group_names(column: str, by: str | None, schema: Schema) -> list[str]:
    """How estimates of a column are called in each group."""
    return [column] if by is None else [f"{column}, {by} = {group}" for group in schema.categories(by)]


def left_out_note(columns: tuple[str, ...], by: str | None, schema: Schema) -> tuple[str, ...]:
    """Which learners have no part in an answer."""
    names = [
        *(name for name in columns if name not in schema.complete or not schema.is_number(name)),
        *([by] if by else []),
    ]
    if not names:
        return ()
    listed = " or ".join(f"'{name}'" for name in dict.fromkeys(names))
    return (f"Learners without a value, or without a declared category, of {listed} are left out.",)


def mean_answer(question: Mean, noisy: Noisy, schema: Schema) -> Answer:
    """Means with the chance of sampling."""
    low, high = schema.number(question.column)
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    found = []
    for place, name in enumerate(group_names(question.column, question.by, schema)):
        group = Group.of(noisy, place)
        ends = group.mean_interval()
        found.append(
            Estimate(
                name,
                middle + half * clipped(group.mean, ends),
                middle + half * ends[0],
                middle + half * ends[1],
                half * group.mean_noise,
                (low, high),
            )
        )
    return Answer(question, tuple(found), notes=left_out_note((question.column,), question.by, schema))


def variance_answer(question: Variance, noisy: Noisy, schema: Schema) -> Answer:
    """Variances. How squares spread is not known: tails as heavy as an exponential distribution's are allowed for.

    Its fourth moment is 9 V^2, so the variance of (u - m)^2 is taken to be 8 V^2, but for what is possible: (u - m)^2
    lies between 0 and (1 + |m|)^2 with mean V, so it is V ((1 + |m|)^2 - V) at most (Bhatia and Davis 2000).
    """
    low, high = schema.number(question.column)
    scale = ((high - low) / 2.0) ** 2
    found = []
    for place, name in enumerate(group_names(question.column, question.by, schema)):
        group = Group.of(noisy, place)
        value, noise, upper = group.variance, group.variance_noise, group.variance_above
        ends = (0.0, 1.0)
        if group.n > 3.0 * group.n_sd and math.isfinite(noise):
            spread = min((_MOST_KURTOSIS - 1.0) * upper**2, upper * ((1.0 + abs(group.mean)) ** 2 - upper))
            reach = critical(group.n) * math.sqrt(noise**2 + max(spread, 0.0) / group.n)
            ends = clipped(value - reach, ends), clipped(value + reach, ends)
        found.append(
            Estimate(name, scale * value, scale * ends[0], scale * ends[1], scale * noise, (0.0, scale))
        )
    return Answer(question, tuple(found), notes=left_out_note((question.column,), question.by, schema))


def correlation_answer(question: Correlation, features: Features, noisy: Noisy, schema: Schema) -> Answer:
    """Correlations; the chance of sampling is that of normal columns, on the scale of Fisher's z."""
    values, sd = noisy.values[0], noisy.sd[0]
    found = []
    for place, one in enumerate(question.columns):
        for other in question.columns[place + 1 :]:
            i, j = (1 + features.numbers.index(name) for name in (one, other))
            r, noise, usable = _correlation(values, sd, i, j)
            low, high = -1.0, 1.0
            n = float(values[0, 0])
            if usable:
                z_sd = math.hypot(1.0 / math.sqrt(max(n - 3.0, 1.0)), noise / (1.0 - r**2))
                low, high = (math.tanh(math.atanh(r) + sign * Z * z_sd) for sign in (-1.0, 1.0))
            found.append(Estimate(f"{one} with {other}", r, low, high, noise, (-1.0, 1.0)))
    return Answer(question, tuple(found), notes=left_out_note(question.columns, None, schema))


def _correlation(values: Floats, sd: Floats, i: int, j: int) -> tuple[float, float, bool]:
    """Correlation of two features, the noise of it to first order, and whether variances stand out of theirs."""
    n = float(values[0, 0])
    if n <= 3.0 * sd[0, 0] or n <= 3:
        return 0.0, math.inf, False
    mean = values[0] / n
    cov = values / n - np.outer(mean, mean)
    vi, vj = float(cov[i, i]), float(cov[j, j])
    noise_i, noise_j = (
        math.hypot(sd[k, k], 2.0 * mean[k] * sd[0, k], mean[k] ** 2 * sd[0, 0]) / n for k in (i, j)
    )
    if min(vi - noise_i / MOST_RELATIVE_NOISE, vj - noise_j / MOST_RELATIVE_NOISE) <= 0:
        return 0.0, math.inf, False
    r = clipped(float(cov[i, j]) / math.sqrt(vi * vj), (-0.999, 0.999))
    # The derivatives of r by each of the noisy sums.
    root = math.sqrt(vi * vj)
    by_ij, by_ii, by_jj = 1.0 / root, -r / (2.0 * vi), -r / (2.0 * vj)
    by_i = -(by_ij * mean[j] + 2.0 * by_ii * mean[i])
    by_j = -(by_ij * mean[i] + 2.0 * by_jj * mean[j])
    by_n = by_ij * (2.0 * mean[i] * mean[j] - values[i, j] / n)
    by_n += by_ii * (2.0 * mean[i] ** 2 - values[i, i] / n) + by_jj * (2.0 * mean[j] ** 2 - values[j, j] / n)
    parts = (
        by_ij * sd[i, j], by_ii * sd[i, i], by_jj * sd[j, j], by_i * sd[0, i], by_j * sd[0, j], by_n * sd[0, 0]
    )  # fmt: skip
    return r, math.hypot(*parts) / n, True


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients on the scale of the features, the covariance of their errors, and that of the noise in them."""

    coefficients: Floats
    covariance: Floats
    noise: Floats
    n: float


def linear_fit(values: Floats, sd: Floats, x: list[int], y: int) -> Fit | None:
    """Least squares from noisy sums; None where the noise may have turned the matrix round.

    With A = X'X + E and b = X'y + e the coefficients are off by A^-1 (e - E coefficients), to first order, so the
    covariance of the noise follows from that of E and e. The chance of sampling is that of independent errors of one
    variance, which is estimated with a standard deviation of its noise added.
    """
    matrix, v = values[np.ix_(x, x)], sd[np.ix_(x, x)] ** 2
    target, v_target = values[x, y], sd[x, y] ** 2
    n = float(values[0, 0])
    inverse = steady_inverse(matrix, v)
    if inverse is None or n <= len(x) + 1:
        return None
    beta = inverse @ target
    noise = inverse @ (noise_of_product(v, beta) + np.diag(v_target)) @ inverse
    squares = float(values[y, y] - beta @ target)
    square_of = beta**2
    squares_sd = math.sqrt(
        sd[y, y] ** 2 + 4.0 * float(v_target @ square_of) + 2.0 * float(square_of @ v @ square_of)
    )
    most = float(values[y, y]) + sd[y, y]
    error = clipped(squares + squares_sd, (0.0, max(most, 0.0))) / (n - len(x))
    return Fit(beta, error * inverse + noise, noise, n)


def steady_inverse(matrix: Floats, variances: Floats) -> Floats | None:
    """The inverse of a noisy matrix of moments, if the noise is small beside it in every direction.

    Whether it is does not depend on where a column has its zero, nor on its unit: features are compared after they
    were centred and brought to a variance of 1. The first one is the constant.
    """
    if matrix[0, 0] <= 0:
        return None
    centring = np.eye(len(matrix))
    centring[1:, 0] = -matrix[1:, 0] / matrix[0, 0]
    centred, noise = centring @ matrix @ centring.T, centring**2 @ variances @ (centring**2).T
    if np.diag(centred).min() <= 0:
        return None
    scale = 1.0 / np.sqrt(np.diag(centred))
    smallest = float(np.linalg.eigvalsh(centred * np.outer(scale, scale))[0])
    moved = math.sqrt(float((noise * np.outer(scale, scale) ** 2).sum(axis=1).max()))
    if moved >= MOST_RELATIVE_NOISE * smallest:
        return None
    return np.asarray(np.linalg.inv(matrix))


def noise_of_product(variances: Floats, beta: Floats) -> Floats:
    """The covariance of E beta for a symmetric matrix E of independent noise."""
    found = variances * np.outer(beta, beta)
    np.fill_diagonal(found, variances @ beta**2)
    return np.asarray(found)


def linear_answer(question: Linear, features: Features, noisy: Noisy, schema: Schema) -> Answer:
    """Coefficients in the columns' own units."""
    names = [("", ""), *features.names(schema)]
    y = next(place for place, (column, _) in enumerate(names) if column == question.outcome)
    x = [place for place in range(len(names)) if place != y]
    fit = linear_fit(noisy.values[0], noisy.sd[0], x, y)
    low, high = schema.number(question.outcome)
    half, middle = (high - low) / 2.0, (high + low) / 2.0
    found = coefficient_estimates(
        fit, [names[place] for place in x], schema, scale=half, shift=middle, reach=half
    )
    note = "Of categories, the first is the reference."
    notes = left_out_note((question.outcome, *question.on), None, schema)
    return Answer(question, found, notes=(note, *notes) if features.categories else notes)


def coefficient_estimates(
    fit: Fit | None,
    names: list[tuple[str, str]],
    schema: Schema,
    *,
    scale: float,
    shift: float,
    reach: float,
) -> tuple[Estimate, ...]:
    """Coefficients per unit of their columns, and the intercept where all columns are 0.

    On the scale of the features a number is (2 x - low - high) / (high - low). `scale` and `shift` bring the outcome
    to its units. What is known beforehand of a coefficient: no column moves the outcome by more than `reach` in
    either direction, from one of its bounds to the other.
    """
    size = len(names)
    to_own = np.eye(size)
    for place, (column, category) in enumerate(names):
        if column and not category:
            low, high = schema.number(column)
            to_own[place, place] = 2.0 / (high - low)
            to_own[0, place] = -(low + high) / (high - low)
    found = []
    for place, (column, category) in enumerate(names):
        name = "intercept" if not column else f"{column} = {category}" if category else column
        row = to_own[place]
        range_ = 1.0 if category or not column else float(np.subtract(*schema.number(column)[::-1]))
        most = reach / range_ if column else math.inf
        possible = (-most, most)
        offset = shift if not column else 0.0
        if fit is None:
            found.append(Estimate(name, offset, -math.inf, math.inf, math.inf, possible))
            continue
        value = offset + scale * float(row @ fit.coefficients)
        half = scale * critical(fit.n - size + 1) * math.sqrt(max(float(row @ fit.covariance @ row), 0.0))
        noise = scale * math.sqrt(max(float(row @ fit.noise @ row), 0.0))
        found.append(Estimate(name, value, value - half, value + half, noise, possible))
    return tuple(found)
