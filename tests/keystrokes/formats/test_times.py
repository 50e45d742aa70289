"""Times of keystrokes: every unit and notation gives the same nanoseconds, and mixtures are refused."""

from __future__ import annotations

import pytest

from tests.keystrokes.support.files import csv
from understudy.errors import DataError, UsageError
from understudy.keystrokes.formats.reading import read_keystrokes

MILLISECONDS = [1_700_000_000_000, 1_700_000_000_123, 1_700_000_000_456]
SMALL = [0, 180, 395, 600, 790]


def rows(times, header="learner,time,key"):
    return csv(header, *(f"a,{time},k" for time in times))


@pytest.mark.parametrize(
    ("times", "note"),
    [
        ([f"{t / 1000:.3f}" for t in MILLISECONDS], "seconds since 1970 (from their size)"),
        (MILLISECONDS, "milliseconds since 1970 (from their size)"),
        ([f"{t}.0" for t in MILLISECONDS], "milliseconds since 1970 (from their size)"),
        ([t * 1000 for t in MILLISECONDS], "microseconds since 1970 (from their size)"),
        ([t * 1_000_000 for t in MILLISECONDS], "nanoseconds since 1970 (from their size)"),
        ([f"2023-11-14T22:13:20.{t % 1000:03}Z" for t in MILLISECONDS], "as dates"),
        ([f"2023-11-14 22:13:20.{t % 1000:03}" for t in MILLISECONDS], "as dates"),
        ([f"2023-11-14T23:13:20.{t % 1000:03}+01:00" for t in MILLISECONDS], "as dates"),
    ],
)
def test_units_and_notations(write, times, note):
    source = read_keystrokes(write("e.csv", rows(times)))
    assert source.keystrokes.time.tolist() == [t * 1_000_000 for t in MILLISECONDS]
    assert any(note in one for one in source.notes)
    assert source.resolution_ms == 1


@pytest.mark.parametrize(
    ("times", "unit", "header"),
    [
        (SMALL, None, "learner,time,key"),
        ([t / 1000 for t in SMALL], None, "learner,time,key"),
        ([t * 1000 for t in SMALL], None, "learner,time,key"),
        ([t * 1_000_000 for t in SMALL], None, "learner,time,key"),
        (SMALL, "ms", "learner,time,key"),
        ([t * 1000 for t in SMALL], "µs", "learner,time,key"),
        (SMALL, None, "learner,time_ms,key"),
    ],
)
def test_clocks_with_a_start_of_their_own(write, times, unit, header):
    source = read_keystrokes(write("e.csv", rows(times, header)), unit=unit)
    assert source.keystrokes.time.tolist() == [t * 1_000_000 for t in SMALL]
    assert any("from a start of their own" in note for note in source.notes)


def test_the_unit_in_a_name_settles_a_long_course(write):
    """Three weeks in milliseconds reach numbers that could be seconds since 1970."""
    times = [0, 150, 1_814_400_000, 1_814_400_200]
    record = read_keystrokes(write("e.csv", rows(times, "learner,time_ms,key"))).keystrokes
    assert record.week.tolist() == [0, 0, 3, 3]
    with pytest.raises(DataError, match=r"mixed units.* \(first on line 2, time column\)"):
        read_keystrokes(write("e.csv", rows(times)))
    assert read_keystrokes(write("e.csv", rows(times)), unit="ms").keystrokes.n_rows == 4


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            [*MILLISECONDS, 1_700_000_001],
            r"mixed units.*seconds and some like milliseconds.* \(first on line 5, time",
        ),
        ([*MILLISECONDS, 5], r"mixed units, or rows without a time \(first on line 5, time column\)"),
        ([*MILLISECONDS, "2023-11-14T22:13:20Z"], r"some are not \(first on line 5, time column\)"),
        (["2023-11-14T22:13:20Z", 5], r"some are not \(first on line 3, time column\)"),
        ([*MILLISECONDS, "soon"], r"some are not \(first on line 5, time column\)"),
        (["soon", "later"], r"in no notation that the reader knows \(first on line 2, time column\)"),
        (["1823-11-14T22:13:20Z"], r"outside the years 2000 to 2100 \(first on line 2, time column\)"),
        ([*MILLISECONDS, "inf"], r"finite numbers \(first on line 5, time column\)"),
        ([1, 1, 1], "the unit of the times cannot be inferred"),
        ([1, 10**18, 2 * 10**18], "cannot be inferred|mixed units"),
    ],
)
def test_times_that_cannot_be_read(write, times, message):
    with pytest.raises(DataError, match=message) as caught:
        read_keystrokes(write("e.csv", rows(times)))
    assert caught.value.hint
    assert "soon" not in str(caught.value)


def test_learners_in_two_units(write):
    lines = [f"a,{150 * n},k" for n in range(80)] + [f"b,{0.15 * n:.3f},k" for n in range(80)]
    path = write("e.csv", csv("learner,time,key", *lines))
    with pytest.raises(
        DataError, match=r"the times are in mixed units \(first on line (2|82), time column\)"
    ):
        read_keystrokes(path)


def test_a_unit_for_dates(write):
    path = write("e.csv", rows(["2023-11-14T22:13:20Z"]))
    with pytest.raises(UsageError, match="the times are not numbers"):
        read_keystrokes(path, unit="ms")
    with pytest.raises(DataError, match="too large"):
        read_keystrokes(write("e.csv", rows([10**15, 10**15 + 1])), unit="s")
