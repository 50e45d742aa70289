"""Writes files so that there is a whole one or none (under a temporary name, then renamed), and tables of results."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from understudy.core.files.storage.faults import explaining_disk
from understudy.core.files.storage.scratch import remove_stale
from understudy.errors import UsageError

Row = dict[str, Any]
# Seconds have a fraction only where there is one.
TIMES_AS_TEXT = "%Y-%m-%d %H:%M:%S%.f"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    write_with(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Write a UTF-8 file whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then give it its name."""
    check_parent(path)
    # What killed runs left behind may hold rows of real learners.
    remove_stale(path.parent, _unfinished(path))
    with explaining_disk(path):
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f"{_unfinished(path)}{os.getpid()}-", suffix="".join(path.suffixes)
        )
        os.close(handle)
        _begun.append(path.absolute())
        temporary = Path(name)
        try:
            write(temporary)
            # mkstemp makes private files; what a user asks for has the usual permissions.
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes `path` when the block ends well, and vanishes when not."""
    check_new(path, folder=True)
    remove_stale(path.parent, _unfinished(path))
    with explaining_disk(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{_unfinished(path)}{os.getpid()}-"))
        _begun.append(path.absolute())
        try:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            if path.exists():
                path.rmdir()
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _unfinished(path: Path) -> str:
    """How the temporary names of a file or folder begin; a name of the usual length leaves room for it."""
    return f".{path.name[:100]}-unfinished-"


# Files and folders that this process began to write, under a temporary name beside their own.
_begun: list[Path] = []


class Written:
    """Which of the files or folders that a command writes have changed since it began."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._before = {path: _state(path) for path in paths}
        self._begun = len(_begun)

    def begun(self) -> bool:
        """Whether one was begun under a temporary name, whatever became of it: the user may have looked."""
        places = {path.absolute() for path in self._before}
        return any(place in places or places & {*place.parents} for place in _begun[self._begun :])

    def now(self) -> list[Path]:
        """Those that were written."""
        return [path for path, before in self._before.items() if _state(path) not in (before, None)]

    def sentence(self) -> str:
        """The same in words, without a full stop."""
        found = self.now()
        were = "was" if len(found) == 1 else "were"
        return f"{' and '.join(map(str, found))} {were} written" if found else "nothing was written"


def _state(path: Path) -> object:
    """What tells whether a file was written, or a folder filled; None where there is none."""
    try:
        found = path.stat()
        return sorted(path.iterdir()) if path.is_dir() else (found.st_ino, found.st_mtime_ns, found.st_size)
    except OSError:
        return None


def check_not_input(out: Path, *inputs: Path) -> None:
    """Refuse to write over a file that is read."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise UsageError(
                f"asked to write {out}, which is the data itself.", hint="choose another name for the result."
            )


def check_parent(path: Path) -> None:
    """Refuse a path whose folder does not exist."""
    if not path.parent.is_dir():
        raise UsageError(
            f"asked to write {path}, but there is no folder {path.parent}.",
            hint=f"make it first: mkdir -p {path.parent}",
        )


def check_new_json(path: Path) -> None:
    """Refuse anything but a new .json file: what was charged is not written over."""
    if path.suffix != ".json":
        raise UsageError(f"asked to write {path}; it is written as json.", hint="end it with .json.")
    check_new(path)


def check_new(path: Path, *, folder: bool = False) -> None:
    """Refuse to write over what is there: it may be an earlier release, which was charged. An empty folder may stay."""
    check_parent(path)
    if path.exists() and not (folder and path.is_dir() and not any(path.iterdir())):
        raise UsageError(
            f"asked to write {path}, which is there already{' and is not empty' if folder else ''}.",
            hint="choose another name, or move the old one away; a release costs, so that none is overwritten.",
            code="already-exists",
            settings=("out",),
        )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_suffix(path: Path) -> None:
    """Refuse a file name whose extension says neither csv nor parquet."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(
            f"asked to write {path.name}; a table is written as .csv or .parquet.",
            hint="choose one of these by its extension.",
        )


def write_table(table: pl.DataFrame | pl.LazyFrame, path: Path, *, kind: str) -> None:
    """Write a table whole or not at all; `kind` says in the metadata of Parquet what it holds."""
    write_tables({path: table}, kind=kind)


def write_tables(tables: Mapping[Path, pl.DataFrame | pl.LazyFrame], *, kind: str) -> None:
    """Write tables that belong together: none has its name before all of them are whole.

    A lazy frame is written as it is made, some rows at a time.
    """
    (path, table), *others = tables.items()
    check_suffix(path)

    def write(temporary: Path) -> None:
        csv, metadata = path.suffix.lower() == ".csv", {"understudy": kind}
        if isinstance(table, pl.LazyFrame) and csv:
            table.sink_csv(temporary, datetime_format=TIMES_AS_TEXT)
        elif isinstance(table, pl.LazyFrame):
            table.sink_parquet(temporary, metadata=metadata)
        elif csv:
            table.write_csv(temporary, datetime_format=TIMES_AS_TEXT)
        else:
            table.write_parquet(temporary, metadata=metadata)
        if others:
            write_tables(dict(others), kind=kind)

    write_with(path, write)


def results_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as CSV text, with these columns or all that occur; what was not measured (also nan) is left empty."""
    rows = list(rows)
    if columns is None:
        columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({name: _written(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def read_results(text: str, words: Collection[str]) -> list[Row]:
    """The rows of `results_csv`: columns of `words` as text, all others as numbers, nan where empty."""
    return [
        {name: value if name in words else float(value or "nan") for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
