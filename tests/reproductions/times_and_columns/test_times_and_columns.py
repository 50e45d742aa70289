"""The page of times and columns says what its tables hold; a small version of what it measures."""

from dataclasses import replace

import numpy as np
import pytest

from reproductions.pages import DATA
from reproductions.times_and_columns.logs import COLUMNS, classroom, plain
from reproductions.times_and_columns.measure import MEASURED, PRIVATE, WITH, WITHOUT, drawn
from reproductions.times_and_columns.page import LIMITS, MOST_COST, MOST_FOUND, differences, measured
from understudy.logs.audit import audit
from understudy.logs.generators.baselines import Drop

pytestmark = pytest.mark.functional


def test_what_was_asked_for_holds_in_the_measured_tables():
    for _, _, told, untold, ceiling in differences():
        assert told <= untold + MOST_FOUND
        assert told < ceiling
    for method in PRIVATE:
        for name, limit in LIMITS.items():
            assert measured(method, WITH, name) <= limit
        for name in ("action_tv", "transition_tv"):
            assert measured(method, WITH, name) <= MOST_COST * measured(method, WITHOUT, name)


def test_the_classroom_has_four_columns_and_can_be_told_without():
    log = classroom(40)
    assert tuple(column.declared.name for column in log.columns) == COLUMNS
    assert log.has_times
    assert not plain(log).has_times
    assert not plain(log).columns
    assert DATA.name == "data"


def test_a_small_version_of_what_is_measured():
    """Synthetic times and columns are drawn and measured; leaving out half of the rows is found."""
    log = classroom(120)
    rows = [dict(zip(("method", "told", "draw", *MEASURED), row, strict=True)) for row in drawn(log, 1)]
    assert len(rows) == 2 * len(PRIVATE)
    for row in rows:
        assert (row["gap_ks"] != "") == (row["column_tv"] != "") == (row["told"] == WITH)
    members, outsiders = log.select(np.arange(60)), log.select(np.arange(60, 120))
    half = Drop(0.5).fit(members).sample(rng=np.random.default_rng(1))
    assert audit(members, outsiders, half).worst.auc > 0.95
    assert audit(members, outsiders, replace(half, columns=())).worst.auc > 0.95
