"""PrivTrace's rule, rebuilt for logs: a chain whose order is chosen for each state by its noise (Wang et al. 2023).

Every learner's steps, the start and the end included, are divided by their number, so that a learner adds up to 1 to
the counts of a chain of first order. They get Laplace noise, and from them alone it is decided which states are worth
a second-order chain: those with more steps than noise that do not nearly always lead to one place, and those that many
steps leave, or where many learners start or end. For these, steps are counted by the state before, too.

As in the authors' program: the shares of the budget, the thresholds, and the projection that makes noisy counts
non-negative. Not as there: states are actions, which are public, so the budget of their grid goes to the outcomes, of
which they have none (successes and failures of each action, divided by a learner's rows); a learner may stay, where
they drop repeated cells; and what they draw from the map (neighbouring cells, shortest ways, the correction of
lengths by distances) has no counterpart.

Each learner is added or removed as a whole, and moves each of the three sums by 1 in L1.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.logs.interactions import Interactions, totals
from understudy.logs.models.denoising import to_simplex

Floats = NDArray[np.float64]

# Shares of the budget: outcomes (theirs: the grid), first order, second order.
OUTCOMES, FIRST_ORDER, SECOND_ORDER = 0.2, 0.4, 0.4
# A state of which the likeliest way on is this many times as likely as the next one needs no second order.
MOST_LOPSIDED = 5.0
# Shares of all steps, starts or ends from which on a state gets a second order in any case.
MANY_STEPS = MANY_STARTS = MANY_ENDS = 0.02


class PrivTrace:
    """A generator with `fit` and `sample`. Rows past the first `longest` of a synthetic learner are not drawn."""

    name = "privtrace"

    def __init__(self, epsilon: float = 8.0, longest: int = 1000) -> None:
        self.epsilon = epsilon
        self.longest = longest

    def fit(self, log: Interactions, rng: np.random.Generator) -> PrivTrace:
        """Count with noise; the state `n_actions` stands for the start, and as a way on for the end."""
        self.actions_ = log.actions
        self.n_learners_ = log.n_learners
        exact = first_order(log)
        noisy = exact + rng.laplace(scale=1.0 / (FIRST_ORDER * self.epsilon), size=exact.shape)
        noisy[-1, -1] = 0.0
        self.first_ = to_simplex(noisy.ravel(), float(log.n_learners)).reshape(exact.shape)
        self.second_: dict[int, Floats] = {}
        for state in np.flatnonzero(second_order_states(self.first_, FIRST_ORDER * self.epsilon)):
            counts = second_order(log, int(state))
            counts += rng.laplace(scale=1.0 / (SECOND_ORDER * self.epsilon), size=counts.shape)
            total = counts.sum()
            if total > 0:
                self.second_[int(state)] = to_simplex(counts.ravel(), float(total)).reshape(counts.shape)
        outcomes = outcome_counts(log)
        outcomes += rng.laplace(scale=1.0 / (OUTCOMES * self.epsilon), size=outcomes.shape)
        outcomes = to_simplex(outcomes.ravel(), float(log.n_learners)).reshape(outcomes.shape)
        overall = outcomes[1].sum() / outcomes.sum()
        seen = outcomes.sum(axis=0)
        self.success_ = np.where(seen > 0, outcomes[1] / np.maximum(seen, 1e-12), overall)
        return self

    def sample(self, n_learners: int | None = None, *, rng: np.random.Generator) -> Interactions:
        """Walks of as many learners."""
        end = len(self.actions_)
        walks = []
        for _ in range(self.n_learners_ if n_learners is None else n_learners):
            walk: list[int] = []
            before, state = end, end
            while len(walk) < self.longest:
                chances = self.chances(before, state)
                following = int(np.searchsorted(chances.cumsum(), rng.random() * chances.sum(), side="right"))
                if following >= end:
                    break
                walk.append(following)
                before, state = state, following
            walks.append(np.array(walk, dtype=np.int64))
        outcomes = [(rng.random(len(walk)) < self.success_[walk]).astype(np.int8) for walk in walks]
        return Interactions.from_sequences(walks, outcomes, actions=list(self.actions_))

    def chances(self, before: int, state: int) -> Floats:
        """What the ways on from a state weigh: by the second order where the state has one and it saw this way."""
        weights: Floats = self.second_[state][before] if state in self.second_ else self.first_[state]
        for fallback in (self.first_[state], self.first_.sum(axis=0)):
            if not weights.sum() > 0:
                weights = fallback
        return weights


def first_order(log: Interactions) -> Floats:
    """Steps from each action (last row: from the start) to each (last column: to the end), a learner's adding to 1."""
    n = log.n_actions
    source = np.insert(log.action.astype(np.int64), log.offsets[:-1], n)
    target = np.insert(log.action.astype(np.int64), log.offsets[1:], n)
    weight = np.repeat(1.0 / (log.lengths + 1), log.lengths + 1)
    return totals(source * (n + 1) + target, weight, (n + 1) ** 2).reshape(n + 1, n + 1)


def second_order(log: Interactions, state: int) -> Floats:
    """Steps out of one action by the action before (last row: none) and the one after (last column: none)."""
    n = log.n_actions
    before, after = _neighbours(log)
    here = log.action == state
    weight = np.repeat(1.0 / np.maximum(log.lengths, 1), log.lengths)[here]
    return totals(before[here] * (n + 1) + after[here], weight, (n + 1) ** 2).reshape(n + 1, n + 1)


def outcome_counts(log: Interactions) -> Floats:
    """Failures (first row) and successes (second row) of each action, a learner's adding to 1."""
    weight = np.repeat(1.0 / np.maximum(log.lengths, 1), log.lengths)
    code = log.success.astype(np.int64) * log.n_actions + log.action
    return totals(code, weight, 2 * log.n_actions).reshape(2, log.n_actions)


def second_order_states(noisy: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Which actions get a second-order chain, from noisy counts of first order that were released with `epsilon`."""
    steps, starts, ends = noisy[:-1, :-1], noisy[-1, :-1], noisy[:-1, -1]
    likeliest = np.sort(steps, axis=1)[:, ::-1]
    # The noise of all cells of a row, each with the standard deviation sqrt(2) / epsilon.
    above_noise = steps.sum(axis=1) > len(steps) * sqrt(2.0) / epsilon
    undecided = (likeliest[:, 1] > 0) & (likeliest[:, 0] < MOST_LOPSIDED * likeliest[:, 1])
    busy = noisy[:-1].sum(axis=1) > MANY_STEPS * noisy.sum()
    chosen: NDArray[np.bool_] = (
        (above_noise & undecided)
        | busy
        | (starts > MANY_STARTS * starts.sum())
        | (ends > MANY_ENDS * ends.sum())
    )
    return chosen


def _neighbours(log: Interactions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The actions before and after each row; `n_actions` where there is none."""
    action = log.action.astype(np.int64)
    before, after = np.full(log.n_rows, log.n_actions), np.full(log.n_rows, log.n_actions)
    same = log.learner[1:] == log.learner[:-1]
    before[1:][same] = action[:-1][same]
    after[:-1][same] = action[1:][same]
    return before, after
