"""Correlation-based feature selection: few features that tell the label and do not repeat each other.

Hall (1999): a set of k features is worth

    merit = k r_cf / sqrt(k + k (k - 1) r_ff),

r_cf the mean correlation of its features with the class and r_ff that of its features with each other,
both as symmetrical uncertainty of discretised features. The set is sought best first, forward from the
empty one, and the search ends after five expansions in a row that found nothing better (WEKA's
`CfsSubsetEval` and `BestFirst`, which the thesis used, section 4.4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from understudy.reproductions.keystroke_privacy.weka import Codes, Floats, Ints, bits_table

STALE = 5  # expansions without improvement before the search ends; also how many sets wait
BETTER = 1e-5  # what counts as an improvement of the merit, as in WEKA


def symmetrical_uncertainty(code: Codes, codes: Codes) -> Floats:
    """2 (H(X) + H(Y) - H(X, Y)) / (H(X) + H(Y)) of `code` with each column of `codes`; 0 if both are constant."""
    columns = np.ascontiguousarray(codes.T)
    n_bins = columns.max(axis=1, initial=0) + 1
    result: Floats = _uncertainties(code, int(code.max()) + 1, columns, n_bins)
    return result


def merit(class_correlations: Floats, feature_correlations: Floats) -> float:
    """Hall's merit of a set: its k correlations with the class, and its k x k ones with each other."""
    k = len(class_correlations)
    if not k:
        return 0.0
    return float(class_correlations.sum() / np.sqrt(k + feature_correlations[~np.eye(k, dtype=bool)].sum()))


@dataclass(frozen=True, eq=False)
class _Subset:
    """A set of candidates with the sums that its merit and its children's need.

    `before` holds, for every candidate, the sum of its correlations with the members but the last.
    """

    members: frozenset[int]
    merit: float
    with_class: float
    among: float  # sum of correlations over its pairs
    before: Floats
    last: int | None = None


def select_features(codes: Codes, labels: Ints) -> Ints:
    """The positions of the features that best-first search keeps, in rising order; perhaps none.

    Correlations between features are computed only for those that the search adds: a feature in
    one bin has none with the class and is no candidate, and the rest meet the few that are added.
    """
    candidates = np.flatnonzero(codes.max(axis=0, initial=0) > 0)
    if not len(candidates):
        return candidates
    columns = np.ascontiguousarray(codes[:, candidates].T)
    n_bins = columns.max(axis=1) + 1
    with_class = _uncertainties(labels.astype(np.int32), int(labels.max()) + 1, columns, n_bins)
    rows: dict[int, Floats] = {}

    def with_each(subset: _Subset) -> Floats:
        j = subset.last
        if j is None:
            return subset.before
        if j not in rows:
            rows[j] = _uncertainties(columns[j], int(n_bins[j]), columns, n_bins)
        return subset.before + rows[j]

    best = _Subset(frozenset(), 0.0, 0.0, 0.0, np.zeros(len(candidates)))
    waiting, seen, stale = [best], {best.members}, 0
    while waiting and stale < STALE:
        parent = waiting.pop(0)
        sums = with_each(parent)
        pairs = parent.among + sums
        merits = (parent.with_class + with_class) / np.sqrt(len(parent.members) + 1 + 2 * pairs)
        merits[list(parent.members)] = -np.inf
        improved = False
        for j, worth in _largest(merits, STALE + len(seen)):
            if len(waiting) == STALE and worth <= waiting[-1].merit:
                break
            members = parent.members | {j}
            if members in seen:
                continue
            seen.add(members)
            child = _Subset(members, worth, parent.with_class + with_class[j], float(pairs[j]), sums, j)
            if child.merit > best.merit + BETTER:
                best, improved = child, True
            waiting = sorted([*waiting, child], key=lambda subset: -subset.merit)[:STALE]
        stale = 0 if improved else stale + 1
    return candidates[sorted(best.members)]


def _largest(merits: Floats, n: int) -> list[tuple[int, float]]:
    """The n largest finite merits, largest first and ties in order of position."""
    order = np.arange(len(merits))
    if n < len(merits):
        threshold = np.partition(merits, -n)[-n]
        order = np.flatnonzero(merits >= threshold)
    order = order[np.argsort(-merits[order], kind="stable")]
    return [(int(j), float(merits[j])) for j in order if np.isfinite(merits[j])]


@njit(cache=True, nogil=True)
def _uncertainties(code: Any, n_codes: int, columns: Any, n_bins: Any) -> Any:
    n_features, n = columns.shape
    bits = bits_table(n)
    own = np.zeros(n_codes, dtype=np.int64)
    for i in range(n):
        own[code[i]] += 1
    own_bits = bits[n]
    for a in range(n_codes):
        own_bits -= bits[own[a]]
    result = np.zeros(n_features)
    for j in range(n_features):
        together = np.zeros((n_codes, n_bins[j]), dtype=np.int64)
        other = np.zeros(n_bins[j], dtype=np.int64)
        for i in range(n):
            together[code[i], columns[j, i]] += 1
            other[columns[j, i]] += 1
        other_bits, joint_bits = bits[n], bits[n]
        for b in range(n_bins[j]):
            other_bits -= bits[other[b]]
            for a in range(n_codes):
                joint_bits -= bits[together[a, b]]
        if own_bits + other_bits > 0:
            shared = own_bits + other_bits - joint_bits
            result[j] = max(0.0, 2.0 * shared / (own_bits + other_bits))
    return result
