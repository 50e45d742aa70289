"""Sentences that are kept and broken: the reading of sequences against brute force."""

from itertools import pairwise

import numpy as np
import pytest

from reproductions.synthetic_logs.sentences import (
    Reader,
    generated,
    kept,
    small_course,
    steps_seen,
    written,
)
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.vocabulary import Course


def most_words(reader, codes):
    """Words in whole sentences at best, by trying every way."""
    if not len(codes):
        return 0
    best = most_words(reader, codes[1:])
    for size in range(2, min(reader.longest, len(codes)) + 1):
        if tuple(codes[:size].tolist()) in reader.number:
            best = max(best, size + most_words(reader, codes[size:]))
    return best


@pytest.mark.oracle
def test_as_many_words_as_possible_are_read_as_sentences():
    # Sentences that overlap, so that the first that fits is not always the best.
    course = Course(("a", "b", "c"), ((0, 1), (1, 2, 0), (0, 1, 2), (2, 2)), np.array([0, 2, 4]))
    reader = Reader(course)
    rng = np.random.default_rng(1)
    for _ in range(60):
        codes = rng.integers(0, 3, rng.integers(0, 10)).astype(np.int32)
        pieces = reader.read(codes)
        assert [place for low, high, _ in pieces for place in range(low, high)] == list(range(len(codes)))
        assert all(
            tuple(codes[low:high].tolist()) == course.sentences[whole]
            for low, high, whole in pieces
            if whole is not None
        )
        whole_words = sum(high - low for low, high, whole in pieces if whole is not None)
        assert whole_words == most_words(reader, codes)


def test_what_is_kept_is_counted_and_shown():
    course = small_course()
    reader = Reader(course)
    first, second = course.sentences[0], course.sentences[-1]
    log = Interactions.from_sequences([[*first, *second, second[0]]], actions=course.words)
    shares = kept(reader, log, steps_seen(log))
    n = len(first) + len(second)
    assert shares == {"steps_kept": 1.0, "words_in_sentences": n / (n + 1), "same_theme": 0.0}
    none = kept(reader, log, set())
    assert none["steps_kept"] == 0.0
    text = written(reader, log.action)
    assert text == "the woman eats bread · my friends live in the city · *(my)*"
    assert written(reader, log.action, most=2) == "the woman eats bread ..."


def test_a_chain_keeps_steps_and_breaks_sentences():
    """The small version of the table: the chain, as in the paper, and the original above it."""
    found = {method: kept(reader, log, seen) for method, log, reader, seen in generated(["markov"])}
    assert found["original"]["words_in_sentences"] > 0.95
    assert found["markov"]["steps_kept"] == 1.0
    assert found["markov"]["words_in_sentences"] < 0.8
    assert found["markov"]["same_theme"] < found["original"]["same_theme"] - 0.2


def test_every_sentence_of_the_course_is_its_own():
    course = small_course()
    assert len(set(course.sentences)) == len(course.sentences)
    assert all(low < high for low, high in pairwise(course.lessons.tolist()))
