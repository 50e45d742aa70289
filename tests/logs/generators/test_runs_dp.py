"""`runs-dp`: walks show what learners did; a declared course keeps its order."""

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators import runs_dp
from understudy.logs.generators.budget import Noisy, budget
from understudy.logs.generators.calibration import (
    FIRST_ROWS,
    MOST_ROWS,
    N_ROUNDS,
    rows_of_round,
    spread_abilities,
)
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import (
    SHARES,
    RunsDP,
    _row_weights,
    _with_margins,
    jumps_seen,
    shares_for,
)
from understudy.logs.interactions import POOLED, Interactions
from understudy.logs.models.cells import N_PRACTICE, new_jumps, practice_cells, practice_table
from understudy.logs.models.runs import RunStates
from understudy.logs.simulated.classroom import Classroom
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


def test_short_sequences_leave_as_often_as_learners_did():
    """A last row has no next one: counted as a row that leaves, it had learners with nine rows leave far too often."""
    shape = Classroom(n_learners=600, n_actions=20, median_length=7.0, length_spread=0.6)
    log = shape.simulate(np.random.default_rng(0)).declare()
    found = measure(Real(log, log), synthetic(RunsDP, log, 30.0))
    assert found["leaving_success_gap"] < 0.03
    assert found["leaving_failure_gap"] < 0.05
    states = [RunStates.of(each).stays for each in (log, synthetic(RunsDP, log, 30.0))]
    real, made = (float((stays == 1).sum() / (stays >= 0).sum()) for stays in states)
    assert made == pytest.approx(real, abs=0.02)


def test_noise_of_the_curvature_has_no_difficulty_run_away():
    """A fit whose noisy curvature is a tenth of the real one: taken as it is, two actions were at 7 and 8."""
    seed = (300, 5, 20, 2026, 2)
    log = Classroom(n_learners=300, n_actions=5).simulate(np.random.default_rng(seed)).declare()
    generator = fitted(RunsDP(2.0), log, (*seed, 0))
    assert generator.transcript_["curvature 0"].values[0] < 150.0
    assert np.abs(generator.easiness_ - np.median(generator.easiness_)).max() < 4.0


def test_samples_have_the_noisy_shares():
    log = CLASSROOM.simulate(np.random.default_rng(1)).declare()
    generator = fitted(RunsDP(2.0), log)
    sample = generator.sample(None, np.random.default_rng(0))
    shares = np.bincount(sample.action, minlength=12) / sample.n_rows
    assert np.abs(shares - generator.popularity_).sum() / 2 < 0.01


def test_jumps_tell_of_runs_where_actions_are_few():
    """Noisy runs and noisy jumps of the same walks: both together are closer than runs alone."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(8, 2.0))
    jumps = 4000.0 * np.outer(share, share)
    np.fill_diagonal(jumps, 0.0)
    runs = 5000.0 * jumps.sum(axis=0) / jumps.sum()
    errors = []
    for _ in range(50):
        noisy = Noisy(runs + rng.normal(0, 300.0, 8), 300.0)
        matrix = Noisy((jumps + rng.normal(0, 20.0, jumps.shape)).ravel(), 20.0)
        both = _with_margins(noisy, matrix)
        errors.append([np.mean((each.values - runs) ** 2) for each in (noisy, both)])
        assert both.sigma < noisy.sigma
    alone, together = np.mean(errors, axis=0)
    assert together < 0.2 * alone
    # A matrix of some actions alone, or of noise alone, tells nothing.
    assert _with_margins(noisy, Noisy(matrix.values[:49], 20.0)) is noisy
    assert _with_margins(noisy, Noisy(rng.normal(0, 20.0, 64), 20.0)) is noisy


def test_rare_actions_get_less_noise_unless_they_are_hidden_in_it():
    counts = 10_000.0 / np.arange(1, 21)
    runs = Noisy(counts, 1.0)
    shares = counts / counts.sum()
    little, much = (_row_weights(runs, noise) for noise in (0.0, 1.0))
    # Noise goes with the inverse of the weight; what all learners together may add stays the same.
    assert (np.diff(little) > 0).all()
    assert little[-1] / little[0] > 2
    assert much[-1] / much[0] == pytest.approx(1.0, abs=0.02)
    for weights in (little, much):
        assert shares @ weights**2 == pytest.approx(1.0, rel=0.01)


def test_jumps_are_asked_for_where_they_can_be_seen():
    """By public numbers alone; what they leave is divided among the others."""
    rho = budget(2.0, 1e-6)
    few, some, many = (shares_for(n, 100, rho) for n in (50, 200, 2000))
    assert "jumps" not in few
    assert 0 < some["jumps"] < many["jumps"] == SHARES["jumps"]
    assert all(few[name] == some[name] == SHARES[name] for name in ("rows", "runs", "starts"))
    assert sum(few.values()) < sum(some.values()) < sum(many.values())
    seen = [jumps_seen(n, m, rho) for n, m in ((200, 20), (200, 100), (200, 500))]
    assert seen == sorted(seen, reverse=True)
    assert shares_for(50, None, rho)["jumps"] == SHARES["jumps"]
    log = Classroom(n_learners=60, n_actions=100).simulate(np.random.default_rng(0))
    assert "jumps 0" not in fitted(RunsDP(2.0), log.declare()).transcript_
    assert "jumps 0" in fitted(RunsDP(2.0), log).transcript_


def test_abilities_are_spread_evenly_over_lengths():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 500, 1000)
    ability = spread_abilities(lengths, 0.8, rng)
    assert ability.std() == pytest.approx(0.8, abs=0.02)
    longest = np.argsort(lengths)[-50:]
    # Fifty drawn one by one would have a mean that is off by 0.11 as a rule.
    assert abs(ability[longest].mean()) < 0.05


def test_rare_actions_share_a_row_of_jumps(monkeypatch):
    """The row is that of an action with a row of its own, which no jump leads back to."""
    log = CLASSROOM.simulate(np.random.default_rng(1)).declare()
    monkeypatch.setattr(runs_dp, "jumps_seen", lambda *_: 0.0)
    whole = fitted(RunsDP(8.0), log)
    np.testing.assert_array_equal(whole.jump_source_, np.arange(12))
    monkeypatch.setattr(runs_dp, "MOST_JUMP_ACTIONS", 5)
    some = fitted(RunsDP(8.0), log)
    assert len(some.jump_) == 6
    assert np.bincount(some.jump_source_).tolist() == [1, 1, 1, 1, 1, 7]
    rows = some.jump_[some.jump_source_]
    np.fill_diagonal(rows, 0.0)
    np.testing.assert_allclose(rows / rows.sum(axis=1, keepdims=True), whole.jump_, rtol=1e-9)
    drawn = some.sample(2000, np.random.default_rng(0))
    jumps = (drawn.learner[1:] == drawn.learner[:-1]) & (np.diff(drawn.action) != 0)
    rare = some.jump_source_[drawn.action[:-1]] == 5
    # They lead everywhere, to other rare actions as well.
    found = np.bincount(drawn.action[1:][jumps & rare], minlength=12)
    assert (found > 0).all()


def test_rounds_walk_ever_more_rows_of_a_large_log():
    rows = [rows_of_round(turn, MOST_ROWS, 40) for turn in range(N_ROUNDS)]
    assert rows == sorted(rows)
    assert (rows[0], rows[-1]) == (FIRST_ROWS, MOST_ROWS)
    # A small log, or one of very many actions, has all of its rows in every round.
    assert {rows_of_round(turn, 5000.0, 40) for turn in range(N_ROUNDS)} == {5000.0}
    assert {rows_of_round(turn, MOST_ROWS, 1000) for turn in range(N_ROUNDS)} == {MOST_ROWS}
