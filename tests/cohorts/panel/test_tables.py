"""What a script gave back is judged by schema and bounds, and pooled label by label."""

import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.cohorts.panel.panel import counts_of, draw_cohort, label_shares, rows_needed
from understudy.cohorts.panel.scripts import ScriptFault, read_table
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.errors import UsageError

SCHEMA = Schema(features=(Feature("morning", 60.0), Feature("evening", 90.0)), n_weeks=3)


def stream(frame):
    sink = io.BytesIO()
    frame.write_ipc_stream(sink)
    return sink.getvalue()


def frame(n=20):
    values = np.random.default_rng(0).uniform(0, 60, (n, 6))
    return pl.DataFrame({name: values[:, place] for place, name in enumerate(SCHEMA.columns())})


def changed(name, value):
    return frame().with_columns(pl.Series(name, [value] + [1.0] * 19, strict=False))


def test_a_table_that_fits_is_taken_in_the_order_of_the_schema():
    table = frame()
    assert np.array_equal(read_table(stream(table), SCHEMA, 20), table.to_numpy())
    assert np.array_equal(
        read_table(stream(table.select(reversed(table.columns))), SCHEMA, 20), table.to_numpy()
    )
    more = table.with_columns(achievement=pl.lit("low"), learner=pl.lit(1))
    assert np.array_equal(read_table(stream(more), SCHEMA, 20), table.to_numpy())
    sink = io.BytesIO()
    table.write_ipc(sink)
    assert np.array_equal(read_table(sink.getvalue(), SCHEMA, 20), table.to_numpy())


def test_rounding_beyond_a_bound_is_cut():
    values = read_table(stream(changed("morning_01", 60.0 + 1e-9)), SCHEMA, 20)
    assert values[0, 0] == 60.0
    assert read_table(stream(changed("morning_01", -1e-12)), SCHEMA, 20)[0, 0] == 0.0


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "NoTable"),
        (b"ARROW1\0\0garbage", "NoTable"),
        (b"\xff" * 100, "NoTable"),
        (stream(frame().drop("morning_02")), "WrongColumns"),
        (stream(frame().with_columns(planted=pl.lit(1))), "WrongColumns"),
        (stream(frame(19)), "WrongNumberOfRows"),
        (stream(frame(0)), "WrongNumberOfRows"),
        (stream(changed("evening_03", float("nan"))), "NotANumber"),
        (stream(changed("evening_03", float("inf"))), "NotANumber"),
        (stream(changed("evening_03", None)), "NotANumber"),
        (stream(frame().with_columns(evening_03=pl.lit("planted"))), "NotANumber"),
        (stream(changed("evening_03", 90.1)), "OutOfBounds"),
        (stream(changed("morning_03", 60.1)), "OutOfBounds"),
        (stream(changed("evening_03", -0.1)), "OutOfBounds"),
        (stream(frame().select(pl.all().first()).select(pl.all().repeat_by(20).explode())), "Constant"),
    ],
)
def test_a_table_that_does_not_fit_is_named_by_kind(content, kind):
    assert read_table(content, SCHEMA, 20) == ScriptFault(kind)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_damaged_bytes_are_a_finding(content):
    assert isinstance(read_table(stream(frame())[: len(content)] + content, SCHEMA, 20), ScriptFault)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6).filter(lambda s: sum(s) > 0), st.integers(1, 500))
def test_counts_add_up_and_are_nearest(weights, n_learners):
    shares = np.array(weights) / sum(weights)
    counts = counts_of(shares, n_learners)
    assert sum(counts) == n_learners
    assert np.all(np.abs(np.array(counts) - shares * n_learners) < 1 + 1e-9)


def with_labels(summary, values, sd):
    content = summary.to_json()
    content["statistics"]["labels"] |= {"values": values, "noise_sd": sd}
    return PrivateSummary.from_json(content)


def test_shares_come_from_the_summary_and_noise_is_shrunk(summary):
    exact = label_shares(with_labels(summary, [10.0, 20.0, 30.0], 1e-6))
    assert exact == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    # A difference that the noise could have made is none; the sum is public and corrects the counts.
    assert label_shares(with_labels(summary, [18.0, 20.0, 22.0], 8.0)) == pytest.approx([1 / 3] * 3)
    assert label_shares(with_labels(summary, [14.0, 24.0, 34.0], 1e-6)) == pytest.approx(exact)
    assert label_shares(with_labels(summary, [-30.0, 40.0, 50.0], 1e-6))[0] == 0.0
    content = summary.to_json()
    del content["statistics"]["labels"]
    assert label_shares(PrivateSummary.from_json(content)) == pytest.approx([1 / 3] * 3)


def test_a_cohort_is_drawn_without_replacement_from_all_pools():
    # Row numbers as values say where each row came from.
    pools = [
        [np.full((30, 6), float(10 * panelist + label)) + np.arange(30)[:, None] / 100 for label in range(3)]
        for panelist in range(2)
    ]
    cohort = draw_cohort(pools, [10, 30, 5], SCHEMA, np.random.default_rng(1))
    first = cohort.values[:, 0, 0]
    assert len(set(first)) == 45
    assert [int((cohort.label == label).sum()) for label in range(3)] == [10, 30, 5]
    assert np.array_equal(np.floor(first).astype(int) % 10, cohort.label)
    assert {0, 10} <= set(np.floor(first[cohort.label == 0]))
    assert not np.array_equal(cohort.label, np.sort(cohort.label))


def test_panelists_give_as_many_as_are_drawn():
    """Whatever the noisy shares are, nobody who wants 1,000 of a label or fewer is sent away."""
    assert rows_needed([10, 10], 10) == 10
    assert rows_needed([11, 3], 10) == 11
    assert rows_needed([1000, 3], 10) == 1000
    assert rows_needed([5000, 3], 5000) == 5000
    # What the hint says is enough, also when the next noise makes other shares.
    with pytest.raises(UsageError, match="1,001 learners of one label") as caught:
        rows_needed([1001, 3], 10)
    assert "1,004 rows per panelist" in caught.value.hint
    assert caught.value.settings == ("per_panelist", "n_learners")
