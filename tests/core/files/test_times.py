"""Times: every notation gives the same time, and no cell decides how another one is read."""

from datetime import date, datetime

import polars as pl
import pytest

from understudy.core.files.times import (
    DateOrder,
    has_mixed_zones,
    read_each_time,
    states_instant,
    unit_in_name,
)

NOON = datetime(2024, 5, 31, 12, 0, 5)


@pytest.mark.parametrize(
    ("value", "options", "instant"),
    [
        ("2024-05-31 12:00:05", {}, False),
        ("2024/5/31  12:00:05.000", {}, False),
        ("2024-05-31T12:00:05Z", {}, True),
        ("2024-05-31T14:00:05+02:00", {}, True),
        ("2024-05-31 10:30:05 -0130", {}, True),
        ("2024-05-31 12:00:05 CET", {}, False),
        ("31.5.2024 12:00:05", {}, False),
        ("5/31/24, 12:00:05 PM", {"order": DateOrder.month_first}, False),
        ("31/5 12:00:05", {"order": DateOrder.day_first, "first_day": date(2024, 2, 1)}, False),
        ("May 31, 2024, 12:00:05", {}, False),
        ("31. Mai, 12:00:05", {"first_day": date(2023, 6, 1)}, False),
        ("1717156805", {}, True),
        (1717156805000, {"unit": "ms"}, True),
        (1717156805.0, {}, True),
        (1717156805000000000, {"unit": "ns"}, True),
        (NOON, {}, False),
    ],
)
def test_every_notation_gives_the_same_time(value, options, instant):
    assert read_each_time(pl.Series([value]), **options).to_list() == [NOON]
    assert states_instant(pl.Series([value])).to_list() == [instant]


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("noon", {}),
        (None, {}),
        ("2024-02-30 12:00", {}),
        ("31/5/2024", {}),
        ("31/5/2024", {"order": DateOrder.month_first}),
        ("31 May, 12:00", {}),
        ("3/4", {"order": DateOrder.day_first, "first_day": date(2024, 1, 1)}),
        ("5", {}),
        ("inf", {}),
        ("1717156805000", {}),
        (str(10**18), {"since_start": True}),
    ],
)
def test_what_is_no_time_is_null_and_changes_no_other_cell(value, options):
    cells = pl.Series(["2024-05-31 12:00:05", value, "31 May 2024, 12:00:05"])
    assert read_each_time(cells, **options).to_list() == [NOON, None, NOON]


def test_a_declared_unit_is_not_corrected_by_the_data():
    """Milliseconds since 1970 are no seconds, whatever the start: beyond 2100 there is no time, and no other unit."""
    cells = pl.Series(["1717156805", "5", "1717156805000"])
    times = read_each_time(cells, since_start=True).cast(pl.Int64).to_list()
    assert times == [1_717_156_805_000_000, 5_000_000, None]


@pytest.mark.parametrize(
    ("rows", "mixed"),
    [
        (["2024-05-31 12:00Z", "2024-05-31 12:00+00:00"], False),
        (["2024-05-31 12:00Z", "2024-05-31 12:00"], True),
        (["2024-05-31 12:00 CET", "2024-05-31 12:00 CEST"], True),
        (["2024-05-31 12:00", "2024-05-31"], False),
    ],
)
def test_mixed_zones(rows, mixed):
    assert has_mixed_zones(pl.Series(rows)) is mixed


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
