"""Discretisation of latencies with the label in view: cuts that pay for their description.

Fayyad and Irani (1993): a set of learners is cut where the label's entropy falls most, both parts are
cut again, and a cut is kept if its gain exceeds what telling it costs (minimum description length),

    gain > (log2(m) + log2(3^k - 2) - (k H - k_1 H_1 - k_2 H_2)) / N,

with N learners and k classes in the set, H its entropy in bits, and the same with 1 and 2 for its parts.
m is the number of places where the set can be cut: N - 1 in the paper, for values that all differ.
Coarse latencies hardly differ, and telling one of two values apart costs no choice of a place; so m counts
distinct values less one (WEKA's "better encoding", which its correlation-based selection uses).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

# Entropies that differ by less (in bits times learners) are equal: what rounding of floats leaves.
EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where each feature is cut: feature j at `points[starts[j]:starts[j + 1]]`, in rising order.

    A value belongs to the bin whose number is how many cuts lie strictly below it. A feature without
    cuts has one bin: it tells nothing about the label that would be worth telling.
    """

    starts: Ints
    points: Floats

    @property
    def n_bins(self) -> Ints:
        """Bins of each feature: its cuts and one."""
        return np.diff(self.starts) + 1

    def of(self, features: Ints) -> Cuts:
        """Only the features at these positions."""
        parts = [self.points[self.starts[j] : self.starts[j + 1]] for j in features]
        lengths = [len(part) for part in parts]
        return Cuts(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.concatenate([*parts, np.empty(0)])
        )

    def apply(self, values: Floats) -> Codes:
        """The bin of each value; `values` and the result are learners x features."""
        codes: Codes = _bins(values, self.starts, self.points)
        return codes


def mdl_cuts(values: Floats, labels: Ints) -> Cuts:
    """Fayyad and Irani's cuts of each feature: `values` is learners x features, `labels` from 0."""
    starts, points = _cut_points(np.ascontiguousarray(values.T), labels, int(labels.max()) + 1)
    return Cuts(starts, points)


@njit(cache=True, nogil=True)
def _bins(values: Any, starts: Any, points: Any) -> Any:
    n, n_features = values.shape
    codes = np.zeros((n, n_features), dtype=np.int32)
    for i in range(n):
        for j in range(n_features):
            for one in range(starts[j], starts[j + 1]):
                if values[i, j] <= points[one]:
                    break
                codes[i, j] += 1
    return codes


@njit(cache=True, nogil=True)
def bits_table(n: int) -> Any:
    """m log2 m for m = 0..n: entropies of counts are sums and differences of these."""
    table = np.zeros(n + 1)
    for m in range(2, n + 1):
        table[m] = m * np.log2(m)
    return table


@njit(cache=True, nogil=True)
def _cut_points(columns: Any, labels: Any, n_classes: int) -> Any:
    n_features, n = columns.shape
    bits = bits_table(n)
    starts = np.zeros(n_features + 1, dtype=np.int64)
    points = np.empty(n_features + n)
    found = np.empty(n)
    stack = np.empty((n + 1, 2), dtype=np.int64)
    for j in range(n_features):
        order = np.argsort(columns[j])
        value, label = columns[j][order], labels[order]
        n_found = 0
        depth = 1
        stack[0, 0], stack[0, 1] = 0, n
        while depth:
            depth -= 1
            first, last = stack[depth, 0], stack[depth, 1]
            middle = _best_cut(value, label, first, last, n_classes, bits)
            if middle > first:
                low, high = value[middle - 1], value[middle]
                point = (low + high) / 2
                found[n_found] = point if point < high else low  # neighbouring floats have no middle
                n_found += 1
                stack[depth, 0], stack[depth, 1] = first, middle
                stack[depth + 1, 0], stack[depth + 1, 1] = middle, last
                depth += 2
        if starts[j] + n_found > len(points):
            larger = np.empty(2 * len(points) + n)
            larger[: starts[j]] = points[: starts[j]]
            points = larger
        points[starts[j] : starts[j] + n_found] = np.sort(found[:n_found])
        starts[j + 1] = starts[j] + n_found
    return starts, points[: starts[n_features]].copy()


@njit(cache=True, nogil=True)
def _best_cut(value: Any, label: Any, first: int, last: int, n_classes: int, bits: Any) -> int:
    """The place that splits `first:last` best, if that is worth its description; else `first`."""
    n = last - first
    if n < 2 or value[first] == value[last - 1]:
        return first
    left, right = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    for r in range(first, last):
        right[label[r]] += 1
    # Entropy times learners: n log2 n less the sum of c log2 c over the classes' counts c.
    in_left, in_right, n_present = 0.0, 0.0, 0
    for c in range(n_classes):
        in_right += bits[right[c]]
        n_present += right[c] > 0
    whole = bits[n] - in_right
    best, place, n_places = whole, first, 0
    for r in range(first, last - 1):
        c = label[r]
        in_left += bits[left[c] + 1] - bits[left[c]]
        in_right += bits[right[c] - 1] - bits[right[c]]
        left[c] += 1
        right[c] -= 1
        if value[r] < value[r + 1]:
            n_places += 1
            n_left = r + 1 - first
            parts = bits[n_left] - in_left + bits[n - n_left] - in_right
            if parts < best - EQUAL:
                best, place = parts, r + 1
    if place == first:
        return first
    left[:] = 0
    right[:] = 0
    for r in range(first, last):
        if r < place:
            left[label[r]] += 1
        else:
            right[label[r]] += 1
    left_bits, right_bits, n_left_present, n_right_present = bits[place - first], bits[last - place], 0, 0
    for c in range(n_classes):
        left_bits -= bits[left[c]]
        right_bits -= bits[right[c]]
        n_left_present += left[c] > 0
        n_right_present += right[c] > 0
    spared = (
        n_present * whole / n
        - n_left_present * left_bits / (place - first)
        - n_right_present * right_bits / (last - place)
    )
    price = np.log2(float(n_places)) + np.log2(3.0**n_present - 2.0) - spared
    return place if whole - best > price + EQUAL else first


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
