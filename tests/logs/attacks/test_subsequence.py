"""Subsequence matching against all pairs by rapidfuzz, pylcs, and a slow reading of the definitions."""

import math

import numpy as np
import pylcs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq
from scipy.special import gammaln

from understudy.core.attacks import subsequences
from understudy.core.attacks.subsequences import MatchingWork, Sequences, best_contained, largest_common
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks import subsequence
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.subsequence import (
    NO_MATCH,
    OWN_POWER,
    SURPRISE_SHARE,
    outcome_scores,
    subsequence_scores,
)
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle


def sequences_of(log, with_outcomes=False):
    codes = 2 * log.action + log.outcome if with_outcomes else log.action
    return [codes[a:b].tolist() for a, b in zip(log.offsets, log.offsets[1:], strict=False)]


def contains(long, short):
    """Two pointers: every element of `short` is met in order."""
    rest = iter(long)
    return all(any(x == y for y in rest) for x in short)


def lcs(a, b):
    above = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for k, y in enumerate(b):
            row.append(above[k] + 1 if x == y else max(above[k + 1], row[k]))
        above = row
    return above[-1]


def drawn(rng, alphabet, n=12, longest=25):
    return [rng.choice(alphabet, rng.integers(0, longest)).tolist() for _ in range(n)]


def packed(sequences, n_codes):
    offsets = np.cumsum([0, *map(len, sequences)])
    return Sequences(
        np.array([code for each in sequences for code in each], dtype=np.int64), offsets, n_codes
    )


def all_pairs(knowledge, synthetic):
    """The scores by comparing every pair, as they were computed before there were bounds."""
    log, m = knowledge.population, synthetic.lengths
    kept = subsequence._kept_share(knowledge, synthetic)
    own, fakes = sequences_of(log), sequences_of(synthetic)

    def common(a, b):
        return np.array([[LCSseq.similarity(x, y) for y in b] for x in a], dtype=np.int32).reshape(
            len(a), len(b)
        )

    def best(contained, bonus):
        i, j = np.nonzero(contained)
        n, k = log.lengths[i].astype(np.float64), m[j].astype(np.float64)
        law = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        found = np.full(log.n_learners, NO_MATCH)
        np.maximum.at(found, i, law + k * np.log(kept) + (n - k) * np.log1p(-kept) + bonus[j])
        return found

    lengths = common(own, fakes)
    nearest = (lengths / np.maximum(m, 1) ** (1.0 - OWN_POWER)).max(axis=1, initial=0.0)
    longest = np.where(lengths == m, m, 0).max(axis=1, initial=0)
    with_outcomes = common(sequences_of(log, True), sequences_of(synthetic, True))
    return {
        "lcs": longest / np.maximum(log.lengths, 1),
        "lcs-published": nearest / np.maximum(log.lengths, 1) ** OWN_POWER,
        "lcs-expected": best(lengths == m, 2.0 * np.log(np.maximum(m, 1))),
        "lcs-outcomes": best(with_outcomes == m, SURPRISE_SHARE * subsequence._surprise(synthetic)),
    }


def logs(n_actions):
    rows = st.lists(st.tuples(st.integers(0, n_actions - 1), st.integers(0, 1)), max_size=12)
    return st.lists(rows, max_size=8).map(lambda learners: log_of(learners, n_actions))


def log_of(learners, n_actions):
    rows = [row for learner in learners for row in learner]
    action = np.array([action for action, _ in rows], dtype=np.int32)
    outcome = np.array([outcome for _, outcome in rows], dtype=np.int8)
    offsets = np.cumsum([0, *map(len, learners)])
    return Interactions(action, outcome, offsets, tuple(map(str, range(n_actions))))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_bounds_leave_every_score_as_it_is_with_all_pairs(data):
    """Ties, empty sequences, empty logs and a single action included; equal to the last bit."""
    n_actions = data.draw(st.sampled_from([1, 2, 5]))
    population, synthetic = data.draw(logs(n_actions)), data.draw(logs(n_actions))
    knowledge, work = Knowledge(population, population.n_learners // 2), MatchingWork()
    found = subsequence_scores(knowledge, synthetic, 1, work)
    found["lcs-outcomes"] = outcome_scores(knowledge, synthetic, 1, work)
    for name, scores in all_pairs(knowledge, synthetic).items():
        np.testing.assert_array_equal(found[name], scores, err_msg=name)
    assert work.pairs == 2 * population.n_learners * synthetic.n_learners
    assert work.cells == 2 * population.n_rows * synthetic.n_rows


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("longest", [25, 70, 300])
def test_common_lengths_are_exact_across_words(longest, workers, monkeypatch):
    """Sequences of one word of 64 codes, of two, and of many; the largest of each fake alone is its length."""
    monkeypatch.setattr(subsequences, "BLOCK", 5)
    rng = np.random.default_rng(longest)
    originals, fakes = drawn(rng, np.arange(4), longest=longest), drawn(rng, np.arange(5), longest=longest)
    own = packed(originals, 5)
    for fake in fakes:
        found, _ = largest_common(own, packed([fake], 5), np.ones(1), workers)
        assert found.tolist() == [lcs(each, fake) for each in originals]
        texts = ["".join(map(str, each)) for each in (*originals, fake)]
        assert found.tolist() == [pylcs.lcs_sequence_length(each, texts[-1]) for each in texts[:-1]]


def test_what_is_known_beforehand_changes_nothing_but_the_work():
    """Also with fakes that are too long for narrow counts."""
    rng = np.random.default_rng(8)
    originals = packed(drawn(rng, np.arange(4), 30), 5)
    for longest in (25, 2**15 + 10):
        fakes = packed([*drawn(rng, np.arange(5), 40), [0] * longest], 5)
        divisor = np.maximum(fakes.lengths, 1) ** 0.97
        whole, work = largest_common(originals, fakes, divisor)
        known = np.where(rng.random(30) < 0.5, whole, whole / 2)
        found, less = largest_common(originals, fakes, divisor, known=known)
        np.testing.assert_array_equal(found, whole)
        assert less.compared_pairs < work.compared_pairs


def test_contained_means_contained():
    rng = np.random.default_rng(2)
    originals, fakes = drawn(rng, np.arange(3), 30), drawn(rng, np.arange(3), 30, longest=6)
    own = packed(originals, 3)
    contained = [best_contained(own, packed([fake], 3), lambda _: np.zeros(1))[0] == 0 for fake in fakes]
    assert np.array(contained).T.tolist() == [[contains(a, b) for b in fakes] for a in originals]
    assert 0.1 < np.mean(contained) < 0.9


def test_most_pairs_are_never_compared():
    """What the issue asks of ASSISTments, on a simulated classroom and a Markov chain's copies of half of it."""
    rng = np.random.default_rng(6)
    population = Classroom(n_learners=400).simulate(rng)
    half = population.select(np.arange(200))
    synthetic = parse_generator("markov").fit(half, rng, seeded_noise(rng)).sample(None, rng)
    work = MatchingWork()
    subsequence_scores(Knowledge(population, 200), synthetic.recode(population.actions), 1, work)
    assert 0 < 5 * work.compared_cells < work.cells
    assert work.to_json() == vars(work)


def log_binomial(m, n, q):
    return (
        math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
        + m * math.log(q) + (n - m) * math.log(1 - q)
    )  # fmt: skip


def plain_scores(population, synthetic, share_in_training):
    kept = synthetic.n_rows / (population.n_rows * share_in_training)
    kept = min(max(kept, 1e-4), 1 - 1e-4)
    own, fakes = sequences_of(population), sequences_of(synthetic)
    own_pairs, fake_pairs = sequences_of(population, True), sequences_of(synthetic, True)
    # The synthetic Markov chain over (action, outcome), starts and ends included.
    steps, leaves = {}, {}
    for fake in fake_pairs:
        for a, b in zip(["outside", *fake], [*fake, "outside"], strict=True):
            steps[a, b] = steps.get((a, b), 0) + 1
            leaves[a] = leaves.get(a, 0) + 1
    surprise = [
        -sum(
            math.log(steps[a, b] / leaves[a])
            for a, b in zip(["outside", *f], [*f, "outside"], strict=True)
        )
        for f in fake_pairs
    ]  # fmt: skip
    result = {"lcs": [], "lcs-expected": [], "lcs-outcomes": []}
    for sequence, pairs in zip(own, own_pairs, strict=True):
        n = len(sequence)
        match = [f for f in fakes if contains(sequence, f)]
        result["lcs"].append(max((len(f) for f in match), default=0) / n)
        result["lcs-expected"].append(
            max((log_binomial(len(f), n, kept) + 2 * math.log(len(f)) for f in match), default=NO_MATCH)
        )
        result["lcs-outcomes"].append(
            max(
                (
                    log_binomial(len(f), n, kept) + SURPRISE_SHARE * s
                    for f, s in zip(fake_pairs, surprise, strict=True)
                    if contains(pairs, f)
                ),
                default=NO_MATCH,
            )
        )
    return result


@pytest.mark.parametrize("ratio", [0.0, 0.5, 0.9])
def test_scores_are_those_of_the_definition(ratio, make_log):
    rng = np.random.default_rng(3)
    population = make_log(rng, n_learners=40, n_actions=5, mean_length=10)
    synthetic = population.select(np.arange(20))
    synthetic = synthetic.keep_rows(rng.random(synthetic.n_rows) >= ratio)
    knowledge = Knowledge(population, 20)
    wanted = plain_scores(population, synthetic, 0.5)
    found = {**subsequence_scores(knowledge, synthetic), "lcs-outcomes": outcome_scores(knowledge, synthetic)}
    for name, scores in wanted.items():
        np.testing.assert_allclose(found[name], scores, rtol=1e-9, err_msg=name)


def test_nothing_matches_an_empty_release(make_log):
    knowledge = Knowledge(make_log(np.random.default_rng(4)), 15)
    empty = knowledge.population.select(np.empty(0, dtype=int))
    assert set(subsequence_scores(knowledge, empty)["lcs"]) == {0.0}
    assert set(subsequence_scores(knowledge, empty)["lcs-expected"]) == {NO_MATCH}
    assert set(outcome_scores(knowledge, empty)) == {NO_MATCH}


def test_the_published_score_is_that_of_the_authors_program():
    rng = np.random.default_rng(5)
    originals, fakes = drawn(rng, np.arange(4)), [s for s in drawn(rng, np.arange(4)) if s]
    names = [str(code) for code in range(4)]
    population = Interactions.from_sequences(originals, actions=names)
    found = subsequence_scores(Knowledge(population, 6), Interactions.from_sequences(fakes, actions=names))
    wanted = [
        max(lcs(own, fake) / (max(len(own), 1) ** 0.03 * len(fake) ** 0.97) for fake in fakes)
        for own in originals
    ]
    np.testing.assert_allclose(found["lcs-published"], wanted)
