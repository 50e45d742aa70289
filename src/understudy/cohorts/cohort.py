"""Cohort: one row per learner, a series of features over the weeks of a term, and a label.

The schema is declared, not found: names, bounds, weeks and the labels' bins are public, and a
guarantee rests on the bounds. Values beyond a bound are cut to it.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.core.files.documents import (
    WORDS,
    DeclarationError,
    declared_value,
    kind_of_file,
    line_of,
    number,
    numbers,
    pair_of,
    place_in,
    whole_number,
    words,
)
from understudy.core.files.simulated import is_simulated
from understudy.core.names import SIMULATED_PREFIX, SYNTHETIC_PREFIX
from understudy.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

LEARNER = "learner"
# Ten years: more is a typing error.
MOST_WEEKS = 520
CUTS_SOURCES = ("declared", "private", "data")
_NOT_PRIVATE = (
    "# NOT PRIVATE: the cuts below were computed from the learners' scores. Keep this file inside.\n"
)
# Learners with a score and no event: in the cohort with zeros, or not in it.
WITHOUT_EVENTS = ("kept", "dropped")
# Learners of the list of scores who have none: nobody ("kept"), or left out.
WITHOUT_SCORE = ("kept", "dropped")
_KEYS = (
    *("title", "context", "weeks", "label", "labels", "cuts", "cuts_source", "cuts_epsilon", "score_bounds"),
    *("without_events", "without_score", "data_set", "feature"),
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
            raise DeclarationError(
                "every feature needs a bound above 0.", hint="give `high` for each [[feature]].", key="high"
            )
        if not self.name.strip():
            raise DeclarationError(
                "every feature needs a name.", hint="give `name` for each [[feature]].", key="name"
            )
        if self.hours is not None:
            first, end = self.hours
            if not (0 <= first < 24 and 0 < end <= 24 and first != end):
                raise DeclarationError(
                    f"feature '{self.name}' has the hours {first} to {end}.",
                    hint="give the first hour of the window, 0 to 23, and the first behind it, 1 to 24.",
                    key="hours",
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
    replaced score moves other learners across them. `cuts_epsilon` is what privately estimated cuts
    cost: whoever states the guarantee of something that holds them adds it. `without_events` says
    whether learners who did nothing are in the cohort, `without_score` whether some were left out who
    are listed without a score: without them its size, which is public, depends on what learners did.
    `context` says in words what was collected, for whoever writes a generator.

    `data_set` is a random name by which the ledger knows the learners of a table, whatever its file is
    called. It stays in the toml beside the table, and does not tell two declarations apart.
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
    cuts_epsilon: float | None = None
    without_score: str = "kept"
    data_set: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        names = [feature.name for feature in self.features]
        if not names or len(set(names)) < len(names):
            raise DeclarationError(
                "a cohort needs features with different names.",
                hint="see [[feature]] in cohort.toml.",
                key="feature",
            )
        if not 2 <= self.n_weeks <= MOST_WEEKS:
            raise DeclarationError(
                f"a series of {self.n_weeks} weeks was declared.",
                hint=f"declare 2 to {MOST_WEEKS} weeks.",
                key="weeks",
            )
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise DeclarationError(
                "a cohort needs at least two different labels.",
                hint="see `labels` in cohort.toml.",
                key="labels",
            )
        if self.label in (LEARNER, *self.columns()) or not self.label.strip():
            raise DeclarationError(
                f"the label cannot be called '{self.label}'.",
                hint="no column may have its name already.",
                key="label",
            )
        low, high = self.score_bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise DeclarationError(
                f"scores from {low:g} to {high:g} were declared.",
                hint="see `score_bounds` in cohort.toml.",
                key="score_bounds",
            )
        if self.without_events not in WITHOUT_EVENTS:
            raise DeclarationError(
                f"learners without events are {' or '.join(WITHOUT_EVENTS)}, not '{self.without_events}'.",
                hint="see `without_events` in cohort.toml.",
                key="without_events",
            )
        if self.without_score not in WITHOUT_SCORE:
            raise DeclarationError(
                f"learners without a score are {' or '.join(WITHOUT_SCORE)}, not '{self.without_score}'.",
                hint="see `without_score` in cohort.toml.",
                key="without_score",
            )
        if self.data_set and not re.fullmatch(r"[0-9a-f]{16}", self.data_set):
            raise DeclarationError(
                "`data_set` is not a name that `cohort build` gives.",
                hint="leave it as it was written, 16 digits from 0 to f, or leave it out.",
                key="data_set",
            )
        self._check_cuts()

    def _check_cuts(self) -> None:
        if self.cuts_source not in CUTS_SOURCES:
            raise DeclarationError(
                f"cuts are {', '.join(CUTS_SOURCES)}, not '{self.cuts_source}'.",
                hint="see `cuts_source`.",
                key="cuts_source",
            )
        if self.cuts_epsilon is not None and not (
            self.cuts_source == "private" and self.cuts_epsilon > 0 and math.isfinite(self.cuts_epsilon)
        ):
            raise DeclarationError(
                "`cuts_epsilon` is what cuts cost that were estimated privately, a number above 0.",
                hint='it stands beside cuts_source = "private" only.',
                key="cuts_epsilon",
            )
        if self.cuts is None:
            if self.cuts_source != "declared":
                raise DeclarationError(
                    "`cuts_source` was given without `cuts`.", hint="leave it out.", key="cuts_source"
                )
            return
        n_cuts = len(self.labels) - 1
        if len(self.cuts) != n_cuts:
            raise DeclarationError(
                f"{len(self.labels)} labels need {n_cuts} cuts between them; got {len(self.cuts)}.",
                hint="leave `cuts` out to have them estimated privately.",
                key="cuts",
            )
        if list(self.cuts) != sorted(set(self.cuts)):
            raise DeclarationError(
                f"the cuts must rise, from low to high; got {', '.join(f'{cut:g}' for cut in self.cuts)}.",
                hint="write each cut once, the smallest first: from it on a score is in the next of `labels`.",
                key="cuts",
            )
        low, high = self.score_bounds
        if not all(low <= cut <= high for cut in self.cuts):
            raise DeclarationError(
                f"the cuts do not all lie within the scores' bounds, {low:g} to {high:g}.",
                hint="see `cuts` and `score_bounds` in cohort.toml.",
                key="cuts",
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
        kind = kind_of_file(path)
        if kind not in (None, "declaration"):
            raise DataError(
                f"{path.name} is {WORDS[kind]}, not the declaration of a cohort.",
                hint="give the toml file: what you declared, or what `understudy cohort build` wrote beside the table.",
            )
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text)
        except UnicodeDecodeError:
            raise DataError(f"{path.name} is not text in UTF-8.", hint="save it as UTF-8.") from None
        except tomllib.TOMLDecodeError as error:
            raise DataError(
                f"{path.name}{place_in(str(error), text, (*_KEYS, *_FEATURE_KEYS))} is not TOML.",
                hint="check the quotes and brackets there, and in the line before.",
            ) from None
        try:
            return cls._declared(content)
        except DeclarationError as error:
            line = line_of(text, error.key, error.feature)
            raise error.at(path.name if line is None else f"{path.name}, line {line}") from None

    @classmethod
    def from_dict(cls, content: dict[str, Any], source: str = "cohort.toml") -> Schema:
        """The schema from a parsed file; a key that is not known is an error."""
        try:
            return cls._declared(content)
        except DeclarationError as error:
            raise error.at(source) from None

    @classmethod
    def _declared(cls, content: dict[str, Any]) -> Schema:
        if not isinstance(content, dict):
            raise DeclarationError("a declaration has keys with values.", hint="see cohort.toml.")
        _refuse_unknown(content, _KEYS)
        entries = content.get("feature", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise DeclarationError(
                "`feature` is not a list of tables.", hint="write [[feature]] above each.", key="feature"
            )
        features = []
        for place, entry in enumerate(entries, 1):
            try:
                features.append(_feature(entry))
            except DeclarationError as error:
                raise DeclarationError(error.message, hint=error.hint, key=error.key, feature=place) from None
        default = cls()
        return cls(
            features=tuple(features) or WINDOWS,
            n_weeks=declared_value(content, "weeks", whole_number, "a whole number", default.n_weeks),
            label=declared_value(content, "label", str, "a word", default.label),
            labels=declared_value(content, "labels", words, "a list of words", default.labels),
            cuts=declared_value(content, "cuts", numbers, "a list of numbers", None),
            cuts_source=declared_value(content, "cuts_source", str, "a word", default.cuts_source),
            cuts_epsilon=declared_value(content, "cuts_epsilon", number, "a number", None),
            score_bounds=declared_value(
                content, "score_bounds", pair_of(number), "a list of two numbers", default.score_bounds
            ),
            without_events=declared_value(content, "without_events", str, "a word", default.without_events),
            without_score=declared_value(content, "without_score", str, "a word", default.without_score),
            data_set=declared_value(content, "data_set", str, "a word", ""),
            title=declared_value(content, "title", str, "a text", ""),
            context=declared_value(content, "context", str, "a text", ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """What may leave of the file, for JSON and for prompts: all but `data_set`."""
        return {
            "title": self.title,
            "context": self.context,
            "weeks": self.n_weeks,
            "label": self.label,
            "labels": list(self.labels),
            **({} if self.cuts is None else {"cuts": list(self.cuts), "cuts_source": self.cuts_source}),
            **({} if self.cuts_epsilon is None else {"cuts_epsilon": self.cuts_epsilon}),
            "score_bounds": list(self.score_bounds),
            **({} if self.without_events == "kept" else {"without_events": self.without_events}),
            **({} if self.without_score == "kept" else {"without_score": self.without_score}),
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
        if self.data_set:
            lines.append(f"data_set = {written(self.data_set)}")
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


def _refuse_unknown(content: dict[str, Any], known: Sequence[str]) -> None:
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise DeclarationError(
            f"unknown key '{unknown[0]}'.", hint="the keys are " + ", ".join(known) + ".", key=unknown[0]
        )


def _feature(entry: dict[str, Any]) -> Feature:
    _refuse_unknown(entry, _FEATURE_KEYS)
    for key in ("name", "high"):
        if key not in entry:
            raise DeclarationError(
                f"a [[feature]] has no `{key}`.",
                hint="each [[feature]] has a name and a number `high`.",
                key=key,
            )
    return Feature(
        declared_value(entry, "name", str, "a word", ""),
        declared_value(entry, "high", number, "a number", 0.0),
        declared_value(entry, "unit", str, "a word", "minutes"),
        declared_value(
            entry, "hours", pair_of(whole_number), "a list of two whole numbers, such as [5, 12]", None
        ),
    )


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
            f"{path.name} is {WORDS[kind]}, not the table of a cohort.",
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
