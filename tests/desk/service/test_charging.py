"""Releases of a desk go through the same account as every other release.

They have no epsilon, no file that they write and no command, so the cases of tests/test_charging.py are put to
them here in the desk's own form: a job that workers repeat until it is done.
"""

import threading
from pathlib import Path

import polars as pl
import pytest

from tests.desk.support.fixtures import REASON, fill, school_frame
from tests.desk.support.pages import POLICY, Maker
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.population import SIMULATED_POPULATION, file_population
from understudy.desk.domain import certificate
from understudy.desk.service import data_sets, releases, views
from understudy.desk.service.verification import verify
from understudy.desk.store.jobs import LostLeaseError
from understudy.desk.store.tables import DataSetRow
from understudy.errors import DataError, MissingError, RefusedError

QUESTION = "Do students who work more in the evening achieve more?"


@pytest.fixture
def decided(tmp_path):
    """A desk, the name of a request that a reviewer decided to release, and a worker's lease of it."""
    filled = fill(tmp_path, policy=POLICY)
    make = Maker(filled)
    name = make.held(QUESTION)
    releases.decide(filled.desk, filled.reviewer, name, REASON)
    yield filled, name, make.lease(name)
    filled.desk.close()


def entries(filled):
    return account(filled).ledger.entries()


def account(filled):
    with filled.desk.database.reading() as session:
        return data_sets.account_of(session.query(DataSetRow).one())


def shown(filled, name):
    return views.request(filled.desk, filled.researcher, name).released


def interrupt(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(certificate, "document", fail)


def test_a_release_is_charged_once_to_the_learners_of_its_data_set(decided):
    filled, name, lease = decided
    releases.hand_out(filled.desk, lease)
    (entry,) = entries(filled)
    assert (entry.kind, entry.method) == (releases.KIND, f"desk request {name}")
    assert entry.population == SIMULATED_POPULATION
    assert (entry.epsilon, set(entry.risk)) == (
        None,
        {"mu", "advantage", "measured_mu_of_everything", "measured_advantage_of_everything"},
    )
    assert shown(filled, name) is not None


def test_past_the_limit_the_ledger_itself_refuses(decided, monkeypatch):
    """Also if the judgement before the charge were wrong."""
    filled, name, lease = decided
    with filled.desk.database.writing() as session:
        row = data_sets.find(session, filled.data_set)
        row.policy = {**row.policy, "mu_limit": 0.01}
    monkeypatch.setattr("understudy.desk.domain.policy.Verdict.enforce", lambda *_: None)
    releases.hand_out(filled.desk, lease)
    assert entries(filled) == []
    assert filled.state(name) == "output held"
    assert shown(filled, name) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("boom")])
def test_what_fails_after_the_charge_keeps_it_and_is_handed_out_later_without_another(
    decided, monkeypatch, error
):
    filled, name, lease = decided
    with monkeypatch.context() as patch:
        interrupt(patch, error)
        with pytest.raises(type(error)) as caught:
            releases.hand_out(filled.desk, lease)
    (entry,) = entries(filled)
    assert filled.state(name) == "being released"
    assert shown(filled, name) is None
    if isinstance(error, KeyboardInterrupt):
        assert "No budget was spent" in "\n".join(caught.value.__notes__)
    # The policy may have changed in the meantime: what was charged is handed out.
    with filled.desk.database.writing() as session:
        row = data_sets.find(session, filled.data_set)
        row.policy = {**row.policy, "mu_limit": 0.01}
    releases.hand_out(filled.desk, lease)
    assert entries(filled) == [entry]
    assert shown(filled, name) is not None
    assert verify(filled.desk).n_releases == 1


def test_two_workers_at_once_charge_once(decided):
    filled, _, lease = decided
    together, found = threading.Barrier(2), []

    def hand_out():
        together.wait()
        try:
            releases.hand_out(filled.desk, lease)
            found.append("handed out")
        except LostLeaseError:
            found.append("lost")

    threads = [threading.Thread(target=hand_out) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["handed out", "lost"]
    assert len(entries(filled)) == 1
    assert verify(filled.desk).n_releases == 1


@pytest.mark.parametrize("kind", [MissingError, DataError])
def test_without_a_ledger_that_can_be_written_nothing_leaves(decided, tmp_path, kind):
    filled, name, lease = decided
    place = tmp_path / "absent" / "l.ledger" if kind is MissingError else tmp_path / "damaged.ledger"
    if kind is DataError:
        place.write_bytes(b"not a ledger at all, but a file with some length to it")
    with filled.desk.database.writing() as session:
        row = data_sets.find(session, filled.data_set)
        before, row.ledger = row.ledger, str(place)
    with pytest.raises(kind):
        releases.hand_out(filled.desk, lease)
    assert filled.state(name) == "being released"
    assert shown(filled, name) is None
    with filled.desk.database.writing() as session:
        data_sets.find(session, filled.data_set).ledger = before
    releases.hand_out(filled.desk, lease)
    assert len(entries(filled)) == 1
    assert Path(before).exists()


def test_learners_of_a_registered_table_share_the_budget_of_its_population(tmp_path):
    filled = fill(tmp_path, policy=POLICY)
    real, synthetic = tmp_path / "class.csv", tmp_path / "stand-in.csv"
    frame = school_frame(5)
    frame.with_columns(pl.format("pupil {}", pl.col("learner"))).write_csv(real)
    school_frame(6).write_csv(synthetic)
    book = Ledger(tmp_path / "class.ledger")
    data_sets.register(
        filled.desk, filled.custodian, title="A class", policy=POLICY, real=real, synthetic=synthetic,
        population="class of 2026", ledger=book.path,
    )  # fmt: skip
    book.set_limit("class of 2026", 1.0)
    with pytest.raises(RefusedError):
        book.check(file_population(real), Guarantee(2.0))
    filled.desk.close()


def test_a_file_that_replaced_simulated_learners_is_not_taken_for_them(tmp_path):
    """The mark of simulated data lifts every limit, so it is looked for at every run and release."""
    filled = fill(tmp_path, policy=POLICY)
    with filled.desk.database.reading() as session:
        real = Path(data_sets.find(session, filled.data_set).real)
    assert data_sets.real_table(filled.desk, filled.data_set).hash
    school_frame(7).write_csv(real)
    with pytest.raises(RefusedError) as caught:
        data_sets.real_table(filled.desk, filled.data_set)
    assert caught.value.code == "not-simulated"
    filled.desk.close()
