"""xAPI statements of any verb: an actor, an object, perhaps a result; what is not needed is not kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.json_records import load_records, number_of, text_of
from understudy.core.files.outcomes import PassMark, as_percentage
from understudy.core.files.people.identifiers import Identifier, NamedPeople
from understudy.core.files.source import Text, keeping_values_inside
from understudy.core.files.words import counted
from understudy.errors import DataError

VOIDED = "http://adlnet.gov/expapi/verbs/voided"


class Voiding:
    """Which statements are taken back, found while the statements go by.

    A voiding statement (xAPI 2.3.2) may come before or after the one that it names. It is nobody's activity itself, and
    cannot be voided. It counts if its actor is that of the statement which it names: what one learner does must not
    remove another's rows. Where it is declared that only the platform voids (`by_anyone`), its actor does not matter.
    """

    def __init__(self, *, by_anyone: bool = False) -> None:
        self._by_anyone = by_anyone
        self._numbers: dict[str, list[tuple[int, str | None]]] = {}
        self._taken_back: dict[str, set[str | None]] = {}

    def keeps(self, statement: dict[str, Any], number: int) -> bool:
        """Note the statement; False if it is a voiding one, of which nothing else is to be read."""
        verb, target = statement.get("verb"), statement.get("object")
        _, actor, _ = learner_of(statement.get("actor"))
        if isinstance(verb, dict) and verb.get("id") == VOIDED:
            if isinstance(target, dict) and isinstance(target.get("id"), str):
                self._taken_back.setdefault(target["id"].strip().lower(), set()).add(actor)
            return False
        if isinstance(statement.get("id"), str):
            self._numbers.setdefault(statement["id"].strip().lower(), []).append((number, actor))
        return True

    def voided(self) -> list[int]:
        """The numbers of the statements that were taken back; complete when all have gone by."""
        return self._named(by_others=self._by_anyone)

    def notes(self) -> list[str]:
        """Sentences with counts, if there is anything to say."""
        n_voided, n_named = len(self.voided()), len(self._named(by_others=True))
        notes = [f"{counted(n_voided, 'voided statement')} left out."] if n_voided else []
        if n_kept := n_named - n_voided:
            notes.append(
                f"{counted(n_kept, 'statement')} that another actor voided: kept, since no learner's statement removes "
                "another's. If only the platform can void, declare that: `platform_voids`."
            )
        return notes

    def _named(self, *, by_others: bool) -> list[int]:
        return [
            number
            for taken_back, actors in self._taken_back.items()
            for number, actor in self._numbers.get(taken_back, ())
            if by_others or (actor is not None and actor in actors)
        ]


_SCHEMA = {
    "learner": pl.String,
    "alias": pl.String,
    "object": pl.String,
    "name": pl.String,
    "verb": pl.String,
    "outcome": pl.String,
    "time": pl.String,
    "line": pl.Int64,
}
_COLUMNS = {"learner": "actor", "action": "object", "outcome": "result.success", "time": "timestamp"}
_PEOPLE = ("Agent", "Group")
# Extensions by the last part of their address: what they hold points at a person, a computer or a place.
_EXTENSIONS = {
    "IP address": ("ip-address", "ipaddress", "ip", "http://id.tincanapi.com/extension/ip-address"),
    "place": ("geojson", "geo", "location", "latitude", "longitude", "geography"),
    "computer": ("browser-info", "browserinfo", "browser", "user-agent", "useragent", "device"),
    "name": ("invitee", "observer", "invited-by", "tutor"),
}
_KIND_OF_EXTENSION = {name: kind for kind, names in _EXTENSIONS.items() for name in names}


@dataclass
class _People:
    """Whom the statements name, and where: kept until the actions were searched for them."""

    fields: dict[str, tuple[str, str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def note(self, person: Any, place: str, role: str) -> None:
        """Note the names of an agent, a group or its members; `role` says what the place is used for."""
        if not isinstance(person, dict):
            return
        if called := text_of(person.get("name")):
            self.fields[f"{place}.name"] = ("name", "not read")
            self.names.add(called)
        kind, key, alias = learner_of(person)
        if kind in _KINDS:
            self.fields.setdefault(f"{place}.{kind}", (_KINDS[kind], role))
        if key is not None and role == "not read":
            self.names.update((key, alias or key))
        members = person.get("member")
        for member in members if isinstance(members, list) else ():
            self.note(member, f"{place}.member", "not read")

    def note_context(self, context: Any) -> None:
        """Note instructors, teams and extensions that point at people; nothing of them is read."""
        if not isinstance(context, dict):
            return
        for part in ("instructor", "team"):
            self.note(context.get(part), f"context.{part}", "not read")
        extensions = context.get("extensions")
        for key in extensions if isinstance(extensions, dict) else ():
            last = key.rstrip("/").rsplit("/", 1)[-1].lower()
            if kind := _KIND_OF_EXTENSION.get(last):
                self.fields[f"context.extensions: {last}"] = (kind, "not read")

    def identifiers(self) -> Iterator[Identifier]:
        """The fields that identify people, those of learners first."""
        for place, (kind, role) in sorted(self.fields.items(), key=lambda found: found[1][1]):
            yield Identifier(place, kind, "by its name", role)


_KINDS = {"mbox": "e-mail address", "account": "login name"}


def read_xapi(text: Text, options: ReadOptions) -> EventTable:
    """One row per statement of a person; times in UTC; the action is the object's name and id.

    The outcome is the statement's success, or its score where a pass mark is declared. Of the actor only the key is
    read, to group the rows; of the context and of extensions nothing.
    """
    options.refuse_columns("xapi", _COLUMNS)
    statements, place = load_records(text)
    people = _People()
    rows = []
    voiding = Voiding(by_anyone=options.platform_voids)
    for number, statement in statements:
        if voiding.keeps(statement, number):
            rows.append(_row(statement, number, people, options, f"{text.name}: {place} {number}"))
    with keeping_values_inside(
        f"{text.name}: a name or an id is not valid text.", hint="export the statements again, as UTF-8."
    ):
        frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        called = NamedPeople("actor.name", "name", pl.Series(sorted(people.names), dtype=pl.String))
    rows_under_way = frame.with_columns(pl.lit("x").alias("action"))
    events = EventTable(text.name, rows_under_way, dict(_COLUMNS), list(text.notes), place, instants=True)
    events.notes += voiding.notes()
    events.identifiers += people.identifiers()
    events.people.append(called)
    events.tidy(options)
    # Whoever took back all of their statements keeps a place among the learners.
    events.frame = events.frame.filter(~pl.col("line").is_in(voiding.voided()))
    events.drop(pl.col("learner").is_null(), "(statements) without the id of a single actor")
    events.drop(pl.col("object").is_null(), "(statements) without an object's id")
    events.keep_graded(options, "statements")
    events.require_rows()
    _name_actions(events, options.verbs)
    return events


def _row(
    statement: dict[str, Any], number: int, people: _People, options: ReadOptions, where: str
) -> tuple[Any, ...]:
    actor, target, verb = statement.get("actor"), statement.get("object"), statement.get("verb")
    people.note(actor, "actor", "learner")
    people.note_context(statement.get("context"))
    _, learner, alias = learner_of(actor)
    if isinstance(actor, dict) and actor.get("objectType") == "Group":
        learner = alias = None  # whose activity it is cannot be known
    object_id, name = _target(target, people, options.language)
    return (
        learner,
        alias,
        object_id,
        name,
        _verb(verb, options.language) if options.verbs else None,
        _outcome(statement.get("result"), options.mark, where),
        text_of(statement.get("timestamp") or statement.get("stored")),
        number,
    )


def _target(target: Any, people: _People, language: str) -> tuple[str | None, str | None]:
    """The id and the name of an object; a person is one object, whoever it is."""
    if not isinstance(target, dict):
        return None, None
    if target.get("objectType") in _PEOPLE:
        people.note(target, "object", "not read")
        return str(target["objectType"]), None
    definition = target.get("definition")
    names = definition.get("name") if isinstance(definition, dict) else None
    return text_of(target.get("id")), _in_language(names, language)


def _verb(verb: Any, language: str) -> str | None:
    """What a verb is called, or the last part of its address."""
    if not isinstance(verb, dict):
        return None
    address = text_of(verb.get("id"))
    last = None if address is None else address.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]
    return last or _in_language(verb.get("display"), language)


def _outcome(result: Any, mark: PassMark, where: str) -> str | None:
    """Whether it went well: as the statement says, or by its score where a pass mark is declared."""
    if not isinstance(result, dict):
        return None
    success = result.get("success")
    if success is not None and not isinstance(success, bool):
        raise DataError(
            f"{where} has a result.success that is neither true nor false.", hint="see xAPI 2.4.5."
        )
    if success is not None:
        return str(int(success))
    share = _share_of(result.get("score"))
    return None if share is None or mark.share is None else as_percentage(share)


def _share_of(score: Any) -> float | None:
    """A score as a share of the points: as it is scaled, or the raw points by their maximum."""
    if not isinstance(score, dict):
        return None
    scaled, raw, low, high = (number_of(score.get(key)) for key in ("scaled", "raw", "min", "max"))
    if scaled is not None or raw is None or high is None or high <= (low or 0):
        return scaled
    return (raw - (low or 0)) / (high - (low or 0))


def learner_of(actor: Any) -> tuple[str | None, str | None, str | None]:
    """What identifies an actor: the kind of key, the key, and another name; nothing if there is no key."""
    if not isinstance(actor, dict):
        return None, None, None
    account = actor.get("account")
    if isinstance(account, dict) and text_of(account.get("name")):
        name = str(account["name"])
        return "account", f"{account.get('homePage') or ''} {name}", name
    for key in ("mbox", "mbox_sha1sum", "openid"):
        if value := text_of(actor.get(key)):
            return key, value.removeprefix("mailto:"), value
    return None, None, None


def _in_language(names: Any, language: str) -> str | None:
    """A name in the wanted language: de is also in de-AT."""
    if not isinstance(names, dict):
        return None
    wanted = language.lower()
    fitting = (key for key in sorted(names) if key.lower() == wanted or key.lower().startswith(wanted + "-"))
    return next((called for key in fitting if (called := text_of(names[key]))), None)


def _name_actions(events: EventTable, verbs: bool) -> None:
    """Name each action by its own statement: no other one decides what it is called."""
    named = pl.concat_str("name", pl.lit(" ("), "object", pl.lit(")"))
    action = pl.coalesce(named, "object")
    if verbs:
        action = pl.coalesce(pl.concat_str("verb", pl.lit(" "), action), action)
        events.columns["action"] = "verb and object"
    events.frame = events.frame.with_columns(action.alias("action")).drop("object", "name", "verb")
