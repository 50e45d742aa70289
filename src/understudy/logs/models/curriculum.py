"""A declared order of actions: how far jumps lead in it.

With few learners and many actions nothing is known of single jumps, but most lead a step or two on in the course.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray

Floats = NDArray[np.float64]

# Displacements up to here are told apart; larger ones by octaves.
SINGLE = 10
# What a jump of any displacement keeps, whatever the noise says.
ANYWHERE = 0.02


def n_displacements(n_actions: int) -> int:
    """Classes of displacements among so many actions, forward and back."""
    return 2 * (SINGLE + int(np.log2(max(n_actions, SINGLE) / SINGLE)) + 1)


def displacement_class(displacement: IntArray, n_actions: int) -> IntArray:
    """The class of each displacement, which is not 0; those back come after those forward."""
    size = np.abs(displacement)
    octave = SINGLE + np.floor(np.log2(np.maximum(size, SINGLE + 1) / SINGLE)).astype(np.int64)
    forward = np.where(size <= SINGLE, size - 1, octave)
    classes: IntArray = np.where(displacement > 0, forward, n_displacements(n_actions) // 2 + forward)
    return classes


def jumps_by_displacement(shares: Floats, arrivals: Floats) -> Floats:
    """Where a jump leads: a class of displacements by its share, within it an action by its arrivals."""
    n = len(arrivals)
    place = np.arange(n)
    chances = (arrivals / arrivals.sum() + 1.0 / n) / 2.0
    jump = np.empty((n, n))
    for source in range(n):
        elsewhere = place != source
        kind = displacement_class(place[elsewhere] - source, n)
        likely = chances[elsewhere]
        mass = np.bincount(kind, weights=likely, minlength=len(shares))
        ordered = likely * (shares / np.maximum(mass, 1e-300))[kind]
        ordered /= max(ordered.sum(), 1e-12)
        jump[source, elsewhere] = (1.0 - ANYWHERE) * ordered + ANYWHERE * likely / likely.sum()
        jump[source, source] = 0.0
    return jump
