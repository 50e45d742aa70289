"""Digests of learners' ids: all that a record keeps of them, so that the ledger knows the same learners again.

A digest can be guessed from an id, so it is as private as the id itself: it lives in memory, and is never written.
What the ledger keeps is made from digests with a key of its own (`core/privacy/rosters.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
DIGEST_BYTES = 8


def digests_of_names(names: pl.Series) -> Digests:
    """The digests of learners by their names, each once; spelling and a spreadsheet's zeros make no difference.

    Capitals, spaces around a name, leading zeros of a number and ".0" after it change when a table is exported again.
    """
    plain = names.drop_nulls().cast(pl.String).str.strip_chars().str.to_lowercase()
    same = plain.str.replace(r"^0*(\d+)(\.0*)?$", "$1").unique()
    return digests_of(name.encode() for name in same)


def digests_of(values: Iterable[bytes]) -> Digests:
    """The digest of each value, as a number."""
    joined = b"".join(blake2b(value, digest_size=DIGEST_BYTES).digest() for value in values)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)


def are_only_numbered(digests: Digests) -> bool:
    """Whether the ids are whole numbers of at most twice as many as there are, as somebody counts a class."""
    if not np.isin(digests_of([b"1", b"2", b"3"]), digests).any():
        return False
    return bool(
        np.isin(digests, digests_of(str(number).encode() for number in range(2 * len(digests) + 1))).all()
    )


def within_file(digests: Digests, path: Path) -> Digests:
    """Digests of the same learners in this file alone: a copy of it has the same, any other content has others."""
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "blake2b").digest()
    return digests_of(content + digest.tobytes() for digest in digests)
