"""Who typed this? Naming the author of keystrokes by their typing profile.

The attacker holds typing of known people (the first weeks of a course, say) and a release of later
typing without names. For each unnamed person they rank the known ones, and win with `k` guesses
when the right one is among the first k. k/n is what guessing gives.

What is released is coarse, and the attacker knows how coarse: they coarsen what they know in the same way, so
both sides of a distance are coarse. An attacker who has the fine typing of the known people can do that
too, and more: `attacks.typing_trained.cell_likelihood`.

All attacks take arrays and return distances, a row per unnamed and a column per known person; this module holds
those on profiles, `typing_events` those on single latencies, `typing_trained` those that learn how people vary.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def normalised(*parts: Floats) -> list[Floats]:
    """Every column onto 0 to 1 by its smallest and largest value in all the parts together (equation 1)."""
    together = np.concatenate(parts)
    low = np.fmin.reduce(
        together, axis=0
    )  # these pass over what is not a number: a learner who typed nothing
    width = np.fmax.reduce(together, axis=0) - low
    # A column in which all are equal says nothing, and stays so.
    return [(part - low) / np.where(width > 0, width, 1.0) for part in parts]


def euclidean(known: Floats, unknown: Floats) -> Floats:
    """The attacker of Leinonen (2016): whose average latencies are nearest to those of the unnamed person?

    Equations 1 and 2: every feature onto 0 to 1, then Euclid.
    """
    known, unknown = normalised(known, unknown)
    return np.asarray(cdist(unknown, known))


def manhattan(known: Floats, unknown: Floats) -> Floats:
    """An attacker who lets one odd digraph weigh less: the sum of differences of the normalised features."""
    known, unknown = normalised(known, unknown)
    return np.asarray(cdist(unknown, known, "cityblock"))


def scaled_manhattan(known: Floats, unknown: Floats) -> Floats:
    """An attacker who measures a difference by how much people differ: in mean absolute deviations.

    The best of 14 detectors that Killourhy and Maxion (2009) compared on passwords. There the deviation is of one
    person's repetitions; a profile has none, so it is between the known people.
    """
    with np.errstate(invalid="ignore"):
        deviation = np.nanmean(np.abs(known - np.nanmean(known, axis=0)), axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    return np.asarray(cdist(unknown / scale, known / scale, "cityblock"))


def mahalanobis(known: Floats, unknown: Floats) -> Floats:
    """An attacker who knows that digraphs go together: a fast person is fast on all of them, so one speed counts once.

    Differences are measured in the covariance of the known people's profiles, shrunk (Ledoit and Wolf
    2004) because there are few people for many digraphs. With several windows of each known person,
    `attacks.typing_trained.within_mahalanobis` is the stronger form.
    """
    typed = known[np.isfinite(known).all(axis=1)]
    spread = typed.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    whiten = whitening((typed - typed.mean(axis=0)) / scale) / scale[:, None]
    return np.asarray(cdist(unknown @ whiten, known @ whiten))


def rank_of_features(known: Floats, unknown: Floats) -> Floats:
    """An attacker who trusts no clock: which digraphs is this person fast and slow on, in order?

    Spearman's rank correlation of two profiles over the digraphs (the distance is 1 less it), after
    each digraph's mean over people is taken off: otherwise all share the order that the keyboard
    gives. No common factor and no common shift of all latencies changes the order.
    """
    # What the other side types differently as a whole (a faster week) is no learner's habit: each has its own mean.
    order = [
        _standardised(rankdata(np.round(part - _mean(part), 9), axis=1, nan_policy="propagate"))
        for part in (known, unknown)
    ]
    return np.asarray(1.0 - order[1] @ order[0].T)


def rank_of_people(known: Floats, unknown: Floats) -> Floats:
    """An attacker to whom only places count: the third fastest on this digraph then, the third fastest now?

    Each digraph's values become ranks among the people of the same side, from 0 to 1 with ties shared;
    then Manhattan. Nothing that keeps the order of people on a digraph changes it: other keyboards, a
    release that stretches all times.
    """
    places = [
        (rankdata(np.round(part, 9), axis=0, nan_policy="omit") - 0.5) / len(part)
        for part in (known, unknown)
    ]
    return np.asarray(cdist(places[1], places[0], "cityblock"))


def whitening(centred: Floats) -> Floats:
    """W such that differences times W have the shrunk covariance of the centred rows as their unit.

    Shrinkage towards a multiple of the identity by the amount of Ledoit and Wolf (2004), which is
    estimated from the rows; the columns should be on a common scale.
    """
    n, d = centred.shape
    covariance = centred.T @ centred / n
    level = np.trace(covariance) / d
    if not level > 0:
        return np.eye(d)
    squared = np.sum(covariance**2)
    away = (squared - d * level**2) / d
    uncertain = (np.sum((centred**2).sum(axis=1) ** 2) / n - squared) / (n * d)
    weight = 1.0 if away <= 0 else min(uncertain / away, 1.0)
    shrunk = (1.0 - weight) * covariance + weight * level * np.eye(d)
    values, vectors = eigh(shrunk)
    # Rows that never vary in a direction would make it infinitely telling.
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-6 * level)))


def _mean(part: Floats) -> Floats:
    return np.asarray(np.nanmean(part, axis=0))


def _standardised(ranks: Floats) -> Floats:
    """Rows such that products of two are their correlation; a constant row correlates with nothing."""
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(centred / np.where(length > 0, length, 1.0))


PROFILE_ATTACKS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "euclidean": euclidean,
    "manhattan": manhattan,
    "scaled-manhattan": scaled_manhattan,
    "mahalanobis": mahalanobis,
    "rank-features": rank_of_features,
    "rank-people": rank_of_people,
}
