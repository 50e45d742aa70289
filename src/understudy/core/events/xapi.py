"""xAPI statements: an actor, an object, a result; what is not needed is not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from understudy.core.events.event_table import EventTable, ReadOptions
from understudy.core.files.identifiers import Identifier, NamedPeople
from understudy.core.files.json_records import load_records
from understudy.core.files.source import Text, keeping_values_inside
from understudy.core.files.words import counted
from understudy.errors import DataError

VOIDED = "http://adlnet.gov/expapi/verbs/voided"


class Voiding:
    """Which statements others take back, found while the statements go by.

    A voiding statement (xAPI 2.3.2) may come before or after the one that it names. It is nobody's
    activity itself, and cannot be voided.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, list[int]] = {}
        self._taken_back: set[str] = set()

    def keeps(self, statement: dict[str, Any], number: int) -> bool:
        """Note the statement; False if it is a voiding one, of which nothing else is to be read."""
        verb, target = statement.get("verb"), statement.get("object")
        if isinstance(verb, dict) and verb.get("id") == VOIDED:
            if isinstance(target, dict) and isinstance(target.get("id"), str):
                self._taken_back.add(target["id"].strip().lower())
            return False
        if isinstance(statement.get("id"), str):
            self._numbers.setdefault(statement["id"].strip().lower(), []).append(number)
        return True

    def voided(self) -> list[int]:
        """The numbers of the statements that were taken back; complete when all have gone by."""
        return [number for taken_back in self._taken_back for number in self._numbers.get(taken_back, ())]

    def notes(self) -> list[str]:
        """A sentence with a count, if there is anything to say."""
        n_voided = len(self.voided())
        return [f"{counted(n_voided, 'voided statement')} left out."] if n_voided else []


_SCHEMA = {
    "learner": pl.String,
    "alias": pl.String,
    "object": pl.String,
    "name": pl.String,
    "outcome": pl.Int8,
    "time": pl.String,
    "line": pl.Int64,
}


def read_xapi(text: Text, options: ReadOptions) -> EventTable:
    """One row per statement with a success; times in UTC; the action is the object's name and id."""
    options.refuse_columns("xapi")
    statements, place = load_records(text)
    actors: Counter[str] = Counter()
    names: set[str] = set()
    rows = []
    voiding = Voiding()
    for number, statement in statements:
        if voiding.keeps(statement, number):
            rows.append(_row(statement, number, actors, names, f"{text.name}: {place} {number}"))
    with keeping_values_inside(
        f"{text.name}: a name or an id is not valid text.", hint="export the statements again, as UTF-8."
    ):
        frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        frame = frame.filter(~pl.col("line").is_in(voiding.voided()))
        called = NamedPeople("actor.name", "name", pl.Series(sorted(names), dtype=pl.String))
    columns = {"learner": "actor", "action": "object", "outcome": "result.success", "time": "timestamp"}
    rows_under_way = frame.with_columns(pl.lit("x").alias("action"))
    events = EventTable(text.name, rows_under_way, columns, list(text.notes), place, instants=True)
    events.notes += voiding.notes()
    events.identifiers += _identifiers(actors)
    events.people.append(called)
    events.tidy(options)
    events.drop(pl.col("outcome").is_null(), "(statements) without a result.success")
    events.drop(pl.col("learner").is_null(), "(statements) without an actor's id")
    events.drop(pl.col("object").is_null(), "(statements) without an object's id")
    events.require_rows()
    _name_actions(events)
    return events


def _row(
    statement: dict[str, Any], number: int, actors: Counter[str], names: set[str], where: str
) -> tuple[Any, ...]:
    learner, alias = _actor(statement.get("actor"), actors, names)
    target = statement.get("object")
    result = statement.get("result")
    success = result.get("success") if isinstance(result, dict) else None
    if success is not None and not isinstance(success, bool):
        raise DataError(
            f"{where} has a result.success that is neither true nor false.", hint="see xAPI 2.4.5."
        )
    time = statement.get("timestamp") or statement.get("stored")
    return (
        learner,
        alias,
        _text(target.get("id")) if isinstance(target, dict) else None,
        _english_name(target) if isinstance(target, dict) else None,
        None if success is None else int(success),
        _text(time),
        number,
    )


def _actor(actor: Any, actors: Counter[str], names: set[str]) -> tuple[str | None, str | None]:
    """The key of an actor, and a shorter name by which a list of withdrawn learners may know them."""
    if isinstance(actor, dict) and (called := _text(actor.get("name"))):
        actors["name"] += 1
        names.add(called)
    kind, learner, alias = learner_of(actor)
    if kind is not None:
        actors[kind] += 1
    return learner, alias


def learner_of(actor: Any) -> tuple[str | None, str | None, str | None]:
    """What identifies an actor: the kind of key, the key, and another name; nothing if there is no key."""
    if not isinstance(actor, dict):
        return None, None, None
    account = actor.get("account")
    if isinstance(account, dict) and _text(account.get("name")):
        name = str(account["name"])
        return "account", f"{account.get('homePage') or ''} {name}", name
    for key in ("mbox", "mbox_sha1sum", "openid"):
        if value := _text(actor.get(key)):
            return key, value.removeprefix("mailto:"), value
    return None, None, None


def _english_name(target: dict[str, Any]) -> str | None:
    definition = target.get("definition")
    names = definition.get("name") if isinstance(definition, dict) else None
    if not isinstance(names, dict):
        return None
    return next((_text(names[key]) for key in sorted(names) if key.lower().startswith("en")), None)


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _name_actions(events: EventTable) -> None:
    """Name each action by its own statement: no other one decides what it is called."""
    named = pl.concat_str("name", pl.lit(" ("), "object", pl.lit(")"))
    action = pl.coalesce(named, "object").alias("action")
    events.frame = events.frame.with_columns(action).drop("object", "name")


def _identifiers(actors: Counter[str]) -> Iterator[Identifier]:
    kinds = {"mbox": "e-mail address", "account": "login name", "name": "name"}
    for key, kind in kinds.items():
        if actors[key]:
            role = "not read" if key == "name" else "learner"
            yield Identifier(f"actor.{key}", kind, "by its name", role)
