"""Simulated answers with points, by the partial credit model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Floats = NDArray[np.float64]


def simulate_points(
    ability: Floats, thresholds: Sequence[Floats], rng: np.random.Generator, slopes: Floats | None = None
) -> NDArray[np.int8]:
    """Steps of each learner at items with these thresholds."""
    steps = np.empty((len(ability), len(thresholds)), dtype=np.int8)
    for item, places in enumerate(thresholds):
        slope = 1.0 if slopes is None else slopes[item]
        logs = slope * (np.arange(len(places) + 1) * ability[:, None] - np.append(0.0, np.cumsum(places)))
        below = np.cumsum(softmax(logs, axis=1), axis=1)
        steps[:, item] = (rng.random(len(ability))[:, None] > below[:, :-1]).sum(axis=1)
    return steps
