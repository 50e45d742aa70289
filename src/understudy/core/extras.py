"""Libraries of an extra: imported where they are used, with an error that names the extra if they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from understudy.errors import MissingError


def install_hint(extra: str, python: str = "python") -> str:
    """How to install an extra: from the source, since in a package index the name may be a stranger's."""
    return f"in the folder of Understudy's source, run: {python} -m pip install -e '.[{extra}]'"


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Around imports: `purpose` ("trained attackers") needs what the extra installs."""
    try:
        yield
    except ImportError as error:
        raise MissingError(
            f"{purpose} needs a library that is not installed ({(error.name or extra).partition('.')[0]}).",
            hint=install_hint(extra),
            code="missing-extra",
            extra=extra,
        ) from None


def require_extra(extra: str, purpose: str, library: str) -> None:
    """Say early that a library is missing, without importing it, which may take seconds."""
    with needs_extra(extra, purpose):
        if find_spec(library) is None:
            raise ImportError(name=library)
