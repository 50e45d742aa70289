"""The published choice of a setting: what reaches the exponential mechanism, and by how much a learner moves it."""

import itertools

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError
from understudy.exams.estimators.choice import (
    PENALTIES,
    SPREADS,
    choose_penalty,
    choose_spread,
    count_errors,
    held_out_loss,
    penalty_on_public,
)
from understudy.exams.estimators.joint import estimate_ability
from understudy.exams.estimators.penalised import penalised_fit
from understudy.exams.simulate import Exam


class Recorder:
    """Seeded noise that keeps the scores it was shown, and always chooses the first."""

    secret = False

    def __init__(self, seed):
        self._noise = seeded_noise(np.random.default_rng(seed))

    def __getattr__(self, name):
        return getattr(self._noise, name)

    def gumbel_argmax(self, scores, scale):
        self.scores, self.scale = np.asarray(scores), scale
        return 0


def test_the_choice_is_made_by_the_candidates_errors():
    """It is told the scores and chooses by them; how little they say of the spread is another matter."""
    rng = np.random.default_rng(3)
    responses = Exam(4000, 20, ability_sd=2.0).simulate(rng).responses
    recorder = Recorder(1)
    assert choose_spread(responses, "wrong", 1.0, recorder, rng) == SPREADS[0]
    assert len(recorder.scores) == len(SPREADS)
    # 800 judges err at most once in every item; a coin would err in half.
    assert (recorder.scores > -400).all()
    assert (recorder.scores < 0).all()
    noise = seeded_noise(np.random.default_rng(2))
    assert noise.gumbel_argmax(recorder.scores, 1e-6) == int(np.argmax(recorder.scores))


def test_a_replaced_judge_moves_every_score_by_at_most_one():
    """Errors are divided by I: equation 7 as published counts one error per student, findings 2."""

    responses = Exam(100, 6).simulate(np.random.default_rng(4)).responses
    judge = int(np.array_split(np.random.default_rng(9).permutation(100), 5)[-1][0])
    largest = 0.0
    for row in itertools.product((0, 1), repeat=6):
        scores = []
        for replaced in (False, True):
            matrix = responses.correct.copy()
            if replaced:
                matrix[judge] = row
            recorder = Recorder(1)
            choose_spread(
                type(responses)(matrix, responses.items), "wrong", 0.5, recorder, np.random.default_rng(9)
            )
            assert recorder.scale == pytest.approx(2 / 0.5)
            scores.append(recorder.scores)
        largest = max(largest, np.abs(scores[0] - scores[1]).max())
    assert 0 < largest <= 1


def test_too_few_learners_to_choose_are_refused():
    responses = Exam(20, 4).simulate(np.random.default_rng(5)).responses
    with pytest.raises(DataError, match="at least 50 learners"):
        choose_spread(
            responses, "wrong", 1.0, seeded_noise(np.random.default_rng(1)), np.random.default_rng(1)
        )


# The penalty


@pytest.fixture(scope="module")
def responses():
    return Exam(100, 6).simulate(np.random.default_rng(4)).responses


def test_errors_are_counted_by_hand(responses):
    correct, difficulty = responses.correct.copy(), np.linspace(-1, 1, 6)
    correct[3, 2] = -1
    ability = estimate_ability(correct, difficulty, penalty=0.3)
    by_hand = 0
    for row, own in zip(correct, ability, strict=True):
        for answer, hard in zip(row, difficulty, strict=True):
            chance = 1 / (1 + np.exp(hard - own))
            by_hand += answer >= 0 and round(float(chance)) != answer
    assert count_errors(correct, difficulty, 0.3) == by_hand


@pytest.mark.parametrize("method", ["objective", "statistics"])
def test_each_candidate_penalty_is_fitted_on_its_own_part_and_judged_by_the_last(responses, method):
    """The scores that reach the exponential mechanism, computed again from the parts by hand."""
    seen = []

    def fit(part, penalty, rng):
        seen.append((part.correct, penalty))
        return penalised_fit(method, 0.4)(part, penalty, rng)

    recorder = Recorder(1)
    assert choose_penalty(fit, responses, 0.4, recorder, np.random.default_rng(9)) == PENALTIES[0]
    assert recorder.scale == pytest.approx(2 / 0.4)
    rng = np.random.default_rng(9)
    parts = np.array_split(rng.permutation(100), len(PENALTIES) + 1)
    scores = []
    for part, penalty, (given, tried) in zip(parts, PENALTIES, seen, strict=False):
        assert tried == penalty
        np.testing.assert_array_equal(given, responses.correct[part])
        difficulty = penalised_fit(method, 0.4)(responses.select(part), penalty, rng)
        scores.append(-count_errors(responses.correct[parts[-1]], difficulty, penalty) / 6)
    np.testing.assert_allclose(recorder.scores, scores)


def test_a_replaced_judge_moves_the_score_of_every_penalty_by_at_most_one(responses):
    judge = int(np.array_split(np.random.default_rng(9).permutation(100), 5)[-1][0])
    scores = []
    for row in itertools.product((0, 1), repeat=6):
        matrix = responses.correct.copy()
        matrix[judge] = row
        recorder = Recorder(1)
        neighbour = type(responses)(matrix, responses.items)
        choose_penalty(penalised_fit("objective", 1.0), neighbour, 1.0, recorder, np.random.default_rng(9))
        scores.append(recorder.scores)
    moved = np.abs(np.array(scores)[:, None] - np.array(scores)[None]).max()
    assert 0 < moved <= 1


def test_the_loss_is_that_of_answers_the_ability_was_not_estimated_from():
    """By hand: each answer predicted from the half that it is not in."""
    correct = Exam(12, 7).simulate(np.random.default_rng(4)).responses.correct.copy()
    correct[2, 3] = -1
    difficulty = np.linspace(-1.5, 1.5, 7)
    first = np.random.default_rng(8).random(correct.shape) < 0.5
    expected = 0.0
    for n, i in itertools.product(range(12), range(7)):
        if correct[n, i] >= 0:
            others = np.where(first[n] != first[n, i], correct[n], -1).astype(np.int8)
            ability = estimate_ability(others, difficulty, penalty=0.4)[0]
            chance = 1 / (1 + np.exp(difficulty[i] - ability))
            expected -= np.log(chance if correct[n, i] else 1 - chance)
    assert held_out_loss(correct, difficulty, 0.4, np.random.default_rng(8)) == pytest.approx(expected)


def test_with_noise_public_data_ask_for_more_penalty_than_the_program_has():
    """Objective perturbation with 120 learners at epsilon 1: with 0.02 items run away, and 5 is best."""
    public = Exam(40, 20).simulate(np.random.default_rng(2)).responses
    fit = penalised_fit("objective", 1.0)
    assert penalty_on_public(fit, public, 120, np.random.default_rng(1)) >= 1.0


def test_public_data_show_which_penalty_is_better():
    """A method that is good with one penalty and noise with all others: 20 draws agree on the good one."""
    public = Exam(60, 8, ability_sd=1.5)
    sitting = public.simulate(np.random.default_rng(2))
    for good in PENALTIES:

        def fit(drawn, penalty, rng, good=good):
            assert drawn.n_learners == 150
            noise = rng.normal(size=8)
            return sitting.difficulty if penalty == good else 5 * noise

        assert penalty_on_public(fit, sitting.responses, 150, np.random.default_rng(1)) == good


def test_all_penalties_see_the_same_public_classes_and_the_same_noise():
    sitting = Exam(30, 4).simulate(np.random.default_rng(2))
    seen = []

    def fit(drawn, penalty, rng):
        seen.append((drawn.correct.tobytes(), rng.normal()))
        return sitting.difficulty

    penalty_on_public(fit, sitting.responses, 50, np.random.default_rng(1))
    rounds = [seen[k : k + len(PENALTIES)] for k in range(0, len(seen), len(PENALTIES))]
    assert all(len(set(classes)) == 1 for classes in rounds)
    assert len({classes[0] for classes in rounds}) == len(rounds)


def test_too_few_public_learners_are_refused():
    responses = Exam(15, 4).simulate(np.random.default_rng(5)).responses
    with pytest.raises(DataError, match="at least 20 public learners"):
        penalty_on_public(penalised_fit("joint", None), responses, 100, np.random.default_rng(1))
