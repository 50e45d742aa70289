"""Interactions: who did which action, and whether it went well.

Learners are positions, not names: what a learner was called in the file is used to
group the rows and is then forgotten, so that it can reach neither a log nor a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.core.events.read_options import CellOptions
from understudy.core.extras import needs_extra
from understudy.core.files.origin import Origin
from understudy.core.files.words import counted
from understudy.core.names import REAL_PREFIX, SIMULATED_PREFIX, SYNTHETIC_PREFIX, natural_order
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError
from understudy.logs.declared.cells import check_declared
from understudy.logs.declared.columns import Column, Declared
from understudy.logs.declared.course import Course
from understudy.logs.declared.term import Term

if TYPE_CHECKING:
    import polars as pl

IntArray = NDArray[np.integer[Any]]

# The action that stands for all those whose names are not released.
POOLED = "other actions"


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """A log of learners' actions, one learner after the other, order kept.

    Row r is the attempt at `actions[action[r]]` with success `outcome[r]`; the rows of
    learner i are `offsets[i]:offsets[i + 1]`. `outcome` is None where the platform records none;
    `item`, `time` and `group` are optional, too; `group` has one code per learner. `declared` says that the
    vocabulary is public: it was given by the custodian, and does not depend on what the learners did. `chapters`
    has one code per action where the custodian also declared that the actions are in the order of the course.
    `columns` are what the custodian declared beside these, of rows or of learners. With a `term` the times are
    included; without one they put its rows in order, and generators leave them out.
    `origin` is the file or frame that the log was read from. A synthetic log has the `guarantee` of its generator,
    and the `card` under which it was charged.
    """

    action: IntArray
    outcome: IntArray | None
    offsets: IntArray
    actions: tuple[str, ...]
    item: IntArray | None = None
    items: tuple[str, ...] = ()
    time: NDArray[np.datetime64] | None = None
    group: IntArray | None = None
    groups: tuple[str, ...] = ()
    simulated: bool = False
    declared: bool = False
    chapters: IntArray | None = None
    columns: tuple[Column, ...] = ()
    term: Term | None = None
    origin: Origin = field(default_factory=Origin)
    guarantee: Guarantee | None = None
    card: str | None = None
    kept: dict[str, object] = field(default_factory=dict, init=False)
    """What is made of the log when it is first needed, and lives as long: no part of it."""

    def __post_init__(self) -> None:
        n_rows = len(self.action)
        for name, length in (
            ("outcome", n_rows),
            ("item", n_rows),
            ("time", n_rows),
            ("group", self.n_learners),
        ):
            column = getattr(self, name)
            if column is not None and len(column) != length:
                raise DataError(f"a log needs {length} entries of '{name}'; got {len(column)}.")
        for declared in self.columns:
            length = n_rows if declared.declared.of == "row" else self.n_learners
            if len(declared.cells) != length:
                raise DataError(f"a log needs {length} cells of '{declared.declared.name}'.")
        if self.offsets[0] != 0 or self.offsets[-1] != n_rows or (self.lengths < 0).any():
            raise DataError("the offsets of a log do not divide its rows among learners.")
        if n_rows and not (self.action.min() >= 0 and self.action.max() < len(self.actions)):
            raise DataError("an action code lies outside the vocabulary.")
        if self.outcome is not None and ((self.outcome != 0) & (self.outcome != 1)).any():
            raise DataError("outcomes are 0 or 1.")
        for name in ("action", "outcome", "offsets", "item", "time", "group"):
            column = getattr(self, name)
            if column is not None:
                # A view, so that the caller's own array stays as it was.
                frozen = column.view()
                frozen.setflags(write=False)
                object.__setattr__(self, name, frozen)

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows, {self.n_learners} learners, {self.n_actions} actions"
        if self.guarantee is not None:
            charged = "not charged to a ledger" if self.card is None else f"card {self.card}"
            return f"<synthetic Interactions: {size}; {self.guarantee}; {charged}>"
        return f"<{'simulated ' if self.simulated else ''}Interactions: {size}>"

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are not here: then there are sums over learners, and no rows."""
        return False

    @property
    def n_rows(self) -> int:
        """Number of attempts."""
        return len(self.action)

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.offsets) - 1

    @property
    def n_actions(self) -> int:
        """Size of the vocabulary, whether or not every action occurs."""
        return len(self.actions)

    @property
    def lengths(self) -> IntArray:
        """Number of rows of each learner."""
        return np.diff(self.offsets)

    @property
    def success(self) -> IntArray:
        """The outcomes, for what makes no sense without them: a log that has none is refused."""
        if self.outcome is None:
            raise DataError(
                "the log has no outcomes, so nothing can be said about success.",
                hint="name the column with the outcomes, if there is one.",
                code="no-outcomes",
                settings=("outcome",),
            )
        return self.outcome

    @property
    def code(self) -> IntArray:
        """Action and outcome of each row as one number; without outcomes, the action."""
        return self.action if self.outcome is None else 2 * self.action + self.outcome

    @property
    def learner(self) -> IntArray:
        """Position of the learner of each row."""
        if "learner" not in self.kept:
            self.kept["learner"] = np.repeat(np.arange(self.n_learners, dtype=np.int32), self.lengths)
        return cast(IntArray, self.kept["learner"])

    @property
    def has_times(self) -> bool:
        """Whether times are included in what is released of the log."""
        return self.time is not None and self.term is not None

    @property
    def row_columns(self) -> tuple[Column, ...]:
        """Declared columns of rows."""
        return tuple(column for column in self.columns if column.declared.of == "row")

    @property
    def learner_columns(self) -> tuple[Column, ...]:
        """Declared columns of learners."""
        return tuple(column for column in self.columns if column.declared.of == "learner")

    @classmethod
    def from_sequences(
        cls,
        sequences: Sequence[ArrayLike],
        outcomes: Sequence[ArrayLike] | None = None,
        *,
        actions: Sequence[str] | None = None,
    ) -> Interactions:
        """A log from one list of action codes per learner; for tests and examples."""
        parts = [np.asarray(s, dtype=np.int32) for s in sequences]
        action = np.concatenate([np.empty(0, dtype=np.int32), *parts])
        if outcomes is None:
            outcome = np.zeros(len(action), dtype=np.int8)
        else:
            results = [np.asarray(o, dtype=np.int8) for o in outcomes]
            outcome = np.concatenate([np.empty(0, dtype=np.int8), *results])
        if actions is None:
            actions = [str(code) for code in range(int(action.max(initial=-1)) + 1)]
        return cls(action, outcome, offsets_of([len(p) for p in parts]), tuple(actions))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        learner: str = "learner",
        action: str = "action",
        outcome: str | None = "outcome",
        time: str | None = None,
        time_unit: str | None = None,
        item: str | None = None,
        group: str | None = None,
        columns: Sequence[Declared] = (),
        term: Term | None = None,
        first_line: int = 2,
        single_rows: bool = False,
    ) -> Interactions:
        """A validated log from a polars or pandas frame.

        Rows are grouped by learner in order of appearance; within a learner the order of
        the frame is kept, or the order of `time` when it is given; numbers in it count `time_unit` (s, ms, us
        or ns), which the end of the column's name may state as well (time_ms). With a `term` (`Term()` where no day is
        public) the times are included; without one they only put the rows in order. `columns` are
        what else is included, as declared; columns that are not are left out. `first_line` is the
        line of the file on which the first row stands, so that an error can name a line;
        `single_rows` admits a log in which no learner has two rows (thinned data).
        """
        from understudy.logs.frames import interactions_from_frame

        roles = {
            "learner": learner,
            "action": action,
            "outcome": outcome,
            "time": time,
            "item": item,
            "group": group,
        }
        check_declared(columns)
        cells = CellOptions(time_unit=time_unit)
        declared = {column.name: column for column in columns}
        return interactions_from_frame(frame, roles, first_line, single_rows, cells, declared, term)

    def to_polars(self, prefix: str | None = None) -> pl.DataFrame:
        """The log as a polars frame with invented learner names: `prefix` and a number."""
        from understudy.logs.frames import frame_from_interactions

        return frame_from_interactions(self, prefix or self._prefix)

    def learners_to_polars(self, prefix: str | None = None) -> pl.DataFrame:
        """The declared columns of learners as a frame with a row per learner, under the names of `to_polars`."""
        from understudy.logs.frames import learner_frame

        return learner_frame(self, prefix or self._prefix)

    @property
    def _prefix(self) -> str:
        if self.simulated:
            return SIMULATED_PREFIX
        return REAL_PREFIX if self.guarantee is None else SYNTHETIC_PREFIX

    def to_pandas(self, prefix: str | None = None) -> Any:
        """The same as a pandas frame."""
        with needs_extra("pandas", "a pandas frame"):
            return self.to_polars(prefix).to_pandas()

    def _repr_html_(self) -> str:
        # A notebook is shared more easily than a file: rows that may be real learners' are not shown by themselves.
        invented = self.simulated or (self.guarantee is not None and self.guarantee.formal)
        shown = self.select(np.arange(min(3, self.n_learners) if invented else 0)).to_polars()
        return notebook_table(f"{repr(self)[1:-1]}.", shown)

    def with_failures(self) -> Interactions:
        """The log itself; if it has no outcomes, one in which nothing succeeds, for models that need some."""
        if self.outcome is not None:
            return self
        return replace(self, outcome=np.zeros(self.n_rows, dtype=np.int8))

    def without_outcomes(self) -> Interactions:
        """The same log, its outcomes left out."""
        return replace(self, outcome=None)

    def declare(self) -> Interactions:
        """The same log, its vocabulary declared to be public."""
        return replace(self, declared=True)

    def with_vocabulary(self, names: Sequence[str], chapters: Sequence[int] | None = None) -> Interactions:
        """The log with a declared vocabulary; actions that it lacks become one.

        With `chapters`, one for each name, the names are in the order of the course.
        """
        known = [
            (name, code)
            for name, code in zip(names, [0] * len(names) if chapters is None else chapters, strict=True)
            if name != POOLED
        ]
        position = {name: code for code, (name, _) in enumerate(known)}
        code = np.array([position.get(name, len(known)) for name in self.actions], dtype=np.int32)
        # What is pooled is no part of the course: it is a chapter of its own.
        of = [chapter for _, chapter in known]
        own = None if chapters is None else np.array([*of, max(of, default=0) + 1], dtype=np.int32)
        return replace(
            self, action=code[self.action], actions=(*position, POOLED), declared=True, chapters=own
        )

    def with_course(self, course: Course) -> Interactions:
        """The log with what a custodian lists about its actions; those that are not listed become one."""
        log = self.with_vocabulary(course.actions, course.chapters)
        if course.with_outcome is None:
            return log
        # Of what is pooled it is not known.
        at = (*course.with_outcome, POOLED)
        columns, notes = [], []
        for column in log.columns:
            if column.declared.is_outcome:
                declared = replace(column.declared, at=at)
                elsewhere = ~declared.has_values(log.actions)[log.action]
                if n_lost := int((~column.missing & elsewhere).sum()):
                    rows = counted(n_lost, "row")
                    notes.append(f"Outcomes at actions that have none, as declared: {rows}, left out.")
                column = Column(declared, np.where(elsewhere, -1, column.cells))
            columns.append(column)
        origin = replace(log.origin, notes=(*log.origin.notes, *notes))
        return replace(log, columns=tuple(columns), origin=origin)

    def select(self, learners: ArrayLike) -> Interactions:
        """The log of some learners, in the order given; the vocabulary stays."""
        chosen = np.asarray(learners)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        lengths = self.lengths[chosen]
        offsets = offsets_of(lengths)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return replace(
            self,
            action=self.action[rows],
            outcome=None if self.outcome is None else self.outcome[rows],
            offsets=offsets,
            item=None if self.item is None else self.item[rows],
            time=None if self.time is None else self.time[rows],
            group=None if self.group is None else self.group[chosen],
            columns=self._columns_of(rows, chosen),
        )

    def keep_rows(self, keep: NDArray[np.bool_], *, all_learners: bool = False) -> Interactions:
        """The log with some rows only; learners left without a row are gone unless all are kept."""
        # Rows that are kept before each row; a large log has no room for the learner of every row.
        kept = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(keep, dtype=np.int64)])[self.offsets]
        lengths = np.diff(kept)
        present = (lengths > 0) | all_learners
        return replace(
            self,
            action=self.action[keep],
            outcome=None if self.outcome is None else self.outcome[keep],
            offsets=offsets_of(lengths[present]),
            item=None if self.item is None else self.item[keep],
            time=None if self.time is None else self.time[keep],
            group=None if self.group is None else self.group[present],
            columns=self._columns_of(keep, present),
        )

    def _columns_of(self, rows: ArrayLike, learners: ArrayLike) -> tuple[Column, ...]:
        return tuple(
            column.take(rows if column.declared.of == "row" else learners) for column in self.columns
        )

    def with_learners(self, n_more: int, groups: Sequence[str] = ()) -> Interactions:
        """The log with learners of whom no row could be read; `groups` are theirs, where learners have groups."""
        names = natural_order({*self.groups, *groups})
        code = {name: number for number, name in enumerate(names)}
        group = self.group
        if group is not None:
            known = np.array([code[name] for name in self.groups], dtype=np.int32)[group]
            group = np.concatenate([known, np.array([code[name] for name in groups], dtype=np.int32)])
        offsets = np.concatenate([self.offsets, np.full(n_more, self.offsets[-1])])
        columns = tuple(
            column.with_missing(n_more) if column.declared.of == "learner" else column
            for column in self.columns
        )
        return replace(
            self, offsets=offsets, group=group, groups=names if group is not None else (), columns=columns
        )

    def recode(self, actions: Sequence[str]) -> Interactions:
        """The same log with codes of another vocabulary, which has to hold every action that occurs."""
        if tuple(actions) == self.actions:
            return self
        position = {name: code for code, name in enumerate(actions)}
        table = np.array([position.get(name, -1) for name in self.actions], dtype=np.int32)
        action = table[self.action] if self.n_rows else self.action
        if self.n_rows and action.min() < 0:
            raise DataError("the log has actions that the wanted vocabulary lacks.")
        return replace(self, action=action, actions=tuple(actions), declared=False, chapters=None)

    def constant_actions(self) -> NDArray[np.bool_]:
        """Which actions occur and always or never succeed: they have no finite difficulty.

        Vie, Rigaux and Minn 2022, section 5.1.
        """
        attempts = np.bincount(self.action, minlength=self.n_actions)
        successes = np.bincount(self.action, weights=self.success, minlength=self.n_actions)
        constant: NDArray[np.bool_] = (attempts > 0) & ((successes == 0) | (successes == attempts))
        return constant


def offsets_of(lengths: ArrayLike) -> IntArray:
    """Where each learner's rows begin, and where the last one's end."""
    counts = np.asarray(lengths, dtype=np.int64)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def common_vocabulary(*logs: Interactions) -> tuple[Interactions, ...]:
    """The same logs, all coded with the union of their vocabularies."""
    if all(log.actions == logs[0].actions for log in logs):
        return logs
    names = natural_order({name for log in logs for name in log.actions})
    return tuple(log.recode(names) for log in logs)


def as_log(given: Any, *, elsewhere: bool = False) -> Interactions:
    """What a verb was given, if it is a log; a file or a frame becomes one first.

    Only with `elsewhere` it may be a log whose rows are in a database.
    """
    if isinstance(given, Interactions):
        if given.elsewhere and not elsewhere:
            raise UsageError(
                "the rows of this log stay in a database, where only `synthesize` with markov-dp works on them.",
                hint="leave `in_database` out: then its rows are read.",
                code="rows-elsewhere",
                settings=("in_database",),
            )
        return given
    raise UsageError(
        f"a log is needed, and {type(given).__name__} is no log.",
        hint="read a file with read_log, or make a log of a data frame with Interactions.from_frame.",
        code="not-a-log",
    )


def joined(*logs: Interactions) -> Interactions:
    """One log of all learners, those of the first log first; items and groups are left out.

    Times and columns are those that all of the logs have.
    """
    coded = common_vocabulary(*logs)
    shared = [
        column.declared
        for column in logs[0].columns
        if all(column.declared in [each.declared for each in log.columns] for log in logs)
    ]
    timed = all(log.has_times for log in logs)
    return Interactions(
        np.concatenate([log.action for log in coded]),
        None if any(log.outcome is None for log in coded) else np.concatenate([log.success for log in coded]),
        offsets_of(np.concatenate([log.lengths for log in coded])),
        coded[0].actions,
        time=np.concatenate([log.time for log in logs if log.time is not None]) if timed else None,
        columns=tuple(
            Column(
                declared,
                np.concatenate(
                    [each.cells for log in logs for each in log.columns if each.declared == declared]
                ),
            )
            for declared in shared
        ),
        term=logs[0].term if timed else None,
        simulated=all(log.simulated for log in coded),
    )


def totals(code: IntArray, weight: NDArray[np.generic], n_codes: int) -> NDArray[np.float64]:
    """The sum of the weights of each code."""
    sums: NDArray[np.float64] = np.bincount(code, weights=weight, minlength=n_codes).astype(np.float64)
    return sums


def pair_codes(first: IntArray, second: IntArray, n_second: int) -> NDArray[np.int64]:
    """Two codes as one."""
    return first.astype(np.int64) * n_second + second


def counted_pairs(
    first: IntArray, second: IntArray, n_second: int
) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
    """The pairs of codes that occur (of learners and actions, say), in their order, and how often each does."""
    pair, count = np.unique(pair_codes(first, second, n_second), return_counts=True)
    return *np.divmod(pair, max(n_second, 1)), count.astype(np.float64)
