"""Schema: what is public about a cohort, declared in `cohort.toml`.

Names, bounds, weeks and the labels' bins are declared, not found: a guarantee rests on the bounds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.core.files.documents import ContractError, checked, contract, read_toml
from understudy.core.privacy.guarantee import Caveat
from understudy.errors import DataError

Floats = NDArray[np.float64]

LEARNER = "learner"
# Ten years: more is a typing error.
MOST_WEEKS = 520
CutsSource = Literal["declared", "private", "data"]
# Learners with a score and no event, or listed without a score: in the cohort, or left out.
Kept = Literal["kept", "dropped"]
_NOT_PRIVATE = (
    "# NOT PRIVATE: the cuts below were computed from the learners' scores. Keep this file inside.\n"
)

# Of whatever is released about a cohort: its number of learners is public.
DROPPED = Caveat(
    "learners-without-events-dropped",
    "learners without an event were dropped before: the number of learners, which is public, therefore says how many "
    "had one, and this epsilon does not cover it",
    "how many learners had an event is not covered",
)
UNSCORED = Caveat(
    "learners-without-score-dropped",
    "learners listed without a score were left out before: the number of learners, which is public, therefore says how "
    "many had one, and this epsilon does not cover it",
    "how many learners had a score is not covered",
)


@dataclass(frozen=True)
class Feature:
    """One feature of each week, such as the minutes in the morning, from 0 to `high`.

    `hours` are the first hour that belongs to a window of the day and the first that does not; a
    window such as (22, 5) goes over midnight.
    """

    __pydantic_config__: ClassVar = contract()

    name: str
    high: float
    unit: str = "minutes"
    hours: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not (self.high > 0 and math.isfinite(self.high)):
            raise ContractError(
                "every feature needs a bound above 0.", hint="give `high` for each [[feature]].", key="high"
            )
        if not self.name.strip():
            raise ContractError(
                "every feature needs a name.", hint="give `name` for each [[feature]].", key="name"
            )
        if self.hours is not None:
            first, end = self.hours
            if not (0 <= first < 24 and 0 < end <= 24 and first != end):
                raise ContractError(
                    f"feature '{self.name}' has the hours {first} to {end}.",
                    hint="give the first hour of the window, 0 to 23, and the first behind it, 1 to 24.",
                    key="hours",
                )


# The windows of the day of Ito, Hsu and Ogata (2026, section IV-A); a week holds at most ten hours of each.
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
    learner is in the next bin. `cuts_source` records where they come from: declared by the custodian,
    estimated privately (and charged), or computed from the data, with which no guarantee holds: a
    replaced score moves other learners across them. `cuts_epsilon` is what privately estimated cuts
    cost: the guarantee of everything that holds them adds it. `without_events` says
    whether learners who did nothing are in the cohort, `without_score` whether some were left out who
    are listed without a score: without them its size, which is public, depends on what learners did.
    `context` describes in words what was collected, for the authors of generators.

    `data_set` is a random name by which the ledger knows the learners of a table, whatever its file is
    called. It stays in the toml next to the table, and two declarations that differ in it only are equal.
    """

    __pydantic_config__: ClassVar = contract(features="feature", n_weeks="weeks")

    features: tuple[Feature, ...] = WINDOWS
    n_weeks: int = 17
    label: str = "achievement"
    labels: tuple[str, ...] = ("low", "average", "high")
    cuts: tuple[float, ...] | None = None
    score_bounds: tuple[float, float] = (0.0, 100.0)
    title: str = ""
    context: str = ""
    cuts_source: CutsSource = "declared"
    without_events: Kept = "kept"
    cuts_epsilon: float | None = None
    without_score: Kept = "kept"
    data_set: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        names = [feature.name for feature in self.features]
        if not names or len(set(names)) < len(names):
            raise ContractError(
                "a cohort needs features with different names.",
                hint="see [[feature]] in cohort.toml.",
                key="feature",
            )
        if not 2 <= self.n_weeks <= MOST_WEEKS:
            raise ContractError(
                f"a series of {self.n_weeks} weeks was declared.",
                hint=f"declare 2 to {MOST_WEEKS} weeks.",
                key="weeks",
            )
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise ContractError(
                "a cohort needs at least two different labels.",
                hint="see `labels` in cohort.toml.",
                key="labels",
            )
        if self.label in (LEARNER, *self.columns()) or not self.label.strip():
            raise ContractError(
                f"the label cannot be called '{self.label}'.",
                hint="no column may have its name already.",
                key="label",
            )
        low, high = self.score_bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ContractError(
                f"scores from {low:g} to {high:g} were declared.",
                hint="see `score_bounds` in cohort.toml.",
                key="score_bounds",
            )
        choices = {"cuts_source": CutsSource, "without_events": Kept, "without_score": Kept}
        for key, choice in choices.items():
            if getattr(self, key) not in get_args(choice):
                raise ContractError(
                    f"`{key}` is not {' or '.join(map(repr, get_args(choice)))}.",
                    hint=f"see `{key}` in cohort.toml.",
                    key=key,
                )
        if self.data_set and not re.fullmatch(r"[0-9a-f]{16}", self.data_set):
            raise ContractError(
                "`data_set` is not a name that `cohort build` gives.",
                hint="leave it as it was written, 16 digits from 0 to f, or leave it out.",
                key="data_set",
            )
        self._check_cuts()

    def _check_cuts(self) -> None:
        if self.cuts_epsilon is not None and not (
            self.cuts_source == "private" and self.cuts_epsilon > 0 and math.isfinite(self.cuts_epsilon)
        ):
            raise ContractError(
                "`cuts_epsilon` is what cuts cost that were estimated privately, a number above 0.",
                hint='give it only together with cuts_source = "private".',
                key="cuts_epsilon",
            )
        if self.cuts is None:
            if self.cuts_source != "declared":
                raise ContractError(
                    "`cuts_source` was given without `cuts`.", hint="leave it out.", key="cuts_source"
                )
            return
        n_cuts = len(self.labels) - 1
        if len(self.cuts) != n_cuts:
            raise ContractError(
                f"{len(self.labels)} labels need {n_cuts} cuts between them; got {len(self.cuts)}.",
                hint="leave `cuts` out to have them estimated privately.",
                key="cuts",
            )
        if list(self.cuts) != sorted(set(self.cuts)):
            raise ContractError(
                f"the cuts must rise, from low to high; got {', '.join(f'{cut:g}' for cut in self.cuts)}.",
                hint="write each cut once, the smallest first: from it on a score is in the next of `labels`.",
                key="cuts",
            )
        low, high = self.score_bounds
        if not all(low <= cut <= high for cut in self.cuts):
            raise ContractError(
                f"the cuts do not all lie within the scores' bounds, {low:g} to {high:g}.",
                hint="see `cuts` and `score_bounds` in cohort.toml.",
                key="cuts",
            )

    @property
    def n_features(self) -> int:
        """Number of features per week."""
        return len(self.features)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What no epsilon covers of whatever is released about the cohort."""
        left_out = ((DROPPED, self.without_events), (UNSCORED, self.without_score))
        return tuple(caveat for caveat, kept in left_out if kept == "dropped")

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
        kind = kind_of_file(path)
        if kind not in (None, "declaration"):
            raise DataError(
                f"{path.name} is {KINDS[kind]}, not the declaration of a cohort.",
                hint="give the toml file: what you declared, or what `understudy cohort build` wrote beside the table.",
            )
        return read_toml(path, cls, hint="declare the cohort in cohort.toml.")

    @classmethod
    def from_dict(cls, content: Any, source: str = "cohort.toml") -> Schema:
        """The schema from a parsed file."""
        return checked(content, cls, source)

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


def worst_schema(schemas: Sequence[Schema]) -> Schema:
    """The first of some schemas with the same columns and cuts, as little private as the least private of them."""
    sources = [schema.cuts_source for schema in schemas]
    source = max(sources, key=get_args(CutsSource).index)
    prices = [schema.cuts_epsilon for schema in schemas if schema.cuts_source == "private"]
    # Each learner is in one of the tables, or the ledger adds up what was charged for both: the largest price counts.
    price = None if source != "private" or None in prices else max(p for p in prices if p is not None)
    return replace(
        schemas[0],
        cuts_source=source,
        cuts_epsilon=price,
        without_events=max((schema.without_events for schema in schemas), key=get_args(Kept).index),
        without_score=max((schema.without_score for schema in schemas), key=get_args(Kept).index),
        data_set=schemas[0].data_set if len({schema.data_set for schema in schemas}) == 1 else "",
    )


Kind = Literal["table", "workbook", "declaration", "summary", "suggestions", "json"]

# The format that a file states.
SUMMARY_FORMAT = "understudy cohort summary"
SUGGESTIONS_FORMAT = "understudy cohort suggestions"
_FORMATS: dict[str, Kind] = {SUMMARY_FORMAT: "summary", SUGGESTIONS_FORMAT: "suggestions"}
KINDS: dict[Kind, str] = {
    "table": "a table of learners",
    "workbook": "a workbook",
    "declaration": "the declaration of a cohort",
    "summary": "a private summary",
    "suggestions": "suggestions for the next cycle",
    "json": "JSON",
}
_FORMAT = re.compile(rb'"format"\s*:\s*"([a-z ]{1,60})"')
_HEAD = 4096


def kind_of_file(path: Path) -> Kind | None:
    """The kind of a file, from its first bytes and, for text, from its name; None if neither shows it."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if head.startswith(b"PAR1"):
        return "table"
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return "workbook"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        found = _FORMAT.search(head)
        return _FORMATS.get(found.group(1).decode(), "json") if found else "json"
    suffixes: dict[str, Kind] = {".toml": "declaration", ".json": "json", ".csv": "table", ".tsv": "table"}
    return suffixes.get(path.suffix.lower())
