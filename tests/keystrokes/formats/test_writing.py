"""What the writer of keystrokes writes, the reader of events reads back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from understudy.core.files.simulated import mark_simulated
from understudy.core.files.writing import write_table
from understudy.errors import UsageError
from understudy.keystrokes.formats.events import event_table
from understudy.keystrokes.formats.reading import read_keystrokes
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.simulate import TypingCourse


def course() -> Keystrokes:
    """Few students, each of whom types too little for sittings of two weeks to overlap."""
    small = TypingCourse(n_learners=4, n_weeks=2, characters_per_week=300)
    return small.simulate(np.random.default_rng(3))[0]


def same(one: Keystrokes, other: Keystrokes) -> bool:
    def hold(record: Keystrokes) -> list[int] | None:
        return None if record.hold is None else record.hold.tolist()

    return (
        [one.keys[code] for code in one.key] == [other.keys[code] for code in other.key]
        and one.time.tolist() == other.time.tolist()
        and one.follows.tolist() == other.follows.tolist()
        and one.offsets.tolist() == other.offsets.tolist()
        and one.session.tolist() == other.session.tolist()
        and one.week.tolist() == other.week.tolist()
        and hold(one) == hold(other)
        and one.simulated == other.simulated
    )


@pytest.mark.parametrize("name", ["k.csv", "k.parquet"])
def test_what_was_written_is_read(tmp_path, name):
    record = course()
    write_table(event_table(record), tmp_path / name, kind="simulated data")
    mark_simulated(tmp_path / name)
    source = read_keystrokes(tmp_path / name)
    assert same(source.keystrokes, record)
    assert source.left_out == {}


@pytest.mark.parametrize("name", ["k.csv", "k.parquet"])
def test_breaks_gaps_and_unknown_values_stay(tmp_path, name):
    record = course()
    assert record.hold is not None
    follows, week, hold = record.follows.copy(), record.week.copy(), record.hold.copy()
    follows[5:9], week[20:], hold[3] = False, -1, -1
    week[:20] = 0
    time = record.time // 1_000_000 * 1_000_000
    changed = replace(
        record, follows=follows, week=week, hold=hold // 1_000_000 * 1_000_000, time=time, simulated=False
    )
    changed = replace(changed, hold=np.where(hold < 0, -1, changed.hold))
    write_table(event_table(changed), tmp_path / name, kind="a test")
    assert same(read_keystrokes(tmp_path / name).keystrokes, changed)


def test_columns_say_their_unit():
    record = course()
    assert event_table(record).columns == ["learner", "session", "week", "time_ns", "key", "hold_ns"]
    coarse = replace(record, time=record.time // 1_000_000 * 1_000_000, hold=None)
    table = event_table(replace(coarse, simulated=False))
    assert table.columns == ["learner", "session", "week", "time_ms", "key"]
    assert table["learner"][0] == "learner-1"
    assert event_table(coarse)["learner"][0] == "simulated-1"


def test_keys_that_a_csv_has_to_quote(tmp_path):
    keys = (" ", ",", '"', "\n", "é", "#", "'", "Enter", "0")
    n_keys = len(keys)
    record = Keystrokes(
        np.arange(n_keys),
        (1_700_000_000_000 + 100 * np.arange(n_keys)) * 1_000_000,
        np.arange(n_keys) > 0,
        np.array([0, n_keys]),
        keys,
        np.zeros(n_keys, dtype=np.int32),
        np.zeros(n_keys, dtype=np.int32),
    )
    write_table(event_table(record), tmp_path / "k.csv", kind="a test")
    read = read_keystrokes(tmp_path / "k.csv").keystrokes
    assert [read.keys[code] for code in read.key] == [" ", ",", '"', "Enter", "é", "#", "'", "Enter", "0"]


def test_other_extensions_are_refused_and_parquet_says_what_it_is(tmp_path):
    with pytest.raises(UsageError, match=r"a table is written as \.csv or \.parquet"):
        write_table(event_table(course()), tmp_path / "k.txt", kind="x")
    write_table(event_table(course()), tmp_path / "k.parquet", kind="simulated data")
    assert pl.read_parquet_metadata(tmp_path / "k.parquet")["understudy"] == "simulated data"
