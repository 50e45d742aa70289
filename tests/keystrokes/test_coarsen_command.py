"""`understudy keystrokes coarsen` and `statistics` as a person runs them; a planted learner must not come out."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

from tests.support.command import run
from understudy.core.files.simulated import mark_simulated
from understudy.keystrokes.formats.events import event_table
from understudy.keystrokes.formats.reading import read_keystrokes
from understudy.keystrokes.simulate import EXPERIENCE, TypingCourse

pytestmark = pytest.mark.functional

NAME, NUMBER, PATH = "canary-kestrel-7731", "014499731", "/home/kestrel/Tehtava.java"
TEXT = "Zugvogel Kestrel"
CLASSES = {"letter", "digit", "space", "symbol", "backspace", "other"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A course's events with names, student numbers, paths, real dates, a pasted text; and labels."""
    folder = tmp_path_factory.mktemp("typing")
    course = TypingCourse(n_learners=15, n_weeks=2, characters_per_week=500)
    keystrokes, experience = course.simulate(np.random.default_rng(7))
    numbers = keystrokes.learner + 1
    table = event_table(keystrokes).with_columns(
        learner=pl.Series([NAME if n == 1 else f"student-{n}" for n in numbers]),
        student_number=pl.Series([NUMBER if n == 1 else f"0{n}" for n in numbers]),
        path=pl.Series([PATH if n == 1 else "/home/x.java" for n in numbers]),
    )
    rare = pl.int_range(pl.len()) == 40
    pasted = pl.int_range(pl.len()) == 90
    table = table.with_columns(
        key=pl.when(rare).then(pl.lit("ß")).when(pasted).then(pl.lit(TEXT)).otherwise("key")
    )
    table.write_csv(folder / "events.csv")
    pl.DataFrame(
        {
            "learner": [NAME if n == 1 else f"student-{n}" for n in range(1, 16)],
            "experience": [EXPERIENCE[one] for one in experience],
        }
    ).write_csv(folder / "labels.csv")
    (folder / "digraphs.txt").write_text("i n\nn t\n+ +\nz q\n", encoding="utf-8")
    return folder


def everything(done, folder):
    """All that a command printed, and all it wrote beside the input."""
    said = done.stdout + done.stderr
    inputs = {"events.csv", "labels.csv", "digraphs.txt"}
    return said + "".join(
        path.read_bytes().decode("latin-1")
        for path in folder.iterdir()
        if path.is_file() and path.name not in inputs
    )


def test_coarse_events_and_their_card(folder):
    done = run("keystrokes", "coarsen", "events.csv", "--bucket", "300", "-o", "out.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no formal guarantee" in done.stdout
    assert "No attack was run" in done.stdout
    table = pl.read_csv(folder / "out.csv")
    assert table.columns == ["learner", "time_ms", "key"]
    assert (table["time_ms"] % 300).sum() == 0
    assert table["learner"].n_unique() == 15
    assert set(table["key"]) <= CLASSES
    assert "can be read" not in done.stdout + done.stderr
    page = (folder / "out.card.html").read_text()
    card = json.loads((folder / "out.card.json").read_text())
    assert "No formal guarantee" in page
    assert "Text content is a separate identifier" in page
    assert card["guarantee"]["formal"] is False
    assert card["coarsening"] == "bucket:300"
    assert card["typing_range_ms"] == [300.0, 900.0]
    assert card["attacks"] == []
    said = done.stdout + page.split("<main>")[1] + json.dumps(card)  # the head forbids 'unsafe-inline' things
    for word in ("anonym", "safe", "cannot be re-identified"):
        assert word not in said.lower()
    ledger = run("ledger", "events.csv", "--json", cwd=folder)
    assert "keystrokes coarsen" in ledger.stdout


def test_what_was_not_asked_for_does_not_come_out(folder):
    done = run(
        *("keystrokes", "coarsen", "events.csv", "--round", "500", "-o", "planted.parquet"),
        *("--keep", "week,session,hold", "--json", "--keys", "all"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "names in it too" in done.stderr
    assert "ß" not in pl.read_parquet(folder / "planted.parquet")["key"]
    assert json.loads(done.stdout)["columns"] == ["learner", "session", "week", "time_ms", "key", "hold_ms"]
    found = everything(done, folder) + pl.read_parquet(folder / "planted.parquet").write_csv()
    for planted in (NAME, NUMBER, PATH, TEXT, "kestrel", "student-"):
        assert planted not in found
    again = read_keystrokes(folder / "planted.parquet").keystrokes
    assert again.n_learners == 15
    assert again.time.max() < 10**15  # no date since 1970 is that small


def test_only_classes_of_keys_unless_all_are_asked_for(folder):
    coarsen = ("keystrokes", "coarsen", "events.csv", "-m", "shift:300")
    done = run(*coarsen, "-o", "classes.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(folder / "classes.csv")
    assert set(table["key"]) <= CLASSES
    again = read_keystrokes(folder / "classes.csv")
    assert again.keystrokes.n_rows == table.height, again.left_out
    assert set(again.keystrokes.keys) <= {"letter", "digit", " ", "symbol", "Backspace", "other"}
    done = run(*coarsen, "--keys", "all", "-o", "typed.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "can be read" in done.stderr
    assert "e" in pl.read_csv(folder / "typed.csv")["key"]
    assert "read letter by letter" in (folder / "typed.card.html").read_text()


def test_nothing_is_overwritten_unless_forced(folder):
    arguments = ("keystrokes", "coarsen", "events.csv", "-m", "delay:25-500", "-o", "twice.csv")
    assert run(*arguments, cwd=folder).returncode == 0
    before = (folder / "twice.csv").read_bytes()
    again = run(*arguments, cwd=folder)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert (folder / "twice.csv").read_bytes() == before
    assert run(*arguments, "--force", cwd=folder).returncode == 0
    assert (folder / "twice.csv").read_bytes() != before
    assert run(*arguments[:-1], "events.csv", "--force", cwd=folder).returncode == 2


def test_attacks_of_a_sweep_stand_on_the_card(folder):
    rows = {
        "level": ["events", "averages", "events"],
        "way": ["bucket"] * 3,
        "size": [300.0, 300.0, 200.0],
        "measure": ["identification"] * 3,
        "name": ["euclidean"] * 3,
        "k": [10] * 3,
        "value": [0.87654, 0.5, 0.9],
        "low": [0.8] * 3,
        "high": [0.9] * 3,
        "baseline": [10 / 15] * 3,
        "n_learners": [14] * 3,
    }
    pl.DataFrame(rows).write_csv(folder / "results.csv")
    arguments = ("keystrokes", "coarsen", "events.csv", "--attacks", "results.csv", "-o", "tried.csv")
    done = run(*arguments, "--bucket", "300", cwd=folder)
    assert done.returncode == 0, done.stderr
    card = json.loads((folder / "tried.card.json").read_text())
    assert [one["rate"] for one in card["attacks"]] == [0.88]
    assert card["guarantee"]["caveats"] == ["figures-published"]
    headline = (
        "No formal guarantee; figures measured on the real learners are published here without a guarantee"
    )
    assert f"<h2>{headline}</h2>" in (folder / "tried.card.html").read_text()
    assert "88" in (folder / "tried.card.html").read_text()
    assert "no guarantee covers them" in card["attacks_note"]
    assert "14 of 15 learners" in card["attacks_note"]
    assert "hold" not in card["attacks_note"]
    held = run(*arguments[:-1], "held.csv", "--bucket", "300", "--keep", "hold", cwd=folder)
    assert held.returncode == 0, held.stderr
    assert "No attack saw hold times" in (folder / "held.card.html").read_text()
    pl.DataFrame({**rows, "n_learners": [16] * 3}).write_csv(folder / "results.csv")
    larger = run(*arguments[:-1], "other.csv", "--bucket", "300", cwd=folder)
    assert larger.returncode == 3
    assert "16 learners" in larger.stderr
    assert not (folder / "other.csv").exists()
    missing = run(*arguments[:-1], "other.csv", "--bucket", "310", cwd=folder)
    assert missing.returncode == 3
    assert not (folder / "other.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "no coarsening was chosen"),
        (["--bucket", "300", "--round", "300"], 2, "2 coarsenings"),
        (["--bucket", "0"], 2, "above 0"),
        (["--bucket", "-3"], 2, "0 ms or more"),
        (["-m", "buckt:300"], 2, "did you mean bucket"),
        (["--bucket", "300", "--keep", "name"], 2, "asked to keep"),
        (["--bucket", "300", "--keys", "some"], 2, "classes or all"),
        (["--bucket", "300", "--longest-pause", "10"], 2, "look like typing"),
        (["--bucket", "300", "--attacks", "none.csv"], 2, "no file"),
    ],
)
def test_wrong_use_of_coarsen(folder, arguments, code, words):
    done = run("keystrokes", "coarsen", "events.csv", "-o", "wrong.csv", *arguments, cwd=folder)
    assert done.returncode == code
    assert words in done.stderr
    assert not (folder / "wrong.csv").exists()


DECLARED = (
    "--labels",
    "labels.csv",
    "--label",
    "experience",
    "--groups",
    "none,some",
    "--digraphs",
    "digraphs.txt",
    # So few learners are noise.
    "--anyway",
)


@pytest.fixture
def unspent(folder, tmp_path):
    """The same data in a folder of which the ledger is not made yet."""
    for path in folder.iterdir():
        if path.is_file() and path.suffix != ".ledger":
            shutil.copy(path, tmp_path)
    return tmp_path


def test_statistics_stop_before_they_pay_for_noise(unspent):
    declared = DECLARED[:-1]
    asked = ("keystrokes", "statistics", "events.csv", *declared, "--epsilon", "4", "-o", "noise.json")
    explained = json.loads(run(*asked[:-2], "--explain", "--json", cwd=unspent).stdout)
    assert explained["mostly_noise"]
    refused = run(*asked, "--json", cwd=unspent)
    assert refused.returncode == 4
    assert json.loads(refused.stderr)["error"]["code"] == "mostly-noise"
    assert not (unspent / "noise.json").exists()
    done = run(*asked, "--anyway", "--json", cwd=unspent)
    assert done.returncode == 0, done.stderr
    assert "little but noise is to be expected" in done.stderr
    assert {"digraph", "group"} <= json.loads(done.stdout)["lost_in_noise"][0].keys()


def test_private_statistics_are_charged_and_written(unspent):
    folder = unspent
    spent = ("--epsilon", "4")
    done = run(
        "keystrokes", "statistics", "events.csv", *DECLARED, *spent, "-o", "statistics.json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "Charged epsilon 4 to 'learners of the file events.csv'" in done.stdout
    assert "4 of 10 is spent, and " in done.stdout
    written = json.loads((folder / "statistics.json").read_text())
    assert written["guarantee"]["epsilon"] == 4.0
    assert written["n_learners"] == 15
    assert [one["digraph"] for one in written["digraphs"]] == ["i → n", "n → t", "+ → +", "z → q"]
    cell = written["digraphs"][0]["groups"]["some"]
    assert cell["count_noise_sd"] > 0
    assert not any(planted in everything(done, folder) for planted in (NAME, NUMBER, PATH, TEXT))
    # What was paid for is not overwritten, and what is not there cannot be spent.
    again = run(
        "keystrokes", "statistics", "events.csv", *DECLARED, *spent, "-o", "statistics.json", cwd=folder
    )
    assert again.returncode == 2
    much = ("--epsilon", "9.5", "-o", "more.json")
    refused = run("keystrokes", "statistics", "events.csv", *DECLARED, *much, cwd=folder)
    assert refused.returncode == 4
    assert not (folder / "more.json").exists()


def test_explaining_spends_nothing(unspent):
    done = run("keystrokes", "statistics", "events.csv", *DECLARED, "--explain", "--json", cwd=unspent)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["spent"] == 0
    assert content["internal"] is True
    # Three numbers, measured inside: nothing about a single learner.
    assert [level["name"] for level in content["risk"]["levels"]] == [
        *("proved limit", "noisy sums seen", "strongest attack")
    ]
    assert 0.05 in [other["found"] for other in content["others"]]
    noise = [other["count_noise_sd"] for other in content["others"]]
    assert noise == sorted(noise, reverse=True)
    assert not (unspent / "understudy.ledger").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--digraphs", "digraphs.txt", "--labels", "labels.csv"], "groups were not declared"),
        (["--labels", "labels.csv", "--groups", "none,some"], "no digraphs were declared"),
        (["--digraphs", "digraphs.txt", "--groups", "none,some"], "no labels"),
        ([*DECLARED, "--epsilon", "0"], "above 0"),
        ([*DECLARED, "--shortest", "800"], "smaller first"),
    ],
)
def test_what_is_not_declared_is_refused_before_it_costs(unspent, arguments, words):
    folder = unspent
    done = run("keystrokes", "statistics", "events.csv", *arguments, "-o", "refused.json", cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (folder / "understudy.ledger").exists()
    assert not (folder / "refused.json").exists()


@pytest.fixture
def progsnap(tmp_path):
    """A folder with a main table: six learners type the same line."""
    folder = tmp_path / "ps"
    folder.mkdir()
    stamps = [1_700_000_000_000 + 150 * at for at in range(12)]
    pl.DataFrame(
        {
            "SubjectID": [f"student-{n}" for n in range(6) for _ in stamps],
            "EventType": "File.Edit",
            "EditType": "Insert",
            "InsertText": list("int int int ") * 6,
            "ClientTimestamp": stamps * 6,
        }
    ).write_csv(folder / "MainTable.csv")
    (tmp_path / "digraphs.txt").write_text("i n\nn t\n", encoding="utf-8")
    return tmp_path


def test_a_folder_and_its_main_table_have_one_budget(progsnap):
    def charged(data, epsilon, out):
        declared = ("--digraphs", "digraphs.txt", "--epsilon", epsilon, "-o", out, "--json", "--anyway")
        return run("keystrokes", "statistics", data, *declared, cwd=progsnap)

    first = charged("ps", "6", "one.json")
    assert first.returncode == 0, first.stderr
    second = charged("ps/MainTable.csv", "3", "two.json")
    assert second.returncode == 0, second.stderr
    one, two = (json.loads(done.stdout) for done in (first, second))
    assert (one["sum"], two["sum"]) == (6.0, 9.0)
    assert one["population"] == two["population"]
    assert charged("ps/", "9", "three.json").returncode == 4
    coarse = run("keystrokes", "coarsen", "ps", "--bucket", "300", "-o", "coarse.csv", cwd=progsnap)
    assert coarse.returncode == 0, coarse.stderr
    assert [path.parent.name for path in progsnap.rglob("understudy.ledger")] == ["ps"]
    told = run("ledger", "ps/MainTable.csv", "--json", cwd=progsnap)
    assert "keystrokes coarsen" in told.stdout
    over = ("keystrokes", "coarsen", "ps", "--bucket", "300", "-o", "ps/MainTable.csv", "--force")
    assert "the data itself" in run(*over, cwd=progsnap).stderr


def test_a_copy_under_another_name_is_asked_about(folder, tmp_path):
    for name in ("events.csv", "labels.csv", "digraphs.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "copy.csv").write_bytes((folder / "events.csv").read_bytes())

    def charged(data, out, *more):
        return run("keystrokes", "statistics", data, *DECLARED, "-o", out, *more, cwd=tmp_path)

    assert "counted apart" not in charged("events.csv", "one.json").stderr
    copy = charged("copy.csv", "two.json", "--explain")
    assert (
        "The ledger knows these learners, or many of them, as 'learners of the file events.csv'"
        in copy.stderr
    )
    assert charged("copy.csv", "two.json").returncode == 4
    named = charged("copy.csv", "two.json", "--population", "learners of the file events.csv", "--json")
    assert "knows" not in named.stderr
    spent = json.loads(named.stdout)
    assert spent["sum"] == 4.0
    assert 2.0 < spent["spent"] < 4.0  # Gaussian noise composes


def test_simulated_learners_belong_to_no_population(folder, tmp_path):
    shutil.copy(folder / "events.csv", tmp_path / "course.csv")
    mark_simulated(tmp_path / "course.csv")
    (tmp_path / "digraphs.txt").write_text("i n\n", encoding="utf-8")
    for arguments in (
        ("coarsen", "course.csv", "--bucket", "300", "-o", "out.csv"),
        ("statistics", "course.csv", "--digraphs", "digraphs.txt", "-o", "out.json"),
    ):
        done = run("keystrokes", *arguments, "--population", "course of 2026", cwd=tmp_path)
        assert done.returncode == 2
        assert "these learners are simulated" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "course.csv",
        "course.csv.simulated",
        "digraphs.txt",
    }
