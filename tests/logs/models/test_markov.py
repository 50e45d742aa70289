"""The Markov chain: counts against plain Python, tables by their mass, walks by their frequencies.

Statistical tests are seeded. Each compares a p-value with 1e-6, so that a correct sampler
would fail one of them for fewer than 1 in 10,000 seeds.
"""

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from understudy.logs.interactions import Interactions
from understudy.logs.models import markov
from understudy.logs.models.markov import (
    AliasTables,
    TransitionCounts,
    draw_outcomes,
    draw_walks,
    sample_walks,
)

pytestmark = pytest.mark.oracle


def plain_counts(log):
    n, counts = log.n_actions, Counter()
    for begin, end in zip(log.offsets, log.offsets[1:], strict=False):
        walk = [n, *map(int, log.action[begin:end]), n]
        counts.update(pairwise(walk))
    return counts


def as_dict(counts):
    keys = zip(counts.source.tolist(), counts.target.tolist(), strict=True)
    return dict(zip(keys, counts.count.tolist(), strict=True))


def chain(n_actions=5, longest=40, rng=None, end=3.0):
    """Counts of a random chain with skewed transitions, some of them missing."""
    rng = rng or np.random.default_rng(4)
    width = n_actions + 1
    table = np.floor(rng.exponential(size=(width, width)) ** 3 * 5)
    table[:-1, -1] += end  # every action can be the last
    table[-1, -1] = 0  # nobody stops before the first action
    table[-1, 0] += 1
    source, target = np.nonzero(table)
    return TransitionCounts(
        source.astype(np.int32), target.astype(np.int32), table[source, target], n_actions, longest, 10
    )


@pytest.fixture(params=["simulated", "odd"])
def log(request, make_log):
    if request.param == "simulated":
        return make_log(np.random.default_rng(3))
    sequences = [[], [2, 2, 2], [], [0], [1, 0, 2], []]  # learners without rows, repeats, one row
    return Interactions.from_sequences(sequences, actions=list("abcd"))


@pytest.mark.parametrize("dense_cells", [0, 10**9])
def test_counts_are_those_of_plain_python(log, dense_cells, monkeypatch):
    monkeypatch.setattr(markov, "DENSE_CELLS", dense_cells)
    counts = TransitionCounts.of(log)
    assert as_dict(counts) == plain_counts(log)
    key = counts.source.astype(int) * (log.n_actions + 1) + counts.target
    assert (np.diff(key) > 0).all()
    assert (counts.n_learners, counts.longest) == (log.n_learners, log.lengths.max())
    assert counts.count.sum() == log.n_rows + log.n_learners


@pytest.mark.parametrize("dense_cells", [0, 10**9])
def test_counts_of_parts_add_up(log, dense_cells, monkeypatch):
    monkeypatch.setattr(markov, "DENSE_CELLS", dense_cells)
    part = np.random.default_rng(0).integers(3, size=log.n_learners)
    first, second, third = (TransitionCounts.of(log.select(part == k)) for k in range(3))
    whole = TransitionCounts.of(log)
    for added in (first + (second + third), (third + first) + second, (second + third) + first):
        for name in ("source", "target", "count", "n_actions", "longest", "n_learners"):
            np.testing.assert_array_equal(getattr(added, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_alias_tables_hold_exactly_the_wanted_mass(seed):
    counts = chain(n_actions=12, rng=np.random.default_rng(seed), end=float(seed % 2))
    tables = AliasTables.of(counts)
    mass = np.zeros((13, 13))
    for state in range(13):
        cells = range(tables.begin[state], tables.begin[state + 1])
        for k in cells:
            assert 0 <= tables.threshold[k] <= 1 + 1e-12
            mass[state, tables.likely[k]] += tables.threshold[k] / len(cells)
            mass[state, tables.other[k]] += (1 - tables.threshold[k]) / len(cells)
    wanted = np.zeros((13, 13))
    wanted[counts.source, counts.target] = counts.count
    wanted /= np.maximum(wanted.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(mass, wanted, atol=1e-12)


@pytest.mark.parametrize("longest", [1, 7, 60])
def test_walks_follow_the_chain(longest):
    counts = chain()
    n = counts.n_actions
    action, outcome, offsets = sample_walks(
        AliasTables.of(counts), np.zeros(n), np.zeros(20_000), longest, np.random.default_rng(5)
    )
    assert np.diff(offsets).max() <= longest
    assert len(action) == len(outcome) == offsets[-1]
    seen = plain_counts(Interactions(action, outcome, offsets, tuple("abcde")))
    cut = action[offsets[1:] - 1][np.diff(offsets) == longest]
    wanted = np.zeros((n + 1, n + 1))
    wanted[counts.source, counts.target] = counts.count
    for state in [n, *range(n)] if longest > 1 else [n]:
        observed = np.array([seen[state, t] for t in range(n + 1)], dtype=float)
        if state < n:
            # The step after the last admitted row was not drawn; it looks like an end.
            observed[n] -= (cut == state).sum()
        possible = wanted[state] > 0
        assert observed[~possible].sum() == 0
        share = wanted[state][possible] / wanted[state].sum()
        assert chisquare(observed[possible], share * observed.sum()).pvalue > 1e-6


def test_outcomes_follow_the_rasch_model():
    counts = chain()
    easiness, ability = np.linspace(-2, 3, 5), np.repeat([-1.5, 0.0, 2.0], 5000)
    action, outcome, offsets = sample_walks(
        AliasTables.of(counts), easiness, ability, 40, np.random.default_rng(6)
    )
    own = np.repeat(ability, np.diff(offsets))
    for level in (-1.5, 0.0, 2.0):
        for j in range(5):
            rows = (own == level) & (action == j)
            chance = 1 / (1 + np.exp(-(level + easiness[j])))
            z = (outcome[rows].sum() - rows.sum() * chance) / np.sqrt(rows.sum() * chance * (1 - chance))
            assert rows.sum() > 200
            assert abs(z) < 5


def numbers(key, learner):
    """The stream of a learner, in Python's own whole numbers: SplitMix64 from a place of the learner's own."""
    step, modulus = 0x9E3779B97F4A7C15, 2**64

    def mixed(state):
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % modulus
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % modulus
        return state ^ (state >> 31)

    place = mixed((int(key) + learner * step) % modulus)
    while True:
        yield (mixed(place) >> 11) / 2**53
        place = (place + step) % modulus


def test_the_streams_are_those_of_splitmix64():
    # The first numbers for the seed 1234567, as Rosetta Code has them.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for place, number in enumerate(published, start=1):
        state = (1234567 + place * int(markov.STEP)) % 2**64
        assert int(markov._mixed(np.uint64(state))) == number


def plain_walks(tables, limits, key):
    """One learner after the other, in plain Python."""
    outside = len(tables.begin) - 2
    for learner, limit in enumerate(limits):
        walk, state, stream = [], outside, numbers(key, learner)
        while len(walk) < limit and tables.begin[state + 1] > tables.begin[state]:
            x = next(stream) * (tables.begin[state + 1] - tables.begin[state])
            k = tables.begin[state] + int(x)
            state = int(tables.likely[k] if x - int(x) < tables.threshold[k] else tables.other[k])
            if state == outside:
                break
            walk.append(state)
        yield walk


@pytest.mark.parametrize(("lanes", "lane_rows"), [(1, 1), (3, 1), (8, 200), (8, 1 << 20), (400, 50)])
def test_walks_in_turns_are_the_walks_one_after_the_other(lanes, lane_rows, monkeypatch):
    monkeypatch.setattr(markov, "LANES", lanes)
    monkeypatch.setattr(markov, "LANE_ROWS", lane_rows)
    counts = chain(n_actions=7, end=0.5)
    # The last action is followed by nothing at all.
    followed = counts.source != 6
    tables = AliasTables.from_steps(
        counts.source[followed], counts.target[followed], counts.count[followed], 8
    )
    limits = np.random.default_rng(1).integers(0, 60, size=333)
    key = np.uint64(2**64 - 5)
    action, offsets = draw_walks(tables, limits, key)
    wanted = list(plain_walks(tables, limits, key))
    assert [action[begin:end].tolist() for begin, end in pairwise(offsets)] == wanted
    lengths = np.diff(offsets)
    assert (lengths == limits).any()
    assert (lengths < limits).any()
    easiness, ability = np.linspace(-2, 2, 7), np.linspace(-1, 1, 333)
    outcome = draw_outcomes(easiness, ability, action, offsets, key)
    for learner, (begin, end) in enumerate(pairwise(offsets)):
        stream = numbers(key, learner)
        for row in range(begin, end):
            chance = 1 / (1 + np.exp(-(ability[learner] + easiness[action[row]])))
            assert outcome[row] == (next(stream) < chance)


def test_a_learners_walk_does_not_depend_on_how_many_others_walk():
    tables, key = AliasTables.of(chain()), np.uint64(3)
    few, few_offsets = draw_walks(tables, np.full(10, 40), key)
    many, many_offsets = draw_walks(tables, np.full(3000, 40), key)
    np.testing.assert_array_equal(few_offsets, many_offsets[:11])
    np.testing.assert_array_equal(few, many[: few_offsets[-1]])


def test_neighbouring_streams_are_independent():
    """Pairs of numbers of one learner, and of neighbouring learners, fall evenly into the cells of a square."""
    first = np.array([list(islice(numbers(11, learner), 2)) for learner in range(20_000)])
    for pair in (first, np.column_stack([first[:-1, 0], first[1:, 0]])):
        cells = np.bincount((pair * 16).astype(int) @ [16, 1], minlength=256)
        assert chisquare(cells).pvalue > 1e-6


def test_the_same_seed_gives_the_same_walks():
    tables = AliasTables.of(chain())
    first, again, other = (
        sample_walks(tables, np.zeros(5), np.zeros(50), 40, np.random.default_rng(s)) for s in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_nobody_walks_nowhere():
    action, outcome, offsets = sample_walks(
        AliasTables.of(chain()), np.zeros(5), np.zeros(0), 40, np.random.default_rng(1)
    )
    assert (len(action), len(outcome), offsets.tolist()) == (0, 0, [0])


def test_a_chain_that_counted_nobody_makes_empty_walks():
    tables = AliasTables.of(TransitionCounts.of(Interactions.from_sequences([], actions=["a"])))
    *_, offsets = sample_walks(tables, np.zeros(1), np.zeros(3), 0, np.random.default_rng(1))
    assert offsets.tolist() == [0, 0, 0, 0]
