"""The part [log] of a plan: columns, times and their declarations reach the log; nothing else does."""

import numpy as np
import pytest

from understudy.errors import DataError, UnderstudyError, UsageError
from understudy.logs.declared.columns import Declared, Kind
from understudy.logs.declared.term import Term
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log

LOG = """user,skill,correct,start,hint,school,score,secret
ann,x,1,2024-09-02 10:05:00,1,primary,3.4,q
ann,y,0,2024-09-02 10:00:00,0,primary,99,q
bob,x,1,2024-09-03 10:00:00,,village,,q
bob,x,0,2024-09-03 10:01:00,yes,,4,q
"""
PLAN = """
[release]
method = "markov"

[log]
learner = "user"
time = "start"

[log.term]
first = 2024-09-01
last = 2024-10-01
resolution = "minute"
session_minutes = 20

[[log.columns]]
name = "hint"
of = "row"
kind = "yes/no"

[[log.columns]]
name = "school"
of = "learner"
kind = "category"
values = ["primary", "secondary"]

[[log.columns]]
name = "Score"
of = "row"
kind = "number"
low = 0
high = 10
step = 0.5
unit = "points"
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "understudy.toml").write_text(PLAN)
    return tmp_path


def test_a_log_is_read_as_its_plan_declares(place):
    log = read_log(place / "log.csv", plan=place / "understudy.toml")
    assert log.term is not None
    assert (str(log.term.first), str(log.term.last)) == ("2024-09-01", "2024-10-01")
    assert (log.term.resolution, log.term.session_minutes) == (60.0, 20.0)
    # In the order of time, so that the first learner's rows change places, and their cells with them.
    frame = log.to_polars()
    assert frame["action"].to_list() == ["y", "x", "x", "x"]
    assert frame["hint"].to_list() == ["no", "yes", None, "yes"]
    assert frame["Score"].to_list() == [10.0, 3.5, None, 4.0]
    assert log.learners_to_polars()["school"].to_list() == ["primary", "other"]
    assert frame.columns == ["learner", "action", "outcome", "time", "hint", "Score"]
    assert sum("Left out" in note for note in log.origin.notes) == 1


def test_what_is_given_wins_over_the_plan(place):
    log = read_log(place / "log.csv", plan=place / "understudy.toml", session_minutes=5.0)
    assert log.term is not None
    assert (log.term.session_minutes, log.term.resolution) == (5.0, 60.0)


@pytest.mark.parametrize(
    ("settings", "told", "noted"),
    [
        ({}, False, True),
        ({"time": "start"}, True, False),
        ({"time": "start", "time_for_order": True}, False, False),
        ({"term": "2024-09-01..2024-10-01"}, True, False),
        ({"resolution": "minute"}, True, False),
    ],
)
def test_times_are_told_if_they_were_named_or_declared(tmp_path, settings, told, noted):
    (tmp_path / "log.csv").write_text(LOG.replace("start", "time"))
    if "time" in settings:
        settings = settings | {"time": "time"}
    log = read_log(tmp_path / "log.csv", **settings)
    assert log.has_times is told
    assert log.time is not None
    assert any("are left out; to include them" in note for note in log.origin.notes) is noted
    assert ("time" in log.to_polars().columns) is told


def test_moodle_writes_minutes(tmp_path):
    rows = [
        "Time,User full name,Affected user,Event context,Component,Event name,Description,Origin,IP address"
    ]
    rows += [f'"{day} May, 09:4{day}",Pat {day % 2},-,Quiz: {day},Quiz,viewed,-,web,-' for day in range(1, 9)]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    assert read_log(tmp_path / "log.csv").term is None
    log = read_log(tmp_path / "log.csv", time="Time", term="2018-04-01..2018-06-30")
    assert log.term is not None
    assert log.term.resolution == 60.0
    # Days without a year lie in the declared term.
    assert log.time is not None
    assert str(log.time.min())[:4] == "2018"
    assert not log.origin.yearless


def test_a_frame_has_what_it_is_told_to_have(place):
    import polars as pl

    frame = pl.read_csv(place / "log.csv")
    roles = {"learner": "user", "action": "skill", "outcome": "correct", "time": "start"}
    hint = Declared("hint", Kind.flag, "row")
    score = Declared("score", Kind.number, "row", low=0, high=5, step=1)
    log = Interactions.from_frame(frame, **roles, columns=[hint, score], term=Term())
    assert log.has_times
    assert [column.cells.tolist()[:2] for column in log.columns] == [[0, 1], [5.0, 3.0]]
    assert not Interactions.from_frame(frame, **roles).has_times
    with pytest.raises(DataError) as refused:
        Interactions.from_frame(frame, **roles, columns=[hint, hint])
    assert refused.value.code == "bad-declaration"


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (('kind = "number"', 'kind = "money"'), "contract", "understudy.toml, line "),
        (("low = 0", 'low = "none"'), "contract", "`low`"),
        (("high = 10", "high = -1"), "bad-declaration", "'Score'"),
        (('values = ["primary", "secondary"]', ""), "bad-declaration", "'school'"),
        (("last = 2024-10-01", "last = 2024-13-01"), "not-toml", "line"),
        (("last = 2024-10-01", 'last = "soon"'), "contract", "`last`"),
        (('time = "start"', 'tim = "start"'), "contract", "unknown key 'tim'"),
        (('name = "hint"', 'name = "outcome"'), "bad-declaration", "'outcome'"),
        (('name = "hint"', 'name = "school"'), "bad-declaration", "twice"),
        (('name = "hint"', 'name = "hunt"'), "no-declared-column", "'hunt'"),
        (('of = "learner"\n', 'of = "learner"\nfound = 3\n'), "contract", "`found`"),
        (('resolution = "minute"', 'resolution = "often"'), "bad-term", "resolution"),
    ],
)
def test_a_plan_with_a_mistake_is_refused_where_it_is(place, change, code, said):
    plan = place / "understudy.toml"
    assert change[0] in PLAN
    plan.write_text(PLAN.replace(*change))
    with pytest.raises(UnderstudyError) as refused:
        read_log(place / "log.csv", plan=plan)
    assert refused.value.code == code
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ('name = "school"\nof = "row"\nkind = "number"\nlow = 0\nhigh = 1', "not-as-declared"),
        ('name = "score"\nof = "learner"\nkind = "number"\nlow = 0\nhigh = 100', "changes-within-learner"),
    ],
)
def test_no_cell_reaches_an_error(place, column, code):
    (place / "understudy.toml").write_text(f'[log]\nlearner = "user"\n[[log.columns]]\n{column}\n')
    with pytest.raises(DataError) as refused:
        read_log(place / "log.csv", plan=place / "understudy.toml")
    assert refused.value.code == code
    for value in ("primary", "village", "99", "ann", "bob"):
        assert value not in str(refused.value)


def test_a_term_needs_times(place):
    with pytest.raises(UsageError) as refused:
        read_log(place / "log.csv", learner="user", term="2024-09-01..2024-10-01")
    assert refused.value.code == "term-without-times"
    with pytest.raises(UsageError) as refused:
        read_log(place / "log.csv", time="start", term="2024-09-01..2024-10-01", time_for_order=True)
    assert refused.value.code == "term-without-times"


def test_cells_that_cannot_be_read_are_empty_if_they_are_set_aside(place):
    (place / "understudy.toml").write_text(
        '[log]\n[[log.columns]]\nname = "school"\nof = "row"\nkind = "number"\nlow = 0\nhigh = 1\n'
    )
    log = read_log(place / "log.csv", plan=place / "understudy.toml", set_aside=True)
    assert np.isnan(log.row_columns[0].cells).all()


def test_categories_that_are_to_be_found_are_those_of_the_data(place):
    (place / "understudy.toml").write_text(
        '[log]\n[[log.columns]]\nname = "school"\nof = "learner"\nkind = "category"\nfound = true\n'
    )
    log = read_log(place / "log.csv", plan=place / "understudy.toml")
    (column,) = log.learner_columns
    assert column.declared.found
    assert column.declared.values == ("primary", "village")
    assert column.cells.tolist() == [0, 1]
