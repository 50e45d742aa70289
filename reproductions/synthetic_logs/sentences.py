"""Which sentences a generator keeps and which it breaks (Table 3 of Vie, Rigaux and Minn 2022).

Their log of French words is not at hand, so learners who never existed take a small course with words of our own: a
lesson per theme. A generated sequence is read as sentences of the course where it can be: whole ones are kept, what is
left over is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from reproductions.pages import tables_of, write_rows
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.simulated.vocabulary import Course, VocabularyCourse, practise

# A lesson per theme: who does what.
THEMES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("the woman", "the man", "a girl", "a boy"),
        ("eats bread", "eats an apple", "eats cheese", "likes bread", "likes cheese", "likes soup"),
    ),
    (
        ("the woman", "the man", "a girl", "a boy"),
        ("drinks water", "drinks red wine", "drinks milk", "likes water", "likes tea", "likes milk"),
    ),
    (
        ("the cat", "the dog", "a bird", "a horse"),
        ("sees a fish", "sees the man", "is black", "is small", "drinks water"),
    ),
    (
        ("she", "he", "my sister", "my brother"),
        ("wears a red dress", "wears a black coat", "buys shoes", "buys a small hat"),
    ),
    (
        ("we", "they", "you", "my friends"),
        ("read a book", "read the menu", "write a letter", "write to the woman"),
    ),
    (
        ("we", "they", "you", "my friends"),
        ("go to school", "go to the city", "live in a house", "live in the city"),
    ),
)
METHODS = ("drop:0.5", "markov", "runs", "gru", "markov-dp:epsilon=8")
N_EXAMPLES = 2
SHAPE = VocabularyCourse(
    n_learners=600,
    n_actions=0,
    median_length=60.0,
    length_spread=0.6,
    shortest=12,
    longest=400,
    exercises=6.0,
    review=0.2,
)


def small_course() -> Course:
    """The course: in each lesson whoever is in its theme does everything that it has."""
    texts = [[f"{who} {does}" for who in people for does in deeds] for people, deeds in THEMES]
    words = sorted({word for lesson in texts for text in lesson for word in text.split()})
    code = {word: number for number, word in enumerate(words)}
    sentences = tuple(tuple(code[word] for word in text.split()) for lesson in texts for text in lesson)
    lessons = np.cumsum([0, *(len(lesson) for lesson in texts)])
    return Course(tuple(words), sentences, lessons)


def simulate_course(rng: np.random.Generator) -> tuple[Course, Interactions]:
    """The course and its log."""
    course = small_course()
    return course, practise(course, SHAPE, rng)


class Reader:
    """Reads sequences as sentences of a course."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.number = {sentence: number for number, sentence in enumerate(course.sentences)}
        self.longest = max(map(len, course.sentences))

    def read(self, codes: IntArray) -> list[tuple[int, int, int | None]]:
        """Pieces (from, to, sentence): as many words as possible in whole sentences; None for words left over."""
        n = len(codes)
        covered = [0] * (n + 1)
        taken = [1] * n
        for place in range(n - 1, -1, -1):
            covered[place] = covered[place + 1]
            for size in range(2, min(self.longest, n - place) + 1):
                gain = size + covered[place + size]
                if gain > covered[place] and tuple(codes[place : place + size].tolist()) in self.number:
                    covered[place], taken[place] = gain, size
        pieces: list[tuple[int, int, int | None]] = []
        place = 0
        while place < n:
            end = place + taken[place]
            whole = self.number.get(tuple(codes[place:end].tolist())) if taken[place] > 1 else None
            if whole is None and pieces and pieces[-1][2] is None:
                pieces[-1] = (pieces[-1][0], end, None)
            else:
                pieces.append((place, end, whole))
            place = end
        return pieces

    def lesson(self, sentence: int) -> int:
        """The lesson of a sentence."""
        return int(np.searchsorted(self.course.lessons, sentence, side="right")) - 1


def kept(reader: Reader, log: Interactions, seen: set[tuple[int, int]]) -> dict[str, float]:
    """What is kept: steps that the original has, words in whole sentences, sentences followed by one of their theme."""
    steps, known, words, whole, pairs, same = 0, 0, 0, 0, 0, 0
    for begin, end in pairwise(log.offsets.tolist()):
        codes = log.action[begin:end]
        for step in pairwise(codes.tolist()):
            steps += 1
            known += step in seen
        pieces = reader.read(codes)
        words += end - begin
        whole += sum(high - low for low, high, sentence in pieces if sentence is not None)
        for (_, _, first), (_, _, second) in pairwise(pieces):
            if first is not None and second is not None:
                pairs += 1
                same += reader.lesson(first) == reader.lesson(second)
    return {
        "steps_kept": known / max(steps, 1),
        "words_in_sentences": whole / max(words, 1),
        "same_theme": same / max(pairs, 1),
    }


def steps_seen(log: Interactions) -> set[tuple[int, int]]:
    """Every step from one word to the next of a log."""
    return {
        step
        for begin, end in pairwise(log.offsets.tolist())
        for step in pairwise(log.action[begin:end].tolist())
    }


def written(reader: Reader, codes: IntArray, most: int = 30) -> str:
    """How a sequence begins: whole sentences as such, what is left over in parentheses, for about `most` words."""
    names = reader.course.words
    shown, end = [], 0
    for low, high, whole in reader.read(codes):
        if low >= most:
            break
        end = high if whole is not None else min(high, low + most)
        text = " ".join(names[code] for code in codes[low:end])
        shown.append(text if whole is not None else f"*({text})*")
    return " · ".join(shown) + (" ..." if end < len(codes) else "")


def measure_sentences(methods: Sequence[str] = METHODS) -> None:
    """What each generator keeps of the course's sentences, and examples of what it writes."""
    tables = tables_of("synthetic_logs")
    figures, examples = [], []
    for method, log, reader, seen in generated(methods):
        found = kept(reader, log, seen)
        figures.append((method, *(f"{share:.3f}" for share in found.values())))
        for begin, end in list(pairwise(log.offsets.tolist()))[:N_EXAMPLES]:
            examples.append((method, written(reader, log.action[begin:end])))
    write_rows(tables / "sentences.csv", ("method", *found), figures)
    write_rows(tables / "examples.csv", ("method", "text"), examples)


def generated(methods: Sequence[str]) -> Iterator[tuple[str, Interactions, Reader, set[tuple[int, int]]]]:
    """The original log of the course, and one of each method, with what they are read by."""
    rng = np.random.default_rng(1)
    course, original = simulate_course(rng)
    reader, seen = Reader(course), steps_seen(original)
    yield "original", original, reader, seen
    for method in methods:
        fitted = parse_generator(method).fit(original.declare(), rng, seeded_noise(rng))
        yield method, fitted.sample(None, rng).recode(original.actions), reader, seen
