"""Origin: the file a record was read from, and what people should know about how it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from understudy.core.files.identifiers import Identifier
from understudy.errors import DataError


@dataclass(frozen=True, repr=False)
class Origin:
    """Where a record came from.

    `path` is None for a frame in memory. `columns` maps a role to the column that plays it; `notes` are
    sentences with counts, on what was dropped, merged or assumed; `identifiers` are columns that identify
    people. `n_withdrawn` learners were left out because a list says so; `n_absent` names of that list are
    not in the file.
    """

    path: Path | None = None
    format: str = "frame"
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    identifiers: tuple[Identifier, ...] = ()
    n_withdrawn: int = 0
    n_absent: int = 0

    def refuse_people(self, result: str, setting: str = "action") -> None:
        """Names of actions and items reach every result; names of people must not.

        `result` says what they would reach, `setting` which choice of a column helps.
        """
        for identifier in self.identifiers:
            if identifier.role == "action":
                raise DataError(
                    f"column '{identifier.column}' would reach {result} and points at people: "
                    f"{identifier.kind} ({identifier.evidence}).",
                    hint="choose another column, or replace these names in the file first.",
                    code="names-of-people",
                    settings=(setting,),
                    column=identifier.column,
                )
