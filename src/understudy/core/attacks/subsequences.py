"""Exact subsequence matching of many sequences with many others, of which most pairs are never compared.

Two questions about an original sequence and a set of fakes: which is the best fake (by a score that is known before)
that the original contains whole, and which fake has the largest common subsequence, divided by a number of its own?
Both are answered exactly. A pair is compared only where a bound leaves it a chance:

- The length of a common subsequence is at most the number of codes that both have, order forgotten (the bag
  intersection), and a fake that is contained has its whole bag in the original's.
- Fakes are taken by decreasing score, or by decreasing bound, so the search ends with the first that is contained, or
  with the first whose bound is not above the best so far.

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
    """The fake of the largest score that each original contains, or -1.

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
    order = short[np.argsort(-score(length)[short], kind="stable")]
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
    originals: Sequences, fakes: Sequences, divisor: Floats, workers: int = 1
) -> tuple[Floats, MatchingWork]:
    """Per original: the largest length of a common subsequence with a fake, over that fake's divisor; 0 if none is."""
    postings = _postings(fakes, originals.n_codes)
    tasks = [
        partial(_block_of_common, originals, fakes, postings, divisor, begin)
        for begin in range(0, len(originals), BLOCK)
    ]
    largest, work = np.zeros(len(originals)), _work_of(originals, fakes)
    for begin, found, pairs, cells in _run(tasks, workers):
        largest[begin : begin + len(found)] = found
        work.compared_pairs += pairs
        work.compared_cells += cells
    return largest, work


def _postings(fakes: Sequences, n_codes: int) -> tuple[NDArray[Any], ...]:
    """Which fakes have each code, and how often: as lists, and as whole rows of counts for codes that many have.

    Whole rows are added up several at a time by one instruction; `row_of` is where a code has its row, or -1.
    """
    posting = np.argsort(fakes.bag_code, kind="stable")
    code = fakes.bag_code[posting]
    # Narrow, since they are read once per original.
    fake, count = fakes.bag_owner[posting].astype(np.int32), fakes.bag_count[posting].astype(np.int32)
    offsets = np.searchsorted(code, np.arange(n_codes + 1))
    frequent = np.diff(offsets) > COMMON_CODE * len(fakes)
    row_of = np.where(frequent, np.cumsum(frequent) - 1, -1)
    rows = np.zeros((int(frequent.sum()), len(fakes)), dtype=np.int32)
    listed = frequent[code]
    rows[row_of[code[listed]], fake[listed]] = count[listed]
    return fake, count, offsets, row_of, rows


def _block_of_common(
    originals: Sequences, fakes: Sequences, postings: tuple[Any, ...], divisor: Floats, begin: int
) -> tuple[int, Floats, int, int]:
    offsets = originals.offsets[begin : begin + BLOCK + 1]
    found, pairs, cells = _largest_common(
        originals.codes, offsets, fakes.codes, fakes.offsets, postings, divisor, originals.n_codes
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
def _largest_common(  # type: ignore[no-untyped-def]
    codes, offsets, fake_codes, fake_offsets, postings, divisor, n_codes
):
    """Per original: the largest common length over the divisor; and what was compared."""
    posting_fake, posting_count, posting_offsets, row_of, rows = postings
    n_fakes = len(fake_offsets) - 1
    found = np.zeros(len(offsets) - 1)
    count = np.zeros(n_codes, dtype=np.int32)
    slot = np.full(n_codes, -1)
    shared = np.zeros(n_fakes, dtype=np.int32)
    bound, left = np.zeros(n_fakes), np.empty(n_fakes, dtype=np.int64)
    common = np.empty(np.max(np.diff(fake_offsets)) if n_fakes else 0, dtype=np.uint64)
    n_pairs, n_cells = 0, 0
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        n_words = (last - first + 63) // 64
        shared[:] = 0
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
            n = count[code]
            if n > 0:
                counts = row_of[code]
                if counts >= 0:
                    for fake in range(n_fakes):
                        shared[fake] += min(n, rows[counts, fake])
                else:
                    for k in range(posting_offsets[code], posting_offsets[code + 1]):
                        shared[posting_fake[k]] += min(n, posting_count[k])
                count[code] = 0
        for fake in range(n_fakes):
            bound[fake] = shared[fake] / divisor[fake]
        top, highest = -1, 0.0
        for fake in range(n_fakes):
            if bound[fake] > highest:
                top, highest = fake, bound[fake]
        best = 0.0
        if top >= 0:
            state = np.empty(n_words, dtype=np.uint64)
            begin, end = fake_offsets[top], fake_offsets[top + 1]
            best = _common_length(masks, slot, fake_codes, begin, end, state, common)
            best /= divisor[top]
            n_pairs += 1
            n_cells += (last - first) * (end - begin)
            bound[top] = 0.0
            n_left = 0
            for fake in range(n_fakes):
                if bound[fake] > best:
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
                begin, end = fake_offsets[fake], fake_offsets[fake + 1]
                length = _common_length(masks, slot, fake_codes, begin, end, state, common)
                best = max(best, length / divisor[fake])
                n_pairs += 1
                n_cells += (last - first) * (end - begin)
        found[i] = best
        for row in range(first, last):
            slot[codes[row]] = -1
    return found, n_pairs, n_cells


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
