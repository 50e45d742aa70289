"""What may go wrong at a desk, done on purpose: nothing is lost, and nothing leaves twice.

`make faults` kills the worker at a hundred points; the tests at ten.
"""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from sqlalchemy import event

from tests.desk.support import killed
from tests.desk.support.fixtures import MEAN, OTHER, POLICY, REASON, fill, school_frame
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.desk.domain.people import Person, Role
from understudy.desk.service import releases, requests, views
from understudy.desk.service.verification import verify
from understudy.desk.store.tables import AttemptRow, DataSetRow, EventRow, JobRow, PersonRow, ReleaseRow
from understudy.errors import MissingError, RefusedError

pytestmark = pytest.mark.functional

N_POINTS = int(os.environ.get("UNDERSTUDY_KILL_POINTS", "10"))
# Nothing is refused here: these tests are about what happens to a release, not whether it should be one.
LENIENT = replace(
    POLICY,
    mu_limit=1e6,
    n_shadows=60,
    may_override=(
        *("learners", "dominance", "freedom", "extremes", "individuals", "shape", "digits", "size"),
        *("consistency", "differencing", "reconstruction"),
    ),
)


@pytest.fixture
def lenient(tmp_path, database_url):
    made = fill(
        tmp_path,
        database=database_url,
        policy=LENIENT,
        real=school_frame(1, 16),
        synthetic=school_frame(2, 16),
    )
    yield made
    made.desk.close()


def entries(filled):
    with filled.desk.database.reading() as session:
        path = Path(session.query(DataSetRow.ledger).scalar())
    return [entry for entry in Ledger(path).entries() if entry.kind == releases.KIND]


def let_go(filled):
    """As if the time had passed after which a job is tried again."""
    with filled.desk.database.writing() as session:
        session.query(JobRow).update({"lease": None, "leased_until": None})


def finish(filled, name, state):
    """Two new workers, until the request is where it should be."""

    def work(done):
        with filled.worker(lasting=killed.LEASE) as worker:
            while not done.is_set():
                if not worker.do_one():
                    done.wait(0.05)

    done = threading.Event()
    crew = [threading.Thread(target=work, args=(done,)) for _ in range(2)]
    for one in crew:
        one.start()
    deadline = time.monotonic() + 600
    while filled.state(name) != state and time.monotonic() < deadline:
        time.sleep(0.05)
    done.set()
    for one in crew:
        one.join()
    assert filled.state(name) == state


def at_once(*verbs):
    """What each of several people got who press a button at the same moment."""
    ready, given = threading.Barrier(len(verbs)), [None] * len(verbs)

    def do(place):
        ready.wait()
        try:
            given[place] = verbs[place]()
        except Exception as error:
            given[place] = error

    threads = [threading.Thread(target=do, args=(place,)) for place in range(len(verbs))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return given


class Course:
    """Takes requests from submission to release, with a worker that is struck down in each phase."""

    PHASES = ("in review", "output held", "released")
    _counted: ClassVar = {}

    def __init__(self, filled, told):
        self.filled, self.folder, self.told = filled, filled.desk.settings.folder, told
        self.struck = 0

    def n_points(self):
        """Of each phase, counted on a request that nothing happens to."""
        kind = self.filled.desk.database.engine.dialect.name
        if kind not in self._counted:
            self._counted[kind] = self._count()
        return self._counted[kind]

    def _count(self):
        found = []
        name = self.filled.submitted()
        for state in self.PHASES:
            self._decide(name, state)
            process = killed.start(self.folder, self.told)
            process.join()
            assert process.exitcode == 0
            assert self.filled.state(name) == state
            found.append(int(self.told.read_text()))
        return found

    def run(self, points, number=signal.SIGKILL):
        """One request; `points` are where the worker of each phase is struck."""
        name = self.filled.submitted()
        for state, point in zip(self.PHASES, points, strict=True):
            self._decide(name, state)
            process = killed.start(self.folder, self.told, point, number)
            if number == signal.SIGKILL:
                process.join()
                self.struck += process.exitcode == -signal.SIGKILL
                finish(self.filled, name, state)
            else:
                self._overtake(process, name, state)
            self._check(name, state)

    def _decide(self, name, state):
        if state == "output held":
            requests.approve(self.filled.desk, self.filled.reviewer, name)
        elif state == "released":
            releases.decide(self.filled.desk, self.filled.reviewer, name, REASON)

    def _overtake(self, process, name, state):
        """The worker stands still for longer than its lease, and goes on when others did its job, or wait for it."""
        stopped = Path(f"/proc/{process.pid}/stat")
        while process.is_alive() and stopped.read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.02)
        self.struck += process.is_alive()
        others = threading.Thread(target=finish, args=(self.filled, name, state))
        others.start()
        others.join(3)
        if process.is_alive():
            os.kill(process.pid, signal.SIGCONT)
        process.join()
        others.join()

    def _check(self, name, state):
        verify(self.filled.desk)
        with self.filled.desk.database.reading() as session:
            told = session.query(EventRow).filter_by(request=name, action="hand out").count()
            rows = session.query(ReleaseRow).filter(ReleaseRow.request.has(name=name)).all()
            cards = [one.card for one in entries(self.filled) if one.method == f"desk request {name}"]
            assert session.query(JobRow).filter_by(ended_at=None).count() == 0
            if state == "released":
                assert (told, cards) == (1, [rows[0].certificate])
            else:
                assert (told, rows, cards) == (0, [], [])


def test_a_worker_that_is_killed_loses_nothing_and_releases_nothing_twice(lenient, tmp_path):
    chance = random.Random(7)
    course = Course(lenient, tmp_path / "points")
    most = course.n_points()
    # Three points on each request, half of them on each database.
    n_requests = -(-N_POINTS // 6)
    for _ in range(n_requests):
        course.run([chance.randint(1, one) for one in most])
    # A few points lie beyond the end, since threads do not always meet the same lines.
    assert course.struck >= 0.7 * 3 * n_requests
    assert verify(lenient.desk).n_releases == len(entries(lenient)) >= n_requests


def test_a_worker_that_was_thought_dead_and_comes_back_changes_nothing(lenient, tmp_path):
    chance = random.Random(11)
    course = Course(lenient, tmp_path / "points")
    most = course.n_points()
    course.run([chance.randint(one // 4, one) for one in most], signal.SIGSTOP)
    assert course.struck >= 1
    assert verify(lenient.desk).n_releases == len(entries(lenient)) >= 1


def test_two_reviewers_release_at_once_and_one_wins(lenient):
    name = lenient.held()
    given = at_once(
        lambda: releases.decide(lenient.desk, lenient.reviewer, name, REASON),
        lambda: releases.decide(lenient.desk, lenient.second_reviewer, name, REASON),
    )
    assert sorted(type(one).__name__ for one in given) == ["NoneType", "RefusedError"]
    lenient.work()
    assert verify(lenient.desk).n_releases == len(entries(lenient)) == 1


def test_of_two_requests_released_at_once_the_second_has_an_old_price(lenient):
    names = [lenient.held(), lenient.held(OTHER)]
    given = at_once(
        *(lambda name=name: releases.decide(lenient.desk, lenient.reviewer, name, REASON) for name in names)
    )
    assert sorted(type(one).__name__ for one in given) == ["NoneType", "RefusedError"]
    refused = next(one for one in given if one is not None)
    assert "run it again" in str(refused)
    lenient.work()
    assert sorted(map(lenient.state, names)) == ["output held", "released"]


def test_fifty_researchers_submit_at_once(lenient):
    with lenient.desk.database.writing() as session:
        rows = [PersonRow(email=f"{n}@x.example", name=f"R{n}", role="researcher") for n in range(50)]
        session.add_all(rows)
        session.flush()
        people = [Person(row.id, row.name, Role.RESEARCHER) for row in rows]
    given = at_once(*(lambda who=who: lenient.submitted(who=who) for who in people))
    assert all(isinstance(one, str | RefusedError) for one in given)
    names = {one for one in given if isinstance(one, str)}
    assert len(names) == 50
    assert {line.name for line in views.requests(lenient.desk, lenient.reviewer)} == names
    with lenient.desk.database.reading() as session:
        assert session.query(JobRow).filter_by(kind="trial", ended_at=None).count() == 50
    verify(lenient.desk)


class FullDisk:
    """A database file that cannot grow any more, and has no page left inside."""

    def __init__(self, desk):
        self.desk = desk

    def __enter__(self):
        self.desk.database.engine.dispose()
        event.listen(self.desk.database.engine, "connect", self._limit)
        for at_a_time in (50, 1):
            with pytest.raises(MissingError, match="disk of the desk is full"):
                self._fill_up(at_a_time)

    def __exit__(self, *_):
        event.remove(self.desk.database.engine, "connect", self._limit)
        self.desk.database.engine.dispose()
        with self.desk.database.writing() as session:
            session.query(AttemptRow).delete()

    def _fill_up(self, at_a_time):
        while True:
            with self.desk.database.writing() as session:
                session.add_all([AttemptRow(key="x" * 60) for _ in range(at_a_time)])

    @staticmethod
    def _limit(connection, _):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")


def test_a_full_disk_is_told_and_nothing_is_half_done(tmp_path, caplog):
    small = fill(tmp_path, policy=LENIENT, real=school_frame(1, 16), synthetic=school_frame(2, 16))
    held, approved = small.held(), small.in_review(OTHER)
    requests.approve(small.desk, small.reviewer, approved)
    long = "it may leave " * 3000
    with FullDisk(small.desk):
        before = verify(small.desk)
        with pytest.raises(MissingError, match="disk of the desk is full; nothing was changed"):
            small.draft(MEAN + "#" * 50_000)
        with pytest.raises(MissingError, match="disk of the desk is full; nothing was changed"):
            releases.decide(small.desk, small.reviewer, held, long)
        assert verify(small.desk) == before
        with small.worker() as worker, contextlib.suppress(MissingError):
            worker.do_one()
        assert small.state(held) == "output held"
        assert small.state(approved) in ("approved", "running")
    assert "MissingError" in caplog.text
    let_go(small)
    small.work()
    assert small.state(approved) == "output held"
    releases.decide(small.desk, small.reviewer, held, long)
    small.work()
    assert small.state(held) == "released"
    assert verify(small.desk).n_releases == len(entries(small)) == 1
    small.desk.close()


def test_a_ledger_without_room_holds_a_release_up_and_nothing_leaves(lenient, monkeypatch, caplog):
    name = lenient.held()
    releases.decide(lenient.desk, lenient.reviewer, name, REASON)
    with lenient.desk.database.reading() as session:
        ledger = Ledger(Path(session.query(DataSetRow.ledger).scalar()))
    connect = sqlite3.connect

    def full(*arguments, **options):
        connection = connect(*arguments, **options)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        return connection

    def fill_up():
        for _ in range(2000):
            ledger.record(population="p", card="c", kind="k", method="m", guarantee=Guarantee.none("nothing"))

    with monkeypatch.context() as patch:
        patch.setattr("understudy.core.privacy.ledger.sqlite3.connect", full)
        with pytest.raises(MissingError, match="no room"):
            fill_up()
        with lenient.worker() as worker:
            assert worker.do_one()
        assert lenient.state(name) == "being released"
        assert views.request(lenient.desk, lenient.researcher, name).released is None
        assert entries(lenient) == []
    assert "DiskError" in caplog.text
    assert str(ledger.path) not in caplog.text
    let_go(lenient)
    lenient.work()
    assert lenient.state(name) == "released"
    assert verify(lenient.desk).n_releases == len(entries(lenient)) == 1
