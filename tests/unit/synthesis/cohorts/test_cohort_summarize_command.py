"""`understudy cohort summarize` as a custodian meets it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from command import run
from understudy.privacy.ledger import Ledger, file_population
from understudy.privacy.noise import test_noise as seeded_noise
from understudy.records.school import SCHEMA, School
from understudy.synthesis.cohorts import measuring
from understudy.synthesis.cohorts.budget import propose
from understudy.synthesis.cohorts.feedback import Effect, Suggestions
from understudy.synthesis.cohorts.summary import PrivateSummary


@pytest.fixture
def room(tmp_path):
    """A cohort of 60 'real' learners in a folder."""
    cohort = replace(School(n_learners=60).simulate(0, np.random.default_rng(1)), simulated=False)
    cohort.to_frame("pupil-").write_parquet(tmp_path / "cohort.parquet")
    (tmp_path / "cohort.toml").write_text(SCHEMA.to_toml())
    return tmp_path


def summarize(room, *more, epsilon=3, delta="1e-5"):
    return run(
        *("cohort", "summarize", "cohort.parquet", "--epsilon", epsilon, "--delta", delta, *more), cwd=room
    )


def test_a_summary_is_charged_and_written_and_not_overwritten(room):
    done = summarize(room, "-o", "summary.json")
    assert done.returncode == 0, done.stderr
    assert "epsilon 3 of 10 is spent" in done.stdout
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
    assert not (room / "understudy.ledger").exists()
    told = json.loads(summarize(room, "--explain", "--json", "--analyses", "weekly rhythm").stdout)
    assert told["spent"] == 0
    assert {one["statistic"] for one in told["predictions"]} == {"levels", "rhythm"}


def test_cycles_of_the_same_learners_add_up_to_the_limit(room):
    done = summarize(room, "-o", "first.json", "--population", "class of 2024", epsilon=6)
    assert done.returncode == 0, done.stderr
    refused = summarize(room, "-o", "second.json", "--population", "Class of 2024", epsilon=6)
    assert refused.returncode == 4
    assert not (room / "second.json").exists()


def test_a_large_delta_needs_a_declared_limit(room):
    assert summarize(room, "-o", "summary.json", delta="1e-3").returncode == 4
    assert not (room / "summary.json").exists()
    Ledger(room / "understudy.ledger").set_delta_limit(file_population(room / "cohort.parquet"), 2e-3)
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
    School(n_learners=60).simulate(0, np.random.default_rng(1)).to_frame().write_parquet(
        room / "cohort.parquet"
    )
    assert summarize(room, "-o", "s.json", "--population", "x").returncode == 2
    assert summarize(room, "-o", "s.json", epsilon=50).returncode == 0


def another_year(room, name, seed):
    cohort = replace(School(n_learners=60).simulate(1, np.random.default_rng(seed)), simulated=False)
    cohort.to_frame("pupil-").write_parquet(room / f"{name}.parquet")
    (room / f"{name}.toml").write_text(SCHEMA.to_toml())


def next_year(room, *more):
    return run(
        *("cohort", "summarize", "next.parquet", "--epsilon", 3, "--delta", "1e-5", "-o", "next.json", *more),
        cwd=room,
    )


def test_another_schema_does_not_undo_cuts_from_the_data(room):
    (room / "cohort.toml").write_text(replace(SCHEMA, cuts_source="data").to_toml())
    (room / "private.toml").write_text(replace(SCHEMA, cuts_source="private").to_toml())
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


def test_a_previous_summary_without_a_guarantee_is_refused(room):
    other = School(n_learners=60).simulate(0, np.random.default_rng(2))
    seeded = measuring.summarize(
        other, propose(SCHEMA, 60, 3.0, 1e-5), seeded_noise(np.random.default_rng(3))
    )
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
