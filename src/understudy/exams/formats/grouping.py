"""In which of the declared groups each learner of a sheet is: one column, whose other values are no group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from understudy.core.files.columns import plain
from understudy.core.files.source import keeping_values_inside
from understudy.errors import DataError, UsageError
from understudy.exams.formats.sheet_header import Header, Heading
from understudy.exams.responses import Responses

# Each group has noise of its own, which all of them share.
MOST_GROUPS = 10


@dataclass(frozen=True)
class Grouping:
    """A column, and the groups that it is declared to hold; the first one is what others are compared with."""

    column: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: str | None, groups: str | Sequence[str]) -> Grouping | None:
        """As people write it: a column's name, and 'A,B' or the names; None where neither is given."""
        given = groups.split(",") if isinstance(groups, str) else groups
        names = tuple(name.strip() for name in given)
        if column is None and not any(names):
            return None
        if column is None or not column.strip():
            raise UsageError(
                f"{len(names)} groups were declared, but no column that holds them.",
                hint="name the column as in the header.",
                code="no-groups",
                settings=("group",),
            )
        if not 2 <= len(names) <= MOST_GROUPS or not all(names) or len(set(names)) < len(names):
            raise UsageError(
                f"learners are compared between 2 to {MOST_GROUPS} groups with different names; "
                f"{len([name for name in names if name])} were declared.",
                hint="declare the values of the column that are compared, as in 'A,B'; the first one is what others "
                "are compared with.",
                code="no-groups",
                settings=("groups",),
            )
        return cls(column.strip(), names)

    def apart(self, header: Header, file: str) -> tuple[Header, Heading]:
        """The header without the column, which is no item whatever its cells hold; and the column."""
        headings = [*header.items, *header.others, *([header.learner] if header.learner else [])]
        fitting = [each for each in headings if each.title == self.column] or [
            each for each in headings if plain(each.title) == plain(self.column)
        ]
        if len(fitting) != 1 or fitting[0] is header.learner:
            found = (
                "names the learners" if fitting == [header.learner] else f"{len(fitting)} columns could be"
            )
            found = found if fitting else "is not there"
            raise DataError(
                f"{file}: asked for groups in column '{self.column}', which {found}.",
                hint="write the column's name as it stands in the file's first line.",
                code="ambiguous-column" if fitting else "no-such-column",
                settings=("group",),
            )
        column = fitting[0]
        items = tuple(item for item in header.items if item is not column)
        others = tuple(other for other in header.others if other is not column)
        if column.position == 0:
            others = (replace(column, kind="other"), *others)
        return replace(header, items=items, others=others), column

    def applied(self, responses: Responses, cells: pl.Series, file: str) -> Responses:
        """The responses with the group of each learner. A cell decides about its own learner only."""
        with keeping_values_inside(
            f"{file}: the column of the groups cannot be read.", hint="keep one plain value per cell."
        ):
            texts = cells.cast(pl.String).str.strip_chars()
            codes = np.zeros(len(texts), dtype=np.int8)
            for number, name in enumerate(self.names, start=1):
                codes[(texts == name).fill_null(False).to_numpy()] = number
        # For the custodian only, as all notes: no answer decides whether there is a release.
        empty = [name for number, name in enumerate(self.names, start=1) if not (codes == number).any()]
        notes = (f"No learner is in the declared group '{name}': check how it is written." for name in empty)
        origin = replace(responses.origin, notes=(*responses.origin.notes, *notes))
        return replace(responses, groups=self.names, group_of=codes, origin=origin)


def refuse_groups(grouping: Grouping | None, found: str) -> None:
    """Refuse groups where there is no sheet."""
    if grouping is not None:
        raise UsageError(
            f"groups of learners were asked for, but this is {found}.",
            hint="groups are a column of a sheet with one row per learner; make such a sheet.",
            code="groups-need-a-sheet",
            settings=("group", "groups"),
        )
