"""Exact subsequence matching of many sequences with many others, of which most pairs are never compared.

Two questions about an original sequence and a set of fakes: which is the best fake (by a score that is known before)
that the original contains whole, and which fake has the largest common subsequence, divided by a number of its own?
Both are answered exactly. A pair is compared only where a bound leaves it a chance:

- The length of a common subsequence is at most the number of codes that both have, order forgotten (the bag
  intersection), and a fake that is contained has its whole bag in the original's.
- Fakes are taken by decreasing score, or by decreasing bound, so the search ends with the first that is contained, or
  with the first whose bound is not above the best so far.
- A common subsequence is not longer than either sequence, so of fakes of most lengths not even bags are looked at where
  a good match is known beforehand.

Common subsequences are computed 64 codes at a time (Hyyrö 2004), containment in one pass over the fake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.core.engine.tasks import run_tasks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Originals that a thread takes at a time.
BLOCK = 256
# The share of fakes above which adding up all counts of a code is faster than those of a list.
COMMON_CODE = 0.1
# Fakes that are looked for one by one before those that are left are sorted.
SELECTED = 8


@dataclass
class MatchingWork:
    """How much was compared: pairs of sequences, and cells, the product of their lengths.

    A pair counts as compared, with all of its cells, as soon as no bound rules it out, even if it is then found out
    in a single pass that it is not contained.
    """

    pairs: int = 0
    cells: int = 0
    compared_pairs: int = 0
    compared_cells: int = 0

    def add(self, other: MatchingWork) -> None:
        """Count the work of another search, too."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def to_json(self) -> dict[str, int]:
        """The counts for a machine."""
        return dict(vars(self))


class Sequences:
    """Sequences of codes from 0 to `n_codes` - 1, laid out one after the other, and their bags."""

    def __init__(self, codes: NDArray[Any], offsets: NDArray[Any], n_codes: int) -> None:
        self.codes = np.ascontiguousarray(codes, dtype=np.int64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.n_codes = n_codes
        self.lengths = np.diff(self.offsets)
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        pair, self.bag_count = np.unique(owner * max(n_codes, 1) + self.codes, return_counts=True)
        self.bag_owner, self.bag_code = np.divmod(pair, max(n_codes, 1))
        self.bag_offsets = np.searchsorted(self.bag_owner, np.arange(len(self.lengths) + 1))
        # The codes of each sequence as 64 bits, several codes to a bit where there are more.
        self.masks = np.zeros(len(self.lengths), dtype=np.uint64)
        np.bitwise_or.at(self.masks, self.bag_owner, np.uint64(1) << (self.bag_code % 64).astype(np.uint64))

    def __len__(self) -> int:
        return len(self.lengths)


def best_contained(
    originals: Sequences, fakes: Sequences, score: Callable[[int], Floats], workers: int = 1
) -> tuple[Ints, MatchingWork]:
    """A fake of the largest score that each original contains, or -1.

    `score` gives the scores of all fakes for an original of some length; those of longer fakes are not looked at.
    """
    best = np.full(len(originals), -1)
    by_length = np.argsort(originals.lengths, kind="stable")
    lengths, begin = np.unique(originals.lengths[by_length], return_index=True)
    tasks = [
        partial(_contained_in, originals, fakes, score, int(length), by_length[first:last])
        for length, first, last in zip(lengths, begin, [*begin[1:], len(by_length)], strict=False)
    ]
    work = _work_of(originals, fakes)
    for members, found, pairs, cells in _run(tasks, workers):
        best[members] = found
        work.compared_pairs += pairs
        work.compared_cells += cells
    return best, work


def _contained_in(
    originals: Sequences, fakes: Sequences, score: Callable[[int], Floats], length: int, members: Ints
) -> tuple[Ints, Ints, int, int]:
    short = np.flatnonzero(fakes.lengths <= length)
    # Of fakes with equal scores any may come first: the best score is the same. A stable sort takes ten times as long.
    order = short[np.argsort(-score(length)[short])]
    found, pairs, cells = _first_contained(
        originals.codes,
        originals.offsets,
        originals.masks,
        members,
        fakes.masks[order],
        fakes.codes,
        fakes.offsets,
        fakes.bag_code,
        fakes.bag_count,
        fakes.bag_offsets,
        order,
        originals.n_codes,
    )
    return members, found, pairs, cells


def largest_common(
    originals: Sequences,
    fakes: Sequences,
    divisor: Floats,
    workers: int = 1,
    known: Floats | None = None,
) -> tuple[Floats, MatchingWork]:
    """Per original: the largest length of a common subsequence with a fake, over that fake's divisor; 0 if none is.

    `known` is what some fake is known to reach, per original: others are looked at only where they may exceed it.
    """
    by_length = FakesByLength(fakes, divisor, originals.n_codes)
    known = np.zeros(len(originals)) if known is None else known
    tasks = [
        partial(_block_of_common, originals, by_length, known, begin)
        for begin in range(0, len(originals), BLOCK)
    ]
    largest, work = np.zeros(len(originals)), _work_of(originals, fakes)
    for begin, found, pairs, cells in _run(tasks, workers):
        largest[begin : begin + len(found)] = found
        work.compared_pairs += pairs
        work.compared_cells += cells
    return largest, work


class FakesByLength:
    """Fakes sorted by length, and which of them have each code how often.

    That is kept as lists, and as whole rows of counts for codes that many have: these are added up many at a time by
    one instruction. `row_of` is where a code has its row, or -1.
    """

    def __init__(self, fakes: Sequences, divisor: Floats, n_codes: int) -> None:
        order = np.argsort(fakes.lengths, kind="stable")
        self.codes = fakes.codes
        self.begin, self.end, self.divisor = (
            fakes.offsets[:-1][order],
            fakes.offsets[1:][order],
            divisor[order],
        )
        # Fakes of one length are a group; no fake of a group has a smaller divisor than its own.
        self.length, first = np.unique(fakes.lengths[order], return_index=True)
        self.groups = np.append(first, len(order))
        self.least_divisor = np.minimum.reduceat(self.divisor, first) if len(first) else np.empty(0)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        posting = np.lexsort((place[fakes.bag_owner], fakes.bag_code))
        code = fakes.bag_code[posting]
        # Narrow, since they are read once per original; a count is not larger than the length of its fake.
        narrow = np.int16 if fakes.lengths.max(initial=0) < 2**15 else np.int32
        self.fake = place[fakes.bag_owner[posting]].astype(np.int32)
        self.count = fakes.bag_count[posting].astype(narrow)
        self.offsets = np.searchsorted(code, np.arange(n_codes + 1))
        frequent = np.diff(self.offsets) > COMMON_CODE * len(fakes)
        self.row_of = np.where(frequent, np.cumsum(frequent) - 1, -1)
        self.rows = np.zeros((int(frequent.sum()), len(fakes)), dtype=narrow)
        listed = frequent[code]
        self.rows[self.row_of[code[listed]], self.fake[listed]] = self.count[listed]


def _block_of_common(
    originals: Sequences, fakes: FakesByLength, known: Floats, begin: int
) -> tuple[int, Floats, int, int]:
    found, pairs, cells = _largest_common(
        originals.codes,
        originals.offsets[begin : begin + BLOCK + 1],
        known[begin : begin + BLOCK],
        (fakes.codes, fakes.begin, fakes.end, fakes.divisor),
        (fakes.length, fakes.groups, fakes.least_divisor),
        (fakes.fake, fakes.count, fakes.offsets, fakes.row_of, fakes.rows),
    )
    return begin, found, pairs, cells


def _work_of(originals: Sequences, fakes: Sequences) -> MatchingWork:
    cells = int(originals.lengths.sum()) * int(fakes.lengths.sum())
    return MatchingWork(len(originals) * len(fakes), cells)


def _run(tasks: list[Any], workers: int) -> list[Any]:
    """The caller's own thread if there is one worker: it may be one of several already."""
    return run_tasks(tasks) if workers > 1 else [task() for task in tasks]


@njit(cache=True, nogil=True)
def _first_contained(  # type: ignore[no-untyped-def]
    codes,
    offsets,
    masks,
    members,
    fake_masks,
    fake_codes,
    fake_offsets,
    bag_code,
    bag_count,
    bag_offsets,
    order,
    n_codes,
):
    """Per member: the first fake of `order` that it contains, or -1; and what was compared."""
    found = np.full(len(members), -1)
    count = np.zeros(n_codes, dtype=np.int64)
    begin = np.zeros(n_codes, dtype=np.int64)
    next_place = np.zeros(n_codes, dtype=np.int64)
    n_pairs, n_cells = 0, 0
    for m in range(len(members)):
        first, last = offsets[members[m]], offsets[members[m] + 1]
        # The places of each code, one code after the other, so that the next one is found by bisection.
        for row in range(first, last):
            count[codes[row]] += 1
        place = np.empty(last - first, dtype=np.int64)
        end = 0
        for row in range(first, last):
            code = codes[row]
            if next_place[code] == 0:
                begin[code] = end
                end += count[code]
            place[begin[code] + next_place[code]] = row - first
            next_place[code] += 1
        strange = ~masks[members[m]]
        for k in range(len(order)):
            if fake_masks[k] & strange:
                continue
            fake = order[k]
            inside = True
            for b in range(bag_offsets[fake], bag_offsets[fake + 1]):
                if count[bag_code[b]] < bag_count[b]:
                    inside = False
                    break
            if not inside:
                continue
            n_pairs += 1
            n_cells += (last - first) * (fake_offsets[fake + 1] - fake_offsets[fake])
            reached = 0
            for row in range(fake_offsets[fake], fake_offsets[fake + 1]):
                code = fake_codes[row]
                low, high = begin[code], begin[code] + count[code]
                end_of_code = high
                while low < high:
                    middle = (low + high) // 2
                    if place[middle] < reached:
                        low = middle + 1
                    else:
                        high = middle
                if low == end_of_code:
                    inside = False
                    break
                reached = place[low] + 1
            if inside:
                found[m] = fake
                break
        for row in range(first, last):
            count[codes[row]] = 0
            next_place[codes[row]] = 0
    return found, n_pairs, n_cells


@njit(cache=True, nogil=True)
def _largest_common(codes, offsets, known, fakes, by_length, postings):  # type: ignore[no-untyped-def]
    """Per original: the largest common length over the divisor; and what was compared."""
    fake_codes, fake_begin, fake_end, divisor = fakes
    length_of, groups, least_divisor = by_length
    posting_fake, posting_count, posting_offsets, row_of, rows = postings
    n_fakes, n_groups, n_codes = len(fake_begin), len(length_of), len(row_of)
    found = known.copy()
    count = np.zeros(n_codes, dtype=np.int64)
    slot = np.full(n_codes, -1)
    shared = np.zeros(n_fakes, dtype=rows.dtype)
    group_bound = np.zeros(n_groups)
    bound, left = np.zeros(n_fakes), np.empty(n_fakes, dtype=np.int64)
    common = np.empty(length_of[-1] if n_groups else 0, dtype=np.uint64)
    n_pairs, n_cells = 0, 0
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        best = known[i]
        # The groups from the first to the last that could exceed what is known, by their lengths alone.
        low, high = n_groups, 0
        for group in range(n_groups):
            if min(last - first, length_of[group]) / least_divisor[group] > best:
                low, high = min(low, group), group + 1
        if low >= high:
            continue
        begin, end = groups[low], groups[high]
        shared[begin:end] = 0
        n_words = (last - first + 63) // 64
        n_slots = 0
        for row in range(first, last):
            code = codes[row]
            count[code] += 1
            if slot[code] < 0:
                slot[code] = n_slots
                n_slots += 1
        masks = np.zeros(n_slots * n_words, dtype=np.uint64)
        for row in range(first, last):
            code, bit = codes[row], row - first
            masks[slot[code] * n_words + bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
            # Bag intersections with all fakes that have the code, once per code.
            if count[code] > 0:
                if row_of[code] >= 0:
                    _add_shared(shared[begin:end], rows[row_of[code], begin:end], count[code])
                else:
                    listed = posting_fake[posting_offsets[code] : posting_offsets[code + 1]]
                    at = posting_offsets[code] + np.searchsorted(listed, begin)
                    while at < posting_offsets[code + 1] and posting_fake[at] < end:
                        shared[posting_fake[at]] += min(count[code], posting_count[at])
                        at += 1
                count[code] = 0
        top_group, highest = -1, best
        for group in range(low, high):
            most = _largest(shared[groups[group] : groups[group + 1]])
            group_bound[group] = most / least_divisor[group]
            if group_bound[group] > highest:
                top_group, highest = group, group_bound[group]
        if top_group >= 0:
            state = np.empty(n_words, dtype=np.uint64)
            top = groups[top_group]
            for fake in range(top, groups[top_group + 1]):
                if shared[fake] / divisor[fake] > shared[top] / divisor[top]:
                    top = fake
            length = _common_length(masks, slot, fake_codes, fake_begin[top], fake_end[top], state, common)
            best = max(best, length / divisor[top])
            n_pairs += 1
            n_cells += (last - first) * (fake_end[top] - fake_begin[top])
            n_left = 0
            for group in range(low, high):
                if group_bound[group] > best:
                    for fake in range(groups[group], groups[group + 1]):
                        bound[fake] = shared[fake] / divisor[fake]
                        if bound[fake] > best and fake != top:
                            left[n_left] = fake
                            n_left += 1
            for k in range(n_left):
                # By decreasing bound: few are taken as a rule, so they are sorted only when it is not so.
                if k < SELECTED:
                    for other in range(k + 1, n_left):
                        if bound[left[other]] > bound[left[k]]:
                            left[k], left[other] = left[other], left[k]
                elif k == SELECTED:
                    left[k:n_left] = left[k:n_left][np.argsort(-bound[left[k:n_left]])]
                fake = left[k]
                if bound[fake] <= best:
                    break
                length = _common_length(
                    masks, slot, fake_codes, fake_begin[fake], fake_end[fake], state, common
                )
                best = max(best, length / divisor[fake])
                n_pairs += 1
                n_cells += (last - first) * (fake_end[fake] - fake_begin[fake])
        found[i] = best
        for row in range(first, last):
            slot[codes[row]] = -1
    return found, n_pairs, n_cells


@njit(cache=True, nogil=True)
def _add_shared(shared, counts, most):  # type: ignore[no-untyped-def]
    """Add what an original with `most` of a code shares of it with each fake."""
    for fake in range(len(shared)):
        shared[fake] += min(counts[fake], most)


@njit(cache=True, nogil=True)
def _largest(shared):  # type: ignore[no-untyped-def]
    most = shared[0]
    for fake in range(1, len(shared)):
        most = max(most, shared[fake])
    return most


@njit(cache=True, nogil=True)
def _common_length(masks, slot, fake_codes, begin, end, state, common):  # type: ignore[no-untyped-def]
    """Length of the longest common subsequence: the zero bits of Hyyrö's state vector (2004).

    `state` and `common` are scratch: a word per 64 codes of the original, and a number per code of the fake.
    """
    # Codes that the original has not are left out beforehand, without a branch that no processor could predict.
    # Places are unsigned: for others numba asks each time whether they count from the end.
    n_words = np.uint64(len(state))
    n_common = np.uint64(0)
    for row in range(begin, end):
        s = slot[fake_codes[row]]
        common[n_common] = np.uint64(s) * n_words
        n_common += np.uint64(s >= 0)
    state[:] = ~np.uint64(0)
    for k in range(n_common):
        first = common[k]
        carry = np.uint64(0)
        for w in range(n_words):
            here = state[w]
            match = here & masks[first + w]
            total = here + match
            carried = total + carry
            carry = np.uint64(total < here) | np.uint64(carried < total)
            state[w] = carried | (here - match)
    length = 0
    for w in range(n_words):
        zeros = ~state[w]
        while zeros:
            zeros &= zeros - np.uint64(1)
            length += 1
    return length
