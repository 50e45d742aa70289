"""Differences between groups from noisy totals: against Mantel and Haenszel, and over simulated exams."""

import numpy as np
import pytest
from scipy.special import expit

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators.group_differences import group_differences
from understudy.exams.mechanisms.group import choose_group_measurement
from understudy.exams.responses import Responses


def exam(rng, sizes, differences, sd=1.0, gap=-0.5):
    """Groups whose mean abilities are `gap` apart; `differences` make items harder for all but the first."""
    n_items = len(differences)
    difficulty = rng.normal(0.0, 1.2, n_items)
    group_of = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    ability = rng.normal(gap * (group_of - 1), sd)
    logit = ability[:, None] - difficulty - np.outer(group_of > 1, differences)
    return Responses(
        (rng.random(logit.shape) < expit(logit)).astype(np.int8),
        tuple(f"item {i + 1}" for i in range(n_items)),
        declared=True,
        simulated=True,
        groups=tuple("ABC"[: len(sizes)]),
        group_of=group_of.astype(np.int8),
    )


def found_in(responses, epsilon, rng, ability_sd=None):
    measurement = choose_group_measurement(
        None,
        len(responses.groups),
        responses.n_items,
        epsilon=epsilon,
        delta=1e-6,
        agreement=ability_sd is None,
    )
    return group_differences(measurement.release(responses, seeded_noise(rng)), ability_sd)


def mantel_haenszel(responses, item):
    """The logarithm of the common odds ratio of an item, learners matched by their number of right answers."""
    score = responses.correct.sum(axis=1)
    right, first = responses.correct[:, item] == 1, responses.group_of == 1
    above = below = 0.0
    for level in np.unique(score):
        at = score == level
        above += (at & first & right).sum() * (at & ~first & ~right).sum() / at.sum()
        below += (at & first & ~right).sum() * (at & ~first & right).sum() / at.sum()
    return np.log(above / below)


@pytest.mark.oracle
@pytest.mark.parametrize("sd", [1.0, 1.8])
def test_with_next_to_no_noise_it_agrees_with_mantel_and_haenszel(sd):
    rng = np.random.default_rng(4)
    differences = np.zeros(20)
    differences[[3, 11]] = 1.0, -0.6
    responses = exam(rng, (6000, 4000), differences, sd)
    found = found_in(responses, 50.0, rng)
    published = np.array([mantel_haenszel(responses, item) for item in range(20)])
    # Scores hold the items that differ, so all of the published ones are a little off together.
    published -= np.median(published)
    assert np.abs(found.difference[0] - published).max() < 0.15
    assert found.differs[0].tolist() == (differences != 0).tolist()
    assert found.ability[0] == pytest.approx(-0.5, abs=4 * found.ability_error[0])
    assert found.ability_sd == pytest.approx(sd, rel=0.1)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("sizes", "epsilon", "amount", "sd"),
    [((2000, 2000), 2.0, 1.0, 1.8), ((800, 500), 1.0, 1.0, 1.0), ((120, 120), 1.0, 1.0, 1.0)],
)
def test_intervals_hold_the_true_difference(sizes, epsilon, amount, sd):
    rng = np.random.default_rng(8)
    differences = np.zeros(12)
    differences[:2] = amount
    held = []
    for _ in range(12):
        found = found_in(exam(rng, sizes, differences, sd), epsilon, rng)
        held.append((found.low[0] <= differences) & (differences <= found.high[0]))
    # 144 intervals, of which those of one exam hang together.
    assert 0.91 <= np.mean(held) <= 1.0


def test_without_a_difference_one_is_stated_in_at_most_a_twentieth_of_exams():
    # 48 exams: at a true rate of 5 % more than 6 happen with a chance of 1 %.
    rng = np.random.default_rng(9)
    alarms = [
        found_in(exam(rng, sizes, np.zeros(12)), epsilon, rng, ability_sd=1.0).differs.any()
        for sizes, epsilon in (((4000, 4000), 5.0), ((500, 500), 1.0), ((900, 200, 400), 2.0))
        for _ in range(16)
    ]
    assert sum(alarms) <= 6


def test_large_differences_are_found_and_items_without_are_alike():
    rng = np.random.default_rng(10)
    differences = np.zeros(12)
    differences[:3] = 1.5
    found = found_in(exam(rng, (5000, 5000), differences), 5.0, rng)
    assert found.differs[0].tolist() == [True] * 3 + [False] * 9
    assert (np.abs(np.array([found.low, found.high]))[:, 0, 3:] < 0.5).mean() > 0.7


def test_small_groups_cannot_be_decided():
    rng = np.random.default_rng(11)
    differences = np.zeros(12)
    differences[0] = 1.5
    found = found_in(exam(rng, (30, 30), differences), 0.5, rng)
    assert not found.differs.any()
    assert (found.high - found.low > 1.0).all()


def test_a_size_that_noise_has_made_negative_is_no_error():
    rng = np.random.default_rng(12)
    for _ in range(10):
        found = found_in(exam(rng, (20, 0), np.zeros(5)), 0.1, rng)
        assert np.isfinite([found.difference, found.standard_error, found.low, found.high]).all()
        assert not found.differs.any()
