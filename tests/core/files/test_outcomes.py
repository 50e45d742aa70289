"""Outcomes as people write them: each cell by a fixed rule, numbers by a declared mark."""

import polars as pl
import pytest

from understudy.core.files.outcomes import PassMark, is_missing, read_outcomes, seem_low_grades
from understudy.errors import UsageError


def outcomes(*cells, mark=None):
    return read_outcomes(pl.Series(cells, dtype=pl.String), PassMark.of(mark)).to_list()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("1", "0"),
        ("1.0", "0.0"),
        ("1,0", "0,0"),
        ("TRUE", "False"),
        ("WAHR", "FALSCH"),
        ("Vrai", "Faux"),
        ("yes", "NO"),
        ("ja", "nein"),
        ("oui", "non"),
        ("sí", "no"),
        ("Y", "n"),
        ("T", "F"),
        ("richtig", "falsch"),
        ("correct", "incorrect"),
        ("right", "wrong"),
        ("bestanden", "failed"),
        ("100 %", "0%"),
        (" 1\u00a0", "\u202f0"),
    ],
)
def test_two_words(right, wrong):
    assert outcomes(right, wrong) == [1, 0]
    assert outcomes(right.upper(), wrong.lower()) == [1, 0]


def test_numbers_need_a_mark():
    assert outcomes("80 %", "7", "0.5", "-1") == [None] * 4
    assert outcomes("80 %", "49,9 %", "50%", "50", "49.99", mark=50) == [1, 0, 1, 1, 0]
    # Up to 1 it is a share, for percentages too.
    assert outcomes("80 %", "49,9 %", "0,5", "0.49", mark=0.5) == [1, 0, 1, 0]
    assert outcomes("yes", "no", mark=50) == [1, 0]
    # A mark that binary numbers miss by a little.
    assert outcomes("0.3", mark=0.1 + 0.2) == [1]


def test_low_is_good():
    """German grades: 1 is the best, and 4 is a pass."""
    grades = ("1", "1,3", "4", "4.0", "4,3", "5", "6", "yes", "no")
    for mark in ("<=4", " <= 4,0 ", "≤4", "<=4.0"):
        assert outcomes(*grades, mark=mark) == [1, 1, 1, 1, 0, 0, 0, 1, 0]
    # Where 6 is the best, as in Switzerland.
    for mark in (4, "4", ">=4", "≥ 4,0"):
        assert outcomes(*grades, mark=mark) == [0, 0, 1, 1, 1, 1, 1, 1, 0]
    # Errors in percent, and a mark that binary numbers miss by a little.
    assert outcomes("20 %", "20,1 %", "0", mark="<=0.2") == [1, 0, 1]
    assert outcomes(str(0.1 + 0.2), mark="<=0.3") == [1]


@pytest.mark.parametrize("mark", ["", "<4", "<=", "4 or less", "<=nan", "inf", True, "<=<=4", "50 %"])
def test_what_is_no_mark(mark):
    with pytest.raises(UsageError) as caught:
        PassMark.of(mark)
    assert (caught.value.code, caught.value.settings) == ("not-a-pass-mark", ("pass_from",))


@pytest.mark.parametrize(
    ("name", "cells", "low"),
    [
        ("Note", ["1", "2,7", "", "6"], True),
        ("final grade", ["1", "6.0", None], True),
        ("Note", ["1", "7"], False),
        ("Note", ["0", "5"], False),
        ("points", ["1", "5"], False),
        ("Note", ["2", "good"], False),
        (None, ["2", "5"], True),
    ],
)
def test_what_seem_to_be_grades(name, cells, low):
    assert seem_low_grades(pl.Series(cells, dtype=pl.String), name) == low


def test_what_is_neither():
    assert outcomes("", None, "maybe", "nan", "inf", "101 %", "-3 %", "%", "1/2", "W", mark=50) == [None] * 10
    missing = is_missing(pl.Series(["", None, " - ", "N/A", "0", "no"]))
    assert missing.to_list() == [True, True, True, True, False, False]


def test_no_cell_decides_for_another():
    cells = ["1", "0", "80 %", "7", "yes", "maybe", "", "0,5"]
    for mark in (None, 0.5, 50, "<=4"):
        assert outcomes(*cells, mark=mark) == [outcomes(cell, mark=mark)[0] for cell in cells]


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([" 1", None, "ja", "x", "50 %", "", None, "NaN", "ja", "0"]),
        pl.Series([1.0, None, 0.0, float("nan"), 0.5, 1.0]),
        pl.Series([True, False, None, True]),
        pl.Series(["1", "0", "x"], dtype=pl.Categorical),
        pl.Series([None, None]),
        pl.Series([], dtype=pl.String),
    ],
)
def test_a_column_is_read_as_its_cells_one_by_one(cells):
    """Each different text is read once: repeated, missing and no cells make no difference."""
    read = [read_outcomes(cells.slice(k, 1)).item() for k in range(len(cells))]
    missing = [is_missing(cells.slice(k, 1)).item() for k in range(len(cells))]
    assert read_outcomes(cells).to_list() == read
    assert is_missing(cells).to_list() == missing
    assert (read_outcomes(cells).dtype, is_missing(cells).dtype) == (pl.Int8, pl.Boolean)
