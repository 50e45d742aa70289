"""Which column plays which role: named by the user, or found by the names that logs commonly use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from understudy.errors import DataError, UsageError

ROLES = ("learner", "action", "outcome", "time", "item", "group")
REQUIRED = ("learner", "action", "outcome")

# In order of preference, as `plain` writes them.
_ITEMS = (
    *("item", "itemid", "itemname", "problem", "problemid", "problemname", "question", "questionid"),
    *("exercise", "exerciseid", "exercisename", "task", "taskid", "taskname", "step", "stepid", "stepname"),
    *("activity", "activityid", "activityname", "aufgabe", "frage", "exercice", "tarea", "pregunta"),
)
KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "learner": (
        *("learner", "learnerid", "user", "userid", "student", "studentid", "anonstudentid", "anonuserid"),
        *("anonid", "pupil", "pupilid", "participant", "participantid", "subjectid", "person", "personid"),
        *("username", "learnername", "studentname", "uid", "sid", "actor"),
        *("lernende", "lernender", "schueler", "schüler", "studierende", "benutzer", "nutzer", "teilnehmer"),
        *("apprenant", "eleve", "élève", "etudiant", "étudiant", "utilisateur"),
        *("estudiante", "alumno", "alumna", "usuario"),
    ),
    "action": (
        *("action", "skill", "skillname", "kc", "kcname", "knowledgecomponent", "concept", "conceptname"),
        *("skillid", "kcid", "conceptid", "topic", "topicname", "topicid", "competence", "actionid"),
        *("fertigkeit", "thema", "competencia", "tema"),
        *_ITEMS,
        *("event", "eventname", "verb"),
    ),
    "outcome": (
        *("outcome", "correct", "success", "iscorrect", "correctness", "result", "answeredcorrectly"),
        *("correctfirstattempt", "firstattempt", "passed", "right"),
        *("richtig", "korrekt", "ergebnis", "resultat", "réussite", "reussite", "correcto", "resultado"),
    ),
    "time": (
        *("time", "timestamp", "datetime", "starttime", "endtime", "eventtime", "timems", "unixtime"),
        *("createdat", "submittedat", "answeredat", "finishedat", "servertime", "servertimestamp", "date"),
        *("zeit", "zeitpunkt", "zeitstempel", "datum", "heure", "horodatage", "fecha", "hora"),
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


def plain(name: str) -> str:
    """A column's name without case, spaces, underscores, hyphens and dots."""
    return re.sub(r"[\s_.\-]+", "", name).casefold()


def count_known(names: Sequence[str]) -> int:
    """How many of the names are those of a role: none of them, and it may be no header at all."""
    return sum(plain(name) in _EVERY_KNOWN_NAME for name in names)


def choose_columns(
    names: Sequence[str],
    columns: Columns,
    file: str,
    *,
    defaults: Columns = Columns(),  # noqa: B008 (frozen)
) -> dict[str, int]:
    """The position of each role's column: as asked, else the format's own name, else by known names."""
    asked = columns.given()
    chosen = {role: _position_of(name, names, file) for role, name in asked.items()}
    if len(set(chosen.values())) < len(chosen):
        raise UsageError(
            "one column was named for two roles.",
            hint="give --learner, --action, --outcome, --time, --item and --group different columns.",
        )
    plains = [plain(name) for name in names]
    usual = {role: (plain(name),) for role, name in defaults.given().items()}
    for role, candidates in (*usual.items(), *KNOWN_NAMES.items()):
        taken = set(chosen.values())
        found = [plains.index(name) for name in candidates if name in plains]
        free = [position for position in found if position not in taken]
        if role not in chosen and free:
            chosen[role] = free[0]
    missing = [role for role in REQUIRED if role not in chosen]
    if missing:
        raise DataError(
            f"{file}: found no column for the {' and the '.join(missing)}; {_describe(names)}.",
            hint=f"name {'it' if len(missing) == 1 else 'them'} with "
            + ", ".join(f"--{role}" for role in missing)
            + "; the file's first line has to hold the columns' names.",
        )
    return chosen


def reject_duplicates(names: Sequence[str], file: str) -> None:
    """Refuse a header in which two columns have one name: nobody could say which one is meant."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            # By position: in a file without a header the "name" would be a learner's value.
            raise DataError(
                f"{file}: columns {seen[name]} and {position} have the same name.",
                hint="rename one of them, or remove it if it is a copy.",
            )
        seen[name] = position


def _position_of(asked: str, names: Sequence[str], file: str) -> int:
    if asked in names:
        return list(names).index(asked)
    alike = [position for position, name in enumerate(names) if plain(name) == plain(asked)]
    if len(alike) == 1:
        return alike[0]
    raise DataError(
        f"{file}: asked for column '{asked}', "
        + (f"which {len(alike)} columns could be." if alike else f"which is not there; {_describe(names)}."),
        hint="write the column's name as it stands in the file's first line.",
    )


def _describe(names: Sequence[str]) -> str:
    """The columns found, by name only where the name is one of ours.

    A file may lack its header, and then a row of data stands where the names should be:
    one such row is "ana, problem, correct", and "ana" is not for a message.
    """
    known = [name for name in names if count_known([name])]
    if not known:
        return f"found {len(names)} columns, none with a name that the reader knows"
    shown = ", ".join(f"'{name}'" for name in known)
    others = len(names) - len(known)
    return f"found {shown}" + (f" and {others} columns with other names" if others else "")


def find_column(
    names: Sequence[str],
    asked: str | None,
    known: Sequence[str],
    file: str,
    *,
    role: str,
    option: str,
    notes: list[str],
) -> int:
    """The position of the column that was asked for, or of the first with a known name.

    Where several columns have a known name, a sentence in `notes` says which was taken.

    """
    plains = [plain(name) for name in names]
    if asked is not None:
        fitting = [position for position, name in enumerate(names) if name == asked.strip()]
        fitting = fitting or [position for position, name in enumerate(plains) if name == plain(asked)]
        if len(fitting) == 1:
            return fitting[0]
        raise DataError(
            f"{file}: asked for column '{asked}', "
            + (
                f"which {len(fitting)} columns could be."
                if fitting
                else f"which is not there; {there_are(names, known)}."
            ),
            hint=f"write {option} as it stands in the file's first line.",
        )
    found = next((plains.index(name) for name in known if name in plains), None)
    if found is None:
        raise DataError(
            f"{file}: found no column for the {role}; {there_are(names, known)}.",
            hint=f"name it with {option}; the file's first line has to hold the columns' names.",
        )
    if plains.count(plains[found]) > 1:
        raise DataError(
            f"{file}: {plains.count(plains[found])} columns could be the {role}.",
            hint=f"name it with {option}, or rename the others.",
        )
    n_fitting = sum(name in known for name in plains)
    if n_fitting > 1:
        # One of our own names for it, so nobody's.
        notes.append(
            f"{file}: {n_fitting} columns could be the {role}; '{plains[found]}' was taken. {option} chooses another."
        )
    return found


# A number, a time or an address: what a row of data has and a header has not.
_VALUE = re.compile(r"[-+]?[\d.,:/\s%-]*\d[\d.,:/\s%-]*|.*@.*|.*\d{1,2}:\d{2}.*|\d{4}-\d{2}-\d{2}.*")
_MOST_NAMES, _LONGEST_NAME = 30, 60


def there_are(names: Sequence[str], known: Sequence[str] = ()) -> str:
    """The columns of a file by name, if its first line is a header.

    It is taken for one when a name in it is known and nothing in it looks like a value: where a
    header is missing, a learner stands in its place, and that is not for a message.
    """
    heard = count_known(names) or any(plain(name) in known for name in names)
    if not heard or any(_VALUE.fullmatch(name.strip()) for name in names):
        return f"none of its {len(names)} columns has a name that tells, or the first line is no header"
    shown = ", ".join(f"'{name[:_LONGEST_NAME]}'" for name in names[:_MOST_NAMES])
    return f"its columns are {shown}" + (" and more" if len(names) > _MOST_NAMES else "")


def counted(number: int, what: str) -> str:
    """ "1 row", "2 rows": for nouns that take an s."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
