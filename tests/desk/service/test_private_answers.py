"""Private questions: charged before noise and once, within the limits, certified, and counted by other prices."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.desk.support.fixtures import (
    MEAN,
    OTHER,
    POLICY,
    PRIVATE,
    REASON,
    fill,
    policy_of,
    school_frame,
    write_real,
)
from tests.desk.support.pages import Maker
from understudy.cohorts.schema import DROPPED
from understudy.cohorts.simulate import SCHEMA
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.noise import WatchedNoise
from understudy.desk.domain import certificate
from understudy.desk.private import Schema, Test
from understudy.desk.service import data_sets, private_answers, releases, requests, views
from understudy.desk.service.verification import verify
from understudy.desk.store.jobs import LostLeaseError
from understudy.desk.store.tables import DataSetRow, ReleaseRow, RunRow
from understudy.errors import DataError, RefusedError

SMALLER = PRIVATE.replace("0.5", "0.25")
LARGER = PRIVATE.replace("0.5", "2")


def entries(filled):
    with filled.desk.database.reading() as session:
        return Ledger(Path(session.query(DataSetRow.ledger).scalar())).entries()


def actions(filled, name):
    return [event.action for event in seen(filled, name, filled.reviewer).history]


def seen(filled, name, who=None):
    return views.request(filled.desk, who or filled.researcher, name)


@pytest.fixture
def declared(tmp_path):
    """A desk on SQLite, with a public schema."""
    made = fill(tmp_path, schema=True)
    yield made
    made.desk.close()


@pytest.fixture
def decided(declared):
    """Questions that a reviewer approved, and a worker's lease of the job that answers them."""
    name = declared.in_review(PRIVATE)
    private_answers.approve(declared.desk, declared.reviewer, name)
    return declared, name, Maker(declared).lease(name)


def test_questions_are_answered_charged_and_certified(private):
    name = private.answered()
    view = seen(private, name)
    (entry,) = entries(private)
    assert (entry.kind, entry.method, entry.epsilon) == (releases.PRIVATE_KIND, f"desk request {name}", 0.5)
    assert view.private.questions == (
        "What is the mean of evening_01 (cut to 0 to 600) in each group of achievement?",
    )
    (answer,) = view.private.answers
    assert [one["of"] for one in answer["estimates"]] == [
        f"evening_01, achievement = {label}" for label in SCHEMA.labels
    ]
    # One draw of the noise, whatever it is read from.
    (table,) = view.released.tables.values()
    assert [row[1:] for row in table.rows] == [
        (one["value"], one["low"], one["high"]) for one in answer["estimates"]
    ]
    document = views.certificate(private.desk, view.certificate)
    certificate.verify(document, certificate.public_key(private.desk.settings.secret))
    stated = Guarantee.from_json(document["guarantee"])
    assert (stated.epsilon, stated.unit, stated.adjacency) == (
        0.5,
        "a learner with all their rows",
        "replace one learner",
    )
    assert document["n_learners"] == 36
    assert "price" not in document
    assert "nothing here is a guarantee" not in str(document)
    assert verify(private.desk).n_releases == 1


def test_the_trial_shows_the_widths_and_spends_nothing(declared):
    name = declared.in_review(PRIVATE)
    view = seen(declared, name)
    assert [one["question"]["ask"] for one in view.private.tried] == ["mean"]
    assert view.private.expected > 0
    assert view.private.answers == ()
    assert entries(declared) == []


def test_the_reviewer_approves_once_and_the_answers_leave(declared):
    name = declared.in_review(PRIVATE)
    assert "answer" in seen(declared, name, declared.reviewer).actions
    assert "approve" not in seen(declared, name, declared.reviewer).actions
    with pytest.raises(RefusedError, match="never run"):
        requests.approve(declared.desk, declared.reviewer, name)
    private_answers.approve(declared.desk, declared.reviewer, name)
    declared.work()
    assert actions(declared, name) == ["draft", "submit", "try", "pass trial", "answer", "hand out"]


def test_where_the_policy_says_so_no_person_is_needed(declared):
    with policy_of(declared, private_without_review=True):
        name = declared.submitted(PRIVATE)
        declared.work()
    assert declared.state(name) == "released"
    assert actions(declared, name) == ["draft", "submit", "try", "answer", "hand out"]
    assert verify(declared.desk).n_releases == 1


def test_an_analysis_goes_to_a_reviewer_whatever_the_policy_says_of_questions(declared):
    with policy_of(declared, private_without_review=True):
        name = declared.in_review(MEAN)
    with pytest.raises(RefusedError, match="no private questions"):
        private_answers.approve(declared.desk, declared.reviewer, name)


@pytest.mark.parametrize("unreviewed", [False, True])
def test_more_epsilon_than_one_request_may_ask_goes_back(declared, unreviewed):
    with policy_of(declared, private_without_review=unreviewed):
        name = declared.submitted(LARGER)
        declared.work()
    assert declared.state(name) == "returned"
    assert "epsilon 2 was asked for; 1 is the most of one request" in seen(declared, name).note
    assert entries(declared) == []


@pytest.mark.parametrize("unreviewed", [False, True])
def test_all_private_answers_together_stay_below_their_limit(declared, unreviewed):
    with policy_of(declared, private_epsilon_total=0.6, private_without_review=unreviewed):
        first = declared.submitted(PRIVATE)
        declared.work()
        if not unreviewed:
            private_answers.approve(declared.desk, declared.reviewer, first)
            declared.work()
        second = declared.submitted(PRIVATE)
        declared.work()
    assert (declared.state(first), declared.state(second)) == ("released", "returned")
    assert "0.6 is the most" in seen(declared, second).note
    assert [entry.epsilon for entry in entries(declared)] == [0.5]


@pytest.mark.parametrize("limit", ["private_epsilon", "private_epsilon_total"])
def test_limits_hold_at_the_decision_and_at_the_charge(declared, limit):
    name = declared.in_review(PRIVATE)
    with policy_of(declared, **{limit: 0.4}), pytest.raises(RefusedError, match="is the most"):
        private_answers.approve(declared.desk, declared.reviewer, name)
    assert declared.state(name) == "in review"
    private_answers.approve(declared.desk, declared.reviewer, name)
    with policy_of(declared, **{limit: 0.4}):
        declared.work()
    assert declared.state(name) == "returned"
    assert "is the most" in seen(declared, name).note
    assert entries(declared) == []
    verify(declared.desk)


def test_the_ledger_of_real_learners_refuses_and_its_words_stay_inside(tmp_path):
    real = school_frame(1).with_columns(pl.format("pupil {}", pl.col("learner")))
    filled = fill(tmp_path, real=real, schema=True)
    with filled.desk.database.reading() as session:
        book = Ledger(Path(session.query(DataSetRow.ledger).scalar()))
    book.set_limit("learners of this folder", 0.1)
    name = filled.in_review(PRIVATE)
    private_answers.approve(filled.desk, filled.reviewer, name)
    filled.work()
    assert filled.state(name) == "returned"
    assert seen(filled, name).note == private_answers.BUDGET_SPENT
    why = seen(filled, name, filled.reviewer).history[-1].detail["why"]
    assert "learners of this folder" in why
    assert book.entries() == []
    filled.desk.close()


@pytest.mark.parametrize("cell", [1e300, -5.0, math.inf, math.nan, None])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_how_a_request_ends_does_not_depend_on_one_learner(tmp_path, cell, epsilon):
    """Whatever is in a cell: state, note and the form of the answers are those of the other learners' table."""
    ask = f"""
EPSILON = {epsilon}


def analyze(ask):
    ask.mean("evening_01", by="achievement")
    ask.quantiles("evening_01")
    ask.histogram("evening_01")
    ask.linear("evening_01", on=["morning_01", "achievement"])
    ask.logistic("achievement", on=["evening_01"], value="high")
    ask.compare("evening_01", by="achievement", test="anova")
"""
    ends = []
    for folder, value in (("plain", 20.0), ("odd", cell)):
        (tmp_path / folder).mkdir()
        first = pl.int_range(pl.len()) == 0
        real = school_frame(1).with_columns(
            evening_01=pl.when(first).then(pl.lit(value, dtype=pl.Float64)).otherwise("evening_01"),
            achievement=pl.when(first).then(pl.lit("canary")).otherwise(pl.col("achievement").cast(str)),
        )
        policy = replace(POLICY, private_without_review=True)
        filled = fill(tmp_path / folder, real=real, policy=policy, schema=True)
        name = filled.submitted(ask)
        filled.work()
        view = seen(filled, name)
        form = (
            None if view.released is None else {key: len(t.rows) for key, t in view.released.tables.items()}
        )
        ends.append((view.state, view.note, form))
        assert "canary" not in str(view)
        filled.desk.close()
    assert ends[0] == ends[1]


def test_without_a_schema_nothing_private_can_be_asked(small):
    name = small.draft(PRIVATE)
    with pytest.raises(RefusedError) as caught:
        requests.submit(small.desk, small.researcher, name)
    assert caught.value.code == "no-schema"


def test_the_charge_comes_before_the_noise(decided, monkeypatch):
    filled, _, lease = decided
    drawn = []

    def watched(plan, records, noise):
        assert isinstance(noise, WatchedNoise)
        assert noise.secret
        drawn.append([entry.epsilon for entry in entries(filled)])
        return real(plan, records, noise)

    real = private_answers.answer_privately
    monkeypatch.setattr(private_answers, "answer_privately", watched)
    private_answers.hand_out(filled.desk, lease)
    assert drawn == [[0.5]]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError, RefusedError])
@pytest.mark.parametrize("where", ["answer_privately", "results_of", "facts_of"])
def test_a_worker_that_ends_after_the_charge_is_followed_by_one_that_answers(
    decided, monkeypatch, where, stop
):
    filled, name, lease = decided

    def ends(*_, **__):
        raise stop("it ended")

    with monkeypatch.context() as patched:
        patched.setattr(private_answers, where, ends)
        with pytest.raises(stop):
            private_answers.hand_out(filled.desk, lease)
    (entry,) = entries(filled)
    assert filled.state(name) == "being released"
    assert seen(filled, name).private.answers == ()
    with filled.desk.database.reading() as session:
        run = session.query(RunRow).filter_by(trial=False).one()
        assert run.results is None
        assert "answers" not in run.private
    # Limits may have changed: what was charged is answered.
    with policy_of(filled, private_epsilon=0.1, private_epsilon_total=0.1):
        private_answers.hand_out(filled.desk, lease)
    assert entries(filled) == [entry]
    assert filled.state(name) == "released"
    assert verify(filled.desk).n_releases == 1


def test_an_answer_that_its_noise_made_impossible_is_not_drawn_again(decided, monkeypatch):
    """What made it fail may say something about the learners: it is the answer."""
    filled, name, lease = decided
    calls = []

    def fails(plan, records, noise):
        calls.append(noise.discrete_laplace(np.zeros(3, dtype=np.int64), 2.0))
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(private_answers, "answer_privately", fails)
    private_answers.hand_out(filled.desk, lease)
    assert len(calls) == 1
    assert filled.state(name) == "released"
    assert seen(filled, name).released.values == {"no answer": private_answers.LOST}
    assert len(entries(filled)) == 1
    assert verify(filled.desk).n_releases == 1


def test_a_number_that_is_none_is_stored_as_none(private, monkeypatch):
    """PostgreSQL takes no NaN in JSON: a write that fails by the noise would be drawn again until it does not."""
    real = private_answers.answer_privately

    def lost(plan, records, noise):
        given = real(plan, records, noise)
        (answer,) = given.answers
        nothing = replace(answer, test=Test("Welch's t", math.nan, math.inf))
        return replace(given, answers=(nothing,))

    monkeypatch.setattr(private_answers, "answer_privately", lost)
    name = private.answered()
    (answer,) = seen(private, name).private.answers
    assert answer["test"] == {"name": "Welch's t", "statistic": None, "p_value": None}
    assert verify(private.desk).n_releases == 1


def test_a_schema_that_changes_after_the_decision_does_not_change_the_questions(decided, tmp_path):
    filled, name, lease = decided
    path = tmp_path / "columns.toml"
    path.write_text('[[columns]]\nname = "morning_01"\nof = "learner"\nkind = "number"\nlow = 0\nhigh = 60\n')
    data_sets.set_schema(filled.desk, filled.custodian, filled.data_set, path)
    private_answers.hand_out(filled.desk, lease)
    assert (
        "(cut to 0 to 600)" in views.certificate(filled.desk, seen(filled, name).certificate)["questions"][0]
    )


def test_of_noise_that_was_drawn_twice_one_answer_is_seen(decided, monkeypatch):
    """A worker that was thought dead has an answer of its own; it is thrown away."""
    filled, name, lease = decided
    given, real = [], private_answers.answer_privately

    def overtaken(plan, records, noise):
        given.append(found := real(plan, records, noise))
        if len(given) == 1:
            private_answers.hand_out(filled.desk, Maker(filled).lease(name))
        return found

    monkeypatch.setattr(private_answers, "answer_privately", overtaken)
    with pytest.raises(LostLeaseError):
        private_answers.hand_out(filled.desk, lease)
    shown = seen(filled, name).private.answers
    assert len(given) == 2
    assert shown == tuple(answer.to_json() for answer in given[1])
    with filled.desk.database.reading() as session:
        assert session.query(ReleaseRow).count() == 1
        (run,) = session.query(RunRow).filter_by(trial=False).all()
        assert run.private["answers"] == list(shown)
    assert len(entries(filled)) == 1


def test_who_withdrew_before_the_answer_is_not_in_it(decided):
    filled, name, lease = decided
    data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, "simulated-07")
    private_answers.hand_out(filled.desk, lease)
    assert seen(filled, name).n_learners_then == 35
    assert verify(filled.desk).n_releases == 1


def test_a_table_that_is_not_the_registered_one_any_more_is_not_charged(decided, tmp_path):
    filled, name, lease = decided
    frame = school_frame(1)
    write_real(pl.concat([frame, frame]), tmp_path / "data" / "real.csv")
    with pytest.raises(DataError, match="several rows"):
        private_answers.hand_out(filled.desk, lease)
    assert entries(filled) == []
    assert filled.state(name) == "being released"


def test_answers_leave_at_a_pace_that_says_nothing_about_the_work(decided, monkeypatch):
    filled, _, lease = decided
    waited, clock = [], iter([10.0, 13.5])
    monkeypatch.setattr(private_answers, "PACE", 2.0)
    monkeypatch.setattr(private_answers, "monotonic", lambda: next(clock))
    monkeypatch.setattr(private_answers, "sleep", waited.append)
    private_answers.hand_out(filled.desk, lease)
    assert waited == [0.5]


def test_a_price_counts_the_private_answers_released_before_it(declared):
    first = declared.held(MEAN)
    alone = seen(declared, first, declared.reviewer).held.prices
    declared.answered()
    with declared.desk.database.reading() as session:
        rows = session.query(ReleaseRow).all()
        mu = releases.private_mu(rows)
        assert mu == pytest.approx(math.sqrt(2 * rows[0].run.private["guarantee"]["rho"]))
    # What is held was priced before: it is composed with what left since, and need not run again.
    held = seen(declared, first, declared.reviewer).held
    assert held.verdict.may_release
    for end in ("value", "low", "high"):
        assert held.prices["together"]["mu"][end] == pytest.approx(
            math.hypot(alone["together"]["mu"][end], mu)
        )
        assert held.prices["together"]["advantage"][end] > alone["together"]["advantage"][end]
    assert held.prices["own"] == alone["own"]
    releases.decide(declared.desk, declared.reviewer, first, REASON)
    declared.work()
    entry = entries(declared)[-1]
    assert entry.risk["measured_mu_of_everything"] == pytest.approx(held.prices["together"]["mu"]["high"])
    # One that is priced from now on has it in its measurement, once.
    second = seen(declared, declared.held(OTHER), declared.reviewer).held
    assert second.prices["published"]["private_mu"] == pytest.approx(mu)
    assert second.prices["together"]["mu"]["high"] >= held.prices["together"]["mu"]["high"]
    assert second.verdict.may_release


def test_private_answers_can_take_an_analysis_over_the_limit(declared):
    name = declared.held(MEAN)
    price = seen(declared, name, declared.reviewer).held.prices["together"]["mu"]["high"]
    declared.answered()
    with policy_of(declared, mu_limit=price + 1e-6):
        assert not seen(declared, name, declared.reviewer).held.verdict.may_release


def test_a_data_set_shows_its_public_schema(declared):
    schema = data_sets.view(declared.desk, declared.researcher, declared.data_set).schema
    assert [column.name for column in schema.columns] == [
        "morning_01",
        "evening_01",
        "evening_02",
        "achievement",
    ]
    assert schema.number("evening_01") == (0.0, 600.0)
    assert schema.categories("achievement") == SCHEMA.labels


@pytest.mark.parametrize("cuts", [{"cuts": None}, {"cuts_source": "data"}])
def test_labels_with_cuts_from_the_data_carry_no_guarantee(declared, tmp_path, cuts):
    path = tmp_path / "other.toml"
    path.write_text(replace(SCHEMA, **cuts).to_toml())
    with pytest.raises(RefusedError) as caught:
        register(declared, tmp_path, path)
    assert caught.value.code == "cuts-from-data"


def test_what_no_epsilon_covers_is_stated(declared, tmp_path):
    path = tmp_path / "other.toml"
    path.write_text(replace(SCHEMA, without_events="dropped").to_toml())
    other = replace(declared, data_set=register(declared, tmp_path, path).name)
    name = other.answered()
    document = views.certificate(other.desk, seen(other, name).certificate)
    assert DROPPED.sentence in document["guarantee"]["statement"]


def test_columns_can_be_declared_for_any_table(declared, tmp_path):
    path = tmp_path / "columns.toml"
    path.write_text(
        'complete = ["evening_01"]\n[[columns]]\nname = "evening_01"\nof = "learner"\nkind = "number"\n'
        "low = 0\nhigh = 60\n"
    )
    schema = register(declared, tmp_path, path).schema
    assert schema == Schema.read(path)


def test_a_table_with_several_rows_of_a_learner_takes_no_schema(declared, tmp_path):
    frame = school_frame(1)
    twice = pl.concat([frame, frame.with_columns(pl.col("evening_01") + 1)])
    write_real(twice, tmp_path / "data" / "real.csv")
    with pytest.raises(DataError, match="several rows"):
        register(declared, tmp_path, tmp_path / "data" / "cohort.toml")


def register(filled, folder, schema):
    return data_sets.register(
        filled.desk,
        filled.custodian,
        title="Another",
        real=folder / "data" / "real.csv",
        synthetic=folder / "data" / "synthetic.csv",
        policy=POLICY,
        schema=schema,
    )
