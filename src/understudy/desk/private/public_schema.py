"""The public schema of a data set: what the custodian declared, and what a guarantee about its table leaves out."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.cohorts.schema import DROPPED, UNSCORED
from understudy.cohorts.schema import Schema as CohortSchema
from understudy.core.files.documents import parse_json
from understudy.core.privacy.guarantee import Caveat
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.private.schema import Records, Schema, read_records
from understudy.errors import DataError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

CAVEATS = (DROPPED, UNSCORED)


@dataclass(frozen=True)
class PublicSchema:
    """The declared columns of a data set that private questions may be about."""

    schema: Schema
    caveats: tuple[Caveat, ...] = ()
    """What no epsilon covers of a table that was made as this one was."""

    @classmethod
    def read(cls, path: Path) -> PublicSchema:
        """The schema of a file: as a desk serves it (JSON), `[[columns]]`, or the declaration of a cohort."""
        if path.suffix.lower() == ".json":
            return cls(Schema.from_json(parse_json(path)[1], path.name))
        try:
            kinds = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            kinds = {}
        if "columns" in kinds:
            return cls(Schema.read(path))
        cohort = CohortSchema.read(path)
        if cohort.cuts is None or cohort.cuts_source == "data":
            raise RefusedError(
                f"{path.name} does not say that the cuts between the labels are public, and with cuts that were "
                "computed from the learners' scores no guarantee holds.",
                hint="give the toml file beside the table; build the cohort with declared or private cuts.",
                code="cuts-from-data",
            )
        return cls(Schema.of_cohort(cohort), cohort.caveats)

    def of_columns(self, columns: Sequence[str]) -> PublicSchema:
        """The part of it that is about these columns of a table."""
        kept = tuple(column for column in self.schema.columns if column.name in columns)
        if not kept:
            raise DataError(
                "the schema declares none of the columns that the synthetic table has.",
                hint="declare the columns of the table by their names.",
            )
        complete = tuple(name for name in self.schema.complete if name in columns)
        return PublicSchema(Schema(kept, complete), self.caveats)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> PublicSchema:
        """As `to_json` wrote it."""
        caveats = tuple(caveat for caveat in CAVEATS if caveat.code in content["caveats"])
        return cls(Schema.from_json(content["schema"]), caveats)

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {"schema": self.schema.to_json(), "caveats": [caveat.code for caveat in self.caveats]}


def records_of(table: LearnerTable, schema: Schema) -> Records:
    """The records of a table; what one learner adds to an answer is bounded by the bounds of one row."""
    refuse_several_rows(table)
    return read_records(table.rows, schema, learner=None)


def refuse_several_rows(table: LearnerTable) -> None:
    """Raise unless every learner has one row."""
    if (np.diff(table.starts) != 1).any():
        raise DataError(
            "the table has several rows for a learner, and private questions are about one row each.",
            hint="register a table with one row per learner, or leave the schema out.",
        )
