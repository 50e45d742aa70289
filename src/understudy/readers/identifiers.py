"""Columns that identify people directly, known by their name or by what they hold.

A warning that cries wolf is switched off, so numbers that may be task numbers are left
alone: only what can hardly be anything else counts as content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from understudy.readers.columns import plain
from understudy.readers.tables import Table

# As `plain` writes them; English, German, French, Spanish, Italian, Dutch, Portuguese.
_BY_NAME: dict[str, tuple[str, ...]] = {
    "name": (
        *(
            "firstname",
            "lastname",
            "fullname",
            "surname",
            "givenname",
            "familyname",
            "forename",
            "middlename",
        ),
        *("studentname", "userfullname", "learnername", "pupilname", "displayname", "realname"),
        *("studentfirstname", "studentlastname", "actorname", "teachername", "parentname", "affecteduser"),
        *("vorname", "nachname", "familienname", "zuname", "vollername", "schülername"),
        *("schuelername", "prenom", "prénom", "nomdefamille", "nomcomplet", "nomprenom", "nometprenom"),
        *("apellido", "apellidos", "primerapellido", "segundoapellido", "nombrecompleto", "nombredepila"),
        *("nombreyapellidos", "cognome", "voornaam", "achternaam", "sobrenome"),
    ),
    "e-mail address": (
        *("email", "mail", "emailaddress", "mailaddress", "useremail", "studentemail", "mbox", "actormbox"),
        *("emailadresse", "mailadresse", "courriel", "adressemail", "adresseemail", "correo"),
        *("correoelectronico", "correoelectrónico", "emailadres"),
    ),
    "phone number": (
        *("phone", "phonenumber", "telephone", "tel", "mobile", "mobilephone", "cellphone", "cell"),
        *("telefon", "telefonnummer", "handy", "handynummer", "mobilnummer", "téléphone", "portable"),
        *("numerodetelephone", "telefono", "teléfono", "movil", "móvil", "celular"),
    ),
    "student number": (
        *("studentnumber", "studentno", "matric", "matricno", "matricnumber", "matriculation"),
        *("matriculationnumber", "enrollmentnumber", "enrolmentnumber", "registrationnumber", "rollnumber"),
        *("idnumber", "ssn", "socialsecuritynumber", "nationalid", "passportnumber"),
        *("matrikel", "matrikelnr", "matrikelnummer", "martikelnummer", "ausweisnummer"),
        *("numeroetudiant", "numéroétudiant", "ine", "nir", "matricula", "matrícula", "expediente"),
        *("numerodeestudiante", "dni", "nif", "matricola"),
    ),
    "IP address": (
        "ip",
        "ipaddress",
        "ipaddr",
        "ipadresse",
        "adresseip",
        "direccionip",
        "clientip",
        "remoteip",
    ),
    "login name": (
        *("login", "loginname", "userlogin", "username", "account", "accountname"),
        *("benutzername", "anmeldename", "identifiant", "nombredeusuario"),
    ),
    "postal address": ("address", "homeaddress", "street", "adresse", "anschrift", "direccion", "dirección"),
}
_KIND_OF_NAME = {name: kind for kind, names in _BY_NAME.items() for name in names}
# Names that fit people and things alike: the content decides.
_PERHAPS_PEOPLE = (
    *("name", "nom", "nombre", "nome", "user", "student", "learner", "pupil", "author", "participant"),
    *("person", "benutzer", "schueler", "schüler", "eleve", "élève", "etudiant", "étudiant", "alumno"),
    *("estudiante", "usuario", "utilisateur", "teacher", "lehrer", "lehrkraft", "professeur", "profesor"),
)
_PERSON = r"^\p{Lu}[\p{L}'’.\-]*,?(?: \p{Lu}[\p{L}'’.\-]*){1,3}$"

_EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# The first octet from 10 on, and a large one among the others: 1.2.3.4 is a section of a book.
_IPV4 = rf"(?:^|[^\w.])(?:(?:1\d|[2-9]\d|1\d\d|2[0-4]\d|25[0-5])\.)(?:{_OCTET}\.){{2}}{_OCTET}(?:[^\w.]|\.?$)"
_LARGE_OCTET = r"\b(?:3[2-9]|[4-9]\d|1\d\d|2[0-4]\d|25[0-5])\b"
_IPV6 = r"(?i)^(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})$"
_GAP = r"[\s./()-]{0,2}"
_PHONE_WITHIN = rf"(?:^|[^\w+])\+[1-9](?:{_GAP}\d){{8,14}}(?:\D|$)"
_PHONES = (
    rf"^\+[1-9](?:{_GAP}\d){{7,14}}$",
    r"^\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}$",
    r"^0\d(?:[\s.-]\d{2}){4}$",
)
# A leading zero, a separator, and more digits than a date has: right for most of a column,
# but a single task may be numbered like that.
_PHONES_OF_A_COLUMN = (*_PHONES, r"^\(?0\d{1,4}\)?[\s./-]{1,2}\d{5,8}$")
MOST = 0.5
SOME = 0.02


@dataclass(frozen=True)
class Identifier:
    """A column that identifies people directly, why we think so, and what it is used for."""

    column: str
    kind: str
    evidence: str
    role: str


def identifiers_in(table: Table, columns: Mapping[str, str]) -> list[Identifier]:
    """The identifying columns of a table, by their names and by a sample of their content."""
    sample = table.sample()
    roles = {column: role for role, column in columns.items()}
    found = []
    for position, name in enumerate(table.names):
        values = sample[str(position)] if str(position) in sample.columns else pl.Series([], dtype=pl.String)
        values = values.str.strip_chars().replace("", None).drop_nulls()
        verdict = _by_name(name, values) or _by_content(values)
        if verdict is not None:
            found.append(Identifier(name, *verdict, role=roles.get(name, "not read")))
    return found


def identifiers_in_actions(column: str, actions: pl.Series, learners: pl.Series) -> list[Identifier]:
    """What in the names of actions points at people: synthetic data would carry it on.

    Any single e-mail address, telephone number or IP address counts, and any learner's own
    name or code. Codes that are numbers are left alone, since task numbers look the same.
    """
    found = []
    for kind, matches in (
        ("e-mail address", actions.str.contains(_EMAIL)),
        ("IP address", _is_ipv4(actions) | actions.str.contains(_IPV6)),
        ("phone number", actions.str.contains(_PHONE_WITHIN) | _is_any(actions, _PHONES)),
        ("learner id", _mentions(actions, learners)),
    ):
        if n_matches := int(matches.sum()):
            what = "a learner's id" if kind == "learner id" else ("an " if kind[0] in "eI" else "a ") + kind
            evidence = f"{n_matches} of {len(actions)} actions contain {what}"
            found.append(Identifier(column, kind, evidence, "action"))
    return found


def _by_name(name: str, values: pl.Series) -> tuple[str, str] | None:
    if kind := _KIND_OF_NAME.get(plain(name)):
        return kind, "by its name"
    if plain(name) in _PERHAPS_PEOPLE and (share := _share(values.str.contains(_PERSON))) >= MOST:
        return "name", f"by its name and its content ({share:.0%} of values)".replace("%", " %")
    return None


def _by_content(values: pl.Series) -> tuple[str, str] | None:
    for kind, matches, enough in (
        ("e-mail address", values.str.contains(_EMAIL), SOME),
        ("IP address", _is_ipv4(values) | values.str.contains(_IPV6), MOST),
        ("phone number", _is_any(values, _PHONES_OF_A_COLUMN), MOST),
    ):
        if (share := _share(matches)) >= enough:
            return kind, f"by its content ({share:.0%} of values)".replace("%", " %")
    return None


def _is_ipv4(values: pl.Series) -> pl.Series:
    return values.str.contains(_IPV4) & values.str.contains(_LARGE_OCTET)


def _is_any(values: pl.Series, forms: tuple[str, ...]) -> pl.Series:
    return pl.select(pl.any_horizontal([values.str.contains(form) for form in forms])).to_series()


def _share(matches: pl.Series) -> float:
    return float(matches.sum()) / len(matches) if len(matches) else 0.0


def _mentions(actions: pl.Series, learners: pl.Series) -> pl.Series:
    names = learners.unique().str.to_lowercase()
    names = names.filter((names.str.len_chars() >= 4) & names.str.contains(r"\p{L}"))
    text = actions.str.to_lowercase()
    # A short id of letters only may be part of an ordinary word; it has to stand alone.
    wordlike = names.str.contains(r"^\p{L}{4,5}$")
    words = " " + text.str.replace_all(r"[^\p{L}\p{N}]+", " ") + " "
    inside = _contains_any(text, names.filter(~wordlike))
    return inside | _contains_any(words, " " + names.filter(wordlike) + " ")


def _contains_any(text: pl.Series, patterns: pl.Series) -> pl.Series:
    return text.str.contains_any(patterns.to_list()) if len(patterns) else text.is_null()
