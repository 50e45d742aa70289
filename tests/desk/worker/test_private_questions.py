"""What comes out of the sandbox is no more than data: whatever code gives as questions, it gets an answer in words.

And a worker that is killed anywhere between the decision and the release charges once and shows one answer.
"""

import random
import signal

import pytest

from tests.desk.support import killed
from tests.desk.support.fixtures import PRIVATE, InProcess, fill
from tests.desk.support.in_process import InProcess as LikeTheSandbox
from tests.desk.worker.test_faults import N_POINTS, finish
from understudy.desk.domain.analysis import Failure, asks_privately
from understudy.desk.private.questions import MOST_QUESTIONS
from understudy.desk.private.recording import METHODS, MOST_BYTES, record
from understudy.desk.service import data_sets, private_answers, releases, views
from understudy.desk.service.verification import verify
from understudy.desk.store.tables import EventRow, JobRow, ReleaseRow
from understudy.desk.worker.answering import private_trial
from understudy.desk.worker.worker import Worker
from understudy.errors import MissingError
from understudy.sandbox import Limits, Sandbox, require_sandbox
from understudy.sandbox.jobs import Outcome

HEAD = "EPSILON = 0.5\n\n\ndef analyze(ask):\n"


@pytest.fixture
def declared(tmp_path):
    made = fill(tmp_path, schema=True)
    yield made
    made.desk.close()


class Gives:
    """A sandbox out of which comes what a test wants."""

    def __init__(self, *outcome, **more):
        self.outcome = Outcome(*outcome, **more)

    def run_many(self, jobs, progress=None):
        return [self.outcome] * len(jobs)


class Watched(InProcess):
    """The stand-in for the sandbox, which keeps the jobs it was given."""

    jobs = ()

    def run_many(self, jobs, progress=None):
        Watched.jobs += tuple(jobs)
        return super().run_many(jobs, progress)


def test_the_sandbox_is_given_no_table(declared):
    Watched.jobs = ()
    with Worker(declared.desk, open_sandbox=Watched) as worker:
        name = declared.submitted(PRIVATE)
        while worker.do_one():
            pass
        private_answers.approve(declared.desk, declared.reviewer, name)
        while worker.do_one():
            pass
    assert declared.state(name) == "released"
    (job,) = Watched.jobs
    assert job.tables == {}
    assert set(job.arguments) == {"names", "most"}


def test_every_method_of_ask_can_be_recorded():
    code = (
        HEAD
        + "    for name in dir(ask.__class__):\n        pass\n"
        + "".join(
            f"    ask.{name}({arguments})\n"
            for name, arguments in {
                "count": "'a', 'b'",
                "proportion": "'a', by='b'",
                "histogram": "'x', [1, 2.5]",
                "quantiles": "'x', at=(0.1, 0.9)",
                "median": "column='x'",
                "mean": "'x'",
                "variance": "'x', 'a'",
                "correlations": "'x', 'y'",
                "linear": "'x', on=['y', 'a']",
                "logistic": "'a', ['x'], value='one'",
                "compare": "'x', 'a', test='t', groups=['one', 'two']",
                "independence": "'a', 'b'",
            }.items()
        )
    )
    asked = record(code, LikeTheSandbox())
    assert not isinstance(asked, Failure), asked
    assert (len(asked.questions), asked.epsilon) == (len(METHODS), 0.5)


def deep(depth):
    value = "evening_01"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("body", "words"),
    {
        "an unknown column": ("    ask.mean('evening_99')\n", "no column 'evening_99'"),
        "a column of another kind": ("    ask.mean('achievement')\n", "holds categories"),
        "arguments of another kind": ("    ask.mean(5)\n", "ask.mean"),
        "too many arguments": (
            "    ask.mean('evening_01', 'achievement', 3)\n",
            "arguments that it does not take",
        ),
        "nothing": ("    pass\n", "1 to 200"),
        "calls in a loop": ("    while True:\n        ask.mean('evening_01')\n", "OverflowError in line 6"),
        "much in one call": (
            f"    ask.correlations(*['x' * 1000] * {MOST_BYTES // 500})\n",
            "asks for too much",
        ),
        "another method": ("    ask.maximum('evening_01')\n", "AttributeError in line 5"),
        "the table": ("    ask.data.to_csv()\n", "AttributeError in line 5"),
        "an error of its own": ("    raise ValueError('secret')\n", "ValueError in line 5"),
    }.values(),
)
def test_code_that_asks_for_what_there_is_not_is_told_so(declared, body, words):
    name = declared.submitted(HEAD + body)
    with declared.worker(open_sandbox=lambda limits: _Opened(LikeTheSandbox())) as worker:
        while worker.do_one():
            pass
    assert declared.state(name) == "returned"
    note = views.request(declared.desk, declared.researcher, name).note
    assert words in note
    assert "secret" not in note
    assert len(note) < 1000


class _Opened:
    def __init__(self, sandbox):
        self.sandbox = sandbox

    def __enter__(self):
        return self.sandbox

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize(
    "outcome",
    {
        "no answer": Gives("done", None),
        "a text": Gives("done", "calls"),
        "other keys": Gives("done", {"answers": []}),
        "calls that are no list": Gives("done", {"calls": {"mean": ["evening_01"]}}),
        "a call that is no list": Gives("done", {"calls": ["mean"]}),
        "a call of another form": Gives("done", {"calls": [["mean", "evening_01", {}]]}),
        "names of Python": Gives("done", {"calls": [["__init__", [], {}]]}),
        "a private name": Gives("done", {"calls": [["_ask", [{"ask": "mean"}], {}]]}),
        "an attribute": Gives("done", {"calls": [["questions", [], {}]]}),
        "keywords of others": Gives("done", {"calls": [["mean", ["evening_01"], {"self": 1}]]}),
        "numbers for columns": Gives("done", {"calls": [["mean", [3.5], {}]]}),
        "nested columns": Gives("done", {"calls": [["linear", ["evening_01", deep(50)], {}]]}),
        "no numbers": Gives("done", {"calls": [["quantiles", ["evening_01", [float("nan")]], {}]]}),
        "endless numbers": Gives("done", {"calls": [["histogram", ["evening_01", [1e400]], {}]]}),
        "whole numbers without end": Gives("done", {"calls": [["histogram", ["evening_01", [10**400]], {}]]}),
        "too many calls": Gives("done", {"calls": [["mean", ["evening_01"], {}]] * (MOST_QUESTIONS + 1)}),
        "a huge name": Gives("done", {"calls": [["mean", ["x" * 10 * MOST_BYTES], {}]]}),
        "a table": Gives("done", {"calls": [["mean", ["evening_01"], {}]]}, {"result": b"ARROW1"}),
        "a false result": Gives("error", error_type="FalseResult", error_line=None),
        "no end": Gives("time"),
        "too large": Gives("output"),
    }.values(),
)
def test_whatever_comes_out_is_read_strictly(declared, outcome):
    name = declared.submitted(PRIVATE)
    work = _work(declared, name)
    failed = private_trial(declared.desk, work, outcome)
    assert isinstance(failed, Failure)
    assert len(str(failed)) < 700


@pytest.mark.parametrize(
    "line",
    [
        "",
        "EPSILON = 'one'",
        "EPSILON = True",
        "EPSILON = 1e999",
        "EPSILON = 1" + "0" * 400,
        "EPSILON = 1 / 2",
        "EPSILON = float('1')",
    ],
)
def test_epsilon_is_a_number_that_is_written_out(line):
    code = f"{line}\n\n\ndef analyze(ask):\n    ask.mean('evening_01')\n"
    failed = record(code, LikeTheSandbox())
    assert "EPSILON = 1.0" in str(failed)


def test_a_fault_of_the_sandbox_is_not_blamed_on_the_questions():
    class Broken:
        def run_many(self, jobs, progress=None):
            raise MissingError("the sandbox ended by itself, twice.", hint="try again.")

    with pytest.raises(MissingError):
        record(PRIVATE, Broken())


@pytest.mark.parametrize("epsilon", ["0", "-1", "1000"])
def test_epsilon_has_a_range(declared, epsilon):
    name = declared.submitted(PRIVATE.replace("0.5", epsilon))
    declared.work()
    assert declared.state(name) == "returned"


@pytest.mark.parametrize(
    ("code", "private"),
    [
        (PRIVATE, True),
        ("def analyze(data):\n    pass\n", False),
        ("def analyze(data, ask=None):\n    pass\n", False),
        ("def analyze(ask):\n    pass\n\n\ndef analyze(data):\n    pass\n", False),
        ("class A:\n    def analyze(ask):\n        pass\n", False),
        ("def analyze(ask:\n", False),
    ],
)
def test_private_questions_are_known_by_their_entry(code, private):
    assert asks_privately(code) is private


@pytest.mark.functional
def test_through_the_sandbox():
    """Code that looks for data there finds none, and code that does not end is ended."""
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)
    looks = (
        "    import gc\n    import pandas as pd\n"
        "    found = [one for one in gc.get_objects() if isinstance(one, pd.DataFrame)]\n"
    )
    bodies = {
        "asks": "    ask.mean('evening_01', by='achievement')\n",
        "looks for tables": looks + "    ask.count(*[str(len(one)) for one in found if len(one) > 3])\n",
        "does not end": "    while True:\n        pass\n",
        "ends itself": "    import os\n    os._exit(0)\n",
        "too much": "    ask.count('x' * 3_000_000)\n",
    }
    with Sandbox(Limits(wall_seconds=5.0, cpu_seconds=5, output_bytes=1 << 20), workers=1) as sandbox:
        found = {what: record(HEAD + body, sandbox) for what, body in bodies.items()}
    assert not isinstance(found["asks"], Failure)
    assert found["looks for tables"].questions[0].by == ()
    assert found["does not end"].status in ("time", "killed")
    assert found["ends itself"].status != "done"
    assert found["too much"].status == "output"


@pytest.mark.functional
@pytest.mark.parametrize("number", [signal.SIGKILL])
def test_a_worker_killed_between_charge_and_release_charges_once(private, tmp_path, number):
    chance, told = random.Random(23), tmp_path / "points"
    folder = private.desk.settings.folder
    struck = 0
    # One that counts the points, then half of them: from the charge on.
    n_turns = 1 + max(3, N_POINTS // 4)
    for turn in range(n_turns):
        name = private.in_review(PRIVATE.replace("0.5", "0.05"))
        private_answers.approve(private.desk, private.reviewer, name)
        most = int(told.read_text()) if turn else 0
        process = killed.start(folder, told, chance.randint(most // 2, most) if turn else None, number)
        process.join()
        struck += process.exitcode == -signal.SIGKILL
        finish(private, name, "released")
        verify(private.desk)
        with private.desk.database.reading() as session:
            assert session.query(EventRow).filter_by(request=name, action="hand out").count() == 1
            assert session.query(JobRow).filter_by(ended_at=None).count() == 0
            (release,) = session.query(ReleaseRow).filter(ReleaseRow.request.has(name=name)).all()
            ledger = data_sets.account_of(release.request.data_set).ledger
            cards = [one.card for one in ledger.entries() if one.method == f"desk request {name}"]
            assert cards == [release.certificate]
            assert ledger.entries()[-1].kind == releases.PRIVATE_KIND
    assert struck >= 0.6 * (n_turns - 1)


def _work(filled, name):
    from tests.desk.support.pages import Maker
    from understudy.desk.service import answers

    return answers.begin(filled.desk, Maker(filled).lease(name))
