"""Quiz reports of Moodle: grades ("Q. 1 /5.00"), and responses with right answers ("Response 1", "Right answer 1").

Moodle writes them in the language of the teacher. People's columns are those before the grade; a learner is their
e-mail address. Where it is not exported, their names stand for it, which two learners may share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from understudy.core.files.columns import plain
from understudy.exams.formats.quiz import Question, Quiz

# "Grade/10.00", "Bewertung/10,00", "Note/20,00": no number before the slash. With a space, as in "Q. 1 /5.00", or not.
_GRADE = re.compile(r"^[^\d/]+/\s*\d+(?:[.,]\d+)?$")
_QUESTION = re.compile(r"^[^\d/]{0,20}(?P<number>\d+)\s*/\s*(?P<maximum>\d+[.,]\d+)$")
_NUMBERED = re.compile(r"^(?P<word>\D+?)\s*(?P<number>\d{1,4})$")
_MAIL = ("mail", "correo", "courriel", "epost", "sähköposti", "почт")
_RESPONSE = frozenset(
    (
        *("response", "antwort", "réponse", "respuesta", "risposta", "resposta", "antwoord", "svar"),
        *("respons", "odpowiedź", "odpověď", "ответ", "vastaus", "yanıt", "válasz", "răspuns"),
    )
)
_RIGHT = frozenset(
    (
        *("right answer", "correct answer", "richtige antwort", "bonne réponse", "réponse correcte"),
        *("respuesta correcta", "risposta corretta", "resposta correta", "resposta certa", "juiste antwoord"),
        *("goede antwoord", "correcte antwoord", "rätt svar", "riktig svar", "rigtigt svar", "oikea vastaus"),
        *("prawidłowa odpowiedź", "poprawna odpowiedź", "správná odpověď", "правильный ответ", "doğru yanıt"),
        *("helyes válasz", "răspuns corect"),
    )
)


def moodle_quiz(names: Sequence[str]) -> Quiz | None:
    """The quiz that a header is of; None if it is not one of Moodle's."""
    names = [" ".join(name.split()) for name in names]
    grade = next((at for at, name in enumerate(names) if _GRADE.match(name)), None)
    if grade is None or grade < 2:
        return None
    questions = _grades(names, grade)
    kind = "Moodle's report of grades"
    if not questions:
        questions = _responses(names, grade)
        kind = "Moodle's report of responses, each compared with the right answer as a text"
    if not questions or any(_QUESTION.match(name) for name in names[:grade]):
        return None
    mail = [at for at, name in enumerate(names[:grade]) if any(word in plain(name) for word in _MAIL)]
    learner = (mail[0],) if mail else (0, 1)
    # An average has its name in the first column, and no state, time or address.
    filled = tuple(range(1, grade))
    return Quiz(kind, learner, tuple(questions), filled, total=grade, unique=bool(mail))


def _grades(names: list[str], grade: int) -> list[Question]:
    """The questions of a report of grades, called as in one of responses, whatever the language."""
    found = [(at, _QUESTION.match(name)) for at, name in enumerate(names) if at > grade]
    return [Question(f"Q. {match['number']} /{match['maximum']}", at) for at, match in found if match]


def _responses(names: list[str], grade: int) -> list[Question]:
    given: dict[int, int] = {}
    right: dict[int, int] = {}
    for at, name in enumerate(names[grade + 1 :], grade + 1):
        if (found := _NUMBERED.match(name)) is not None:
            word, number = found["word"].casefold().strip(), int(found["number"])
            if word in _RIGHT:
                right.setdefault(number, at)
            elif word in _RESPONSE:
                given.setdefault(number, at)
    return [Question(f"Q. {number}", at, right[number]) for number, at in given.items() if number in right]
