"""What a learner can move: every sum of the private fit against brute force and against its bound."""

from collections import Counter
from itertools import groupby, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from understudy.logs.generators.private_sums import (
    RESOLUTION,
    WalkStatistics,
    bin_edges,
    clipped_counts,
    first_rows,
)
from understudy.logs.interactions import Interactions, joined
from understudy.logs.large import parts
from understudy.logs.models.rasch import PairCounts, fit_rasch, unexplained

pytestmark = pytest.mark.oracle

EDGES = bin_edges(500)
ACTIONS = tuple("abcdefg")
EASINESS, WEIGHT = np.linspace(-1, 1, 7), np.linspace(0.5, 2.0, 7)
STATISTICS = {
    "lengths": lambda log: WalkStatistics(log).lengths(EDGES),
    "length moments": lambda log: WalkStatistics(log).length_moments(500),
    "starts": lambda log: WalkStatistics(log).starts(),
    "row norms": lambda log: WalkStatistics(log).row_norms(20),
    "run norms": lambda log: WalkStatistics(log).run_norms(20),
    "totals": lambda log: WalkStatistics(log).totals(40.0),
    "rows": lambda log: WalkStatistics(log).rows(12.0),
    "weighted rows": lambda log: WalkStatistics(log).rows(12.0, np.linspace(0.5, 2.0, len(ACTIONS))),
    "runs": lambda log: WalkStatistics(log).runs(5.0),
    "jumps": lambda log: WalkStatistics(log).jumps(4.0, np.arange(len(ACTIONS))),
    "some jumps": lambda log: WalkStatistics(log).jumps(4.0, np.array([0, 2, 5])),
    "shared actions": lambda log: WalkStatistics(log).shared_actions(64),
    "few shared actions": lambda log: WalkStatistics(log).shared_actions(2),
    "slopes": lambda log: WalkStatistics(log).slopes(EASINESS, WEIGHT, 4.0),
    "curvature": lambda log: WalkStatistics(log).curvature(EASINESS, WEIGHT, 4.0, 8.0),
    "abilities": lambda log: WalkStatistics(log).abilities(EASINESS, 4.0),
    "practice": lambda log: WalkStatistics(log).practice(EASINESS, 4.0),
    "staying": lambda log: WalkStatistics(log).staying(WEIGHT / 3.0, 4.0),
}


def make(sequences, outcomes):
    return Interactions.from_sequences(sequences, outcomes, actions=ACTIONS)


def learners(rng):
    """Ordinary learners, and extreme ones: very long, very able, all on one action, alternating."""
    yield list(rng.integers(0, 7, 12)), list(rng.integers(0, 2, 12))
    yield [0] * 400, [1] * 400
    yield [6] * 400, [0] * 400
    yield [0, 6] * 200, [1, 0] * 200
    yield list(range(7)) * 30, [1] * 210
    yield list(rng.integers(0, 7, 300)), list(rng.integers(0, 2, 300))
    yield [3], [1]
    yield [4], [0]


def test_no_vector_is_longer_than_its_norm_on_the_lattice():
    """Vectors of every direction that are scaled down: rounding shortens them, by less than a step per entry."""
    rng = np.random.default_rng(0)
    n_learners, n_columns = 2000, 7
    learner, column = np.divmod(np.arange(n_learners * n_columns), n_columns)
    total = clipped_counts(learner, column, rng.exponential(50.0, len(learner)), (n_learners, n_columns), 3.0)
    _, _, lattice = total.parts
    lengths = np.sqrt(np.bincount(learner, lattice**2))
    assert lengths.max() <= RESOLUTION
    assert lengths.min() > RESOLUTION - np.sqrt(n_columns) - 1


@pytest.mark.parametrize("name", STATISTICS)
def test_replacing_one_learner_moves_a_sum_by_its_sensitivity_at_most(name, make_log):
    rng = np.random.default_rng(0)
    others = make_log(rng, n_learners=15, n_actions=7, mean_length=20)
    rest = Interactions(others.action, others.outcome, others.offsets, ACTIONS)
    versions = [STATISTICS[name](joined(rest, make([s], [o]))) for s, o in learners(rng)]
    moved = [
        np.linalg.norm((a.values - b.values).astype(float))
        for i, a in enumerate(versions)
        for b in versions[:i]
    ]
    assert max(moved) <= versions[0].sensitivity
    # The bound is no exaggeration either: some pair of learners comes near it.
    near = {"totals": 0.5, "some jumps": 0.4, "slopes": 0.6, "curvature": 0.5, "abilities": 0.4}
    assert max(moved) >= near.get(name, 0.7) * versions[0].sensitivity


@pytest.mark.parametrize("name", STATISTICS)
def test_sums_of_parts_add_up(name, make_log):
    log = make_log(np.random.default_rng(1), n_learners=20, n_actions=7, mean_length=15)
    log = Interactions(log.action, log.outcome, log.offsets, ACTIONS)
    whole, parts = (
        STATISTICS[name](log),
        [STATISTICS[name](log.select(range(a, b))) for a, b in ((0, 8), (8, 20))],
    )
    np.testing.assert_array_equal(whole.values, (parts[0] + parts[1]).values)
    assert whole.sensitivity == parts[0].sensitivity


def test_counts_by_plain_python(make_log):
    """Without clipping, rows, runs and jumps are what one counts by hand."""
    log = make_log(np.random.default_rng(2), n_learners=12, n_actions=7, mean_length=15)
    log = Interactions(log.action, log.outcome, log.offsets, ACTIONS)
    walks = WalkStatistics(log)
    rows, runs, jumps = Counter(), Counter(), Counter()
    for a, b in pairwise(log.offsets):
        sequence = log.action[a:b].tolist()
        met = [action for action, _ in groupby(sequence)]
        rows.update(sequence)
        runs.update(met)
        jumps.update(pairwise(met))
    # Rounding towards zero loses less than one step per learner and entry.
    for total, wanted in (
        (walks.rows(1000.0), [rows[a] for a in range(7)]),
        (walks.runs(1000.0), [runs[a] for a in range(7)]),
        (walks.jumps(1000.0, np.arange(7)), [jumps[a, b] for a in range(7) for b in range(7)]),
    ):
        np.testing.assert_allclose(total.values * total.step, wanted, atol=12 * 1000.0 / RESOLUTION)


def test_a_learner_is_scaled_down_as_a_whole():
    total = WalkStatistics(make([[0] * 30 + [1] * 40], [[1] * 70])).rows(5.0)
    np.testing.assert_allclose(total.values[:2] * total.step, [3.0, 4.0], atol=1e-3)


@pytest.mark.parametrize("name", STATISTICS)
def test_parts_add_up_to_the_whole(name, make_log, monkeypatch):
    """To the last bit, however the learners are divided: sums are of whole numbers."""
    log = make_log(np.random.default_rng(6), n_learners=40, n_actions=7, mean_length=20)
    log = Interactions(log.action, log.outcome, log.offsets, ACTIONS)
    whole = STATISTICS[name](log)
    for most in (10, 150, 400):
        monkeypatch.setattr(parts, "PART_ROWS", most)
        found = STATISTICS[name](log)
        np.testing.assert_array_equal(found.values, whole.values)
        np.testing.assert_array_equal(found.step, whole.step)
        assert found.sensitivity == whole.sensitivity


@pytest.mark.parametrize("name", ["repeats", "successes", "new_jumps"])
def test_numbers_of_learners_are_in_order_whatever_the_parts(name, make_log, monkeypatch):
    log = make_log(np.random.default_rng(7), n_learners=40, mean_length=20)
    whole = getattr(WalkStatistics(log), name)()
    monkeypatch.setattr(parts, "PART_ROWS", 100)
    np.testing.assert_array_equal(getattr(WalkStatistics(log), name)(), whole)


def test_rows_past_the_longest_are_ignored(make_log):
    log = make_log(np.random.default_rng(3), n_learners=9, mean_length=20)
    short = first_rows(log, 7)
    assert short.n_learners == log.n_learners
    for i in range(9):
        mine = log.action[log.offsets[i] : log.offsets[i + 1]][:7]
        np.testing.assert_array_equal(short.action[short.offsets[i] : short.offsets[i + 1]], mine)


def test_own_ability_by_another_optimiser(make_log):
    log = make_log(np.random.default_rng(4), n_learners=10, n_actions=5, mean_length=15)
    pairs, easiness = PairCounts.of(log), np.linspace(-1, 1, 5)
    found = unexplained(pairs, easiness)
    for i in range(10):
        mine = slice(pairs.offsets[i], pairs.offsets[i + 1])
        e, n, s = easiness[pairs.action[mine]], pairs.attempts[mine], pairs.successes[mine]
        best = minimize_scalar(
            lambda x, e=e, n=n, s=s: x * x / 2 + np.sum(n * np.logaddexp(0, e + x) - s * (e + x)),
            bounds=(-9, 9),
            method="bounded",
            options={"xatol": 1e-10},
        ).x
        assert found.ability[i] == pytest.approx(best, abs=1e-5)
        chance = 1 / (1 + np.exp(-(e + best)))
        np.testing.assert_allclose(found.residual[mine], s - n * chance, atol=1e-5)


def test_rounds_lead_to_the_rasch_fit(make_log):
    """Without noise, Newton rounds with the curvature of each action end at the penalised difficulties."""
    log = make_log(np.random.default_rng(5), n_learners=300, n_actions=6, mean_length=20)
    pairs, easiness = PairCounts.of(log), np.zeros(6)
    for _ in range(60):
        state = unexplained(pairs, easiness)
        slope = np.bincount(pairs.action, state.residual, 6)
        easiness = easiness + slope / (np.bincount(pairs.action, state.curvature, 6) + 1.0)
    fitted = fit_rasch(log)
    wanted = fitted.intercept - fitted.difficulty
    np.testing.assert_allclose(easiness - easiness.mean(), wanted - wanted.mean(), atol=0.05)
