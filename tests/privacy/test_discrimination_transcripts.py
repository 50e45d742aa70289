"""Private discriminations: what reaches the noise on two neighbours, and what that costs."""

import itertools

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.core.privacy.noise_moments import cube_variance
from understudy.exams.difficulties import DifficultiesOptions as Request
from understudy.exams.difficulties import fit_difficulties
from understudy.exams.mechanisms import discrimination as discrimination_mechanism
from understudy.exams.mechanisms.discrimination import discrimination_measurement, goes_with_rest
from understudy.exams.mechanisms.totals import whole_sums
from understudy.exams.plan import plan
from understudy.exams.responses import Responses

REST = (np.arange(45).reshape(15, 3) * 5 % 7 % 2).astype(np.int8)
ROWS = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.int8)


@pytest.mark.parametrize("method", ["knorm", "gaussian"])
def test_all_neighbours_stay_within_the_claim_and_the_worst_ones_reach_it(method, monkeypatch):
    # So few learners tell nothing about discriminations: measured all the same, to see what it costs.
    monkeypatch.setattr("understudy.exams.plan.MOST_ERROR", 1e9)
    request = Request(method, 1.0, 1e-6 if method == "gaussian" else None, discriminations=True)
    settled = plan(request, 3, 16)
    assert settled.discriminations is not None

    def release(matrix, noise):
        responses = Responses(matrix, ("q1", "q2", "q3"), declared=True)
        return fit_difficulties(responses, settled, noise, np.random.default_rng(7)).content()

    found = transcripts(release, [np.vstack([REST, row]) for row in ROWS])
    spent = [total(costs(one, other)) for one, other in itertools.combinations(found, 2)]
    pure, rho = max(cost.epsilon for cost in spent), max(cost.rho for cost in spent)
    if method == "knorm":
        assert rho == 0
        assert 0.95 < pure <= settled.guarantee.epsilon * (1 + 1e-9)
    else:
        assert pure == 0
        assert 0.45 * settled.guarantee.rho < rho <= settled.guarantee.rho * (1 + 1e-9)


def test_noise_is_for_both_totals_of_all_items():
    measurement = discrimination_measurement("knorm", 20, epsilon=1.0, delta=0.0)
    assert measurement.inner.covariance[0, 0] == pytest.approx(cube_variance(40, 1.0))


def test_every_number_of_a_learner_lies_between_0_and_1():
    rows = np.array(list(itertools.product((0, 1), repeat=7)), dtype=np.int8)
    found = goes_with_rest(rows)
    assert found.min() == 0
    assert found.max() == 1


def test_sums_are_whole_and_move_by_at_most_one():
    rng = np.random.default_rng(2)
    for _ in range(200):
        numbers = rng.random((7, 3))
        other = numbers.copy()
        other[3] = rng.integers(0, 2, 3)
        moved = whole_sums(numbers) - whole_sums(other)
        assert moved.dtype == np.int64
        assert np.abs(moved).max() <= 1


def test_whether_they_are_measured_is_decided_by_public_numbers():
    request = Request(epsilon=1.0, discriminations=True)
    assert plan(request, 20, 100).discriminations is None
    assert plan(request, 20, 100).measurement is not None
    assert plan(request, 20, 10_000).discriminations is not None
    assert discrimination_mechanism.MOST_ERROR == 0.5
