"""Cohort: one row per learner, a series of features over the weeks of a term, and a label."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from understudy.cohorts.schema import KINDS, LEARNER, Schema, kind_of_file, worst_schema
from understudy.core.extras import needs_extra
from understudy.core.files.frames import as_polars
from understudy.core.files.origin import Origin
from understudy.core.files.parquet import read_whole_parquet
from understudy.core.files.people.learner_ids import Digests, digests_of
from understudy.core.files.simulated import is_simulated
from understudy.core.files.writing import check_suffix, write_table, write_text
from understudy.core.names import REAL_PREFIX, SIMULATED_PREFIX, SYNTHETIC_PREFIX
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UnderstudyError, UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Learners by features by weeks, and a label each; learners are positions, not names.

    `origin` is the file that the cohort was read from or built into. A synthetic cohort has the `guarantee` of the
    summary that it was made from. One that was joined from others has their `data_sets` and `files`, so that
    whatever is released of it is charged to all of them.
    """

    values: Floats
    label: NDArray[np.int8]
    schema: Schema
    simulated: bool = False
    origin: Origin = field(default_factory=Origin)
    guarantee: Guarantee | None = None
    data_sets: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.label), self.schema.n_features, self.schema.n_weeks)
        if self.values.shape != shape:
            raise DataError(
                f"a cohort of this schema has the shape {shape}, not {self.values.shape}.",
                hint="give a value for each learner, feature and week.",
            )
        if self.values.size and not (np.isfinite(self.values).all() and self.values.min() >= 0):
            raise DataError(
                "the values of a cohort are finite numbers of at least 0.",
                hint="write 0 where a learner did nothing, and leave learners without data out.",
            )
        if len(self.label) and not (self.label.min() >= 0 and self.label.max() < self.schema.n_labels):
            raise DataError(
                "a label of the cohort lies outside the declared ones.",
                hint="declare all labels, or correct the table.",
            )
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
        """One cohort of all learners of some with the same schema; where schemas differ, the worst counts."""
        schemas = [cohort.schema for cohort in cohorts]
        if not cohorts or any(
            (schema.columns(), schema.labels, schema.cuts)
            != (schemas[0].columns(), schemas[0].labels, schemas[0].cuts)
            for schema in schemas
        ):
            raise DataError("cohorts of different schemas cannot be joined.", hint="build them alike.")
        real = [cohort for cohort in cohorts if not cohort.simulated]
        named = dict.fromkeys(
            name for cohort in real for name in (cohort.schema.data_set, *cohort.data_sets) if name
        )
        paths = dict.fromkeys(
            path for cohort in real for path in (cohort.origin.path, *cohort.files) if path is not None
        )
        return cls(
            np.concatenate([cohort.values for cohort in cohorts]),
            np.concatenate([cohort.label for cohort in cohorts]),
            worst_schema(schemas),
            simulated=not real,
            data_sets=tuple(named),
            files=tuple(paths),
        )

    @classmethod
    def from_frame(cls, frame: Any, schema: Schema, *, source: str = "the table") -> Cohort:
        """A cohort from a frame of any library with the schema's columns and the label's; others are ignored."""
        table = as_polars(frame)
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

    def digests(self) -> Digests:
        """Digests of the learners' rows, by which the ledger knows them again: their names here are invented."""
        rows = np.round(self.values.reshape(self.n_learners, -1), 2)
        # A row without any activity is nobody's in particular.
        return digests_of(row.tobytes() for row in rows if row.any())

    @property
    def real(self) -> bool:
        """Whether learners may be real: neither simulated nor made from a summary, as far as is known."""
        return not self.simulated and self.guarantee is None

    def to_polars(self, prefix: str | None = None) -> pl.DataFrame:
        """The cohort as a polars frame, a row per learner, with invented names: `prefix` and a number."""
        invented = SIMULATED_PREFIX if self.simulated else SYNTHETIC_PREFIX
        start = prefix or (REAL_PREFIX if self.real else invented)
        width = len(str(self.n_learners))
        columns = self.schema.columns()
        flat = self.values.reshape(self.n_learners, len(columns))
        return pl.DataFrame(
            {
                LEARNER: [f"{start}{number:0{width}}" for number in range(1, self.n_learners + 1)],
                **{name: np.round(flat[:, place], 2) for place, name in enumerate(columns)},
                self.schema.label: [self.schema.labels[code] for code in self.label],
            }
        )

    def to_pandas(self, prefix: str | None = None) -> Any:
        """The same as a pandas frame."""
        with needs_extra("pandas", "a pandas frame"):
            return self.to_polars(prefix).to_pandas()

    def _repr_html_(self) -> str:
        # A notebook is shared more easily than a file: rows that may be real learners' are not shown by themselves.
        invented = self.simulated or (self.guarantee is not None and self.guarantee.formal)
        shown = self.select(np.arange(min(3, self.n_learners) if invented else 0)).to_polars()
        return notebook_table(f"{repr(self)[1:-1]}.", shown)


def read_cohort(path: Path | str, schema: Path | str | Schema | None = None) -> Cohort:
    """The cohort in a csv or Parquet file; its schema lies beside it, unless it is given."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"there is no file {path}.", hint="`understudy cohort build` makes one.")
    kind = kind_of_file(path)
    if kind not in (None, "table"):
        raise DataError(
            f"{path.name} is {KINDS[kind]}, not the table of a cohort.",
            hint="give the csv or parquet file: `understudy cohort build` makes it from a log and scores, `understudy "
            "cohort synthesize` a synthetic one from a summary.",
        )
    beside = schema_path(path)
    if schema is None and not beside.is_file():
        raise UsageError(
            f"there is no declaration {beside.name} beside {path.name}.",
            hint="a cohort is a table and its declaration: `understudy cohort build` makes both from a log and scores.",
        )
    declared = schema if isinstance(schema, Schema) else Schema.read(Path(schema or beside))
    try:
        frame = (
            read_whole_parquet(path)
            if path.suffix.lower() == ".parquet"
            else pl.read_csv(path, infer_schema=False)  # each cell by itself: no row decides a column's type
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(
            f"{path.name} cannot be read as {path.suffix.lower() or 'csv'} ({type(error).__name__}).",
            hint="give the table that `understudy cohort build` or `understudy cohort synthesize` wrote, csv or "
            "parquet by its extension.",
        ) from None
    # An empty line at the end of a csv file is not a learner.
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if LEARNER in frame.columns and frame[LEARNER].drop_nulls().is_duplicated().any():
        raise DataError(
            f"{path.name}: column '{LEARNER}' names a learner for a second time.",
            hint="a cohort has one row per learner.",
            code="learner-twice",
        )
    cohort = Cohort.from_frame(frame, declared, source=path.name)
    return replace(cohort, simulated=is_simulated(path), origin=Origin(path, format=path.suffix.lower()[1:]))


def schema_path(path: Path) -> Path:
    """Where the schema of a cohort lies."""
    return path.with_suffix(".toml")


def write_cohort(cohort: Cohort, path: Path) -> None:
    """Write the schema, and the table, csv or parquet by its extension, each whole or not at all.

    The schema comes first: it may hold cuts that were paid for, and the table can be made again
    from it. An equal one that is there already is left as it is, with its comments. Of learners who may
    be real only the owner may read the table, from its first byte on.
    """
    check_suffix(path)
    place = schema_path(path)
    if not _declares(place, cohort.schema):
        with _owner_only() if cohort.schema.cuts_source == "data" else contextlib.nullcontext():
            write_text(place, cohort.schema.to_toml())
    invented = f"{'simulated' if cohort.simulated else 'synthetic'} data: these learners do not exist"
    kind = "a cohort of real learners under numbers: keep it inside" if cohort.real else invented
    with _owner_only() if cohort.real else contextlib.nullcontext():
        write_table(cohort.to_polars(), path, kind=kind)


def check_replaceable(path: Path) -> None:
    """Refuse to write over a table that is not one of ours, which can be built again; its learners' names show it."""
    if path.exists() and not (_first_learner(path) or "").startswith((REAL_PREFIX, SIMULATED_PREFIX)):
        raise UsageError(
            f"asked to write {path}, which is there already and is not what this command makes.",
            hint="choose another name, or move the old file away.",
            code="already-exists",
            settings=("out",),
        )


def check_schema_beside(path: Path, schema: Schema) -> None:
    """Refuse to write over a different declaration: it was written by hand, or paid for."""
    place = schema_path(path)
    if place.exists() and not _declares(place, schema):
        raise UsageError(
            f"asked to write {place}, which is there already and declares something else.",
            hint="choose another name, or move the old file away.",
        )


def _first_learner(path: Path) -> str | None:
    try:
        frame = read_whole_parquet(path) if path.suffix.lower() == ".parquet" else pl.scan_csv(path)
        return str(frame.lazy().select("learner").head(1).collect().item())
    except (UnderstudyError, pl.exceptions.PolarsError, OSError, ValueError):
        return None


def _declares(place: Path, schema: Schema) -> bool:
    try:
        return Schema.read(place) == schema
    except UnderstudyError:
        return False


@contextlib.contextmanager
def _owner_only() -> Iterator[None]:
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
