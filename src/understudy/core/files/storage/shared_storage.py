"""Arrays in storage that every machine of a cluster sees: a shared folder, or a URL such as s3://bucket/folder.

What is behind a URL is known to fsspec. Of an array only the part that is asked for is read.
"""

from __future__ import annotations

import contextlib
import secrets
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.extras import needs_extra
from understudy.core.files.storage.scratch import Scratch
from understudy.errors import MissingError, UnderstudyError, UsageError

Array = NDArray[np.generic]
# Whose library is an extra of its own.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}


def is_url(place: str | None) -> bool:
    """Whether a place is a URL, not a path."""
    return place is not None and "://" in place


class SharedScratch:
    """A new folder at a URL, removed with this object, at the latest when the program ends.

    Who may read it is for the storage to say. What a killed program left behind is not removed by the next one: let the
    storage remove what is older than a day (a lifecycle rule).
    """

    def __init__(self, parent: str) -> None:
        with _storage(parent):
            files, root = _opened(parent)
            self.path = f"{parent.rstrip('/')}/understudy-scratch-{secrets.token_hex(8)}"
            folder = f"{root.rstrip('/')}/{self.path.rpartition('/')[2]}"
            if "file" in files.protocol:
                # Elsewhere folders come with their files; asked for one, some libraries would make a bucket.
                Path(folder).mkdir(mode=0o700)
        weakref.finalize(self, _remove, files, folder)

    def filling(self) -> contextlib.AbstractContextManager[None]:
        """See `Scratch.filling`; what goes wrong at a URL, `write_array` says."""
        return contextlib.nullcontext()


def scratch_at(parent: str | None) -> Scratch | SharedScratch:
    """Temporary files at a path or a URL."""
    return SharedScratch(parent) if parent is not None and is_url(parent) else Scratch(parent)


def write_array(folder: str, name: str, values: Array) -> None:
    """Write an array to a folder or below a URL."""
    if not is_url(folder):
        np.save(Path(folder) / f"{name}.npy", values)
        return
    with _storage(folder):
        files, root = _opened(folder)
        with files.open(f"{root}/{name}.npy", "wb") as file:
            np.save(file, values)


def read_array(folder: str, name: str, begin: int, end: int) -> Array:
    """The entries of an array from `begin` to before `end`."""
    with _storage(folder):
        if not is_url(folder):
            whole: Array = np.load(Path(folder) / f"{name}.npy", mmap_mode="r")
            return np.asarray(whole[begin:end])
        files, root = _opened(folder)
        with files.open(f"{root}/{name}.npy", "rb") as file:
            np.lib.format.read_magic(file)
            _, _, kind = np.lib.format.read_array_header_1_0(file)
            file.seek(file.tell() + begin * kind.itemsize)
            return np.frombuffer(file.read((end - begin) * kind.itemsize), dtype=kind)


def _opened(url: str) -> tuple[Any, str]:
    protocol = url.partition("://")[0]
    with needs_extra(_EXTRAS.get(protocol, "cluster"), f"storage at {protocol}://"):
        import fsspec

        try:
            files, root = fsspec.core.url_to_fs(url)
        except ValueError:
            raise UsageError(
                f"there is no storage of the kind {protocol}://.",
                hint="name a folder that all workers see, or a URL such as s3://bucket/folder or gs://bucket/folder.",
                code="no-such-storage",
                settings=("scratch",),
            ) from None
    return files, root


@contextlib.contextmanager
def _storage(place: str) -> Iterator[None]:
    """Say in our words that storage cannot be used: each kind has errors of its own."""
    try:
        yield
    except (UnderstudyError, MemoryError):
        raise
    except Exception as error:
        raise MissingError(
            f"the scratch folder cannot be used from here ({type(error).__name__}).",
            hint="name one that this machine and all workers see and may write to, and that has room.",
            code="no-shared-storage",
            settings=("scratch",),
        ) from None


def _remove(files: Any, folder: str) -> None:
    # At the end of a program no one is left to report it to.
    with contextlib.suppress(Exception):
        files.rm(folder, recursive=True)
