"""Noise: the one module that draws noise which carries a guarantee.

`os_noise()` draws from the operating system's entropy, through OpenDP where it has the
distribution (its generator is OpenSSL's, which the system seeds) and otherwise exactly, in
integer arithmetic. It has no seed and stores no state: noise that could be drawn again could
be subtracted. `seeded_noise(rng)` has the same
distributions up to rounding error, is reproducible, and carries no guarantee: it is for tests
and for `study`, and whoever uses it says so (`Guarantee.seeded`).
"""

from __future__ import annotations

import functools
import math
import secrets
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from opendp.mod import Measurement

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# OpenDP takes lists; a chunk bounds the memory of their Python integers and is what one of
# two threads works on (OpenDP draws outside of Python's lock).
_CHUNK = 50_000
_THREADS = 2


class Noise(Protocol):
    """Draws that the mechanisms need. `secret` is whether nobody can draw the same again.

    The methods add noise to integers and return them as int64 in the same shape; every cell
    gets a draw of its own.
    """

    secret: bool

    def discrete_gaussian(self, values: IntArray, sigma: float) -> IntArray:
        """Add z with P(z) proportional to exp(-z^2 / (2 sigma^2)) on the integers."""
        ...

    def discrete_laplace(self, values: IntArray, scale: float) -> IntArray:
        """Add z with P(z) proportional to exp(-|z| / scale) on the integers."""
        ...

    def cube(self, values: IntArray, epsilon: float) -> IntArray:
        """Add one vector z with P(z) proportional to exp(-epsilon max|z|) on the integer lattice."""
        ...

    def hexagon(self, values: IntArray, epsilon: float) -> IntArray:
        """Add one z to pairs (c, a), shape (I, 2), with P(z) proportional to exp(-epsilon max h(z_i)).

        h(c, a) = max(|c|, |a|, |c - a|), on the integer lattice.
        """
        ...

    def gumbel_argmax(self, scores: FloatArray, scale: float) -> int:
        """Index of the largest score after adding Gumbel noise: i with P(i) proportional to exp(score_i / scale)."""
        ...


def os_noise() -> Noise:
    """Noise from the operating system's entropy, exact, never reproducible."""
    return _OperatingSystemNoise()


def seeded_noise(rng: np.random.Generator) -> Noise:
    """Reproducible noise for tests and studies; it carries no guarantee."""
    return _SeededNoise(rng)


class WatchedNoise:
    """The same noise, which remembers whether it was drawn from: from then on an error may depend on the draw.

    It remembers before it draws, so that a draw which fails half-way counts.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self.secret = noise.secret
        self.drawn = False

    def discrete_gaussian(self, values: IntArray, sigma: float) -> IntArray:
        """The draw of the noise that is watched."""
        self.drawn = True
        return self._noise.discrete_gaussian(values, sigma)

    def discrete_laplace(self, values: IntArray, scale: float) -> IntArray:
        """The draw of the noise that is watched."""
        self.drawn = True
        return self._noise.discrete_laplace(values, scale)

    def cube(self, values: IntArray, epsilon: float) -> IntArray:
        """The draw of the noise that is watched."""
        self.drawn = True
        return self._noise.cube(values, epsilon)

    def hexagon(self, values: IntArray, epsilon: float) -> IntArray:
        """The draw of the noise that is watched."""
        self.drawn = True
        return self._noise.hexagon(values, epsilon)

    def gumbel_argmax(self, scores: FloatArray, scale: float) -> int:
        """The draw of the noise that is watched."""
        self.drawn = True
        return self._noise.gumbel_argmax(scores, scale)


class _OperatingSystemNoise:
    """Stateless: OpenDP and `secrets` ask the operating system for every draw."""

    secret = True

    def discrete_gaussian(self, values: IntArray, sigma: float) -> IntArray:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        measurement = dp.m.make_gaussian(*space, scale=sigma)
        # OpenDP's `scale` is the standard deviation: its own map says so, rounded up.
        confirm(measurement.map(sigma), 0.5)
        return _added(measurement, values)

    def discrete_laplace(self, values: IntArray, scale: float) -> IntArray:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="f64")
        measurement = dp.m.make_laplace(*space, scale=scale)
        confirm(measurement.map(scale), 1.0)
        return _added(measurement, values)

    def cube(self, values: IntArray, epsilon: float) -> IntArray:
        # OpenDP has no K-norm mechanism.
        values = np.asarray(values, dtype=np.int64)
        radius = draw_radius(CUBE, values.size, Fraction(epsilon), secrets.randbits)
        points = [secrets.randbelow(2 * radius + 1) - radius for _ in range(values.size)]
        return values + np.array(points, dtype=np.int64).reshape(values.shape)

    def hexagon(self, values: IntArray, epsilon: float) -> IntArray:
        values = np.asarray(values, dtype=np.int64)
        radius = draw_radius(HEXAGON, len(values), Fraction(epsilon), secrets.randbits)
        n_places = n_points(HEXAGON, radius)
        places = [secrets.randbelow(n_places) for _ in range(len(values))]
        return values + hexagon_points(np.array(places, dtype=np.int64), radius)

    def gumbel_argmax(self, scores: FloatArray, scale: float) -> int:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
        measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        # Gumbel noise makes this the exponential mechanism with epsilon = 2 sensitivity / scale,
        # which is epsilon^2 / 8 zCDP: 1/2 at sensitivity `scale`. (Exponential noise would be
        # permute-and-flip, another distribution.)
        confirm(measurement.map(scale), 0.5)
        return int(measurement(scores.tolist()))


class _SeededNoise:
    """numpy's draws, rounded to the lattice: fast, reproducible, floating point."""

    secret = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def discrete_gaussian(self, values: IntArray, sigma: float) -> IntArray:
        drawn = np.rint(self._rng.normal(0.0, sigma, np.shape(values)))
        return np.asarray(values + drawn.astype(np.int64), dtype=np.int64)

    def discrete_laplace(self, values: IntArray, scale: float) -> IntArray:
        success = -math.expm1(-1.0 / scale)
        shape = np.shape(values)
        drawn = self._rng.geometric(success, shape) - self._rng.geometric(success, shape)
        return np.asarray(values + drawn, dtype=np.int64)

    def cube(self, values: IntArray, epsilon: float) -> IntArray:
        values = np.asarray(values, dtype=np.int64)
        radius = draw_radius(CUBE, values.size, Fraction(epsilon), self._bits)
        drawn = self._rng.integers(-radius, radius, values.shape, endpoint=True)
        return np.asarray(values + drawn, dtype=np.int64)

    def hexagon(self, values: IntArray, epsilon: float) -> IntArray:
        values = np.asarray(values, dtype=np.int64)
        radius = draw_radius(HEXAGON, len(values), Fraction(epsilon), self._bits)
        places = self._rng.integers(0, n_points(HEXAGON, radius), len(values))
        return values + hexagon_points(places, radius)

    def gumbel_argmax(self, scores: FloatArray, scale: float) -> int:
        return int(np.argmax(np.asarray(scores) / scale + self._rng.gumbel(size=len(scores))))

    def _bits(self, count: int) -> int:
        return int.from_bytes(self._rng.bytes((count + 7) // 8)) >> (-count % 8)


def _opendp() -> Any:
    """OpenDP, imported where it is used: the command line starts without it."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def confirm(proved: float, expected: float) -> None:
    """Stop when OpenDP proves another privacy loss than the mechanism's contract states."""
    if not math.isclose(proved, expected, rel_tol=1e-9):
        raise AssertionError(f"OpenDP states a privacy loss of {proved}, the contract states {expected}")


def _added(measurement: Measurement, values: IntArray) -> IntArray:
    """The measurement of every cell; cells are independent, so they may be drawn in chunks."""
    flat = np.asarray(values, dtype=np.int64).ravel()
    chunks = [flat[start : start + _CHUNK].tolist() for start in range(0, flat.size, _CHUNK)]
    with ThreadPoolExecutor(_THREADS) as threads:
        drawn = [cell for chunk in threads.map(measurement, chunks) for cell in chunk]
    return np.array(drawn, dtype=np.int64).reshape(np.shape(values))


# The hexagon h(c, a) <= T without its centre is three half-open rhombi, each spanned by two of
# these directions, a third of a turn apart: every lattice point other than the origin is
# i * direction[k] + j * direction[k + 1] for exactly one k, i >= 1 and j >= 0, and its h is max(i, j).
# So they are 3 T (T + 1) points and the centre.
_DIRECTIONS: IntArray = np.array([[1, 0], [0, 1], [-1, -1], [1, 0]], dtype=np.int64)


def hexagon_points(places: IntArray, radius: int) -> IntArray:
    """The lattice points (c, a) of `radius` times the hexagon that have the numbers 0 ... 3T^2+3T."""
    if radius == 0:
        return np.zeros((len(places), 2), dtype=np.int64)
    rhombus, cell = np.divmod(places - 1, radius * (radius + 1))
    i, j = np.divmod(cell, radius + 1)
    centre = places == 0
    i, j, rhombus = np.where(centre, 0, i + 1), np.where(centre, 0, j), np.where(centre, 0, rhombus)
    return np.asarray(i[:, None] * _DIRECTIONS[rhombus] + j[:, None] * _DIRECTIONS[rhombus + 1])


# The rest draws T with weight w(t) = f(t)^n e^(-epsilon t) exactly, f(t) the number of lattice
# points of a cell's body times t: a polynomial, given by its coefficients from the constant on.
# The weights are irrational, so they are enclosed between integers of growing precision, and a
# uniform number is drawn bit by bit until it lies in one t's interval for certain. Almost always
# the first precision decides.
#
# Both f are log-concave on t >= 0, and so is w: (log f)'' has the sign of f f'' - f'^2, which is
# -4 for the cube and -(18 t^2 + 18 t + 3) for the hexagon.

Body = tuple[int, ...]
CUBE: Body = (1, 2)  # 2t + 1
HEXAGON: Body = (1, 3, 3)  # 3t^2 + 3t + 1


def n_points(body: Body, t: int) -> int:
    """How many lattice points a body has on the radius t or within, by its polynomial."""
    return sum(coefficient * t**power for power, coefficient in enumerate(body))


Interval = tuple[int, int]  # lower and upper bound, in units of 2^-precision


def draw_radius(body: Body, n_cells: int, epsilon: Fraction, bits: Callable[[int], int]) -> int:
    """Draw T; `bits(n)` gives n independent fair bits as an integer."""
    # The standard deviation of T is about sqrt(degree * n) / epsilon, and a table has some 20 of them.
    if (len(body) - 1) * n_cells > (2e5 * float(epsilon)) ** 2:
        raise ValueError(
            f"epsilon {float(epsilon):g} is too small for {n_cells} cells: all of it would be noise"
        )
    drawn, n_bits = 0, 0
    digits = 64
    while True:
        first, lower, upper, total = radius_weights(body, n_cells, epsilon, digits)
        drawn, n_bits = drawn << (2 * digits - n_bits) | bits(2 * digits - n_bits), 2 * digits
        # u is in [drawn, drawn + 1) / 2^n_bits; t is certain when cumulated(t-1) <= u Z < cumulated(t).
        place = bisect_left(lower, -((-(drawn + 1) * total[1]) >> n_bits))
        if 0 < place < len(lower) and upper[place - 1] << n_bits <= drawn * total[0]:
            return first + place - 1
        digits *= 2


@functools.lru_cache(maxsize=8)
def radius_weights(
    body: Body, n_cells: int, epsilon: Fraction, digits: int
) -> tuple[int, list[int], list[int], Interval]:
    """First t, bounds of the cumulated weights from there on, and bounds of their total.

    Weights are relative to the one near the mode; what is left out at both ends is below
    2^-digits, and is in the upper bounds.
    """
    precision = 2 * digits + 64 + math.ceil(2 * epsilon)
    decay = exp_minus(epsilon, precision)
    growth = (1 << 2 * precision) // decay[1], -(-(1 << 2 * precision) // decay[0])
    # w has its maximum next to degree * n / epsilon - 1/2: exactly so for the cube, up to
    # epsilon / (24 n) for the hexagon. The walks start at the nearest integer; the bounds need
    # no exact mode.
    mode = math.floor((len(body) - 1) * n_cells / epsilon)

    def walk(step: int) -> tuple[list[Interval], int]:
        """Weights from the mode in one direction, and a bound of all that follow."""
        one = 1 << precision
        weights, t = [(one, one)], mode
        while True:
            if t + step < 0:
                return weights, 0
            base = _quotient(n_points(body, t + step), n_points(body, t), precision)
            ratio = _times(_power(base, n_cells, precision), decay if step > 0 else growth, precision)
            weight = weights[-1]
            # w is log-concave: ratios only shrink on the way out, so a geometric series bounds the rest.
            if ratio[1] < one:
                rest = -(-weight[1] * ratio[1] // (one - ratio[1]))
                if rest >> (precision - digits) == 0:
                    return weights, rest
            weights.append(_times(weight, ratio, precision))
            t += step

    above, rest_above = walk(+1)
    below, rest_below = walk(-1)
    weights = below[:0:-1] + above
    lower = [0, *accumulate(low for low, _ in weights)]
    upper = list(accumulate((high for _, high in weights), initial=rest_below))
    return mode - len(below) + 1, lower, upper, (lower[-1], upper[-1] + rest_above)


def exp_minus(x: Fraction, precision: int) -> Interval:
    """e^-x for x > 0: the alternating series at x / 2^k < 1/2, squared k times."""
    halvings = max(0, math.ceil(2 * x).bit_length())
    inner = precision + 2 * halvings + 16
    small = _quotient(x.numerator, x.denominator << halvings, inner)
    term = (1 << inner, 1 << inner)
    low = high = 0
    for order in range(1, inner):
        low, high = (low + term[0], high + term[1]) if order % 2 else (low - term[1], high - term[0])
        term = _times(term, small, inner)
        term = term[0] // order, -(-term[1] // order)
        if term[1] <= 1:
            break
    # What the series leaves out is smaller than its next term.
    low, high = low - term[1], high + term[1]
    for _ in range(halvings):
        low, high = _times((low, high), (low, high), inner)
    return low >> (inner - precision), -(-high >> (inner - precision))


def _quotient(numerator: int, denominator: int, precision: int) -> Interval:
    scaled = numerator << precision
    return scaled // denominator, -(-scaled // denominator)


def _times(a: Interval, b: Interval, precision: int) -> Interval:
    return (a[0] * b[0]) >> precision, -((-a[1] * b[1]) >> precision)


def _power(base: Interval, exponent: int, precision: int) -> Interval:
    result = (1 << precision, 1 << precision)
    while exponent:
        if exponent & 1:
            result = _times(result, base, precision)
        base = _times(base, base, precision)
        exponent >>= 1
    return result
