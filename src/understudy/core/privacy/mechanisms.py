"""The mechanisms: each adds noise once, and its docstring is its mathematical contract.

All of them take integers (or scores) that are a function of the records, and a bound on how
far that function moves when one learner is replaced by another: the guarantee is for a learner
with all their rows exactly if that bound is. Everything computed from the result afterwards is
post-processing and costs nothing. With `noise.secret` false nothing is guaranteed.
"""

from __future__ import annotations

import math

import numpy as np

from understudy.core.privacy.noise import FloatArray, IntArray, Noise

# sigma is rounded up by this much, so that floating point never makes it a little too small.
_ROUND_UP = 1 + 1e-12


def gaussian_sigma(sensitivity: float, rho: float) -> float:
    """Standard deviation of the noise, sensitivity / sqrt(2 rho), rounded up."""
    _positive("sensitivity", sensitivity)
    _positive("rho", rho)
    return sensitivity / math.sqrt(2.0 * rho) * _ROUND_UP


def gaussian(values: IntArray, *, sensitivity: float, rho: float, noise: Noise) -> IntArray:
    """Discrete Gaussian mechanism: rho-zCDP.

    Distribution: values + Z, the cells of Z independent on the integers with
    P(z) proportional to exp(-z^2 / (2 sigma^2)), sigma = sensitivity / sqrt(2 rho).
    Its variance is at most sigma^2, and equal to it for all practical purposes when sigma > 1.

    Norm and adjacency: the L2 norm of the difference of `values` between any two data sets in
    which one learner is replaced is at most `sensitivity`, in units of the lattice. A sum of
    learners' vectors clipped to L2 norm C has 2 C, or sqrt(2) C if no entry is negative
    (findings, section 6). Scaling real vectors to the lattice has to round towards zero per
    learner, or the rounding has to be part of `sensitivity`.

    Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy"
    (2020), Theorem 14: the Renyi divergence of every order a is at most
    a sensitivity^2 / (2 sigma^2) = a rho. This is the bound of the continuous Gaussian, but the
    mechanism is not exactly Gaussian DP, so it states no mu.
    """
    values = _integers(values)
    return noise.discrete_gaussian(values, gaussian_sigma(sensitivity, rho))


def laplace(values: IntArray, *, sensitivity: float, epsilon: float, noise: Noise) -> IntArray:
    """Discrete Laplace (two-sided geometric) mechanism: epsilon-DP.

    Distribution: values + Z, the cells of Z independent on the integers with P(z) proportional
    to exp(-|z| epsilon / sensitivity). With q = e^(-epsilon / sensitivity) the variance of a
    cell is 2 q / (1 - q)^2.

    Norm and adjacency: the L1 norm of the difference of `values` between any two data sets in
    which one learner is replaced is at most `sensitivity`.

    Source: Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy
    mechanisms" (2009).
    """
    values = _integers(values)
    _positive("sensitivity", sensitivity)
    _positive("epsilon", epsilon)
    return noise.discrete_laplace(values, sensitivity / epsilon * _ROUND_UP)


def knorm_cube(values: IntArray, *, epsilon: float, noise: Noise) -> IntArray:
    """K-norm mechanism over the cube, on integers: epsilon-DP.

    Distribution: values + Z with P(z) proportional to exp(-epsilon max|z_i|) on the integer
    vectors of length I. Drawn as T with weight (2t+1)^I e^(-epsilon t), t = 0, 1, ..., then Z
    uniform on the integer points of [-T, T]^I: summing over T >= max|z| gives that P. The
    variance of a cell is E[T (T + 1)] / 3.

    Norm and adjacency: when one learner is replaced, `values` moves by a vector of the cube
    [-1, 1]^I. Item totals do: each learner adds a vector of {0, 1}^I. By the triangle
    inequality of max|z| the probability of any result changes by at most e^epsilon.

    Source: Hardt and Talwar, "On the geometry of differential privacy" (2010); Awan and
    Slavkovic, "Structure and sensitivity in differential privacy" (2021), for the choice of K;
    findings, section 2, for the integer form.
    """
    values = _integers(values)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"the K-norm mechanism takes one vector of totals, not shape {values.shape}")
    _positive("epsilon", epsilon)
    return noise.cube(values, epsilon)


def knorm_hexagon(values: IntArray, *, epsilon: float, noise: Noise) -> IntArray:
    """K-norm mechanism over a product of hexagons, on integers: epsilon-DP.

    For responses of which some are missing: row i of `values` is (correct, answered) of item i,
    shape (I, 2), both numbers of learners.

    Distribution: values + Z with P(z) proportional to exp(-epsilon H(z)) on the integer arrays of
    this shape, H(z) = max_i h(z_i), h(c, a) = max(|c|, |a|, |c - a|). Drawn as T with weight
    (3t^2+3t+1)^I e^(-epsilon t), t = 0, 1, ..., then the rows of Z independently uniform on the
    lattice points with h <= T. `knorm.hexagon_covariance` gives the covariance.

    Norm and adjacency: when one learner is replaced, H of the difference of `values` is at most 1.
    A learner adds one of (0, 0), (0, 1), (1, 1) to each item: not answered, wrong, correct. So a
    difference is (0, 0), +-(0, 1), +-(1, 1) or +-(1, 0), the lattice points of h <= 1. Correct
    answers that are not counted as answered, or one item answered twice, break this.

    Proof. There are 3t^2+3t+1 lattice points with h <= t: the centre, and for every u from 1 to t
    the 6u points with h = u. Of I rows, (3t^2+3t+1)^I arrays have H <= t, so for every z

        P(Z = z) = sum over t >= H(z) of P(T = t) (3t^2+3t+1)^-I
                 = sum over t >= H(z) of e^(-epsilon t) / C = e^(-epsilon H(z)) / (C (1 - e^-epsilon)),

    C the sum of all weights. h is a norm on the plane (a maximum of absolute values of linear
    functions, zero only at zero), so H is one. For neighbours v and w and any result y, by the
    triangle inequality H(y - w) <= H(y - v) + H(v - w) <= H(y - v) + 1, hence
    P(w + Z = y) = P(Z = y - w) >= e^-epsilon P(v + Z = y).

    Source: Hardt and Talwar (2010) and Awan and Slavkovic (2021) as for the cube; findings,
    section 2, for the hexagon.
    """
    values = _integers(values)
    if values.ndim != 2 or values.shape[1] != 2 or not values.size:
        raise ValueError(
            f"the hexagon mechanism takes rows of (correct, answered), shape (items, 2), not {values.shape}"
        )
    _positive("epsilon", epsilon)
    return noise.hexagon(values, epsilon)


def exponential(scores: FloatArray, *, sensitivity: float, epsilon: float, noise: Noise) -> int:
    """Exponential mechanism: the index of a high score, epsilon-DP (and epsilon^2/8-zCDP).

    Distribution: P(i) proportional to exp(epsilon score_i / (2 sensitivity)), drawn as the
    largest score after Gumbel noise of scale 2 sensitivity / epsilon.

    Norm and adjacency: no score moves by more than `sensitivity` when one learner is replaced;
    scores may move in different directions. The number of scores is public.

    Source: McSherry and Talwar, "Mechanism design via differential privacy" (2007); Cesar and
    Rogers, "Bounding, concentrating, and truncating" (2021), for zCDP.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all():
        raise ValueError("the exponential mechanism takes one vector of finite scores")
    _positive("sensitivity", sensitivity)
    _positive("epsilon", epsilon)
    return noise.gumbel_argmax(scores, 2.0 * sensitivity / epsilon * _ROUND_UP)


def _positive(name: str, number: float) -> None:
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name} has to be a finite number above 0, not {number}")


def _integers(values: IntArray) -> IntArray:
    """The values as int64; anything else is a mistake, since rounding here would hide a sensitivity."""
    values = np.asarray(values)
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"a mechanism on the lattice takes integers, not {values.dtype}")
    return values.astype(np.int64)
