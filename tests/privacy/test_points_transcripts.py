"""Private difficulties of items with points: what reaches the noise on two neighbours, and what that costs."""

import itertools

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.core.privacy.noise_moments import cube_variance
from understudy.exams.difficulties import DifficultiesOptions as Request
from understudy.exams.difficulties import fit_difficulties
from understudy.exams.mechanisms import points as points_mechanism
from understudy.exams.mechanisms.points import choose_points_measurement
from understudy.exams.plan import plan
from understudy.exams.responses import Points, Responses

POINTS = (Points(1), Points(2), Points(3, 0.5))
ROWS = np.array([*itertools.product((0, 1), (0, 2), (0, 3)), (-1, 1, 1), (1, 1, 2)], dtype=np.int8)
REST = (np.arange(27).reshape(9, 3) * 5 % [2, 3, 4]).astype(np.int8)
REQUESTS = {
    "knorm": Request(epsilon=1.0),
    "knorm, spread declared": Request(epsilon=1.0, ability_sd=1.0),
    "gaussian": Request("gaussian", 1.0, 1e-6),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_all_neighbours_stay_within_the_claim_and_the_worst_ones_reach_it(name):
    request = REQUESTS[name]
    settled = plan(request, len(POINTS), 10, "wide", POINTS)

    def release(matrix, noise):
        responses = Responses(matrix, ("q1", "q2", "q3"), declared=True, points=POINTS)
        return fit_difficulties(responses, settled, noise, np.random.default_rng(7)).content()

    found = transcripts(release, [np.vstack([REST, row]) for row in ROWS])
    spent = [total(costs(one, other)) for one, other in itertools.combinations(found, 2)]
    pure, rho = max(cost.epsilon for cost in spent), max(cost.rho for cost in spent)
    if request.method == "knorm":
        assert rho == 0
        assert 0.95 < pure <= settled.guarantee.epsilon * (1 + 1e-9)
    else:
        assert pure == 0
        claimed = settled.guarantee.rho
        # Three items move by one; agreement and parts of points not always with them.
        assert 0.95 * 3 / 5 * claimed < rho <= claimed * (1 + 1e-9)


def test_noise_is_for_all_cells():
    points = (Points(4),) * 40
    measurement = choose_points_measurement("knorm", points, epsilon=1.0, delta=0.0, agreement=True)
    assert (measurement.agreement_cells, measurement.parts_cells) == (2, 2)
    assert measurement.inner.covariance[0, 0] == pytest.approx(cube_variance(44, 1.0))


@pytest.mark.parametrize("number", ["agreement", "parts"])
def test_every_number_of_a_learner_lies_between_0_and_1(number):
    points = (Points(1), Points(2), Points(4), Points(7), Points(100))
    most = [item.steps for item in points]
    rng = np.random.default_rng(1)
    rows = np.array([rng.integers(0, np.array(most) + 1) for _ in range(2000)])
    ends = np.array(list(itertools.product(*((0, m // 2, m) for m in most))))
    found = getattr(points_mechanism, number)(np.vstack([rows, ends]).astype(np.int8), points)
    assert found.min() >= 0
    assert found.max() <= 1
    # Not smaller than it has to be, either: the noise would be too large.
    assert found.max() - found.min() > 0.9


def test_a_sum_moves_by_at_most_one():
    rng = np.random.default_rng(2)
    for _ in range(300):
        numbers = rng.random(7)
        other = numbers.copy()
        other[3] = rng.integers(0, 2)
        moved = points_mechanism._whole(numbers) - points_mechanism._whole(other)
        assert isinstance(moved, int)
        assert abs(moved) <= 1


def test_totals_of_shares_move_by_at_most_one():
    rest = REST.astype(np.int64)
    points = POINTS
    totals = np.array(
        [points_mechanism.share_totals(np.vstack([rest, np.maximum(row, 0)]), points) for row in ROWS]
    )
    assert np.abs(totals[:, None] - totals[None, :]).max() == 1
    assert totals.dtype == np.int64


def test_the_maximum_of_points_is_the_declared_one():
    """Nobody has more than one of four points: one learner with all of them must not change what others add."""
    ones = np.ones((8, 1), dtype=np.int8)
    assert points_mechanism.share_totals(ones, (Points(4),)).tolist() == [2]
    assert points_mechanism.share_totals(np.vstack([ones[1:], [[4]]]), (Points(4),)).tolist() == [2]
