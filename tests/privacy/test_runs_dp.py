"""`runs-dp`: what it really spends on the worst neighbours. What it shares with `markov-dp` is in test_markov_dp.py."""

import numpy as np
import pytest

from tests.privacy.support.transcripts import Recording, costs, transcripts
from tests.privacy.support.worst_pairs import logs, random_logs, released_log
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.budget import VOCABULARY_SHARE, Noisy, budget
from understudy.logs.generators.private_sums import RESOLUTION, WalkStatistics, signed_sum
from understudy.logs.generators.runs_dp import (
    FEW_ROUNDS,
    MANY_ROUNDS,
    ORDER_SHARE,
    SHARES,
    RunsDP,
    jumps_seen,
)
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

# The draws of a fit, in order: one for each statistic, but two for the norms.
CHAIN = (
    "lengths", "length moments", "starts", "totals", "first stays", "second stays", "first successes",
    "second successes", "first new jumps", "second new jumps", "norms", "norms", "runs", "rows", "jumps",
)  # fmt: skip
FEW = ("slopes 1", "curvature", "slopes 2", "last curvature")
MANY = (*FEW, "slopes 3", "slopes 4")


def draws_and_shares(*, order=False, many=False, seen=1.0):
    """`seen` is how much of their share jumps have; the rest is divided among all."""
    rounds = MANY_ROUNDS if many else FEW_ROUNDS
    shares = {**SHARES, **rounds, **(ORDER_SHARE if order else {})}
    shares["jumps"] *= seen
    chain = (*(CHAIN if seen else CHAIN[:-1]), *(("order",) if order else ()), "staying")
    return (*chain, *(MANY if many else FEW), "abilities", "practice"), shares


def losses(pair, **options):
    found = transcripts(lambda log, noise: released_log(log, noise, kind=RunsDP, **options), pair)
    return np.array([cost.rho for cost in costs(*found)])


def allowed(rho, **kind):
    draws, shares = draws_and_shares(**kind)
    return np.array([rho * shares[name] / sum(shares.values()) / draws.count(name) for name in draws])


def in_order(log):
    return log.with_vocabulary(log.actions, np.arange(log.n_actions) // 10)


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.9), (8.0, 0.95)])
def test_no_sum_loses_more_than_its_share_and_all_of_them_nearly_that(epsilon, least):
    rho = budget(epsilon, 1e-6)
    found = losses([log.declare() for log in logs()], epsilon=epsilon)
    assert (found <= allowed(rho, many=True)).all()
    claimed, measured = np.sqrt(2 * rho), np.sqrt(2 * found.sum())
    assert least * claimed < measured <= claimed


def test_without_outcomes_the_rest_has_the_whole_budget():
    rho = budget(8.0, 1e-6)
    found = losses([log.without_outcomes().declare() for log in logs()])
    shares = {
        name: share
        for name, share in {**SHARES, **MANY_ROUNDS}.items()
        if not any(word in name for word in ("slopes", "curvature", "abilities", "successes", "practice"))
    }
    draws = [*(name for name in CHAIN if name in shares), "staying"]
    limits = [rho * shares[name] / sum(shares.values()) / draws.count(name) for name in draws]
    assert len(found) == len(limits)
    assert (found <= limits).all()
    assert 0.8 * rho < found.sum() <= rho


def test_an_order_is_paid_for_by_all_others():
    rho = budget(8.0, 1e-6)
    found = losses([in_order(log) for log in logs()])
    assert (found <= allowed(rho, order=True, many=True)).all()
    # Jumps of the two learners have displacements in common, so the order moves by less than it could.
    assert 0.85 * rho < found.sum() <= rho


def test_a_vocabulary_is_paid_for_by_all_others():
    epsilon, delta = 8.0, 1e-6
    found = losses(logs(), epsilon=epsilon, delta=delta)
    rho = budget(epsilon + np.log1p(-delta / 2), delta / 2)
    assert (
        found <= np.array([VOCABULARY_SHARE * rho, *((1 - VOCABULARY_SHARE) * allowed(rho, many=True))])
    ).all()


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("epsilon", [8.0, 0.5])
def test_no_pair_that_was_drawn_loses_more(order, epsilon):
    """At the smaller epsilon so few learners' jumps are not asked for, and rows may lose what jumps would have."""
    rng = np.random.default_rng(0)
    rho = budget(epsilon, 1e-6)
    some = []
    for _ in range(3):
        pair = [in_order(log) if order else log.declare() for log in random_logs(rng)]
        some.append(jumps_seen(pair[0].n_learners, pair[0].n_actions, rho))
        found = losses(pair, epsilon=epsilon)
        assert (found <= allowed(rho, order=order, seen=some[-1])).all()
        assert found.sum() <= rho
    assert (max(some) > 0) == (epsilon > 1)


def test_the_budget_is_spent_whole_and_once():
    rng = np.random.default_rng(0)
    noise = Recording(rng)
    RunsDP(2.0, longest=100).fit(logs()[0].declare(), rng, noise)
    draws, shares = draws_and_shares(many=True)
    assert len(noise.draws) == len(draws)
    assert set(draws) == set(shares)


def test_statistics_of_one_learner_move_no_further_than_stated():
    """Against sums of whole logs, learner by learner: everybody is replaced by everybody else."""
    rng = np.random.default_rng(3)
    sequences = [rng.integers(0, 4, n) for n in (0, 1, 3, 30, 200)]
    outcomes = [(rng.random(len(walk)) < 0.3 + 0.4 * rng.random()).astype(int) for walk in sequences]
    stay, easiness = rng.random(4), rng.normal(size=4)
    parts = {}
    for walk, results in zip(sequences, outcomes, strict=True):
        log = in_order(Interactions.from_sequences([walk], [results], actions=list("abcd")))
        walks = WalkStatistics(log)
        new, n_jumps = walks.new_jumps()
        for name, total in {
            "staying": walks.staying(np.append(stay, 0.5), 4.0),
            "practice": walks.practice(np.append(easiness, 0.0), 4.0),
            "displacements": walks.displacements(10.0),
            "stays": signed_sum(walks.repeats() - 0.6 * log.lengths, 5.0),
            "new jumps": signed_sum(new - 0.5 * n_jumps, 5.0),
        }.items():
            parts.setdefault(name, []).append((total.values.astype(float), total.sensitivity))
    for name, found in parts.items():
        distances = [np.linalg.norm(a - b) for a, _ in found for b, _ in found]
        assert 0 < max(distances) <= found[0][1], name


def test_jumps_begin_with_a_learners_second_run():
    log = in_order(Interactions.from_sequences([[0, 0, 2], [1, 3], [], [3]], [[0, 1, 1], [1, 0], [], [1]]))
    walks = WalkStatistics(log)
    new, n_jumps = walks.new_jumps()
    assert n_jumps.tolist() == new.tolist() == [1, 1, 0, 0]
    found = walks.displacements(10.0)
    assert (found.values * found.step).round(3).nonzero()[0].tolist() == [1]  # two jumps, both by two


def test_a_signed_sum_is_cut_on_both_sides():
    total = signed_sum(np.array([-9.0, 2.0, 3.0]), 3.0)
    assert total.values == pytest.approx([2.0 / 3.0 * RESOLUTION], abs=1)
    assert total.sensitivity * total.step == pytest.approx(6.0)


@pytest.mark.parametrize("epsilon", [0.01, 50.0])
@pytest.mark.parametrize("declared", [True, False])
def test_no_epsilon_and_no_log_is_too_small(epsilon, declared):
    log = Interactions.from_sequences([[0], [0, 1], [1]], [[1], [0, 1], [1]])
    rng = np.random.default_rng(0)
    fitted = RunsDP(epsilon).fit(log.declare() if declared else log, rng, seeded_noise(rng))
    sample = fitted.sample(20, rng)
    assert sample.n_learners == 20
    assert (sample.lengths >= 1).all()


def test_what_each_learner_adds_explains_the_released_sums():
    """The attack that sees the noisy sums gets each learner's part of every one of them."""
    log = Classroom(n_learners=200, n_actions=6).simulate(np.random.default_rng(1)).declare()
    fitted = RunsDP(8.0).fit(log, np.random.default_rng(0), seeded_noise(np.random.default_rng(0)))
    sums = fitted.learner_sums(log)
    left = sums.released - np.asarray(sums.added.sum(axis=0)).ravel()
    # What is left is noise, in units of its own standard deviation.
    assert np.std(left) == pytest.approx(1.0, abs=0.15)
    assert all(isinstance(noisy, Noisy) for noisy in fitted.transcript_.values())
