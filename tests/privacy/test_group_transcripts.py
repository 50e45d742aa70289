"""Groups compared: what reaches the noise on two neighbours, also of different groups, and what that costs."""

import itertools

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.core.privacy.noise_moments import cube_variance
from understudy.exams.compare import CompareOptions, fit_comparison
from understudy.exams.mechanisms.group import choose_group_measurement, group_cells
from understudy.exams.responses import Responses

N_ITEMS = 3
REST = (np.arange(24).reshape(8, N_ITEMS) * 5 % 7 % 2).astype(np.int8)
REST_GROUPS = [0, 1, 2, 1, 2, 1, 2, 0]
# A learner: their group (0: none of the declared ones), and their answers; -1 is missing.
LEARNERS = [
    (group, row) for group in (0, 1, 2) for row in (*itertools.product((0, 1), repeat=N_ITEMS), (1, -1, 1))
]


def exam(learner):
    group, row = learner
    return Responses(
        np.vstack([REST, row]).astype(np.int8),
        ("q1", "q2", "q3"),
        declared=True,
        groups=("A", "B"),
        group_of=np.array([*REST_GROUPS, group], dtype=np.int8),
    )


@pytest.mark.parametrize("method", ["knorm", "gaussian"])
def test_all_neighbours_stay_within_the_claim_and_the_worst_ones_reach_it(method):
    measurement = choose_group_measurement(method, 2, N_ITEMS, epsilon=1.0, delta=1e-6, agreement=True)
    # A declared spread is quicker, and agreement is measured all the same.
    options = CompareOptions(epsilon=1.0, method=method, ability_sd=1.0)

    def release(responses, noise):
        return fit_comparison(responses, measurement, options, noise).content()

    found = transcripts(release, [exam(learner) for learner in LEARNERS])
    spent = [total(costs(one, other)) for one, other in itertools.combinations(found, 2)]
    pure, rho = max(cost.epsilon for cost in spent), max(cost.rho for cost in spent)
    if method == "knorm":
        assert rho == 0
        assert 0.999 < pure <= measurement.guarantee.epsilon * (1 + 1e-9)
    else:
        assert pure == 0
        assert measurement.guarantee.rho is not None
        # All cells of both groups move by 1; agreement need not.
        assert 0.85 * measurement.guarantee.rho < rho <= measurement.guarantee.rho * (1 + 1e-9)


@pytest.mark.oracle
def test_every_replaced_learner_moves_no_cell_by_more_than_one_and_no_more_cells_than_claimed():
    def cells(learner):
        responses = exam(learner)
        return group_cells(np.maximum(responses.correct, 0), responses.group_of, 2)

    moves = [np.abs(cells(one) - cells(other)) for one, other in itertools.combinations(LEARNERS, 2)]
    assert max(move.max() for move in moves) == 1
    # Reached by one who has everything right in one group, and goes to the other.
    assert max(move.sum() for move in moves) == 2 * (N_ITEMS + 1)


def test_noise_is_for_all_cells_of_all_groups_and_the_smaller_one_is_taken():
    pure = choose_group_measurement("knorm", 2, 20, epsilon=1.0, delta=1e-6, agreement=True)
    assert pure.variance == pytest.approx(cube_variance(2 * 21 + 1, 1.0))
    for n_items in (4, 20, 100):
        chosen, knorm, gaussian = (
            choose_group_measurement(method, 2, n_items, epsilon=1.0, delta=1e-6, agreement=True)
            for method in (None, "knorm", "gaussian")
        )
        assert chosen.variance == min(knorm.variance, gaussian.variance)
    assert chosen.guarantee.delta == 1e-6


def test_noise_that_is_drawn_has_the_stated_variance():
    from understudy.core.privacy.noise import seeded_noise

    rng = np.random.default_rng(1)
    for method in ("knorm", "gaussian"):
        measurement = choose_group_measurement(method, 2, N_ITEMS, epsilon=1.0, delta=1e-6, agreement=True)
        drawn = [measurement.release(exam(LEARNERS[0]), seeded_noise(rng)) for _ in range(300)]
        sizes = np.array([noisy.sizes for noisy in drawn])
        assert sizes.mean(axis=0) == pytest.approx([3, 3], abs=5 * np.sqrt(measurement.variance / 300))
        assert sizes.var() == pytest.approx(measurement.variance, rel=0.3)
