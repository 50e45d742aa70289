"""What goes into the sandbox and what comes out: jobs, limits and outcomes, and the bytes of a job."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from understudy.errors import UsageError

MEBIBYTE = 1024 * 1024
Status = Literal["done", "error", "time", "memory", "output", "killed"]


@dataclass(frozen=True)
class Limits:
    """What one run may use; a run that wants more is ended."""

    wall_seconds: float = 20.0
    """Without what it waits for a processor on a busy machine; with it, at most ten times as long."""
    cpu_seconds: int = 20
    memory_bytes: int = 2048 * MEBIBYTE
    """On top of the warm process; for each process, and for the sum over all processes of a run."""
    processes: int = 1
    """A backstop only: seccomp refuses every fork whatever this says."""
    output_bytes: int = 64 * MEBIBYTE
    scratch_bytes: int = 64 * MEBIBYTE
    scratch_files: int = 10_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise UsageError(f"the sandbox's limit {name} is {value}.", hint="give a number above 0.")


@dataclass(frozen=True)
class Job:
    """Code that others wrote, the function in it to call, and what to call it with.

    The entry is called with `arguments` and `tables` (as pandas frames) by keyword, and with `rng`, a numpy
    generator made from `seed`, if it has a parameter of that name.
    """

    code: str
    entry: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, bytes] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.entry.isidentifier():
            raise UsageError("the entry of a sandbox job is not a function's name.", hint="e.g. 'generate'.")
        if shared := set(self.arguments) & set(self.tables):
            raise UsageError(
                f"{len(shared)} names are both an argument and a table.", hint="rename one of each."
            )
        if self.seed < 0:
            raise UsageError(f"the seed is {self.seed}.", hint="give a seed of 0 or more.")


@dataclass(frozen=True)
class Outcome:
    """How a run ended and what it gave: untrusted, checked for form, never for what it discloses.

    `values` may hold NaN and infinities. A frame that the entry returned itself is `tables["result"]`; of a
    dict, frames are in `tables` and everything else in `values`, under their keys. An error is its type (the
    nearest one that Python or numpy defines) and the line of the submitted code, never its message.
    """

    status: Status
    values: Any = None
    tables: dict[str, bytes] = field(default_factory=dict)
    error_type: str = ""
    error_line: int | None = None
    seconds: float = 0.0


def sealed(content: bytes, name: str = "job") -> int:
    """A descriptor of a file in memory that nobody can change any more; it has no path."""
    import fcntl  # not on Windows, where this module is imported all the same

    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(
            descriptor,
            fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
        )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def packed(job: Job) -> bytes:
    """The job as the inside reads it: length of the header, header as JSON, then the tables' bytes."""
    try:
        header = json.dumps(
            {
                "code": job.code,
                "entry": job.entry,
                "arguments": dict(job.arguments),
                "seed": job.seed,
                "tables": [[name, len(content)] for name, content in job.tables.items()],
            }
        ).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(
            "an argument of a sandbox job cannot be written as JSON.",
            hint="give numbers, texts, lists and dicts; frames go into tables.",
        ) from error
    return b"".join([struct.pack("<Q", len(header)), header, *job.tables.values()])
