"""One column for one role, for tables that need other roles than a log of attempts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from understudy.core.files.columns import count_known, plain
from understudy.errors import DataError


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

    """
    plains = [plain(name) for name in names]
    if asked is not None:
        fitting = [position for position, name in enumerate(names) if name == asked.strip()]
        fitting = fitting or [position for position, name in enumerate(plains) if name == plain(asked)]
        if len(fitting) == 1:
            return fitting[0]
        raise DataError(
            f"{file}: asked for column '{asked}', "
            + (
                f"which {len(fitting)} columns could be."
                if fitting
                else f"which is not there; {there_are(names, known)}."
            ),
            hint=f"write {option} as it stands in the file's first line.",
        )
    found = next((plains.index(name) for name in known if name in plains), None)
    if found is None:
        raise DataError(
            f"{file}: found no column for the {role}; {there_are(names, known)}.",
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


# A number, a time or an address: what a row of data has and a header has not.
_VALUE = re.compile(r"[-+]?[\d.,:/\s%-]*\d[\d.,:/\s%-]*|.*@.*|.*\d{1,2}:\d{2}.*|\d{4}-\d{2}-\d{2}.*")
_MOST_NAMES, _LONGEST_NAME = 30, 60


def there_are(names: Sequence[str], known: Sequence[str] = ()) -> str:
    """The columns of a file by name, if its first line is a header.

    It is taken for one when a name in it is known and nothing in it looks like a value: where a
    header is missing, a learner stands in its place, and that is not for a message.
    """
    heard = count_known(names) or any(plain(name) in known for name in names)
    if not heard or any(_VALUE.fullmatch(name.strip()) for name in names):
        return f"none of its {len(names)} columns has a name that tells, or the first line is no header"
    shown = ", ".join(f"'{name[:_LONGEST_NAME]}'" for name in names[:_MOST_NAMES])
    return f"its columns are {shown}" + (" and more" if len(names) > _MOST_NAMES else "")


def counted(number: int, what: str) -> str:
    """ "1 row", "2 rows": for nouns that take an s."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
