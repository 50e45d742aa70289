"""The law of the noise in item totals: public, so an estimator may know all of it, not only its variance.

K-norm noise is uniform within a body (the cube, or a hexagon per item) whose radius is drawn once for all items:
given the radius an item cannot be further off than that, and items that are far off tell the radius to the others.
Laplace noise has longer tails than a normal law of the same variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseLaw:
    """Of the noise in (right, answered) of an item, given its covariance.

    For the cube and the hexagon the radius has density proportional to r^(shape - 1) e^(-rate r): the volume of the
    body times e^(-epsilon r). Radii of the mechanism are whole numbers t, and t + 1/2 is meant: as many lattice points
    as the volume of that body (for the hexagon, but for a quarter of a point).
    """

    kind: Literal["normal", "cube", "hexagon", "laplace"] = "normal"
    shape: float = 1.0
    rate: float = 1.0

    @classmethod
    def cube(cls, n_items: int, epsilon: float) -> NoiseLaw:
        """Uniform on [-r, r] for each item's right answers."""
        return cls("cube", n_items + 1.0, epsilon)

    @classmethod
    def hexagon(cls, n_items: int, epsilon: float) -> NoiseLaw:
        """(right, answered) uniform where both and their difference lie within [-r, r]."""
        return cls("hexagon", 2.0 * n_items + 1.0, epsilon)

    @property
    def in_a_body(self) -> bool:
        """Whether all items share a radius."""
        return self.kind in ("cube", "hexagon")

    @property
    def middle(self) -> float:
        """The expected radius."""
        return self.shape / self.rate

    def radii(self) -> Floats:
        """Radii that hold nearly all of the law, in equal steps of their logarithm."""
        if not self.in_a_body:
            return np.ones(1)
        reach = 4.0 / math.sqrt(self.shape)
        return np.asarray(self.middle * np.exp(np.linspace(-reach, min(reach, 2.0), 9)))

    def log_density(self, radii: Floats) -> Floats:
        """Of the logarithm of the radius, but for a constant."""
        if not self.in_a_body:
            return np.zeros(len(radii))
        return np.asarray(self.shape * np.log(radii) - self.rate * radii)

    def draw(self, covariance: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Noise in (right, answered) of some items that share a radius; for simulations."""
        if self.kind == "normal":
            return rng.multivariate_normal(np.zeros(2), covariance, size, method="eigh")
        if self.kind == "laplace":
            right, wrong = rng.laplace(0.0, laplace_scale(covariance), (2, size))
            return np.stack([right, right + wrong], axis=1)
        radius = rng.gamma(self.shape) / self.rate
        return np.asarray(
            radius * (_in_hexagon(size, rng) if self.kind == "hexagon" else _in_cube(size, rng))
        )


NORMAL = NoiseLaw()


def laplace_scale(covariance: Floats) -> float:
    """Of the noise of right and of wrong answers, each with variance 2 b^2."""
    return math.sqrt(float(covariance[0, 0]) / 2.0)


def _in_cube(size: int, rng: np.random.Generator) -> Floats:
    return np.stack([rng.uniform(-1.0, 1.0, size), np.zeros(size)], axis=1)


def _in_hexagon(size: int, rng: np.random.Generator) -> Floats:
    """Of the square around it the hexagon is three quarters."""
    found = np.empty((0, 2))
    while len(found) < size:
        more = rng.uniform(-1.0, 1.0, (2 * size + 8, 2))
        found = np.concatenate([found, more[np.abs(more[:, 0] - more[:, 1]) <= 1.0]])
    return found[:size]
