"""What the statistics say, against sums written out learner by learner."""

import math

import numpy as np
import pytest

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import ANALYSES, propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.statistics import MEASURES
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError, UsageError

SCHEMA = Schema(
    features=(Feature("early", 600.0), Feature("late", 60.0)), n_weeks=4, labels=("low", "middle", "high")
)
VALUES = np.array(
    [
        [[0.0, 10.0, 30.0, 0.0], [0.0, 0.0, 0.0, 5.0]],
        [[5.0, 0.0, 0.0, 8.0], [2.0, 3.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]],
    ]
)
COHORT = Cohort(VALUES, np.array([0, 2, 0], dtype=np.int8), SCHEMA)


def total(name, cohort=COHORT):
    measure = MEASURES[name](SCHEMA, {})
    return measure.lattice(cohort) * measure.step


def cut(rows, norm):
    """Each learner's vector scaled down to the norm."""
    flat = rows.reshape(len(rows), -1)
    factor = [min(1.0, norm / max(math.sqrt(sum(x * x for x in row)), 1e-9)) for row in flat]
    return rows * np.array(factor).reshape(-1, *[1] * (rows.ndim - 1))


def l_of(x, high):
    return math.log(1 + x) / math.log(1 + high)


def test_labels_and_zeros():
    assert total("labels") == pytest.approx([2, 0, 1], abs=1e-4)
    expected = [[2 / 4 + 4 / 4, 3 / 4 + 2 / 4], [0, 0], [2 / 4, 2 / 4]]
    assert total("zeros") == pytest.approx(np.array(expected), abs=1e-4)


def test_levels():
    for f, high in enumerate((600.0, 60.0)):
        active = sum((row[f] > 0).mean() - 0.5 for row in VALUES)
        size = sum(sum(l_of(x, high) for x in row[f]) / 4 - 0.3 for row in VALUES)
        assert total("levels")[f] == pytest.approx([active, size], abs=1e-4)


def test_sizes_by_label():
    first = [l_of(x, 600.0) for row in VALUES[[0, 2]] for x in row[0]]
    assert total("minutes_by_label")[0, 0] == pytest.approx(
        [sum(first) / 4, sum(x * x for x in first) / 4], abs=1e-4
    )


def test_the_sketch_puts_every_positive_week_into_one_bin():
    measure = MEASURES["sketch"](SCHEMA, {})
    edges = measure.context["edges_l"]
    rows = np.zeros((3, 2, 11))
    for i, learner in enumerate(VALUES):
        for f, high in enumerate((600.0, 60.0)):
            for size in (l_of(x, high) for x in learner[f] if x > 0):
                rows[i, f, next(b for b in range(11) if edges[b] < size <= edges[b + 1])] += 1 / 4
    assert total("sketch") == pytest.approx(cut(rows, measure.norm).sum(axis=0), abs=1e-4)


def test_the_bound_itself_is_in_the_last_bin_and_nothing_is_in_none():
    full = Cohort(np.full((1, 2, 4), 1e9), np.array([0], dtype=np.int8), SCHEMA)
    assert (total("sketch", full)[:, :-1] == 0).all()
    assert (total("sketch", full)[:, -1] > 0).all()
    empty = Cohort(np.zeros((1, 2, 4)), np.array([0], dtype=np.int8), SCHEMA)
    assert (total("sketch", empty) == 0).all()


def test_rhythm_is_free_of_how_active_somebody_is():
    week = (VALUES > 0).mean(axis=1)
    own = cut(week - week.mean(axis=1, keepdims=True), 0.25 * 2)
    assert total("rhythm") == pytest.approx(own.sum(axis=0), abs=1e-4)
    assert total("rhythm").sum() == pytest.approx(0, abs=1e-4)
    whole = cut((VALUES > 0).astype(float), 0.7 * math.sqrt(8))
    assert total("rhythm_by_feature") == pytest.approx(whole.sum(axis=0), abs=1e-4)


def test_persistence_and_spread():
    expected = 0.0
    for row in VALUES:
        a = [float(x > 0) for x in row[0]]
        off = [x - sum(a) / 4 for x in a]
        expected += 4 * sum(off[t] * off[t + 1] for t in range(3)) / 3
    assert total("persistence")[0, 0] == pytest.approx(expected, abs=1e-4)
    positive = [[l_of(x, 600.0) for x in row[0] if x > 0] for row in VALUES]
    spread = sum(16 * sum((x - np.mean(row)) ** 2 for x in row) / 4 for row in positive if row)
    assert total("spread")[0] == pytest.approx(spread, abs=1e-4)


def test_habits_are_products_of_what_the_context_says():
    measure = MEASURES["habits"](SCHEMA, {})
    context = measure.context
    rows = []
    for row, code in zip(VALUES, (-1.0, 1.0, -1.0), strict=True):
        habits = [
            ((row[f] > 0).mean() - context["centre_active"][f]) / context["scale_active"][f] for f in (0, 1)
        ]
        for f, high in enumerate((600.0, 60.0)):
            sizes = [l_of(x, high) - context["centre_l"][f] for x in row[f] if x > 0]
            habits.append(sum(sizes) / (len(sizes) + 2) / context["scale_l"][f])
        norm = math.sqrt(sum(z * z for z in habits))
        cut = min(1.0, math.sqrt(context["squared_norm_of_habits"]) / norm)
        rows.append([1.2, *(z * cut for z in habits), 1.8 * code])
    expected = np.array(rows).T @ np.array(rows)
    assert total("habits") == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", MEASURES)
def test_parts_of_a_cohort_add_up(name):
    measure = MEASURES[name](SCHEMA, {})
    parts = [measure.lattice(COHORT.select([place])) for place in range(3)]
    assert (sum(parts) == measure.lattice(COHORT)).all()
    # And the order of the learners says nothing.
    assert (measure.lattice(COHORT.select([2, 0, 1])) == measure.lattice(COHORT)).all()


def test_the_split_follows_the_analyses():
    every = propose(SCHEMA, 120, 3.0, 1e-3)
    assert sum(every.shares.values()) == pytest.approx(1)
    assert every.analyses == tuple(ANALYSES)
    one = propose(SCHEMA, 120, 3.0, 1e-3, analyses=["weekly rhythm"])
    assert set(one.shares) == {"rhythm", "levels"}
    assert one.shares["rhythm"] > every.shares["rhythm"]
    added = propose(SCHEMA, 120, 3.0, 1e-3, analyses=["weekly rhythm"], statistics=["zeros"])
    assert set(added.shares) == {"rhythm", "levels", "zeros"}
    seeds = propose(SCHEMA, 120, 3.0, 1e-3, statistics=["zeros"])
    assert seeds.shares == {"zeros": 1.0}


def test_the_errors_are_known_beforehand():
    """Predicted and measured noise of 200 summaries agree within five standard errors (false alarm 6e-7)."""
    rng = np.random.default_rng(2)
    cohort = School(n_learners=40).simulate(0, rng)
    plan = propose(cohort.schema, 40, 3.0, 1e-3)
    noise = seeded_noise(rng)
    found = [noisy_summary(cohort, plan, noise) for _ in range(200)]
    for one in plan.predictions():
        if one.statistic == "habits":
            continue
        values = np.array([summary.statistics[one.statistic].values for summary in found])
        measured = math.sqrt(values.var(axis=0, ddof=1).mean())
        assert measured / one.noise_sd == pytest.approx(1, abs=5 / math.sqrt(2 * 199 * one.n_cells))
        assert one.error == pytest.approx(one.noise_sd / 40)


def test_more_budget_less_noise():
    noises = [
        [one.noise_sd for one in propose(SCHEMA, 120, epsilon, 1e-3).predictions()]
        for epsilon in (0.5, 1, 3, 10)
    ]
    assert (np.diff(np.array(noises), axis=0) < 0).all()


@pytest.mark.parametrize(
    ("epsilon", "delta", "more"),
    [
        (0.0, 1e-3, {}),
        (math.inf, 1e-3, {}),
        (3.0, 0.0, {}),
        (3.0, 1.0, {}),
        (3.0, 0.01, {}),
        (1e9, 1e-3, {}),
        (3.0, 1e-3, {"analyses": ["astrology"]}),
        (3.0, 1e-3, {"statistics": ["names"]}),
    ],
)
def test_what_is_not_possible_is_refused_before_anything_is_spent(epsilon, delta, more):
    with pytest.raises(UsageError):
        propose(SCHEMA, 120, epsilon, delta, **more)


def test_a_plan_for_others_is_refused():
    with pytest.raises(DataError):
        noisy_summary(COHORT, propose(SCHEMA, 4, 3.0, 1e-3), seeded_noise(np.random.default_rng(1)))


def test_cuts_that_the_data_chose_are_refused():
    schema = Schema(cuts=(40.0, 60.0), cuts_source="data")
    cohort = School(n_learners=10, schema=schema).simulate(0, np.random.default_rng(1))
    with pytest.raises(DataError, match="cuts"):
        noisy_summary(cohort, propose(schema, 10, 3.0, 1e-3), seeded_noise(np.random.default_rng(1)))
