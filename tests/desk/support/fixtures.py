"""A desk for tests, on SQLite and on a PostgreSQL that lives as long as the tests; a stand-in for the sandbox."""

import io
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.desk.support.postgresql import Cluster, find_postgresql, without_rights
from understudy.cohorts.simulate import SCHEMA, School
from understudy.core.files.simulated import mark_simulated
from understudy.desk.disclosure import probing, replacement
from understudy.desk.domain.people import Person, Role
from understudy.desk.domain.policy import LIBRARIES, Policy
from understudy.desk.risk import game
from understudy.desk.service import Desk, data_sets, private_answers, releases, requests
from understudy.desk.store.settings import Settings
from understudy.desk.store.tables import PersonRow, RequestRow
from understudy.desk.worker.worker import Worker
from understudy.sandbox.jobs import Outcome

N_LEARNERS = 36
POLICY = Policy(
    minimum_learners=4,
    minimum_freedom=4,
    mu_limit=20.0,
    advantage_limit=1.0,
    n_shadows=60,
    share_of_learners=3.0,
    libraries=(*LIBRARIES, "hashlib", "json", "os", "random", "socket", "sys", "time", "zlib"),
    may_override=("learners", "dominance", "freedom", "extremes", "consistency", "differencing"),
)
MEAN = """
def analyze(data):
    return {"mean minutes": float(data["evening_01"].mean())}
"""
OTHER = """
def analyze(data):
    return {"spread": float(data["morning_01"].std())}
"""
PRIVATE = """
EPSILON = 0.5


def analyze(ask):
    ask.mean("evening_01", by="achievement")
"""
REASON = "many learners stand behind it"


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL for this session, or a skip."""
    programs = find_postgresql()
    if programs is None:
        pytest.skip("no PostgreSQL on this machine")
    folder = Path(tempfile.mkdtemp(prefix="understudy-postgresql-", dir=_quick_folder()))
    rights = without_rights()
    if rights:
        os.chown(folder, rights["user"], rights["group"])
    cluster = Cluster(programs, folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _quick_folder():
    """Memory, if there is room in it: every test has a database of its own."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 2 * 10**9 else None


class InProcess:
    """Stands in for the sandbox where a test is about something else: runs code here, without any protection."""

    def __init__(self, limits=None):
        self.n_runs = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def run_many(self, jobs, progress=None):
        outcomes = []
        for done, job in enumerate(jobs, 1):
            outcomes.append(self._run(job))
            self.n_runs += 1
            if progress is not None:
                progress(done, len(jobs))
        return outcomes

    def _run(self, job):
        import pandas as pd

        tables = {name: pl.read_ipc_stream(io.BytesIO(content)) for name, content in job.tables.items()}
        names = {}
        np.random.seed(job.seed % 2**32)  # noqa: NPY002 -- as the sandbox does for code that we did not write
        try:
            exec(compile(job.code, "<submitted>", "exec"), names)  # noqa: S102
            frames = {name: frame.to_pandas() for name, frame in tables.items()}
            given = names[job.entry](**job.arguments, **frames)
        except Exception as error:
            trace, line = error.__traceback__, None
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == "<submitted>":
                    line = trace.tb_lineno
                trace = trace.tb_next
            return Outcome("error", error_type=type(error).__name__, error_line=line)
        given = {"result": given} if isinstance(given, pd.DataFrame) else given
        if not isinstance(given, dict):
            return Outcome("done", given)
        frames = {name: one for name, one in given.items() if isinstance(one, pd.DataFrame)}
        return Outcome(
            "done",
            {name: one for name, one in given.items() if name not in frames},
            {name: _arrow(frame) for name, frame in frames.items()},
        )


def _arrow(frame):
    sink = io.BytesIO()
    pl.from_pandas(frame).write_ipc_stream(sink)
    return sink.getvalue()


@dataclass
class Filled:
    """A desk with people and a data set."""

    desk: Desk
    data_set: str
    custodian: Person
    reviewer: Person
    second_reviewer: Person
    researcher: Person
    second_researcher: Person

    @property
    def people(self):
        return [
            self.custodian,
            self.reviewer,
            self.second_reviewer,
            self.researcher,
            self.second_researcher,
        ]

    def worker(self, **settings):
        return Worker(self.desk, **{"open_sandbox": InProcess, **settings})

    def draft(self, code=MEAN, who=None):
        return requests.create(
            self.desk,
            who or self.researcher,
            self.data_set,
            question="How many minutes in the evening?",
            code=code,
        )

    def submitted(self, code=MEAN, who=None):
        name = self.draft(code, who)
        requests.submit(self.desk, who or self.researcher, name)
        return name

    def in_review(self, code=MEAN, who=None):
        name = self.submitted(code, who)
        self.work()
        assert self.state(name) == "in review"
        return name

    def held(self, code=MEAN, who=None):
        name = self.in_review(code, who)
        requests.approve(self.desk, self.reviewer, name)
        self.work()
        assert self.state(name) == "output held"
        return name

    def released(self, code=MEAN, who=None):
        name = self.held(code, who)
        releases.decide(self.desk, self.reviewer, name, REASON)
        self.work()
        assert self.state(name) == "released"
        return name

    def answered(self, code=PRIVATE, who=None):
        """Private questions with their answers."""
        name = self.in_review(code, who)
        private_answers.approve(self.desk, self.reviewer, name)
        self.work()
        assert self.state(name) == "released"
        return name

    def work(self):
        """Do all jobs that wait."""
        with self.worker() as worker:
            while worker.do_one():
                pass

    def state(self, name):
        with self.desk.database.reading() as session:
            return session.query(RequestRow).filter_by(name=name).one().state


def school_frame(seed, n_learners=N_LEARNERS):
    """A few columns of a simulated school."""
    frame = School(n_learners).simulate(0, np.random.default_rng(seed)).to_polars()
    return frame.select("learner", "morning_01", "evening_01", "evening_02", "achievement")


def write_real(frame, path):
    """The table that stands for real data: marked as simulated, unless its learners are named like people."""
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    if "learner" in frame.columns and frame["learner"].str.starts_with("simulated-").all():
        mark_simulated(path)


def add_people(desk):
    """A custodian, two reviewers and two researchers."""
    roles = [Role.CUSTODIAN, Role.REVIEWER, Role.REVIEWER, Role.RESEARCHER, Role.RESEARCHER]
    names = ["Corinna", "Rita", "Ravi", "Selma", "Samuel"]
    with desk.database.writing() as session:
        rows = [
            PersonRow(email=f"{name.lower()}@school.example", name=name, role=role.value)
            for name, role in zip(names, roles, strict=True)
        ]
        session.add_all(rows)
        session.flush()
        return [Person(row.id, row.name, Role(row.role)) for row in rows]


def fill(folder, *, database="", policy=POLICY, real=None, synthetic=None, summary=None, schema=False):
    """A desk in a new folder, with five people and a registered data set; with its public `schema` if that is asked."""
    Settings.write(folder / "desk", "Test desk", database=database)
    (folder / "desk" / "policy.toml").write_text(policy.to_toml())
    (folder / "data").mkdir()
    real = school_frame(1) if real is None else real
    write_real(real, folder / "data" / "real.csv")
    (school_frame(2) if synthetic is None else synthetic).write_csv(folder / "data" / "synthetic.csv")
    declared = folder / "data" / "cohort.toml"
    declared.write_text(SCHEMA.to_toml())
    desk = Desk.open(folder / "desk")
    people = add_people(desk)
    view = data_sets.register(
        desk,
        people[0],
        title="A school",
        real=folder / "data" / "real.csv",
        synthetic=folder / "data" / "synthetic.csv",
        policy=policy,
        summary=summary,
        schema=declared if schema else None,
    )
    return Filled(desk, view.name, *people)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request):
    """URL of a new database; empty for a file in the desk's folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgresql").new()


@pytest.fixture
def filled(tmp_path, database_url):
    """A filled desk, on each of the databases."""
    made = fill(tmp_path, database=database_url)
    yield made
    made.desk.close()


@pytest.fixture
def private(tmp_path, database_url):
    """A filled desk with a public schema, on each of the databases."""
    made = fill(tmp_path, database=database_url, schema=True)
    yield made
    made.desk.close()


@pytest.fixture
def small(tmp_path):
    """A filled desk on SQLite, for what does not depend on the database."""
    made = fill(tmp_path)
    yield made
    made.desk.close()


def make_rough(change):
    """Prices and checks with few repetitions: how exact they are does not matter. `change` is setattr, or a test's."""
    change(game, "N_BOOTSTRAPS", 5)
    change(game, "N_NULLS", 1)
    change(probing, "N_TRIPLES", 2)
    # Groups of a few learners: who exactly decides something does not matter either.
    change(replacement, "MOST_GROUPS", 4)
    change(replacement, "N_ORDERS", 2)
    change(replacement, "MOST_COMPARED", 4)
    change(replacement, "N_TOGETHER", 2)
    change(replacement, "MOST_PACKED", 2)
    change(replacement, "MOST_SUMMED", 2)
    change(replacement, "MOST_SIZES", 2)


@pytest.fixture(autouse=True)
def rough_prices(monkeypatch):
    """Everywhere at the desk but in tests/desk/risk, which is about prices."""
    make_rough(monkeypatch.setattr)
    monkeypatch.setattr(private_answers, "PACE", 0.01)


@contextmanager
def policy_of(filled, **changes):
    """Other limits for a while, as if they had always been there: answers do not get old by them."""
    _set_quietly(filled, replace(POLICY, **changes))
    try:
        yield
    finally:
        _set_quietly(filled, POLICY)


def _set_quietly(filled, policy):
    with filled.desk.database.writing() as session:
        data_sets.find(session, filled.data_set).policy = policy.to_json()
