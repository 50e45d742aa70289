"""Times by a declared notation, which looks at no other row, and by one that is guessed."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from understudy.core.files.times import (
    DateOrder,
    Form,
    TimeKind,
    TimeNotation,
    UnreadableTimesError,
    guess_notation,
    guess_unit,
    parse_times,
    unit_in_name,
)

NOON = datetime(2024, 5, 31, 12, 0, 5)
MICROSECONDS = 1_717_156_805_000_000


def read(texts, notation, **options):
    return parse_times(pl.Series(texts), notation, **options)


@pytest.mark.parametrize(
    ("value", "notation", "kind"),
    [
        ("2024-05-31 12:00:05", TimeNotation(Form.iso), TimeKind.local),
        ("2024/5/31  12:00:05.000", TimeNotation(Form.iso), TimeKind.local),
        ("2024-05-31T12:00:05Z", TimeNotation(Form.iso, zones=True), TimeKind.instant),
        ("2024-05-31T14:00:05+02:00", TimeNotation(Form.iso, zones=True), TimeKind.instant),
        ("2024-05-31 10:30:05 -0130", TimeNotation(Form.iso, zones=True), TimeKind.instant),
        ("2024-05-31 12:00:05 CET", TimeNotation(Form.iso, zone_name="CET"), TimeKind.local),
        ("31.5.2024 12:00:05", TimeNotation(Form.numeric), TimeKind.local),
        ("5/31/24, 12:00:05 PM", TimeNotation(Form.numeric, order=DateOrder.month_first), TimeKind.local),
        ("31/5 12:00:05", TimeNotation(Form.numeric, first_day=date(2024, 2, 1)), TimeKind.local),
        ("May 31, 2024, 12:00:05", TimeNotation(Form.words), TimeKind.local),
        ("31. Mai, 12:00:05", TimeNotation(Form.words, first_day=date(2023, 6, 1)), TimeKind.local),
        ("1717156805", TimeNotation(Form.numbers, "s"), TimeKind.instant),
        (1717156805000, TimeNotation(Form.numbers, "ms"), TimeKind.instant),
        (1717156805.0, TimeNotation(Form.numbers, "s"), TimeKind.instant),
        (1717156805000000000, TimeNotation(Form.numbers, "ns"), TimeKind.instant),
        (NOON, TimeNotation(Form.typed), TimeKind.local),
    ],
)
def test_every_notation_gives_the_same_time(value, notation, kind):
    times = read([value], notation)
    assert times.datetimes.to_list() == [NOON]
    assert times.nanoseconds.tolist() == [MICROSECONDS * 1000]
    assert times.kind is kind


def test_a_declared_unit_is_not_corrected_by_the_data():
    """Numbers that look like milliseconds since 1970 are seconds if that is declared, since a start if that is."""
    times = read([1_717_156_805_000, 5], TimeNotation(Form.numbers, "s", since_start=True))
    assert times.ticks.tolist() == [1_717_156_805_000_000_000, 5_000_000]
    assert times.kind is TimeKind.since_start
    with pytest.raises(UnreadableTimesError, match="too large"):
        _ = times.nanoseconds


def test_reading_a_row_does_not_depend_on_the_others():
    rows = ["3/4/2024 10:00", "13/4/2024 10:00", "31/12/2024 23:59:59"]
    notation = TimeNotation(Form.numeric)
    together = read(rows, notation).ticks
    alone = np.concatenate([read([row], notation).ticks for row in rows])
    assert together.tolist() == alone.tolist()


def test_whole_nanoseconds_stay_exact():
    assert read([1_717_156_805_000_000_001], TimeNotation(Form.numbers, "ns")).nanoseconds[0] % 10 == 1


@pytest.mark.parametrize(
    ("rows", "notation", "code", "row"),
    [
        (["2024-05-31 12:00", "noon"], TimeNotation(Form.iso), "not-a-time", 1),
        (["2024-05-31 12:00", None], TimeNotation(Form.iso), "not-a-time", 1),
        (["2024-05-31 12:00", "2024-02-30 12:00"], TimeNotation(Form.iso), "not-a-time", 1),
        (["2024-05-31 12:00", "2024-05-31 12:00Z"], TimeNotation(Form.iso), "mixed-zones", 1),
        (["2024-05-31 12:00"], TimeNotation(Form.iso, zones=True), "mixed-zones", 0),
        (["31/5/2024", "5/31/2024"], TimeNotation(Form.numeric), "ambiguous-order", 1),
        (["31 May, 12:00"], TimeNotation(Form.words), "not-a-time", 0),
        (["3/4"], TimeNotation(Form.numeric, first_day=date(2024, 1, 1)), "not-a-time", 0),
        (["5", "five"], TimeNotation(Form.numbers), "not-a-time", 1),
        ([1.0, float("inf")], TimeNotation(Form.numbers), "not-a-time", 1),
        ([1, 10**18], TimeNotation(Form.numbers, "s"), "too-large", 1),
        (
            ["2024-05-31 12:00 CET", "2024-05-31 12:00"],
            TimeNotation(Form.iso, zone_name="CET"),
            "mixed-zones",
            1,
        ),
    ],
)
def test_what_does_not_fit_the_notation_is_named_by_its_row(rows, notation, code, row):
    with pytest.raises(UnreadableTimesError) as caught:
        read(rows, notation)
    assert (caught.value.code, caught.value.row) == (code, row)


def test_zones_may_differ_unless_one_is_asked_for():
    rows, notation = ["2024-05-31T12:00:05Z", "2024-05-31T14:00:05+02:00"], TimeNotation(Form.iso, zones=True)
    assert read(rows, notation).datetimes.to_list() == [NOON, NOON]
    with pytest.raises(UnreadableTimesError) as caught:
        read(rows, notation, one_zone=True)
    assert (caught.value.code, caught.value.row) == ("mixed-zones", 1)


def test_a_guess_is_the_notation_that_was_meant():
    assert guess_notation(pl.Series(["2024-05-31T14:00:05+02:00"])) == TimeNotation(Form.iso, zones=True)
    assert guess_notation(pl.Series(["5/31/2024", "5/1/2024"])).order is DateOrder.month_first
    assert guess_notation(pl.Series([1.7e12])) == TimeNotation(Form.numbers, "ms")
    with pytest.raises(UnreadableTimesError) as caught:
        guess_notation(pl.Series([12, 9]), refuse_durations=True)
    assert caught.value.code == "durations"


@pytest.mark.parametrize(("largest", "unit"), [(1.7e9, "s"), (1.7e12, "ms"), (1.7e15, "us"), (1.7e18, "ns")])
def test_the_unit_by_size(largest, unit):
    assert guess_unit(pl.Series([1.0, largest])) == unit


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("time_ms", "ms"),
        ("Time (s)", "s"),
        ("t us", "us"),
        ("timestamp-ns", "ns"),
        ("times", None),
        ("ms_x", None),
    ],
)
def test_the_unit_in_a_name(name, unit):
    assert unit_in_name(name) == unit
