"""The published choice of a setting: what reaches the exponential mechanism, and by how much a learner moves it."""

import itertools

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError
from understudy.exams.estimators.choice import CANDIDATES, choose_spread
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
    assert choose_spread(responses, "wrong", 1.0, recorder, rng) == CANDIDATES[0]
    assert len(recorder.scores) == len(CANDIDATES)
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
