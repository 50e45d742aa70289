"""What a disk refuses, as errors of ours: no room, no permission, a broken disk.

Libraries say it each in their own way: polars raises an error of its own about Parquet, numpy counts what it could not
write. A `DiskError` is an `OSError` too: before writing began a fault of the machine says nothing about a result, so
that a charge may be taken back (`core/privacy/spending.py`).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from understudy.errors import MissingError, UnderstudyError

# What Rust libraries and DuckDB write, and numpy and DuckDB where only a part could be written.
_NUMBER = re.compile(r"os error (\d+)|Errno (\d+)")
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|requested and \d+ written|wrote=\d+")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class DiskError(MissingError, OSError):
    """A file could not be written; nothing of it is left."""

    code = "disk"


@contextmanager
def explaining_disk(place: Path, *, settings: tuple[str, ...] = ("out",)) -> Iterator[None]:
    """Say in one sentence what the disk refuses of a file or folder; `settings` choose another place."""
    try:
        yield
    except UnderstudyError:
        raise
    except Exception as error:
        explained = disk_error(error, place, settings)
        if explained is None:
            raise
        raise explained from None


def disk_error(error: Exception, place: Path | None, settings: tuple[str, ...] = ()) -> DiskError | None:
    """The error of a disk as one of ours, about a file or about the output (None); None if it is another error."""
    number = _number(error)
    if place is None:
        if number not in (*_FULL, errno.EFBIG, errno.EIO):
            return None
        return DiskError(
            f"the output could not be written ({os.strerror(number)}).",
            hint="lead it to a disk with more room.",
            code="disk-full",
        )
    if number in _FULL:
        return _no_room(place, settings)
    if number == errno.EFBIG:
        return DiskError(
            f"{place} would be larger than a file may be here; nothing of it was kept.",
            hint="raise the limit (`ulimit -f` shows it), or choose a place on another disk.",
            code="file-too-large",
            settings=settings,
        )
    if number in _FORBIDDEN:
        return DiskError(
            f"{place} cannot be written ({os.strerror(number)}).",
            hint=f"check who may write to {place.parent}, or choose another place.",
            code="not-permitted",
            settings=settings,
        )
    if number == errno.EIO:
        return DiskError(
            f"the disk reports an error while {place} is written; nothing of it was kept.",
            hint="choose a place on another disk, and have this one checked.",
            code="disk-broken",
            settings=settings,
        )
    return None


def require_room(place: Path, n_bytes: int) -> None:
    """Refuse to begin what needs about so many bytes where there are fewer."""
    if shutil.disk_usage(place.parent).free < n_bytes:
        raise _no_room(place, ("out",))


def _no_room(place: Path, settings: tuple[str, ...]) -> DiskError:
    return DiskError(
        f"there is no room for {place}: {_free(place)} on its disk; nothing of it was kept.",
        hint="free some space, or choose a place on another disk.",
        code="disk-full",
        settings=settings,
    )


def _number(error: Exception) -> int | None:
    """The system's number of an error that a library passes on, in a field or in its words."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    text = str(error)
    if _NO_ROOM.search(text):
        return errno.ENOSPC
    found = _NUMBER.search(text)
    return int(found[1] or found[2]) if found else None


def _free(place: Path) -> str:
    """How much room there is, by the nearest folder that exists."""
    for folder in (place, *place.absolute().parents):
        try:
            return f"{shutil.disk_usage(folder).free / 1e6:,.1f} MB are free"
        except OSError:
            continue
    return "too little is free"
