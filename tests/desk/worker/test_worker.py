"""The worker: takes jobs, keeps its lease, and throws away what is not its own any more."""

import threading
from datetime import timedelta

import pytest

from tests.desk.support.fixtures import MEAN, REASON, InProcess
from understudy.desk.service import data_sets, releases, requests, views
from understudy.desk.store import jobs
from understudy.desk.store.tables import JobRow, RequestRow, RunRow
from understudy.desk.worker import worker
from understudy.errors import MissingError

SHORT = timedelta(seconds=0.06)


class Meddling(InProcess):
    """Calls somebody in the middle of the runs on the real data."""

    def __init__(self, limits=None, *, at=30, call=lambda: None):
        super().__init__()
        self._at, self._call = at, call

    def run_many(self, jobs, progress=None):
        def told(done, total):
            if done == self._at:
                self._call()
            progress(done, total)

        return super().run_many(jobs, None if progress is None else told)


def test_a_request_from_draft_to_certificate(filled):
    name = filled.released()
    shown = views.request(filled.desk, filled.researcher, name)
    assert shown.released is not None
    assert shown.certificate
    assert views.certificate(filled.desk, shown.certificate)["result"] == shown.released.to_json()
    with filled.worker() as idle:
        assert idle.do_one() is False


def test_code_that_fails_on_synthetic_data_goes_back_with_its_error(small):
    name = small.submitted("def analyze(data):\n    return 1 / 0\n")
    small.work()
    shown = views.request(small.desk, small.researcher, name)
    assert shown.state == "returned"
    assert str(shown.trial.failure) == "ZeroDivisionError in line 2"
    assert "ZeroDivisionError in line 2" in shown.note
    requests.edit(small.desk, small.researcher, name, question="How many minutes, then?", code=MEAN)
    requests.submit(small.desk, small.researcher, name)
    small.work()
    assert small.state(name) == "in review"


def test_an_error_on_real_data_is_for_reviewers_alone(small):
    code = (
        "def analyze(data):\n    if round(data['evening_01'].sum()) != %r:\n"
        "        raise KeyError(data['evening_01'])\n    return 1\n"
    )
    known = round(data_sets.synthetic_table(small.desk, small.data_set).rows["evening_01"].sum())
    name = small.held(code % known)
    assert str(views.request(small.desk, small.reviewer, name).held.failure) == "KeyError in line 3"
    shown = views.request(small.desk, small.researcher, name)
    assert shown.state == "being answered"
    assert (shown.held, shown.progress, shown.history, shown.note) == (None, None, (), "")
    with pytest.raises(Exception, match="no output"):
        releases.decide(small.desk, small.reviewer, name, REASON)


def test_a_cancelled_run_is_stopped_and_thrown_away(filled):
    name = filled.in_review()
    requests.approve(filled.desk, filled.reviewer, name)
    stopped = []

    def cancel():
        requests.cancel(filled.desk, filled.reviewer, name)
        stopped.append(threading.Event().wait(1.0))

    made = []

    def opened(limits):
        made.append(Meddling(call=cancel))
        return made[-1]

    with filled.worker(open_sandbox=opened, lasting=SHORT) as one:
        assert one.do_one()
        assert not one.do_one()
    assert stopped
    assert made[0].n_runs < 60
    assert filled.state(name) == "in review"
    with filled.desk.database.reading() as session:
        assert session.query(RunRow).filter_by(trial=False).count() == 0


def test_a_worker_whose_lease_ended_changes_nothing(filled):
    name = filled.in_review()
    requests.approve(filled.desk, filled.reviewer, name)

    def steal():
        with filled.desk.database.writing() as session:
            session.query(JobRow).filter_by(ended_at=None).update({"lease": "another worker's"})

    # So long a lease that no heartbeat comes in between: only showing the token can find it.
    with filled.worker(open_sandbox=lambda limits: Meddling(call=steal)) as one:
        assert one.do_one()
    assert filled.state(name) == "running"


def test_a_worker_that_shall_end_gives_its_job_back(small):
    name = small.in_review()
    requests.approve(small.desk, small.reviewer, name)
    stop = threading.Event()
    small.worker(open_sandbox=lambda limits: Meddling(call=stop.set)).run_until(stop)
    with small.desk.database.reading() as session:
        job = session.query(JobRow).filter_by(ended_at=None).one()
        assert (job.lease, job.attempts) == (None, 0)
    small.work()
    assert small.state(name) == "output held"


def test_a_sandbox_is_kept_warm_until_the_limits_change(small):
    opened = []

    class Counted(InProcess):
        def __init__(self, limits):
            super().__init__()
            opened.append(limits)

    with small.worker(open_sandbox=Counted) as one:
        for seconds in (1, 1, 2):
            data_sets.set_policy(
                small.desk,
                small.custodian,
                small.data_set,
                data_sets.Policy(run_seconds=seconds),
            )
            small.submitted()
            assert one.do_one()
    assert [limits.wall_seconds for limits in opened] == [1, 2]


def test_what_the_machine_lacks_is_not_counted_against_a_request(small, caplog):
    name = small.submitted()

    def missing(limits):
        raise MissingError("no bubblewrap.", hint="install it.")

    with small.worker(open_sandbox=missing) as one:
        for _ in range(8):
            assert one.do_one()
            _no_waiting(small)
    assert small.state(name) == "trial run"
    small.work()
    assert small.state(name) == "in review"


@pytest.mark.parametrize("kind", ["trial", "run"])
def test_a_request_that_breaks_its_workers_comes_to_an_end(small, caplog, kind):
    class Broken(InProcess):
        def run_many(self, jobs, progress=None):
            raise ValueError("CANARY-7431")

    name = small.submitted() if kind == "trial" else small.in_review()
    if kind == "run":
        requests.approve(small.desk, small.reviewer, name)
    with small.worker(open_sandbox=Broken) as one:
        for _ in range(jobs.MOST_ATTEMPTS + 1):
            assert one.do_one()
            _no_waiting(small)
        assert not one.do_one()
    assert small.state(name) == ("returned" if kind == "trial" else "output held")
    shown = views.request(small.desk, small.reviewer, name)
    assert str((shown.trial if kind == "trial" else shown.held).failure) == "it ended without a result"
    told = [record for record in caplog.records if record.name == worker.log.name]
    assert len(told) == jobs.MOST_ATTEMPTS
    assert "ValueError in desk/domain/analysis.py:" in told[0].getMessage()
    assert "CANARY" not in caplog.text


def test_duties_are_done_and_their_errors_told_by_type(small, caplog):
    stop, done = threading.Event(), []

    def broken(desk):
        raise ValueError("CANARY-7431")

    def last(desk):
        done.append(desk)
        stop.set()

    small.worker(duties=(broken, last)).run_until(stop)
    assert done == [small.desk]
    assert "ValueError in desk" in caplog.text
    assert "CANARY" not in caplog.text


def test_held_outputs_are_deleted_after_their_time(filled):
    kept, old = filled.held(), filled.held()
    with filled.desk.database.writing() as session:
        row = session.query(RequestRow).filter_by(name=old).one()
        row.moved_at -= timedelta(days=31)
    assert releases.expire(filled.desk) == 1
    assert (filled.state(kept), filled.state(old)) == ("output held", "withheld")
    with filled.desk.database.reading() as session:
        runs = {run.request_id: run for run in session.query(RunRow).filter_by(trial=False)}
        gone = runs[session.query(RequestRow.id).filter_by(name=old).scalar()]
        assert gone.results is gone.probes is gone.shadows is gone.prices is None
        assert gone.deleted_at is not None


def _no_waiting(filled):
    with filled.desk.database.writing() as session:
        session.query(JobRow).filter_by(ended_at=None).update({"lease": None, "leased_until": None})
