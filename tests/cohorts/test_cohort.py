"""Cohorts and their schema: declared, checked, written and read again."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fuzz import Reader, contents, pieces, quick
from understudy.cohorts.cohort import Cohort, read_cohort
from understudy.cohorts.schema import Feature, Schema
from understudy.core.files.origin import Origin
from understudy.core.files.simulated import mark_simulated
from understudy.errors import DataError, UnderstudyError, UsageError

SMALL = Schema(
    features=(Feature("day", 100.0, hours=(6, 18)), Feature("night", 50.0)), n_weeks=3, cuts=(40.0, 60.0)
)


def cohort(n=5, schema=SMALL, **options):
    rng = np.random.default_rng(1)
    values = rng.gamma(0.5, 60.0, size=(n, schema.n_features, schema.n_weeks))
    return Cohort(values, rng.integers(0, schema.n_labels, n).astype(np.int8), schema, **options)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
hours = st.none() | st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda pair: pair[0] != pair[1])
numbers = st.floats(1e-3, 1e6)


@st.composite
def schemas(draw):
    names = draw(st.lists(texts.filter(str.strip), min_size=1, max_size=4, unique=True))
    features = tuple(Feature(name, draw(numbers), draw(texts), draw(hours)) for name in names)
    labels = tuple(draw(st.lists(texts, min_size=2, max_size=4, unique=True)))
    cuts = draw(
        st.none()
        | st.lists(st.floats(0, 100), min_size=len(labels) - 1, max_size=len(labels) - 1, unique=True)
    )
    source = "declared" if cuts is None else draw(st.sampled_from(["declared", "private", "data"]))
    return Schema(
        features,
        draw(st.integers(2, 520)),
        "the label",
        labels,
        None if cuts is None else tuple(sorted(cuts)),
        title=draw(texts),
        context=draw(texts),
        cuts_source=source,
        cuts_epsilon=draw(st.none() | st.floats(1e-3, 100)) if source == "private" else None,
        without_score=draw(st.sampled_from(["kept", "dropped"])),
        data_set=draw(st.sampled_from(["", "0123456789abcdef"])),
    )


@settings(deadline=None, derandomize=True)
@given(schema=schemas())
def test_a_schema_is_read_as_it_was_written(schema):
    written = schema.to_toml()
    read = Schema.from_dict(tomllib.loads(written))
    assert read == schema
    # The name of the learners stays in the file: it leaves with nothing, and makes no other declaration.
    assert read.data_set == schema.data_set
    assert "data_set" not in schema.to_dict()
    assert written.startswith("# NOT PRIVATE") == (schema.cuts_source == "data")


@pytest.mark.parametrize(
    "content",
    [
        {"weks": 3},
        {"weeks": 1},
        {"weeks": 100_000},
        {"weeks": "many"},
        {"labels": "abc"},
        {"labels": ["a"]},
        {"labels": ["a", "a"]},
        {"cuts": [50]},
        {"cuts": [60, 40]},
        {"cuts": [40, float("nan")]},
        {"cuts": [40, 101]},
        {"cuts": "45"},
        {"cuts_source": "guessed", "cuts": [40, 60]},
        {"cuts_source": "private"},
        {"cuts_epsilon": 1.0},
        {"cuts_epsilon": 1.0, "cuts": [40, 60]},
        {"cuts_epsilon": 0, "cuts": [40, 60], "cuts_source": "private"},
        {"cuts_epsilon": "1", "cuts": [40, 60], "cuts_source": "private"},
        {"without_score": "lost"},
        {"data_set": "class of Mrs Planted"},
        {"score_bounds": [100, 0]},
        {"score_bounds": [0]},
        {"score_bounds": [0, float("inf")]},
        {"label": "learner"},
        {"label": "morning_01"},
        {"label": " "},
        {"feature": [{"name": "a"}]},
        {"feature": [{"name": "a", "high": 0}]},
        {"feature": [{"name": "a", "high": float("nan")}]},
        {"feature": [{"name": " ", "high": 1}]},
        {"feature": [{"name": "a", "high": 1}, {"name": "a", "high": 2}]},
        {"feature": [{"name": "a", "high": 1, "hours": [5, 25]}]},
        {"feature": [{"name": "a", "high": 1, "hours": [5, 5]}]},
        {"feature": [{"name": "a", "high": 1, "hours": [5.5, 7]}]},
        {"feature": [{"name": "a", "high": 1, "hours": [5]}]},
        {"feature": [{"name": "a", "high": 1, "low": 2}]},
        {"feature": 3},
    ],
)
def test_a_wrong_declaration_is_an_error_with_a_hint(content):
    with pytest.raises(DataError) as caught:
        Schema.from_dict(content)
    assert caught.value.hint


def test_files_that_are_no_schema(tmp_path):
    with pytest.raises(UsageError):
        Schema.read(tmp_path / "none.toml")
    (tmp_path / "a.toml").write_bytes(b"weeks = \xff")
    (tmp_path / "b.toml").write_text("weeks = = 3")
    for name, said in (
        ("a.toml", "not text in UTF-8"),
        ("b.toml", "line 1, column 9, in `weeks`, is not TOML"),
    ):
        with pytest.raises(DataError, match=said):
            Schema.read(tmp_path / name)


def test_scores_from_a_cut_on_are_in_the_next_bin():
    assert SMALL.bin([-5, 0, 39.99, 40, 59.99, 60, 1000]).tolist() == [0, 0, 0, 1, 1, 2, 2]
    with pytest.raises(DataError):
        Schema().bin([1])


def test_values_are_cut_to_the_bounds_and_cannot_be_changed():
    made = cohort(50)
    assert (made.values <= SMALL.highs[None, :, None]).all()
    assert (made.values == 50).any()
    with pytest.raises(ValueError, match="read-only"):
        made.values[0, 0, 0] = 1


@pytest.mark.parametrize("bad", [np.nan, -1.0, np.inf])
def test_what_is_no_amount_is_refused(bad):
    values = np.zeros((2, 2, 3))
    values[1, 1, 1] = bad
    with pytest.raises(DataError):
        Cohort(values, np.zeros(2, dtype=np.int8), SMALL)


def test_shapes_and_labels_are_checked():
    with pytest.raises(DataError):
        Cohort(np.zeros((2, 2, 4)), np.zeros(2, dtype=np.int8), SMALL)
    for label in (-1, 3):
        with pytest.raises(DataError):
            Cohort(np.zeros((1, 2, 3)), np.array([label], dtype=np.int8), SMALL)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".PARQUET"])
@pytest.mark.parametrize("simulated", [True, False])
def test_a_cohort_is_read_as_it_was_written(tmp_path, suffix, simulated):
    made = cohort(12, simulated=simulated)
    path = tmp_path / f"c{suffix}"
    frame = made.to_polars()
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    if simulated:
        mark_simulated(path)
    (tmp_path / "c.toml").write_text(SMALL.to_toml())
    read = read_cohort(path)
    np.testing.assert_allclose(read.values, made.values, atol=0.005)
    assert read.label.tolist() == made.label.tolist()
    assert (read.schema, read.simulated) == (SMALL, simulated)


def test_frames_of_pandas_and_columns_in_any_order():
    made = cohort(4)
    frame = made.to_polars().select(sorted(made.to_polars().columns)).with_columns(extra=pl.lit("x"))
    for one in (frame, frame.to_pandas()):
        np.testing.assert_allclose(Cohort.from_frame(one, SMALL).values, made.values, atol=0.005)


def test_a_joined_cohort_knows_all_its_learners_and_the_worst_of_its_schemas(tmp_path):
    def part(name, **changes):
        schema = replace(SMALL, cuts=(40.0, 60.0), data_set=name * 16, **changes)
        return replace(cohort(3, schema), origin=Origin(tmp_path / f"{name}.csv"))

    whole = Cohort.joined([part("a"), part("b"), part("a")])
    assert whole.data_sets == ("a" * 16, "b" * 16)
    assert whole.files == (tmp_path / "a.csv", tmp_path / "b.csv")
    again = Cohort.joined([whole, part("c")])
    assert again.data_sets == ("a" * 16, "b" * 16, "c" * 16)
    assert len(again.files) == 3
    private = part("b", cuts_source="private", cuts_epsilon=0.5)
    assert Cohort.joined([part("a"), private]).schema.cuts_epsilon == 0.5
    data = part("c", cuts_source="data", without_events="dropped")
    worst = Cohort.joined([part("a"), private, data]).schema
    assert (worst.cuts_source, worst.cuts_epsilon, worst.without_events) == ("data", None, "dropped")
    other = replace(part("a"), schema=replace(part("a").schema, cuts=(30.0, 60.0)))
    with pytest.raises(DataError, match="different schemas"):
        Cohort.joined([part("a"), other])


def test_select_and_join():
    made = cohort(9)
    parts = [made.of_label(label) for label in range(3)]
    joined = Cohort.joined(parts)
    assert joined.n_learners == 9
    assert sorted(joined.values.sum(axis=(1, 2))) == pytest.approx(sorted(made.values.sum(axis=(1, 2))))
    assert made.select([2, 0]).label.tolist() == made.label[[2, 0]].tolist()
    with pytest.raises(DataError):
        Cohort.joined([made, cohort(2, Schema(n_weeks=4))])
    with pytest.raises(DataError):
        Cohort.joined([])


CANARY = "Zq7canary"


@pytest.mark.parametrize(
    "spoil",
    [
        {"achievement": pl.lit(CANARY)},
        {"day_01": pl.lit(CANARY)},
        {"day_01": pl.lit(None)},
        {"day_01": pl.lit(-1.0)},
        {"day_01": pl.lit(float("nan"))},
    ],
)
def test_errors_hold_no_value(tmp_path, spoil):
    frame = cohort(3).to_polars(CANARY).with_columns(**spoil)
    frame.write_csv(tmp_path / "c.csv")
    (tmp_path / "c.toml").write_text(SMALL.to_toml())
    with pytest.raises(DataError) as caught:
        read_cohort(tmp_path / "c.csv")
    assert CANARY not in f"{caught.value.message} {caught.value.hint}"
    assert CANARY not in repr(cohort(3))


@quick(60)
@given(content=contents(pieces(b"learner day_01")))
@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_any_bytes_end_in_an_error_of_ours(tmp_path, name, content):
    (tmp_path / "c.toml").write_text(SMALL.to_toml())
    result = Reader(read_cohort, lambda cohort: ()).outcome(tmp_path / name, content)
    assert isinstance(result, UnderstudyError)


def test_missing_columns_and_files(tmp_path):
    with pytest.raises(UsageError):
        read_cohort(tmp_path / "none.csv")
    with pytest.raises(DataError, match="day_02"):
        Cohort.from_frame(cohort(3).to_polars().drop("day_02"), SMALL)


DECLARED = '''title = "A school"
context = """
weeks = 99 is what somebody wrote here
"""
weeks = 3
cuts = [40, 60]

[[feature]]
name = "morning"
high = 600
hours = [5, 12]

[[feature]]
name = "evening"
high = 600
'''


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weeks = 3", "weeks = 'three'", "line 5: `weeks` is not a whole number"),
        ("weeks = 3", "weeks = 3.5", "line 5: `weeks` is not a whole number"),
        ("weeks = 3", "weeks = 1", "line 5: a series of 1 weeks"),
        ("[40, 60]", "[60, 40]", "line 6: the cuts must rise, from low to high; got 60, 40"),
        ("[40, 60]", "[40]", "line 6: 3 labels need 2 cuts between them; got 1"),
        ("[40, 60]", "'40 60'", "line 6: `cuts` is not a list of numbers"),
        ("weeks = 3", "week = 3", "line 5: unknown key 'week'"),
        ("[5, 12]", "[5]", "line 11: `hours` is not a list of two whole numbers"),
        ("[5, 12]", "[5, 25]", "line 11: feature 'morning' has the hours 5 to 25"),
        ('name = "evening"\n', "", "line 13: `name` is missing"),
        ('name = "evening"', 'name = "morning"', "line 8: a cohort needs features with different names"),
        ('name = "evening"\nhigh = 600', 'name = "evening"\nhigh = true', "line 15: `high` is not a number"),
        ("cuts = [40, 60]", "cuts = [40, 60", "line 8, column 1, is not TOML|line 8, column . is not TOML"),
    ],
)
def test_what_is_wrong_in_a_declaration_is_named_with_its_line(tmp_path, old, new, said):
    assert old in DECLARED
    (tmp_path / "cohort.toml").write_text(DECLARED.replace(old, new, 1))
    with pytest.raises(DataError, match=said) as caught:
        Schema.read(tmp_path / "cohort.toml")
    assert caught.value.message.startswith("cohort.toml, line ")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("summary.json", b'{\n  "format": "understudy cohort summary",', "a private summary"),
        ("suggestions.json", b'{"format": "understudy cohort suggestions"}', "suggestions"),
        ("c.toml", b"weeks = 3", "the declaration of a cohort"),
        ("c.xlsx", b"PK\x03\x04", "a workbook"),
        ("c.json", b"[]", "JSON"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} is {kind}.*, not the table of a cohort") as caught:
        read_cohort(tmp_path / name)
    assert "cohort build" in caught.value.hint
    assert "summarize" not in caught.value.hint
    if kind != "the declaration of a cohort":
        with pytest.raises(DataError, match=f"{name} is {kind}.*, not the declaration"):
            Schema.read(tmp_path / name)


def test_a_table_without_its_declaration(tmp_path):
    cohort(3).to_polars().write_csv(tmp_path / "c.csv")
    with pytest.raises(UsageError, match=r"no declaration c\.toml beside c\.csv"):
        read_cohort(tmp_path / "c.csv")
