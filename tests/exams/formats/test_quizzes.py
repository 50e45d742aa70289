"""Exports of quizzes: what is recognised by the header, which attempt counts, what stays out."""

import pytest

from tests.support.workbook import workbook
from understudy.cli.terminal import tell_reading
from understudy.errors import DataError
from understudy.exams.formats.canvas_quiz import canvas_quiz
from understudy.exams.formats.moodle_quiz import moodle_quiz
from understudy.exams.formats.reading import ResponseOptions, read_responses

ENGLISH = [
    "Last name",
    "First name",
    "Email address",
    "State",
    "Started on",
    "Completed",
    "Time taken",
    "Grade/10.00",
]
GERMAN = [
    "Nachname",
    "Vorname",
    "E-Mail-Adresse",
    "Status",
    "Begonnen am",
    "Beendet",
    "Verbrauchte Zeit",
    "Bewertung/10,00",
]
FRENCH = [
    "Nom de famille",
    "Prénom",
    "Adresse de courriel",
    "État",
    "Commencé le",
    "Terminé",
    "Temps utilisé",
    "Note/10,00",
]
DUTCH = [
    "Achternaam",
    "Voornaam",
    "E-mailadres",
    "Status",
    "Begonnen op",
    "Voltooid",
    "Tijdsduur",
    "Cijfer/10,00",
]
CANVAS = [
    *("name", "id", "sis_id", "section", "submitted", "attempt", "4711: Was Ana Kestrel right?", "1.0"),
    *("4712: 2+2, or?", "2.0", "4713: Read this.", "0.0", "n correct", "n incorrect", "score"),
]


def rows_of(*attempts):
    """Rows of Moodle: who, grade, and points as they are written."""
    return [
        [who, who[:1], f"{who}@school.example", "Finished", "x", "y", "z", grade, *points]
        for who, grade, *points in attempts
    ]


@pytest.fixture
def read(tmp_path):
    def read(header, rows, kind="csv", **settings):
        path = tmp_path / f"quiz.{kind}"
        if kind == "xlsx":
            path.write_bytes(workbook([header, *rows]))
        else:
            text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in [header, *rows])
            path.write_text(text + "\n", encoding="utf-8")
        return read_responses(path, **settings)

    return read


ATTEMPTS = rows_of(
    ("ana", "7,50", "5,00", "2,50", "0,00"),
    ("bo", "2,50", "0,00", "2,50", "-"),
    ("bo", "10,00", "5,00", "2,50", "2,50"),
    ("bo", "5,00", "5,00", "0,00", "0,00"),
    ("cy", "-", "-", "-", "-"),
)


@pytest.mark.parametrize(
    ("people", "word", "average"),
    [
        (ENGLISH, "Q.", "Overall average"),
        (GERMAN, "F.", "Gesamtdurchschnitt"),
        (FRENCH, "Q.", "Moyenne globale"),
        (DUTCH, "V.", "Algemeen gemiddelde"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_grades_in_several_languages(read, people, word, average, kind):
    header = [*people, f"{word} 1 /5,00", f"{word} 2 /2,50", f"{word} 3 /2,50"]
    below = [average, *[""] * 6, "6,67", "3,33", "2,50", "0,83"]
    found = read(header, [*ATTEMPTS, below], kind)
    assert found.items == ("Q. 1", "Q. 2", "Q. 3")
    assert "learner" not in found.origin.columns
    assert any(f"the learner is in '{people[2]}'" in note for note in found.origin.notes)
    assert found.correct.tolist() == [[1, 1, 0], [0, 1, -1], [-1, -1, -1]]
    assert found.declared
    assert found.origin.named


@pytest.mark.parametrize(
    ("attempts", "bo"), [("first", [0, 1, -1]), ("last", [1, 0, 0]), ("best", [1, 1, 1]), (None, [0, 1, -1])]
)
def test_which_attempt_counts(read, attempts, bo):
    found = read([*ENGLISH, "Q. 1 /5.00", "Q. 2 /2.50", "Q. 3 /2.50"], ATTEMPTS, attempts=attempts)
    assert found.correct.tolist()[1] == bo
    assert any("2 further attempts do not count" in note for note in found.origin.notes)


def test_an_attempt_without_answers_counts_only_if_there_is_no_other(read):
    rows = rows_of(("ana", "-", "-"), ("ana", "5.00", "5.00"), ("bo", "-", "-"))
    assert read([*ENGLISH, "Q. 1 /5.00"], rows).correct.tolist() == [[1], [-1]]


def test_another_learners_attempts_do_not_change_a_row(read):
    """Which attempt counts follows from a learner's own rows: a neighbour's row stays as it is."""
    header = [*ENGLISH, "Q. 1 /5.00", "Q. 2 /2.50", "Q. 3 /2.50"]
    for attempts in ("first", "last", "best"):
        whole = read(header, ATTEMPTS, attempts=attempts).correct.tolist()
        fewer = read(header, [ATTEMPTS[0], ATTEMPTS[1], ATTEMPTS[4]], attempts=attempts).correct.tolist()
        assert (whole[0], whole[2]) == (fewer[0], fewer[2])


def test_responses_are_compared_with_the_right_answers(read):
    header = [*GERMAN, "Frage 1", "Antwort 1", "Richtige Antwort 1", "Antwort 2", "Richtige Antwort 2"]
    rows = rows_of(
        ("ana", "10,00", "Wo?", " paris.", "Paris", "4", "4"), ("bo", "0,00", "Wo?", "Rom", "Paris", "-", "4")
    )
    found = read(header, rows)
    assert found.items == ("Q. 1", "Q. 2")
    assert found.correct.tolist() == [[1, 1], [0, -1]]


def test_names_stand_for_learners_where_no_address_was_exported(read):
    header = ["Last name", "First name", "State", "Grade/10.00", "Q. 1 /10.00"]
    rows = [["Kestrel", "Ana", "Finished", "10.00", "10.00"], ["Kestrel", "Bo", "Finished", "0.00", "0.00"]]
    found = read(header, [*rows, ["Overall average", "", "", "5.00", "5.00"]])
    assert found.correct.tolist() == [[1], [0]]


@pytest.mark.parametrize("again", [("Muell", "Max"), ("MUELL", "max ")])
def test_two_people_of_one_name_are_not_merged_unless_attempts_are_declared(read, again):
    """Else the number of learners, and another one's answers, would depend on the name on one row."""
    header = ["Last name", "First name", "State", "Grade/2.00", "Q. 1 /1.00", "Q. 2 /1.00"]
    rows = [
        ["Muell", "Max", "Finished", "2.00", "1.00", "1.00"],
        ["Kestrel", "Ida", "Finished", "1.00", "1.00", "0.00"],
        ["Heron", "Jon", "Finished", "1.00", "0.00", "1.00"],
        [*again, "Finished", "0.00", "0.00", "0.00"],
    ]
    with pytest.raises(DataError, match=r"second time on line 5 \(1 such row\)") as caught:
        read(header, rows)
    assert caught.value.code == "not-one-row-each"
    assert caught.value.settings == ("attempts",)
    assert "muell" not in f"{caught.value} {caught.value.hint}".casefold()
    assert read(header, rows, attempts="first").correct.tolist() == [[1, 1], [1, 0], [0, 1]]
    assert read(header, rows, attempts="last").correct.tolist() == [[0, 0], [1, 0], [0, 1]]
    rows[0][0] = "Wren"
    assert read(header, rows).correct.tolist() == [[1, 1], [1, 0], [0, 1], [0, 0]]


def test_an_address_in_other_capitals_is_the_same_learner(read):
    rows = rows_of(("ana", "5.00", "5.00"), ("bo", "0.00", "0.00"), ("ana", "0.00", "0.00"))
    rows[2][2] = " Ana@School.Example"
    assert read([*ENGLISH, "Q. 1 /5.00"], rows).correct.tolist() == [[1], [0]]


def test_a_spreadsheets_zeros_in_an_id_of_canvas_make_no_other_learner(read):
    header = ["name", "id", "attempt", "1: a", "1.0", "n correct", "n incorrect", "score"]
    rows = [
        ["A", "0101", "1", "x", "1", "1", "0", "1"],
        ["A", "101.0", "2", "x", "0", "0", "1", "0"],
        ["B", "102", "1", "x", "0", "0", "1", "0"],
    ]
    assert read(header, rows).correct.tolist() == [[1], [0]]


@pytest.mark.parametrize("attempts", ["first", "last", "best"])
def test_a_quiz_of_canvas(read, attempts):
    rows = [
        ["Ana Kestrel", "101", "", "A", "t", "1", "yes", "1.0", "4", "2.0", "", "0.0", "2", "0", "3.0"],
        ["Bo Heron", "102", "", "A", "t", "2", "yes", "1.0", "4", "2.0", "", "0.0", "2", "0", "3.0"],
        ["Bo Heron", "102", "", "A", "t", "1", "no", "0.0", "", "", "", "0.0", "0", "2", "0.0"],
    ]
    found = read(CANVAS, rows, attempts=attempts)
    assert found.items == ("question 4711", "question 4712")
    assert found.correct.tolist() == [[1, 1], [0, -1] if attempts == "first" else [1, 1]]
    assert "Kestrel" not in repr(found.origin.notes)
    assert any("1 question without points is left out" in note for note in found.origin.notes)


def test_equal_points_in_the_header_of_canvas_are_not_one_column(read):
    header = ["name", "id", "attempt", "1: a", "1.0", "2: b", "1.0", "n correct", "n incorrect", "score"]
    found = read(
        header,
        [
            ["A", "1", "1", "x", "1", "y", "0", "1", "1", "1"],
            ["B", "2", "1", "x", "0", "y", "1", "1", "1", "1"],
        ],
    )
    assert found.correct.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "header",
    [
        ["learner", "Q1 (2 points)", "Q2"],
        ["learner", "1/2", "3/4"],
        ["Grade/10.00", "Q. 1 /5.00"],
        ["name", "id", "4711: text", "1.0"],
        ["learner", "item", "correct"],
    ],
)
def test_what_is_no_quiz_is_read_as_before(header):
    assert moodle_quiz(header) is None
    assert canvas_quiz(header) is None


def test_cells_do_not_decide_what_an_item_is(read):
    header = [*ENGLISH, "Q. 1 /5.00", "Q. 2 /5.00"]
    with pytest.raises(DataError) as caught:
        read(header, rows_of(("ana", "5.00", "5.00", "Requires grading"), ("bo", "0.00", "0.00", "5.00")))
    assert caught.value.code == "not-an-answer"
    assert "Requires" not in str(caught.value)


def test_the_command_line_names_the_option_of_attempts(read, capsys):
    options = ResponseOptions()
    found = read([*GERMAN, "F 1 /5,00", "F 2 /2,50", "F 3 /2,50"], ATTEMPTS)
    tell_reading(found.origin, options, quiet=False)
    told = capsys.readouterr().err
    assert "--attempts chooses another" in told
    assert "`" not in told
    assert "Email address" not in told
