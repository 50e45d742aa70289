"""Responses that are read in pieces are those that are read whole: learners and their order, items, answers, notes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.support.tables import write_as
from understudy.errors import DataError
from understudy.exams.formats import exam_file
from understudy.exams.formats.reading import read_responses


def answers(seed: int = 1, n_learners: int = 30, n_items: int = 12) -> pl.DataFrame:
    """A row per answer in random order; some are missing, and some learners gave none."""
    rng = np.random.default_rng(seed)
    pairs = pl.DataFrame({"code": range(n_learners)}).join(
        pl.DataFrame({"item": range(n_items)}), how="cross"
    )
    pairs = pairs.sample(fraction=0.9, shuffle=True, seed=seed)
    outcome = pl.Series("correct", rng.integers(2, size=pairs.height)).cast(pl.String)
    given = pl.Series(rng.random(pairs.height) < 0.8) & (pairs["code"] % 7 != 3)
    return pairs.select(
        pl.format(
            "{}{}", pl.when(pl.col("code") % 2 == 1).then(pl.lit("Anna")).otherwise(pl.lit("anna")), "code"
        )
        .str.replace(r"(\D)(\d)$", "${1}0$2")
        .alias("learner"),
        pl.format("task {}", "item").alias("item"),
        pl.when(given).then(outcome).alias("correct"),
        pl.Series("day", rng.integers(1, 9, size=pairs.height)).map_elements(
            lambda day: f"2024-03-0{day} 10:00:00", pl.String
        ),
    )


def check_same(path, large, monkeypatch, **settings):
    """Read the file whole, and in pieces; the content is never in memory then."""
    whole = read_responses(path, **settings)
    large()
    monkeypatch.setattr(exam_file, "open_source", lambda path: pytest.fail("was read whole"))
    pieces = read_responses(path, **settings)
    np.testing.assert_array_equal(whole.correct, pieces.correct)
    assert whole.items == pieces.items
    assert (whole.declared, whole.points, whole.guesses) == (pieces.declared, pieces.points, pieces.guesses)
    if whole.group_of is not None:
        np.testing.assert_array_equal(whole.group_of, pieces.group_of)
    np.testing.assert_array_equal(np.sort(whole.origin.digests), np.sort(pieces.origin.digests))
    first, second = vars(whole.origin).copy(), vars(pieces.origin).copy()
    assert sorted(first.pop("notes")) == sorted(second.pop("notes"))
    for origin in (first, second):
        del origin["digests"]
    assert first == second
    return pieces


@pytest.mark.parametrize("settings", [{}, {"public_items": True}, {"items": ["task 3", "task 99", "task 1"]}])
@pytest.mark.parametrize("name", ["exam.parquet", "exam.csv", "exam.tsv", "exam.csv.gz"])
def test_a_row_per_answer(tmp_path, everything_is_large, monkeypatch, name, settings):
    path = write_as(tmp_path / name, answers())
    read = check_same(path, everything_is_large, monkeypatch, keep_names=True, **settings)
    assert read.origin.layout == "long"
    assert read.n_learners == len(read.origin.learners) == 30
    assert (read.correct < 0).all(axis=1).sum() >= 4
    assert not list(tmp_path.glob("understudy-scratch*"))


@pytest.mark.parametrize("attempts", ["first", "last", "best"])
def test_repeated_answers(tmp_path, everything_is_large, monkeypatch, attempts):
    table = pl.concat([answers(1), answers(2), answers(3)])
    path = write_as(tmp_path / "exam.csv", table.rename({"day": "time"}))
    check_same(path, everything_is_large, monkeypatch, attempts=attempts, keep_names=True)
    path = write_as(tmp_path / "untimed.parquet", table)
    check_same(path, everything_is_large, monkeypatch, attempts=attempts)
    with pytest.raises(DataError, match="for a second time for the same learner on row"):
        read_responses(path)


def test_withdrawals_and_rows_that_cannot_be_read(tmp_path, everything_is_large, monkeypatch):
    table = answers().with_columns(
        correct=pl.when(pl.int_range(pl.len()) % 9 == 2).then(pl.lit("perhaps")).otherwise("correct")
    )
    table = table.with_columns(
        learner=pl.when(pl.int_range(pl.len()) % 50 == 5).then(None).otherwise("learner")
    )
    gone = tmp_path / "gone.txt"
    gone.write_text("ANNA04\nanna7\nnobody\n")
    path = write_as(tmp_path / "exam.csv", table)
    settings = {"exclude": gone, "set_aside": True, "keep_names": True}
    read = check_same(path, everything_is_large, monkeypatch, **settings)
    assert 0 < read.origin.n_withdrawn <= 2


def test_items_that_name_a_person_by_their_place(tmp_path, everything_is_large, monkeypatch):
    table = answers().with_columns(
        item=pl.format("https://x.example/users/{}/{}", "learner", pl.col("item").str.slice(5))
    )
    path = write_as(tmp_path / "exam.csv", table)
    read = check_same(path, everything_is_large, monkeypatch, attempts="best")
    assert read.items[0] == "https://x.example/users/(person)/0"


def test_a_log_of_attempts(tmp_path, everything_is_large, monkeypatch):
    table = answers().rename({"learner": "user"}).with_columns(skill=pl.col("item") + " skill")
    path = write_as(tmp_path / "exam.csv", table)
    read = check_same(path, everything_is_large, monkeypatch, skip_incomplete=True)
    assert read.origin.format == "user-item-skill"
    assert read.origin.layout == "log"
    assert (read.correct[-4:] < 0).all()


def test_a_folder_of_parquet_files(tmp_path, everything_is_large, monkeypatch):
    table = answers()
    whole = read_responses(write_as(tmp_path / "exam.parquet", table))
    folder = tmp_path / "exam"
    folder.mkdir()
    write_as(folder / "a.parquet", table[:100])
    write_as(folder / "b.parquet", table[100:].select(reversed(table.columns)))
    read = read_responses(folder)
    np.testing.assert_array_equal(read.correct, whole.correct)
    assert read.origin.notes[0] == "Read as parquet: the folder has Parquet files."
    assert read.origin.notes[1:] == whole.origin.notes[1:]


def sheet() -> pl.DataFrame:
    table = answers().pivot("item", index="learner", values="correct", aggregate_function="first")
    points = pl.int_range(pl.len()).mod(5).cast(pl.String)
    return table.with_columns(points.alias("essay (4 points)"), remark=pl.lit("ok"), track=pl.lit("A"))


@pytest.mark.parametrize("name", ["sheet.parquet", "sheet.csv", "sheet.tsv", "sheet.csv.gz"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"keep_names": True, "points": 1},
        {"group": "track", "groups": "A,B"},
        {"items": ["task 3", "task 1"]},
    ],
)
def test_sheets(tmp_path, everything_is_large, monkeypatch, name, settings):
    table = sheet()
    if name.endswith("parquet"):
        table = table.cast({"task 3": pl.Int8, "task 5": pl.Float64})
    path = write_as(tmp_path / name, table)
    gone = tmp_path / "gone.txt"
    gone.write_text("anna04\n")
    read = check_same(path, everything_is_large, monkeypatch, exclude=gone, **settings)
    assert read.origin.layout == "wide"
    assert read.n_learners == 29


@pytest.mark.parametrize(
    ("column", "row", "value", "words"),
    [
        ("correct", 222, "perhaps", "column 'correct' holds something other than 0 and 1 on line 224"),
        ("item", 111, "", "column 'item' has no value on line 113"),
        ("item", 300, "a,b", "line 302 has 5 fields where the first line has 4"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, everything_is_large, column, row, value, words):
    table = answers().with_columns(pl.col("correct").fill_null("1"))
    table = table.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(column).alias(column)
    )
    path = tmp_path / "exam.csv"
    path.write_text(table.write_csv(quote_style="never"))
    everything_is_large()
    with pytest.raises(DataError, match=words):
        read_responses(path)


def test_what_is_wrong_in_a_sheet_is_named_with_its_line(tmp_path, everything_is_large):
    path = tmp_path / "sheet.csv"
    lines = sheet().write_csv().split("\n")
    lines[20:20] = ["", ""]
    lines[25] = lines[24]
    path.write_text("\n".join(lines))
    everything_is_large()
    with pytest.raises(DataError, match=r"names a learner for a second time on line 26 \(1 such row\)"):
        read_responses(path)


def test_files_without_an_answer_are_refused_as_a_whole(tmp_path, everything_is_large):
    path = write_as(tmp_path / "exam.csv", answers().with_columns(correct=pl.lit("")))
    with pytest.raises(DataError) as whole:
        read_responses(path)
    everything_is_large()
    with pytest.raises(DataError) as pieces:
        read_responses(path)
    assert str(whole.value) == str(pieces.value)


def test_the_export_of_a_quiz_is_read_whole(tmp_path, everything_is_large):
    path = tmp_path / "quiz.csv"
    header = "Surname,First name,Email address,State,Started on,Completed,Time taken,Grade/10.00,Q. 1 /5.00,Q. 2 /5.00"
    rows = [f"S{n},F{n},s{n}@x.example,Finished,a,b,c,7.00,5.00,2.00" for n in range(200)]
    path.write_text("\n".join([header, *rows]))
    whole = read_responses(path)
    everything_is_large()
    read = read_responses(path)
    np.testing.assert_array_equal(whole.correct, read.correct)
    assert whole.origin.notes == read.origin.notes
