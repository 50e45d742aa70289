"""Conditional sampling: words for what is wanted, which learners fulfil it, and drawing until there are enough."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.spending import SpentError
from understudy.errors import UsageError
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.generators.baselines import Drop, Markov
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.synthesize import synthesize
from understudy.logs.where import Condition, Wanted, Where

GROUP = Declared("group", Kind.category, "learner", values=("A", "B", "C, d: and e", "never"))
SCORE = Declared("score", Kind.number, "learner", low=0.0, high=100.0, step=1.0)
JOINED = Declared("joined", Kind.time, "learner", low=1.7e9, high=1.8e9)
PASSED = Declared("passed", Kind.flag, "learner")
HINT = Declared("hint", Kind.flag, "row")
PLAN = """
[[log.columns]]
name = "group"
of = "learner"
kind = "category"
values = ["A", "B"]
"""


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    made = Classroom(n_learners=200, n_actions=5).simulate(rng)
    n = made.n_learners
    score = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 101, n))
    columns = (
        Column(GROUP, rng.choice([0, 0, 0, 1, 2, -1], n)),
        Column(SCORE, score),
        Column(JOINED, rng.uniform(1.7e9, 1.8e9, n)),
        Column(PASSED, rng.integers(0, 2, n)),
        Column(HINT, rng.integers(0, 2, made.n_rows)),
    )
    return Interactions(made.action, made.outcome, made.offsets, made.actions, columns=columns, declared=True)


def test_words():
    assert Where.parse("group=B") == Where((Wanted((Condition("group", "=", "B"),)),))
    assert Where.parse(" group = A : 100 ,group=B:50").wanted == (
        Wanted((Condition("group", "=", "A"),), 100),
        Wanted((Condition("group", "=", "B"),), 50),
    )
    both = Where.parse("group!='C, d: and e' and score >= 50").wanted[0]
    assert both.conditions == (Condition("group", "!=", "C, d: and e"), Condition("score", ">=", "50"))
    assert Where.parse('"my, column"<=3:4').wanted == (Wanted((Condition("my, column", "<=", "3"),), 4),)
    assert str(both) == "group!=C, d: and e and score>=50"
    # A word that only begins like one is none.
    assert Where.parse("group=android").wanted[0].conditions[0].value == "android"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "group",
        "=B",
        "group=",
        "group=A,group=B",
        "group=A:x",
        "group=A:1:2",
        "group=A:0",
        "group=A and",
        "a=b,,c=d",
    ],
)
def test_words_that_say_nothing_are_refused(text):
    with pytest.raises(UsageError) as caught:
        Where.parse(text)
    assert caught.value.code == "bad-where"
    assert caught.value.settings == ("where",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("school=A", "'school' is not a declared column of learners"),
        ("hint=yes", "'hint' is not a declared column of learners"),
        ("group=D", "cannot be 'D': it has 'A', 'B'"),
        ("group>A", "have no order"),
        ("score=high", "which is not a number"),
        ("score<missing", "cannot be < missing"),
        ("joined>yesterday", "which is not a time"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_is_charged(log, tmp_path, text, message):
    account = {"population": "a class", "ledger": tmp_path / "ledger"}
    with pytest.raises(UsageError, match=message):
        synthesize(log, MarkovDP(8.0), where=text, **account)
    with pytest.raises(UsageError, match="a number of each kind"):
        synthesize(log, "markov", where="group=A:10", n_learners=5, **account)
    assert not account["ledger"].exists()


@pytest.mark.oracle
def test_learners_who_fulfil_conditions_are_those_of_a_slow_loop(log):
    columns = {column.declared.name: column.cells for column in log.columns}
    cases = {
        "group=B": lambda i: columns["group"][i] == 1,
        "group!=B": lambda i: columns["group"][i] not in (1, -1),
        "group=missing": lambda i: columns["group"][i] == -1,
        "group='C, d: and e' and score<50": lambda i: columns["group"][i] == 2 and columns["score"][i] < 50,
        "score!=missing": lambda i: columns["score"][i] == columns["score"][i],
        "score!=7": lambda i: columns["score"][i] == columns["score"][i] and columns["score"][i] != 7,
        "joined>=2025-01-01": lambda i: columns["joined"][i] >= 1735689600.0,
        "passed=yes": lambda i: columns["passed"][i] == 1,
    }
    for text, slow in cases.items():
        found = Where.parse(text).wanted[0].matches(log)
        assert found.tolist() == [bool(slow(i)) for i in range(log.n_learners)], text


@pytest.mark.parametrize("kind", [Markov, MarkovDP])
def test_as_many_of_each_kind_are_drawn_as_are_wanted(log, kind):
    rng = np.random.default_rng(0)
    fitted = kind().fit(log, rng, seeded_noise(rng))
    drawn = fitted.sample(where="group=B:150, group=A and score>=50:30", rng=rng)
    group, score = (column.cells for column in drawn.columns[:2])
    assert drawn.n_learners == 180
    assert (group[:150] == 1).all()
    assert (group[150:] == 0).all()
    assert (score[150:] >= 50).all()
    assert drawn.guarantee == fitted.guarantee_
    assert [column.declared for column in drawn.columns] == [column.declared for column in log.columns]
    assert fitted.sample(7, rng, where="passed=no").n_learners == 7
    assert fitted.sample(where="passed=no", rng=rng).n_learners == log.n_learners


def test_rows_of_real_learners_are_no_more_than_there_are(log):
    rng = np.random.default_rng(0)
    fitted = Drop(0.1).fit(log, rng)
    assert fitted.sample(5, rng, where="group=B").n_learners == 5
    with pytest.raises(SpentError, match="asked for 500 learners with group=B; of "):
        fitted.sample(500, rng, where="group=B")


def test_what_is_too_rare_ends_in_an_error_and_the_charge_stays(log, tmp_path):
    """That no learner was like that says something about the noisy sums, so it is paid for."""
    few = replace(log, columns=log.columns[:1])
    ledger = tmp_path / "ledger"
    with pytest.raises(SpentError) as caught:
        synthesize(
            few, "markov", where="group=never:3", population="a class", ledger=ledger, out=tmp_path / "s.csv"
        )
    assert caught.value.code == "too-few-match"
    assert "of 20,200 learners that markov drew, 0 are like that" in str(caught.value)
    assert not (tmp_path / "s.csv").exists()
    assert len(Ledger(ledger).entries()) == 1


def test_from_the_command_line(tmp_path):
    rows = "".join(f"l{i},{a},{(i + a) % 2},{'AB'[i % 2]}\n" for i in range(40) for a in (1, 2, 3))
    (tmp_path / "log.csv").write_text("learner,action,outcome,group\n" + rows, encoding="utf-8")
    (tmp_path / "understudy.toml").write_text(PLAN, encoding="utf-8")
    asked = ("synthesize", "log.csv", "--plan", "understudy.toml", "-m", "markov", "--population", "x")
    done = run(*asked, "-o", "s.csv", "--where", "group=A:4, group=B:2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "s-learners.csv").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition(",")[2] for line in table if line.startswith("synthetic-")] == [*"AAAABB"]
    refused = run(*asked, "-o", "t.csv", "--where", "group=C", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--where" in refused.stderr
