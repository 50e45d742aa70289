"""`understudy difficulties` as a teacher meets it."""

import csv
import json
import re

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.ledger import Ledger
from understudy.exams import forecast
from understudy.exams.released_file import Difficulties
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.functional


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


@pytest.fixture
def exam(tmp_path):
    """A class's sheet, with names that must not come back."""
    matrix = Exam(60, 6).simulate(np.random.default_rng(1)).responses.correct
    write(
        tmp_path / "exam.csv",
        ["student", *(f"task {i + 1}" for i in range(6))],
        [[f"canary-{n}", *row] for n, row in enumerate(matrix.tolist())],
    )
    return tmp_path


def difficulties(folder, *arguments):
    return run("difficulties", *arguments, cwd=folder)


def test_a_private_release_from_sheet_to_file(exam):
    done = difficulties(exam, "exam.csv", "--epsilon", 1, "-o", "d.json", "--title", "Spring exam")
    assert done.returncode == 0, done.stderr
    content = json.loads((exam / "d.json").read_text())
    assert [item["item"] for item in content["items"]] == [f"task {i}" for i in range(1, 7)]
    assert all(item["standard_error"] > 0 for item in content["items"])
    assert content["guarantee"]["epsilon"] == 1.0
    assert content["guarantee"]["delta"] == 0.0
    assert content["title"] == "Spring exam"
    assert content["provenance"]["learners"] == 60
    assert "epsilon 1 for a learner" in done.stdout
    assert "Charged epsilon 1 to 'learners of the file exam.csv' (card " in done.stdout
    assert "1 of 10 is spent, and 9 can still be asked for in the same way." in done.stdout
    assert "canary" not in done.stdout + done.stderr + (exam / "d.json").read_text()


def test_json_has_the_whole_result_and_what_was_spent(exam):
    done = difficulties(exam, "exam.csv", "--epsilon", 2, "-o", "d.json", "--json")
    content = json.loads(done.stdout)
    assert (content["spent"], content["limit"]) == (2.0, 10.0)
    assert content["population"] == "learners of the file exam.csv"
    assert len(content["items"]) == 6


def test_the_budget_is_kept(exam):
    assert difficulties(exam, "exam.csv", "--epsilon", 8, "-o", "d.json").returncode == 0
    done = difficulties(exam, "exam.csv", "--epsilon", 3, "-o", "e.json")
    assert done.returncode == 4
    assert "8 of 10 is spent. Together they would count 11;" in done.stderr
    assert "the largest epsilon that fits is 2." in done.stderr
    assert not (exam / "e.json").exists()
    spent = json.loads(
        run("ledger", "exam.csv", "--population", "learners of the file exam.csv", "--json", cwd=exam).stdout
    )
    assert [entry["kind"] for entry in spent["entries"]] == ["difficulties"]


def test_without_epsilon_it_says_loudly_that_nothing_is_private(exam):
    done = difficulties(exam, "exam.csv", "-o", "d.json")
    assert done.returncode == 0
    assert "NOT PRIVATE" in done.stderr
    assert "no formal guarantee" in done.stdout
    assert json.loads((exam / "d.json").read_text())["guarantee"]["epsilon"] is None


@pytest.mark.parametrize("method", ["objective", "statistics"])
def test_published_methods_say_why_they_promise_nothing(exam, method):
    done = difficulties(exam, "exam.csv", "--epsilon", 1, "-m", method, "-o", "d.json")
    assert done.returncode == 0
    assert "no formal guarantee (for comparison only" in done.stdout
    content = json.loads((exam / "d.json").read_text())
    assert content["guarantee"]["formal"] is False


def test_the_penalty_of_published_methods_is_given_or_chosen(exam):
    public = (exam / other_class(exam)).rename(exam / "public.csv")
    assert public.exists()
    published = ("exam.csv", "--epsilon", 1, "-m", "objective")
    for name, more in {
        "printed": ("--penalty", "0.01"),
        "chosen": ("--penalty", "choose"),
        "public": ("--penalty-from", "public.csv"),
    }.items():
        done = difficulties(exam, *published, *more, "-o", f"{name}.json")
        assert done.returncode == 0, done.stderr
        assert "no formal guarantee (for comparison only" in done.stdout
    written = {
        name: json.loads((exam / f"{name}.json").read_text()) for name in ("printed", "chosen", "public")
    }
    sources = {name: content["provenance"]["penalty"]["source"] for name, content in written.items()}
    assert sources["printed"] == "as printed in the paper"
    assert "no formal guarantee" in sources["chosen"]
    assert sources["public"] == "chosen on public responses"
    explained = difficulties(exam, *published, "--penalty", "0.01", "--explain")
    assert explained.returncode == 0, explained.stderr


def test_a_penalty_is_not_chosen_on_the_learners_of_the_exam(exam):
    (exam / "copy.csv").write_text((exam / "exam.csv").read_text(), encoding="utf-8")
    write(
        exam / "numbered.csv",
        ["student", "task 1", "task 2"],
        [[n, n % 2, n % 3 % 2] for n in range(1, 61)],
    )
    for given, public in (
        ("exam.csv", "exam.csv"),
        ("exam.csv", "copy.csv"),
        ("numbered.csv", "numbered.csv"),
    ):
        arguments = (given, "-m", "joint", "--penalty-from", public, "-o", "d.json", "--json")
        done = difficulties(exam, *arguments)
        assert done.returncode == 4, done.stderr
        error = json.loads(done.stderr)["error"]
        assert (error["code"], error["options"]) == ("own-learners", ["--penalty-from", "--penalty"])
    assert sorted(path.name for path in exam.iterdir()) == ["copy.csv", "exam.csv", "numbered.csv"]


def test_explain_spends_and_writes_nothing(exam):
    done = difficulties(exam, "exam.csv", "--explain")
    assert done.returncode == 0, done.stderr
    assert "nothing was spent" in done.stdout
    assert "task 1, task 2" in done.stdout
    assert re.search(
        r"\n5 in 100 +\d+ in 100 +1 in 100 +\d\.\d+ +\S+ +\d\.\d+ +(gaussian|knorm)", done.stdout
    )
    assert sorted(path.name for path in exam.iterdir()) == ["exam.csv"]


def test_explain_proposes_the_method_with_less_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "_N_EXAMS", 2)
    monkeypatch.setattr(forecast, "EPSILONS", (1.0,))
    monkeypatch.setattr(forecast, "RISKS", ())
    matrix = Exam(40, 90).simulate(np.random.default_rng(1)).responses.correct.tolist()
    write(
        tmp_path / "exam.csv",
        ["student", *(f"task {i + 1}" for i in range(90))],
        [[f"s{n}", *row] for n, row in enumerate(matrix)],
    )
    done = difficulties(tmp_path, "exam.csv", "--explain", "--epsilon", 1)
    assert "if you choose it (--method gaussian)" in done.stdout
    assert "Internal:" not in done.stdout
    # What it proposes runs as it is printed.
    done = difficulties(tmp_path, "exam.csv", "--explain", "--epsilon", 1, "--method", "gaussian")
    assert done.returncode == 0, done.stderr
    assert "(--method" not in done.stdout
    # Where answers are skipped, how many there are is a fact about the learners.
    done = difficulties(tmp_path, "exam.csv", "--explain", "--epsilon", 1, "--missing", "skipped")
    assert "how many answers these learners gave. Keep it inside." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--epsilon", "0", "-o", "d.json"], 2, "between"),
        (["--epsilon", "-1", "-o", "d.json"], 2, "between"),
        (["--epsilon", "1"], 2, "-o"),
        (["--epsilon", "1", "--delta", "0.1", "-o", "d.json"], 2, "gaussian"),
        (["--epsilon", "1", "-o", "d.csv"], 2, "json"),
        (["--epsilon", "1", "-o", "nowhere/d.json"], 2, "no folder"),
        (["--epsilon", "1", "-o", "d.json", "-m", "magic"], 2, "no method"),
        (["--epsilon", "1", "-o", "d.json", "--ability-sd", "wide"], 2, "estimate"),
        (["--epsilon", "1", "-o", "d.json", "--penalty", "0.02"], 2, "the method knorm has none"),
        (["-m", "joint", "-o", "d.json", "--penalty-from", "missing.csv"], 2, "missing.csv"),
        (["--epsilon", "1", "-o", "d.json", "--prior", "0"], 2, "MEAN,SD"),
        (["--epsilon", "1", "-o", "d.json", "--items", "missing.txt"], 2, "no file"),
        (
            ["--epsilon", "1", "-o", "d.json", "--ability-sd", "choose", "--exclude", "gone.txt"],
            2,
            "gone.txt",
        ),
    ],
)
def test_wrong_use_is_explained_and_nothing_is_written(exam, arguments, code, words):
    done = difficulties(exam, "exam.csv", *arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Hint:" in done.stderr
    assert sorted(path.name for path in exam.iterdir()) == ["exam.csv"]


def test_the_items_of_a_long_file_have_to_be_declared(tmp_path):
    rng = np.random.default_rng(2)
    rows = [[f"canary-{n}", f"q{i}", int(rng.random() < 0.6)] for n in range(40) for i in range(5)]
    write(tmp_path / "long.csv", ["learner", "item", "correct"], rows)
    done = difficulties(tmp_path, "long.csv", "--epsilon", 1, "-o", "d.json")
    assert done.returncode == 3
    assert "--public-items" in done.stderr
    assert not (tmp_path / "understudy.ledger").exists()
    (tmp_path / "items.txt").write_text("q1\nq0\nq9\n")
    done = difficulties(tmp_path, "long.csv", "--epsilon", 1, "-o", "d.json", "--items", "items.txt")
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "d.json").read_text())
    assert [item["item"] for item in content["items"]] == ["q1", "q0", "q9"]
    assert "hexagon" in content["provenance"]["mechanism"]


def test_duplicate_answers_name_the_line_and_attempts_settle_them(tmp_path):
    rows = [["a", "q1", 0], ["a", "q1", 1], ["b", "q1", 1], ["b", "q2", 0]]
    write(tmp_path / "long.csv", ["learner", "item", "correct"], rows)
    arguments = ("long.csv", "--epsilon", 1, "-o", "d.json", "--public-items")
    done = difficulties(tmp_path, *arguments)
    assert done.returncode == 3
    assert "line 3" in done.stderr
    assert difficulties(tmp_path, *arguments, "--attempts", "first").returncode == 0


def test_one_learner_is_refused_before_anything_is_charged(tmp_path):
    write(tmp_path / "one.csv", ["student", "q1", "q2"], [["a", 1, 0]])
    done = difficulties(tmp_path, "one.csv", "--epsilon", 1, "-o", "d.json")
    assert done.returncode == 3
    assert "describe a class" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.csv"]


def test_missing_answers_count_as_wrong_in_a_sheet_unless_told_otherwise(tmp_path):
    rows = [[f"s{n}", 1, "" if n % 2 else 1, n % 2] for n in range(60)]
    write(tmp_path / "exam.csv", ["student", "a", "b", "c"], rows)
    done = difficulties(tmp_path, "exam.csv", "--epsilon", 8, "-o", "d.json", "--ledger", "l")
    assert "count as wrong" in done.stderr
    assert json.loads((tmp_path / "d.json").read_text())["provenance"]["missing"] == "counted as wrong"
    done = difficulties(
        tmp_path, "exam.csv", "--epsilon", 8, "-o", "e.json", "--ledger", "m", "--missing", "skipped"
    )
    assert "not asked" in done.stderr
    first, second = (
        {item["item"]: item["difficulty"] for item in json.loads((tmp_path / name).read_text())["items"]}
        for name in ("d.json", "e.json")
    )
    assert second["b"] < first["b"]


def other_class(exam):
    """The same exam, sat by other learners."""
    sheet = (exam / "exam.csv").read_text()
    (exam / "last year.csv").write_text(sheet.replace("canary-", "canary-before-"))
    return "last year.csv"


def test_a_prior_from_an_earlier_exam(exam):
    assert difficulties(exam, other_class(exam), "--epsilon", 2, "-o", "earlier.json").returncode == 0
    arguments = ("exam.csv", "--epsilon", 2, "--prior", "earlier.json")
    done = difficulties(exam, *arguments, "-o", "d.json")
    assert done.returncode == 0, done.stderr
    content = json.loads((exam / "d.json").read_text())
    assert content["provenance"]["difficulties_prior"]["source"] == "given"
    assert content["guarantee"]["caveats"] == ["earlier-exam"]
    assert "whoever is in both bears both" in done.stdout
    assert Difficulties.read(exam / "d.json").guarantee.caveats
    # A ledger that does not know the earlier exam has to believe its user.
    (exam / "understudy.ledger").unlink()
    assert difficulties(exam, *arguments, "-o", "e.json").returncode == 0
    claimed = json.loads((exam / "e.json").read_text())
    assert claimed["guarantee"]["caveats"] == ["earlier-exam-claimed"]


def test_a_prior_from_the_same_learners_is_refused(exam):
    assert difficulties(exam, "exam.csv", "--epsilon", 2, "-o", "earlier.json").returncode == 0
    for population in ((), ("--population", "7b")):
        done = difficulties(
            exam, "exam.csv", "--epsilon", 1, "-o", "d.json", "--prior", "earlier.json", *population, "--json"
        )
        assert done.returncode == 4
        error = json.loads(done.stderr)["error"]
        assert (error["code"], error["options"]) == ("same-learners", ["--prior"])
    assert not (exam / "d.json").exists()
    assert len(Ledger(exam / "understudy.ledger").entries()) == 1


def test_a_prior_of_a_prior_from_the_same_learners_is_refused(exam):
    other = other_class(exam)
    assert difficulties(exam, "exam.csv", "--epsilon", 2, "-o", "a.json").returncode == 0
    assert difficulties(exam, other, "--epsilon", 2, "-o", "b.json", "--prior", "a.json").returncode == 0
    (exam / "third.csv").write_text((exam / "exam.csv").read_text().replace("canary-", "canary-later-"))
    done = difficulties(exam, "third.csv", "--epsilon", 2, "-o", "c.json", "--prior", "b.json")
    assert done.returncode == 0, done.stderr
    one, two, three = (Difficulties.read(exam / f"{name}.json") for name in "abc")
    assert two.cards == [*two.own_cards, *one.cards]
    assert three.cards == [*three.own_cards, *two.cards]
    for earlier in ("b.json", "c.json"):
        done = difficulties(exam, "exam.csv", "--epsilon", 1, "-o", "d.json", "--prior", earlier, "--json")
        assert done.returncode == 4
        assert json.loads(done.stderr)["error"]["code"] == "same-learners"
    assert not (exam / "d.json").exists()


def test_simulated_learners_do_not_wash_a_prior_of_real_ones(exam):
    assert difficulties(exam, "exam.csv", "--epsilon", 2, "-o", "a.json").returncode == 0
    simulated = (other_class(exam), "--simulated", "--epsilon", 2)
    assert difficulties(exam, *simulated, "-o", "s.json", "--prior", "a.json").returncode == 0
    assert json.loads((exam / "s.json").read_text())["guarantee"]["caveats"] == ["earlier-exam"]
    assert difficulties(exam, *simulated, "-o", "t.json", "--prior", "s.json").returncode == 0
    assert json.loads((exam / "t.json").read_text())["guarantee"]["caveats"] == ["earlier-exam"]
    done = difficulties(exam, "exam.csv", "--epsilon", 1, "-o", "d.json", "--prior", "t.json", "--json")
    assert json.loads(done.stderr)["error"]["code"] == "same-learners"
    # What is simulated altogether needs no caveat.
    assert difficulties(exam, *simulated, "-o", "u.json").returncode == 0
    assert difficulties(exam, *simulated, "-o", "v.json", "--prior", "u.json").returncode == 0
    assert "caveats" not in json.loads((exam / "v.json").read_text())["guarantee"]


def test_a_prior_that_does_not_name_its_own_prior_is_not_known_as_charged(exam):
    other = other_class(exam)
    (exam / "third.csv").write_text((exam / "exam.csv").read_text().replace("canary-", "canary-later-"))
    assert difficulties(exam, "exam.csv", "--epsilon", 2, "-o", "a.json").returncode == 0
    assert difficulties(exam, other, "--epsilon", 2, "-o", "b.json", "--prior", "a.json").returncode == 0
    content = json.loads((exam / "b.json").read_text())
    del content["provenance"]["earlier_cards"]
    (exam / "old.json").write_text(json.dumps(content))
    assert (
        difficulties(exam, "third.csv", "--epsilon", 2, "-o", "c.json", "--prior", "old.json").returncode == 0
    )
    assert json.loads((exam / "c.json").read_text())["guarantee"]["caveats"] == ["earlier-exam-claimed"]


def test_a_log_is_accepted(tmp_path):
    assert run("simulate", "log.csv", "--learners", 80, "--actions", 6, cwd=tmp_path).returncode == 0
    done = difficulties(
        tmp_path, "log.csv", "--epsilon", 4, "-o", "d.json", "--public-items", "--attempts", "first"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "d.json").read_text())["provenance"]["simulated"] is True


def test_a_prior_that_is_not_private_is_refused_unless_it_is_public(exam):
    assert difficulties(exam, other_class(exam), "-o", "plain.json").returncode == 0
    arguments = ("exam.csv", "--epsilon", 1, "-o", "d.json", "--prior", "plain.json")
    done = difficulties(exam, *arguments)
    assert done.returncode == 4
    assert "no formal guarantee" in done.stderr
    assert not (exam / "d.json").exists()
    assert difficulties(exam, *arguments, "--public-prior").returncode == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("task,Anna Canary,Ben Canary\nQ1,1,0\nQ2,0,1\nQ3,1,1\n", "--rows-are-learners"),
        ("Canary,1,0,NA\nBob,0,1,1\nCid,1,1,1\n", ""),
        ("student,q1,anna@example.org\nx,1,0\ny,0,1\n", "points at people"),
        ("student,q1,remark\nx,1,good\ny,0,bad\n", "--items"),
    ],
)
def test_doubtful_sheets_are_refused_before_anything_is_charged(tmp_path, content, words):
    (tmp_path / "sheet.csv").write_text(content)
    done = difficulties(tmp_path, "sheet.csv", "--epsilon", 1, "-o", "d.json")
    assert done.returncode == 3
    assert words in done.stderr
    assert "Canary" not in done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sheet.csv"]


def test_rows_may_be_declared_to_be_learners(tmp_path):
    (tmp_path / "sheet.csv").write_text("q1,q2\n1,0\n0,1\n,\n1,1\n")
    done = difficulties(tmp_path, "sheet.csv", "--epsilon", 1, "-o", "d.json", "--rows-are-learners")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "d.json").read_text())["provenance"]["learners"] == 4


def test_numbered_learners_and_numbered_items_are_not_confused(tmp_path):
    rows = [[n, *(n % 2, 1, 0)] for n in range(1, 31)]
    write(tmp_path / "exam.csv", ["Student ID", "1", "2", "item 3 (2 points)"], rows)
    assert difficulties(tmp_path, "exam.csv", "--epsilon", 1, "-o", "d.json").returncode == 0


def test_too_few_learners_for_a_choice_cost_nothing(exam):
    write(exam / "few.csv", ["student", "q1"], [[f"s{n}", n % 2] for n in range(30)])
    done = difficulties(exam, "few.csv", "--epsilon", 1, "-o", "d.json", "--ability-sd", "choose")
    assert done.returncode == 3
    assert not (exam / "understudy.ledger").exists()


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-5", "5000"])
def test_an_epsilon_out_of_range_costs_nothing(exam, epsilon):
    for method in ("knorm", "gaussian"):
        done = difficulties(exam, "exam.csv", "--epsilon", epsilon, "-m", method, "-o", "d.json")
        assert done.returncode == 2
    assert sorted(path.name for path in exam.iterdir()) == ["exam.csv"]


def test_another_name_for_the_population_does_not_refill_the_budget(exam):
    assert difficulties(exam, "exam.csv", "--epsilon", 8, "-o", "d.json").returncode == 0
    done = difficulties(exam, "exam.csv", "--epsilon", 8, "-o", "e.json", "--population", "7b")
    assert done.returncode == 4
    shown = run("ledger", "exam.csv", cwd=exam).stdout
    assert "difficulties" in shown
    assert "Spent: epsilon 8 of 10" in shown


def test_what_was_paid_for_is_not_overwritten(exam):
    assert difficulties(exam, "exam.csv", "--epsilon", 1, "-o", "d.json").returncode == 0
    before = (exam / "d.json").read_text()
    done = difficulties(exam, "exam.csv", "--epsilon", 1, "-o", "d.json")
    assert done.returncode == 2
    assert (exam / "d.json").read_text() == before
    assert "Spent: epsilon 1 of 10" in run("ledger", "exam.csv", cwd=exam).stdout


def test_items_that_a_sheet_does_not_have_are_named(exam):
    (exam / "items.txt").write_text("task 1\ntask 9\n")
    done = difficulties(exam, "exam.csv", "--epsilon", 1, "-o", "d.json", "--items", "items.txt")
    assert done.returncode == 2
    assert "'task 9'" in done.stderr


def test_a_tiny_class_is_told_that_it_gets_noise(tmp_path):
    write(
        tmp_path / "few.csv", ["student", "q1", "q2", "q3"], [["a", 1, 0, 1], ["b", 0, 0, 1], ["c", 1, 1, 1]]
    )
    done = difficulties(tmp_path, "few.csv", "--epsilon", 1, "-o", "d.json")
    assert "nearly everything is noise" in done.stderr
