"""How a file of events is read: options of cells, of rows, and of a whole file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, Literal

from understudy.core.files.columns import Columns
from understudy.core.files.outcomes import PassMark
from understudy.core.files.people.withdrawals import Withdrawn
from understudy.core.files.times import DateOrder, check_zone, unit_of
from understudy.errors import UsageError


@dataclass(frozen=True)
class CellOptions:
    """How cells are read: declared, so that no learner's row decides for others."""

    time_unit: Annotated[
        str | None,
        "What numbers in the time column count, from 1970 on or from a start: s (seconds), ms, us, ns or d (days); "
        "without it what the column's name says (time_ms), else s.",
    ] = None
    date_order: Annotated[DateOrder | None, "What comes first in a date such as 3/4/2024."] = None
    set_aside: Annotated[
        bool, "Set rows with a cell that cannot be read aside, and count them, instead of stopping."
    ] = False

    def __post_init__(self) -> None:
        if self.time_unit is not None:
            object.__setattr__(self, "time_unit", unit_of(self.time_unit))
        # Plans and Python programs write it as a word.
        order: Any = self.date_order
        if isinstance(order, str):
            try:
                object.__setattr__(self, "date_order", DateOrder(order))
            except ValueError:
                raise UsageError(
                    f"dates are not written {order}.",
                    hint="the order of dates is day-first or month-first.",
                    code="bad-date-order",
                    settings=("date_order",),
                ) from None


@dataclass(frozen=True)
class RowOptions(CellOptions):
    """How the rows of a log are read, whatever is learned from them."""

    skip_incomplete: Annotated[
        bool, "Skip rows with an empty cell (learner, action, outcome or time), and count them."
    ] = False
    in_order: Annotated[bool, "The rows are in order: a time column is used only if it is named."] = False
    first_day: Annotated[
        str | None,
        "Day from which dates without a year count, such as 2024-03-01. In Moodle's logs, where they are usual, the "
        "first of August if it is not given, as a school year begins.",
    ] = None
    time_zone: Annotated[
        str | None,
        "Where the learners' clocks are, such as Europe/Berlin: times that are instants (numbers from 1970, texts with "
        "an offset from UTC) become what the clock showed there. Without it they are in UTC.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time_zone is not None:
            check_zone(self.time_zone)
        if self.first_day is not None:
            try:
                date.fromisoformat(str(self.first_day))
            except ValueError:
                raise UsageError(
                    f"'{self.first_day}' is not a day.",
                    hint="write it as 2024-03-01.",
                    code="bad-day",
                    settings=("first_day",),
                ) from None

    def rows(self) -> RowOptions:
        """These settings alone, without those that a verb adds."""
        return RowOptions(**{name: getattr(self, name) for name in RowOptions.__dataclass_fields__})


@dataclass(frozen=True, repr=False)
class ReadOptions:
    """What the user wants from a file."""

    columns: Columns = field(default_factory=Columns)
    withdrawn: Withdrawn | None = None
    skills: Literal["merge", "keep"] = "merge"
    single_rows: bool = False
    rows: RowOptions = field(default_factory=RowOptions)
    mark: PassMark = field(default_factory=PassMark)
    sheet: str | None = None
    outcomes: Literal["needed", "wanted", "left out"] = "needed"
    """Whether a file without a column of outcomes is refused, and whether one is looked for."""
    verbs: bool = False
    """Whether an action says what was done with the object, where a format states that."""
    language: str = "en"
    """The language in which objects are named, where a format has names in several."""
    no_header: bool = False
    """Whether the first line is a row like the others: then columns are called by their numbers."""
    empty_outcomes: bool = False
    """Whether rows may lack an outcome: then it is a further column of rows, and the log has no outcomes."""
    platform_voids: bool = False
    """Whether only the platform takes statements back: then it counts whoever the actor is (xAPI)."""
    further: tuple[str, ...] = ()
    """Columns that are read although they have no role, where a file has them."""

    def refuse_columns(self, format: str, columns: Mapping[str, str] = MappingProxyType({})) -> None:
        """For formats that have no columns to choose from; their own `columns` may be named."""
        given = {role: name for role, name in self.columns.given().items() if columns.get(role) != name}
        if given:
            raise UsageError(
                f"the format {format} has no columns to choose from, but one was given for the {next(iter(given))}.",
                hint="leave it out, or name the format.",
                code="no-columns",
                settings=(next(iter(given)), "format"),
            )
