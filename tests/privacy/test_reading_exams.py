"""Reading an exam is part of the guarantee: no learner's cells decide how those of other learners are read."""

import itertools
import random

import polars as pl
import pytest

from tests.privacy.support.attempts import FORMATS, attempts
from tests.privacy.support.neighbours import (
    N_LEARNERS,
    NASTY,
    NUMBERS,
    check_others,
    delimited,
    excel,
    latin,
    neighbours,
    parquet,
)
from understudy.errors import DataError
from understudy.exams.difficulties import DifficultiesOptions
from understudy.exams.formats.reading import read_responses
from understudy.exams.plan import plan_for

# A header with a column that is no item, one without a name, and items with and without points.
SHEET = ["student", "comment", "", "Q1", "Q2 (2 points)", "Q3", "Total"]
ITEMS = [str(number) for number in range(10, 15)]


@pytest.fixture(autouse=True)
def _without_search_for_people(monkeypatch):
    """A search that only ever refuses takes most of the time of reading a tiny file."""
    monkeypatch.setattr("understudy.core.events.event_table.identifiers_in_actions", lambda *names: [])
    monkeypatch.setattr("understudy.exams.formats.sheet.identifiers_in_actions", lambda *names: [])


def sheets():
    """The rows of a sheet, and of neighbours in which one learner's row has a nasty cell in columns of each kind."""
    rng = random.Random(3)

    def answers(number):
        right = [rng.randrange(2), rng.randrange(3), rng.randrange(2)]
        return [f"u{number}", "", "", *map(str, right), str(sum(right))]

    sheet = [answers(number) for number in range(N_LEARNERS)]
    yield sheet
    for number, cell in enumerate(NASTY):
        for columns in ((1, 2, 6), (3 + number % 3,)):
            place = rng.choice([0, 1, N_LEARNERS - 1])
            row = answers(place)
            for column in columns:
                row[column] = cell
            yield [*sheet[:place], row, *sheet[place + 1 :]]


def read(path, **options):
    """What a mechanism takes, once all that is refused before the charge is refused."""
    responses = read_responses(path, **options)
    plan_for(responses, DifficultiesOptions(epsilon=1.0))
    return [tuple(zip(responses.items, row, strict=True)) for row in responses.correct.tolist()]


WRITERS = {
    "csv": delimited(",", SHEET),
    "csv by semicolons": delimited(";", SHEET),
    "csv in latin": latin(SHEET),
    "tsv": delimited("\t", SHEET),
    "excel": excel(SHEET),
    "parquet": parquet([*SHEET[:2], "column 3", *SHEET[3:]]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_other_rows_of_a_sheet_are_read_alike(tmp_path, name):
    files = itertools.islice(sheets(), 0, None, 3 if name == "excel" else 1)  # workbooks take long to write
    check_others(tmp_path / "sheet", files, WRITERS[name], read)


@pytest.mark.parametrize(
    ("name", "attempts_counted", "set_aside"),
    [
        *(("csv", "first", False), ("csv", "first", True), ("csv", "last", True), ("csv", "best", True)),
        ("excel", "last", False),
    ],
)
def test_other_answers_of_a_list_are_read_alike(tmp_path, name, attempts_counted, set_aside):
    write, options = FORMATS[name]
    files = neighbours(attempts) if set_aside else neighbours(attempts, NUMBERS, n_files=15)
    check_others(
        tmp_path / "list",
        files,
        write,
        lambda path: read(path, items=ITEMS, attempts=attempts_counted, set_aside=set_aside, **options),
    )


@pytest.mark.parametrize("set_aside", [False, True])
def test_other_answers_of_a_large_list_are_read_alike(tmp_path, everything_is_large, set_aside):
    everything_is_large(partition_rows=20)
    test_other_answers_of_a_list_are_read_alike(tmp_path, "csv", "last", set_aside)


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_other_rows_of_a_large_sheet_are_read_alike(tmp_path, everything_is_large, name):
    everything_is_large(partition_rows=20)
    test_other_rows_of_a_sheet_are_read_alike(tmp_path, name)


@pytest.mark.parametrize("name", ["assistments", "datashop", "xapi", "slam", "three-line"])
def test_other_attempts_of_a_log_are_read_alike(tmp_path, name):
    write, options = FORMATS[name]
    read_log = lambda path: read(path, items=ITEMS, set_aside=True, **options)  # noqa: E731
    check_others(tmp_path / "log", neighbours(attempts), write, read_log)


def test_a_reader_that_breaks_the_rule_is_found(tmp_path, monkeypatch):
    """An answer is right here if no learner has more points, so that one learner's cell decides for all."""

    def by_the_best(values, item, pass_share, step):
        points = values.cast(pl.Float64, strict=False).fill_null(0.0)
        return pl.lit((points == points.max()).cast(pl.Int8)).alias(str(item.position))

    monkeypatch.setattr("understudy.exams.formats.sheet.code_of", by_the_best)
    with pytest.raises(AssertionError):
        test_other_rows_of_a_sheet_are_read_alike(tmp_path, "csv")


def test_what_one_learner_writes_into_a_listed_item_leaves_out_nobody_elses_answer(tmp_path):
    """Two learners answered Q2: a remark of one must not make the answer of the other disappear."""

    def sheet(first):
        rows = [f"s{n},{n % 2}," + ("" if n > 1 else first if n == 0 else "1") for n in range(30)]
        path = tmp_path / "exam.csv"
        path.write_text("\n".join(["student,Q1,Q2", *rows]) + "\n")
        return read_responses(path, items=["Q1", "Q2"])

    assert sheet("0").totals().answered.tolist() == [30, 2]
    with pytest.raises(DataError) as caught:
        sheet("left early")
    assert caught.value.code == "not-an-answer"
