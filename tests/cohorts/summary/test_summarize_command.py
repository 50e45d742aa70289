"""`understudy cohort summarize` as a custodian meets it."""

import io
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from tests.support.command import run
from understudy.cli import terminal
from understudy.cohorts.simulate import SCHEMA, School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.suggestions import Effect, Suggestions
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.files.simulated import mark_simulated
from understudy.core.privacy.ledger import Ledger, file_population
from understudy.core.privacy.noise import seeded_noise


@pytest.fixture
def room(tmp_path):
    """A cohort of 60 'real' learners in a folder."""
    cohort = replace(School(n_learners=60).simulate(0, np.random.default_rng(1)), simulated=False)
    cohort.to_polars("pupil-").write_parquet(tmp_path / "cohort.parquet")
    (tmp_path / "cohort.toml").write_text(SCHEMA.to_toml())
    return tmp_path


def summarize(room, *more, epsilon=3, delta="1e-5"):
    return run(
        *("cohort", "summarize", "cohort.parquet", "--epsilon", epsilon, "--delta", delta, *more), cwd=room
    )


def test_a_summary_is_charged_and_written_and_not_overwritten(room):
    done = summarize(room, "-o", "summary.json")
    assert done.returncode == 0, done.stderr
    assert "Charged epsilon 3 to 'learners of the file cohort.parquet'" in done.stdout
    assert "3 of 10 is spent, and " in done.stdout
    summary = PrivateSummary.read(room / "summary.json")
    assert summary.guarantee.formal
    assert summary.guarantee.epsilon == 3
    assert summary.n_learners == 60
    (entry,) = Ledger(room / "understudy.ledger").entries()
    assert entry.kind == "cohort summarize"
    assert entry.epsilon == 3
    assert entry.delta == 1e-5
    assert entry.card == summary.provenance["card"]
    again = summarize(room, "-o", "summary.json")
    assert again.returncode == 2
    assert "there already" in again.stderr
    assert len(Ledger(room / "understudy.ledger").entries()) == 1


def test_explain_spends_nothing(room):
    done = summarize(room, "--explain")
    assert done.returncode == 0, done.stderr
    assert "Nothing was spent" in done.stdout
    assert "habits" in done.stdout
    assert re.search(r"\n +5 in 100 +\d+ in 100 +\d+ in 100 +\d\.\d+ ", done.stdout)
    assert not (room / "understudy.ledger").exists()
    told = json.loads(summarize(room, "--explain", "--json", "--analyses", "weekly rhythm").stdout)
    assert told["spent"] == 0
    assert {one["statistic"] for one in told["predictions"]} == {"levels", "rhythm"}


def test_explain_tells_what_is_left_and_what_would_be_refused(room):
    before = json.loads(summarize(room, "--explain", "--json").stdout)
    assert (before["remaining"], before["limit"], before["refused"]) == (10, 10, None)
    assert before["other_epsilons"]["8"]["labels"] < before["other_epsilons"]["1"]["labels"]
    assert summarize(room, "-o", "summary.json", "--population", "7b", epsilon=8).returncode == 0
    ledger = (room / "understudy.ledger").read_bytes()
    # The file's learners are those of 7b: also without the name, and with a third one.
    for more in ((), ("--population", "7b"), ("--population", "others")):
        shown = summarize(room, "--explain", *more, epsilon=8).stdout
        assert re.search(r"of 10 (5\.\d+) can still be asked for", shown)
        assert "WOULD BE REFUSED: epsilon 8 was asked" in shown
    after = re.search(r"and (.*) after this summary", summarize(room, "--explain", epsilon=1).stdout)
    assert after is not None
    assert 5 < float(after[1]) < 6
    assert (room / "understudy.ledger").read_bytes() == ledger


def test_explain_tells_what_last_years_summary_can_do(room):
    assert summarize(room, "-o", "summary.json").returncode == 0
    another_year(room, "next", 5)
    arguments = (
        "cohort",
        "summarize",
        "next.parquet",
        "--delta",
        "1e-5",
        "--previous",
        "summary.json",
        "--explain",
    )
    assert "labels 71%" in run(*arguments, cwd=room).stdout
    assert "It can help" in run(*arguments, cwd=room).stdout
    assert "It hardly helps" in run(*arguments, "--epsilon", 30, cwd=room).stdout
    assert len(Ledger(room / "understudy.ledger").entries()) == 1


def test_the_table_fits_on_a_terminal():
    rows = propose(SCHEMA, 23, 3.0, 1e-5, statistics=list(MEASURES)).rows()
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    assert sum(widths) + 2 * 3 + len("budget") <= 80
    assert "16 times" not in str(rows)


def answer(monkeypatch, word):
    """Somebody is at the terminal and answers every question with this word."""
    monkeypatch.setattr(terminal, "somebody_is_there", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{word}\n"))


def test_noise_that_hides_everything_is_said_before_it_is_paid_for(room, monkeypatch):
    few = replace(School(n_learners=23).simulate(0, np.random.default_rng(1)), simulated=False)
    few.to_polars("pupil-").write_parquet(room / "cohort.parquet")
    answer(monkeypatch, "n")
    asked = summarize(room, "-o", "s.json")
    assert asked.returncode == 4
    assert "noise is as large as what there is to learn in labels" in asked.stderr
    assert "What helps: more learners" in asked.stderr
    assert "(--epsilon, --analyses, --previous)" in asked.stderr
    assert "nothing was charged" in asked.stderr
    assert not (room / "understudy.ledger").exists()
    answer(monkeypatch, "y")
    assert summarize(room, "-o", "s.json").returncode == 0
    assert propose(SCHEMA, 120, 3.0, 1e-5).warning() is None


def test_a_person_who_stops_it_is_told_what_was_charged(room, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("understudy.cli.cohort.summary.read_cohort", stopped)
        early = summarize(room, "-o", "a.json")
    assert (early.returncode, early.stderr) == (
        130,
        "Stopped.\nNothing was written, and nothing was charged.\n",
    )
    assert not (room / "understudy.ledger").exists()
    with monkeypatch.context() as patched:
        patched.setattr("understudy.cohorts.summary.summarize.noisy_summary", stopped)
        late = summarize(room, "-o", "b.json")
    entries = Ledger(room / "understudy.ledger").entries()
    assert late.returncode == 130
    assert [entry.kind for entry in entries] == ["cohort summarize", "taken back"]
    assert "Nothing was written, and the charge was taken back." in late.stderr


def test_wrong_numbers_are_refused_before_the_file_is_read(room):
    (room / "cohort.parquet").write_text("not a table")
    done = summarize(room, "-o", "s.json", epsilon=0)
    assert done.returncode == 2
    assert "got 0 and 1e-05." in done.stderr
    assert "(--epsilon, --delta)" in done.stderr


def test_the_next_command_can_be_pasted(room):
    done = summarize(room, "-o", "my summary.json")
    assert (
        "Next: understudy cohort synthesize 'my summary.json' -o 'my summary-synthetic.parquet'"
        in done.stdout
    )


@pytest.mark.parametrize(
    ("name", "said"), [("summary.json", "a private summary"), ("cohort.toml", "the declaration")]
)
def test_another_kind_of_file_is_no_cohort(room, name, said):
    if name == "summary.json":
        (room / name).write_text('{"format": "understudy cohort summary"}')
    done = run("cohort", "summarize", name, "-o", "s.json", cwd=room)
    assert done.returncode == 3
    assert f"{name} is {said}" in done.stderr
    assert "cohort build" in done.stderr


def test_a_previous_summary_of_another_school_is_refused_before_the_charge(room):
    assert summarize(room, "-o", "summary.json").returncode == 0
    another_year(room, "next", 5)
    (room / "next.toml").write_text(replace(SCHEMA, cuts=(40.0, 70.0), title="Another school").to_toml())
    done = next_year(room, "--previous", "summary.json")
    assert done.returncode == 3
    assert "other cuts (48, 62; this year 40, 70)" in done.stderr
    assert len(Ledger(room / "understudy.ledger").entries()) == 1


def test_cycles_of_the_same_learners_add_up_to_the_limit(room):
    done = summarize(room, "-o", "first.json", "--population", "class of 2024", epsilon=8)
    assert done.returncode == 0, done.stderr
    refused = summarize(room, "-o", "second.json", "--population", "Class of 2024", epsilon=8)
    assert refused.returncode == 4
    assert not (room / "second.json").exists()


def test_a_large_delta_needs_a_declared_limit(room):
    assert summarize(room, "-o", "summary.json", delta="1e-3").returncode == 4
    assert not (room / "summary.json").exists()
    Ledger(room / "understudy.ledger").set_delta_limit(
        file_population(room / "cohort.parquet"), 2e-3, "a test"
    )
    done = summarize(room, "-o", "summary.json", "--json", delta="1e-3")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"]["delta"] == 1e-3


def test_cuts_from_the_data_are_refused(room):
    (room / "cohort.toml").write_text(replace(SCHEMA, cuts_source="data").to_toml())
    done = summarize(room, "-o", "summary.json")
    assert done.returncode == 3
    assert "cuts" in done.stderr
    assert not (room / "understudy.ledger").exists()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ((), 2),
        (("-o", "summary.csv"), 2),
        (("-o", "nowhere/summary.json"), 2),
        (("-o", "s.json", "--analyses", "astrology"), 2),
        (("-o", "s.json", "--statistics", "names"), 2),
    ],
)
def test_wrong_use_is_explained_before_anything_is_spent(room, more, code):
    done = summarize(room, *more)
    assert done.returncode == code
    assert "Hint:" in done.stderr
    assert not (room / "understudy.ledger").exists()


def test_simulated_learners_have_no_budget_and_no_population(room):
    School(n_learners=60).simulate(0, np.random.default_rng(1)).to_polars().write_parquet(
        room / "cohort.parquet"
    )
    mark_simulated(room / "cohort.parquet")
    assert summarize(room, "-o", "s.json", "--population", "x").returncode == 2
    assert summarize(room, "-o", "s.json", epsilon=50).returncode == 0


def another_year(room, name, seed):
    cohort = replace(School(n_learners=60).simulate(1, np.random.default_rng(seed)), simulated=False)
    cohort.to_polars("pupil-").write_parquet(room / f"{name}.parquet")
    (room / f"{name}.toml").write_text(SCHEMA.to_toml())


def next_year(room, *more):
    return run(
        *("cohort", "summarize", "next.parquet", "--epsilon", 3, "--delta", "1e-5", "-o", "next.json", *more),
        cwd=room,
    )


def test_another_schema_does_not_undo_cuts_from_the_data(room):
    (room / "cohort.toml").write_text(replace(SCHEMA, cuts_source="data").to_toml())
    (room / "private.toml").write_text(replace(SCHEMA, cuts_source="private", cuts_epsilon=1.0).to_toml())
    done = summarize(room, "-o", "summary.json", "--schema", "private.toml")
    assert done.returncode == 3
    assert "come from the data" in done.stderr
    assert not (room / "summary.json").exists()
    assert not (room / "understudy.ledger").exists()


def test_shares_that_add_up_to_more_than_all_are_no_plan():
    plan = propose(SCHEMA, 60, 3.0, 1e-5)
    for shares in ({"labels": 0.6, "levels": 0.6}, {"labels": 1.2, "levels": -0.2}, {"labels": 0.0}):
        with pytest.raises(ValueError, match="shares of a budget"):
            replace(plan, shares=shares)


def test_last_years_summary_is_weighed_in_and_stated(room):
    assert summarize(room, "-o", "summary.json").returncode == 0
    another_year(room, "next", 5)
    done = next_year(room, "--previous", "summary.json")
    assert done.returncode == 0, done.stderr
    assert "charged in their own year" in done.stdout
    assert "your word" not in done.stderr
    first, second = Ledger(room / "understudy.ledger").entries()
    assert "charged in their own year" not in first.statement
    assert "charged in their own year" in second.statement
    read = PrivateSummary.read(room / "next.json")
    assert read.provenance["previous"] == [first.card]
    assert "charged in their own year" in str(read.guarantee)


def test_a_previous_summary_of_the_same_learners_is_refused_before_anything_is_spent(room):
    assert summarize(room, "-o", "summary.json", epsilon=1).returncode == 0
    again = summarize(room, "-o", "again.json", "--previous", "summary.json", epsilon=1)
    assert again.returncode == 4
    assert "same learners" in again.stderr
    # As one population, or through a file that both have in common.
    another_year(room, "next", 5)
    ledger = Ledger(room / "understudy.ledger")
    ledger.link("class 7", [room / "cohort.parquet"])
    assert next_year(room, "--previous", "summary.json", "--population", "Class 7").returncode == 4
    assert (
        next_year(room, "--previous", "summary.json", "--population", "learners of this folder").returncode
        == 4
    )
    ledger.link(file_population(room / "next.parquet"), [room / "log.csv"])
    ledger.link(file_population(room / "cohort.parquet"), [room / "log.csv"])
    assert next_year(room, "--previous", "summary.json").returncode == 4
    assert not (room / "next.json").exists()
    assert len(ledger.entries()) == 1


def test_a_chain_of_years_is_followed_to_its_first(room):
    assert summarize(room, "-o", "summary.json", epsilon=1).returncode == 0
    another_year(room, "next", 5)
    assert next_year(room, "--previous", "summary.json").returncode == 0
    back = summarize(room, "-o", "third.json", "--previous", "next.json", epsilon=1)
    assert back.returncode == 4
    assert "same learners" in back.stderr


def test_a_previous_summary_from_another_ledger_is_the_custodians_word(room):
    assert summarize(room, "-o", "summary.json", "--ledger", "other.ledger").returncode == 0
    another_year(room, "next", 5)
    done = next_year(room, "--previous", "summary.json")
    assert done.returncode == 0, done.stderr
    assert "your word" in done.stderr
    # What the ledger does not know is not asserted, in no place.
    (entry,) = Ledger(room / "understudy.ledger").entries()
    for said in (done.stdout, entry.statement, str(PrivateSummary.read(room / "next.json").guarantee)):
        assert "as its file claims" in said
        assert "charged in their own year" not in said


def copied(room, name="copy"):
    for kind in (".parquet", ".toml"):
        shutil.copyfile(room / f"cohort{kind}", room / f"{name}{kind}")
    return run(
        *("cohort", "summarize", f"{name}.parquet", "--epsilon", 9, "--delta", "1e-5", "-o", f"{name}.json"),
        cwd=room,
    )


def test_a_copy_under_another_name_has_no_budget_of_its_own(room):
    (room / "cohort.toml").write_text(replace(SCHEMA, data_set="a" * 16).to_toml())
    assert summarize(room, "-o", "summary.json", epsilon=6).returncode == 0
    assert "a" * 16 not in (room / "summary.json").read_text()
    refused = copied(room)
    assert refused.returncode == 4
    assert "6 of 10 is spent" in refused.stderr
    # Nor with another schema, nor as the prior of itself.
    (room / "bare.toml").write_text(SCHEMA.to_toml())
    arguments = ("cohort", "summarize", "copy.parquet", "--delta", "1e-5", "-o", "copy.json")
    assert run(*arguments, "--epsilon", 9, "--schema", "bare.toml", cwd=room).returncode == 4
    again = run(*arguments, "--epsilon", 1, "--previous", "summary.json", cwd=room)
    assert again.returncode == 4
    assert "same learners" in again.stderr
    shown = run(*arguments, "--epsilon", 9, "--explain", cwd=room).stdout
    assert "WOULD BE REFUSED" in shown
    assert not (room / "copy.json").exists()


def test_a_table_without_a_name_beside_others_is_said_before_the_charge(room, monkeypatch):
    first = summarize(room, "-o", "summary.json", epsilon=6)
    assert "has no `data_set`" not in first.stderr
    assert "has no `data_set`" not in summarize(room, "-o", "again.json", epsilon=1).stderr
    known = copied(room)
    assert known.returncode == 4
    assert "knows these learners, or many of them, as 'learners of the file cohort.parquet'" in known.stderr
    another_year(room, "next", 5)
    done = next_year(room)
    assert done.returncode == 0, done.stderr
    assert "The schema has no `data_set`" in done.stderr
    assert "learners of the file cohort.parquet" in done.stderr
    assert "--population" in done.stderr
    n_entries = len(Ledger(room / "understudy.ledger").entries())
    answer(monkeypatch, "n")
    refused = copied(room, "third")
    assert refused.returncode == 4
    assert "knows these learners, or many of them, as 'learners of the file cohort.parquet'" in refused.stderr
    assert len(Ledger(room / "understudy.ledger").entries()) == n_entries


def test_cuts_that_this_ledger_did_not_charge_are_said(room):
    (room / "cohort.toml").write_text(replace(SCHEMA, cuts_source="private", cuts_epsilon=2.0).to_toml())
    done = summarize(room, "-o", "summary.json")
    assert done.returncode == 0, done.stderr
    assert "cost epsilon 2, and the ledger understudy.ledger did not charge that" in done.stderr.replace(
        str(room) + "/", ""
    )


def test_a_previous_summary_without_a_guarantee_is_refused(room):
    other = School(n_learners=60).simulate(0, np.random.default_rng(2))
    seeded = noisy_summary(other, propose(SCHEMA, 60, 3.0, 1e-5), seeded_noise(np.random.default_rng(3)))
    (room / "seeded.json").write_text(json.dumps(seeded.to_json()))
    another_year(room, "next", 5)
    done = next_year(room, "--previous", "seeded.json")
    assert done.returncode == 4
    assert "no formal guarantee" in done.stderr
    assert not (room / "understudy.ledger").exists()


def test_suggestions_are_stated_and_charged_the_same(room):
    told = Suggestions(("a sentence",), {"rhythm": 1.4}, (Effect("evening", "active", 1.0, 2),), 60)
    (room / "suggestions.json").write_text(json.dumps(told.to_json()))
    done = summarize(room, "-o", "summary.json", "--suggestions", "suggestions.json")
    assert done.returncode == 0, done.stderr
    assert "no epsilon covers" in done.stdout
    (entry,) = Ledger(room / "understudy.ledger").entries()
    assert entry.epsilon == 3
    assert "no epsilon covers" in entry.statement
    assert PrivateSummary.read(room / "summary.json").statistics["habits"].context["validated_cells"]
