"""A log that is read in pieces is the log that is read whole: rows, order, names, notes."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from understudy.core.events import partitions
from understudy.core.files import streams
from understudy.errors import DataError
from understudy.logs.declared.columns import Declared, Kind
from understudy.logs.declared.term import Term
from understudy.logs.interactions import Interactions
from understudy.logs.reading import LogOptions, read_log, read_planned_log


def rows(seed: int = 1, n_rows: int = 400, n_learners: int = 30) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    learner = rng.integers(n_learners, size=n_rows)
    return pl.DataFrame(
        {
            "learner": [f"{'Anna' if code % 2 else 'anna'}{code:03}" for code in learner],
            "action": [f"task {code}" for code in rng.integers(12, size=n_rows)],
            "outcome": rng.integers(2, size=n_rows),
            "time": [f"2024-03-{day:02} 1{hour}:00:00" for day, hour in rng.integers(1, 9, size=(n_rows, 2))],
            "school": [f"school {code % 3}" for code in learner],
            "device": rng.choice(["phone", "tablet", "desktop", None], size=n_rows),
            "seconds": rng.integers(0, 300, size=n_rows),
            "e-mail": [f"x{code}@school.example" for code in learner],
        }
    )


def same(whole: Interactions, pieces: Interactions) -> None:
    for name in ("action", "outcome", "offsets", "time", "item", "group"):
        first, second = getattr(whole, name), getattr(pieces, name)
        assert (first is None) == (second is None), name
        if first is not None:
            np.testing.assert_array_equal(first, second, name)
            assert first.dtype == second.dtype
    for name in ("actions", "items", "groups", "term", "declared", "simulated"):
        assert getattr(whole, name) == getattr(pieces, name), name
    assert [each.declared for each in whole.columns] == [each.declared for each in pieces.columns]
    for first, second in zip(whole.columns, pieces.columns, strict=True):
        np.testing.assert_array_equal(first.cells, second.cells)
    assert sorted(whole.origin.notes) == sorted(pieces.origin.notes)
    np.testing.assert_array_equal(np.sort(whole.origin.digests), np.sort(pieces.origin.digests))
    for name in ("identifiers", "guesses", "n_withdrawn", "n_absent", "columns", "format", "yearless"):
        assert getattr(whole.origin, name) == getattr(pieces.origin, name), name


def check_same(path, large, options: LogOptions, declared: tuple[Declared, ...] = ()) -> Interactions:
    whole = read_planned_log(path, options, declared)
    large()
    pieces = read_planned_log(path, options, declared)
    same(whole, pieces)
    assert isinstance(pieces.action, np.memmap)
    assert not isinstance(whole.action, np.memmap)
    assert not list(path.parent.glob("understudy-scratch*"))
    return pieces


TIMES = LogOptions(time="time", group="school", item="device")


@pytest.mark.parametrize("options", [LogOptions(), TIMES, replace(TIMES, public_actions=True)])
@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.tsv", "log.csv.gz"])
def test_pieces_make_the_log_that_is_read_whole(tmp_path, everything_is_large, name, options):
    path = tmp_path / name
    if name.endswith("parquet"):
        rows().write_parquet(path, row_group_size=70)
    else:
        text = rows().write_csv(separator="\t" if name.endswith("tsv") else ",").encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert len(check_same(path, everything_is_large, options).lengths) == 30


def test_a_folder_of_parquet_files_is_one_table(tmp_path, everything_is_large):
    folder = tmp_path / "events"
    (folder / "2024").mkdir(parents=True)
    table = rows()
    table[:150].write_parquet(folder / "2024" / "a.parquet")
    table[150:].select(reversed(table.columns)).write_parquet(folder / "b.parquet")
    table.write_parquet(tmp_path / "whole.parquet")
    same_rows = read_log(tmp_path / "whole.parquet")
    everything_is_large()
    pieces = read_log(folder)
    np.testing.assert_array_equal(same_rows.action, pieces.action)
    np.testing.assert_array_equal(same_rows.offsets, pieces.offsets)
    table.drop("school").write_parquet(folder / "c.parquet")
    with pytest.raises(DataError, match=r"c\.parquet is the first that differs"):
        read_log(folder)
    table.cast({"outcome": pl.Boolean}).write_parquet(folder / "c.parquet")
    with pytest.raises(
        DataError, match=r"column 'outcome' has another type in c\.parquet than in a\.parquet"
    ):
        read_log(folder)


def test_declared_columns_times_and_withdrawals(tmp_path, everything_is_large):
    path, gone = tmp_path / "log.csv", tmp_path / "gone.txt"
    rows().write_csv(path)
    gone.write_text("ANNA004\nanna7\nnobody\n")
    declared = (
        Declared("device", Kind.category, "row", ("phone", "tablet")),
        Declared("school", Kind.category, "learner", found=True),
        Declared("seconds", Kind.number, "row", low=10, high=200, step=10),
    )
    options = LogOptions(
        time="time", term="2024-03-02..2024-03-05", exclude=gone, time_zone="Europe/Berlin", keep_skills=True
    )
    log = check_same(path, everything_is_large, options, declared)
    assert log.origin.n_withdrawn == 1
    assert isinstance(log.term, Term)


@pytest.mark.parametrize(
    "options",
    [LogOptions(skip_incomplete=True), LogOptions(set_aside=True), LogOptions(empty_outcomes=True)],
)
def test_empty_cells_and_learners_without_rows(tmp_path, everything_is_large, options):
    table = rows(n_learners=90)
    table = table.with_columns(
        outcome=pl.when(pl.col("learner").str.ends_with("7") | (pl.col("seconds") < 20))
        .then(None)
        .otherwise(pl.col("outcome"))
    )
    path = tmp_path / "log.csv"
    table.write_csv(path)
    log = check_same(path, everything_is_large, options)
    assert (log.lengths == 0).any() == (options.outcome is None and not options.empty_outcomes)


def test_texts_with_quotes_blank_lines_and_other_bytes(tmp_path, everything_is_large):
    table = rows().with_columns(action='"a ""' + pl.col("action") + '"", b"')
    lines = (
        table.write_csv(quote_style="never").replace("school 1", "sch\xf6n").encode("latin-1").split(b"\n")
    )
    lines[20:20] = [b""] * 3
    path = tmp_path / "log.csv"
    path.write_bytes(b"\r\n".join(lines))
    log = check_same(path, everything_is_large, LogOptions(group="school"))
    assert 'a "task 1", b' in log.actions
    assert "schön" in log.groups


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (("time", 333, "soon"), {}, "on line 335"),
        (("outcome", 222, "perhaps"), {}, "on line 224"),
        (("learner", 111, ""), {}, "on line 113"),
        (("action", 380, "a,b"), {}, "line 382 has 9 fields where the first line has 8"),
        (("action", 380, 'a "b'), {}, None),
        (("action", 380, '"a" b'), {}, "quotation mark on line 382"),
        (("time", 99, "2024-03-02T10:00:00+02:00"), {"time": "time"}, "mix time zones"),
        (("device", 99, "x\x00y"), {}, "line 101 holds bytes that do not occur in text"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, everything_is_large, change, options, words):
    column, row, value = change
    cells = rows().cast(pl.String)
    cells = cells.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(column).alias(column)
    )
    path = tmp_path / "log.csv"
    path.write_text(cells.write_csv(quote_style="never"))
    everything_is_large()
    if words is None:
        assert 'a "b' in read_log(path, **options).actions
        return
    with pytest.raises(DataError, match=words) as caught:
        read_log(path, **options)
    assert value not in str(caught.value) or not value


def test_logs_that_say_nothing_are_refused_as_a_whole(tmp_path, everything_is_large):
    everything_is_large()
    path = tmp_path / "log.parquet"
    table = rows().with_columns(learner=pl.int_range(pl.len()).cast(pl.String))
    table.write_parquet(path)
    with pytest.raises(DataError, match="different value on each of the 400 rows"):
        read_log(path)
    assert read_log(path, single_rows=True).n_learners == 400
    table.with_columns(outcome=pl.lit(None, pl.Int64)).write_parquet(path)
    with pytest.raises(DataError, match="no row is left"):
        read_log(path, skip_incomplete=True)


def test_a_list_of_withdrawals_that_removes_nobody_is_refused(tmp_path, everything_is_large):
    path, gone = tmp_path / "log.csv", tmp_path / "gone.txt"
    rows().write_csv(path)
    gone.write_text("nobody\n")
    everything_is_large()
    with pytest.raises(DataError, match="removes nobody"):
        read_log(path, exclude=gone)


def test_a_packed_text_that_is_cut_short_is_named(tmp_path, everything_is_large):
    path = tmp_path / "log.csv.gz"
    packed = gzip.compress(rows(n_rows=20_000).write_csv().encode())
    path.write_bytes(packed[: len(packed) // 2])
    everything_is_large()
    with pytest.raises(DataError, match="damaged or cut short"):
        read_log(path)


def test_an_action_that_names_a_learner_of_another_piece_is_found(tmp_path, everything_is_large):
    table = rows().with_columns(
        action=pl.when(pl.col("learner") == "Anna001").then(pl.lit("letter to anna028")).otherwise("action")
    )
    path = tmp_path / "log.csv"
    table.write_csv(path)
    log = check_same(path, everything_is_large, LogOptions())
    assert any(found.role == "action" for found in log.origin.identifiers)


def _own_names(table: pl.DataFrame) -> pl.Series:
    """A name for each learner: Sam Smiaa, Sam Smiab."""
    numbers = table["learner"].str.slice(-3).cast(pl.Int64)
    return pl.Series([f"Sam Smi{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in numbers])


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.parquet"])
def test_people_in_a_column_that_is_empty_at_first_are_found(
    tmp_path, everything_is_large, monkeypatch, name
):
    """Which columns identify people is seen from all over the file, as when it is read whole."""
    table, row = rows().drop("e-mail"), pl.int_range(pl.len())
    address = _own_names(table).str.to_lowercase().str.replace(" ", ".") + "@school.example"
    table = table.with_columns(
        contact=pl.when(row >= 250).then(address),
        action=pl.when(row == 99).then(pl.lit("ask sam.smiad")).otherwise("action"),
    )
    path = tmp_path / name
    if name.endswith("parquet"):
        table.write_parquet(path)
    else:
        text = table.write_csv().encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    monkeypatch.setattr(streams, "HEAD_BYTES", 4000)
    monkeypatch.setattr(streams, "SAMPLE_ROWS", 40)
    monkeypatch.setattr(partitions, "SAMPLE_ROWS", 40)
    log = check_same(path, everything_is_large, LogOptions())
    found = [(each.kind, each.role) for each in log.origin.identifiers]
    assert found == [("e-mail address", "not read"), ("e-mail address", "action")]


@pytest.mark.parametrize("n_titled", [1, 26])
def test_names_are_those_of_people_or_titles_in_all_pieces_alike(tmp_path, everything_is_large, n_titled):
    """A column with a name per row holds titles, one with a name per learner people; here some learners have each."""
    table = rows()
    titled = table["learner"].str.slice(-3).cast(pl.Int64) < n_titled
    titles = pl.Series([f"Box{chr(97 + at % 26)} Plot" for at in range(table.height)])
    mentioned = "letter to " + titles.filter(titled)[0]
    table = table.with_columns(
        name=pl.when(titled).then(titles).otherwise(_own_names(table)),
        action=pl.when(pl.int_range(pl.len()) == 99).then(pl.lit(mentioned)).otherwise("action"),
    )
    path = tmp_path / "log.csv"
    table.write_csv(path)
    log = check_same(path, everything_is_large, LogOptions())
    assert any(each.role == "action" for each in log.origin.identifiers) == (n_titled == 1)
