"""The table that questions are about: rows of learners, and the tables without some or with some twice.

Names of learners never reach an analysis: they are numbered in an order that is drawn once, and every
copy of a learner in a shadow is a learner of their own.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.parquet import read_whole_parquet
from understudy.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars as pl

LEARNER = "learner"


@dataclass(frozen=True, eq=False, repr=False)
class LearnerTable:
    """Rows sorted by learner: those of learner i are `starts[i]` to `starts[i + 1]`."""

    rows: pl.DataFrame
    """Without the learners' names."""
    starts: NDArray[np.int64]

    @property
    def n_learners(self) -> int:
        """The number of learners."""
        return len(self.starts) - 1

    @property
    def columns(self) -> list[str]:
        """The columns that an analysis sees, the learners' column first."""
        return [LEARNER, *self.rows.columns]

    @property
    def texts(self) -> list[str]:
        """Names of columns and labels in them: of the synthetic table, words that may occur in an answer."""
        import polars as pl

        labels = [
            label
            for name in self.rows.columns
            if self.rows[name].dtype in (pl.String, pl.Categorical, pl.Enum)
            for label in self.rows[name].cast(pl.String).unique().drop_nulls().sort().to_list()
        ]
        return [*self.columns, *labels]

    def whole(self) -> bytes:
        """All learners, for the sandbox."""
        return self.of(np.arange(self.n_learners))

    def without(self, left_out: Sequence[int]) -> bytes:
        """All learners but some; the others keep their numbers."""
        kept = np.setdiff1d(np.arange(self.n_learners), np.asarray(left_out))
        return self.of(kept, numbers=kept)

    def of(self, learners: NDArray[np.int64], numbers: NDArray[np.int64] | None = None) -> bytes:
        """Some learners, repeated as often as they are listed; numbered in order unless `numbers` are given."""
        drawn = self.drawn(learners)
        shown = np.arange(len(learners)) if numbers is None else numbers
        return self._numbered(drawn.rows, shown, np.diff(drawn.starts))

    def drawn(self, learners: NDArray[np.int64]) -> LearnerTable:
        """A table of some learners, repeated as often as they are listed."""
        lengths = np.diff(self.starts)[learners]
        ends = np.cumsum(lengths)
        place = np.repeat(self.starts[learners] - ends + lengths, lengths) + np.arange(lengths.sum())
        return LearnerTable(self.rows[place], np.concatenate([[0], ends]).astype(np.int64))

    def rows_of(self, learner: int) -> pl.DataFrame:
        """The rows of one learner."""
        return self.rows[int(self.starts[learner]) : int(self.starts[learner + 1])]

    def replaced(self, rows: Mapping[int, pl.DataFrame]) -> bytes:
        """All learners, of whom some have other rows in place of their own; names and order stay."""
        import polars as pl

        parts, lengths, done = [], np.diff(self.starts), 0
        for learner in sorted(rows):
            parts += [self.rows[done : int(self.starts[learner])], rows[learner]]
            lengths[learner] = rows[learner].height
            done = int(self.starts[learner + 1])
        frame = pl.concat([*parts, self.rows[done:]], rechunk=True)
        return self._numbered(frame, np.arange(self.n_learners), lengths)

    def _numbered(self, rows: pl.DataFrame, numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> bytes:
        import polars as pl

        width = len(str(self.n_learners))
        names = [f"learner-{number + 1:0{width}}" for number in numbers.tolist()]
        frame = rows.clone().insert_column(
            0, pl.Series(LEARNER, np.repeat(np.array(names, dtype=object), lengths), dtype=pl.String)
        )
        sink = io.BytesIO()
        frame.write_ipc_stream(sink, compression="uncompressed")
        return sink.getvalue()


def read_table(path: Path, source: str = "the table") -> pl.DataFrame:
    """A csv or Parquet file. Errors name `source`, since the path of the real data stays private."""
    import polars as pl

    try:
        if path.suffix.lower() == ".parquet":
            return read_whole_parquet(path, source)
        return pl.read_csv(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(
            f"{source} cannot be read ({type(error).__name__}).",
            hint="give a csv or Parquet file that is there and can be read.",
        ) from None


def learner_table(
    frame: pl.DataFrame,
    rng: np.random.Generator,
    *,
    columns: Sequence[str] | None = None,
    withdrawn: Sequence[str] = (),
    learner: str = LEARNER,
) -> LearnerTable:
    """The table of a frame with a column of learners, without those who withdrew, in an order that `rng` draws."""
    import polars as pl

    if learner not in frame.columns:
        raise DataError(f"the table has no column '{learner}'.", hint="name the learner column.")
    wanted = [name for name in (columns or frame.columns) if name not in (learner, LEARNER)]
    if missing := [name for name in wanted if name not in frame.columns]:
        raise DataError(
            f"{len(missing)} columns of the synthetic data are not in the real data, such as '{missing[0]}'.",
            hint="synthetic and real data need the same columns.",
        )
    frame = frame.with_columns(pl.col(learner).cast(pl.String).alias("__learner"))
    frame = frame.filter(pl.col("__learner").is_not_null() & ~pl.col("__learner").is_in(list(withdrawn)))
    if frame.height == 0:
        raise UsageError("no learner is left in the table.", hint="check the list of learners who withdrew.")
    names = frame["__learner"].unique().sort()
    drawn = pl.DataFrame({"__learner": names, "__place": rng.permutation(len(names))})
    frame = frame.join(drawn, on="__learner", how="left").sort("__place", maintain_order=True)
    lengths = frame["__place"].value_counts().sort("__place")["count"].to_numpy()
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return LearnerTable(frame.select(wanted), starts)
