"""`attribute`: does the synthetic log reveal how a member did on an action the attacker did not see?

The attacker's story: Bob knows all that Ada did except how she did on one action. He looks for
the synthetic learners most like her on everything else and guesses from their outcomes on that
action. The same guess made with data of other real learners is the baseline: what can be
learned about Ada without Ada. Only the difference between the two is a leak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.stats import norm

from understudy.core.attacks.estimate import LEVEL, auc_with_error, bootstrapped_areas
from understudy.logs.interactions import IntArray, Interactions, pair_codes

Floats = NDArray[np.float64]

N_NEIGHBOURS = 5
# What the success of all learners on the action counts, in neighbours.
PRIOR_NEIGHBOURS = 0.5
MOST_TARGETS = 2000
BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class AttributeEstimate:
    """AUC of the guesses with the synthetic data, and with other learners' data; `of` says what is guessed."""

    auc: float
    baseline: float
    advantage: float
    low: float
    high: float
    n_targets: int
    of: str = "outcome"

    def to_json(self) -> dict[str, Any]:
        """The estimate for a machine."""
        return dict(vars(self))

    def columns(self, name: str = "attribute") -> dict[str, Any]:
        """The estimate as columns of `results.csv`; of a declared column with its name."""
        return {
            **({} if name == "attribute" else {name: self.of}),
            f"auc_{name}": self.auc,
            f"{name}_advantage": self.advantage,
            f"{name}_advantage_low": self.low,
            f"{name}_advantage_high": self.high,
        }


def attribute_attack(
    members: Interactions, outsiders: Interactions, synthetic: Interactions, rng: np.random.Generator
) -> AttributeEstimate:
    """Guess one held-out outcome of each member from the synthetic data and from outsiders."""
    target, action, truth = choose_targets(members, rng)
    n_other = min(synthetic.n_learners, outsiders.n_learners)
    others = outsiders.select(rng.permutation(outsiders.n_learners)[:n_other])
    return judged_guesses(
        guess_outcomes(members, target, action, synthetic),
        guess_outcomes(members, target, action, others),
        truth,
        rng,
    )


def judged_guesses(
    guess: Floats,
    baseline_guess: Floats,
    truth: NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    of: str = "outcome",
    n_looks: int = 1,
) -> AttributeEstimate:
    """How much better the guesses are than those of the baseline; with `n_looks`, in an interval for all of them."""
    if truth.all() or not truth.any() or len(truth) < 4:
        return AttributeEstimate(0.5, 0.5, 0.0, -0.5, 0.5, len(truth), of)
    auc, baseline = auc_with_error(guess, truth)[0], auc_with_error(baseline_guess, truth)[0]
    differences = np.diff(bootstrapped_areas([baseline_guess, guess], truth, rng), axis=1)
    # A normal interval with the bootstrap's error: percentiles would be degenerate at AUC 1.
    half = norm.ppf(1.0 - (1.0 - LEVEL) / (2.0 * n_looks)) * max(float(differences.std()), 1e-3)
    advantage = auc - baseline
    return AttributeEstimate(auc, baseline, advantage, advantage - half, advantage + half, len(truth), of)


def choose_targets(
    members: Interactions, rng: np.random.Generator
) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """For each member with two actions or more: one of them, and the first outcome on it."""
    first = _first_attempts(members)
    learner, action, outcome = members.learner[first], members.action[first], members.success[first]
    n_tried = np.bincount(learner, minlength=members.n_learners)
    order = rng.permutation(len(learner))
    order = order[np.argsort(learner[order], kind="stable")]
    chosen = order[np.r_[0, np.cumsum(n_tried)[:-1]][n_tried >= 2]]
    if len(chosen) > MOST_TARGETS:
        chosen = np.sort(rng.choice(chosen, MOST_TARGETS, replace=False))
    return learner[chosen], action[chosen], outcome[chosen].astype(bool)


def _first_attempts(log: Interactions) -> IntArray:
    return np.sort(np.unique(pair_codes(log.learner, log.action, log.n_actions), return_index=True)[1])


def _profiles(log: Interactions) -> csr_array:
    """Learners x (action, outcome): root of the counts, rare pairs weighing more."""
    column = 2 * log.action.astype(np.int64) + log.success
    counts = csr_array(
        (np.ones(log.n_rows), (log.learner, column)), shape=(log.n_learners, 2 * log.n_actions)
    )
    counts.sum_duplicates()
    counts.data = np.sqrt(counts.data)
    return counts


def guess_outcomes(members: Interactions, target: IntArray, action: IntArray, source: Interactions) -> Floats:
    """Chance of success on the action, from the nearest learners of `source` who tried it."""
    attempts = _counts(source, np.ones(source.n_rows))
    successes = _counts(source, source.success.astype(np.float64))
    overall = (np.asarray(successes.sum(axis=0)) + 1.0) / (np.asarray(attempts.sum(axis=0)) + 2.0)
    known = _profiles(source)
    seen = np.asarray((known > 0).sum(axis=0)).ravel()
    weight = np.log((1.0 + source.n_learners) / (1.0 + seen)) + 0.1
    known = known @ _diagonal(weight)
    norms = np.sqrt(np.asarray(known.multiply(known).sum(axis=1)).ravel()) + 1e-9
    hidden = _profiles(members.select(target)).tolil()
    rows = np.arange(len(target))
    hidden[rows, 2 * action] = 0.0
    hidden[rows, 2 * action + 1] = 0.0
    wanted = csr_array(hidden) @ _diagonal(weight)
    guesses = np.empty(len(target))
    size = max(1, BLOCK_CELLS // max(source.n_learners, 1))
    for begin in range(0, len(target), size):
        block = slice(begin, min(begin + size, len(target)))
        likeness = (wanted[block] @ known.T).toarray() / norms
        own = action[block]
        tried = attempts[:, own].toarray().T
        likeness = np.where(tried > 0, likeness, -1.0)
        rate = successes[:, own].toarray().T / np.maximum(tried, 1)
        guesses[block] = guess_from_nearest(likeness, rate, overall[own])
    return guesses


def guess_from_nearest(likeness: Floats, rate: Floats, prior: Floats) -> Floats:
    """The mean rate of the learners who are most like each target; both are targets x learners."""
    k = min(N_NEIGHBOURS, likeness.shape[1])
    near = np.argpartition(-likeness, k - 1, axis=1)[:, :k] if k else np.empty((len(likeness), 0), dtype=int)
    close = np.take_along_axis(likeness, near, axis=1)
    # The closest neighbour dominates when it stands out, as a copy of the learner would.
    closest = close.max(axis=1, keepdims=True, initial=1e-9)
    influence = np.where(close > 0, (close / closest) ** 8, 0)
    rates = np.take_along_axis(rate, near, axis=1)
    guess: Floats = ((influence * rates).sum(axis=1) + PRIOR_NEIGHBOURS * prior) / (
        influence.sum(axis=1) + PRIOR_NEIGHBOURS
    )
    return guess


def _counts(log: Interactions, weight: Floats) -> csc_array:
    """Learners x actions: sums of the weights of the rows."""
    return csc_array((weight, (log.learner, log.action)), shape=(log.n_learners, log.n_actions))


def _diagonal(weight: Floats) -> csr_array:
    n = len(weight)
    return csr_array((weight, (np.arange(n), np.arange(n))), shape=(n, n))
