"""That a file's learners are simulated: a fact that `simulate` writes beside the file, bound to its content.

Simulated learners have no privacy to spend, so whatever says so lifts every limit. It is therefore never
read off names or columns: the mark holds a digest of the file that was written, and a file with other
content (real data saved under the old name, say) is not simulated. The digest is of simulated data only.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from understudy.core.files.writing import write_json
from understudy.errors import UsageError

SUFFIX = ".simulated"
_FORMAT = "understudy simulated data"


def mark_path(path: Path) -> Path:
    """Where the mark of a file lies: beside it."""
    return path.with_name(path.name + SUFFIX)


def mark_simulated(path: Path) -> None:
    """Write beside a file of simulated learners that they are."""
    write_json(mark_path(path), {"format": _FORMAT, "sha256": _digest(path)})


def is_simulated(path: Path) -> bool:
    """Whether a file is, byte for byte, one that was marked as simulated."""
    try:
        mark = json.loads(mark_path(path).read_text(encoding="utf-8"))
        return bool(mark["format"] == _FORMAT and mark["sha256"] == _digest(path))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def check_replaceable(path: Path) -> None:
    """Refuse to write simulated learners over a file that may hold others."""
    if path.exists() and not is_simulated(path):
        raise UsageError(
            f"asked to write {path}, which is there already and is not marked as simulated.",
            hint="choose another name, or move the old file away.",
            code="already-exists",
            settings=("out",),
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
