"""The simulated school has the habits that its description promises; no generator was tuned to them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from understudy.cohorts.simulate import SCHEMA, School


@pytest.fixture(scope="module")
def years():
    return School(n_learners=3000).years(np.random.default_rng(5))


def test_three_years_of_learners_who_do_not_exist(years):
    assert [year.n_learners for year in years] == [3000] * 3
    assert all(year.simulated and year.schema == SCHEMA for year in years)


def test_the_same_seed_gives_the_same_school():
    one, two = (School().simulate(1, np.random.default_rng(7)) for _ in range(2))
    assert (one.values == two.values).all()
    assert (one.label == two.label).all()


def test_minutes_are_zero_inflated_and_heavy_tailed(years):
    values = years[0].values
    assert 0.2 < (values == 0).mean() < 0.7
    assert (values[:, 3] == 0).mean() > 0.8
    for window in range(4):
        positive = values[:, window][values[:, window] > 0]
        assert positive.mean() > 1.1 * np.median(positive)


def test_every_label_has_its_share(years):
    shares = np.bincount(years[0].label, minlength=3) / 3000
    assert (shares > 0.2).all()


def test_achievement_goes_with_evenings_and_against_nights(years):
    active = (years[0].values > 0).mean(axis=2)
    by_label = np.array([active[years[0].label == label].mean(axis=0) for label in range(3)])
    assert (np.diff(by_label[:, 1]) > 0).all()
    assert (np.diff(by_label[:, 2]) > 0).all()
    assert by_label[2, 3] < by_label[0, 3]


def test_weeks_have_a_rhythm_and_a_memory(years):
    active = years[0].values > 0
    weekly = active.mean(axis=(0, 1))
    assert weekly.argmin() == SCHEMA.n_weeks // 2
    assert weekly[-3:].mean() > weekly[:3].mean()
    before, after = active[:, 2, :-1], active[:, 2, 1:]
    assert after[before].mean() > after[~before].mean() + 0.1


def test_habits_drift_from_year_to_year(years):
    evenings = [year.values[:, 2].mean(axis=1) for year in years]
    for earlier, later in itertools.pairwise(evenings):
        assert stats.mannwhitneyu(later, earlier, alternative="greater").pvalue < 1e-3
