"""Canvas: page views as csv, and the tables web_logs, submissions and quiz_submissions of its Data Access Platform.

A page view is named by what Canvas did (controller and action) and, within a course, by the thing that was shown: the
ids of a course's assignments, quizzes, topics and pages stay, all others are left out. Web addresses, which hold ids of
people, are read only if they are named for the action; then people are taken out by their place. Columns of the Data
Access Platform have the prefixes `key.`, `value.` and `meta.`; in JSON these are objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.people_in_text import without_addresses
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import COMPOSED, Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.json_records import nested_fields, nested_records
from understudy.core.files.source import Text
from understudy.core.files.tables import FrameTable, Table, WithoutMarks
from understudy.errors import DataError

_PARTS = ("key", "value", "meta")
# As the text format writes a missing value.
_NULL = "\\N"


@dataclass(frozen=True)
class _Kind:
    """A table of Canvas: its columns by their names without prefix, and how its actions are named.

    `things` are columns with the id of something that belongs to a course, the first that is filled counting.
    """

    learner: str
    time: str
    does: tuple[str, ...] = ()
    things: Mapping[str, str] = field(default_factory=dict)
    score: str | None = None


_VIEWS = _Kind("user_id", "created_at", ("controller", "action"))
_WEB_LOGS = _Kind(
    "user_id",
    "timestamp",
    ("web_application_controller", "web_application_action"),
    {"quiz": "quiz_id", "discussion": "discussion_id", "assignment": "assignment_id"},
)
_SUBMISSIONS = _Kind("user_id", "submitted_at", (), {"assignment": "assignment_id"}, "score")
_QUIZ_SUBMISSIONS = _Kind("user_id", "finished_at", (), {"quiz": "quiz_id"}, "score")
# What else is looked at: who it was in truth, whether it is still there, and what a page view shows.
_BESIDE = ("real_user_id", "workflow_state", "meta.action", "context_type", "asset_type", "asset_id")
# Whose ids say nothing about a person, if they are shown within a course.
_THINGS = (
    *("Assignment", "Quizzes::Quiz", "Quiz", "DiscussionTopic", "Announcement", "WikiPage", "ContextModule"),
    *("ContentTag", "ContextExternalTool", "Attachment", "Course"),
)


def looks_like_page_views(names: Sequence[str]) -> bool:
    """Whether a header is that of Canvas's page views."""
    return {"userid", "url", "controller", "action", "createdat"} <= {plain(name) for name in names}


def looks_like_web_logs(names: Sequence[str]) -> bool:
    """Whether a header is that of the table web_logs."""
    return {"value.web_application_controller", "value.user_id"} <= set(names)


def looks_like_submissions(names: Sequence[str]) -> bool:
    """Whether a header is that of the table submissions or quiz_submissions."""
    known = set(names)
    return any(
        {
            f"value.{kind.learner}",
            f"value.{kind.time}",
            *(f"value.{thing}" for thing in kind.things.values()),
        }
        <= known
        for kind in (_SUBMISSIONS, _QUIZ_SUBMISSIONS)
    )


def refuse_other_tables(names: Sequence[str], file: str) -> None:
    """Refuse a table of the Data Access Platform that has no events of learners."""
    if looks_like_web_logs(names) or looks_like_submissions(names):
        return
    if "meta.ts" in names and any(name.startswith("key.") for name in names):
        raise DataError(
            f"{file}: this is a table of Canvas's Data Access Platform without events of learners.",
            hint="web_logs, submissions and quiz_submissions have them.",
            code="no-events",
        )


def fields_in(text: Text) -> tuple[str, ...]:
    """The fields of records of the Data Access Platform, by the first of them, as its csv files name them."""
    found = nested_fields(text, _PARTS)
    return tuple(f"{part}.{name}" for part, names in found.items() for name in names)


def canvas_records(text: Text) -> FrameTable:
    """The table in JSON lines of the Data Access Platform, with the columns that its csv files have."""
    # Only what was deleted has no value; fields that are empty are there.
    return nested_records(text, {"key": ("id",), "value": (), "meta": ("ts", "action")})


def read_page_views(table: Table, options: ReadOptions) -> EventTable:
    """One row per page that a learner saw; no outcomes."""
    return _read(table, options, _VIEWS, "")


def read_web_logs(table: Table, options: ReadOptions) -> EventTable:
    """One row per request of a learner; no outcomes."""
    return _read(WithoutMarks(table, (_NULL,)), options, _WEB_LOGS, "value.")


def read_submissions(table: Table, options: ReadOptions) -> EventTable:
    """One row per piece of work that a learner handed in; the outcome is its score."""
    kind = _SUBMISSIONS if f"value.{_SUBMISSIONS.time}" in table.names else _QUIZ_SUBMISSIONS
    return _read(WithoutMarks(table, (_NULL,)), options, kind, "value.")


def _read(table: Table, options: ReadOptions, kind: _Kind, prefix: str) -> EventTable:
    reject_duplicates(table.names, table.file)
    places = {plain(name): at for at, name in enumerate(table.names)}
    wanted = (*kind.does, *kind.things.values(), *_BESIDE)
    extra = {
        f"canvas {name}": places[plain(written)]
        for name in wanted
        if plain(written := name if name.startswith("meta.") else prefix + name) in places
    }
    does = [prefix + name for name in kind.does if f"canvas {name}" in extra]
    named = options.columns.without_composed(does)
    parts = [name for name in (*kind.does, *kind.things.values()) if f"canvas {name}" in extra]
    defaults = Columns(
        learner=prefix + kind.learner,
        action=prefix + parts[0] if parts else None,
        time=prefix + kind.time,
        outcome=None if kind.score is None else prefix + kind.score,
    )
    required = ("learner", "action", "outcome") if options.outcomes == "needed" else ("learner", "action")
    positions = choose_columns(table.names, named, table.file, defaults=defaults, required=required)
    for role, own in (("outcome", kind.score), ("item", None)):
        # Another column with a usual name is not what it says in a table of Canvas.
        if getattr(named, role) is None and own is None:
            positions.pop(role, None)
    events = EventTable.from_table(table, positions, options, extra)
    events.instants = True
    cells = {
        name: pl.col(f"canvas {name}").cast(pl.String).str.strip_chars().replace("", None)
        if f"canvas {name}" in extra
        else pl.lit(None, pl.String)
        for name in wanted
    }
    _drop(events, cells, handed_in=kind.score is not None)
    if named.action is None:
        events.columns["action"] = COMPOSED.join(does) or events.columns["action"]
        events.frame = events.frame.with_columns(_action(kind, cells, bool(does)).alias("action"))
        events.drop(pl.col("action").is_null(), "that do not say what was done")
    else:
        events.leave_people_out("action", without_addresses)
    events.frame = events.frame.drop(list(extra))
    return events


def _drop(events: EventTable, cells: Mapping[str, pl.Expr], *, handed_in: bool) -> None:
    """Leave out what Canvas deleted, and what no learner did; each row by its own cells."""
    deleted = (cells["meta.action"] == "D") | (cells["workflow_state"] == "deleted").fill_null(False)
    events.drop(deleted, "that Canvas deleted")
    events.drop(pl.col("learner").is_null(), "that no person caused")
    other = cells["real_user_id"]
    events.drop(
        other.is_not_null() & (other != pl.col("learner")), "that someone else did in a learner's name"
    )
    if handed_in and "time" in events.columns:
        missing = pl.col("time").cast(pl.String).replace("", None).is_null()
        events.drop(missing, "of work that was not handed in")


def _action(kind: _Kind, cells: Mapping[str, pl.Expr], says_what: bool) -> pl.Expr:
    """What Canvas did, and the thing of a course that it was done with."""
    of_course = (cells["context_type"] == "Course") & cells["asset_type"].is_in(_THINGS)
    shown = pl.when(of_course).then(pl.concat_str(cells["asset_type"], cells["asset_id"], separator=" "))
    known = [pl.concat_str(pl.lit(f"{thing} "), cells[column]) for thing, column in kind.things.items()]
    thing = pl.coalesce(*known, shown)
    if not says_what:
        return thing
    done = pl.concat_str([cells[name] for name in kind.does], separator="#", ignore_nulls=True).replace(
        "", None
    )
    return pl.when(done.is_not_null()).then(pl.concat_str(done, thing, separator=" ", ignore_nulls=True))
