"""`understudy ability` and `understudy page` as a student and a teacher run them."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from made_difficulties import make_difficulties, write_difficulties
from understudy.difficulty.ability import abilities
from understudy.difficulty.page import read_strings
from understudy.privacy.guarantee import Guarantee
from understudy.records import Responses

MADE = make_difficulties((-2.0, -0.5, 0.4, 2.2), 0.2)
NAMES = [item.name for item in MADE.items]


def run(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-c", "from understudy.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def room(tmp_path):
    write_difficulties(tmp_path / "difficulties.json", MADE)
    return tmp_path


def expected(*rows):
    return abilities(MADE, Responses.from_matrix(list(rows), NAMES))


def test_one_student_with_two_columns(room):
    (room / "mine.csv").write_text("Item;Correct\nTask 4;1\n Task 1;wrong\nTask 2;0\n")
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
    assert "1 of the 2 items of the answers have no released difficulty: 'Essay'" in done.stderr
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
