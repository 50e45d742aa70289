"""Columns that identify people directly, known by their name or by what they hold.

A warning that cries wolf is switched off, so numbers that may be task numbers are left
alone: only what can hardly be anything else counts as content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from understudy.core.files.columns import KNOWN_NAMES, count_known, plain
from understudy.core.files.tables import Table

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
        *("vollständigername", "vollstaendigername", "betroffene/rnutzer/in", "betroffene/rnutzer"),
        *("nomcompletdelutilisateur", "utilisateurtouché", "nombrecompletodelusuario", "usuarioafectado"),
        *("schuelername", "prenom", "prénom", "nomdefamille", "nomcomplet", "nomprenom", "nometprenom"),
        *("apellido", "apellidos", "primerapellido", "segundoapellido", "nombrecompleto", "nombredepila"),
        *("nombreyapellidos", "cognome", "voornaam", "achternaam", "sobrenome"),
        *(
            "nomecompletodellutente",
            "nomecompletodoutilizador",
            "nomecompleto",
            "volledigenaamvandegebruiker",
        ),
        *("utentecoinvolto", "utilizadorafetado", "usuárioafetado", "overgebruiker", "dotyczyużytkownika"),
        *("vaikutettukäyttäjä", "käyttäjänkokonimi"),
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
        *(
            "idnumber",
            "idnummer",
            "numérodidentification",
            "númerodeid",
            "ssn",
            "socialsecuritynumber",
            "nationalid",
            "passportnumber",
        ),
        *("matrikel", "matrikelnr", "matrikelnummer", "martikelnummer", "ausweisnummer"),
        *("numeroetudiant", "numéroétudiant", "ine", "nir", "matricula", "matrícula", "expediente"),
        *("numerodeestudiante", "dni", "nif", "matricola"),
    ),
    "IP address": (
        *("ip", "ipaddress", "ipaddr", "ipadresse", "adresseip", "direccionip", "direcciónip", "clientip"),
        *("remoteip", "indirizzoip", "endereçoip", "enderecoip", "ipadres", "adresip", "iposoite"),
    ),
    "computer": ("useragent", "browserinfo", "deviceid", "macaddress"),
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
# Of these, names that a task's title may have too.
_PERHAPS_TITLES = ("name", "nom", "nombre", "nome")
_NOBODY = (
    *("none", "null", "nan", "n/a", "unknown", "unbekannt", "other", "anonymous", "yes", "no", "true"),
    *("false", "test", "admin", "guest", "user", "student", "learner", "teacher", "tutor", "system", "info"),
    *("mail", "office", "school", "schule", "contact", "support", "noreply", "no-reply"),
)
_PERSON = r"^\p{Lu}[\p{L}'’.\-]*,?(?: \p{Lu}[\p{L}'’.\-]*){1,3}$"

EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# The first octet from 10 on, and a large one among the others: 1.2.3.4 is a section of a book.
_IPV4 = rf"(?:^|[^\w.])(?:(?:1\d|[2-9]\d|1\d\d|2[0-4]\d|25[0-5])\.)(?:{_OCTET}\.){{2}}{_OCTET}(?:[^\w.]|\.?$)"
_LARGE_OCTET = r"\b(?:3[2-9]|[4-9]\d|1\d\d|2[0-4]\d|25[0-5])\b"
_IPV6 = r"(?i)^(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})$"
_GAP = r"[\s./()-]{0,2}"
PHONES = (
    rf"^\+[1-9](?:{_GAP}\d){{7,14}}$",
    r"^\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}$",
    r"^0\d(?:[\s.-]\d{2}){4}$",
)
# A leading zero, a separator, and more digits than a date has: right for most of a column,
# but a single task may be numbered like that.
_PHONES_OF_A_COLUMN = (*PHONES, r"^\(?0\d{1,4}\)?[\s./-]{1,2}\d{5,8}$")
# What can name the learner of a row, the surest first.
KINDS_OF_LEARNERS = ("student number", "login name", "e-mail address", "name")
MOST = 0.5
SOME = 0.02
# Of fewer learners a column of titles may look like one of names.
MIN_LEARNERS = 10


@dataclass(frozen=True)
class Identifier:
    """A column that identifies people directly, why we think so, and what it is used for.

    `column` is the column's name where that is a name we know or one that the user chose,
    else its position: the header of a column that nobody asked for may be a value itself.
    """

    column: str
    kind: str
    evidence: str
    role: str


@dataclass(frozen=True, repr=False)
class NamedPeople:
    """The values of a column that identifies people, kept only until the actions are searched."""

    column: str
    kind: str
    values: pl.Series
    n_pairs: int = 0
    """Where the column may hold titles of tasks: how many pairs of a learner and a value there are,"""
    n_learners: int = 0
    """and of how many learners."""
    by_position: bool = False
    nameless: bool = False
    """Whether the column's name says nothing of people."""

    @property
    def are_people(self) -> bool:
        """Whether a learner has about one value of the column: one of titles has one per task.

        Where the column's name says nothing, as many values have to differ as learners do, about: not so of schools.
        """
        if self.nameless and not MIN_LEARNERS <= self.n_learners <= self.values.n_unique() / MOST:
            return False
        return self.n_pairs <= 1.5 * self.n_learners

    def __add__(self, others: NamedPeople) -> NamedPeople:
        """With those whom the same column names in other learners' rows."""
        return replace(
            self,
            values=pl.concat([self.values, others.values]).unique(),
            n_pairs=self.n_pairs + others.n_pairs,
            n_learners=self.n_learners + others.n_learners,
        )


class People(NamedTuple):
    """Whom a column names; if they were counted, pairs of a learner and a person, and learners who are in one."""

    values: pl.Series
    n_pairs: int = 0
    n_learners: int = 0


def identifiers_in(
    table: Table, columns: Mapping[str, str], people_in: Callable[[int, bool], People] | None = None
) -> tuple[list[Identifier], list[NamedPeople]]:
    """The identifying columns of a table, and the people whom those besides learner and action name.

    Columns are known by their names and by a sample of their content; those that may hold titles of tasks are among
    them (see `without_titles`). Whom the column at a position names is read from the table unless `people_in` is given,
    which counts them if it is asked to.
    """
    sample = table.sample()
    roles = {column: role for role, column in columns.items()}
    found, people = [], []
    for position, name in enumerate(table.names):
        readable = str(position) in sample.columns
        values = sample[str(position)] if readable else pl.Series([], dtype=pl.String)
        values = values.str.strip_chars().replace("", None).drop_nulls()
        role = roles.get(name, "not read")
        shown = name if role != "not read" or _known(name) else f"column {position + 1}"
        verdict = _by_name(name, values) or _by_content(values)
        if verdict is None and role == "action" and plain(name) in KNOWN_NAMES["learner"]:
            verdict = "learner id", "by its name"
        share = _share(values.str.contains(_PERSON))
        nameless = verdict is None and role == "not read" and share >= MOST
        if nameless:
            verdict = "name", f"by its content ({share:.0%} of values, one per learner)".replace("%", " %")
        if verdict is None:
            continue
        found.append(Identifier(shown, *verdict, role=role))
        if readable and role not in ("learner", "action"):
            count = nameless or plain(name) in _PERHAPS_TITLES
            named = (
                people_in(position, count)
                if people_in
                else _people_in(table, columns["learner"], position, count)
            )
            people.append(NamedPeople(shown, verdict[0], *named, shown != name, nameless))
    return found, people


def without_titles(identifiers: Sequence[Identifier], people: Iterable[NamedPeople]) -> list[Identifier]:
    """The identifying columns without those whose names say nothing, if all rows show that they hold titles."""
    nameless = [named for named in people if named.nameless]
    holds_people = {(named.column, named.kind): False for named in nameless}
    holds_people |= {(named.column, named.kind): True for named in nameless if named.are_people}
    return [found for found in identifiers if holds_people.get((found.column, found.kind), True)]


def _people_in(table: Table, learner: str, position: int, count: bool) -> People:
    named = table.read({"learner": table.names.index(learner), "person": position}).cast(pl.String)
    if not count:
        return People(named["person"])
    pairs = named.drop_nulls().select("learner", "person").unique()
    return People(named["person"], pairs.height, pairs["learner"].n_unique())


def identifies_one_person(name: str, values: pl.Series) -> str | None:
    """What a column holds if it could name the learner: not a first name alone, and nothing about other people."""
    verdict = _by_name(name, values) or _by_content(values)
    if verdict is None or plain(name) in _BY_NAME["name"]:
        return None
    if verdict[0] == "e-mail address" and _share(values.str.contains(EMAIL)) < MOST:
        return None
    return verdict[0] if verdict[0] in KINDS_OF_LEARNERS else None


def without_nobody(values: pl.Series) -> pl.Series:
    """Values of an identifying column without the words that stand there for nobody in particular."""
    return values.filter(~values.is_in(_NOBODY))


def _known(name: str) -> bool:
    name = name.removeprefix("value.")
    return plain(name) in _KIND_OF_NAME or plain(name) in _PERHAPS_PEOPLE or count_known([name]) > 0


def _by_name(name: str, values: pl.Series) -> tuple[str, str] | None:
    # A field of a record has its place before its name.
    if kind := _KIND_OF_NAME.get(plain(name.removeprefix("value."))):
        return kind, "by its name"
    if plain(name) in _PERHAPS_PEOPLE and (share := _share(values.str.contains(_PERSON))) >= MOST:
        return "name", f"by its name and its content ({share:.0%} of values)".replace("%", " %")
    return None


def _by_content(values: pl.Series) -> tuple[str, str] | None:
    for kind, matches, enough in (
        ("e-mail address", values.str.contains(EMAIL), SOME),
        ("IP address", is_ip_address(values), MOST),
        ("phone number", is_any(values, _PHONES_OF_A_COLUMN), MOST),
    ):
        if (share := _share(matches)) >= enough:
            return kind, f"by its content ({share:.0%} of values)".replace("%", " %")
    return None


def is_ip_address(values: pl.Series) -> pl.Series:
    """Whether each value contains an IP address of version 4 or is one of version 6."""
    return _is_ipv4(values) | values.str.contains(_IPV6)


def _is_ipv4(values: pl.Series) -> pl.Series:
    return values.str.contains(_IPV4) & values.str.contains(_LARGE_OCTET)


def is_any(values: pl.Series, forms: tuple[str, ...]) -> pl.Series:
    """Whether each value has one of the forms."""
    return values.str.contains("|".join(f"(?:{form})" for form in forms))


def _share(matches: pl.Series) -> float:
    return float(matches.sum()) / len(matches) if len(matches) else 0.0
