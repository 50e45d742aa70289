"""What the attacker knows: every original sequence, but not who was in the training half.

The protocol is that of Vie, Rigaux and Minn 2022 (sections 4.3 and 5.3): half of the learners
train the generator; the attacker holds all original sequences and the synthetic data, and
gives each learner a score. Learners whose sequences say too little to recognise a learner
(cumulative entropy below -p log p with p the training share) are set aside and counted.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.fingerprints import RARE
from understudy.logs.attacks.quasi_identifiers import QuasiIdentifiers
from understudy.logs.attacks.statistics import LogStatistics
from understudy.logs.attacks.timing import TimingTable
from understudy.logs.interactions import IntArray, Interactions, counted_pairs, pair_codes, totals
from understudy.logs.models.markov import TransitionCounts, steps_of

Floats = NDArray[np.float64]


class Knowledge:
    """The original sequences, prepared once for many attacks and many synthetic logs.

    `n_training` is the number of learners behind the synthetic data, which is public.
    """

    def __init__(self, population: Interactions, n_training: int) -> None:
        self.population = population
        self.n_training = n_training

    @property
    def training_share(self) -> float:
        """Share of the population that trained the generator: the attacker's prior."""
        return self.n_training / max(self.population.n_learners, 1)

    @cached_property
    def enough_entropy(self) -> NDArray[np.bool_]:
        """Learners above the limit of Vie, Rigaux and Minn (2022), section 5.3."""
        log = self.population
        share = np.bincount(log.action, minlength=log.n_actions) / max(log.n_rows, 1)
        information = -share * np.log(np.where(share > 0, share, 1.0))
        entropy = totals(log.learner, information[log.action], log.n_learners)
        share_in = min(max(self.training_share, 1e-9), 1.0)
        enough: NDArray[np.bool_] = entropy > -share_in * np.log(share_in)
        return enough

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """Learners with enough information to be recognised.

        The published limit weighs an action by -p log p, which is next to nothing for
        a rare one; but a learner who did what hardly any other does is recognised by just that. So
        learners with a rare action, a rare time or a rare row of the table are judged whatever their entropy.
        """
        log = self.population
        enough = self.enough_entropy.copy()
        learner, action, _ = counted_pairs(log.learner, log.action, log.n_actions)
        n_learners_with = np.bincount(action, minlength=log.n_actions)
        enough[learner[n_learners_with[action] <= RARE]] = True
        if self.timing is not None:
            enough |= self.timing.rare_learners(RARE)
        if self.quasi_identifiers is not None:
            enough |= self.quasi_identifiers.rare_learners(RARE)
        return enough

    @cached_property
    def steps(self) -> StepTable:
        """Who made which step how often."""
        return StepTable(self.population)

    @cached_property
    def steps_with_outcomes(self) -> StepTable:
        """Who made which step between actions with their outcomes how often."""
        return StepTable(with_outcomes(self.population))

    @cached_property
    def statistics(self) -> LogStatistics:
        """What each learner adds to the statistics of a log."""
        return LogStatistics(self.population, self.training_share)

    @cached_property
    def timing(self) -> TimingTable | None:
        """When each learner worked; None where times are not included."""
        return TimingTable(self.population) if self.population.has_times else None

    @cached_property
    def quasi_identifiers(self) -> QuasiIdentifiers | None:
        """What the declared columns say about each learner; None where there are none."""
        return QuasiIdentifiers(self.population) if self.population.columns else None

    @cached_property
    def bags(self) -> BagTable:
        """Who met which small set of actions close together."""
        return BagTable(self.population)


class StepTable:
    """Steps of learners (start and end included) as sparse entries (learner, step, count)."""

    def __init__(self, log: Interactions) -> None:
        self.width = log.n_actions + 1
        self.n_learners = log.n_learners
        source, target = steps_of(log)
        key = pair_codes(source, target, self.width)
        self.keys, step = np.unique(key, return_inverse=True)
        learner = np.repeat(np.arange(log.n_learners), log.lengths + 1)
        self.learner, self.step, self.count = counted_pairs(learner, step, len(self.keys))
        self.source: IntArray = (self.keys // self.width).astype(np.int64)
        self.total = totals(self.step, self.count, len(self.keys))
        self.n_learners_with = np.bincount(self.step, minlength=len(self.keys))
        self.source_total = totals(self.source, self.total, self.width)
        # How often the learner of an entry left its source.
        left = np.unique(self.learner * self.width + self.source[self.step], return_inverse=True)[1]
        self.left = np.bincount(left, weights=self.count)[left]

    def counts_in(self, synthetic: Interactions) -> Floats:
        """How often each known step occurs in the synthetic log."""
        found = TransitionCounts.of(synthetic)
        key = pair_codes(found.source, found.target, self.width)
        return _align(self.keys, key, found.count)


class BagTable:
    """Bags: the actions of three successive practice runs, order forgotten."""

    def __init__(self, log: Interactions) -> None:
        self.n_actions = log.n_actions
        learner, bag = self._bags(log)
        self.keys, index = np.unique(bag, return_inverse=True)
        self.learner, self.bag, _ = counted_pairs(learner, index, len(self.keys))
        self.n_learners_with = np.bincount(self.bag, minlength=len(self.keys))

    def found_in(self, synthetic: Interactions) -> NDArray[np.bool_]:
        """Whether each known bag occurs in the synthetic log."""
        present: NDArray[np.bool_] = np.isin(self.keys, self._bags(synthetic)[1])
        return present

    def _bags(self, log: Interactions) -> tuple[IntArray, IntArray]:
        learner = log.learner.astype(np.int64)
        new_run = np.ones(log.n_rows, dtype=bool)
        new_run[1:] = (log.action[1:] != log.action[:-1]) | (learner[1:] != learner[:-1])
        action, learner = log.action[new_run].astype(np.int64), learner[new_run]
        windows = np.stack([action[:-2], action[1:-1], action[2:]]) if len(action) > 2 else np.empty((3, 0))
        windows = np.sort(windows.astype(np.int64), axis=0)
        whole = learner[2:] == learner[:-2]
        key = (windows[0] * self.n_actions + windows[1]) * self.n_actions + windows[2]
        return learner[2:][whole], key[whole]


def with_outcomes(log: Interactions) -> Interactions:
    """The log with (action, outcome) for the action; as it is where there are none."""
    if log.outcome is None:
        return log
    names = tuple(f"{name}/{result}" for name in log.actions for result in (0, 1))
    return Interactions(log.code, log.outcome, log.offsets, names)


def _align(keys: IntArray, found: IntArray, count: Floats) -> Floats:
    result = np.zeros(len(keys))
    place = np.minimum(np.searchsorted(keys, found), max(len(keys) - 1, 0))
    known = keys[place] == found if len(keys) else np.zeros(len(found), dtype=bool)
    result[place[known]] = count[known]
    return result
