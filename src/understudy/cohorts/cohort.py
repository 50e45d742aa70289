"""Cohort: one row per learner, a series of features over the weeks of a term, and a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.cohorts.schema import KINDS, LEARNER, Schema, kind_of_file
from understudy.core.files.simulated import is_simulated
from understudy.core.names import SIMULATED_PREFIX, SYNTHETIC_PREFIX
from understudy.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Learners by features by weeks, and a label each; learners are positions, not names."""

    values: Floats
    label: NDArray[np.int8]
    schema: Schema
    simulated: bool = False

    def __post_init__(self) -> None:
        shape = (len(self.label), self.schema.n_features, self.schema.n_weeks)
        if self.values.shape != shape:
            raise DataError(f"a cohort of this schema has the shape {shape}, not {self.values.shape}.")
        if self.values.size and not (np.isfinite(self.values).all() and self.values.min() >= 0):
            raise DataError("the values of a cohort are finite numbers of at least 0.")
        if len(self.label) and not (self.label.min() >= 0 and self.label.max() < self.schema.n_labels):
            raise DataError("a label of the cohort lies outside the declared ones.")
        cut = np.minimum(self.values, self.schema.highs[None, :, None])
        for name, column in (("values", cut), ("label", self.label.view())):
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    def __repr__(self) -> str:
        kind = "simulated " if self.simulated else ""
        return (
            f"<{kind}Cohort: {self.n_learners} learners, {self.schema.n_features} features, "
            f"{self.schema.n_weeks} weeks>"
        )

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.label)

    def select(self, learners: ArrayLike) -> Cohort:
        """Some learners, by position or mask."""
        chosen = np.asarray(learners)
        return replace(self, values=self.values[chosen], label=self.label[chosen])

    def of_label(self, label: int) -> Cohort:
        """The learners of one label."""
        return self.select(self.label == label)

    @classmethod
    def joined(cls, cohorts: Sequence[Cohort]) -> Cohort:
        """One cohort of all learners of some with the same schema."""
        if not cohorts or any(cohort.schema.columns() != cohorts[0].schema.columns() for cohort in cohorts):
            raise DataError("cohorts of different schemas cannot be joined.", hint="build them alike.")
        return cls(
            np.concatenate([cohort.values for cohort in cohorts]),
            np.concatenate([cohort.label for cohort in cohorts]),
            cohorts[0].schema,
            simulated=all(cohort.simulated for cohort in cohorts),
        )

    @classmethod
    def from_frame(cls, frame: Any, schema: Schema, *, source: str = "the table") -> Cohort:
        """A cohort from a polars or pandas frame with the schema's columns and the label's; others are ignored."""
        import polars as pl

        table = frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)
        missing = [name for name in (*schema.columns(), schema.label) if name not in table.columns]
        if missing:
            raise DataError(
                f"{source}: column '{missing[0]}' is missing ({len(missing)} in all).",
                hint="a cohort has a column for each feature and week, such as "
                f"'{schema.columns()[0]}', and '{schema.label}'.",
            )
        codes = (
            table[schema.label]
            .cast(pl.String)
            .replace_strict(
                {name: code for code, name in enumerate(schema.labels)}, default=None, return_dtype=pl.Int8
            )
        )
        if codes.null_count():
            raise DataError(
                f"{source}: column '{schema.label}' holds something other than "
                f"{', '.join(schema.labels)} on {codes.null_count()} rows.",
                hint="see `labels` in cohort.toml.",
            )
        matrix = table.select(schema.columns()).cast(pl.Float64, strict=False)
        if sum(matrix.null_count().row(0)):
            raise DataError(
                f"{source}: a value is missing or is not a number.",
                hint="write 0 where there was no activity; remove learners without data.",
            )
        values = matrix.to_numpy().reshape(-1, schema.n_features, schema.n_weeks)
        return cls(values, codes.to_numpy().astype(np.int8), schema)

    def to_frame(self, prefix: str | None = None) -> pl.DataFrame:
        """The table with invented learner names: `prefix` and a number."""
        import polars as pl

        start = prefix or (SIMULATED_PREFIX if self.simulated else SYNTHETIC_PREFIX)
        width = len(str(self.n_learners))
        columns = self.schema.columns()
        flat = self.values.reshape(self.n_learners, -1)
        return pl.DataFrame(
            {
                LEARNER: [f"{start}{number:0{width}}" for number in range(1, self.n_learners + 1)],
                **{name: np.round(flat[:, place], 2) for place, name in enumerate(columns)},
                self.schema.label: [self.schema.labels[code] for code in self.label],
            }
        )


def read_cohort(path: Path, schema: Path | None = None) -> Cohort:
    """The cohort in a csv or Parquet file; its schema lies beside it, unless it is given."""
    import polars as pl

    if not path.is_file():
        raise UsageError(f"there is no file {path}.", hint="`understudy cohort build` makes one.")
    kind = kind_of_file(path)
    if kind not in (None, "table"):
        raise DataError(
            f"{path.name} is {KINDS[kind]}, not the table of a cohort.",
            hint="give the csv or parquet file: `understudy cohort build` makes it from a log and scores, `understudy "
            "cohort synthesize` a synthetic one from a summary.",
        )
    beside = path.with_suffix(".toml")
    if schema is None and not beside.is_file():
        raise UsageError(
            f"there is no declaration {beside.name} beside {path.name}.",
            hint="a cohort is a table and its declaration: `understudy cohort build` makes both from a log and scores.",
        )
    declared = Schema.read(schema or beside)
    try:
        frame = (
            pl.read_parquet(path)
            if path.suffix.lower() == ".parquet"
            else pl.read_csv(path, infer_schema_length=None)
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(
            f"{path.name} cannot be read as {path.suffix.lower() or 'csv'} ({type(error).__name__}).",
            hint="give the table that `understudy cohort build` or `understudy cohort synthesize` wrote, csv or "
            "parquet by its extension.",
        ) from None
    cohort = Cohort.from_frame(frame, declared, source=path.name)
    return replace(cohort, simulated=is_simulated(path))
