"""Values are read from the code's text, and learners are replaced as planned."""

import numpy as np
import polars as pl
import pytest

from tests.desk.support.in_process import InProcess, school_frame, table_of
from understudy.desk.disclosure.replacement import plan_replacements
from understudy.desk.disclosure.written_values import MOST_VALUES, written_values
from understudy.desk.domain.policy import Policy

COLUMNS = ["score", "evening", "achievement"]


def test_values_are_read_from_the_text():
    code = '''
"""Docstrings with 4711 are not values."""
LIMIT = 300 + 26
def analyze(data):
    late = data["evening"]
    r, p = pearsonr(data.score, late)
    a = (late > LIMIT).sum() + (data.achievement == "high").sum()
    b = data.query("score < -2.5 and `evening` != 7")
    c = data.score.between(1, 2) if p < 0.05 else float("61.3")
'''
    found = written_values(code, COLUMNS)
    assert set(found.compared) == {
        *(("evening", 300.0), ("evening", 26.0), ("evening", 326.0), ("achievement", "high")),
        *(("score", -2.5), ("score", 2.5), ("evening", 7.0), ("score", 1.0), ("score", 2.0)),
    }
    # What is computed from columns, such as a p value, is not compared with them.
    assert 0.05 in found.in_comparisons
    assert {61.3, 0.05, 326.0} <= set(found.values)
    assert 4711.0 not in found.values
    assert found.complete


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18**2 + 2", 326),
        ("163 << 1", 326),
        ("653 >> 1", 326),
        ("979 // 3", 326),
        ("1326 % 1000", 326),
        ("+326", 326),
        ("-~325", 326),
        ("320 | 6", 326),
        ("0x1FF & 326", 326),
        ("511 ^ 185", 326),
        ("'Zu' + 'g'", "Zug"),
    ],
)
def test_constants_are_worked_out(text, value):
    found = written_values(f"x = (data.evening == {text}).any()", COLUMNS)
    assert ("evening", value) in found.compared
    assert found.named == ("evening",)


def test_code_that_hides_its_values_among_many_is_not_read_whole():
    assert not written_values(f"x = {list(range(MOST_VALUES + 1))}", COLUMNS).complete
    assert not written_values("def analyze(:", COLUMNS).complete
    # Deep sums end somewhere, and large powers are not worked out.
    assert written_values(
        f"x = {'1 + ' * 500}1\ny = 10**400 + (9**9) ** (9**9)\nz = 1 / 0 + (1 << -1)", COLUMNS
    ).complete


def test_replaced_learners_keep_their_number_and_the_others_everything():
    table = table_of(school_frame(1, 12))
    other = table.rows_of(7)
    frame = InProcess.frame(table.replaced({2: other, 11: other}))
    before = InProcess.frame(table.whole())
    expected = before.copy()
    for place in (2, 11):
        expected.loc[place, expected.columns[1:]] = before.loc[7, before.columns[1:]]
    assert (frame == expected).all(axis=None)


def test_every_learner_is_replaced_and_stays_within_the_range():
    real, synthetic = table_of(school_frame(1, 12)), table_of(school_frame(2, 12))
    plan = plan_replacements(
        "def analyze(data): return (data.evening == 326).sum()",
        real,
        synthetic,
        Policy(),
        np.random.default_rng(0),
    )
    alone = [next(iter(one.rows)) for one in plan.replacements if len(one.rows) == 1]
    assert all(alone.count(learner) >= 4 for learner in range(12))
    both = pl.concat([real.rows, synthetic.rows])
    # Code that does not ask for missing values gets one in every column, too.
    gaps = [rows for one in plan.replacements if one.kind == "gap" for rows in one.rows.values()]
    assert [rows.null_count().row(0).index(1) for rows in gaps] == list(range(real.rows.width))
    assert {one.kind for one in plan.replacements} == {"usual", "gap"}
    for one in plan.replacements:
        for rows in one.rows.values():
            assert rows.schema == real.rows.schema
            if one.kind == "gap":
                continue
            assert set(rows["achievement"]) <= set(both["achievement"])
            assert set(rows["passed"]) <= {0, 1}
            assert rows["score"].max() <= 1.02 * both["score"].max()
            assert rows["evening"].min() >= 0
    assert any((rows["evening"] == 326).any() for one in plan.replacements for rows in one.rows.values())
    assert {tuple(sorted(order)) for order in plan.orders} == {tuple(range(12))}
