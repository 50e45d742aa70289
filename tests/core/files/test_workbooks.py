"""Tables in workbooks: named, or found below a title and above notes, which is a guess."""

import pytest

from tests.support.workbook import workbook
from understudy.core.files.source import Source
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError, UsageError

TABLE = [["learner", "action", "outcome"], ["a", "x", 1], ["a", "y", 0], ["b", "x", 1]]


def read(rows, place=None, **options):
    return read_workbook(Source("log.xlsx", workbook(rows)), place, **options)


def places(table):
    return [guess.declare["sheet"] for guess in table.guesses]


def test_a_table_that_fills_the_first_sheet_is_no_guess():
    table = read(TABLE)
    assert table.names == ("learner", "action", "outcome")
    assert table.rows.to_list() == [2, 3, 4]
    assert (table.guesses, table.notes) == ((), ())


@pytest.mark.parametrize(
    ("above", "place"), [([["Results"]], "1!2:5"), ([["Results"], [], ["Course", "Maths"]], "1!4:7")]
)
def test_titles_are_passed_over(above, place):
    table = read([*above, *TABLE])
    assert table.names == ("learner", "action", "outcome")
    assert table.frame.rows() == read(TABLE).frame.rows()
    assert places(table) == [place]
    named = read([*above, *TABLE], place)
    assert (named.frame.rows(), named.guesses) == (table.frame.rows(), ())
    assert named.rows.to_list() == table.rows.to_list()


@pytest.mark.parametrize(
    ("above", "below", "place"),
    [
        ([], [[], ["* absent"], ["Source: us"]], "1!1:4"),
        ([[], ["Results"]], [[], [], ["* absent"]], "1!3:6"),
    ],
)
def test_where_a_table_ends_is_a_guess_even_if_rows_are_named(above, below, place):
    """One more row of a learner would push the last learner's row below the row that was named."""
    for named in (None, place):
        table = read([*above, *TABLE, *below], named)
        assert table.frame.rows() == read(TABLE).frame.rows()
        (guess,) = table.guesses
        assert (guess.what, dict(guess.declare)) == ("where the workbook's table ends", {})


def test_blank_rows_within_a_table_and_a_learner_with_a_name_only():
    """A learner who answered nothing is no note: notes follow a blank row."""
    table = read([*TABLE, [], ["c", "x", 0], ["d", None, None]])
    assert table.rows.to_list() == [2, 3, 4, 6, 7]
    assert not table.guesses


def test_sheets_by_name_and_number():
    import io

    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        book.add_worksheet("Cover").write(0, 0, "for the board")
        sheet = book.add_worksheet("Spring 24")
        for number, row in enumerate(TABLE):
            sheet.write_row(number, 0, row)
    source = Source("log.xlsx", buffer.getvalue())
    assert places(read_workbook(source)) == ["2!1:4"]
    for place in ("Spring 24", "spring 24 ", "2", "2!1:4", "Spring 24!1:4"):
        assert read_workbook(source, place).names == ("learner", "action", "outcome")
        assert not read_workbook(source, place).guesses
    with pytest.raises(DataError, match="sheet 1 has no table"):
        read_workbook(source, look=False)
    for place, message in (("3", "no sheet '3'"), ("Autumn", "no sheet 'Autumn'"), ("2!4:1", "from 4 to 1")):
        with pytest.raises(UsageError, match=message):
            read_workbook(source, place)
    with pytest.raises(DataError, match="no table on these rows"):
        read_workbook(source, "2!3:90")


def test_nothing_but_a_header():
    with pytest.raises(DataError, match="there is a header but no row"):
        read(TABLE[:1])
