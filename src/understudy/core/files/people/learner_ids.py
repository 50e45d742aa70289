"""Digests of learners' ids: all that a record keeps of them, so that the ledger knows the same learners again.

A digest can be guessed from an id, so it is as private as the id itself: it lives in memory, and is never written.
What the ledger keeps is made from digests with a key of its own (`core/privacy/rosters.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
Names = TypeVar("Names", pl.Series, pl.Expr)
DIGEST_BYTES = 8
# From so many values on, digesting them takes longer than loading what digests all at once.
_MANY = 200_000
_TABLES = (".csv", ".gz", ".parquet", ".tsv")


def digests_of_names(names: pl.Series) -> Digests:
    """The digests of learners by their names, each once; spelling and a spreadsheet's zeros make no difference."""
    return _digests_of_texts(folded_names(names.drop_nulls()).unique())


def folded_names(names: Names) -> Names:
    """Names as they are compared: what is equal here is one learner.

    Capitals, spaces around a name, leading zeros of a number and ".0" after it change when a table is exported again.
    """
    plain = names.cast(pl.String).str.strip_chars().str.to_lowercase()
    return plain.str.replace(r"^0*(\d+)(\.0*)?$", "$1")


def digests_of(values: Iterable[bytes]) -> Digests:
    """The digest of each value, as a number."""
    listed = list(values)
    return _digests(b"".join(listed), np.fromiter(map(len, listed), np.int64, len(listed)))


def keyed_digests(digests: Digests, key: bytes) -> Digests:
    """The digests of digests under a key."""
    return _digests(digests.astype("<u8").tobytes(), np.full(len(digests), DIGEST_BYTES), key)


def _digests_of_texts(texts: pl.Series) -> Digests:
    return _digests("".join(texts.to_list()).encode(), texts.str.len_bytes().to_numpy())


def _digests(data: bytes, sizes: NDArray[np.integer[Any]], key: bytes = b"") -> Digests:
    """Of the values that lie in `data` one after the other."""
    if len(sizes) >= _MANY:
        # Imported here: a class is digested before the compiled one is loaded.
        from understudy.core.files.people.blake2 import blake2_numbers

        return blake2_numbers(data, sizes.astype(np.int64), key)
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    joined = b"".join(
        blake2b(data[start:end], digest_size=DIGEST_BYTES, key=key).digest()
        for start, end in zip([0, *ends], ends, strict=False)
    )
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)


def are_only_numbered(digests: Digests) -> bool:
    """Whether the ids are whole numbers of at most twice as many as there are, as somebody counts a class."""
    if not any((digests == small).any() for small in digests_of([b"1", b"2", b"3"])):
        return False
    # Most classes are counted from 1 without gaps: the numbers beyond are needed for those that are not.
    missing = np.sort(digests)
    for first in (0, len(digests) + 1):
        numbers = pl.int_range(first, min(first + len(digests), 2 * len(digests)) + 1, eager=True)
        counted = np.sort(_digests_of_texts(numbers.cast(pl.String)))
        # Both sorted: a lookup of a million in order is several times as fast as `isin`.
        places = np.minimum(np.searchsorted(counted, missing), len(counted) - 1)
        missing = missing[counted[places] != missing]
        if not len(missing):
            return True
    return False


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def _content_of_tables(folder: Path) -> bytes:
    """The content of the tables in a folder, whatever they are called; what else lies there may change."""
    tables = (file for file in folder.rglob("*") if file.is_file() and file.suffix.lower() in _TABLES)
    return blake2b(b"".join(sorted(map(_content, tables)))).digest()


def within_file(digests: Digests, path: Path) -> Digests:
    """Digests of the same learners in this file or folder alone: a copy has the same, any other content has others."""
    content = _content_of_tables(path) if path.is_dir() else _content(path)
    of_learner = digests.astype("<u8").view(np.uint8).reshape(-1, DIGEST_BYTES)
    values = np.empty((len(digests), len(content) + DIGEST_BYTES), dtype=np.uint8)
    values[:, : len(content)], values[:, len(content) :] = np.frombuffer(content, dtype=np.uint8), of_learner
    return _digests(values.tobytes(), np.full(len(digests), values.shape[1]))
