"""`understudy cohort build` and `simulate --shape cohort` as a custodian meets them."""

from __future__ import annotations

import json
import re
import shutil
import stat

import numpy as np
import polars as pl
import pytest

from tests.support.command import run
from understudy.cohorts.cohort import read_cohort
from understudy.cohorts.schema import Schema
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger, file_population

pytestmark = pytest.mark.functional

CANARY = "Zq7canary"


@pytest.fixture
def room(tmp_path):
    """A log of 60 learners over three weeks, their scores, and a schema with and without cuts."""
    rng = np.random.default_rng(2)
    names = [CANARY, *(f"pupil {n}" for n in range(1, 60))]
    minutes = np.sort(rng.integers(0, 21 * 24 * 60, 3000))
    times = (np.datetime64("2024-09-02T00:00") + minutes.astype("timedelta64[m]")).astype("datetime64[us]")
    who = rng.integers(0, 60, 3000)
    pl.DataFrame({"user": [names[n] for n in who], "time": times}).write_csv(
        tmp_path / "log.csv", datetime_format="%Y-%m-%d %H:%M:%S"
    )
    pl.DataFrame({"user": names, "score": np.clip(rng.normal(55, 15, 60), 0, 100).round(1)}).write_csv(
        tmp_path / "scores.csv"
    )
    (tmp_path / "declared.toml").write_text(Schema(n_weeks=3, cuts=(45.0, 60.0)).to_toml())
    (tmp_path / "open.toml").write_text(Schema(n_weeks=3).to_toml())
    return tmp_path


def build(room, *more, schema="declared.toml", out="cohort.parquet"):
    return run(
        "cohort", "build", "log.csv", "--scores", "scores.csv", "--schema", schema, "-o", out,
        "--term-start", "2024-09-02", *more, cwd=room,
    )  # fmt: skip


def everything(room, done):
    """All that was printed or written, but for the two files of the custodian."""
    made = [path for path in room.iterdir() if path.name not in ("log.csv", "scores.csv")]
    return (done.stdout + done.stderr).encode() + b"".join(path.read_bytes() for path in made)


@pytest.mark.parametrize("out", ["cohort.parquet", "cohort.csv"])
def test_declared_cuts(room, out):
    done = build(room, out=out)
    assert done.returncode == 0, done.stderr
    assert "60 learners over 3 weeks" in done.stdout
    assert "keep it inside" in done.stdout
    cohort = read_cohort(room / out)
    assert cohort.n_learners == 60
    assert not cohort.simulated
    assert cohort.schema == Schema.read(room / "declared.toml")
    assert stat.S_IMODE((room / out).stat().st_mode) == 0o600
    assert CANARY.encode() not in everything(room, done)
    assert "The number of learners, 60, is public" in done.stdout
    assert not Ledger(room / "understudy.ledger").entries()


def test_cohort_log_and_scores_hold_the_same_learners(room):
    """Nothing is spent with declared cuts; what is released about one of the files counts for all."""
    assert build(room).returncode == 0
    ledger = Ledger(room / "understudy.ledger")
    for number, name in enumerate(("log.csv", "scores.csv", "cohort.parquet"), 1):
        ledger.record(
            population=file_population(room / name), card="c", kind="k", method="m", guarantee=Guarantee(1.0)
        )
        for other in ("log.csv", "scores.csv", "cohort.parquet"):
            assert ledger.balance(file_population(room / other)).epsilon == number
    assert ledger.balance(file_population(room / "elsewhere.csv")).epsilon == 0


def test_a_declared_population_is_linked_to_all_three_files(room):
    for cuts, schema, out in (((), "declared.toml", "a.parquet"), (PRIVATE, "open.toml", "b.parquet")):
        done = build(room, *cuts, "--population", "Class 7", schema=schema, out=out)
        assert done.returncode == 0, done.stderr
        for name in (out, "log.csv", "scores.csv"):
            spent = Ledger(room / "understudy.ledger").balance(file_population(room / name)).epsilon
            assert spent == Ledger(room / "understudy.ledger").balance("class 7").epsilon


def test_what_lies_in_another_folder_is_said(room):
    (room / "inside").mkdir()
    done = build(room, out="inside/cohort.parquet")
    assert done.returncode == 0, done.stderr
    assert "scores.csv and log.csv: not in the folder of the ledger" in done.stderr
    assert re.search(
        r"to declare it: --format csv --learner \w+ --time \w+ --scores-learner \w+ --score", done.stderr
    )
    assert "--ledger" not in build(room, "--ledger", "understudy.ledger", out="again.parquet").stderr


PRIVATE = ("--cuts", "private", "--epsilon", "0.5")


def test_cuts_that_were_paid_for_are_neither_lost_nor_paid_for_again(room):
    assert build(room, *PRIVATE, schema="open.toml").returncode == 0
    paid = (room / "cohort.toml").read_text()
    (room / "cohort.parquet").unlink()
    for more, schema, out in (
        (PRIVATE, "open.toml", "cohort.parquet"),
        ((), "declared.toml", "cohort.parquet"),
        ((), "declared.toml", "cohort.csv"),
        (("--cuts", "even", "--not-private"), "open.toml", "cohort.parquet"),
    ):
        for _ in range(2):  # without the table, and with it
            done = build(room, *more, schema=schema, out=out)
            assert done.returncode == 2
            assert "paid for" in done.stderr
            assert "--schema" in done.stderr
            assert (room / "cohort.toml").read_text() == paid
            (room / out).write_bytes(b"")
        (room / out).unlink()
    done = build(room, schema="cohort.toml")
    assert done.returncode == 0, done.stderr
    assert (room / "cohort.toml").read_text() == paid
    assert read_cohort(room / "cohort.parquet").schema.cuts_source == "private"
    assert len(Ledger(room / "understudy.ledger").entries()) == 1


@pytest.fixture
def idle(room):
    """The same, with three learners more who never did anything."""
    with (room / "scores.csv").open("a") as file:
        file.write("idle a,50\nidle b,50\nidle c,50\n")
    return room


def test_dropped_learners_are_said_wherever_the_number_of_learners_is_stated(idle):
    kept = build(idle, out="kept.parquet")
    assert read_cohort(idle / "kept.parquet").n_learners == 63
    assert "says how many had one" not in kept.stdout
    assert "without_events" not in (idle / "kept.toml").read_text()
    done = build(idle, "--without-events", "drop")
    assert done.returncode == 0, done.stderr
    assert "The number of learners, 60, is public" in done.stdout
    assert "so it says how many had one, and no epsilon covers that" in done.stdout
    assert read_cohort(idle / "cohort.parquet").n_learners == 60
    assert read_cohort(idle / "cohort.parquet").schema.without_events == "dropped"
    # A schema that says so is enough, and stays as it is.
    again = build(idle, "--json", schema="cohort.toml", out="again.parquet")
    assert (json.loads(again.stdout)["learners"], json.loads(again.stdout)["without_events"]) == (
        60,
        "dropped",
    )
    summary = run(
        "cohort", "summarize", "cohort.parquet", "--delta", "1e-5", "-o", "summary.json", "--json", cwd=idle
    )
    assert summary.returncode == 0, summary.stderr
    assert "learners without an event were dropped" in json.loads(summary.stdout)["guarantee"]["statement"]
    read = PrivateSummary.read(idle / "summary.json")
    assert "learners without an event were dropped" in str(read.guarantee)


def test_the_schema_itself_is_not_rewritten_for_an_option(idle):
    text = (idle / "declared.toml").read_text()
    done = build(idle, "--without-events", "drop", out="declared.parquet")
    assert done.returncode == 2
    assert 'without_events = "dropped"' in done.stderr
    assert (idle / "declared.toml").read_text() == text


def test_the_schema_beside_may_be_the_declaration_itself(room):
    text = "# by hand\n" + (room / "declared.toml").read_text()
    (room / "cohort.toml").write_text(text)
    for _ in range(2):
        done = build(room, "--force", schema="cohort.toml")
        assert done.returncode == 0, done.stderr
    first, _, rest = (room / "cohort.toml").read_text().partition("\n")
    assert first == f'data_set = "{named(room)}"  # by which the ledger knows these learners'
    assert rest == text


def named(room, name="cohort"):
    return Schema.read(room / f"{name}.toml").data_set


def test_every_table_has_a_random_name_by_which_the_ledger_knows_its_learners(room):
    assert build(room).returncode == 0
    name = named(room)
    assert len(name) == 16
    assert build(room, "--force").returncode == 0
    assert named(room) == name
    # A declaration that serves for other learners does not carry theirs along.
    assert build(room, schema="cohort.toml", out="next.parquet").returncode == 0
    assert named(room, "next") not in ("", name)
    for kind in (".parquet", ".toml"):
        shutil.copyfile(room / f"cohort{kind}", room / f"copy{kind}")
    for table, epsilon, code in (("cohort", 8, 0), ("copy", 8, 4), ("copy", 2, 0)):
        done = run(
            *("cohort", "summarize", f"{table}.parquet", "--epsilon", epsilon, "--delta", "1e-6"),
            *("-o", f"{table}.json"),
            cwd=room,
        )
        assert done.returncode == code, done.stderr
        assert "has no `data_set`" not in done.stderr


def test_private_cuts_count_in_what_the_summary_states_and_are_charged_once(room):
    done = build(room, "--cuts", "private", "--epsilon", "5", schema="open.toml")
    assert done.returncode == 0, done.stderr
    assert Schema.read(room / "cohort.toml").cuts_epsilon == 5
    arguments = ("cohort", "summarize", "cohort.parquet", "--epsilon", 3, "--delta", "1e-6")
    done = run(*arguments, "-o", "summary.json", "--json", cwd=room)
    assert done.returncode == 0, done.stderr
    assert "did not charge" not in done.stderr
    told = json.loads(done.stdout)
    assert (told["guarantee"]["epsilon"], told["spent"]) == (8, 8)
    assert [one.epsilon for one in Ledger(room / "understudy.ledger").entries()] == [5, 3]
    content = json.loads((room / "summary.json").read_text())
    assert content["guarantee"]["epsilon"] == 8
    assert PrivateSummary.read(room / "summary.json").guarantee.epsilon == 8


def test_learners_without_a_score_are_said_wherever_the_number_of_learners_is_stated(room):
    text = "# by hand\n" + (room / "declared.toml").read_text()
    (room / "cohort.toml").write_text(text)
    assert build(room, schema="cohort.toml").returncode == 0
    assert "without_score" not in (room / "cohort.toml").read_text()
    with (room / "scores.csv").open("a") as file:
        file.write("absent a,-\nabsent b,\n")
    for _ in range(2):
        done = build(room, "--force", schema="declared.toml")
        assert done.returncode == 0, done.stderr
        assert "Learners listed without a score were left out" in done.stdout
    assert (room / "cohort.toml").read_text().endswith(text)
    assert (room / "cohort.toml").read_text().count("without_score") == 1
    done = run("cohort", "summarize", "cohort.parquet", "--delta", "1e-5", "-o", "s.json", "--json", cwd=room)
    assert "listed without a score were left out" in json.loads(done.stdout)["guarantee"]["statement"]
    assert "listed without a score were left out" in str(PrivateSummary.read(room / "s.json").guarantee)


@pytest.mark.parametrize("source", ["log.csv", "scores.csv"])
def test_a_ledger_beside_a_source_is_not_passed_over(room, source):
    (room / "inside").mkdir()
    (room / "other place").mkdir()
    for name in {"log.csv", "scores.csv"} - {source}:
        shutil.move(room / name, room / "inside" / name)
    shutil.move(room / source, room / "other place" / source)
    place = {
        one: f"{'other place' if one == source else 'inside'}/{one}" for one in ("log.csv", "scores.csv")
    }
    book = Ledger(room / "other place" / "understudy.ledger")
    book.record(
        population=file_population(room / "other place" / source),
        card="c",
        kind="k",
        method="m",
        guarantee=Guarantee(9.0),
    )
    arguments = (
        *("cohort", "build", place["log.csv"], "--scores", place["scores.csv"], "--schema", "declared.toml"),
        *("-o", "inside/cohort.parquet", "--term-start", "2024-09-02"),
    )
    done = run(*arguments, cwd=room)
    assert done.returncode == 4
    assert f"{book.path.resolve()}, and another one would be kept" in done.stderr
    assert "(--ledger)" in done.stderr
    assert not (room / "inside" / "cohort.parquet").exists()
    assert not (room / "inside" / "understudy.ledger").exists()
    done = run(*arguments, "--ledger", book.path, cwd=room)
    assert done.returncode == 0, done.stderr
    assert "name it for everything about cohort.parquet" in done.stderr
    assert book.balance(file_population(room / "inside" / "cohort.parquet")).epsilon == 9


def test_another_schema_is_not_overwritten(room):
    (room / "cohort.toml").write_text("weeks = 5\n")
    assert build(room).returncode == 2
    assert (room / "cohort.toml").read_text() == "weeks = 5\n"


def test_what_build_does_not_make_is_not_overwritten(room):
    """A table built before is made again if that is asked for; anything else is kept."""
    (room / "other.csv").write_text("learner,note\nana,hello\n")
    done = build(room, out="other.csv")
    assert done.returncode == 2
    assert "not what this command makes" in done.stderr
    assert (room / "other.csv").read_text() == "learner,note\nana,hello\n"
    assert build(room, out="c.csv").returncode == 0
    before = (room / "c.csv").read_bytes()
    again = build(room, out="c.csv")
    assert again.returncode == 2
    assert "which is there already" in again.stderr
    assert "--force" in again.stderr
    assert (room / "c.csv").read_bytes() == before
    assert build(room, "--force", out="c.csv").returncode == 0


def test_the_schema_with_paid_cuts_is_written_before_the_table(room, monkeypatch):
    """If the table cannot be written, what was paid for is there, and the table is made from it."""
    from understudy.cohorts import cohort as cohort_module

    cohort = School(n_learners=12).simulate(0, np.random.default_rng(1))

    def fails(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(cohort_module, "write_table", fails)
    with pytest.raises(OSError, match="no space"):
        cohort_module.write_cohort(cohort, room / "paid.parquet")
    assert Schema.read(room / "paid.toml") == cohort.schema


def test_the_same_learners_under_two_names_add_up(room):
    """Two builds of one log: summaries of both are about the same learners, and the ledger says the sum."""
    for name in ("one", "two"):
        assert build(room, out=f"{name}.parquet").returncode == 0
        done = run(
            *("cohort", "summarize", f"{name}.parquet", "--epsilon", 2, "--delta", "1e-6"),
            *("-o", f"{name}.json", "--json"),
            cwd=room,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sum"] == 4
    for name in ("one.parquet", "two.parquet", "log.csv", "scores.csv"):
        shown = json.loads(run("ledger", name, "--json", cwd=room).stdout)
        assert (shown["epsilon"], round(shown["counted"], 2)) == (4, 2.83)
        assert "Spent: epsilon 2.835 of 10; 7.16, or " in run("ledger", name, cwd=room).stdout
        assert "The epsilons add up to 4." in run("ledger", name, cwd=room).stdout
    run("ledger", "two.parquet", "--limit", 3, cwd=room)
    refused = run(
        *("cohort", "summarize", "one.parquet", "--epsilon", 2, "--delta", "1e-6", "-o", "three.json"),
        cwd=room,
    )
    assert refused.returncode == 4


def test_what_was_charged_to_others_is_told_beside_the_files_own(room):
    assert build(room).returncode == 0
    ledger = Ledger(room / "understudy.ledger")
    for name, epsilon in ((file_population(room / "cohort.parquet"), 1.0), ("class 7", 2.0)):
        ledger.record(population=name, card="c", kind="k", method="m", guarantee=Guarantee(epsilon))
    shown = run("ledger", "cohort.parquet", cwd=room).stdout
    assert "Spent: epsilon 1 of 10" in shown
    assert "class 7 (epsilon 2). If they are the same learners, add them up." in shown
    # A file that the ledger does not know may be about anybody in it; what a charge would count is said first.
    (room / "else.csv").write_text("x")
    shown = run("ledger", "else.csv", cwd=room).stdout
    assert "Spent: epsilon 0 of 10" in shown
    assert (
        "cohort.parquet (epsilon 1), class 7 (epsilon 2). If they are the same learners, add them up."
        in shown
    )


def test_the_ledger_of_simulated_learners_shows_their_releases(tmp_path):
    assert run("simulate", "cohort.parquet", "--shape", "cohort", cwd=tmp_path).returncode == 0
    assert run("cohort", "summarize", "cohort.parquet", "-o", "s.json", cwd=tmp_path).returncode == 0
    shown = run("ledger", "cohort.parquet", cwd=tmp_path).stdout
    assert "cohort summarize" in shown
    assert "no budget was spent" in shown.lower()
    assert "Nothing has been released" not in shown


@pytest.mark.parametrize("shape", ["classroom", "exam", "cohort"])
def test_simulate_replaces_simulated_learners_only(tmp_path, shape):
    for _ in range(2):
        assert run("simulate", "a.csv", "--shape", shape, "--learners", 20, cwd=tmp_path).returncode == 0
    (tmp_path / "log.csv").write_text("learner,action\nana,x\n")
    assert run("simulate", "log.csv", "--shape", shape, cwd=tmp_path).returncode == 2
    assert (tmp_path / "log.csv").read_text() == "learner,action\nana,x\n"


def test_simulate_does_not_overwrite_a_declaration(tmp_path):
    paid = Schema(n_weeks=3, cuts=(41.0, 61.0), cuts_source="private").to_toml()
    (tmp_path / "cohort.toml").write_text(paid)
    done = run("simulate", "cohort.parquet", "--shape", "cohort", cwd=tmp_path)
    assert done.returncode == 2
    assert "declares something else" in done.stderr
    assert (tmp_path / "cohort.toml").read_text() == paid
    assert not (tmp_path / "cohort.parquet").exists()


def test_private_cuts_are_charged(room):
    done = build(room, "--cuts", "private", "--epsilon", "0.5", schema="open.toml")
    assert done.returncode == 0, done.stderr
    schema = Schema.read(room / "cohort.toml")
    assert schema.cuts_source == "private"
    (entry,) = Ledger(room / "understudy.ledger").entries(file_population(room / "cohort.parquet"))
    assert (entry.kind, entry.epsilon, entry.delta) == ("cohort build", 0.5, 0)
    # The list of scores holds the same learners.
    for name in ("scores.csv", "log.csv"):
        assert Ledger(room / "understudy.ledger").balance(file_population(room / name)).epsilon == 0.5
    assert "Charged epsilon 0.5 to" in done.stdout
    assert "0.5 of 10 is spent, and 9.5 can still be asked for" in done.stdout
    assert CANARY.encode() not in everything(room, done)
    again = build(room, "--cuts", "private", "--epsilon", "0.5", schema="open.toml")
    assert again.returncode == 2
    assert len(Ledger(room / "understudy.ledger").entries()) == 1


def test_private_cuts_say_that_learners_without_a_score_are_not_counted(room):
    listed = (room / "scores.csv").read_text()
    (room / "scores.csv").write_text(f"{listed}pupil 90,\n")
    done = build(room, "--cuts", "private", "--epsilon", "0.5", "--json", schema="open.toml")
    caveat = "learners-without-score-dropped"
    assert json.loads(done.stdout)["guarantee"]["caveats"] == [caveat]


def test_private_cuts_beyond_the_limit_are_refused_before_anything_is_written(room):
    done = build(room, "--cuts", "private", "--epsilon", "11", schema="open.toml")
    assert done.returncode == 4
    assert not (room / "cohort.parquet").exists()
    assert not (room / "cohort.toml").exists()


def test_a_declared_population_bears_the_cost(room):
    done = build(
        room,
        "--cuts",
        "private",
        "--epsilon",
        1,
        "--population",
        "Class 7",
        "--ledger",
        "l",
        schema="open.toml",
    )
    assert done.returncode == 0, done.stderr
    assert Ledger(room / "l").balance("class 7").epsilon == 1
    assert Ledger(room / "l").balance(file_population(room / "cohort.parquet")).epsilon == 1


def test_even_cuts_are_marked_as_not_private(room):
    done = build(room, "--cuts", "even", "--not-private", "--json", schema="open.toml")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert all(abs(number - 20) <= 1 for number in result["labels"].values())  # two scores are the same
    assert result["cuts_source"] == "data"
    assert (room / "cohort.toml").read_text().startswith("# NOT PRIVATE")
    assert Schema.read(room / "cohort.toml").cuts_source == "data"
    assert stat.S_IMODE((room / "cohort.toml").stat().st_mode) == 0o600
    assert CANARY not in done.stdout


@pytest.mark.parametrize(
    ("more", "schema", "message"),
    [
        ((), "open.toml", "declares no cuts"),
        (("--cuts", "declared"), "open.toml", "declares no cuts"),
        (("--cuts", "private", "--epsilon", "1"), "declared.toml", "has cuts already"),
        (("--cuts", "private"), "open.toml", "have a price"),
        (("--cuts", "private", "--epsilon", "nan"), "open.toml", "epsilon nan"),
        (("--epsilon", "1"), "declared.toml", "price of private cuts only"),
        (("--cuts", "even"), "open.toml", "moves others across them"),
        (("--not-private",), "declared.toml", "for even cuts"),
        (("--gap", "0"), "declared.toml", "a gap of 0"),
        (("--last-event", "31"), "declared.toml", "last event"),
        (("--time-zone", "Moon"), "declared.toml", "no time zone"),
        (("--format", "pdf"), "declared.toml", "no format"),
        ((), "none.toml", "no file"),
    ],
)
def test_wrong_use_is_said_before_anything_is_spent_or_written(room, more, schema, message):
    before = sorted(room.iterdir())
    done = build(room, *more, schema=schema)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Hint:" in done.stderr
    assert sorted(room.iterdir()) == before


def test_inputs_are_not_overwritten(room):
    for out in ("log.csv", "scores.csv"):
        assert build(room, out=out).returncode == 2
    assert build(room, out="cohort.json").returncode == 2


def test_facts_for_machines(room):
    done = build(room, "--json", "--gap", "45", "--last-event", "2", "--time-zone", "Europe/Berlin")
    result = json.loads(done.stdout)
    assert (result["learners"], result["weeks"], result["gap"], result["last_event"]) == (60, 3, 45, 2)
    assert sum(result["labels"].values()) == 60
    assert [window["name"] for window in result["windows"]] == [
        "morning",
        "afternoon",
        "evening",
        "overnight",
    ]
    assert result["counts"]["events"] == 3000
    assert result["internal"] is True
    assert result["guarantee"] is None


@pytest.mark.parametrize("name", ["cohort.parquet", "cohort.csv"])
def test_a_simulated_cohort(tmp_path, name):
    done = run(
        "simulate", name, "--shape", "cohort", "--learners", 40, "--year", 2, "--seed", 3, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "40 simulated learners over 17 weeks, year 2" in done.stdout
    cohort = read_cohort(tmp_path / name)
    expected = School(n_learners=40).simulate(2, np.random.default_rng(3))
    assert cohort.simulated
    assert cohort.schema == expected.schema
    np.testing.assert_allclose(cohort.values, expected.values, atol=0.005)
    assert cohort.label.tolist() == expected.label.tolist()


def test_a_simulated_cohort_has_120_learners_and_no_actions(tmp_path):
    done = run("simulate", "c.parquet", "--shape", "cohort", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"out": "c.parquet", "learners": 120, "weeks": 17, "year": 0}
    for wrong in (("--shape", "cohort", "--items", 3), ("--shape", "cohort", "--actions", 3), ("--year", 1)):
        assert run("simulate", "d.parquet", *wrong, cwd=tmp_path).returncode == 2
