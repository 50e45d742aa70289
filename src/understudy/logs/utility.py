"""Utility metrics: each knows what it means, its best value and in which direction that lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from understudy.logs.description import attempts_of_pairs
from understudy.logs.interactions import IntArray, Interactions, joined, totals
from understudy.logs.models.markov import TransitionCounts
from understudy.logs.models.next_outcome import NextOutcome, fit_next_outcome
from understudy.logs.models.practice import earlier_outcomes
from understudy.logs.models.rasch import fit_rasch

Floats = NDArray[np.float64]

# Learning curves go up to this attempt at an action: later ones are rare, and made by learners who struggle.
LAST_ATTEMPT = 6


class Real:
    """The real side of a comparison, prepared once for many synthetic logs.

    `training` is what the generator learned from; `held_out` are real learners whom it never
    saw, on whom predictions are tested.
    """

    def __init__(self, training: Interactions, held_out: Interactions) -> None:
        self.training = training
        self.held_out = held_out

    @cached_property
    def shares(self) -> Floats:
        """Share of each action among the rows."""
        return _shares(self.training)

    @cached_property
    def difficulty_weights(self) -> Floats:
        """Share of each action that has a finite difficulty; 0 for those set aside.

        Vie, Rigaux and Minn 2022, section 5.1.

        Actions that always or never succeed, in the training and the held-out rows together,
        have none.
        """
        constant = joined(self.training, self.held_out).constant_actions()
        weights: Floats = np.where(constant, 0.0, self.shares)
        return weights / float(max(weights.sum(), 1e-12))

    @cached_property
    def difficulty(self) -> Floats:
        """Difficulty of each action."""
        return fit_rasch(self.training).difficulty

    @cached_property
    def steps(self) -> TransitionCounts:
        """Transition counts."""
        return TransitionCounts.of(self.training)

    @cached_property
    def learning_curve(self) -> Floats:
        """Success rate at the first, second, ... attempt at an action."""
        return learning_curve(self.training)

    @cached_property
    def leaving_rates(self) -> Floats:
        """Share of rows after which the learner goes to another action, after failure and after success."""
        return leaving_rates(self.training)

    @cached_property
    def prediction_auc(self) -> float:
        """AUC of the next-outcome model trained on the training log."""
        return prediction_auc_on(fit_next_outcome(self.training), self.held_out)


class Comparison:
    """A synthetic log beside the real one it stands in for."""

    def __init__(self, real: Real, synthetic: Interactions) -> None:
        self.real = real
        self.synthetic = synthetic

    @cached_property
    def difficulty_error(self) -> Floats:
        """Real less synthetic difficulty; an absent action has difficulty 0, as the penalty gives it."""
        return self.real.difficulty - fit_rasch(self.synthetic).difficulty

    @cached_property
    def leaving_gaps(self) -> Floats:
        """Differences of the shares of rows after which the learner goes on, after failure and after success."""
        return _gaps(self.real.leaving_rates, leaving_rates(self.synthetic))

    @cached_property
    def prediction_auc(self) -> float:
        """AUC on held-out real learners of the next-outcome model trained on synthetic ones."""
        return prediction_auc_on(fit_next_outcome(self.synthetic), self.real.held_out)


@dataclass(frozen=True)
class Metric:
    """One number about a synthetic log, computed against the log it stands in for."""

    name: str
    meaning: str
    best: float
    direction: Literal["lower", "higher"]
    compute: Callable[[Comparison], float]
    of_outcomes: bool = False
    """Whether it is about outcomes: a log without them has no such number."""


def measure(real: Real, synthetic: Interactions) -> dict[str, float]:
    """All metrics that a synthetic log can have."""
    comparison = Comparison(real, synthetic)
    judged = real.training.outcome is not None and synthetic.outcome is not None
    return {metric.name: metric.compute(comparison) for metric in METRICS if judged or not metric.of_outcomes}


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
    return _total_variation(comparison.real.shares - _shares(comparison.synthetic))


def transition_tv(comparison: Comparison) -> float:
    """Total variation of the shares of steps from one action to the next."""
    real = _inner_steps(comparison.real.steps)
    synthetic = _inner_steps(TransitionCounts.of(comparison.synthetic))
    keys = np.union1d(real[0], synthetic[0])
    difference = np.zeros(len(keys))
    difference[np.searchsorted(keys, real[0])] += real[1]
    difference[np.searchsorted(keys, synthetic[0])] -= synthetic[1]
    return _total_variation(difference)


def length_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of sequence lengths."""
    return _kolmogorov_smirnov(comparison.real.training.lengths, comparison.synthetic.lengths)


def repeats_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of the number of attempts of a learner at an action."""
    return _kolmogorov_smirnov(
        attempts_of_pairs(comparison.real.training)[1], attempts_of_pairs(comparison.synthetic)[1]
    )


def success_gap(comparison: Comparison) -> float:
    """Difference of the success rates of all rows."""
    real, synthetic = (
        _rates(np.zeros(log.n_rows, dtype=np.int8), log.success, 1)
        for log in (comparison.real.training, comparison.synthetic)
    )
    return float(_gaps(real, synthetic)[0])


def curve_gap(comparison: Comparison) -> float:
    """Largest difference of the success rates by attempt at an action."""
    return float(_gaps(comparison.real.learning_curve, learning_curve(comparison.synthetic)).max())


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


METRICS: tuple[Metric, ...] = (
    Metric(
        "rmse",
        "error of the difficulties, every action counting the same",
        0.0,
        "lower",
        rmse,
        of_outcomes=True,
    ),
    Metric(
        "wrmse",
        "error of the difficulties, frequent actions counting more",
        0.0,
        "lower",
        wrmse,
        of_outcomes=True,
    ),
    Metric(
        "wrmse_centred",
        "the weighted error when only differences of difficulty matter",
        0.0,
        "lower",
        wrmse_centred,
        of_outcomes=True,
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
        of_outcomes=True,
    ),
    Metric(
        "curve_gap",
        "how far off the learning curve is at most: success at the first to the sixth attempt at an action",
        0.0,
        "lower",
        curve_gap,
        of_outcomes=True,
    ),
    Metric(
        "leaving_success_gap",
        "how far off the share of successes is after which learners go to another action",
        0.0,
        "lower",
        leaving_success_gap,
        of_outcomes=True,
    ),
    Metric(
        "leaving_failure_gap",
        "how far off the share of failures is after which learners go to another action",
        0.0,
        "lower",
        leaving_failure_gap,
        of_outcomes=True,
    ),
    Metric(
        "prediction_auc",
        "how well a model trained on synthetic learners predicts real ones",
        1.0,
        "higher",
        prediction_auc,
        of_outcomes=True,
    ),
    Metric(
        "prediction_loss",
        "how much worse it predicts than one trained on the real log",
        0.0,
        "lower",
        prediction_loss,
        of_outcomes=True,
    ),
)


def learning_curve(log: Interactions) -> Floats:
    """Success rate at the first, second, ... attempt of a learner at an action; nan where no learner made it."""
    successes, failures = earlier_outcomes(log)
    earlier = successes + failures
    counted = earlier < LAST_ATTEMPT
    return _rates(earlier[counted], log.success[counted], LAST_ATTEMPT)


def leaving_rates(log: Interactions) -> Floats:
    """Share of failures, and of successes, that the learner follows with another action; last rows left out."""
    followed = log.learner[1:] == log.learner[:-1]
    leaves = log.action[1:] != log.action[:-1]
    return _rates(log.success[:-1][followed], leaves[followed], 2)


def _rates(code: IntArray, happened: NDArray[np.generic], n_codes: int) -> Floats:
    """How often it happened, of each code; nan for codes that do not occur."""
    n = np.bincount(code, minlength=n_codes)
    rates: Floats = np.divide(totals(code, happened, n_codes), n, out=np.full(n_codes, np.nan), where=n > 0)
    return rates


def _gaps(real: Floats, synthetic: Floats) -> Floats:
    """Differences of rates: 0 where the real log has none, 1 where only the synthetic log has none."""
    return np.where(np.isnan(real), 0.0, np.nan_to_num(np.abs(real - synthetic), nan=1.0))


def _shares(log: Interactions) -> Floats:
    return np.bincount(log.action, minlength=log.n_actions) / max(log.n_rows, 1)


def _inner_steps(counts: TransitionCounts) -> tuple[IntArray, Floats]:
    """Keys and shares of the steps between two actions; starts and ends left out."""
    inner = (counts.source < counts.n_actions) & (counts.target < counts.n_actions)
    key = counts.source[inner].astype(np.int64) * counts.n_actions + counts.target[inner]
    total = counts.count[inner].sum()
    return key, counts.count[inner] / max(total, 1.0)


def _total_variation(difference: Floats) -> float:
    """Of two laws from their difference; 1 when one of them is empty, which half the sum would not be."""
    return float(max(difference.clip(min=0).sum(), -difference.clip(max=0).sum()))


def _kolmogorov_smirnov(a: IntArray, b: IntArray) -> float:
    if not len(a) or not len(b):
        return 1.0
    values = np.union1d(a, b)
    below_a = np.searchsorted(np.sort(a), values, side="right") / len(a)
    below_b = np.searchsorted(np.sort(b), values, side="right") / len(b)
    return float(np.abs(below_a - below_b).max())


def prediction_auc_on(model: NextOutcome, held_out: Interactions) -> float:
    """AUC of a next-outcome model on real learners; 0.5 where there is nothing to distinguish."""
    good = held_out.success == 1
    n_good, n_bad = int(good.sum()), int((~good).sum())
    if not n_good or not n_bad:
        return 0.5
    ranks = rankdata(model.log_odds(held_out))
    return float((ranks[good].sum() - n_good * (n_good + 1) / 2) / (n_good * n_bad))
