"""Arrays in files (npz): read without running anything that the file brings along, whole or with an error of ours."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.source import keeping_values_inside


def read_arrays(content: bytes, message: str, *, hint: str) -> dict[str, NDArray[Any]]:
    """The arrays by name; `message` and `hint` are for a file that is damaged, or not such a file."""
    # An array of more than all memory is one whose size was damaged, or invented.
    with keeping_values_inside(message, hint=hint, also=MemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's remarks about headers that are odd
        found = np.load(io.BytesIO(content), allow_pickle=False)
        with found:
            return {name: np.asarray(found[name]) for name in found.files}
