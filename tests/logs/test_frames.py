"""Frames become logs: what is kept, in which order, and every way in which a frame is refused."""

import re
from datetime import UTC, date, datetime, time

import numpy as np
import pandas as pd
import polars as pl
import pytest

from understudy.errors import DataError
from understudy.logs.interactions import Interactions

CANARY = "canary-7f3a"


def frame(**changes):
    columns = {
        "learner": ["b", "a", "b", "a", "c"],
        "action": ["10", "2", "2", "10", "1"],
        "outcome": [1, 0, 0, 1, 1],
    }
    return pl.DataFrame(columns | changes)


def rows_of(log):
    """Per learner: what was done, by name, and how it went."""
    return [
        [(log.actions[log.action[r]], int(log.outcome[r])) for r in range(a, b)]
        for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)
    ]


WANTED = [[("10", 1), ("2", 0)], [("2", 0), ("10", 1)], [("1", 1)]]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pandas with arrow"])
def test_learners_in_order_of_appearance_rows_in_theirs(kind):
    made = {
        "polars": lambda f: f,
        "lazy": lambda f: f.lazy(),
        "pandas": lambda f: pd.DataFrame(f.to_dict(as_series=False)),
        "pandas with arrow": lambda f: f.to_pandas(use_pyarrow_extension_array=True),
    }[kind](frame())
    log = Interactions.from_frame(made)
    assert rows_of(log) == WANTED
    assert log.actions == ("1", "2", "10")  # 2 before 10
    assert (log.n_rows, log.n_learners, log.n_actions) == (5, 3, 3)
    assert log.lengths.tolist() == [2, 2, 1]
    assert log.learner.tolist() == [0, 0, 1, 1, 2]


def test_names_that_are_not_numbers_are_sorted():
    assert Interactions.from_frame(frame(action=["10", "b", "2", "a", "b"])).actions == ("10", "2", "a", "b")


def test_columns_by_any_name():
    renamed = frame().rename({"learner": "user", "action": "skill", "outcome": "correct"})
    log = Interactions.from_frame(renamed, learner="user", action="skill", outcome="correct")
    assert rows_of(log) == WANTED


def test_learners_may_be_numbers():
    assert rows_of(Interactions.from_frame(frame(learner=[7, 3, 7, 3, 9]))) == WANTED


@pytest.mark.parametrize(
    "outcome",
    [
        [1, 0, 0, 1, 1],
        [1.0, 0.0, 0.0, 1.0, 1.0],
        [True, False, False, True, True],
        ["1", "0", "0.0", "1.0", "1"],
        ["true", "False", " FALSE ", "True", "TRUE"],
        ["correct", "incorrect", "Incorrect", "CORRECT", "Correct"],
        ["yes", "no", "No", "Yes", "yes"],
    ],
)
def test_outcomes_in_many_words(outcome):
    log = Interactions.from_frame(frame(outcome=outcome))
    assert rows_of(log) == WANTED
    assert log.outcome.dtype == np.int8


TIMES = {  # in the order of rows: b late, a late, b early, a early, c
    "numbers": [20, 30, 10, 5, 1],
    "fractions": [0.2, 0.3, 0.1, 0.05, 0.01],
    "with and without hours": [
        "2020-01-02 10:00:00",
        "2020-01-03",
        "2020-01-01 23:59:59",
        "2020-01-02",
        "2020-01-01",
    ],
    "iso": [f"2020-01-0{d}T10:00:00" for d in (2, 3, 1, 2, 1)],
    "zone": [f"2020-01-0{d} 10:00:00+02:00" for d in (2, 3, 1, 2, 1)],
    "utc": [f"2020-01-0{d}T10:00:00Z" for d in (2, 3, 1, 2, 1)],
    "named zone": [f"2020-01-0{d} 10:00:00 EST" for d in (2, 3, 1, 2, 1)],
    "milliseconds": [1_700_000_000_000 + k for k in (2, 3, 1, 2, 1)],
    "dates": [date(2020, 1, d) for d in (2, 3, 1, 2, 1)],
    "datetimes": [datetime(2020, 1, d, tzinfo=UTC) for d in (2, 3, 1, 2, 1)],
}


@pytest.mark.parametrize("kind", TIMES)
def test_rows_are_sorted_by_time_within_learners(kind):
    unit = "ms" if kind == "milliseconds" else None
    log = Interactions.from_frame(frame(time=TIMES[kind]), time="time", time_unit=unit)
    assert rows_of(log) == [[("2", 0), ("10", 1)], [("10", 1), ("2", 0)], [("1", 1)]]
    assert log.time.dtype == np.dtype("datetime64[us]")
    for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True):
        assert (np.diff(log.time[a:b]) >= np.timedelta64(0)).all()


def test_rows_at_the_same_time_keep_their_order():
    assert rows_of(Interactions.from_frame(frame(time=[1, 1, 1, 1, 1]), time="time")) == WANTED


def test_items_and_groups_come_along():
    log = Interactions.from_frame(
        frame(
            question=["q2", "q1", None, "q2", "q3"], school=["n", "s", "n", "s", None], time=[2, 1, 1, 2, 3]
        ),
        item="question",
        group="school",
        time="time",
    )
    assert [log.items[code] for code in log.item] == ["", "q2", "q1", "q2", "q3"]
    assert [log.groups[code] for code in log.group] == ["n", "s", "unknown"]


def test_a_name_does_not_make_a_learner_simulated():
    names = [f"simulated-{k}" for k in (1, 2, 1, 2, 3)]
    assert not Interactions.from_frame(frame(learner=names)).simulated


REFUSED = {
    "missing column": ({}, {"action": "skill"}, r"asked for column 'skill'; found 'learner', 'action'"),
    "two missing": ({}, {"action": "x", "outcome": "y"}, "asked for column 'x', 'y'"),
    "outcome 2": ({"outcome": [1, 0, 2, 1, 3]}, {}, "2 of 5 rows, the first on line 4"),
    "outcome half": ({"outcome": [1.0, 0.5, 1.0, 1.0, 1.0]}, {}, "1 of 5 rows, the first on line 3"),
    "outcome NaN": ({"outcome": [1.0, 1.0, 1.0, 1.0, float("nan")]}, {}, "first on line 6"),
    "outcome null": ({"outcome": [None, 1, 0, 1, 1]}, {}, "1 of 5 rows, the first on line 2"),
    "outcome word": ({"outcome": ["yes", "no", "no", CANARY, "no"]}, {}, "first on line 5"),
    "line of the file": ({"outcome": [1, 0, 2, 1, 3]}, {"first_line": 11}, "first on line 13"),
    "learner null": ({"learner": ["a", None, "a", "a", None]}, {}, r"'learner'.*line 3 \(2 such rows\)"),
    "action empty": ({"action": ["a", "b", "b", "a", ""]}, {}, r"'action'.*line 6 \(1 such row\)"),
    "unique learners": ({"learner": [1, 2, 3, 4, 5]}, {}, "'learner' has a different value on each of the 5"),
    "mixed zones": (
        {"time": ["2020-01-01T10:00:00Z"] * 3 + ["2020-01-01T10:00:00+01:00"] * 2},
        {"time": "time"},
        "'time' mix time zones",
    ),
    "zone and none": (
        {"time": ["2020-01-01T10:00:00Z"] + ["2020-01-01T10:00:00"] * 4},
        {"time": "time"},
        "'time' mix time zones",
    ),
    "unreadable time": ({"time": ["2020-01-01 10:00:00"] * 4 + [CANARY]}, {"time": "time"}, "'time'.*line 6"),
    "no time": ({"time": [1.0, None, 2.0, 3.0, 4.0]}, {"time": "time"}, "'time'.*line 3"),
    "not a number": ({"time": [1.0, 2.0, float("nan"), 3.0, 4.0]}, {"time": "time"}, "'time'.*line 4"),
    "group changes": ({"g": ["x", "y", CANARY, "y", "y"]}, {"group": "g"}, "changes within a learner"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_in_which_words(name):
    changes, options, said = REFUSED[name]
    with pytest.raises(DataError) as caught:
        Interactions.from_frame(frame(**changes), **options)
    assert re.search(said, caught.value.message), caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 3
    assert CANARY not in str(caught.value)


def test_without_a_header_no_learners_row_is_quoted():
    headless = pl.DataFrame({CANARY: ["b"], "problem": ["p"], "correct": ["wrong"], "1": ["0"]})
    with pytest.raises(DataError, match="found 'problem', 'correct' and 2 other columns") as caught:
        Interactions.from_frame(headless)
    assert CANARY not in str(caught.value)


def test_an_empty_frame_is_refused():
    with pytest.raises(DataError, match="empty") as caught:
        Interactions.from_frame(frame().clear())
    assert caught.value.hint


@pytest.mark.parametrize("thing", [[1, 2], {"learner": [1]}, "log.csv", None])
def test_what_is_no_frame_is_refused(thing):
    with pytest.raises(DataError, match=f"not from {type(thing).__name__}"):
        Interactions.from_frame(thing)


def test_thinned_data_may_have_one_row_each():
    log = Interactions.from_frame(frame(learner=list("abcde")), single_rows=True)
    assert log.lengths.tolist() == [1] * 5


def test_one_row_is_a_log():
    assert Interactions.from_frame(frame().head(1)).n_rows == 1


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        pytest.param(["20", "5"], None, id="numbers as text"),
        pytest.param([1_700_000_000_000_000_002, 1_600_000_000_000_000_001], "ns", id="nanoseconds"),
        pytest.param([0.0009, 0.0001], None, id="below a millisecond"),
    ],
)
def test_unusual_times_keep_their_order(times, unit):
    twice = pl.DataFrame({"learner": ["a", "a"], "action": ["x", "y"], "outcome": [0, 0], "time": times})
    assert rows_of(Interactions.from_frame(twice, time="time", time_unit=unit)) == [[("y", 0), ("x", 0)]]


def test_times_of_day_are_refused():
    with pytest.raises(DataError, match="cannot be read as a time"):
        Interactions.from_frame(frame(time=[time(11)] * 5), time="time")


def test_times_that_nobody_can_read_are_refused():
    with pytest.raises(DataError, match=r"'time'.*line 2"):
        Interactions.from_frame(frame(time=[CANARY] * 5), time="time")
