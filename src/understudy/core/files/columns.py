"""Which column plays which role: named by the user, or found by the names that logs commonly use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated

from understudy.core.files.words import counted
from understudy.errors import DataError, UsageError

# How an action is called that is made of several columns.
COMPOSED = " + "
ROLES = ("learner", "action", "outcome", "time", "item", "group")
REQUIRED = ("learner", "action", "outcome")

# In order of preference, as `plain` writes them.
_ITEMS = (
    *("item", "itemid", "itemname", "problem", "problemid", "problemname", "question", "questionid"),
    *("exercise", "exerciseid", "exercisename", "task", "taskid", "taskname", "step", "stepid", "stepname"),
    *("activity", "activityid", "activityname", "aufgabe", "frage", "exercice", "tarea", "pregunta"),
    *("übung", "uebung", "übungsaufgabe", "aufgabenname", "aktivität", "aktivitaet"),
    *("activité", "activite", "ejercicio", "actividad"),
)
# What a course or an exam knows a learner by, and what platforms show of one, Moodle above all. Where a file has
# several of these, a wing says which comes first.
STUDENT_NUMBERS = (
    *("studentnumber", "studentno", "studentnr", "matriculationnumber", "candidate", "candidateid"),
    *("candidateno", "candidatenumber", "matrikelnummer", "matrikelnr", "matrikel", "schülernummer"),
    *("numéroétudiant", "numeroetudiant", "numérodétudiant", "numerodetudiant", "matrícula"),
)
FULL_NAMES = (
    *("userfullname", "fullname", "vollständigername", "vollstaendigername"),
    *("nomcompletdelutilisateur", "nomcomplet", "nombrecompletodelusuario", "nombrecompleto"),
    *("nomecompletodellutente", "nomecompletodoutilizador", "nomecompleto", "volledigenaamvandegebruiker"),
)
# German words for people in the ways in which both genders are written.
_PEOPLE = tuple(
    f"{person}{ending}"
    for person in ("schüler", "schueler", "nutzer", "benutzer", "teilnehmer")
    for ending in ("", "in", "innen", "/in", "*in", ":in", "(in)")
)
KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "learner": (
        *("learner", "learnerid", "user", "userid", "student", "studentid", "anonstudentid", "anonuserid"),
        *("anonid", "pupil", "pupilid", "participant", "participantid", "subjectid", "person", "personid"),
        *("username", "learnername", "studentname", "uid", "sid", "actor"),
        *("lernende", "lernender", "studierende", "studierender", *_PEOPLE),
        *("apprenant", "apprenante", "eleve", "élève", "etudiant", "étudiant", "étudiante", "utilisateur"),
        *("estudiante", "alumno", "alumna", "usuario", *STUDENT_NUMBERS, *FULL_NAMES),
    ),
    "action": (
        *("action", "skill", "skillname", "kc", "kcname", "knowledgecomponent", "concept", "conceptname"),
        *("skillid", "kcid", "conceptid", "topic", "topicname", "topicid", "competence", "actionid"),
        *("fertigkeit", "thema", "competencia", "tema"),
        *_ITEMS,
        # The context of an event of Moodle is the activity, its name only what was done there.
        *("eventcontext", "ereigniskontext", "contextedelévénement", "contextodelevento"),
        *("event", "eventname", "ereignisname", "nomdelévénement", "nombreevento", "nombredelevento", "verb"),
    ),
    "outcome": (
        *("outcome", "correct", "success", "iscorrect", "correctness", "result", "answeredcorrectly"),
        *("correctfirstattempt", "firstattempt", "passed", "right"),
        *("richtig", "korrekt", "gelöst", "bestanden", "erfolg", "erfolgreich", "ergebnis", "resultat"),
        *("réussite", "reussite", "réussi", "reussi", "correcto", "correcta", "acierto", "resultado"),
    ),
    "time": (
        *("time", "timestamp", "ts", "datetime", "starttime", "endtime", "eventtime", "timems", "unixtime"),
        *("createdat", "submittedat", "answeredat", "finishedat", "servertime", "servertimestamp", "date"),
        *("zeit", "zeitpunkt", "zeitstempel", "datum", "heure", "horodatage", "fecha", "hora"),
        *("data/ora", "data/hora", "tijd", "czas"),
    ),
    "item": _ITEMS,
}
_EVERY_KNOWN_NAME = frozenset(name for names in KNOWN_NAMES.values() for name in names)


@dataclass(frozen=True)
class Columns:
    """The columns as the user named them; `None` means: find it by its name.

    `group` is never guessed: which groups matter is the custodian's decision.
    """

    learner: Annotated[str | None, "Column that names the learner."] = None
    action: Annotated[str | None, "Column that names the action (skill, task, word)."] = None
    outcome: Annotated[str | None, "Column with the outcome, 0 or 1."] = None
    time: Annotated[str | None, "Column with the time, when rows are not in order."] = None
    item: Annotated[str | None, "Column that names the item that was answered."] = None
    group: Annotated[str | None, "Column with a group of each learner; figures are shown for each group."] = (
        None
    )

    def given(self) -> dict[str, str]:
        """The roles for which a column was named."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def without_composed(self, names: Sequence[str]) -> Columns:
        """Without an action that is named as an action of several columns is called: that is the usual one."""
        usual = (
            self.action is not None and len(names) > 1 and plain(self.action) == plain(COMPOSED.join(names))
        )
        return replace(self, action=None) if usual else self


def named_columns(given: Mapping[str, str] | str) -> dict[str, str]:
    """Columns by their roles, as a mapping or as a user types them: learner=id,action=skill."""
    if isinstance(given, str):
        parts = [part.partition("=") for part in given.split(",") if part.strip()]
        given = {role.strip(): name.strip() for role, _, name in parts}
    if not all(role in ROLES and name for role, name in given.items()):
        raise UsageError(
            "columns of one file are written as role=column, by commas.",
            hint=f"the roles are {', '.join(ROLES)}.",
            code="bad-columns",
        )
    return dict(given)


def plain(name: str) -> str:
    """A column's name without case, spaces, underscores, hyphens, dots and apostrophes."""
    # Some systems write an accent as a character of its own.
    return re.sub(r"[\s_.\-'’]+", "", unicodedata.normalize("NFC", name)).casefold()


def count_known(names: Sequence[str]) -> int:
    """How many of the names are those of a role: none of them, and it may be no header at all."""
    return sum(plain(name) in _EVERY_KNOWN_NAME for name in names)


def describe_columns(names: Sequence[str], *known: Sequence[str]) -> str:
    """The columns found, by name only where the name is one of ours, or of the `known` ones as `plain` writes them.

    A file may lack its header, and then a row of data stands where the names should be:
    one such row is "ana, problem, correct", and "ana" is not for a message.
    """
    ours = _EVERY_KNOWN_NAME.union(*known)
    shown = [f"'{name}'" for name in names if plain(name) in ours]
    if not shown:
        return f"found {counted(len(names), 'column')}, none with a name that the reader knows"
    n_others = len(names) - len(shown)
    return f"found {', '.join(shown)}" + (f" and {counted(n_others, 'other column')}" if n_others else "")


class ColumnChooser:
    """Chooses a column for each role: the one that was asked for, or else the first with a known name.

    A column plays one role at most. `asked` holds the roles for which a user can name a column, and the
    names given; these columns are chosen at once, so that no other role takes them. `known` holds the
    names of each role as `plain` writes them, the preferred first. `settings` maps a role to the parameter
    by which a user names its column, where that is not the role.
    """

    def __init__(
        self,
        names: Sequence[str],
        file: str,
        asked: Mapping[str, str | None] = MappingProxyType({}),
        known: Mapping[str, Sequence[str]] = KNOWN_NAMES,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.positions: dict[str, int] = {}
        self.notes: list[str] = []
        self._names = names
        self._plains = [plain(name) for name in names]
        self._file = file
        self._known = known
        self._settings = {role: settings.get(role, role) for role in asked}
        for role, name in asked.items():
            if name is not None:
                self.positions[role] = self._asked(role, name)

    @property
    def columns(self) -> dict[str, str]:
        """The name of each role's column."""
        return {role: self._names[position] for role, position in self.positions.items()}

    def allow(self, role: str, known: Sequence[str] | None = None) -> bool:
        """Choose the role's column if there is one, and say whether there is.

        `known` are a format's own names: the first column of such a name is the one.
        """
        if role in self.positions:
            return True
        taken = set(self.positions.values())
        fitting = [at for at in self._fitting(role, known) if at not in taken]
        if not fitting:
            return False
        position = fitting[0]
        if known is not None:
            self.positions[role] = position
            return True
        alike = [other for other in fitting if self._plains[other] == self._plains[position]]
        if len(alike) > 1:
            if role not in self._settings:
                return False
            raise DataError(
                f"{self._file}: {len(alike)} columns could be the {role}.",
                hint="name the column, or rename the others.",
                code="ambiguous-column",
                settings=self._setting(role),
            )
        if len(fitting) > 1:
            # One of our own names for it, so nobody's.
            self.notes.append(
                f"{self._file}: {len(fitting)} columns could be the {role}; '{self._plains[position]}' was taken."
            )
        self.positions[role] = position
        return True

    def require(self, *roles: str) -> None:
        """Choose the columns of these roles; an error names all that are missing."""
        missing = [role for role in roles if not self.allow(role)]
        for role in missing:
            for position in self._fitting(role):
                raise self._two_roles(role, position)
        if missing:
            raise DataError(
                f"{self._file}: found no column for the {' and the '.join(missing)}; {self._describe()}.",
                hint=f"name {'it' if len(missing) == 1 else 'them'}; the file's first line has to hold the "
                "columns' names.",
                code="no-such-column",
                settings=tuple(setting for role in missing for setting in self._setting(role)),
                roles=missing,
                taken=sorted(self.positions.values()),
            )

    def _asked(self, role: str, asked: str) -> int:
        fitting = [position for position, name in enumerate(self._names) if name == asked.strip()]
        fitting = fitting or self._places(plain(asked))
        if len(fitting) != 1:
            raise DataError(
                f"{self._file}: asked for column '{asked}', "
                + (
                    f"which {len(fitting)} columns could be."
                    if fitting
                    else f"which is not there; {self._describe()}."
                ),
                hint="write the column's name as it stands in the file's first line.",
                code="ambiguous-column" if fitting else "no-such-column",
                settings=self._setting(role),
                roles=[role],
                column=asked,
                taken=sorted(self.positions.values()),
            )
        if fitting[0] in self.positions.values():
            raise self._two_roles(role, fitting[0])
        return fitting[0]

    def _two_roles(self, role: str, position: int) -> UsageError:
        other = next(other for other, taken in self.positions.items() if taken == position)
        return UsageError(
            f"{self._file}: one column was named for two roles, the {other} and the {role}.",
            hint="choose different columns.",
            code="column-for-two-roles",
            settings=self._setting(other) + self._setting(role),
        )

    def _fitting(self, role: str, known: Sequence[str] | None = None) -> list[int]:
        """The columns with a known name of the role, the preferred first."""
        names = dict.fromkeys(self._known.get(role, ()) if known is None else known)
        return [position for name in names for position in self._places(name)]

    def _places(self, name: str) -> list[int]:
        return [position for position, plain_name in enumerate(self._plains) if plain_name == name]

    def _setting(self, role: str) -> tuple[str, ...]:
        return (self._settings[role],) if role in self._settings else ()

    def _describe(self) -> str:
        return describe_columns(self._names, *self._known.values())


def choose_columns(
    names: Sequence[str],
    columns: Columns,
    file: str,
    *,
    defaults: Columns = Columns(),  # noqa: B008 (frozen)
    required: Sequence[str] = REQUIRED,
) -> dict[str, int]:
    """The position of each role's column: as asked, else the format's own name, else by known names."""
    chooser = ColumnChooser(names, file, vars(columns))
    for role, name in defaults.given().items():
        chooser.allow(role, known=(plain(name),))
    for role in KNOWN_NAMES:
        chooser.allow(role)
    chooser.require(*required)
    return chooser.positions


def reject_duplicates(names: Sequence[str], file: str) -> None:
    """Refuse a header in which two columns have one name: nobody could say which one is meant."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            # By position: in a file without a header the "name" would be a learner's value.
            raise DataError(
                f"{file}: columns {seen[name]} and {position} have the same name.",
                hint="rename one of them, or remove it if it is a copy.",
                code="two-columns-of-one-name",
            )
        seen[name] = position
