"""The deep baseline: what it gives, what it keeps, and the next cycle."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy.optimize import brentq

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.deep.baseline import (
    DeepBaseline,
    DeepSettings,
    RoughHabits,
    surrogates,
    widened,
)
from understudy.cohorts.deep.vae import LatentSettings, SeriesSettings
from understudy.cohorts.schema import Feature, Schema
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.private_training import PrivateSteps
from understudy.errors import DataError, UsageError

torch = pytest.importorskip("torch", reason="the extra `deep` is not installed")
pytest.importorskip("opacus", reason="the extra `deep` is not installed")

SCHEMA = Schema(features=(Feature("morning", 120.0, hours=(5, 12)), Feature("other", 60.0)), n_weeks=5)
TINY = DeepSettings(
    series=SeriesSettings(latent=3, hidden=(8, 8), epochs=2, batch_size=64),
    latent=LatentSettings(latent=2, warm_steps=10, public_batch_size=32),
    private_batch_size=10,
    n_steps=4,
)
DELTA = 1e-3


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pretrained():
    rng = np.random.default_rng(0)
    rows = surrogates(RoughHabits(SCHEMA), SCHEMA, rng, rows=300)
    return DeepBaseline(3.0, DELTA, TINY).pretrain(rows, rng)


def cohort(n=20, seed=1):
    return surrogates(RoughHabits(SCHEMA, activity=0.5), SCHEMA, np.random.default_rng(seed), rows=n)


def test_opacus_prv_knows_less_for_leaving():
    from opacus.accountants import PRVAccountant

    prv = PRVAccountant()
    prv.history = [(5.0, 0.3, 50)]
    steps = PrivateSteps(rate=0.3, n_steps=50, clip=1.0, noise_multiplier=5.0)
    found = brentq(lambda e: steps.delta(e, 300) - DELTA, 0.1, 10.0)
    # Opacus gives an upper bound up to 0.01 above; leaving, then coming, is what replacing is at most.
    assert prv.get_epsilon(DELTA) < found < 2 * prv.get_epsilon(DELTA / (1 + math.exp(found / 2)))


# --- the baseline --------------------------------------------------------------------------------


def test_surrogates_have_all_labels_and_stay_within_bounds():
    rows = surrogates(RoughHabits(SCHEMA), SCHEMA, np.random.default_rng(2), rows=100)
    assert np.bincount(rows.label).tolist() == [34, 33, 33]
    assert (rows.values <= SCHEMA.highs[None, :, None]).all()
    assert 0.3 < (rows.values == 0).mean() < 0.7


def test_any_source_will_do():
    rows = surrogates(
        lambda n, label, rng: np.full((n, 2, 5), float(label)), SCHEMA, np.random.default_rng(0), 6
    )
    np.testing.assert_array_equal(rows.values[:, 0, 0], rows.label)


def test_widened_rows_move_both_ways_and_stay_within_bounds():
    rng = np.random.default_rng(44)
    rows = surrogates(RoughHabits(SCHEMA), SCHEMA, rng, rows=2000)
    wider = widened(rows, rng, activity=1.0, minutes=0.7)
    np.testing.assert_array_equal(wider.label, rows.label)
    assert (wider.values >= 0).all()
    assert (wider.values <= SCHEMA.highs[None, :, None]).all()
    share, moved = ((one.values > 0).mean(axis=2) for one in (rows, wider))
    assert (moved > share).mean() > 0.2
    assert (moved < share).mean() > 0.2
    both = (rows.values > 0) & (wider.values > 0) & (wider.values < SCHEMA.highs[None, :, None])
    factor = np.log(wider.values[both] / rows.values[both])
    assert 0.5 < factor.std() < 0.8  # 0.7, less what the bounds cut


def test_nothing_to_widen_leaves_the_rows_as_they_are():
    rng = np.random.default_rng(45)
    rows = surrogates(RoughHabits(SCHEMA), SCHEMA, rng, rows=50)
    np.testing.assert_allclose(widened(rows, rng, activity=0.0, minutes=0.0).values, rows.values)


def test_a_feature_nobody_uses_stays_empty_when_widened():
    rows = Cohort(np.zeros((4, 2, 5)), np.zeros(4, dtype=np.int8), SCHEMA)
    assert not widened(rows, np.random.default_rng(46), activity=2.0, minutes=1.0).values.any()


def test_synthetic_cohort_has_the_schema_the_sizes_zeros_and_bounds(pretrained):
    rng = np.random.default_rng(3)
    baseline = copy.copy(pretrained).fit(cohort(), rng)
    drawn = baseline.sample([5, 0, 40], rng)
    assert isinstance(drawn, Cohort)
    assert drawn.schema == SCHEMA
    assert not drawn.simulated
    assert np.bincount(drawn.label).tolist() == [5, 0, 40]
    assert (drawn.values <= SCHEMA.highs[None, :, None]).all()
    assert 0 < (drawn.values == 0).mean() < 1
    assert np.bincount(baseline.sample(10, rng).label).tolist() == [4, 3, 3]


def test_guarantee_is_stated_with_secret_noise_only(pretrained):
    rng = np.random.default_rng(4)
    real = copy.copy(pretrained).fit(cohort(), rng)
    assert real.guarantee_.formal
    assert (real.guarantee_.epsilon, real.guarantee_.delta) == (3.0, DELTA)
    assert real.steps_.delta(3.0, real.latent_.n_parameters) <= DELTA
    assert real.steps_.rate == 0.5
    seeded = copy.copy(pretrained).fit(cohort(), rng, seeded_noise(rng))
    assert str(seeded.guarantee_) == "no formal guarantee (test: the noise was seeded)"


def test_a_seeded_year_takes_the_guarantee_of_the_years_that_replay_it(pretrained):
    """The next years' rows show the first year's learners, whose noise can be drawn again."""
    rng = np.random.default_rng(40)
    second = copy.copy(pretrained).fit(cohort(), rng, seeded_noise(rng)).replay(rng, n=30)
    assert not second.fit(cohort(seed=41), rng).guarantee_.formal
    third = second.replay(rng, n=30)
    assert not third.fit(cohort(seed=42), rng).guarantee_.formal
    secret = copy.copy(pretrained).fit(cohort(), rng).replay(rng, n=30)
    assert secret.fit(cohort(seed=41), rng).guarantee_.formal


def test_labels_cut_at_the_datas_own_quantiles_are_refused():
    """One replaced score would move others across the cuts: more than one row would change."""
    schema = dataclasses.replace(SCHEMA, cuts=(40.0, 60.0), cuts_source="data")
    rng = np.random.default_rng(43)
    rows = surrogates(RoughHabits(schema), schema, rng, rows=60)
    baseline = DeepBaseline(3.0, DELTA, TINY).pretrain(rows, rng)
    with pytest.raises(DataError, match="cuts between the labels come from the data"):
        baseline.fit(rows, rng)
    assert not hasattr(baseline, "latent_")


def test_everything_but_secret_noise_follows_from_the_seed():
    def drawn(secret):
        rng = np.random.default_rng(5)
        rows = surrogates(RoughHabits(SCHEMA), SCHEMA, rng, rows=100)
        baseline = DeepBaseline(3.0, DELTA, TINY).pretrain(rows, rng)
        baseline.fit(cohort(), rng, None if secret else seeded_noise(np.random.default_rng(6)))
        following = baseline.replay(rng, 50)
        return baseline.sample(30, np.random.default_rng(7)).values, following.public_.mean

    for first, second in zip(drawn(secret=False), drawn(secret=False), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(drawn(secret=True)[0], drawn(secret=True)[0])


def test_fitted_baseline_keeps_no_learner(pretrained):
    """What is kept has the same size for any number of learners, and holds none of their values."""
    rng = np.random.default_rng(8)
    canary = 17.320508075688775
    learners = cohort(21)
    values = learners.values.copy()
    values[4, 1, 2] = canary
    small = pickle.dumps(copy.copy(pretrained).fit(cohort(9), rng))
    large = pickle.dumps(copy.copy(pretrained).fit(Cohort(values, learners.label, SCHEMA), rng))
    assert np.float64(canary).tobytes() not in large
    assert np.float32(canary).tobytes() not in large
    assert abs(len(large) - len(small)) < 100


def test_replay_trains_m1_on_and_leaves_this_cycle_as_it_is(pretrained):
    rng = np.random.default_rng(9)
    baseline = copy.copy(pretrained).fit(cohort(), rng)
    before = baseline.sample(20, np.random.default_rng(10)).values
    following = baseline.replay(rng, n=60)
    np.testing.assert_array_equal(baseline.sample(20, np.random.default_rng(10)).values, before)
    assert len(following.public_) == 120
    assert np.bincount(following.public_.label[60:]).tolist() == [20, 20, 20]
    with pytest.raises(UsageError, match="not fitted"):
        following.sample(3, rng)
    assert following.fit(cohort(seed=11), rng).sample(6, rng).n_learners == 6


def test_what_is_missing_is_told_before_anything_is_spent(pretrained):
    rng = np.random.default_rng(12)
    with pytest.raises(UsageError, match="not pretrained"):
        DeepBaseline(3.0, DELTA).fit(cohort(), rng)
    other = copy.copy(pretrained)
    with pytest.raises(UsageError, match="another schema"):
        other.fit(Cohort(np.zeros((2, 4, 17)), np.zeros(2, dtype=np.int8), Schema()), rng)
    other.delta = 0.0
    with pytest.raises(UsageError, match="delta above 0"):
        other.fit(cohort(), rng)
