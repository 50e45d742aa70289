"""Frames in a file of a scratch folder, one after the other."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl


@dataclass(frozen=True, repr=False)
class StoredBlocks:
    """Frames with the same columns, appended one by one."""

    path: Path
    sizes: list[int] = field(default_factory=list)

    def append(self, frame: pl.DataFrame) -> None:
        """Write another frame."""
        with self.path.open("ab") as file:
            before = file.tell()
            frame.write_ipc_stream(file, compression="lz4")
            self.sizes.append(file.tell() - before)

    def each(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """The frames one by one: these columns, or all of them."""
        with self.path.open("rb") as file:
            for size in self.sizes:
                frame = pl.read_ipc_stream(io.BytesIO(file.read(size)))
                yield frame if columns is None else frame.select(columns)

    def read(self) -> pl.DataFrame:
        """All of them as one."""
        return pl.concat(self.each())
