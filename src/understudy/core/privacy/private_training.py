"""Private steps of a gradient method: who takes part, what they may contribute, and exact noise on the sum.

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

from understudy.core.privacy.noise import Noise
from understudy.errors import MissingError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A learner's clipped gradient has at most this many lattice units (Euclidean norm): the sensitivity.
LATTICE = 2**20


def load_torch() -> Any:
    """torch, imported where it is used; without the extra `deep` the error names the command."""
    try:
        import torch
    except ImportError:
        raise MissingError(
            "the deep baseline needs the extra `deep`: pip install 'understudy[deep]'."
        ) from None
    return torch


def load_opacus() -> tuple[Any, Any]:
    """Opacus' module that keeps each example's gradient, and its optimizer."""
    load_torch()
    try:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer
    except ImportError:
        raise MissingError(
            "the deep baseline needs the extra `deep`: pip install 'understudy[deep]'."
        ) from None
    return GradSampleModule, DPOptimizer


@dataclass(frozen=True)
class PrivateSteps:
    """The mechanism M2 is trained with: what the accountant needs to know, and nothing else.

    Each of `n_steps` steps takes every learner with probability `rate`, cuts their gradient to
    the norm `clip` and adds Gaussian noise of `noise_multiplier` times `clip` to the sum.
    """

    rate: float
    n_steps: int
    clip: float
    noise_multiplier: float


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
