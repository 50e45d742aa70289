"""Moodle's log report: who did what in which part of a course, without outcomes.

The header is in the language of whoever exported it, and many reports write days without a year. What was done is the
part of the course (the event context); the description and the address of the computer are not read, and a context that
is a person's page is one action, whoever the person is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import polars as pl

from understudy.core.events.event_table import EventTable, ReadOptions
from understudy.core.events.log_columns import read_log_columns
from understudy.core.files.columns import FULL_NAMES, Columns, plain
from understudy.core.files.tables import Table
from understudy.core.files.words import counted

_CONTEXTS = ("eventcontext", "ereigniskontext", "contextedelévénement", "contextodelevento")
_EVENTS = ("eventname", "ereignisname", "nomdelévénement", "nombreevento", "nombredelevento")
_LEARNERS = tuple(name for name in FULL_NAMES if name != "fullname")
_TIMES = ("time", "zeit", "heure", "hora")
# What else is in the report.
_OTHERS = (
    *(*_EVENTS, *_LEARNERS, *_CONTEXTS, *_TIMES, "ipaddress", "ipadresse", "adresseip", "direcciónip"),
    *("affecteduser", "betroffene/rnutzer/in", "betroffene/rnutzer", "utilisateurtouché", "usuarioafectado"),
    *("component", "komponente", "composant", "componente", "origin", "herkunft", "origine", "origen"),
    *("description", "beschreibung", "descripción"),
)
# The first word of a context that is a person's page.
_PEOPLE = ("user", "benutzer/in", "benutzer", "nutzer/in", "nutzer", "utilisateur", "usuario")
# A school year; which one makes no difference to the order of rows, and what a row holds does not decide about it.
_YEAR_BEGINS = date(2000, 8, 1)
# Moodle writes these for events that no person caused.
_NO_PERSON = ("", "-", "–")


def looks_like_moodle(names: Sequence[str]) -> bool:
    """Whether a header is that of a log report, in one of four languages."""
    plains = {plain(name) for name in names}
    return all(plains & set(known) for known in (_CONTEXTS, _EVENTS, _LEARNERS))


def read_moodle(table: Table, options: ReadOptions) -> EventTable:
    """One row per event of a person; the action is the part of the course."""
    defaults = Columns(
        **{
            role: _named(table.names, known)
            for role, known in (("learner", _LEARNERS), ("action", _CONTEXTS))
        },
        time=_named(table.names, _TIMES),
    )
    events = read_log_columns(table, options, defaults, _OTHERS)
    events.year_begins = _YEAR_BEGINS
    events.drop(pl.col("learner").is_null() | pl.col("learner").is_in(_NO_PERSON), "that no person caused")
    kind = pl.col("action").str.split(":").list.first().str.strip_chars()
    someone = kind.str.to_lowercase().is_in(_PEOPLE)
    if n_people := int(events.frame.select(someone.fill_null(False).sum()).item()):
        events.notes.append(
            f"{counted(n_people, 'row')} about a person's page: they are one action, without the name."
        )
    events.frame = events.frame.with_columns(pl.when(someone).then(kind).otherwise("action").alias("action"))
    return events


def _named(names: Sequence[str], known: Sequence[str]) -> str | None:
    return next((name for name in names if plain(name) in known), None)
