"""`understudy cohort summarize` as a custodian meets it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from command import run
from understudy.privacy.ledger import Ledger, file_population
from understudy.records.school import SCHEMA, School
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
