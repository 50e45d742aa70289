"""Tables that belong to a log: joined by learner, covered by one guarantee, written and read again together."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given

from tests.support.command import run
from tests.support.fuzz import (
    BREAKS,
    CANARY,
    Reader,
    broken_files,
    contents,
    edited,
    few_edits,
    pieces,
    quick,
)
from tests.support.workbook import workbook
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.privacy.spending import Account, Spending
from understudy.errors import DataError, UnderstudyError, UsageError
from understudy.logs.declared.companions import learners_beside, learners_file
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log

LOG = """user,skill,correct,start
ann,x,1,2024-09-02 10:05:00
bob,x,1,2024-09-03 10:00:00
ann,y,0,2024-09-02 10:00:00
bob,x,0,2024-09-03 10:01:00
"""
LEARNERS = "student,email,grade band,final\nbob,b@example.org,7,3\ncyd,c@example.org,8,9\n"
RESULTS = (
    "user,task,correct,start,points\nbob,exam 1,1,2024-09-02 10:00:00,9\ndan,exam 1,1,2024-09-09 10:00:00,8\n"
)
PLAN = """
[log]
learner = "user"
{more}
[[log.columns]]
name = "grade band"
of = "learner"
kind = "category"
values = ["7", "8"]
[[log.columns]]
name = "final"
of = "learner"
kind = "number"
low = 0
high = 10
step = 1
"""
POINTS = '[[log.columns]]\nname = "points"\nof = "row"\nkind = "number"\nlow = 0\nhigh = 10\nstep = 1\n'


@pytest.fixture
def place(tmp_path):
    for name, content in (("log.csv", LOG), ("learners.csv", LEARNERS), ("results.csv", RESULTS)):
        (tmp_path / name).write_text(content)
    (tmp_path / "understudy.toml").write_text(PLAN.format(more='learners = "learners.csv"'))
    return tmp_path


def test_a_learner_is_whoever_is_in_one_of_the_files(place):
    log = read_log(place / "log.csv", plan=place / "understudy.toml")
    assert log.lengths.tolist() == [2, 2, 0]
    assert log.learners_to_polars()["grade band"].to_list() == [None, "7", "8"]
    assert log.learners_to_polars()["final"].to_list() == [None, 3, 9]
    assert log.origin.digests is not None
    assert set(log.origin.digests) == set(digests_of_names(pl.Series(["ann", "bob", "cyd"])))
    assert log.origin.files == (place / "log.csv", place / "learners.csv")
    assert [(found.column, found.role) for found in log.origin.identifiers] == [("email", "not read")]
    active = read_log(place / "log.csv", plan=place / "understudy.toml", active_only=True)
    assert active.learners_to_polars()["final"].to_list() == [None, 3]
    assert len(active.origin.digests) == 2


def test_the_order_of_a_table_makes_no_difference(place):
    usual = read_log(place / "log.csv", plan=place / "understudy.toml")
    header, *rows = LEARNERS.splitlines()
    (place / "learners.csv").write_text("\n".join([header, *rows[::-1]]))
    other = read_log(place / "log.csv", plan=place / "understudy.toml")
    assert usual.learners_to_polars().equals(other.learners_to_polars())


def test_who_withdrew_is_left_out_of_every_file(place):
    (place / "learners.csv").write_text(f"{LEARNERS}ann,a@example.org,7,5\n")
    (place / "gone.txt").write_text("cyd\n")
    log = read_log(place / "log.csv", plan=place / "understudy.toml", exclude=place / "gone.txt")
    assert (log.n_learners, log.origin.n_withdrawn, log.origin.n_absent) == (2, 1, 0)
    (place / "gone.txt").write_text("bob\n")
    log = read_log(place / "log.csv", plan=place / "understudy.toml", exclude=place / "gone.txt")
    assert log.learners_to_polars()["final"].to_list() == [5, 9]
    assert log.origin.n_withdrawn == 1
    (place / "gone.txt").write_text("nobody\n")
    with pytest.raises(DataError, match="removes nobody"):
        read_log(place / "log.csv", plan=place / "understudy.toml", exclude=place / "gone.txt")


def test_results_are_rows_of_the_log(place):
    plan = place / "understudy.toml"
    plan.write_text(PLAN.format(more='learners = "learners.csv"\nresults = "results.csv"') + POINTS)
    log = read_log(place / "log.csv", plan=plan, time="start")
    frame = log.to_polars()
    assert log.lengths.tolist() == [2, 3, 1, 0]
    # A result lies among the events of its learner, by its time.
    assert frame["action"].to_list() == ["y", "x", "exam 1", "x", "x", "exam 1"]
    assert frame["points"].to_list() == [None, None, 9, None, None, 8]
    assert log.origin.digests is not None
    assert len(log.origin.digests) == 4
    unordered = read_log(place / "log.csv", plan=plan)
    assert unordered.to_polars()["action"].to_list() == ["x", "y", "x", "x", "exam 1", "exam 1"]


def test_results_without_what_the_log_has_are_refused(place):
    (place / "results.csv").write_text("user,task,passed on\nbob,exam 1,monday\n")
    with pytest.raises(DataError) as refused:
        read_log(place / "log.csv", results=place / "results.csv")
    assert refused.value.code == "results-unlike-log"
    (place / "results.csv").write_text("user,task,correct\nbob,exam 1,1\n")
    with pytest.raises(DataError) as refused:
        read_log(place / "log.csv", results=place / "results.csv", time="start")
    assert refused.value.code == "results-unlike-log"
    ordered = read_log(place / "log.csv", results=place / "results.csv", time="start", time_for_order=True)
    assert ordered.to_polars()["action"].to_list() == ["y", "x", "x", "x", "exam 1"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (LEARNERS + "bob,b@example.org,8,1\n", "several-rows-of-a-learner"),
        (LEARNERS.replace("student", "whatever"), "no-such-column"),
        (LEARNERS + ",x@example.org,8,1\n", "empty-cells"),
        (LEARNERS.replace(",3\n", ",three\n"), "not-as-declared"),
        ("student,grade band,final\nZoe,7,1\n", "no-common-learner"),
        ("student,final\nbob,1\n", "no-declared-column"),
        ("student,final,final\nbob,1,2\n", "two-columns-of-one-name"),
    ],
)
def test_a_wrong_table_is_refused_without_a_value_of_it(place, content, code):
    (place / "learners.csv").write_text(content)
    with pytest.raises(UnderstudyError) as refused:
        read_log(place / "log.csv", plan=place / "understudy.toml")
    assert refused.value.code == code
    for value in ("bob", "three", "example.org", "Zoe"):
        assert value not in str(refused.value)
        assert value not in json.dumps(refused.value.to_json())


def test_a_number_is_not_a_table(place):
    with pytest.raises(UsageError) as refused:
        read_log(place / "log.csv", learners="500")
    assert refused.value.settings == ("learners", "n_learners")


def test_a_gradebook_is_a_table_of_learners(tmp_path):
    header = (
        "Time,User full name,Affected user,Event context,Component,Event name,Description,Origin,IP address"
    )
    rows = [
        f'"{day} May 2024, 09:4{day}",Pat Lee {day % 2},-,Quiz: {day},Quiz,viewed,-,web,-'
        for day in range(1, 9)
    ]
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]))
    (tmp_path / "grades.csv").write_text(
        "First name,Last name,ID number,Quiz: one (Real),Quiz: one (Feedback)\n"
        "Pat,Lee 0,s1,7.5,well done\nPat,Lee 1,s2,-,\n"
    )
    (tmp_path / "p.toml").write_text(
        '[log]\nlearners = "grades.csv"\n[[log.columns]]\nname = "Quiz: one (Real)"\nof = "learner"\n'
        'kind = "number"\nlow = 0\nhigh = 10\n'
    )
    log = read_log(tmp_path / "log.csv", plan=tmp_path / "p.toml")
    assert log.learners_to_polars()["Quiz: one (Real)"].to_list() == [None, 7.5]


def test_what_was_released_about_a_table_counts_for_its_learners(place):
    """The ledger knows learners again who were in the table alone."""
    log = read_log(place / "log.csv", plan=place / "understudy.toml")
    account = Account.open(Spending(), log.origin, simulated=False)
    assert account.files == (place / "log.csv", place / "learners.csv")
    assert account.roster is not None
    assert len(account.roster) == 3


# End to end, with the method that keeps what rows have.


def test_tables_are_written_together_and_read_again(place):
    many = [f"s{i},x{i % 3},{i % 2},2024-09-{1 + i % 28:02} 10:00:00\n" for i in range(40) for _ in range(4)]
    (place / "log.csv").write_text(LOG.splitlines()[0] + "\n" + "".join(many))
    bands = "".join(f"s{i},-,{7 + i % 2},{i % 10}\n" for i in range(40))
    (place / "learners.csv").write_text(LEARNERS.splitlines()[0] + "\n" + bands)
    plan = ("--plan", "understudy.toml")
    asked = ("log.csv", *plan, "-m", "drop:0.2", "--ledger", "l", "--time", "start")
    made = run("synthesize", *asked, "-o", "fake.csv", "--json", cwd=place)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["learners_file"] == "fake-learners.csv"
    rows, learners = (pl.read_csv(place / name) for name in ("fake.csv", "fake-learners.csv"))
    assert rows.columns == ["learner", "action", "outcome", "time"]
    assert learners.columns == ["learner", "grade band", "final"]
    assert set(rows["learner"]) <= set(learners["learner"])
    again = run("synthesize", *asked, "-o", "fake.csv", cwd=place)
    assert (again.returncode, "already" in again.stderr) == (2, True)

    bundle = run("release", *asked, "-o", "bundle", "--accept-risk", "a test", cwd=place)
    assert bundle.returncode == 0, bundle.stderr
    share = place / "bundle" / "share"
    assert {"learners.csv", "learners.parquet", "synthetic.csv"} <= {path.name for path in share.iterdir()}
    book = pl.read_csv(share / "codebook.csv")
    assert book["column"].to_list() == ["learner", "action", "outcome", "time", "grade band", "final"]
    assert book.row(5, named=True)["values"] == "0 to 10 in steps of 1"
    assert book.row(5, named=True)["file"] == "learners"

    # Halves of the log, one table for both: learners of the other half are not learners of this one.
    header, *lines = (place / "log.csv").read_text().splitlines()
    (place / "members.csv").write_text("\n".join([header, *lines[:80]]))
    (place / "outsiders.csv").write_text("\n".join([header, *lines[80:]]))
    files = (
        "--members",
        "members.csv",
        "--outsiders",
        "outsiders.csv",
        "--synthetic",
        share / "synthetic.csv",
    )
    audited = run("audit", *files, *plan, "--time", "start", "--json", cwd=place)
    assert audited.returncode == 0, audited.stderr


def test_where_a_table_lies(tmp_path):
    assert learners_file(tmp_path / "out.csv").name == "out-learners.csv"
    for log, table in (("out.csv", "out-learners.csv"), ("synthetic.parquet", "learners.parquet")):
        assert learners_beside(tmp_path / log) is None
        (tmp_path / table).write_text("x")
        assert learners_beside(tmp_path / log) == tmp_path / table


# Fuzzing.


def _read(path, **options):
    rows = [f"{CANARY}{n % 3},s{n % 4},{n % 2}" for n in range(12)]
    (path.parent / "log.csv").write_text("\n".join(["learner,action,outcome", *rows]))
    (path.parent / "p.toml").write_text(
        '[log]\n[[log.columns]]\nname = "band"\nof = "learner"\nkind = "category"\nfound = true\n'
        '[[log.columns]]\nname = "score"\nof = "learner"\nkind = "number"\nlow = 0\nhigh = 9\n'
    )
    return read_log(path.parent / "log.csv", plan=path.parent / "p.toml", learners=path, **options)


READER = Reader(_read, lambda log: [*log.origin.notes, repr(log.origin.identifiers), repr(log.columns)])
PIECES = pieces(b"learner band score student email", b"First name", b"(Real)", b"Student,ID,Section")
TABLE = "".join(
    ["learner,band,score,email\n", *(f"{CANARY}{n},{CANARY}x,1,{CANARY}@example.org\n" for n in range(4))]
)


def whole_files():
    cells = [line.split(",") for line in TABLE.splitlines()]
    return {
        "csv": ("t.csv", TABLE.encode()),
        "tsv": ("t.tsv", TABLE.replace(",", "\t").encode()),
        "excel": ("t.xlsx", workbook(cells)),
    }


@quick(30)
@given(content=contents(PIECES))
def test_arbitrary_tables(tmp_path, content):
    result = READER.outcome(tmp_path / "table", content)
    assert isinstance(result, Interactions | UnderstudyError)


@pytest.mark.parametrize(("file", "way"), broken_files(whole_files(), BREAKS))
def test_broken_tables(tmp_path, file, way):
    name, content = whole_files()[file]
    result = READER.outcome(tmp_path / name, BREAKS[way](content))
    assert not READER.tells_canary(result)
    if way == "whole":
        assert isinstance(result, Interactions)
        assert result.n_learners == 4
        assert np.isnan(result.learner_columns[1].cells).sum() == 0


@quick(30)
@given(edits=few_edits(PIECES))
def test_tables_with_a_few_wrong_bytes(tmp_path, edits):
    result = READER.outcome(tmp_path / "t.csv", edited(TABLE.encode(), edits))
    assert not READER.tells_canary(result)


PLAN_PIECES = pieces(
    b"[log] [log.term] [[log.columns]] name of kind values low high step found first last = true row learner",
    *(b'"category"', b'"band"', b"[1]", b'["a"]', b"2024-01-01", b"\n[", b'"yes/no"', b'"time"', b'"number"'),
)


def _read_planned(path, **options):
    rows = [f"{CANARY}1,a,1,2024-01-01,{CANARY}x", f"{CANARY}1,a,1,2024-01-01,"]
    (path.parent / "log.csv").write_text("\n".join(["learner,action,outcome,time,band", *rows]))
    return read_log(path.parent / "log.csv", plan=path, **options)


PLANS = Reader(_read_planned, lambda log: [*log.origin.notes, repr(log.columns), repr(log.term)])
GOOD_PLAN = (
    b'[release]\nmethod = "markov"\n[log]\ntime = "time"\n[log.term]\nfirst = 2024-01-01\nlast = 2024-02-01\n'
    b'[[log.columns]]\nname = "band"\nof = "row"\nkind = "category"\nvalues = ["a", "b"]\n'
)


@quick(60)
@given(content=contents(PLAN_PIECES))
def test_arbitrary_plans(tmp_path, content):
    result = PLANS.outcome(tmp_path / "p.toml", content)
    assert isinstance(result, Interactions | UnderstudyError)


@quick(100)
@given(edits=few_edits(PLAN_PIECES))
def test_plans_with_a_few_wrong_bytes(tmp_path, edits):
    result = PLANS.outcome(tmp_path / "p.toml", edited(GOOD_PLAN, edits))
    assert isinstance(result, Interactions | UnderstudyError)
    if b"canary" not in edited(GOOD_PLAN, edits):
        assert not PLANS.tells_canary(result)
