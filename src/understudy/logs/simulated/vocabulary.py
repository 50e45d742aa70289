"""A simulated vocabulary course: learners who never existed translate sentences, and each word is an attempt.

The course is a row of lessons. A lesson introduces words and has a stock of sentences, made of its own words and of
words from before, of which a few (as "the" and "is") are in most sentences. Learners begin at the first lesson, meet
sentences of the lesson in any order, are sent back to earlier ones now and then, and go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from understudy.logs.interactions import IntArray, Interactions, offsets_of
from understudy.logs.simulated.classroom import SCHOOLS


@dataclass(frozen=True)
class Course:
    """Sentences as codes of words: those of lesson k are numbered from `lessons[k]` to `lessons[k + 1]`."""

    words: tuple[str, ...]
    sentences: tuple[tuple[int, ...], ...]
    lessons: IntArray


@dataclass(frozen=True)
class VocabularyCourse:
    """How large the course is, and how learners go through it.

    Lengths are as in `Classroom`; `n_new` is the number of words that a lesson introduces, `n_sentences` its stock of
    sentences, `exercises` how many of them a learner meets in a lesson on average, `review` the chance that an exercise
    is one of an earlier lesson, `common` the share of a sentence's words that come from before its lesson.
    """

    n_learners: int = 1213
    n_actions: int = 2416
    median_length: float = 742.0
    length_spread: float = 0.76
    shortest: int = 90
    longest: int = 10_008
    n_new: int = 8
    n_sentences: int = 40
    exercises: float = 8.0
    review: float = 0.35
    common: float = 0.6

    def simulate(self, rng: np.random.Generator) -> Interactions:
        """The log of such a course, labelled as simulated."""
        return practise(self.course(rng), self, rng)

    def course(self, rng: np.random.Generator) -> Course:
        """Lessons with their sentences of two to six words."""
        width = len(str(self.n_actions))
        names = tuple(f"word {number + 1:0{width}}" for number in range(self.n_actions))
        sentences: list[tuple[int, ...]] = []
        lessons = [0]
        for first in range(0, self.n_actions, self.n_new):
            new = np.arange(first, min(first + self.n_new, self.n_actions))
            for number in range(max(self.n_sentences, len(new))):
                n_words = int(rng.integers(2, 7)) if first else 1 + int(rng.integers(3))
                # The earlier a word was introduced, the more sentences have it (Zipf's law).
                before = np.minimum((first + 1) ** rng.random(n_words), first).astype(np.int64)
                is_common = (rng.random(n_words) < self.common) & (first > 0)
                sentence = np.where(is_common, before, rng.choice(new, n_words))
                # Every new word has a sentence.
                sentence[rng.integers(n_words)] = new[number % len(new)]
                sentences.append(tuple(map(int, sentence)))
            lessons.append(len(sentences))
        return Course(names, tuple(sentences), np.array(lessons))


def practise(course: Course, shape: VocabularyCourse, rng: np.random.Generator) -> Interactions:
    """The log of learners who go through a course; the last sentence of a learner may break off."""
    n = shape.n_learners
    school = rng.integers(len(SCHOOLS), size=n)
    ability = rng.normal(1.9, 0.8, n) + 0.3 * (school - 1)
    difficulty = rng.normal(0.0, 1.1, len(course.words))
    length = np.exp(rng.normal(np.log(shape.median_length), shape.length_spread, n))
    length = np.clip(np.round(length), shape.shortest, shape.longest).astype(np.int64)
    offsets = offsets_of(length)
    starts = offsets_of([len(sentence) for sentence in course.sentences])
    words = np.concatenate([np.asarray(sentence, dtype=np.int32) for sentence in course.sentences])
    action = _walk(rng, offsets, words, starts, course.lessons, shape.exercises, shape.review)
    learner = np.repeat(np.arange(n), length)
    chance = 1.0 / (1.0 + np.exp(difficulty[action] - ability[learner]))
    outcome = (rng.random(len(action)) < chance).astype(np.int8)
    return Interactions(
        action,
        outcome,
        offsets,
        course.words,
        group=school.astype(np.int32),
        groups=SCHOOLS,
        simulated=True,
    )


# The shape of the Duolingo log in Vie, Rigaux and Minn (2022): few learners, many words, long sequences.
DUOLINGO_SHAPE = VocabularyCourse()


@njit(cache=True, nogil=True)
def _walk(rng, offsets, words, starts, lessons, exercises, review):  # type: ignore[no-untyped-def]
    """The words that each learner meets."""
    action = np.empty(offsets[-1], dtype=np.int32)
    n_lessons = len(lessons) - 1
    for i in range(len(offsets) - 1):
        row = offsets[i]
        lesson = 0
        while row < offsets[i + 1]:
            now = rng.integers(0, lesson + 1) if rng.random() < review else lesson
            sentence = rng.integers(lessons[now], lessons[now + 1])
            for place in range(
                starts[sentence], min(starts[sentence + 1], starts[sentence] + offsets[i + 1] - row)
            ):
                action[row] = words[place]
                row += 1
            # Whoever has finished the course goes on reviewing its last lesson.
            if lesson < n_lessons - 1 and rng.random() * exercises < 1.0:
                lesson += 1
    return action
