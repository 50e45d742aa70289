"""Subsequence matching against pylcs, a dynamic programme, and a slow reading of the definitions."""

import math

import numpy as np
import pylcs
import pytest

from understudy.logs.attacks import subsequence
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.subsequence import (
    NO_MATCH,
    SURPRISE_SHARE,
    common_lengths,
    outcome_scores,
    subsequence_scores,
)
from understudy.logs.interactions import Interactions

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


def strings(sequences):
    log = Interactions.from_sequences(sequences)
    return subsequence.as_strings(log.action, log.offsets)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_common_lengths_are_exact(seed, workers):
    rng = np.random.default_rng(seed)
    originals, fakes = drawn(rng, np.arange(4)), drawn(rng, np.arange(4))
    found = common_lengths(strings(originals), strings(fakes), workers)
    assert found.tolist() == [[lcs(a, b) for b in fakes] for a in originals]
    for a, row in zip(strings(originals), found, strict=True):
        assert row.tolist() == [pylcs.lcs_sequence_length(a, b) for b in strings(fakes)]


def test_large_vocabularies_step_over_reserved_characters():
    """Codes on both sides of U+D800, which no string may hold, and beyond 16 bits."""
    alphabet = np.concatenate([np.arange(0xD800 - 0x21 - 3, 0xD800 - 0x21 + 3), [0, 60_000, 70_000, 200_000]])
    rng = np.random.default_rng(1)
    originals, fakes = drawn(rng, alphabet), drawn(rng, alphabet)
    found = common_lengths(strings(originals), strings(fakes))
    assert found.tolist() == [[lcs(a, b) for b in fakes] for a in originals]
    assert len(set("".join(strings([alphabet.tolist()])))) == len(alphabet)


def test_contained_means_contained():
    rng = np.random.default_rng(2)
    originals, fakes = drawn(rng, np.arange(3), 30), drawn(rng, np.arange(3), 30, longest=6)
    ((rows, common),) = subsequence.blocks_of_common_lengths(strings(originals), strings(fakes), 1)
    assert rows == slice(0, 30)
    contained = common == [len(fake) for fake in fakes]
    assert contained.tolist() == [[contains(a, b) for b in fakes] for a in originals]
    assert 0.1 < contained.mean() < 0.9


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
def test_scores_are_those_of_the_definition(ratio, make_log, monkeypatch):
    rng = np.random.default_rng(3)
    population = make_log(rng, n_learners=40, n_actions=5, mean_length=10)
    synthetic = population.select(np.arange(20))
    synthetic = synthetic.keep_rows(rng.random(synthetic.n_rows) >= ratio)
    knowledge = Knowledge(population, 20)
    wanted = plain_scores(population, synthetic, 0.5)
    whole = {**subsequence_scores(knowledge, synthetic), "lcs-outcomes": outcome_scores(knowledge, synthetic)}
    monkeypatch.setattr(subsequence, "BLOCK_CELLS", 3 * synthetic.n_learners)
    blocks = {
        **subsequence_scores(knowledge, synthetic),
        "lcs-outcomes": outcome_scores(knowledge, synthetic),
    }
    for name, scores in wanted.items():
        np.testing.assert_allclose(whole[name], scores, rtol=1e-9, err_msg=name)
        np.testing.assert_array_equal(whole[name], blocks[name], err_msg=name)


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
