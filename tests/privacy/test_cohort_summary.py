"""The private summary of a cohort: sensitivities by brute force, transcripts of neighbours, the guarantee.

See `support/transcripts.py` for what all draws together cost.
"""

import itertools
import math

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import School
from understudy.cohorts.summary import statistics
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.statistics import MEASURES, Measure
from understudy.core.privacy.composition import mu_to_delta
from understudy.core.privacy.noise import os_noise, seeded_noise

SCHEMAS = {
    "four windows": Schema(n_weeks=5),
    "one feature": Schema(features=(Feature("pages", 5.0),), n_weeks=2, labels=("no", "yes")),
    "uneven bounds": Schema(features=(Feature("a", 3.0), Feature("b", 1e4)), n_weeks=9, labels=tuple("abcd")),
}


def extreme_learners(schema, rng, n_random=25):
    """(values, label) of learners that are as far from each other as learners can be, and some random ones."""
    high = np.broadcast_to(schema.highs[:, None], (schema.n_features, schema.n_weeks))
    weeks = np.arange(schema.n_weeks)
    rows = [np.zeros(high.shape), high, high * 1e-9, high * (weeks % 2), high * ((weeks + 1) % 2)]
    rows += [high * (weeks == 0), high * (weeks == schema.n_weeks - 1), high * (weeks < schema.n_weeks / 2)]
    rows += [high * (np.arange(schema.n_features) == f)[:, None] for f in range(schema.n_features)]
    # A week just above nothing and a week at the bound: the largest deviations from a learner's own mean.
    rows += [np.where(weeks % 2, high, high * 1e-9), np.where(weeks < schema.n_weeks / 2, high, high * 1e-9)]
    for _ in range(n_random):
        active = rng.random(high.shape) < rng.random()
        rows.append(high * active * rng.random(high.shape) ** rng.uniform(0, 12))
    return [(row, label) for row in rows for label in range(schema.n_labels)]


def with_last(rest, learner):
    values, label = learner
    return Cohort(
        np.concatenate([rest.values, values[None]]),
        np.append(rest.label, np.int8(label)).astype(np.int8),
        rest.schema,
    )


def some_cohort(schema, rng, n=6):
    values = rng.random((n, schema.n_features, schema.n_weeks)) * schema.highs[None, :, None]
    return Cohort(values, rng.integers(0, schema.n_labels, n).astype(np.int8), schema)


def largest_move(measure, schema, rng):
    """The largest distance between sums of two cohorts that differ in one learner, in its own units."""
    rest = some_cohort(schema, rng)
    learners = extreme_learners(schema, rng)
    sums = np.array([measure.lattice(with_last(rest, one)).ravel() for one in learners]).astype(np.float64)
    squares = (sums**2).sum(axis=1)
    gaps = squares[:, None] + squares[None, :] - 2.0 * sums @ sums.T
    first, second = np.unravel_index(np.argmax(gaps), gaps.shape)
    return float(np.linalg.norm(sums[first] - sums[second])) * measure.step


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("name", MEASURES)
def test_no_neighbour_moves_a_statistic_by_more_than_its_sensitivity(name, schema):
    rng = np.random.default_rng(4)
    measure = MEASURES[name](SCHEMAS[schema], {})
    move = largest_move(measure, SCHEMAS[schema], rng)
    assert move <= measure.sensitivity
    # Nor is the bound far from what happens: a noise that is much too large would hide a mistake.
    assert move > 0.3 * measure.sensitivity


@pytest.mark.parametrize("name", ["labels", "zeros"])
def test_where_nobody_is_cut_the_bound_is_reached(name):
    schema = SCHEMAS["four windows"]
    measure = MEASURES[name](schema, {})
    assert largest_move(measure, schema, np.random.default_rng(1)) == pytest.approx(
        measure.sensitivity, rel=1e-5
    )


@pytest.mark.parametrize("name", MEASURES)
def test_the_bound_holds_for_any_vectors_not_only_for_those_of_learners(name):
    """The proof does not need to know what a learner can do: it rests on the cut alone."""
    schema = SCHEMAS["four windows"]
    rng = np.random.default_rng(8)
    measure = MEASURES[name](schema, {})
    n_cells = len(measure.names[0]) if measure.kind == "products" else measure.n_cells
    one = some_cohort(schema, rng, n=1)
    found = []
    for size in (1e-3, 1.0, 1e6):
        for _ in range(40):
            vector = rng.normal(size=(1, n_cells)) * size * (rng.random(n_cells) < rng.random())
            made = Measure(
                name,
                "",
                measure.axes,
                measure.names,
                measure.kind,
                measure.norm,
                lambda _, vector=vector: vector,
            )
            found.append(made.lattice(one).astype(np.float64).ravel() * made.step)
    worst = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(found, 2))
    assert 0.7 * measure.sensitivity < worst <= measure.sensitivity


PLANS = {
    "default": {},
    "one analysis": {"analyses": ["habits by time of day against outcome"]},
    "everything": {"statistics": list(MEASURES)},
    "the seed's": {"statistics": ["zeros"]},
}


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("plan", PLANS)
def test_all_draws_together_stay_within_the_claim(plan, schema):
    rng = np.random.default_rng(3)
    declared = SCHEMAS[schema]
    rest = some_cohort(declared, rng)
    settled = propose(declared, rest.n_learners + 1, 3.0, 1e-3, **PLANS[plan])
    cohorts = [with_last(rest, learner) for learner in extreme_learners(declared, rng, n_random=4)]
    found = transcripts(lambda cohort, noise: noisy_summary(cohort, settled, noise).statistics, cohorts)
    worst = max(total(costs(one, other)).rho for one, other in itertools.combinations(found, 2))
    assert worst <= settled.rho * (1 + 1e-9)
    assert worst > 0.1 * settled.rho
    # And the rho is worth what is claimed, by the analytic formula for Gaussians.
    assert mu_to_delta(math.sqrt(2 * settled.rho), 3.0) <= 1e-3
    assert settled.guarantee.epsilon == 3.0
    assert settled.guarantee.delta == 1e-3
    assert sum(settled.rho_of(name) for name in settled.shares) <= settled.rho * (1 + 1e-12)


def test_a_planted_bug_is_seen(monkeypatch):
    """The same check with vectors that are not cut, and with a sensitivity of C."""
    schema = SCHEMAS["four windows"]
    measure = MEASURES["zeros"](schema, {})
    monkeypatch.setattr(Measure, "sensitivity", property(lambda self: self.norm))
    assert largest_move(measure, schema, np.random.default_rng(1)) > 1.3 * measure.sensitivity
    monkeypatch.undo()
    monkeypatch.setattr(statistics, "_cut", lambda vectors, bound: vectors)
    measure = MEASURES["sketch"](schema, {})
    assert largest_move(measure, schema, np.random.default_rng(1)) > 1.3 * measure.sensitivity


def test_the_noise_has_the_scale_that_stands_beside_the_values():
    """400 summaries of one cohort; a false alarm of a cell at five standard errors: 6e-7, 196 cells."""
    rng = np.random.default_rng(6)
    cohort = School(n_learners=30).simulate(0, rng)
    plan = propose(cohort.schema, 30, 3.0, 1e-3)
    noise = seeded_noise(rng)
    found = [noisy_summary(cohort, plan, noise) for _ in range(400)]
    for name in plan.shares:
        if name == "habits":
            continue  # its centres differ from draw to draw: see below
        values = np.array([one.statistics[name].values for one in found])
        sd = np.broadcast_to(found[0].statistics[name].noise_sd, values.shape[1:])
        truth = MEASURES[name](cohort.schema, {})
        exact = truth.lattice(cohort) * truth.step
        assert np.abs(values.std(axis=0, mean=exact[None]) / sd - 1).max() < 5 / math.sqrt(2 * 400)
        assert (np.abs(values.mean(axis=0) - exact) / sd).max() < 5 / math.sqrt(400)
    off = []
    for one in found:
        measure = MEASURES["habits"](cohort.schema, one.statistics)
        exact = measure.lattice(cohort) * measure.step
        off.append((one.statistics["habits"].values - exact) / one.statistics["habits"].noise_sd)
    assert abs(np.std(off) - 1) < 5 / math.sqrt(2 * 400 * 55)


def test_only_secret_noise_carries_the_guarantee():
    cohort = School(n_learners=20).simulate(0, np.random.default_rng(1))
    plan = propose(cohort.schema, 20, 3.0, 1e-3)
    seeded = noisy_summary(cohort, plan, seeded_noise(np.random.default_rng(1)))
    assert not seeded.guarantee.formal
    assert "seeded" in str(seeded.guarantee)
    secret = noisy_summary(cohort, plan, os_noise())
    assert secret.guarantee.formal
    assert secret.guarantee == plan.guarantee
    assert secret.guarantee.unit == "a learner with all their rows"
