"""Libraries of an extra: imported where they are used, with an error that names the extra if they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from understudy.errors import MissingError


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Around imports: `purpose` ("trained attackers") needs what `understudy[extra]` installs."""
    try:
        yield
    except ImportError as error:
        raise MissingError(
            f"{purpose} needs a library that is not installed ({(error.name or extra).partition('.')[0]}).",
            hint=f"pip install 'understudy[{extra}]'",
            code="missing-extra",
            extra=extra,
        ) from None
