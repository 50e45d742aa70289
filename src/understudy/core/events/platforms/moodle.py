"""Moodle's log report: who did what in which part of a course, without outcomes; as csv, Excel or JSON.

The header is in the language of whoever exported it, and many reports write days without a year. What was done is the
part of the course (the event context); the description and the address of the computer are not read, and a context that
is a person's page is one action, whoever the person is. Where the description is named for the action, the ids of
people in it are left out by their place in Moodle's sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.log_columns import read_log_columns
from understudy.core.events.people_in_text import without_addresses
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import FULL_NAMES, Columns, plain
from understudy.core.files.json_records import cell_text, load_json
from understudy.core.files.people.identifiers import Identifier
from understudy.core.files.source import Text, keeping_values_inside
from understudy.core.files.tables import FrameTable, Table, WithoutMarks, rows_from
from understudy.core.files.words import counted
from understudy.errors import DataError

# The report's columns in Moodle's order: time, who, about whom, where, component, what, in words, from where, address.
# As the language packs of Moodle have them (strings of `moodle` and of `report_log`); the Finnish ones were not
# compared with their pack.
_HEADERS = {
    "en": "Time|User full name|Affected user|Event context|Component|Event name|Description|Origin|IP address",
    "de": "Zeit|Vollständiger Name|Betroffene/r Nutzer/in|Ereigniskontext|Komponente|Ereignisname|Beschreibung|"
    "Herkunft|IP-Adresse",
    "fr": "Heure|Nom complet de l'utilisateur|Utilisateur touché|Contexte de l'événement|Composant|"
    "Nom de l'événement|Description|Origine|Adresse IP",
    "es": "Hora|Nombre completo del usuario|Usuario afectado|Contexto del evento|Componente|Nombre evento|"
    "Descripción|Origen|Dirección IP",
    "it": "Data/Ora|Nome completo dell'utente|Utente coinvolto|Contesto dell'evento|Componente|Evento|Descrizione|"
    "Origine|Indirizzo IP",
    "nl": "Tijd|Volledige naam van de gebruiker|Over gebruiker|Gebeurteniscontext|Component|Gebeurtenisnaam|"
    "Beschrijving|Oorsprong|IP-adres",
    "pt": "Data/Hora|Nome completo do utilizador|Utilizador afetado|Contexto do evento|Componente|Nome do evento|"
    "Descrição|Origem|Endereço IP",
    "pt_br": "Hora|Nome completo|Usuário afetado|Contexto do Evento|Componente|Nome do evento|Descrição|Origem|"
    "endereço IP",
    "fi": "Aika|Käyttäjän koko nimi|Vaikutettu käyttäjä|Tapahtuman konteksti|Komponentti|Tapahtuman nimi|Kuvaus|"
    "Alkuperä|IP-osoite",
    "pl": "Czas|Pełna nazwa|Dotyczy użytkownika|Kontekst zdarzenia|Składnik|Nazwa zdarzenia|Opis|Źródło|Adres IP",
}
_ENGLISH = tuple(_HEADERS["en"].split("|"))
# What the same column is called at each place, in all languages.
_AT = [
    frozenset(map(plain, titles))
    for titles in zip(*(header.split("|") for header in _HEADERS.values()), strict=True)
]
_TIMES, _CONTEXTS, _DESCRIPTIONS = _AT[0], _AT[3], _AT[6]
_EVENTS = _AT[5] | {"nombredelevento"}
# "Full name" alone is in the tables of any platform.
_LEARNERS = _AT[1] | {name for name in FULL_NAMES if name != "fullname"}
# The report of a whole site begins with the course.
_COURSES = ("course", "kurs", "cours", "curso", "corso", "cursus", "disciplina", "kurssi")
_OTHERS = frozenset((*_EVENTS, *_LEARNERS, *_COURSES, "betroffene/rnutzer")).union(*_AT)
# The first word of a context that is a person's page.
_PEOPLE = (
    *("user", "benutzer/in", "benutzer", "nutzer/in", "nutzer", "utilisateur", "usuario"),
    *("utente", "gebruiker", "utilizador", "usuário", "użytkownik", "käyttäjä"),
)
# A school year; which one makes no difference to the order of rows, and what a row holds does not decide about it.
_YEAR_BEGINS = date(2000, 8, 1)
# Moodle writes these for events that no person caused.
_NO_PERSON = ("-", "–")
_ARRAYS = re.compile(rb"\s*\[\s*\[\s*\[")


def looks_like_moodle(names: Sequence[str]) -> bool:
    """Whether a header is that of a log report, in one of the languages."""
    plains = {plain(name) for name in names}
    return all(plains & known for known in (_CONTEXTS, _EVENTS, _LEARNERS))


def are_rows(text: Text) -> bool:
    """Whether a JSON text holds rows without names, as Moodle writes its report: arrays in an array in an array."""
    return _ARRAYS.match(text.data) is not None


def moodle_records(text: Text) -> FrameTable:
    """The table in a report that was exported as JSON.

    Moodle writes an array of sheets; a sheet is an array of rows, a row an array of cells in the order of the report,
    or an object. Which it is follows from the first row, and one that is different is an error.
    """
    sheets = load_json(text)
    if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict):
        sheets = [sheets]
    if not isinstance(sheets, list) or not all(isinstance(sheet, list) for sheet in sheets):
        raise DataError(
            f"{text.name}: the JSON is not Moodle's: an array of rows in an array.",
            hint="export the log again, or as csv.",
            code="not-moodle-json",
        )
    rows = [row for sheet in sheets for row in sheet]
    if not rows:
        raise DataError(f"{text.name}: the log is empty: there is no row.", hint="check the export.")
    names = _names(rows[0], text.name)
    kind = type(rows[0])
    for number, row in enumerate(rows, start=1):
        if type(row) is not kind or len(row) != len(names) or (kind is dict and row.keys() != rows[0].keys()):
            raise DataError(
                f"{text.name}: record {number} has another form than the first one.",
                hint="export the log again, with the same columns throughout.",
                code="not-moodle-json",
            )
    cells = [[row.get(name) for name in names] for row in rows] if kind is dict else rows
    columns = {
        str(at): [cell_text(cell) for cell in column] for at, column in enumerate(zip(*cells, strict=True))
    }
    with keeping_values_inside(
        f"{text.name}: a cell is not valid text.", hint="export the log again, as UTF-8."
    ):
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return FrameTable(text.name, names, frame, rows_from(1, frame), text.notes, place="record")


def _names(row: Any, file: str) -> tuple[str, ...]:
    if isinstance(row, dict) and row:
        return tuple(row)
    if isinstance(row, list) and len(row) in (len(_ENGLISH), len(_ENGLISH) + 1):
        return ("Course", *_ENGLISH)[-len(row) :]
    raise DataError(
        f"{file}: the rows are not those of Moodle's log report, which have {len(_ENGLISH)} cells.",
        hint="export the log again with all of its columns, or as csv.",
        code="not-moodle-json",
    )


def read_moodle(table: Table, options: ReadOptions) -> EventTable:
    """One row per event of a person; the action is the part of the course."""
    named = {
        role: next((name for name in table.names if plain(name) in known), None)
        for role, known in (("learner", _LEARNERS), ("action", _CONTEXTS), ("time", _TIMES))
    }
    events = read_log_columns(WithoutMarks(table, _NO_PERSON), options, Columns(**named), _OTHERS)
    events.year_begins = _YEAR_BEGINS
    events.drop(pl.col("learner").is_null(), "that no person caused")
    events.identifiers += [
        Identifier(name, "learner id", "within its text", "not read")
        for name in table.names
        if plain(name) in _DESCRIPTIONS and name not in events.columns.values()
    ]
    if plain(events.columns["action"]) in _DESCRIPTIONS:
        events.leave_people_out("action", without_addresses)
        # What is left is searched once more, by the names of all actions.
        events.identifiers = [found for found in events.identifiers if found.role != "action"]
    kind = pl.col("action").str.split(":").list.first().str.strip_chars()
    someone = kind.str.to_lowercase().is_in(_PEOPLE)
    if n_people := int(events.frame.select(someone.fill_null(False).sum()).item()):
        events.notes.append(
            f"{counted(n_people, 'row')} about a person's page: they are one action, without the name."
        )
    events.frame = events.frame.with_columns(pl.when(someone).then(kind).otherwise("action").alias("action"))
    return events
