"""Columns of declared cells: what is missing, and the same cells as another declaration has them."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.errors import DataError
from understudy.logs.column_codes import ColumnCodes
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.generators.found_columns import as_found
from understudy.logs.interactions import Interactions

GROUP = Declared("group", Kind.category, "learner", values=("a", "b", "c"))
HOME = Declared("home", Kind.flag, "learner")
SCORE = Declared("score", Kind.number, "learner", found=True)


def test_cells_without_a_value_are_missing():
    assert Column(GROUP, np.array([0, -1, 3])).missing.tolist() == [False, True, False]
    assert Column(SCORE, np.array([0.0, np.nan])).missing.tolist() == [False, True]


def test_names_that_another_declaration_lacks_become_other():
    column = Column(GROUP, np.array([0, 1, 2, 3, -1]))
    fewer = replace(GROUP, values=("c", "a"))
    assert column.recoded(fewer).cells.tolist() == [1, 2, 0, 2, -1]
    assert column.recoded(GROUP).cells.tolist() == column.cells.tolist()


def test_flags_and_numbers_stay_as_they_are_where_categories_were_found():
    log = Interactions.from_sequences([[0]] * 4, None)
    cells = ([0, 1, 2, -1], [0, 1, 1, -1], [1.0, 5.0, np.nan, 2.0])
    columns = tuple(map(Column, (GROUP, HOME, SCORE), map(np.array, cells)))
    found = (replace(GROUP, values=("b",)), HOME, replace(SCORE, low=0.0, high=8.0))
    again = as_found(replace(log, columns=columns), found)
    assert [column.declared for column in again.columns] == list(found)
    assert again.columns[0].cells.tolist() == [1, 0, 1, -1]
    assert again.columns[1].cells.tolist() == [0, 1, 1, -1]
    np.testing.assert_array_equal(again.columns[2].cells, cells[2])


def test_classes_of_a_number_that_never_varies_begin_with_it():
    classes = ColumnCodes(Column(SCORE, np.array([55.0, 55.0, np.nan])))
    assert classes.labels[0] == "55–55.1"
    assert classes.of(Column(SCORE, np.array([55.0, 54.0, 57.0, np.nan]))).tolist() == [0, 0, 9, 10]


def test_values_at_some_actions_are_those_of_rows():
    hint = Declared("hint", Kind.flag, "row", at=("quiz",))
    assert hint.has_values(("page", "quiz")).tolist() == [False, True]
    assert replace(hint, at=None).has_values(("page", "quiz")).all()
    with pytest.raises(DataError, match="'home' is declared with actions"):
        replace(HOME, at=("quiz",))
