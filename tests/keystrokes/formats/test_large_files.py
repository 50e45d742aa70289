"""Keystrokes that are read in pieces are those that are read whole, and so are their profiles."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from tests.support.tables import write_as
from understudy.errors import UnderstudyError
from understudy.keystrokes import keystrokes as record
from understudy.keystrokes.formats import reading
from understudy.keystrokes.formats.clock import Sizes
from understudy.keystrokes.formats.reading import read_keystrokes
from understudy.keystrokes.profiles import profile

DAY = 86_400_000
START = 1_700_000_000_000
KEYS = [*"etaoin shrdlu", "Enter", "Backspace", "Shift"]


def events(seed: int = 1, n_rows: int = 900, n_learners: int = 9) -> pl.DataFrame:
    """Presses in milliseconds since 1970, learners one among the other; some rows are odd."""
    rng = np.random.default_rng(seed)
    learner = rng.integers(n_learners, size=n_rows)
    table = pl.DataFrame(
        {
            "learner": [f"{'Anna' if code % 2 else 'anna'}{code:02}" for code in learner],
            "session": rng.integers(2, size=n_rows) + 3,
            "time": START
            + np.sort(rng.integers(0, 24 * DAY, size=n_rows) // DAY * DAY)
            + np.arange(n_rows) * 37,
            "key": rng.choice(KEYS, size=n_rows),
            "hold": rng.integers(20, 200, size=n_rows),
        }
    ).cast(pl.String)
    odd = pl.int_range(pl.len())
    return table.with_columns(
        learner=pl.when(odd % 101 == 7).then(pl.lit("")).otherwise("learner"),
        time=pl.when(odd % 89 == 11).then(pl.lit("")).otherwise("time"),
        key=pl.when(odd % 53 == 3)
        .then(pl.lit("pasted text"))
        .when(odd % 67 == 5)
        .then(None)
        .otherwise("key"),
        hold=pl.when(odd % 17 == 2).then(None).otherwise("hold"),
    )


def as_numbers(table: pl.DataFrame) -> pl.Expr:
    """The time of a table's rows as numbers."""
    return pl.col("time").cast(pl.Float64, strict=False)


def with_releases() -> pl.DataFrame:
    """Presses and releases; some learners have none, and keys have places."""
    table = events().drop("hold").with_columns(type=pl.lit("keydown"), code="K" + pl.col("key"))
    later = (as_numbers(table) + 30).cast(pl.Int64).cast(pl.String)
    ups = table.filter(~pl.col("learner").str.ends_with("4")).with_columns(type=pl.lit("keyup"), time=later)
    both = pl.concat([table, ups]).with_row_index("at")
    both = both.sort(as_numbers(both), "at", nulls_last=True).drop("at")
    return both.with_columns(
        type=pl.when(pl.int_range(pl.len()) % 71 == 2).then(pl.lit("scroll")).otherwise("type")
    )


def dates(zone: str = "") -> pl.DataFrame:
    moment = pl.from_epoch(as_numbers(events()).cast(pl.Int64), time_unit="ms")
    return events().with_columns(time=moment.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.3f{zone}"))


def from_a_start(factor: float = 1.0) -> pl.DataFrame:
    """Times from a start of the file's own, as numbers of an unknown unit."""
    return events().with_columns(time=((as_numbers(events()) - START) % DAY * factor).cast(pl.String))


TABLES = {
    "since 1970": events(),
    "without sessions": events().drop("session", "hold"),
    "weeks": events().with_columns(week=pl.format("week {}", pl.int_range(pl.len()) // 200 + 4)),
    "few weeks": events().with_columns(week=pl.when(pl.int_range(pl.len()) > 850).then(pl.lit("7"))),
    "releases": with_releases(),
    "no type": events().with_columns(type=pl.lit("something")),
    "keypress": events().with_columns(type=pl.lit("keypress")),
    "release times": events().with_columns(
        release_time=(as_numbers(events()) + 60).cast(pl.Int64).cast(pl.String)
    ),
    "dates": dates(),
    "instants": dates("+02:00"),
    "milliseconds": from_a_start(),
    "seconds": from_a_start(0.001).with_columns(hold=pl.col("hold").cast(pl.Float64) / 1000),
    "microseconds": from_a_start(1000.0),
    "a clock per session": events().with_columns(
        time=((as_numbers(events()) - START) % 1_000_000).cast(pl.Int64).cast(pl.String)
    ),
    "codes": events().with_columns(key=pl.col("key").hash().mod(60).cast(pl.String)),
    "coarse": events().with_columns(
        time=(as_numbers(events()) // 1000 * 1000).cast(pl.Int64).cast(pl.String)
    ),
    "unordered": events().reverse(),
    "twice": pl.concat([events(), events()]),
    "follows": events().with_columns(follows=pl.int_range(pl.len()) % 5 != 0),
}


@pytest.fixture
def read_both(everything_is_large, monkeypatch):
    """Read a file whole and in pieces."""

    def read(path, **settings):
        whole = read_keystrokes(path, **settings)
        everything_is_large()
        monkeypatch.setattr(reading, "open_source", lambda path: pytest.fail("was read whole"))
        return whole, read_keystrokes(path, **settings)

    return read


def check_same(whole, pieces) -> None:
    first, second = whole.keystrokes, pieces.keystrokes
    assert first.keys == second.keys
    for name in ("key", "time", "follows", "offsets", "session", "week", "hold"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, name)
            assert one.dtype == other.dtype, name
    for name in ("n_learners", "left_out", "resolution_ms", "label_names", "label"):
        assert getattr(whole, name) == getattr(pieces, name), name
    if whole.labels is not None:
        np.testing.assert_array_equal(whole.labels, pieces.labels)
    assert sorted(whole.notes) == sorted(pieces.notes)
    assert set(map(str, whole.origin.guesses)) == set(map(str, pieces.origin.guesses))
    np.testing.assert_array_equal(np.sort(whole.origin.digests), np.sort(pieces.origin.digests))
    assert (whole.path, whole.format, whole.origin.columns) == (
        pieces.path,
        pieces.format,
        pieces.origin.columns,
    )


@pytest.mark.parametrize("name", TABLES)
def test_pieces_make_the_record_that_is_read_whole(tmp_path, read_both, name):
    check_same(*read_both(write_as(tmp_path / "events.csv", TABLES[name])))
    assert not list(tmp_path.glob("understudy-scratch*"))


def test_names_that_differ_in_a_control_character_are_two_learners(tmp_path, read_both):
    """Python strips more than polars: rows of one learner would be in two pieces."""
    marked = (pl.col("learner") == "anna04") & (pl.int_range(pl.len()) % 2 == 0)
    table = events().with_columns(
        learner=pl.when(marked).then(pl.col("learner") + "\x1f").otherwise("learner")
    )
    whole, pieces = read_both(write_as(tmp_path / "events.csv", table))
    check_same(whole, pieces)
    assert whole.n_learners == 10


@pytest.mark.parametrize("name", ["events.parquet", "events.tsv", "events.csv.gz"])
def test_other_files(tmp_path, read_both, name):
    table = with_releases()
    if name.endswith("parquet"):
        table = table.with_columns(pl.col("time").cast(pl.Int64, strict=False))
    labels = tmp_path / "labels.csv"
    labels.write_text("learner,experience\nanna00,none\nAnna01,some\nanna02,none\n")
    check_same(*read_both(write_as(tmp_path / name, table), labels=labels))


def test_a_folder_of_parquet_files(tmp_path):
    table = events()
    whole = read_keystrokes(write_as(tmp_path / "events.parquet", table))
    folder = tmp_path / "events"
    folder.mkdir()
    write_as(folder / "a.parquet", table[:300])
    write_as(folder / "b.parquet", table[300:])
    pieces = read_keystrokes(folder)
    np.testing.assert_array_equal(whole.keystrokes.time, pieces.keystrokes.time)
    assert whole.notes == pieces.notes
    assert pieces.path == folder


@pytest.mark.parametrize("unit", ["s", "ms", None])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a word", pl.lit("soon")),
        ("infinite", pl.lit("inf")),
        ("another unit", pl.col("time") + "000"),
        ("from a start", pl.lit("12")),
        ("a date", pl.lit("2024-05-31T14:05:09")),
    ],
)
def test_times_that_disagree_are_refused_alike(tmp_path, everything_is_large, name, change, unit):
    table = events().with_columns(
        time=pl.when((pl.col("learner") == "anna04") & (pl.int_range(pl.len()) > 500))
        .then(change)
        .otherwise("time")
    )
    path = write_as(tmp_path / "events.csv", table)
    _same_error(path, everything_is_large, unit=unit)


@pytest.mark.parametrize(
    "table",
    [
        pl.concat([dates("Z").filter(pl.col("learner") < "a"), dates().filter(pl.col("learner") > "a")]),
        pl.concat(
            [dates(" CET").filter(pl.col("learner") < "a"), dates(" EST").filter(pl.col("learner") > "a")]
        ),
        from_a_start(1e-9),
        pl.concat([from_a_start().filter(pl.col("learner") != "anna04"), from_a_start(1000.0)[700:]]),
        events().with_columns(key=None),
        events().with_columns(time=pl.lit("")),
        with_releases().with_columns(type=pl.lit("keyup")),
    ],
)
def test_what_is_wrong_with_the_whole_file_is_refused_alike(tmp_path, everything_is_large, table):
    _same_error(write_as(tmp_path / "events.csv", table), everything_is_large)


def _same_error(path, large, **settings) -> None:
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(read_keystrokes(path, **settings).notes)
        except UnderstudyError as error:
            outcomes.append(str(error))
        large()
    if "(on line" in outcomes[1]:
        # It was found in one piece, which need not be the one with the first such row.
        outcomes = [re.sub(r"(first )?on line \d+", "", outcome) for outcome in outcomes]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("week", "soon", r"a week is not a number \(on line 802"),
        ("time", "2024-13-40T00:00:00", r"\(on line 802"),
    ],
)
def test_cells_that_cannot_be_read_are_named_with_a_line(tmp_path, everything_is_large, column, value, words):
    table = dates().with_columns(week=pl.lit("3")).filter(pl.col("time").is_not_null())
    table = table.with_columns(
        pl.when(pl.int_range(pl.len()) == 800).then(pl.lit(value)).otherwise(column).alias(column)
    )
    path = write_as(tmp_path / "events.csv", table)
    everything_is_large()
    with pytest.raises(UnderstudyError, match=words) as caught:
        read_keystrokes(path)
    assert value not in str(caught.value)


@pytest.mark.parametrize("kinds", ["digraph", "key,hold", "trigraph,digraph"])
def test_profiles_of_parts(tmp_path, read_both, monkeypatch, kinds):
    # Times of typing: a row every 120 ms or so, of each learner.
    table = events(n_rows=6000, n_learners=7)
    rng = np.random.default_rng(3)
    table = table.with_columns(
        time=pl.Series(START + np.cumsum(rng.integers(5, 40, size=table.height))).cast(pl.String),
        key=pl.Series(rng.choice(list("etaoin"), p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1], size=table.height)),
    )
    whole, pieces = read_both(write_as(tmp_path / "events.csv", table))
    settings = {"kinds": kinds, "digraphs": 12, "min_characters": 800}
    first = profile(whole, **settings)
    monkeypatch.setattr(record, "ROWS_OF_A_PART", 500)
    assert len(list(pieces.keystrokes.parts())) > 3
    second = profile(pieces, **settings)
    assert 2 <= first.profiles.n_owners == second.profiles.n_owners
    assert first.to_json() == second.to_json()
    # Learners are in random order.
    rows = [sorted(map(tuple, found.profiles.values.tolist())) for found in (first, second)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "numbers", [[1.0, 9.0, 11.0, 12.0], [9.999, 10.001], [8.0, 11.0], [0.001, 0.5], [3.0], []]
)
def test_the_class_of_a_median_needs_no_numbers(numbers):
    """Also where the two in the middle are of different units."""
    sizes = Sizes.of(np.array(numbers[::2]), 0.01, 10.0) + Sizes.of(np.array(numbers[1::2]), 0.01, 10.0)
    middle = float(np.median(numbers)) if numbers else np.nan
    expected = "s" if 0.01 <= middle < 10 else "ms" if 10 <= middle < 10_000 else None
    assert sizes.unit(0.01, 10.0) == expected
