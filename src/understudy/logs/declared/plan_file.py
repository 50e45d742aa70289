"""The part `[log]` of a plan file: which columns a log is read from, its term, and what else is declared.

    [log]
    learner = "user"
    time = "start_time"

    [log.term]
    first = 2024-09-01
    last = 2025-02-28
    resolution = "minute"

    [log.results]
    file = "tests.csv"
    action = "test"

    [[log.columns]]
    name = "school type"
    of = "learner"
    kind = "category"
    values = ["primary", "secondary"]

Keys have the names of the settings of reading. A setting that was given otherwise wins over the plan's.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from understudy.core.files.documents import ContractError, checked, contract, parse_toml
from understudy.core.files.times import unit_of
from understudy.errors import DataError, UsageError
from understudy.logs.declared.cells import check_declared
from understudy.logs.declared.columns import Declared, Kind

Options = TypeVar("Options")

# Settings that are paths, relative to the plan's folder.
PATHS = ("actions_file", "exclude", "learners", "results")


@dataclass(frozen=True)
class TermTable:
    """`[log.term]`: when the course ran, and how its times are written."""

    first: str | None = None
    last: str | None = None
    resolution: float | str | None = None
    session_minutes: float | None = None

    __pydantic_config__: ClassVar[Any] = contract()

    def __post_init__(self) -> None:
        for key in ("first", "last"):
            _day(getattr(self, key), key)
        if (self.first is None) != (self.last is None):
            raise ContractError(
                "a term has a first and a last day, or neither.", hint="declare both, or none.", key="first"
            )


@dataclass(frozen=True)
class ColumnTable:
    """`[[log.columns]]`: what is public about a column."""

    name: str
    of: Literal["row", "learner"]
    kind: Literal["category", "number", "yes/no", "time"]
    values: tuple[str, ...] = ()
    low: float | str | None = None
    high: float | str | None = None
    step: float | None = None
    unit: str = ""
    found: bool = False

    __pydantic_config__: ClassVar[Any] = contract()

    def __post_init__(self) -> None:
        for key in ("low", "high"):
            bound = getattr(self, key)
            if isinstance(bound, str):
                if self.kind != "time":
                    raise ContractError(f"`{key}` is not a number.", hint=f"`{key}` is a number.", key=key)
                _day(bound, key)
        if self.step is not None and not self.step > 0:
            raise ContractError("`step` is not positive.", hint="`step` is a positive number.", key="step")

    def declared(self) -> Declared:
        """The declaration of the column."""
        return Declared(
            self.name.strip(),
            Kind(self.kind),
            self.of,
            tuple(dict.fromkeys(value.strip() for value in self.values)),
            _bound(self.low),
            _bound(self.high),
            self.step,
            self.unit,
            self.found,
        )


@dataclass(frozen=True)
class ResultsTable:
    """`[log.results]`: a table of results, and its columns if they are called otherwise than those of the log."""

    file: str
    learner: str | None = None
    action: str | None = None
    outcome: str | None = None
    time: str | None = None
    item: str | None = None

    __pydantic_config__: ClassVar[Any] = contract()

    def settings(self) -> dict[str, Any]:
        """The same as settings of reading."""
        columns = {role: name for role, name in vars(self).items() if role != "file" and name is not None}
        return {"results": self.file, **({"results_columns": columns} if columns else {})}


@dataclass(frozen=True)
class LogTable:
    """`[log]`: settings of reading, and what is declared about times and further columns."""

    learner: str | None = None
    action: str | None = None
    outcome: str | None = None
    time: str | None = None
    item: str | None = None
    group: str | None = None
    format: str | None = None
    sheet: str | None = None
    time_unit: str | None = None
    date_order: Literal["day-first", "month-first"] | None = None
    first_day: str | None = None
    time_zone: str | None = None
    no_header: bool = False
    verbs: bool = False
    language: str = "en"
    pass_from: float | str | None = None
    no_outcomes: bool = False
    empty_outcomes: bool = False
    platform_voids: bool = False
    public_actions: bool = False
    actions_file: str | None = None
    exclude: str | None = None
    learners: str | None = None
    learners_key: str | None = None
    active_only: bool = False
    results: str | None = None
    time_for_order: bool = False
    term: TermTable | None = None
    columns: tuple[ColumnTable, ...] = ()

    __pydantic_config__: ClassVar[Any] = contract()

    def __post_init__(self) -> None:
        _day(self.first_day, "first_day")
        if self.time_unit is not None:
            try:
                unit_of(self.time_unit)
            except UsageError as error:
                raise ContractError(error.message, hint=error.hint, key="time_unit") from None


@dataclass(frozen=True)
class _File:
    log: LogTable


@dataclass(frozen=True)
class _Results:
    results: ResultsTable


@dataclass(frozen=True)
class _FileWithResults:
    log: _Results


@dataclass(frozen=True)
class LogPlan:
    """What a plan declares about a log."""

    settings: dict[str, Any]
    columns: tuple[Declared, ...]

    def fill(self, options: Options) -> Options:
        """The options with the plan's settings in place of those that were left as they usually are."""
        usual = {field.name: field.default for field in fields(options)}  # type: ignore[arg-type]
        settings = {
            name: value
            for name, value in self.settings.items()
            if usual.get(name, MISSING) is not MISSING and getattr(options, name) == usual[name]
        }
        return replace(options, **settings)  # type: ignore[type-var]


def read_log_plan(path: Path | str) -> LogPlan:
    """The part `[log]` of a plan file; empty where the plan has other parts only."""
    path = Path(path)
    text, content = parse_toml(
        path,
        hint="give a plan file; describing a log drafts one.",
        keys={
            *LogTable.__dataclass_fields__,
            *TermTable.__dataclass_fields__,
            *ColumnTable.__dataclass_fields__,
        },
    )
    log, of_results = content.get("log", {}), {}
    if isinstance(log, dict) and isinstance(results := log.get("results"), dict):
        # A file alone is a setting like others; with columns it is a table of its own.
        form = checked({"log": {"results": results}}, _FileWithResults, path.name, text)
        log, of_results = {key: log[key] for key in log if key != "results"}, form.log.results.settings()
    table = checked({"log": log}, _File, path.name, text).log
    try:
        columns = tuple(column.declared() for column in table.columns)
        check_declared(columns)
    except DataError as error:
        raise error.about(path.name) from None
    settings = {
        field.name: value
        for field in fields(table)
        if field.name not in ("term", "columns") and (value := getattr(table, field.name)) != field.default
    }
    settings |= of_results
    for name in PATHS:
        if name in settings:
            settings[name] = path.parent / settings[name]
    if table.term is not None:
        given = table.term
        settings |= {
            "term": None if given.first is None else f"{given.first}..{given.last}",
            "resolution": given.resolution,
            "session_minutes": given.session_minutes,
        }
    return LogPlan(settings, columns)


def _day(text: str | None, key: str) -> None:
    try:
        date.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise ContractError(f"`{key}` is not a day.", hint="write it as 2024-09-01.", key=key) from None


def _bound(bound: float | str | None) -> float | None:
    """A bound as a number; a day is the second since 1970 at which it begins."""
    if isinstance(bound, str):
        return datetime.fromisoformat(bound).replace(tzinfo=UTC).timestamp()
    return bound
