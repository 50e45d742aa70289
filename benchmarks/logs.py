"""Logs that jobs and comparisons have in common."""

from __future__ import annotations

import numpy as np

from understudy.core.attacks.subsequences import Sequences
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom


def assistments_like() -> Interactions:
    """A simulated log of the size of ASSISTments 2009."""
    shape = Classroom(
        n_learners=4138, n_actions=102, median_length=20, length_spread=1.5, shortest=1, longest=1000
    )
    return shape.simulate(np.random.default_rng(1))


def long_sequences(log: Interactions) -> tuple[Sequences, Sequences]:
    """A hundred of its long sequences, and a hundred others."""
    long = log.select(np.argsort(-log.lengths)[100:300])
    first, second = (long.select(np.arange(200) % 2 == odd) for odd in (0, 1))
    return tuple(Sequences(half.action, half.offsets, half.n_actions) for half in (first, second))
