"""Tables written as files of the kinds that are read in pieces."""

import gzip
from pathlib import Path

import polars as pl


def write_as(path: Path, table: pl.DataFrame) -> Path:
    """Write a table as its name says: parquet, tsv or csv, perhaps packed."""
    if path.name.endswith("parquet"):
        table.write_parquet(path, row_group_size=70)
    else:
        text = table.write_csv(separator="\t" if path.name.endswith("tsv") else ",").encode()
        path.write_bytes(gzip.compress(text) if path.name.endswith("gz") else text)
    return path
