"""The table of work: a lease for one worker at a time, and nothing done without it."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.desk.support.fixtures import OTHER
from understudy.desk.service import requests
from understudy.desk.store import jobs
from understudy.desk.store.jobs import LostLeaseError
from understudy.desk.store.tables import JobRow

GONE = timedelta(seconds=-1)


def take(filled, lasting=jobs.LEASE):
    with filled.desk.database.writing() as session:
        return jobs.take(session, lasting)


def finish(filled, lease):
    with filled.desk.database.writing() as session:
        jobs.finish(session, lease)


def test_a_job_is_one_workers_until_its_lease_ends(filled):
    first, second = filled.submitted(), filled.submitted()
    a, b = take(filled), take(filled)
    assert (a.request, b.request) == (first, second)
    assert take(filled) is None
    finish(filled, a)
    with pytest.raises(LostLeaseError):
        finish(filled, a)
    assert take(filled) is None


def test_a_silent_worker_loses_its_job_and_can_change_nothing(filled):
    name = filled.submitted()
    silent = take(filled, GONE)
    other = take(filled)
    assert (other.request, other.attempts) == (name, 2)
    for verb in (jobs.renew_lease, jobs.finish):
        with pytest.raises(LostLeaseError), filled.desk.database.writing() as session:
            verb(session, silent)
    with filled.desk.database.writing() as session:
        jobs.give_back(session, silent)
    assert take(filled) is None
    finish(filled, other)


def test_a_heartbeat_keeps_the_job_and_says_how_far_it_is(filled):
    filled.submitted()
    lease = replace(take(filled, GONE), lasting=jobs.LEASE)
    with filled.desk.database.writing() as session:
        jobs.renew_lease(session, lease, done=3, total=8, stage="running on shadows")
    assert take(filled) is None
    with filled.desk.database.reading() as session:
        row = session.get(JobRow, lease.job_id)
        assert (row.done, row.total, row.stage) == (3, 8, "running on shadows")


def test_a_cancelled_job_is_lost_to_its_worker(filled):
    name = filled.submitted()
    lease = take(filled)
    requests.withdraw(filled.desk, filled.researcher, name)
    with pytest.raises(LostLeaseError), filled.desk.database.writing() as session:
        jobs.renew_lease(session, lease)
    assert take(filled) is None


def test_what_is_given_back_is_taken_at_once_or_after_a_while(filled):
    filled.submitted()
    lease = take(filled)
    with filled.desk.database.writing() as session:
        jobs.give_back(session, lease)
    lease = take(filled)
    assert lease.attempts == 1
    with filled.desk.database.writing() as session:
        jobs.give_back(session, lease, after=timedelta(minutes=1), counted=True)
    assert take(filled) is None
    with filled.desk.database.writing() as session:
        session.get(JobRow, lease.job_id).leased_until -= timedelta(minutes=2)
    assert take(filled).attempts == 2


def test_a_job_that_ends_its_workers_waits_behind_others(filled):
    bad, good = filled.submitted(), filled.submitted()
    assert take(filled, GONE).request == bad
    assert take(filled).request == good


def test_many_workers_never_share_a_job(filled):
    names = {filled.submitted() for _ in range(12)}
    taken = []

    def work():
        while (lease := take(filled)) is not None:
            taken.append(lease.request)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(taken) == sorted(names)


def test_trials_and_releases_do_not_wait_behind_a_run(small):
    run, tried = small.in_review(), small.draft(OTHER)
    requests.approve(small.desk, small.reviewer, run)
    requests.submit(small.desk, small.researcher, tried)
    with small.desk.database.writing() as session:
        assert jobs.take(session, kinds=jobs.QUICK).request == tried
        assert jobs.take(session, kinds=jobs.QUICK) is None
        assert jobs.take(session, kinds=jobs.RUNS).request == run
