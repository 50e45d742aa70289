"""Errors as logs may tell them: type and place. A message may quote data, and is never looked at."""

from __future__ import annotations

import traceback
from pathlib import Path

import understudy

_PACKAGE = Path(understudy.__file__).parent


def place_of(error: BaseException) -> str:
    """An error by its type and where in our code it came up."""
    places = [(Path(one.filename), one.lineno) for one in traceback.extract_tb(error.__traceback__)]
    ours = [(path, line) for path, line in places if path.is_relative_to(_PACKAGE)]
    if not ours:
        return type(error).__name__
    path, line = ours[-1]
    return f"{type(error).__name__} in {path.relative_to(_PACKAGE)}:{line}"
