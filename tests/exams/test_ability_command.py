"""`understudy ability` and `understudy page` as a student and a teacher run them."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.exams.support.made_difficulties import make_difficulties, write_difficulties
from tests.support.command import run
from understudy.core.privacy.guarantee import Guarantee
from understudy.exams.ability import reestimated
from understudy.exams.posterior import abilities
from understudy.exams.responses import Responses
from understudy.exams.student_page import read_strings

pytestmark = pytest.mark.functional

MADE = make_difficulties((-2.0, -0.5, 0.4, 2.2), 0.2)
NAMES = [item.name for item in MADE.items]


@pytest.fixture
def room(tmp_path):
    write_difficulties(tmp_path / "difficulties.json", MADE)
    return tmp_path


def expected(*rows):
    return abilities(MADE, Responses.from_matrix(list(rows), NAMES))


def test_one_student_with_two_columns(room):
    (room / "mine.csv").write_text("Item;Correct\nTask 4;1\n Task 1;maybe\nTask 2;0\n")
    done = run("ability", "difficulties.json", "--answers", "mine.csv", cwd=room)
    assert done.returncode == 3
    assert "line 3 holds an outcome that is neither right nor wrong" in done.stderr
    (room / "mine.csv").write_text("Item;Correct\nTask 4;1\n Task 1;no\nTask 2;0\nTask 3;\n")
    done = run("ability", "difficulties.json", "--answers", "mine.csv", cwd=room)
    assert done.returncode == 0, done.stderr
    found = expected([0, 0, -1, 1])
    assert f"{found.ability[0]:.2f}" in done.stdout
    assert f"{100 * found.passing[0]:.0f} %" in done.stdout
    assert "surprisingly passed" in done.stdout
    assert done.stdout.count("not answered") == 1
    assert "at least 2 of 4 items" in done.stdout
    asked = run("ability", "difficulties.json", "--answers", "mine.csv", "--json", cwd=room)
    content = json.loads(asked.stdout)
    assert content["students"][0]["ability"] == pytest.approx(found.ability[0], abs=1e-12)
    assert [one["item"] for one in content["chances"]] == NAMES
    assert content["chances"][3]["stands_out"] == "surprisingly passed"


def test_the_published_estimate_on_request(room):
    (room / "mine.csv").write_text("Item;Correct\nTask 1;1\nTask 2;1\nTask 3;0\nTask 4;0\n")
    command = ("ability", "difficulties.json", "--answers", "mine.csv", "--estimate", "published")
    done = run(*command, cwd=room)
    assert done.returncode == 0, done.stderr
    assert "re-estimated as published, with a penalty of 0.02" in " ".join(done.stdout.split())
    responses = Responses.from_matrix([[1, 1, 0, 0]], NAMES)
    for more, penalty in (((), 0.02), (("--penalty", "0.5"), 0.5)):
        content = json.loads(run(*command, *more, "--json", cwd=room).stdout)
        found = reestimated(MADE, responses, penalty)
        assert (content["estimate"], content["penalty"]) == ("published", penalty)
        assert content["students"][0]["ability"] == pytest.approx(found.ability[0], abs=1e-12)
        assert content["students"][0]["low"] is None
        assert content["chances"][0]["chance_by_other_answers"] is None
    # That of the difficulties, where they were fitted with one.
    fitted = replace(MADE, provenance={"penalty": {"value": 3.0, "source": "given"}})
    write_difficulties(room / "fitted.json", fitted)
    content = json.loads(run("ability", "fitted.json", *command[2:], "--json", cwd=room).stdout)
    assert content["penalty"] == 3.0


def test_the_published_estimate_knows_no_guesses_and_the_posterior_no_penalty(room):
    (room / "mine.csv").write_text("Item;Correct\nTask 1;1\nTask 2;1\nTask 3;0\nTask 4;0\n")
    write_difficulties(room / "guessed.json", make_difficulties((-2.0, -0.5, 0.4, 2.2), 0.2, guess=0.25))
    done = run("ability", "guessed.json", "--answers", "mine.csv", "--estimate", "published", cwd=room)
    assert done.returncode == 2
    assert "which it does not know" in " ".join(done.stderr.split())
    for options in (("--penalty", "0.02"), ("--estimate", "published", "--penalty", "0")):
        done = run("ability", "difficulties.json", "--answers", "mine.csv", *options, cwd=room)
        assert done.returncode == 2
        assert "Hint:" in done.stderr


def test_a_sheet_and_a_list_give_the_same_table(room):
    matrix = [[1, 1, 0, 0], [1, 0, -1, 1], [0, 0, 0, 0]]
    frame = pl.DataFrame(
        {"learner": ["ana", "bo", "cy"], **dict(zip(NAMES, zip(*matrix, strict=True), strict=True))}
    )
    wide = frame.with_columns(pl.col(NAMES).replace(-1, None))
    wide.write_csv(room / "wide.csv")
    long = wide.unpivot(NAMES, index="learner", variable_name="item", value_name="correct").drop_nulls()
    long.write_csv(room / "long.csv")
    found = expected(*matrix)
    for name in ("wide", "long"):
        done = run(
            "ability", "difficulties.json", "--answers", f"{name}.csv", "-o", f"{name}-out.csv", cwd=room
        )
        assert done.returncode == 0, done.stderr
        assert "abilities of 3 students" in done.stdout
        # What goes into a file is not told on the screen as well.
        assert "ana" not in done.stdout + done.stderr
        table = pl.read_csv(room / f"{name}-out.csv").sort("learner")
        assert table["learner"].to_list() == ["ana", "bo", "cy"]
        assert table["answered"].to_list() == [4, 3, 4]
        np.testing.assert_allclose(table["ability"], found.ability, atol=1e-6)
        np.testing.assert_allclose(table["high"], found.high, atol=1e-6)
        np.testing.assert_allclose(table["pass_chance"], found.passing, atol=1e-6)
    shown = run("ability", "difficulties.json", "--answers", "wide.csv", "--pass-mark", "1", cwd=room)
    assert "bo" in shown.stdout
    assert "at least 4 of 4 items" in shown.stdout
    assert "Chances in another sitting" not in shown.stdout


def ability_of(room, made, text, *arguments):
    write_difficulties(room / "made.json", made)
    (room / "answers.csv").write_text(text)
    command = ("ability", "made.json", "--answers", "answers.csv", *arguments)
    shown = run(*command, cwd=room)
    assert shown.returncode == 0, shown.stderr
    return json.loads(run(*command, "--json", cwd=room).stdout), shown


WIDE = "learner,Task 1,Task 2,Task 3\nana,1,,0\n"
OWN = "item,correct\nTask 1,1\nTask 2,\nTask 3,0\n"
LISTED = "learner,item,correct\nana,Task 1,1\nana,Task 2,\nana,Task 3,0\n"


@pytest.mark.parametrize(
    ("text", "said", "arguments", "wrong", "note"),
    [
        (WIDE, "counted as wrong", (), True, "1 missing answer counts as wrong, as in the difficulties"),
        (WIDE, "not asked", (), False, "1 missing answer is left out. To change that: --missing wrong."),
        (WIDE, None, (), False, "1 missing answer is left out"),
        (
            WIDE,
            "counted as wrong",
            ("--missing", "skipped"),
            False,
            "1 missing answer is left out, as asked.",
        ),
        (WIDE, "not asked", ("--missing", "wrong"), True, "1 missing answer counts as wrong, as asked."),
        (LISTED, "counted as wrong", (), False, "a list does not tell who left a task blank"),
        (LISTED, "counted as wrong", ("--missing", "wrong"), True, "1 missing answer counts as wrong"),
    ],
)
def test_blanks_count_as_in_the_difficulties_or_as_asked(room, text, said, arguments, wrong, note):
    made = replace(MADE, provenance={} if said is None else {"missing": said})
    content, shown = ability_of(room, made, text, *arguments)
    # The fourth task is not in the file, and stays unanswered.
    found = expected([1, 0 if wrong else -1, 0, -1])
    assert content["students"][0]["ability"] == pytest.approx(found.ability[0], abs=1e-12)
    assert content["missing_answers"] == {"count": 1, "counted_as": "wrong" if wrong else "skipped"}
    assert note in shown.stderr
    assert ("blank: wrong" in shown.stdout) == wrong


def test_one_student_gets_no_verdict_before_everything_is_entered(room):
    """As on the student's page: whoever enters only what was right would be told too much."""
    made = replace(MADE, provenance={"missing": "counted as wrong"})
    content, shown = ability_of(room, made, OWN)
    assert content["still_to_be_entered"] == 1
    assert content["students"][0]["pass_chance"] is None
    assert content["students"][0]["ability"] is None
    assert content["chances"] == []
    assert "Still to be entered: 1 of 4. Where you stand is shown once every item is entered" in shown.stdout
    assert "--missing wrong says that the rest was wrong" in shown.stdout
    for text, arguments, answers in (
        (f"{OWN}Task 4,1\n", (), [1, 0, 0, 1]),
        (OWN, ("--missing", "wrong"), [1, 0, 0, 0]),
        (OWN, ("--missing", "skipped"), [1, -1, 0, -1]),
    ):
        content, shown = ability_of(room, made, text, *arguments)
        assert content["still_to_be_entered"] == 0
        assert content["students"][0]["pass_chance"] == pytest.approx(expected(answers).passing[0])
        assert len(content["chances"]) == 4


def test_points_are_right_from_the_share_of_the_difficulties_on(room):
    text = "learner,Task 1 (10 points),Task 2 (10 points)\nana,6,8\n"
    for share, arguments, answers in (
        (0.7, (), [0, 1, -1, -1]),
        (None, (), [1, 1, -1, -1]),
        (0.7, ("--pass", "0.9"), [0, 0, -1, -1]),
    ):
        content, _ = ability_of(room, replace(MADE, provenance={"pass_share": share}), text, *arguments)
        assert content["students"][0]["ability"] == pytest.approx(expected(answers).ability[0], abs=1e-12)


def test_grades_are_right_by_the_mark_of_the_difficulties(room):
    made = replace(MADE, provenance={"pass_share": "<=4"})
    content, _ = ability_of(room, made, 'learner,Task 1,Task 2\nana,"4,0",5\n')
    assert content["students"][0]["ability"] == pytest.approx(expected([1, 0, -1, -1]).ability[0], abs=1e-12)


def test_one_student_without_a_name_is_you(room):
    content, shown = ability_of(room, MADE, "task 1,TASK2\n1,0\n")
    assert content["students"][0]["learner"] == "you"
    assert content["students"][0]["ability"] == pytest.approx(expected([1, 0, -1, -1]).ability[0], abs=1e-12)
    assert "each row was taken" not in shown.stderr
    content, shown = ability_of(room, MADE, "Task 1,Task 2\n1,0\n0,0\n")
    assert [one["learner"] for one in content["students"]] == ["1", "2"]
    assert "each row was taken for one student" in shown.stderr


@pytest.mark.parametrize("text", ["Task 1,1\nTask 2,0\n", "was,wie\nTask 1,gut\n", "Task 1\n1\n"])
def test_hints_begin_with_what_one_student_writes(room, text):
    (room / "mine.csv").write_text(text)
    done = run("ability", "difficulties.json", "--answers", "mine.csv", cwd=room)
    assert done.returncode == 3
    assert "item,correct" in done.stderr.partition("Hint: ")[2][:70]


def test_a_long_class_is_cut_on_the_screen(room):
    rng = np.random.default_rng(1)
    pl.DataFrame(rng.integers(0, 2, (30, 4)), schema=NAMES).write_csv(room / "class.csv")
    done = run("ability", "difficulties.json", "--answers", "class.csv", cwd=room)
    assert done.returncode == 0, done.stderr
    assert "and 10 more students" in done.stdout


def test_unknown_items_and_wrong_use_are_told(room):
    (room / "mine.csv").write_text("item,correct\nEssay,1\nTask 1,0\n")
    done = run("ability", "difficulties.json", "--answers", "mine.csv", cwd=room)
    assert done.returncode == 3
    assert "1 of the 2 items of the answers has no released difficulty: 'Essay'" in done.stderr
    assert "The items of the exam: 'Task 1', 'Task 2'" in done.stderr
    (room / "mine.csv").write_text("item,correct\nTask 1,0\n")
    for arguments, code, words in (
        (("--pass-mark", "0"), 2, "pass mark"),
        (("-o", "out.txt"), 2, "written as .csv"),
        (("-o", "mine.csv"), 2, "the data itself"),
    ):
        done = run("ability", "difficulties.json", "--answers", "mine.csv", *arguments, cwd=room)
        assert done.returncode == code
        assert words in done.stderr
    assert run("ability", "mine.csv", "--answers", "mine.csv", cwd=room).returncode == 3
    assert run("ability", "absent.json", "--answers", "mine.csv", cwd=room).returncode == 2
    assert run("ability", "difficulties.json", "--answers", "absent.csv", cwd=room).returncode == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,correct\nTask 1,CANARY\n", "line 2"),
        ("item,correct\nTask 1,1\nTask 1,0\n", "line 3 names an item for a second time"),
        ("item,correct\nTask 1,1,CANARY\n", "line 2 has 3 fields"),
        ("item,correct\n", "no answer"),
    ],
)
def test_damaged_answers_are_told_by_line_without_their_content(room, text, words):
    (room / "mine.csv").write_text(text)
    done = run("ability", "difficulties.json", "--answers", "mine.csv", cwd=room)
    assert done.returncode == 3
    assert words in done.stderr
    assert "CANARY" not in done.stdout + done.stderr


def test_a_page_in_two_languages_and_in_one_of_ones_own(room):
    done = run("page", "difficulties.json", "-o", "page.html", "--title", "Test <1>", cwd=room)
    assert done.returncode == 0, done.stderr
    assert "Guarantee of the difficulties: epsilon 2" in done.stdout
    text = (room / "page.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in text
    assert "<h1>Test &lt;1&gt;</h1>" in text
    run("page", "difficulties.json", "-o", "seite.html", "--language", "de", cwd=room)
    assert '<html lang="de">' in (room / "seite.html").read_text(encoding="utf-8")
    strings = {**read_strings("en"), "lang": "fr", "right": "Juste"}
    (room / "fr.json").write_text(json.dumps(strings))
    asked = run("page", "difficulties.json", "-o", "page-fr.html", "--strings", "fr.json", "--json", cwd=room)
    assert json.loads(asked.stdout)["items"] == 4
    assert "Juste" in (room / "page-fr.html").read_text(encoding="utf-8")
    del strings["wrong"]
    (room / "fr.json").write_text(json.dumps(strings))
    done = run("page", "difficulties.json", "-o", "x.html", "--strings", "fr.json", cwd=room)
    assert done.returncode == 3
    assert "1 text is missing (wrong)" in done.stderr
    assert not (room / "x.html").exists()


def test_the_texts_to_translate_are_printed_without_anything_else(tmp_path):
    done = run("page", "--print-strings", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == read_strings("en")


def test_a_page_without_a_guarantee_is_refused_or_says_why_not(room):
    write_difficulties(room / "bare.json", make_difficulties(guarantee=Guarantee.none("an exact fit")))
    done = run("page", "bare.json", "-o", "page.html", cwd=room)
    assert done.returncode == 4
    assert "an exact fit" in done.stderr
    assert not (room / "page.html").exists()
    done = run("page", "bare.json", "-o", "page.html", "--accept-risk", "a drill", cwd=room)
    assert done.returncode == 0
    assert "a drill" in (room / "page.html").read_text()
    for arguments in (("-o", "page.pdf"), ("-o", "p.html", "--language", "xx")):
        assert run("page", "difficulties.json", *arguments, cwd=room).returncode == 2
    both = run(
        "page", "difficulties.json", "-o", "p.html", "--language", "de", "--strings", "s.json", cwd=room
    )
    assert both.returncode == 2


@pytest.mark.parametrize("verb", ["ability", "page"])
def test_help_ends_with_an_example(verb, tmp_path):
    done = run(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"Example: understudy {verb} difficulties.json" in " ".join(done.stdout.split())
