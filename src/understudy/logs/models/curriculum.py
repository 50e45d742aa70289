"""A declared course: how far jumps lead in the order of its actions, and what actions of a chapter have in common.

With few learners and many actions nothing is known of single jumps, but most lead a step or two on in the course.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray, totals

Floats = NDArray[np.float64]

# Displacements up to here are told apart; larger ones by octaves.
SINGLE = 10
# What a jump of any displacement keeps, whatever the noise says.
ANYWHERE = 0.02
# Mean difficulties of chapters differ by about half a unit of log-odds.
CHAPTER_VARIANCE = 0.25


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


def by_chapter(value: Floats, variance: Floats, chapters: IntArray) -> Floats:
    """For each action the mean value of its chapter, drawn to 0 as far as it is uncertain."""
    n_chapters = int(chapters.max()) + 1
    weight = totals(chapters, 1.0 / variance, n_chapters)
    mean = totals(chapters, value / variance, n_chapters) / (weight + 1.0 / CHAPTER_VARIANCE)
    middle: Floats = mean[chapters]
    return middle
