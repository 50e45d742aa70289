"""What a user can get wrong: one family of errors, with a code for programs, an exit code and a hint."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, Self

_PACKAGE = Path(__file__).parent


class UnderstudyError(Exception):
    """Something a person can act on; printed without a traceback.

    The message says what was asked and what was found, the hint what to do next. Neither ever
    holds a learner's value: file, line and column are enough to find it. Programs look at `code`
    and `fields`, never at the sentences. `settings` are the parameters of the library that would
    help; the command line shows them as its options.
    """

    exit_code = 1
    code = "error"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str = "",
        settings: tuple[str, ...] = (),
        **fields: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code
        self.settings = settings
        self.fields = fields

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message

    def about(self, place: str) -> Self:
        """The same error, its message led by the file it is about."""
        return type(self)(
            f"{place}: {self.message}", hint=self.hint, code=self.code, settings=self.settings, **self.fields
        )

    def to_json(self) -> dict[str, Any]:
        """The error for a machine."""
        return {
            "code": self.code,
            "exit_code": self.exit_code,
            "message": self.message,
            "hint": self.hint,
            "settings": list(self.settings),
            "fields": self.fields,
        }


class UsageError(UnderstudyError):
    """Something was asked for that cannot be done as asked."""

    exit_code = 2
    code = "usage"


class DataError(UnderstudyError):
    """A file or a frame is not what it has to be."""

    exit_code = 3
    code = "data"


class RefusedError(UnderstudyError):
    """A budget or a policy forbids what was asked."""

    exit_code = 4
    code = "refused"


class MissingError(UnderstudyError):
    """Something that the machine should provide is not there."""

    exit_code = 5
    code = "missing"


def safe_location(error: BaseException) -> str:
    """An error by its type and its place in our code: what may be logged without quoting anybody's data."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [(path, line) for path, line in frames if path.is_relative_to(_PACKAGE)]
    if not ours:
        return type(error).__name__
    path, line = ours[-1]
    return f"{type(error).__name__} in {path.relative_to(_PACKAGE)}:{line}"
