"""Windows: stretches of one person's typing, each with a profile of its own, for attackers who learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import UsageError
from understudy.keystrokes.keystrokes import Keystrokes

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """`window[r]` is the window of row r, or -1; `owner[w]` is whose typing window w is.

    `count_latencies(keystrokes, windows.window, windows.n_windows)` gives the totals of each.
    """

    window: NDArray[np.int32]
    owner: NDArray[np.int32]

    @property
    def n_windows(self) -> int:
        """How many windows there are."""
        return len(self.owner)


def by_week(keystrokes: Keystrokes, owner: Codes) -> Windows:
    """A window per owner and week; rows without an owner or a week belong to none."""
    used = (owner >= 0) & (keystrokes.week >= 0)
    n_weeks = int(keystrokes.week.max(initial=0)) + 1
    return _numbered(owner.astype(np.int64) * n_weeks + keystrokes.week, used, n_weeks)


def by_size(owner: Codes, n_keys: int) -> Windows:
    """Windows of `n_keys` presses one after the other; what is left at an owner's end joins the last window.

    The rows of an owner need not be next to each other, only in order.
    """
    if n_keys < 2:
        raise UsageError(
            f"asked for windows of {n_keys} keys.", hint="give at least 2; some hundred are usual."
        )
    used = owner >= 0
    rows = np.flatnonzero(used)
    order = rows[np.argsort(owner[rows], kind="stable")]
    size = np.bincount(owner[rows]) if len(rows) else np.zeros(0, np.int64)
    first = np.cumsum(size) - size
    whose = owner[order]
    place = np.arange(len(order)) - first[whose]
    n_windows = np.maximum(size // n_keys, 1)
    block = np.minimum(place // n_keys, n_windows[whose] - 1)
    most = int(n_windows.max(initial=1))
    combined = np.full(len(owner), -1, dtype=np.int64)
    combined[order] = whose.astype(np.int64) * most + block
    return _numbered(combined, used, most)


def _numbered(combined: NDArray[np.int64], used: NDArray[np.bool_], per_owner: int) -> Windows:
    present, place = np.unique(combined[used], return_inverse=True)
    window = np.full(len(combined), -1, dtype=np.int32)
    window[used] = place
    return Windows(window, (present // per_owner).astype(np.int32))
