"""edX tracking logs: one JSON object per line, of which a line may be cut off; what identifies is not read.

A server appends to such a log, so that a line which is no whole object concerns itself alone: it is counted, and left
out. The action is what a learner worked with (a problem, a video, a sequence) by its usage key, or the event's type.
Where the type is a page's address it may name a user, so only the part that says what kind of page it is counts.
Addresses of computers, browsers, referring pages and sessions are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.json_records import Record, load_lines, number_of, text_of
from understudy.core.files.outcomes import PassMark, as_percentage
from understudy.core.files.people.identifiers import Identifier, NamedPeople
from understudy.core.files.source import Text, keeping_values_inside
from understudy.core.files.words import counted
from understudy.errors import DataError

_SCHEMA = {
    "user_id": pl.String,
    "username": pl.String,
    "target": pl.String,
    "verb": pl.String,
    "outcome": pl.String,
    "time": pl.String,
    "line": pl.Int64,
}
_COLUMNS = {"learner": "context.user_id", "action": "event", "outcome": "event.success", "time": "time"}
# Where an event says what it is about, the surest first.
_TARGETS = ("problem_id", "usage_key", "block_id", "id", "module_id", "problem", "sequence_id")
_SUCCESS = {"correct": "1", "incorrect": "0"}
# "block-v1:org+course+run+type@video+block@name", "i4x://org/course/video/name" and "i4x-org-course-video-name".
_USAGE_KEYS = (
    re.compile(r"type@(?P<kind>[\w.-]+?)\+block@(?P<name>[\w.~-]+)"),
    re.compile(r"i4x://[^/]+/[^/]+/(?P<kind>[^/]+)/(?P<name>[\w.-]+)"),
    re.compile(r"i4x-.+?-(?P<kind>problem|videoalpha|video|sequential|vertical|chapter|html)-(?P<name>\w+)"),
)
_COURSE_PAGE = re.compile(r"^/courses/(?:course-v1:[^/]+|[^/]+/[^/]+/[^/]+)/")
# Pages have short names; anything else may be what a user typed.
_PAGE = re.compile(r"[a-z_]{1,30}")
# In the prefix of a server's own log file.
_TRACKING = re.compile(r"^[^{]*\[tracking\][^{]*\{")
_NOT_READ = {
    "ip": "IP address",
    "agent": "computer",
    "session": "session",
    "referer": "address of a page",
    "page": "address of a page",
}


def looks_like_edx(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is an event of a tracking log."""
    return {"event_type", "time", "username"} <= record.keys() and bool(
        {"event_source", "context"} & record.keys()
    )


def begins_like_edx(line: str) -> bool:
    """Whether a line is one of a server's own log file, with the time and the program before the event."""
    return _TRACKING.match(line) is not None


def read_edx(text: Text, options: ReadOptions) -> EventTable:
    """One row per event of a learner, in UTC; the outcome is that of a checked problem, where there is one."""
    options.refuse_columns("edx", _COLUMNS)
    n_broken = 0
    rows = []
    fields: set[str] = set()
    for number, record in load_lines(text):
        if record is None:
            n_broken += 1
            continue
        fields.update(record)
        rows.append((*_row(record, options.mark), number))
    with keeping_values_inside(
        f"{text.name}: a name or an id is not valid text.", hint="export the log again, as UTF-8."
    ):
        frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        names = frame["username"].drop_nulls().unique()
    frame = _with_learners(frame, text.name)
    columns = dict(_COLUMNS)
    if options.verbs:
        target = pl.concat_str("verb", pl.lit(" "), "target")
        frame = frame.with_columns(pl.coalesce(target, "verb").alias("action"))
        columns["action"] = "event_type and event"
    else:
        frame = frame.with_columns(pl.coalesce("target", "verb").alias("action"))
    events = EventTable(text.name, frame.drop("target", "verb"), columns, list(text.notes), instants=True)
    if n_broken:
        events.notes.append(f"{counted(n_broken, 'line')} cut off or not an event: left out.")
    events.identifiers += _identifiers(fields)
    events.people.append(NamedPeople("username", "login name", names))
    events.tidy(options)
    events.drop(pl.col("learner").is_null(), "(events) without a user")
    events.drop(pl.col("action").is_null(), "(events) without a type")
    events.keep_graded(options, "events")
    return events


def _with_learners(frame: pl.DataFrame, file: str) -> pl.DataFrame:
    """The rows with their learner: the user's number, or the user name where none of that user's rows has a number.

    Some events of a user have the name alone. Names are unique on a platform, so a number that stands with the same
    name elsewhere is of the same person: only their own rows decide. A file that says otherwise is refused.
    """
    numbers = (
        frame.drop_nulls(["username", "user_id"])
        .select("username", pl.col("user_id").alias("number"))
        .unique()
    )
    if numbers["username"].n_unique() < numbers.height or numbers["number"].n_unique() < numbers.height:
        raise DataError(
            f"{file}: a user name stands with several numbers, or a number with several names, so that it is not "
            "known whose rows are whose.",
            hint="check the export: each user of edX has one name and one number.",
            code="names-and-numbers",
        )
    joined = frame.join(numbers, on="username", how="left", maintain_order="left")
    learner = pl.coalesce("user_id", "number", "username")
    return joined.with_columns(learner.alias("learner"), pl.col("username").alias("alias")).drop(
        "user_id", "number", "username"
    )


def _row(record: Record, mark: PassMark) -> tuple[str | None, ...]:
    """User, target, type, outcome and time of an event."""
    context = record.get("context")
    context = context if isinstance(context, dict) else {}
    event = _event(record.get("event"))
    kind = text_of(record.get("event_type"))
    username = text_of(record.get("username"))
    user_id = _user_id(context.get("user_id"))
    return (
        user_id,
        username,
        _target(kind, event, context),
        None if kind is None else _kind(kind),
        _outcome(record, event, mark),
        text_of(record.get("time")),
    )


def _event(value: Any) -> Record:
    """What an event carries: an object, or a text that holds one."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _target(kind: str | None, event: Record, context: Record) -> str | None:
    """The kind and the name of the part of a course that an event is about."""
    module = context.get("module")
    places = [event.get(key) for key in _TARGETS]
    places += [module.get("usage_key") if isinstance(module, dict) else None, kind, context.get("path")]
    for place in places:
        if isinstance(place, str) and (found := _usage_key(place)):
            return found
    # A video of a new course has the last part of its key alone.
    video = event.get("id") if kind is not None and "video" in kind else None
    return f"video {video}" if isinstance(video, str) and video.isalnum() else None


def _usage_key(text: str) -> str | None:
    unescaped = text.replace(";_", "/")
    for pattern in _USAGE_KEYS:
        if found := pattern.search(unescaped):
            return f"{found['kind']} {found['name']}"
    return None


def _kind(event_type: str) -> str:
    """The type of an event; of a page's address only the first part within a course, which names nobody."""
    if not event_type.startswith("/"):
        return event_type
    first = _COURSE_PAGE.sub("/", event_type).split("?")[0].strip("/").split("/")[0]
    return f"page {first}" if _PAGE.fullmatch(first) else "page"


def _outcome(record: Record, event: Record, mark: PassMark) -> str | None:
    """Whether a problem was solved, as the server says: the browser sends the same check without a result."""
    if record.get("event_source", "server") != "server":
        return None
    grade, most = number_of(event.get("grade")), number_of(event.get("max_grade"))
    if mark.share is not None and grade is not None and most is not None and most > 0:
        return as_percentage(grade / most)
    success = event.get("success")
    return _SUCCESS.get(success) if isinstance(success, str) else None


def _user_id(value: Any) -> str | None:
    """A user's number, which some servers write as a text."""
    number = number_of(value)
    return text_of(value) if number is None else f"{number:.0f}"


def _identifiers(fields: set[str]) -> Iterator[Identifier]:
    if "username" in fields:
        yield Identifier("username", "login name", "by its name", "learner")
    for name, kind in _NOT_READ.items():
        if name in fields:
            yield Identifier(name, kind, "by its name", "not read")
