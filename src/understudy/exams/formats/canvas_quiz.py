"""The Student Analysis report of a Canvas quiz: per question a column of answers and a column of points.

The header of a question is its number and its text; the next one is the points that it gives at most. A text may name
people, so questions are called by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from understudy.core.files.words import counted
from understudy.exams.formats.quiz import Question, Quiz

_QUESTION = re.compile(r"^(?P<number>\d+):")
# A second "1.0" may have been given a suffix by whoever saved the file.
_POINTS = re.compile(r"^(?P<points>\d+(?:\.\d+)?)(?:_duplicated_\d+|\.\d+)?$")
_FIRST, _LAST = ("name", "id"), ("n correct", "n incorrect", "score")


def canvas_quiz(names: Sequence[str]) -> Quiz | None:
    """The quiz that a header is of; None if it is not one of Canvas's."""
    folded = [" ".join(name.split()).casefold() for name in names]
    if tuple(folded[:2]) != _FIRST or "attempt" not in folded or not set(_LAST) <= set(folded):
        return None
    attempt = folded.index("attempt")
    questions, without = [], 0
    for at in range(attempt + 1, len(folded) - 1):
        found, points = _QUESTION.match(folded[at]), _POINTS.match(folded[at + 1])
        if found is None or points is None:
            continue
        if float(points["points"]) == 0:
            without += 1
            continue
        questions.append(Question(f"question {found['number']} ({points['points']} points)", at + 1))
    if not questions or len({question.title for question in questions}) < len(questions):
        return None
    notes = (f"{counted(without, 'question')} without points {'is' if without == 1 else 'are'} left out.",)
    return Quiz(
        "Canvas's Student Analysis",
        (folded.index("id"),),
        tuple(questions),
        attempt=attempt,
        total=folded.index("score"),
        notes=notes if without else (),
    )
