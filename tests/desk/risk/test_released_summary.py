"""Stage one in the game: which tables it can be played on, and what it says when it cannot."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.noise import os_noise
from understudy.desk.domain.learners import learner_table
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadows import draw_shadows
from understudy.errors import DataError


@pytest.fixture(scope="module")
def cohort():
    return School(n_learners=25).simulate(0, np.random.default_rng(1))


@pytest.fixture(scope="module")
def summary(cohort) -> PrivateSummary:
    return noisy_summary(cohort, propose(cohort.schema, 25, 3.0, 1e-3), os_noise())


def test_from_its_file_and_without_those_who_withdrew(cohort, summary, tmp_path):
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(summary.to_json()))
    frame = cohort.to_polars()
    table = learner_table(frame, np.random.default_rng(2), withdrawn=[frame["learner"][3]])
    found = StageOne.of(path, table)
    assert len(found.contributions) == 24
    # A file holds six digits.
    assert found.mu == pytest.approx(StageOne.of(summary, cohort).mu, rel=1e-4)
    assert found.mu == pytest.approx(np.sqrt(2 * propose(cohort.schema, 25, 3.0, 1e-3).rho), rel=1e-4)


def test_noise_is_fresh_on_every_shadow_and_the_sums_are_those_of_the_shadow(cohort, summary):
    stage_one = StageOne.of(summary, cohort)
    bank = draw_shadows(25, np.random.default_rng(3), 4000)
    sums = stage_one.on(bank, np.random.default_rng(4))
    noise = sums.values - (bank.counts - 1.0) @ sums.loadings
    covariance = np.cov(noise, rowvar=False)
    # 4,000 draws: standard errors 0.016 and 0.022.
    assert np.abs(covariance - np.eye(len(covariance))).max() < 0.12
    # As far apart in the turned directions as in the cells: nothing that learners add was lost.
    centred = stage_one.contributions - stage_one.contributions.mean(axis=0)
    np.testing.assert_allclose(sums.loadings @ sums.loadings.T, centred @ centred.T, atol=1e-8)


def test_the_guess_is_the_best_linear_one(cohort, summary):
    bank = draw_shadows(25, np.random.default_rng(5), 4000)
    sums = StageOne.of(summary, cohort).on(bank, np.random.default_rng(6))
    counts = bank.counts - 1.0
    error = np.mean((counts - sums.guesses) ** 2)
    fitted = sums.values @ np.linalg.lstsq(sums.values, counts, rcond=None)[0]
    assert error == pytest.approx(np.mean((counts - fitted) ** 2), rel=0.01)
    assert error < np.mean(counts**2)


def test_a_table_of_rows_is_no_cohort(cohort, summary):
    frame = cohort.to_polars()
    with pytest.raises(DataError, match="several rows"):
        StageOne.of(summary, learner_table(pl.concat([frame, frame]), np.random.default_rng(7)))
    with pytest.raises(DataError, match="missing"):
        StageOne.of(summary, learner_table(frame.drop("morning_01"), np.random.default_rng(7)))
