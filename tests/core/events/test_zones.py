"""Times on the learners' clock: instants converted, daylight saving, mixed zones; and days from a start."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

HEADER = "learner,action,outcome,time\n"


def rows(*times, learner="a"):
    return HEADER + "".join(f"{learner},x{n},1,{time}\n" for n, time in enumerate(times))


def shown(log):
    return [(log.actions[code], str(time)[:19]) for code, time in zip(log.action, log.time, strict=True)]


@pytest.mark.oracle
def test_instants_are_shown_as_the_clock_did(write):
    """Against Python's own zones, over years of changes of the clock."""
    rng = np.random.default_rng(7)
    seconds = np.sort(rng.integers(1_100_000_000, 1_700_000_000, 400))
    content = rows(*seconds)
    for zone in ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"):
        log = read_log(write("log.csv", content), time_zone=zone)
        instants = [datetime.fromtimestamp(int(second), UTC) for second in seconds]
        expected = [moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat() for moment in instants]
        assert [time for _, time in shown(log)] == [str(np.datetime64(time))[:19] for time in expected]
        assert f"Times are on the clock of {zone}: 400 times converted." in log.origin.notes


def test_rows_may_state_different_zones_or_none(write):
    content = rows(
        "2024-07-01T12:00:00+05:00", "2024-07-01T08:30:00Z", "2024-07-01 10:00:00", "2024-07-01 11:00:00 CEST"
    )
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", content))
    assert (caught.value.code, caught.value.settings[0]) == ("mixed-zones", "time_zone")
    log = read_log(write("log.csv", content), time_zone="Europe/Berlin")
    assert shown(log) == [
        ("x0", "2024-07-01T09:00:00"),
        ("x2", "2024-07-01T10:00:00"),
        ("x1", "2024-07-01T10:30:00"),
        ("x3", "2024-07-01T11:00:00"),
    ]
    assert "Times are on the clock of Europe/Berlin: 2 times converted." in log.origin.notes


def test_another_zone_by_name_cannot_be_read(write):
    content = rows("2024-07-01 10:00:00 CEST", "2024-07-01 10:00:00 PST", "2024-07-01 10:00:00 UTC")
    with pytest.raises(DataError, match="cannot be read as a time on line 3"):
        read_log(write("log.csv", content), time_zone="Europe/Berlin")
    log = read_log(write("log.csv", content), time_zone="Europe/Berlin", set_aside=True)
    assert shown(log) == [("x0", "2024-07-01T10:00:00"), ("x2", "2024-07-01T12:00:00")]


def test_the_hour_that_the_clock_shows_twice(write):
    """Rows stay in the order in which they were, and times never run backwards."""
    content = rows(
        "2024-10-27T00:30:00Z", "2024-10-27T01:10:00Z", "2024-10-27T01:40:00Z", "2024-10-27T02:05:00Z"
    )
    log = read_log(write("log.csv", content), time_zone="Europe/Berlin")
    assert shown(log) == [
        ("x0", "2024-10-27T02:30:00"),
        ("x1", "2024-10-27T02:30:00"),
        ("x2", "2024-10-27T02:40:00"),
        ("x3", "2024-10-27T03:05:00"),
    ]
    assert (
        "1 time in an hour that the clock shows again: shown at the latest time before." in log.origin.notes
    )


def test_clock_times_that_are_unclear_stay_as_written(write):
    content = rows("2024-03-31 02:30:00", "2024-03-31 04:10:00", "2024-10-27 02:30:00")
    log = read_log(write("log.csv", content), time_zone="Europe/Berlin")
    assert [time for _, time in shown(log)] == [
        "2024-03-31T02:30:00",
        "2024-03-31T04:10:00",
        "2024-10-27T02:30:00",
    ]
    assert "2 times in an hour that the change of the clock skips or repeats: as written." in log.origin.notes


def test_no_such_zone(write):
    with pytest.raises(UsageError, match="there is no time zone 'Berlin'"):
        read_log(write("log.csv", rows("2024-03-31 02:30:00")), time_zone="Berlin")


def test_days_from_a_start(write):
    content = rows("3", "-10", "0.5")
    log = read_log(write("log.csv", content), time="time", time_unit="d")
    assert shown(log) == [
        ("x1", "1969-12-22T00:00:00"),
        ("x2", "1970-01-01T12:00:00"),
        ("x0", "1970-01-04T00:00:00"),
    ]
    assert any("count from a start of their own" in note for note in log.origin.notes)
    named = read_log(write("log.csv", content.replace(",time", ",time_days")), time="time_days")
    assert shown(named) == shown(log)
    # A zone says nothing about times without a date.
    zoned = read_log(write("log.csv", content), time="time", time_unit="d", time_zone="Europe/Berlin")
    assert shown(zoned) == shown(log)
