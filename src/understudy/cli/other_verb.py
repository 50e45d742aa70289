"""The verb that a file is for, where it was given to the wrong one: an exam sheet, a log, keystrokes, activity.

The readers themselves decide: a file that another job reads as it is, is a file of that job. They are asked
only after the verb's own reader has refused the file.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.errors import DataError, UnderstudyError

# Errors of readers about what a file is, as opposed to a cell of it.
_NOT_OF_THIS_JOB = (
    *("no-such-column", "unknown-format", "learner-on-each-row"),
    *("list-of-answers", "no-items", "not-an-answer", "not-one-row-each"),
)
# What a file is, and the arguments of its command.
_Found = tuple[str, str] | None
# Fewer columns of answers may be a log with a flag or two.
_FEWEST_ITEMS = 3


def verb_for(error: UnderstudyError, arguments: Sequence[str]) -> tuple[str, str] | None:
    """What the file of an error is, and the command that it is for; None where no other verb would read it."""
    if error.code not in _NOT_OF_THIS_JOB or "declare" in error.fields or len(arguments) < 2:
        return None
    path = next((path for path in map(Path, arguments) if error.message.startswith(f"{path.name}:")), None)
    if path is None or not path.is_file():
        return None
    for verbs, look in _JOBS.items():
        if arguments[0] in verbs:
            continue
        with contextlib.suppress(UnderstudyError):
            if (found := look(path)) is not None:
                what, command = found
                return what, f"understudy {command.format(file=shlex.quote(str(path)))}"
    return None


def _keystrokes(path: Path) -> _Found:
    from understudy.keystrokes.formats.reading import read_keystrokes

    read_keystrokes(path)
    return "keystrokes", "keystrokes profile {file} -o profiles.csv"


def _exam(path: Path) -> _Found:
    from understudy.exams.formats.reading import read_responses

    mark = ""
    try:
        found = read_responses(path)
    except DataError as error:
        if error.fields.get("declare", {}).keys() != {"pass_share"}:
            raise
        # Grades: that it is a sheet does not depend on which of them pass.
        mark, found = " --pass '<=NUMBER'", read_responses(path, pass_share="<=4")
    if found.origin.layout != "wide" or found.n_items < _FEWEST_ITEMS:
        return None
    return "an exam sheet", f"difficulties {{file}} -o difficulties.json{mark}"


def _log(path: Path) -> _Found:
    from understudy.logs.reading import read_log

    read_log(path)
    return "a log of actions", "inspect {file}"


def _activity(path: Path) -> _Found:
    """A log of who was active when, without outcomes: what habits are made of."""
    from understudy.core.events.reading import sniff
    from understudy.core.files.delimited import guess_separator, header_names
    from understudy.core.files.source import decode, first_lines, open_source

    source = open_source(path)
    if sniff(source)[0] not in ("csv", "tsv"):
        return None
    first = first_lines(decode(source, latin=True), 1)[0]
    names = {plain(name) for name in header_names(first, guess_separator(first))}
    has = {role: not names.isdisjoint(KNOWN_NAMES[role]) for role in ("learner", "time", "outcome")}
    moodle = {"time", "eventname", "userfullname"} <= names
    if not (moodle or (has["learner"] and has["time"] and not has["outcome"])):
        return None
    return (
        "a log of activity without outcomes",
        "cohort build {file} --scores SCORES --schema SCHEMA --term-start DATE -o cohort.parquet",
    )


# By the verbs of each job, in the order in which they are asked: the narrowest reader first.
_JOBS: dict[tuple[str, ...], Callable[[Path], _Found]] = {
    ("keystrokes",): _keystrokes,
    ("difficulties", "ability", "page"): _exam,
    ("inspect", "synthesize", "audit", "study", "release", "difficulties", "ability"): _log,
    ("cohort",): _activity,
}
