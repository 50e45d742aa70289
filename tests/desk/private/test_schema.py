"""The public schema, and reading a table by it: each learner's cells by themselves."""

import warnings

import numpy as np
import polars as pl
import pytest

from tests.desk.support.private_tables import SCHEMA, table
from understudy.cohorts.simulate import School
from understudy.desk.domain.learners import read_table
from understudy.desk.private import Schema, propose, read_records
from understudy.desk.private.questions import Compare, Mean
from understudy.errors import DataError
from understudy.logs.declared.columns import Declared


def test_a_schema_comes_back_from_json_and_toml(tmp_path):
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA
    (tmp_path / "schema.toml").write_text(
        """complete = ["grade"]
[[columns]]
name = "grade"
of = "learner"
kind = "number"
low = 0
high = 100
""",
        encoding="utf-8",
    )
    found = Schema.read(tmp_path / "schema.toml")
    assert found == Schema((Declared("grade", "number", "learner", low=0, high=100),), ("grade",))


@pytest.mark.parametrize(
    "content",
    [
        {"columns": []},
        {"columns": [{"name": "a", "of": "row", "kind": "yes/no"}]},
        {"columns": [{"name": "a", "of": "learner", "kind": "yes/no"}] * 2},
        {"columns": [{"name": "a", "of": "learner", "kind": "yes/no"}], "complete": ["b"]},
        {"columns": [{"name": "a", "of": "learner", "kind": "number", "found": True}]},
        {"columns": [{"name": "a", "of": "learner", "kind": "number"}]},
    ],
)
def test_a_schema_that_bounds_nothing_is_refused(content):
    with pytest.raises(DataError):
        Schema.from_json(content)


def test_a_cohort_has_a_schema():
    cohort = School(n_learners=30).simulate(0, np.random.default_rng(1))
    schema = Schema.of_cohort(cohort.schema)
    rows = cohort.to_polars()
    records = read_records(rows, schema)
    name = cohort.schema.columns()[0]
    half = schema.number(name)[1] / 2
    assert np.allclose((records.numbers[name] + 1) * half, np.clip(rows[name], 0, 2 * half))
    assert (records.codes[cohort.schema.label] == cohort.label).all()
    propose([Mean(name, by=cohort.schema.label)], schema, 30, 1.0)


def test_numbers_are_cut_and_other_values_kept_apart():
    rows = pl.DataFrame(
        {
            "learner": list("abcde"),
            "minutes": [-5.0, 1e9, None, float("nan"), float("inf")],
            "grade": ["50", "no grade", "", "100", "25"],
            "school": ["north", "east", None, " SOUTH ", ""],
            "passed": ["yes", "no", "perhaps", None, "TRUE"],
            "hours": [0.0, None, 9.0, -9.0, 2.5],
        }
    )
    records = read_records(rows, SCHEMA)
    # A complete column has the middle of its bounds where a cell cannot be read.
    assert records.numbers["minutes"].tolist() == [-1.0, 1.0, 0.0, 0.0, 1.0]
    assert records.numbers["grade"].tolist() == [0.0, 0.0, 0.0, 1.0, -0.5]
    assert records.codes["school"].tolist() == [0, 3, -1, 1, -1]
    assert records.codes["passed"].tolist() == [1, 0, -1, -1, 1]
    np.testing.assert_array_equal(records.numbers["hours"], [0.0, np.nan, 1.0, -1.0, 0.5])


@pytest.mark.parametrize("last", [4, 4.5, "x", None, True])
def test_no_learner_decides_how_another_learners_category_is_read(last):
    schema = Schema((Declared("form", "category", "learner", values=("1", "2", "3.5")),))
    cells = [1, 2, 1, last]
    if isinstance(last, str):
        series = pl.Series("form", [str(cell) for cell in cells])
    elif isinstance(last, float):
        series = pl.Series("form", cells, dtype=pl.Float64, strict=False)
    else:
        series = pl.Series("form", cells, strict=False)
    assert read_records(series.to_frame(), schema, learner=None).codes["form"][:3].tolist() == [0, 1, 0]


@pytest.mark.parametrize("last", ["true", "", "5", "5.5", "x", " ", "inf", "9" * 30])
@pytest.mark.parametrize(
    ("kind", "first", "read"),
    [
        ("number", ["true", "FALSE"], [-0.8, -1.0]),
        ("number", ["007", "1e1"], [0.4, 1.0]),
        ("number", ["-inf", "9" * 25], [-1.0, 1.0]),
        ("yes/no", ["true", "False"], [1.0, -1.0]),
        ("yes/no", ["1", "0.0"], [1.0, -1.0]),
    ],
)
def test_no_learner_decides_how_another_learners_number_is_read(tmp_path, kind, first, read, last):
    """A csv file is read as the desk reads it: one cell gives the whole column another type."""
    path = tmp_path / "real.csv"
    path.write_text("\n".join(["learner,x", *(f"{n},{cell}" for n, cell in enumerate([*first, last]))]))
    bounds = {"low": 0.0, "high": 10.0} if kind == "number" else {}
    schema = Schema((Declared("x", kind, "learner", **bounds),))
    with warnings.catch_warnings():
        # A warning would say that there is a learner with a huge number.
        warnings.simplefilter("error")
        found = read_records(read_table(path), schema).numbers["x"]
    assert found[:2] == pytest.approx(read)


def test_a_table_with_several_rows_of_a_learner_is_refused():
    rows = table(10).with_columns(learner=pl.lit("a secret name"))
    with pytest.raises(DataError, match="10 rows and 1 learners") as caught:
        read_records(rows, SCHEMA)
    assert caught.value.code == "several-rows"
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="no column"):
        read_records(table(10).drop("grade"), SCHEMA)
    with pytest.raises(DataError, match="no column 'learner'"):
        read_records(table(10).drop("learner"), SCHEMA)


def test_all_groups_are_compared_unless_some_are_named():
    assert Compare("grade", "school", "anova").compared(SCHEMA) == ("north", "south", "west")
