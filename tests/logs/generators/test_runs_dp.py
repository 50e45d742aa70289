"""`runs-dp`: walks show what learners did; a declared course keeps its order."""

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.calibration import spread_abilities
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import POOLED, Interactions
from understudy.logs.models.cells import N_PRACTICE, new_jumps, practice_cells, practice_table
from understudy.logs.simulate import Classroom
from understudy.logs.utility import Real, measure


def synthetic(kind, log, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    return kind(epsilon).fit(log, rng, seeded_noise(rng)).sample(None, rng)


def fitted(generator, log, seed=0):
    rng = np.random.default_rng(seed)
    return generator.fit(log, rng, seeded_noise(rng))


CLASSROOM = Classroom(n_learners=400, n_actions=12)


def test_with_little_noise_walks_show_what_learners_did():
    log = CLASSROOM.simulate(np.random.default_rng(1)).declare()
    found = measure(Real(log, log), synthetic(RunsDP, log, 60.0))
    assert found["success_gap"] < 0.02
    assert found["curve_gap"] < 0.05
    assert max(found["leaving_success_gap"], found["leaving_failure_gap"]) < 0.04
    assert found["transition_tv"] < 0.12
    assert found["wrmse_centred"] < 0.2


def test_what_learners_would_recognise_survives_noise_that_a_chain_does_not_show():
    """A control: the chain of `markov-dp` knows nothing of outcomes, whatever the noise. Means of four fits each."""
    log = CLASSROOM.simulate(np.random.default_rng(1)).declare()
    real = Real(log, log)
    runs, chain = (
        [measure(real, synthetic(kind, log, 8.0, seed)) for seed in range(4)] for kind in (RunsDP, MarkovDP)
    )
    for gap in ("success_gap", "leaving_failure_gap", "curve_gap", "prediction_loss"):
        assert sum(fit[gap] for fit in runs) < sum(fit[gap] for fit in chain)


def test_sequences_of_thousands_of_rows_are_read_where_noisy_lengths_show_them():
    """Read up to 1,000 rows each, two thirds of this log would be lost."""
    shape = Classroom(
        n_learners=150, n_actions=12, median_length=2500.0, length_spread=0.5, longest=8000, quit=0.0
    )
    log = shape.simulate(np.random.default_rng(3)).declare()
    made = {longest: fitted(RunsDP(8.0, longest=longest), log) for longest in (1000, 20_000)}
    assert made[1000].longest_ == 1000
    assert made[1000].sample(None, np.random.default_rng(0)).n_rows < 0.4 * log.n_rows
    assert made[20_000].longest_ > 3000
    assert made[20_000].sample(None, np.random.default_rng(0)).n_rows > 0.7 * log.n_rows


def test_usual_sequences_are_read_as_before_whatever_the_bound():
    log = CLASSROOM.simulate(np.random.default_rng(1)).declare()
    assert {fitted(RunsDP(epsilon), log).longest_ for epsilon in (1.0, 8.0)} == {1000}
    assert fitted(RunsDP(8.0, longest=200), log).longest_ == 200


def course(n_learners, n_actions, rng):
    """Learners who work through a course: most steps lead to the next action."""
    walks = []
    for _ in range(n_learners):
        steps = np.append(rng.integers(0, 20), rng.choice([0, 1, 1, 1, 1, 2, -1], rng.integers(10, 60)))
        walks.append(np.clip(np.cumsum(steps), 0, n_actions - 1))
    outcomes = [(rng.random(len(walk)) < 0.7).astype(int) for walk in walks]
    return Interactions.from_sequences(walks, outcomes, actions=[f"step {i:03d}" for i in range(n_actions)])


def test_a_declared_order_keeps_steps_that_noise_would_hide():
    log = course(100, 120, np.random.default_rng(0))
    ordered = log.with_vocabulary(log.actions, np.arange(120) // 20)
    plain = log.with_vocabulary(log.actions)
    found = [
        measure(Real(given, given), synthetic(RunsDP, given, 8.0))["transition_tv"]
        for given in (ordered, plain)
    ]
    assert found[0] < 0.5 < 0.65 < found[1]


def test_chapters_are_those_of_the_declared_names():
    log = Interactions.from_sequences([[0, 1, 2]], [[1, 0, 1]], actions=["b", "x", "a"])
    declared = log.with_vocabulary(["a", "b", "c"], [0, 0, 1])
    assert declared.actions == ("a", "b", "c", POOLED)
    assert declared.chapters.tolist() == [0, 0, 1, 2]
    assert declared.action.tolist() == [1, 3, 0]
    assert declared.select([0]).chapters is declared.chapters
    assert declared.recode(["a", "b", POOLED]).chapters is None


@pytest.mark.oracle
def test_cells_of_practice_and_new_jumps_against_plain_loops():
    rng = np.random.default_rng(2)
    sequences = [rng.integers(0, 3, n) for n in (0, 1, 40, 25)]
    outcomes = [rng.integers(0, 2, len(walk)) for walk in sequences]
    log = Interactions.from_sequences(sequences, outcomes, actions=list("abc"))
    cells, new = [], []
    for walk, results in zip(sequences, outcomes, strict=True):
        seen = {}
        for row, (action, outcome) in enumerate(zip(walk, results, strict=True)):
            good, bad = seen.get(action, (0, 0))
            n = min(good + bad, 5)
            cells.append(0 if n == 0 else 2 * n - (0 if good >= 2 * bad else 1))
            if row and walk[row - 1] != action:
                new.append(int(action not in seen))
            seen[action] = (good + outcome, bad + 1 - outcome)
    assert practice_cells(log).tolist() == cells
    assert new_jumps(log).tolist() == new
    table = practice_table(np.arange(N_PRACTICE, dtype=float))
    assert table[0, 0] == 0
    assert table[1, 0] == 2
    assert table[0, 1] == 1
    assert table[5, 5] == 9
    assert table[2, 1] == 6


def test_abilities_are_spread_evenly_over_lengths():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 500, 1000)
    ability = spread_abilities(lengths, 0.8, rng)
    assert ability.std() == pytest.approx(0.8, abs=0.02)
    longest = np.argsort(lengths)[-50:]
    # Fifty drawn one by one would have a mean that is off by 0.11 as a rule.
    assert abs(ability[longest].mean()) < 0.05
