"""Finished cells of a long computation, kept in a folder so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import understudy
from understudy.core.files.documents import parse_json
from understudy.core.files.storage.faults import explaining_disk
from understudy.core.files.writing import write_json, write_text
from understudy.errors import DataError, UsageError

_REMOVE = "remove this file; what it held is computed again."


class FinishedCells:
    """Results of cells by their labels, of one data set and one plan; figures only, never a learner's row.

    The data are recognised by a digest under a random key of this folder, which makes it useless elsewhere.
    `what` names the computation in messages, `data` holds the arrays and texts that it looks at.
    """

    def __init__(
        self, folder: Path, what: str, plan: Mapping[str, Any], data: Iterable[np.ndarray | str | None]
    ) -> None:
        self._folder = folder / "cells"
        about = folder / "study.json"
        before = _read(about, "move the folder away, or choose another one.") if about.exists() else {}
        key = _key_in(before) or secrets.token_hex(16)
        identity = {
            "internal": "computed from real learners; no guarantee covers these files",
            "version": understudy.__version__,
            **plan,
            "key": key,
            "data": _digest(data, bytes.fromhex(key)),
        }
        # As JSON has it, to be compared with what was written.
        identity = json.loads(json.dumps(identity))
        if before and before != identity:
            raise UsageError(
                f"{folder} holds another {what}: of other data, with other options, or by another version.",
                hint="choose another folder, or remove this one.",
                code="another-study",
                settings=("out",),
            )
        with explaining_disk(folder):
            if not folder.exists():
                folder.mkdir(mode=0o700)
            self._folder.mkdir(exist_ok=True)
        write_json(about, identity)

    def find(self, label: str) -> Any | None:
        """The result of a cell, if it is finished."""
        path = self._path(label)
        return _read(path, _REMOVE) if path.exists() else None

    def keep(self, label: str, result: Any) -> None:
        """Keep a cell's result, whole or not at all; infinite numbers are written as Python's json does."""
        write_text(self._path(label), json.dumps(result))

    def all(self) -> list[Any]:
        """The results of all finished cells, those of earlier runs too, by the names of their files."""
        files = (path for path in self._folder.glob("*.json") if not path.name.startswith("."))
        return [_read(path, _REMOVE) for path in sorted(files)]

    def _path(self, label: str) -> Path:
        # Labels may hold whole commands: letters and digits name the file, a digest keeps others apart.
        name = re.sub(r"[^A-Za-z0-9.]+", "-", label)[:60]
        return self._folder / f"{name}-{hashlib.blake2b(label.encode(), digest_size=4).hexdigest()}.json"


def _read(path: Path, hint: str) -> Any:
    """What a file of ours holds, unless a disk damaged it, or a user."""
    try:
        return parse_json(path)[1]
    except DataError as error:
        error.hint = hint
        raise


def _key_in(identity: Any) -> str | None:
    key = identity.get("key") if isinstance(identity, dict) else None
    return key if isinstance(key, str) and re.fullmatch(r"[0-9a-f]{32}", key) else None


def _digest(data: Iterable[np.ndarray | str | None], key: bytes) -> str:
    digest = hashlib.blake2b(key=key, digest_size=16)
    for part in data:
        if part is None:
            digest.update(b"none")
            continue
        content = part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes()
        # With its length, so that two parts cannot be taken for one.
        digest.update(f"{len(content)} bytes".encode() + content)
    return digest.hexdigest()
