"""Private steps of a gradient method: who takes part, what they may contribute, exact noise on the sum, and its cost.

Opacus gives each learner's gradient; clipping, summing and noise happen on an integer lattice, so
that the sensitivity holds whatever floating-point arithmetic did before.
"""

from __future__ import annotations

import functools
import math
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.extras import install_hint
from understudy.core.privacy.composition import lattice_delta, mu_to_delta
from understudy.core.privacy.noise import Noise
from understudy.errors import MissingError, UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A learner's clipped gradient has at most this many lattice units (Euclidean norm): the sensitivity.
LATTICE = 2**20

_NEEDS_DEEP = "training a network needs libraries that are not installed (the extra `deep`)."


def load_torch() -> Any:
    """torch, imported where it is used; without the extra `deep` the error names the command."""
    try:
        import torch
    except ImportError:
        raise MissingError(_NEEDS_DEEP, hint=install_hint("deep")) from None
    return torch


def load_opacus() -> tuple[Any, Any]:
    """Opacus' module that keeps each example's gradient, and its optimizer."""
    load_torch()
    try:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer
    except ImportError:
        raise MissingError(_NEEDS_DEEP, hint=install_hint("deep")) from None
    return GradSampleModule, DPOptimizer


@dataclass(frozen=True)
class PrivateSteps:
    """A mechanism of many steps: what the accountant needs to know, and nothing else.

    Each of `n_steps` steps takes every learner with probability `rate`, cuts their gradient to
    the norm `clip` and adds Gaussian noise of `noise_multiplier` times `clip` to the sum.
    """

    rate: float
    n_steps: int
    clip: float
    noise_multiplier: float

    def delta(self, epsilon: float, n_parameters: int) -> float:
        """A delta with: the steps are (epsilon, delta)-DP for replacing one learner, with the discrete noise drawn."""
        return lattice_delta(
            lambda e: replaced_delta(self.rate, self.noise_multiplier, self.n_steps, e),
            epsilon,
            n_cells=n_parameters * self.n_steps,
            sigma=self.noise_multiplier * LATTICE,
        )


def calibrated(
    epsilon: float, delta: float, rate: float, n_steps: int, clip: float, n_parameters: int
) -> PrivateSteps:
    """The steps with the least noise that are (epsilon, delta)-DP for replacing one learner."""
    return PrivateSteps(rate, n_steps, clip, _noise_multiplier(epsilon, delta, rate, n_steps, n_parameters))


@functools.cache
def _noise_multiplier(epsilon: float, delta: float, rate: float, n_steps: int, n_parameters: int) -> float:
    def enough(multiplier: float) -> bool:
        return PrivateSteps(rate, n_steps, 1.0, multiplier).delta(epsilon, n_parameters) <= delta

    low, high = 0.3, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e5:
            raise UsageError(
                f"epsilon {epsilon:g} at delta {delta:.1e} is too small for {n_steps} private steps.",
                hint="take a larger epsilon, or fewer steps.",
            )
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def replaced_delta(rate: float, noise_multiplier: float, n_steps: int, epsilon: float) -> float:
    """delta at `epsilon` for replacing one learner, with continuous noise.

    The worst that a step can meet is a learner whose gradient is turned round. With q the rate, s the noise
    multiplier and P(g) = (1 - q) N(0, s^2) + q N(g, s^2), P(1) against P(-1) in one dimension dominates
    everything that replacing a learner does to a step, at every epsilon. So its n-fold product dominates n
    steps, also when gradients follow from the steps before (Zhu, Dong and Wang 2022, on adaptive composition of
    dominating pairs). It can occur, so no noise is wasted. (Lebeda et al. 2025 warn of composing a pair that is
    the worst of one step at one epsilon only.)

    Proof, in units of the clip. Given which of the others take part, the sum is theirs plus what is distributed
    as P(g), or after replacing as P(h), with |g|, |h| <= 1; the hockey-stick divergence D_a is jointly convex, so
    it is enough to bound D_a(P(g), P(h)), the integral of the positive part of P(g) - a P(h). Let a >= 1. It is
    q E[F], F = max(0, 1 - a X - c Y), c = (a - 1)(1 - q) / q >= 0, where z ~ N(g, s^2) and X and Y are the
    densities of N(h, s^2) and N(0, s^2) at z, divided by that of N(g, s^2). Their logarithms are Gaussian, and
    X and Y have mean 1, so E[F] depends on the covariances of the logarithms alone:

        C_XX = |g - h|^2 / s^2,   C_YY = |g|^2 / s^2,   C_XY = (|g|^2 - <g, h>) / s^2.

    All three are largest at |g| = 1, h = -g: 4, 1 and 2 over s^2. And E[F] grows with each of them (Kahane
    1986): on the line from one covariance C to another, C', that is nowhere smaller, its derivative is half of the
    sum over i and j of (C' - C)_ij E[Z_i Z_j F_ij], Z = (X, Y), and F, a convex function of a X + c Y, has no
    negative second derivative F_ij (for a smoothed F, hence in the limit). For a < 1,
    D_a(P, Q) = 1 - a + a D_(1/a)(Q, P), and g and h change their roles.
    """
    if rate >= 1:
        return mu_to_delta(2 * math.sqrt(n_steps) / noise_multiplier, epsilon)
    return float(_losses(rate, noise_multiplier, n_steps).get_delta(epsilon))


@functools.lru_cache(maxsize=8)
def _losses(rate: float, noise_multiplier: float, n_steps: int) -> Any:
    """The privacy losses of P(1) against P(-1), n times, rounded so that no delta comes out too small."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, value_discretization_interval=1e-3)
    accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier)), n_steps)
    return accountant


def poisson_sample(n_learners: int, rate: float, rng: np.random.Generator | None = None) -> NDArray[np.bool_]:
    """Who takes part in a step: each learner on their own with probability `rate`.

    From the operating system unless a test gives `rng`: the sample has to stay as secret as the
    noise. The probability is `rate` rounded down to a multiple of 2^-53.
    """
    if rate >= 1:
        return np.ones(n_learners, dtype=bool)
    if rng is None:
        bits = np.frombuffer(secrets.token_bytes(8 * n_learners), dtype=np.uint64) >> np.uint64(11)
    else:
        bits = rng.integers(2**53, size=n_learners, dtype=np.uint64)
    return np.asarray(bits < np.uint64(math.floor(rate * 2**53)))


def lattice_contributions(gradients: Floats, clip: float) -> Ints:
    """Each learner's gradient (a row), cut to the norm `clip`, in units of clip / LATTICE.

    Rounded towards 0 and then checked in integers: no row of the result has a Euclidean norm above
    LATTICE, whatever floating-point arithmetic did before. A row that is not finite counts nothing.
    """
    finite = np.isfinite(gradients).all(axis=1, keepdims=True)
    rows = np.where(finite, gradients, 0.0)
    norms = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    scale = (1.0 - 1e-9) * LATTICE / np.maximum(norms, clip)
    cells = np.trunc(rows * scale).astype(np.int64)
    within = (cells**2).sum(axis=1, keepdims=True) <= LATTICE**2
    return np.where(within, cells, 0)


@functools.cache
def lattice_optimizer_class() -> Any:
    """Opacus' optimizer with clipping, sum and noise on integers; a class made when torch is there."""
    torch = load_torch()
    _, private_optimizer = load_opacus()

    class LatticeOptimizer(private_optimizer):  # type: ignore[misc,valid-type]
        """DP optimizer whose noise is the discrete Gaussian of `noise`.

        The sum of `taking_part` learners' rows has sensitivity LATTICE when a learner's row is
        replaced by zeros; the noise has the standard deviation noise_multiplier times LATTICE.
        """

        def __init__(self, optimizer: Any, *, noise: Noise, **settings: Any) -> None:
            super().__init__(optimizer, **settings)
            self.noise = noise
            self.taking_part: NDArray[np.bool_] | None = None

        def clip_and_accumulate(self) -> None:
            """The sum of the clipped gradients of those who take part."""
            rows = torch.cat([one.reshape(len(one), -1) for one in self.grad_samples], dim=1)
            cells = lattice_contributions(rows.double().numpy(), self.max_grad_norm)
            assert self.taking_part is not None
            self._sum = cells[self.taking_part].sum(axis=0)

        def add_noise(self) -> None:
            """The sum with noise, back in the parameters' unit and shapes."""
            noisy = self.noise.discrete_gaussian(self._sum, self.noise_multiplier * LATTICE)
            del self._sum
            flat = torch.as_tensor(noisy * (self.max_grad_norm / LATTICE), dtype=torch.float32)
            start = 0
            for p in self.params:
                p.grad = flat[start : start + p.numel()].view_as(p).clone()
                start += p.numel()

    return LatticeOptimizer
