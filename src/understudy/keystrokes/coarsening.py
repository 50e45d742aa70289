"""Coarsening of latencies: the thesis's two ways (equations 3 to 5), on averages or on events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from understudy.errors import UsageError

Floats = NDArray[np.float64]


class Way(StrEnum):
    """How a latency is made coarse."""

    round = "round"
    bucket = "bucket"


@dataclass(frozen=True)
class Coarsening:
    """Latencies on a grid of `size` milliseconds; size 0 leaves them as they are."""

    way: Way
    size: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.size) and self.size >= 0):
            raise UsageError(f"asked to coarsen to {self.size} ms.", hint="give a size of 0 ms or more.")

    def __str__(self) -> str:
        return f"{self.way}:{self.size:g}"

    def __call__(self, milliseconds: Floats) -> Floats:
        """Equation 3, or equations 4 and 5; halves go up, as in the thesis's tools."""
        if self.size == 0:
            return milliseconds
        if self.way is Way.bucket:
            milliseconds = milliseconds + self.size / 2
        return self.size * np.floor(milliseconds / self.size + 0.5)
