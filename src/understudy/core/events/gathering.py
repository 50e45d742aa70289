"""Arrays with a row per event of all learners, put together in files from pieces that hold some learners each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.core.files.storage.scratch import reserve

Array = NDArray[Any]
IntArray = NDArray[np.integer[Any]]


def gather(parts: Iterable[tuple[Array, IntArray]], begins: IntArray, n_rows: int, path: Path) -> Array:
    """An array in a file, mapped into memory; of each part its rows, and where those of its learners begin in it.

    `begins` says where the rows of each learner belong, part by part.
    """
    whole: Array | None = None
    for rows, offsets in parts:
        if whole is None:
            whole = np.lib.format.open_memmap(path, mode="w+", dtype=rows.dtype, shape=(n_rows,))
            reserve(path)
        # Compiled code knows no times.
        plain = np.dtype(np.int64) if rows.dtype.kind == "M" else rows.dtype
        own, begins = np.split(begins, [len(offsets) - 1])
        _put(rows.view(plain), offsets, own, whole.view(plain))
    assert whole is not None
    return whole


@njit(cache=True, nogil=True)
def _put(rows, offsets, begins, target):  # type: ignore[no-untyped-def]
    """Copy the rows of each learner to where they belong."""
    for i in range(len(begins)):
        begin = begins[i]
        for k in range(offsets[i], offsets[i + 1]):
            target[begin + k - offsets[i]] = rows[k]
