"""How far learners' answers agree, and what that is expected to be."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from understudy.exams.agreement import Agreement, expected_agreement, fewest_answers

ROWS = np.array(list(itertools.product((-1, 0, 1), repeat=5)), dtype=np.int8)


def by_pairs(row):
    """The mean over pairs of answers of +1 if they are alike and -1 if not; 0 for fewer than four answers."""
    answers = [answer for answer in row if answer >= 0]
    if len(answers) < 4:
        return 0.0
    return float(np.mean([1.0 if a == b else -1.0 for a, b in itertools.combinations(answers, 2)]))


@pytest.mark.oracle
def test_a_learner_adds_the_mean_over_pairs_of_answers():
    for row in ROWS:
        found = Agreement.of(row[None], complete=False)
        assert found.fewest == 4
        assert found.steps / 2**20 == pytest.approx((by_pairs(row) + 1 / 3) / (4 / 3), abs=2e-6)


def test_a_learner_who_is_replaced_moves_the_sum_by_at_most_one():
    """Whatever the others' sum is, and so whichever fraction is left of it."""
    each = [Agreement.of(row[None], complete=False) for row in ROWS]
    others = Agreement(0, 4)
    for one in each[::7]:
        others = others + one
        wholes = [(others + mine).whole for mine in each]
        assert all(isinstance(whole, int) for whole in wholes)
        assert max(wholes) - min(wholes) <= 1


def test_sums_add_up():
    whole = Agreement.of(ROWS, complete=False)
    parts = Agreement.of(ROWS[:100], complete=False) + Agreement.of(ROWS[100:], complete=False)
    assert whole == parts


def test_where_all_answer_the_least_is_that_of_all_items():
    assert fewest_answers(20, complete=True) == 20
    assert fewest_answers(20, complete=False) == 4
    assert fewest_answers(2, complete=False) == 2
    even = np.array([[1, 0] * 10], dtype=np.int8)
    assert Agreement.of(even, complete=True).steps == 0
    assert Agreement.of(np.ones((3, 20), dtype=np.int8), complete=True).whole == 3


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("n_items", "answers", "sd", "guess"),
    [(12, None, 0.8, 0.0), (12, None, 2.5, 0.25), (60, 20, 1.5, 0.0), (60, 20, 2.5, 0.25)],
)
def test_the_expected_agreement_is_that_of_simulated_learners(n_items, answers, sd, guess):
    rng = np.random.default_rng(2)
    n_learners, n_classes = 400, 300
    difficulty = rng.normal(0.3, 1.5, n_items)
    ability = rng.normal(0.0, sd, (n_classes * n_learners, 1))
    chance = guess + (1 - guess) * expit(ability - difficulty)
    correct = (rng.random(chance.shape) < chance).astype(np.int8)
    if answers is not None:
        race = rng.random(chance.shape)
        correct[race > np.partition(race, answers - 1, axis=1)[:, answers - 1 : answers]] = -1
    wholes = [
        Agreement.of(part, complete=answers is None).whole
        for part in correct.reshape(n_classes, n_learners, -1)
    ]
    expected = np.full(n_items, n_learners * (answers or n_items) / n_items)
    mean, variance = expected_agreement(
        difficulty,
        np.zeros(n_items),
        sd,
        guess=np.full(n_items, guess),
        answers=expected,
        n_learners=n_learners,
        fewest=fewest_answers(n_items, complete=answers is None),
    )
    # The mean of 300 classes is known to a seventeenth of a class's own deviation; five of these are allowed.
    assert np.mean(wholes) == pytest.approx(mean, abs=5 * np.std(wholes) / 17 + 0.2)
    assert np.var(wholes) == pytest.approx(variance, rel=0.35)


@pytest.mark.oracle
@pytest.mark.parametrize("error", [0.4, 1.2])
def test_doubt_about_the_difficulties_is_part_of_mean_and_variance(error):
    """Difficulties drawn anew around what is known, and the mean agreement of each draw."""
    rng = np.random.default_rng(4)
    difficulty = np.linspace(-0.5, 2.5, 10)
    arguments = {"guess": np.zeros(10), "answers": np.full(10, 500.0), "n_learners": 500, "fewest": 10}
    _, known = expected_agreement(difficulty, np.zeros(10), 1.2, **arguments)
    mean, doubted = expected_agreement(difficulty, np.full(10, error**2), 1.2, **arguments)
    means = [
        expected_agreement(difficulty + rng.normal(0, error, 10), np.zeros(10), 1.2, **arguments)[0]
        for _ in range(2000)
    ]
    # Drawn difficulties differ among each other, and the mean of all is doubted: both are in there.
    assert np.mean(means) == pytest.approx(mean, abs=0.15 * np.std(means) + 1.0)
    assert np.std(means) == pytest.approx(np.sqrt(doubted - known), rel=0.35)
