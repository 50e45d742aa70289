"""Cohort: one row per learner, a series of features over the weeks of a term, and a label.

The schema is declared, not found: names, bounds, weeks and the labels' bins are public, and a
guarantee rests on the bounds. Values beyond a bound are cut to it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import DataError, UsageError
from understudy.records.interactions import SIMULATED_PREFIX, SYNTHETIC_PREFIX

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Number = TypeVar("Number", int, float)

LEARNER = "learner"
# Ten years: more is a typing error.
MOST_WEEKS = 520
CUTS_SOURCES = ("declared", "private", "data")
_NOT_PRIVATE = (
    "# NOT PRIVATE: the cuts below were computed from the learners' scores. Keep this file inside.\n"
)
# Learners with a score and no event: in the cohort with zeros, or not in it.
WITHOUT_EVENTS = ("kept", "dropped")
_KEYS = (
    *("title", "context", "weeks", "label", "labels", "cuts", "cuts_source", "score_bounds"),
    *("without_events", "feature"),
)
_FEATURE_KEYS = ("name", "high", "unit", "hours")


@dataclass(frozen=True)
class Feature:
    """One feature of each week, such as the minutes in the morning, from 0 to `high`.

    `hours` are the first hour that belongs to a window of the day and the first that does not; a
    window such as (22, 5) goes over midnight.
    """

    name: str
    high: float
    unit: str = "minutes"
    hours: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not (self.high > 0 and math.isfinite(self.high)):
            raise DataError("every feature needs a bound above 0.", hint="give `high` for each [[feature]].")
        if not self.name.strip():
            raise DataError("every feature needs a name.", hint="give `name` for each [[feature]].")
        if self.hours is not None:
            first, end = self.hours
            if not (0 <= first < 24 and 0 < end <= 24 and first != end):
                raise DataError(
                    f"feature '{self.name}' has the hours {first} to {end}.",
                    hint="give the first hour of the window, 0 to 23, and the first behind it, 1 to 24.",
                )


# The windows of the day of the seed (two-stage-sharing, section IV-A), at most their whole length a day.
WINDOWS = (
    Feature("morning", 600.0, hours=(5, 12)),
    Feature("afternoon", 600.0, hours=(12, 17)),
    Feature("evening", 600.0, hours=(17, 24)),
    Feature("overnight", 600.0, hours=(0, 5)),
)


@dataclass(frozen=True)
class Schema:
    """What is public about a cohort: `cohort.toml`.

    `labels` are the bins of `label` from low to high; `cuts` are the scores from which on a
    learner is in the next bin. `cuts_source` says where they are from: declared by the custodian,
    estimated privately (and charged), or computed from the data, with which no guarantee holds: a
    replaced score moves other learners across them. `without_events` says whether learners who
    did nothing are in the cohort: without them its size, which is public, depends on what learners
    did. `context` says in words what was collected, for whoever writes a generator.
    """

    features: tuple[Feature, ...] = WINDOWS
    n_weeks: int = 17
    label: str = "achievement"
    labels: tuple[str, ...] = ("low", "average", "high")
    cuts: tuple[float, ...] | None = None
    score_bounds: tuple[float, float] = (0.0, 100.0)
    title: str = ""
    context: str = ""
    cuts_source: str = "declared"
    without_events: str = "kept"

    def __post_init__(self) -> None:
        names = [feature.name for feature in self.features]
        if not names or len(set(names)) < len(names):
            raise DataError(
                "a cohort needs features with different names.", hint="see [[feature]] in cohort.toml."
            )
        if not 2 <= self.n_weeks <= MOST_WEEKS:
            raise DataError(
                f"a series of {self.n_weeks} weeks was declared.", hint=f"declare 2 to {MOST_WEEKS} weeks."
            )
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise DataError(
                "a cohort needs at least two different labels.", hint="see `labels` in cohort.toml."
            )
        if self.label in (LEARNER, *self.columns()) or not self.label.strip():
            raise DataError(
                f"the label cannot be called '{self.label}'.", hint="no column may have its name already."
            )
        low, high = self.score_bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise DataError(
                f"scores from {low:g} to {high:g} were declared.", hint="see `score_bounds` in cohort.toml."
            )
        if self.without_events not in WITHOUT_EVENTS:
            raise DataError(
                f"learners without events are {' or '.join(WITHOUT_EVENTS)}, not '{self.without_events}'.",
                hint="see `without_events` in cohort.toml.",
            )
        self._check_cuts()

    def _check_cuts(self) -> None:
        if self.cuts_source not in CUTS_SOURCES:
            raise DataError(
                f"cuts are {', '.join(CUTS_SOURCES)}, not '{self.cuts_source}'.", hint="see `cuts_source`."
            )
        if self.cuts is None:
            if self.cuts_source != "declared":
                raise DataError("`cuts_source` was given without `cuts`.", hint="leave it out.")
            return
        if len(self.cuts) != len(self.labels) - 1 or list(self.cuts) != sorted(set(self.cuts)):
            raise DataError(
                f"{len(self.labels)} labels need {len(self.labels) - 1} growing cuts; got {len(self.cuts)}.",
                hint="leave `cuts` out to have them estimated privately.",
            )
        low, high = self.score_bounds
        if not all(low <= cut <= high for cut in self.cuts):
            raise DataError(
                f"the cuts do not all lie within the scores' bounds, {low:g} to {high:g}.",
                hint="see `cuts` and `score_bounds` in cohort.toml.",
            )

    @property
    def n_features(self) -> int:
        """Number of features of a week."""
        return len(self.features)

    @property
    def n_labels(self) -> int:
        """Number of label bins."""
        return len(self.labels)

    @property
    def highs(self) -> Floats:
        """The bound of each feature."""
        return np.array([feature.high for feature in self.features])

    def columns(self) -> list[str]:
        """The columns of a table, feature by feature, week by week: `morning_01`."""
        width = len(str(self.n_weeks))
        return [
            f"{f.name}_{week:0{max(width, 2)}}" for f in self.features for week in range(1, self.n_weeks + 1)
        ]

    @classmethod
    def read(cls, path: Path) -> Schema:
        """The schema declared in a TOML file."""
        if not path.is_file():
            raise UsageError(f"there is no file {path}.", hint="declare the cohort in cohort.toml.")
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(
                f"{path.name} is not TOML ({type(error).__name__}).", hint="check the quotes."
            ) from None
        return cls.from_dict(content, path.name)

    @classmethod
    def from_dict(cls, content: dict[str, Any], source: str = "cohort.toml") -> Schema:
        """The schema from a parsed file; a key that is not known is an error."""
        _refuse_unknown(content, _KEYS, source)
        try:
            for entry in content.get("feature", []):
                _refuse_unknown(entry, _FEATURE_KEYS, f"{source}, [[feature]]")
            features = tuple(
                Feature(
                    str(entry["name"]),
                    float(entry["high"]),
                    str(entry.get("unit", "minutes")),
                    None if "hours" not in entry else _pair(entry["hours"], int),
                )
                for entry in content.get("feature", [])
            )
            default = cls()
            return cls(
                features=features or WINDOWS,
                n_weeks=int(content.get("weeks", default.n_weeks)),
                label=str(content.get("label", default.label)),
                labels=tuple(str(name) for name in _listed(content.get("labels", default.labels))),
                cuts=None if "cuts" not in content else tuple(float(cut) for cut in _listed(content["cuts"])),
                cuts_source=str(content.get("cuts_source", default.cuts_source)),
                score_bounds=_pair(content.get("score_bounds", default.score_bounds), float),
                without_events=str(content.get("without_events", default.without_events)),
                title=str(content.get("title", "")),
                context=str(content.get("context", "")),
            )
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            raise DataError(
                f"{source}: a value has the wrong form.",
                hint="each [[feature]] has a name and a number `high`; cuts and score_bounds are lists of numbers.",
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The content of the file, for JSON and for prompts; nothing here depends on a learner."""
        return {
            "title": self.title,
            "context": self.context,
            "weeks": self.n_weeks,
            "label": self.label,
            "labels": list(self.labels),
            **({} if self.cuts is None else {"cuts": list(self.cuts), "cuts_source": self.cuts_source}),
            "score_bounds": list(self.score_bounds),
            **({} if self.without_events == "kept" else {"without_events": self.without_events}),
            "feature": [
                {
                    "name": f.name,
                    "high": f.high,
                    "unit": f.unit,
                    **({} if f.hours is None else {"hours": list(f.hours)}),
                }
                for f in self.features
            ],
        }

    def to_toml(self) -> str:
        """The file itself."""
        import json

        def written(value: Any) -> str:
            # What JSON escapes, TOML reads; the one character that only TOML escapes is added.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

        lines = [f"{key} = {written(value)}" for key, value in self.to_dict().items() if key != "feature"]
        for feature in self.to_dict()["feature"]:
            lines += ["", "[[feature]]"]
            lines += [f"{key} = {written(value)}" for key, value in feature.items()]
        warning = _NOT_PRIVATE if self.cuts is not None and self.cuts_source == "data" else ""
        return warning + "\n".join(lines) + "\n"

    def bin(self, scores: ArrayLike) -> NDArray[np.int8]:
        """The label of each score, cut to the bounds."""
        if self.cuts is None:
            raise DataError("no cuts are declared.", hint="see `cuts` in cohort.toml.")
        within = np.clip(np.asarray(scores, dtype=np.float64), *self.score_bounds)
        return np.searchsorted(self.cuts, within, side="right").astype(np.int8)


def _refuse_unknown(content: dict[str, Any], known: Sequence[str], source: str) -> None:
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise DataError(
            f"{source}: unknown key '{unknown[0]}'.", hint="the keys are " + ", ".join(known) + "."
        )


def _listed(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return value


def _pair(value: Any, kind: Callable[[Any], Number]) -> tuple[Number, Number]:
    first, second = _listed(value)
    if kind(first) != first or kind(second) != second:
        raise ValueError
    return kind(first), kind(second)


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
        if not cohorts or any(one.schema.columns() != cohorts[0].schema.columns() for one in cohorts):
            raise DataError("cohorts of different schemas cannot be joined.", hint="build them alike.")
        return cls(
            np.concatenate([one.values for one in cohorts]),
            np.concatenate([one.label for one in cohorts]),
            cohorts[0].schema,
            simulated=all(one.simulated for one in cohorts),
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
        names = table[LEARNER].cast(pl.String) if LEARNER in table.columns else None
        simulated = names is not None and bool(names.str.starts_with(SIMULATED_PREFIX).all())
        return cls(values, codes.to_numpy().astype(np.int8), schema, simulated=simulated)

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
    declared = Schema.read(schema or path.with_suffix(".toml"))
    try:
        frame = (
            pl.read_parquet(path)
            if path.suffix.lower() == ".parquet"
            else pl.read_csv(path, infer_schema_length=None)
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(
            f"{path.name} cannot be read ({type(error).__name__}).", hint="build it again."
        ) from None
    return Cohort.from_frame(frame, declared, source=path.name)
