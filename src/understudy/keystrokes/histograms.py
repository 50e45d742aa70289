"""Histograms of latencies: how often each owner took how long for each digraph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.errors import UsageError
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import LONGEST, SHORTEST, Kind, latency_rows

WIDTH = 10.0  # milliseconds of a class

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Histograms:
    """`count[i, j, c]`: latencies of owner i on feature j from c to c + 1 times `width` milliseconds."""

    features: tuple[str, ...]
    width: float
    count: NDArray[np.int32]


def count_histograms(
    keystrokes: Keystrokes,
    owner: Codes,
    n_owners: int,
    features: tuple[str, ...],
    kind: Kind = Kind.digraph,
    width: float = WIDTH,
    shortest: float = SHORTEST,
    longest: float = LONGEST,
) -> Histograms:
    """Histograms over the rows that `count_latencies` would count, for the named features of one kind.

    The features are named, not numbered, so that two calls count the same ones. A name that does not
    occur has no latencies. Coarse times should be counted up to where `longest` is coarsened to.
    """
    if not width > 0:
        raise UsageError(f"asked for classes of {width} ms.", hint="give a width above 0 ms.")
    code, value, labels = latency_rows(keystrokes, owner, kind, shortest, longest)
    wanted = {name: place for place, name in enumerate(features)}
    place = np.array([wanted.get(name, -1) for name in labels] + [-1], dtype=np.int64)
    largest = 2 * longest if kind is Kind.trigraph else longest
    count = np.zeros((n_owners, len(features), int(largest // width) + 1), dtype=np.int32)
    _tally(place[code], np.asarray(value, dtype=np.float64), owner, width, count)
    return Histograms(features, width, count)


@njit(cache=True)
def _tally(feature, value, owner, width, count):  # type: ignore[no-untyped-def]
    for r in range(len(feature)):
        if feature[r] >= 0:
            count[owner[r], feature[r], int(value[r] // width)] += 1
