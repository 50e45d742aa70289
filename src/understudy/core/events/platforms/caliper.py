"""IMS Caliper events (1.1 and 1.2), in the envelopes of a sensor or by themselves; what identifies is not read.

An envelope has several events and descriptions of things, which are no events. The actor is a person; of them, of the
session, the client and the membership nothing is read but the id that groups the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.json_records import Record, load_records, number_of, text_of
from understudy.core.files.outcomes import as_percentage
from understudy.core.files.people.identifiers import Identifier, NamedPeople
from understudy.core.files.source import Text, keeping_values_inside
from understudy.core.files.words import counted

_SCHEMA = {
    "learner": pl.String,
    "object": pl.String,
    "name": pl.String,
    "verb": pl.String,
    "outcome": pl.String,
    "time": pl.String,
    "line": pl.Int64,
}
_COLUMNS = {
    "learner": "actor.id",
    "action": "object",
    "outcome": "generated.scoreGiven",
    "time": "eventTime",
}
_PEOPLE = ("Person", "Agent", "Group", "CourseSection", "Membership")
_NOT_READ = {
    "actor.name": "name",
    "session": "session",
    "membership": "course and role",
    "federatedSession": "session",
    "client": "computer",
    "extensions": "further fields",
}


def looks_like_caliper(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is an envelope of a sensor, or an event."""
    return {"sensor", "data"} <= record.keys() or {"eventTime", "actor", "action"} <= record.keys()


def read_caliper(text: Text, options: ReadOptions) -> EventTable:
    """One row per event of a person, in UTC; the action is the object's name and id, the outcome its score."""
    options.refuse_columns("caliper", _COLUMNS)
    records, place = load_records(text)
    n_entities = 0
    rows = []
    names: set[str] = set()
    fields: set[str] = set()
    for number, record in records:
        for event in _events(record):
            if "eventTime" not in event and "action" not in event:
                n_entities += 1
                continue
            fields.update(event)
            rows.append((*_row(event, names), number))
    with keeping_values_inside(
        f"{text.name}: a name or an id is not valid text.", hint="export the events again, as UTF-8."
    ):
        frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        called = NamedPeople("actor.name", "name", pl.Series(sorted(names), dtype=pl.String))
    columns = dict(_COLUMNS)
    named = pl.concat_str("name", pl.lit(" ("), "object", pl.lit(")"))
    action = pl.coalesce(named, "object")
    if options.verbs:
        action = pl.coalesce(pl.concat_str("verb", pl.lit(" "), action), action)
        columns["action"] = "action and object"
    frame = frame.with_columns(action.alias("action")).drop("object", "name", "verb")
    events = EventTable(text.name, frame, columns, list(text.notes), place, instants=True)
    if n_entities:
        events.notes.append(f"{counted(n_entities, 'description')} of things left out: not events.")
    events.identifiers += _identifiers(fields, bool(names))
    events.people.append(called)
    events.tidy(options)
    events.drop(pl.col("learner").is_null(), "(events) without the id of a person")
    events.drop(pl.col("action").is_null(), "(events) without an object's id")
    events.keep_graded(options, "events")
    return events


def _events(record: Record) -> Iterator[Record]:
    """The events of an envelope, or the event itself."""
    data = record.get("data")
    if not {"sensor", "data"} <= record.keys():
        yield record
        return
    for part in data if isinstance(data, list) else [data]:
        if isinstance(part, dict):
            yield part


def _row(event: Record, names: set[str]) -> tuple[Any, ...]:
    actor, target = event.get("actor"), event.get("object")
    learner = None
    if not isinstance(actor, dict) or actor.get("type", "Person") == "Person":
        learner = _id(actor)
    if isinstance(actor, dict) and (called := text_of(actor.get("name"))):
        names.add(called)
    object_id, name = _id(_assignable(target)), _name(_assignable(target))
    if isinstance(target, dict) and target.get("type") in _PEOPLE:
        object_id, name = str(target["type"]), None  # whoever was invited or looked at
    verb = text_of(event.get("action"))
    return (
        learner,
        object_id,
        name,
        None if verb is None else verb.rsplit("#", 1)[-1],
        _outcome(event),
        text_of(event.get("eventTime")),
    )


def _assignable(target: Any) -> Any:
    """What was worked on: an attempt names a learner in its own address, so what it is an attempt at counts."""
    if isinstance(target, dict) and target.get("type") == "Attempt":
        return target.get("assignable")
    return target


def _outcome(event: Record) -> str | None:
    """An event's score as a percentage: full marks are a success and none a failure, others by a declared mark."""
    score = event.get("generated")
    if not isinstance(score, dict):
        return None
    given, most = number_of(score.get("scoreGiven")), number_of(score.get("maxScore"))
    if given is None:
        given, most = number_of(score.get("normalScore")), 1.0
    return None if given is None or most is None or most <= 0 else as_percentage(given / most)


def _id(thing: Any) -> str | None:
    """The address of a thing, which may stand for it."""
    return text_of(thing.get("id") or thing.get("@id")) if isinstance(thing, dict) else text_of(thing)


def _name(thing: Any) -> str | None:
    return text_of(thing.get("name")) if isinstance(thing, dict) else None


def _identifiers(fields: set[str], named: bool) -> Iterator[Identifier]:
    yield Identifier("actor.id", "login name", "by its name", "learner")
    for name, kind in _NOT_READ.items():
        if name in fields or (name == "actor.name" and named):
            yield Identifier(name, kind, "by its name", "not read")
