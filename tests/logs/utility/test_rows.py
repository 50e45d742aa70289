"""Utility metrics against plain definitions, scipy and scikit-learn; their best values and directions."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.models.next_outcome import fit_next_outcome
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.utility import Real, learning_curve, leaving_rates, measure
from understudy.logs.utility.rows import ROW_METRICS

pytestmark = pytest.mark.oracle

SHAPE = {"n_learners": 60, "n_actions": 9, "mean_length": 14}


@pytest.fixture(scope="module")
def logs(make_log):
    rng = np.random.default_rng(0)
    training, held_out = make_log(rng, **SHAPE), make_log(rng, **SHAPE)
    # One action that nobody in training tried, one that the synthetic log lacks.
    training = training.keep_rows(training.action != 3)
    synthetic = parse_generator("markov").fit(training, rng, seeded_noise(rng)).sample(40, rng)
    return training, held_out, synthetic.keep_rows(synthetic.action != 5)


def sequences_of(log):
    return [log.action[a:b].tolist() for a, b in pairwise(log.offsets)]


def total_variation(a, b):
    n_a, n_b = sum(a.values()), sum(b.values())
    return sum(abs(a[k] / n_a - b[k] / n_b) for k in a.keys() | b.keys()) / 2


def steps(log):
    return Counter(step for sequence in sequences_of(log) for step in pairwise(sequence))


def repeats(log):
    return [n for sequence in sequences_of(log) for n in Counter(sequence).values()]


def success_by_attempt(log):
    tried = {number: [] for number in range(1, 7)}
    for a, b in pairwise(log.offsets):
        attempts = Counter()
        for action, outcome in zip(log.action[a:b].tolist(), log.outcome[a:b].tolist(), strict=True):
            attempts[action] += 1
            tried.get(attempts[action], []).append(outcome)
    return {number: np.mean(outcomes) for number, outcomes in tried.items() if outcomes}


def share_leaving(log, outcome):
    left = [
        log.action[row] != log.action[row + 1]
        for a, b in pairwise(log.offsets)
        for row in range(a, b - 1)
        if log.outcome[row] == outcome
    ]
    return np.mean(left)


def plain(training, held_out, synthetic):
    share = Counter(training.action.tolist())
    real, fake = fit_rasch(training).difficulty, fit_rasch(synthetic).difficulty
    error = {j: real[j] - fake[j] for j in share}
    weight = {j: n / training.n_rows for j, n in share.items()}
    mean = sum(weight[j] * error[j] for j in share)

    real_curve, fake_curve = success_by_attempt(training), success_by_attempt(synthetic)

    def auc(log):
        return roc_auc_score(held_out.outcome, fit_next_outcome(log).log_odds(held_out))

    return {
        "rmse": np.sqrt(sum(e**2 for e in error.values()) / len(error)),
        "wrmse": np.sqrt(sum(weight[j] * error[j] ** 2 for j in share)),
        "wrmse_centred": np.sqrt(sum(weight[j] * (error[j] - mean) ** 2 for j in share)),
        "action_tv": total_variation(share, Counter(synthetic.action.tolist())),
        "transition_tv": total_variation(steps(training), steps(synthetic)),
        "length_ks": ks_2samp(training.lengths, synthetic.lengths).statistic,
        "repeats_ks": ks_2samp(repeats(training), repeats(synthetic)).statistic,
        "success_gap": abs(np.mean(training.outcome) - np.mean(synthetic.outcome)),
        "curve_gap": max(abs(rate - fake_curve[number]) for number, rate in real_curve.items()),
        "leaving_success_gap": abs(share_leaving(training, 1) - share_leaving(synthetic, 1)),
        "leaving_failure_gap": abs(share_leaving(training, 0) - share_leaving(synthetic, 0)),
        "prediction_auc": auc(synthetic),
        "prediction_loss": auc(training) - auc(synthetic),
    }


def test_every_metric_by_its_definition(logs):
    training, held_out, synthetic = logs
    found, wanted = measure(Real(training, held_out), synthetic), plain(*logs)
    assert list(found) == [metric.name for metric in ROW_METRICS]
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


def test_the_training_log_itself_is_the_best(logs):
    training, held_out, _ = logs
    shuffled = training.select(np.random.default_rng(1).permutation(training.n_learners))
    found = measure(Real(training, held_out), shuffled)
    for metric in ROW_METRICS:
        if metric.name != "prediction_auc":
            assert metric.best == 0.0
            assert found[metric.name] == pytest.approx(0.0, abs=1e-6), metric.name


def test_an_absent_action_counts_with_difficulty_zero(logs):
    training, held_out, synthetic = logs
    assert fit_rasch(synthetic).difficulty[5] == 0.0
    real = Real(training, held_out)
    empty = measure(real, training.select(np.empty(0, dtype=int)))
    present = np.bincount(training.action, minlength=9) > 0
    assert not present[3]
    assert empty["rmse"] == pytest.approx(np.sqrt(np.mean(real.difficulty[present] ** 2)))


def reversed_actions(log):
    return Interactions(log.n_actions - 1 - log.action, log.outcome, log.offsets, log.actions)


def turned_outcomes(log):
    return Interactions(log.action, 1 - log.outcome, log.offsets, log.actions)


def joined_learners(log):
    return Interactions(log.action, log.outcome, log.offsets[::2], log.actions)


def one_action(log):
    return Interactions(np.zeros_like(log.action), log.outcome, log.offsets, log.actions)


DAMAGED_BY_TURNING = {
    "rmse",
    "wrmse",
    "wrmse_centred",
    "success_gap",
    "curve_gap",
    "prediction_auc",
    "prediction_loss",
}
DAMAGED_BY_ONE_ACTION = {
    "rmse",
    "wrmse",
    "action_tv",
    "transition_tv",
    "repeats_ks",
    "leaving_success_gap",
    "leaving_failure_gap",
}


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (reversed_actions, {"rmse", "wrmse", "wrmse_centred", "action_tv", "transition_tv"}),
        (turned_outcomes, DAMAGED_BY_TURNING),
        (joined_learners, {"length_ks", "repeats_ks"}),
        (one_action, DAMAGED_BY_ONE_ACTION),
    ],
)
def test_a_damaged_log_is_worse(logs, damage, names):
    training, held_out, _ = logs
    assert training.n_learners % 2 == 0
    real = Real(training, held_out)
    good, bad = measure(real, training), measure(real, damage(training))
    for metric in ROW_METRICS:
        if metric.name in names:
            gain = good[metric.name] - bad[metric.name]
            assert (gain < -0.02) if metric.direction == "lower" else (gain > 0.02), metric.name


def test_a_log_of_nothing_is_never_better_than_a_wrong_one(logs):
    """Distances are at their largest when there is nothing to compare."""
    training, held_out, _ = logs
    real = Real(training, held_out)
    empty = measure(real, training.select(np.empty(0, dtype=int)))
    distances = ("action_tv", "transition_tv", "length_ks", "repeats_ks")
    gaps = ("success_gap", "curve_gap", "leaving_success_gap", "leaving_failure_gap")
    for name in distances + gaps:
        assert empty[name] == pytest.approx(1.0), name
    assert empty["prediction_auc"] == 0.5
    single_rows = Interactions.from_sequences([[j] for j in range(9)], actions=training.actions)
    single = measure(real, single_rows)
    for name in ("transition_tv", "curve_gap", "leaving_success_gap", "leaving_failure_gap"):
        assert single[name] == pytest.approx(1.0), name


def test_outcomes_all_alike_cannot_be_predicted(logs):
    training, held_out, synthetic = logs
    right = Interactions(held_out.action, np.ones_like(held_out.outcome), held_out.offsets, held_out.actions)
    assert measure(Real(training, right), synthetic)["prediction_auc"] == 0.5


def test_the_learning_curve_and_leaving_of_a_small_log():
    """Two learners, by hand: who comes back to an action goes on counting; the last row leaves nowhere."""
    actions, outcomes = [[0, 0, 1, 0], [1, 1]], [[0, 1, 1, 1], [0, 1]]
    log = Interactions.from_sequences(actions, outcomes)
    # First attempts: 0, 1, 0; second ones: 1, 1; a third one: 1.
    np.testing.assert_allclose(learning_curve(log), [1 / 3, 1, 1, np.nan, np.nan, np.nan])
    # After a failure: stays, stays; after a success: leaves, leaves.
    assert leaving_rates(log).tolist() == [0, 1]


def test_what_the_real_log_lacks_is_not_compared():
    once = Interactions.from_sequences([[0], [1]], [[0], [1]])
    often = Interactions.from_sequences([[0, 0, 0], [1, 0]], [[0, 1, 1], [1, 0]])
    found = measure(Real(once, often), often)
    assert found["curve_gap"] == pytest.approx(abs(1 / 2 - 1 / 3))
    assert found["leaving_success_gap"] == found["leaving_failure_gap"] == 0
