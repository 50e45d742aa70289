"""A synthetic log beside the real one: what metrics are computed from, and what a metric is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from understudy.logs.column_codes import shared_columns
from understudy.logs.interactions import IntArray, Interactions, joined, totals
from understudy.logs.models.markov import TransitionCounts
from understudy.logs.models.next_outcome import NextOutcome, fit_next_outcome
from understudy.logs.models.practice import earlier_outcomes
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.schedule import Schedule

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
        return action_shares(self.training)

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
    def schedule(self) -> Schedule:
        """When the rows of the training log happened."""
        return Schedule(self.training)

    @cached_property
    def prediction_auc(self) -> float:
        """AUC of the next-outcome model trained on the training log."""
        return prediction_auc_on(fit_next_outcome(self.training), self.held_out)


class Comparison:
    """A synthetic log beside the real one it stands in for."""

    def __init__(self, real: Real, synthetic: Interactions) -> None:
        self.real = real
        self.synthetic = synthetic

    def has(self, about: About) -> bool:
        """Whether both logs have what a metric is about."""
        training, synthetic = self.real.training, self.synthetic
        if about == "outcomes":
            return training.outcome is not None and synthetic.outcome is not None
        if about == "times":
            return training.has_times and synthetic.has_times
        return about == "rows" or bool(shared_columns(training, synthetic))

    @cached_property
    def schedule(self) -> Schedule:
        """When the synthetic rows happened; sessions end as those of the training log."""
        term = self.real.training.term
        return Schedule(self.synthetic, None if term is None else term.session_minutes)

    @cached_property
    def difficulty_error(self) -> Floats:
        """Real less synthetic difficulty; an absent action has difficulty 0, as the penalty gives it."""
        return self.real.difficulty - fit_rasch(self.synthetic).difficulty

    @cached_property
    def leaving_gaps(self) -> Floats:
        """Differences of the shares of rows after which the learner goes on, after failure and after success."""
        return rate_gaps(self.real.leaving_rates, leaving_rates(self.synthetic))

    @cached_property
    def prediction_auc(self) -> float:
        """AUC on held-out real learners of the next-outcome model trained on synthetic ones."""
        return prediction_auc_on(fit_next_outcome(self.synthetic), self.real.held_out)


# What a metric is about; every log has rows.
About = Literal["rows", "outcomes", "times", "columns"]


@dataclass(frozen=True)
class Metric:
    """One number about a synthetic log, computed against the log it stands in for."""

    name: str
    meaning: str
    best: float
    direction: Literal["lower", "higher"]
    compute: Callable[[Comparison], float]
    about: About = "rows"
    """What both logs need for there to be such a number."""


def learning_curve(log: Interactions) -> Floats:
    """Success rate at the first, second, ... attempt of a learner at an action; nan where no learner made it."""
    successes, failures = earlier_outcomes(log)
    earlier = successes + failures
    counted = earlier < LAST_ATTEMPT
    return rates(earlier[counted], log.success[counted], LAST_ATTEMPT)


def leaving_rates(log: Interactions) -> Floats:
    """Share of failures, and of successes, that the learner follows with another action; last rows left out."""
    followed = log.learner[1:] == log.learner[:-1]
    leaves = log.action[1:] != log.action[:-1]
    return rates(log.success[:-1][followed], leaves[followed], 2)


def rates(code: IntArray, happened: NDArray[np.generic], n_codes: int) -> Floats:
    """How often it happened, of each code; nan for codes that do not occur."""
    n = np.bincount(code, minlength=n_codes)
    rates: Floats = np.divide(totals(code, happened, n_codes), n, out=np.full(n_codes, np.nan), where=n > 0)
    return rates


def rate_gaps(real: Floats, synthetic: Floats) -> Floats:
    """Differences of rates: 0 where the real log has none, 1 where only the synthetic log has none."""
    return np.where(np.isnan(real), 0.0, np.nan_to_num(np.abs(real - synthetic), nan=1.0))


def action_shares(log: Interactions) -> Floats:
    """Share of each action among the rows."""
    return np.bincount(log.action, minlength=log.n_actions) / max(log.n_rows, 1)


def total_variation(difference: Floats) -> float:
    """Of two laws from their difference; 1 when one of them is empty, which half the sum would not be."""
    return float(max(difference.clip(min=0).sum(), -difference.clip(max=0).sum()))


def kolmogorov_smirnov(a: NDArray[np.generic], b: NDArray[np.generic]) -> float:
    """Largest difference of two empirical distribution functions; 1 where one of them is empty."""
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
