"""Where a number stands in the results: its list or the column of its table, and its place there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from understudy.desk.domain.results import N_ROWS

_STEP = " / "
_PLACE = re.compile(r"(row )?(\d+)$")


def column_of(name: str) -> str:
    """The list, dict or column that a number is in: its name without the last part."""
    return _STEP.join(name.split(_STEP)[:-1])


def in_columns(names: Iterable[str]) -> dict[str, list[int]]:
    """Positions of the numbers of every list, dict or column, in their order; numbers of rows are in none."""
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if not name.endswith(_STEP + N_ROWS):
            groups.setdefault(column_of(name), []).append(place)
    return groups


def is_listed(name: str) -> bool:
    """Whether a number is named by its place: an entry of a list, or of a table without row names."""
    return bool(_PLACE.match(name.split(_STEP)[-1]))
