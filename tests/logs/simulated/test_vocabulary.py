"""The simulated vocabulary course: learners meet whole sentences of lessons in order."""

import numpy as np
import pytest

from understudy.logs.description import describe
from understudy.logs.simulated.vocabulary import VocabularyCourse, practise

SMALL = VocabularyCourse(
    n_learners=60, n_actions=50, median_length=40.0, shortest=6, longest=200, n_new=5, n_sentences=7
)


def test_every_word_has_a_sentence_of_its_lesson():
    course = SMALL.course(np.random.default_rng(1))
    assert len(course.words) == 50
    for lesson in range(10):
        sentences = course.sentences[course.lessons[lesson] : course.lessons[lesson + 1]]
        met = {word for sentence in sentences for word in sentence}
        assert set(range(5 * lesson, 5 * lesson + 5)) <= met
        assert max(met) < 5 * lesson + 5


def test_learners_begin_at_the_first_lesson_and_meet_whole_sentences():
    rng = np.random.default_rng(1)
    course = SMALL.course(rng)
    log = practise(course, SMALL, rng)
    assert log.simulated
    assert log.lengths.min() >= 6
    assert log.lengths.max() <= 200
    starts = course.sentences[: course.lessons[1]]
    for begin in log.offsets[:-1]:
        first = log.action[begin : begin + 6].tolist()
        assert any(tuple(first[: len(sentence)]) == sentence for sentence in starts)


@pytest.mark.parametrize("n_actions", [2, 3, 2416])
def test_any_number_of_words_makes_a_course(n_actions):
    log = VocabularyCourse(n_learners=8, n_actions=n_actions).simulate(np.random.default_rng(3))
    assert log.n_actions == n_actions
    assert describe(log).length_min >= 90
