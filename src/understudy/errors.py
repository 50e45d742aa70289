"""What a user can get wrong: one family of errors, each with an exit code and a hint."""

from __future__ import annotations

import traceback
from pathlib import Path

import understudy


class UnderstudyError(Exception):
    """Something a person can act on; printed without a traceback.

    The message says what was asked and what was found, the hint what to do next.
    Neither ever holds a learner's value: file, line and column are enough to find it.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message


class UsageError(UnderstudyError):
    """The command was asked for something that it does not do."""

    exit_code = 2


class DataError(UnderstudyError):
    """A file or a frame is not what it has to be."""

    exit_code = 3


class RefusedError(UnderstudyError):
    """A budget or a policy forbids what was asked."""

    exit_code = 4


class MissingError(UnderstudyError):
    """Something that the machine should provide is not there."""

    exit_code = 5


_PACKAGE = Path(understudy.__file__).parent


def place_of(error: BaseException) -> str:
    """An error by its type and where in our code it came up."""
    places = [(Path(one.filename), one.lineno) for one in traceback.extract_tb(error.__traceback__)]
    ours = [(path, line) for path, line in places if path.is_relative_to(_PACKAGE)]
    if not ours:
        return type(error).__name__
    path, line = ours[-1]
    return f"{type(error).__name__} in {path.relative_to(_PACKAGE)}:{line}"
