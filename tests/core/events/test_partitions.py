"""Partitions of a large table, and what is known of all events once they are read piece by piece."""

from __future__ import annotations

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.partitions import partition, spread_sample
from understudy.core.files.people.identifiers import NamedPeople
from understudy.core.files.source import Guess, open_source
from understudy.core.files.streams import open_parquet
from understudy.core.files.tables import SAMPLE_ROWS, read_parquet


def test_names_that_may_mean_one_learner_come_into_one_partition(tmp_path, everything_is_large):
    everything_is_large(partition_rows=1)
    names = [f"anna{number:03}" for number in range(40)]
    written = [*names, *map(str.upper, names), *(f" {name} " for name in names)]
    path = tmp_path / "log.parquet"
    pl.DataFrame({"learner": written}).write_parquet(path)
    stream = open_parquet(path)
    parts = partition(stream, stream.head().sample(), [0], {"learner": 0}, tmp_path, everyone=True)
    assert len(parts) > 10
    assert sorted(parts.learners) == sorted({*names, *map(str.upper, names)})
    places: dict[str, set[int]] = {}
    for number in range(len(parts)):
        for name in parts.table(number).frame["0"]:
            places.setdefault(name.strip().lower(), set()).add(number)
    assert {len(numbers) for numbers in places.values()} == {1}


def test_samples_are_of_rows_from_all_over_the_table(tmp_path, everything_is_large):
    path = tmp_path / "log.parquet"
    n_rows = 3 * SAMPLE_ROWS + 1
    pl.DataFrame({"learner": range(n_rows), "words": [["nested"]] * n_rows}).write_parquet(path)
    whole = read_parquet(open_source(path)).sample()
    everything_is_large()
    pieces = spread_sample(open_parquet(path))
    for sample in (whole, pieces):
        assert sample.columns == ["0"]
        rows = sample["0"].cast(pl.Int64)
        assert SAMPLE_ROWS / 2 - 5 <= len(rows) <= SAMPLE_ROWS + 5
        assert rows[0] == 0
        assert rows.diff().drop_nulls().max() <= 8
        assert rows[-1] > n_rows - 9
        for period in (2, 3, 4, 7, 16):
            shares = (rows % period).value_counts()["count"] / len(rows)
            assert abs(shares * period - 1).max() < 0.1


def test_samples_have_the_cells_that_are_filled(tmp_path, everything_is_large):
    path = tmp_path / "log.parquet"
    n_rows = 3 * SAMPLE_ROWS
    rows = {"learner": range(n_rows), "few": [row if row % 2500 == 7 else None for row in range(n_rows)]}
    pl.DataFrame({**rows, "blank": [" " if row < 5000 else "x" for row in range(n_rows)]}).write_parquet(path)
    everything_is_large()
    sample = spread_sample(open_parquet(path))
    assert sample["1"].drop_nulls().to_list() == ["7", "2507", "5007"]
    assert sample["2"].drop_nulls().to_list() == ["x"] * 1000


def test_what_any_piece_shows_is_known_of_the_whole():
    def piece(guess: str, *people: NamedPeople) -> EventTable:
        events = EventTable("log.csv", pl.DataFrame(), {}, [], people=list(people))
        events.guesses = (Guess("always"), Guess(guess))
        return events

    def named(column: str, value: str) -> NamedPeople:
        return NamedPeople(column, "name", pl.Series([value]))

    whole = piece("one", named("name", "Ada"))
    whole.add_piece(piece("two", named("name", "Bo"), named("friend", "Cy")))
    assert [guess.what for guess in whole.guesses] == ["always", "one", "two"]
    assert {people.column: sorted(people.values) for people in whole.people} == {
        "name": ["Ada", "Bo"],
        "friend": ["Cy"],
    }
