"""The verb that a file is for, where it was given to the wrong one: an exam sheet, a log, keystrokes.

The readers themselves decide: a file that another job reads as it is, is a file of that job. They are asked
only after the verb's own reader has refused the file.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from understudy.errors import DataError, UnderstudyError

# Errors of readers about what a file is, as opposed to a cell of it.
_NOT_OF_THIS_JOB = (
    *("no-such-column", "unknown-format", "learner-on-each-row", "two-columns-of-one-name"),
    *("list-of-answers", "no-items", "not-an-answer", "not-one-row-each"),
)
# Errors about a cell of a file that has the columns of a log.
_ABOUT_CELLS = ("empty-cells", "not-an-outcome", "not-a-time", "times-from-a-start", "mixed-zones")
# What a file is, and the arguments of its command.
_Found = tuple[str, str] | None
# Fewer columns of answers may be a log with a flag or two.
_FEWEST_ITEMS = 3


def verb_for(error: UnderstudyError, arguments: Sequence[str]) -> tuple[str, str] | None:
    """What the file of an error is, and the command that it is for; None where no other verb would read it."""
    if error.code not in _NOT_OF_THIS_JOB or len(arguments) < 2:
        return None
    path = next((path for path in map(Path, arguments) if error.message.startswith(f"{path.name}:")), None)
    if path is None or not path.is_file():
        return None
    for verbs, look in _JOBS.items():
        # A column that is suggested is an answer, unless every column is one of keystrokes.
        answered = "declare" in error.fields and look is not _keystrokes
        asked = look is _without_outcomes and "outcome" in error.fields.get("suggested", ())
        if arguments[0] in verbs or answered or asked:
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
    """An exam sheet, also one that lacks maxima or has a row below its learners: its own verb says what to do."""
    from understudy.exams.formats.reading import read_responses

    # What costs nothing and writes nothing, so that no real figure is made by following advice.
    command = "difficulties {file} --explain"
    try:
        responses = read_responses(path)
    except DataError as error:
        if error.fields.get("declare", {}).keys() == {"pass_share"}:
            # Grades: that it is a sheet does not depend on which of them pass.
            responses = read_responses(path, pass_share="<=4")
            command += " --pass '<=NUMBER'"
        elif error.fields.get("n_items", 0) >= _FEWEST_ITEMS:
            return "an exam sheet", command
        else:
            raise
    if responses.origin.layout != "wide" or responses.n_items < _FEWEST_ITEMS:
        return None
    return "an exam sheet", command


def _log(path: Path) -> _Found:
    """A log, also one with cells that need a word from the user: `inspect` asks for it."""
    from understudy.logs.reading import read_log

    try:
        read_log(path)
    except DataError as error:
        if error.code not in _ABOUT_CELLS and "declare" not in error.fields:
            return None
    return "a log of actions", "inspect {file}"


def _without_outcomes(path: Path) -> _Found:
    """A log that has no outcomes, and so no difficulties."""
    from understudy.logs.reading import read_log

    return (
        None
        if read_log(path).outcome is not None
        else ("a log of actions without outcomes", "inspect {file}")
    )


# By the verbs of each job, in the order in which they are asked: the narrowest reader first.
_JOBS: dict[tuple[str, ...], Callable[[Path], _Found]] = {
    ("keystrokes",): _keystrokes,
    ("difficulties", "ability", "page"): _exam,
    ("inspect", "synthesize", "audit", "study", "release", "difficulties", "ability"): _log,
    ("inspect", "synthesize", "audit", "study", "release"): _without_outcomes,
}
