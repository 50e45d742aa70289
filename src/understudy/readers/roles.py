"""One column for one role, for tables that need other roles than a log of attempts."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.errors import DataError
from understudy.readers.columns import plain


def find_column(
    names: Sequence[str],
    asked: str | None,
    known: Sequence[str],
    file: str,
    *,
    role: str,
    option: str,
    notes: list[str],
) -> int:
    """The position of the column that was asked for, or of the first with a known name.

    Where several columns have a known name, a sentence in `notes` says which was taken.

    An error names no column of the file: where a header is missing, a learner stands in its place.
    """
    plains = [plain(name) for name in names]
    if asked is not None:
        fitting = [position for position, name in enumerate(names) if name == asked.strip()]
        fitting = fitting or [position for position, name in enumerate(plains) if name == plain(asked)]
        if len(fitting) == 1:
            return fitting[0]
        raise DataError(
            f"{file}: asked for column '{asked}', "
            + (f"which {len(fitting)} columns could be." if fitting else "which is not there."),
            hint=f"write {option} as it stands in the file's first line.",
        )
    found = next((plains.index(name) for name in known if name in plains), None)
    if found is None:
        raise DataError(
            f"{file}: found no column for the {role} among {len(names)} columns.",
            hint=f"name it with {option}; the file's first line has to hold the columns' names.",
        )
    if plains.count(plains[found]) > 1:
        raise DataError(
            f"{file}: {plains.count(plains[found])} columns could be the {role}.",
            hint=f"name it with {option}, or rename the others.",
        )
    n_fitting = sum(name in known for name in plains)
    if n_fitting > 1:
        # One of our own names for it, so nobody's.
        notes.append(
            f"{file}: {n_fitting} columns could be the {role}; '{plains[found]}' was taken. {option} chooses another."
        )
    return found


def counted(number: int, what: str) -> str:
    """ "1 row", "2 rows": for nouns that take an s."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
