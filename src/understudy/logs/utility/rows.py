"""Utility of a log's rows: actions, steps, lengths, and success where there are outcomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.description import attempts_of_pairs
from understudy.logs.interactions import IntArray, pair_codes
from understudy.logs.models.markov import TransitionCounts
from understudy.logs.utility.comparison import (
    Comparison,
    Metric,
    action_shares,
    kolmogorov_smirnov,
    learning_curve,
    rate_gaps,
    rates,
    total_variation,
)

Floats = NDArray[np.float64]


def rmse(comparison: Comparison) -> float:
    """Root mean squared error over the actions of the training log (Vie, Rigaux and Minn 2022, section 4.2)."""
    present = comparison.real.difficulty_weights > 0
    return float(np.sqrt(np.mean(comparison.difficulty_error[present] ** 2))) if present.any() else 0.0


def wrmse(comparison: Comparison) -> float:
    """The same, weighted by the share of each action in the training log (Vie, Rigaux and Minn 2022, section 4.2)."""
    return float(np.sqrt(np.sum(comparison.real.difficulty_weights * comparison.difficulty_error**2)))


def wrmse_centred(comparison: Comparison) -> float:
    """The weighted error after the mean difference is taken out: the location of the scale is free."""
    weights, error = comparison.real.difficulty_weights, comparison.difficulty_error
    return float(np.sqrt(np.sum(weights * (error - np.sum(weights * error)) ** 2)))


def action_tv(comparison: Comparison) -> float:
    """Total variation of the shares of actions."""
    return total_variation(comparison.real.shares - action_shares(comparison.synthetic))


def transition_tv(comparison: Comparison) -> float:
    """Total variation of the shares of steps from one action to the next."""
    real = _inner_steps(comparison.real.steps)
    synthetic = _inner_steps(TransitionCounts.of(comparison.synthetic))
    keys = np.union1d(real[0], synthetic[0])
    difference = np.zeros(len(keys))
    difference[np.searchsorted(keys, real[0])] += real[1]
    difference[np.searchsorted(keys, synthetic[0])] -= synthetic[1]
    return total_variation(difference)


def length_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of sequence lengths."""
    return kolmogorov_smirnov(comparison.real.training.lengths, comparison.synthetic.lengths)


def repeats_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of the number of attempts of a learner at an action."""
    return kolmogorov_smirnov(
        attempts_of_pairs(comparison.real.training)[1], attempts_of_pairs(comparison.synthetic)[1]
    )


def success_gap(comparison: Comparison) -> float:
    """Difference of the success rates of all rows."""
    real, synthetic = (
        rates(np.zeros(log.n_rows, dtype=np.int8), log.success, 1)
        for log in (comparison.real.training, comparison.synthetic)
    )
    return float(rate_gaps(real, synthetic)[0])


def curve_gap(comparison: Comparison) -> float:
    """Largest difference of the success rates by attempt at an action."""
    return float(rate_gaps(comparison.real.learning_curve, learning_curve(comparison.synthetic)).max())


def leaving_success_gap(comparison: Comparison) -> float:
    """Difference of the shares of successes after which the learner goes to another action."""
    return float(comparison.leaving_gaps[1])


def leaving_failure_gap(comparison: Comparison) -> float:
    """Difference of the shares of failures after which the learner goes to another action."""
    return float(comparison.leaving_gaps[0])


def prediction_auc(comparison: Comparison) -> float:
    """AUC on real learners of the next-outcome model trained on synthetic ones."""
    return comparison.prediction_auc


def prediction_loss(comparison: Comparison) -> float:
    """AUC on real learners lost by training the next-outcome model on synthetic ones."""
    return comparison.real.prediction_auc - comparison.prediction_auc


def _inner_steps(counts: TransitionCounts) -> tuple[IntArray, Floats]:
    """Keys and shares of the steps between two actions; starts and ends left out."""
    inner = (counts.source < counts.n_actions) & (counts.target < counts.n_actions)
    key = pair_codes(counts.source[inner], counts.target[inner], counts.n_actions)
    total = counts.count[inner].sum()
    return key, counts.count[inner] / max(total, 1.0)


ROW_METRICS: tuple[Metric, ...] = (
    Metric(
        "rmse",
        "error of the difficulties, every action counting the same",
        0.0,
        "lower",
        rmse,
        about="outcomes",
    ),
    Metric(
        "wrmse",
        "error of the difficulties, frequent actions counting more",
        0.0,
        "lower",
        wrmse,
        about="outcomes",
    ),
    Metric(
        "wrmse_centred",
        "the weighted error when only differences of difficulty matter",
        0.0,
        "lower",
        wrmse_centred,
        about="outcomes",
    ),
    Metric("action_tv", "share of rows with another action than they should have", 0.0, "lower", action_tv),
    Metric(
        "transition_tv", "share of steps that lead elsewhere than they should", 0.0, "lower", transition_tv
    ),
    Metric("length_ks", "largest gap between the distributions of sequence lengths", 0.0, "lower", length_ks),
    Metric(
        "repeats_ks",
        "largest gap between the distributions of attempts at an action",
        0.0,
        "lower",
        repeats_ks,
    ),
    Metric(
        "success_gap",
        "how far off the success rate of all rows is",
        0.0,
        "lower",
        success_gap,
        about="outcomes",
    ),
    Metric(
        "curve_gap",
        "how far off the learning curve is at most: success at the first to the sixth attempt at an action",
        0.0,
        "lower",
        curve_gap,
        about="outcomes",
    ),
    Metric(
        "leaving_success_gap",
        "how far off the share of successes is after which learners go to another action",
        0.0,
        "lower",
        leaving_success_gap,
        about="outcomes",
    ),
    Metric(
        "leaving_failure_gap",
        "how far off the share of failures is after which learners go to another action",
        0.0,
        "lower",
        leaving_failure_gap,
        about="outcomes",
    ),
    Metric(
        "prediction_auc",
        "how well a model trained on synthetic learners predicts real ones",
        1.0,
        "higher",
        prediction_auc,
        about="outcomes",
    ),
    Metric(
        "prediction_loss",
        "how much worse it predicts than one trained on the real log",
        0.0,
        "lower",
        prediction_loss,
        about="outcomes",
    ),
)
