"""`shadow`: the reference attack, calibrated for each learner.

The attacker's story: knowing all sequences and the method, the attacker plays the custodian.
Many random halves are fitted and sampled (shadows); each time the cheap scores of Ada are
noted, with her in the half and without. That gives two normal laws for Ada; the score is the
log-likelihood ratio of what the released data shows (Carlini et al. 2022, LiRA).

With few shadows the laws of a single learner are uncertain, so the distance between the two
means is shrunk towards that of all learners by its reliability. Which of the cheap scores to
combine is decided on the shadows themselves: each candidate is calibrated on one part and
judged on the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.attacks.estimate import auc_with_error
from understudy.attacks.knowledge import Knowledge
from understudy.attacks.rare import rare_bag_scores, rare_scores
from understudy.attacks.transitions import transition_scores
from understudy.records import Interactions

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

N_SHADOWS = 64

# The statistics of the other attacks that are cheap to recompute.
CHEAP = (transition_scores, rare_scores, rare_bag_scores)

# Makes a synthetic log from the log of some learners.
Generator = Callable[[Interactions, np.random.Generator], Interactions]


@dataclass(frozen=True)
class Shadow:
    """One rehearsal: who was in the half, and the cheap scores of everybody."""

    member: Flags
    scores: Floats


def cast_shadow(knowledge: Knowledge, generate: Generator, rng: np.random.Generator) -> Shadow:
    """Fit and sample on a random half and note everybody's cheap scores."""
    log = knowledge.population
    member = np.zeros(log.n_learners, dtype=bool)
    member[rng.permutation(log.n_learners)[: knowledge.n_training]] = True
    return Shadow(member, cheap_scores(knowledge, generate(log.select(member), rng)))


def cheap_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """One column per cheap attack."""
    return np.stack([score(knowledge, synthetic) for score in CHEAP], axis=1)


class ShadowAttack:
    """The two laws of each learner, learned from shadows."""

    def __init__(self, knowledge: Knowledge, shadows: list[Shadow]) -> None:
        self._knowledge = knowledge
        member = np.array([shadow.member for shadow in shadows])
        scores = np.array([shadow.scores for shadow in shadows])
        self.columns_ = _strongest_columns(member, scores, knowledge.judged)
        self._laws = _Laws(member, scores[:, :, self.columns_], knowledge.judged)

    def scores(self, synthetic: Interactions) -> Floats:
        """Log-likelihood ratio of membership, per learner."""
        return self._laws.log_ratio(cheap_scores(self._knowledge, synthetic)[:, self.columns_])


class _Laws:
    """Per learner: midpoint, spread and distance of the scores with and without them.

    `member` is shadows x learners, `scores` shadows x learners x columns.
    """

    def __init__(self, member: Flags, scores: Floats, judged: Flags) -> None:
        inside, outside = member[:, :, None], ~member[:, :, None]
        n_in = np.maximum(inside.sum(axis=0), 1)
        n_out = np.maximum(outside.sum(axis=0), 1)
        mean_in = np.where(inside, scores, 0.0).sum(axis=0) / n_in
        mean_out = np.where(outside, scores, 0.0).sum(axis=0) / n_out
        residual = scores - np.where(inside, mean_in, mean_out)
        freedom = max(len(member) - 2, 1)
        variance = (residual**2).sum(axis=0) / freedom
        # A learner without, say, rare steps has a constant score, which carries no evidence.
        floor = 1e-6 + 1e-3 * np.median(variance[judged], axis=0) if judged.any() else 1e-6
        self.spread = np.sqrt(variance + floor)
        self.middle = (mean_in + mean_out) / 2
        distance = (mean_in - mean_out) / self.spread
        uncertainty = 1.0 / n_in + 1.0 / n_out
        typical = np.median(distance[judged], axis=0) if judged.any() else 0.0
        between = np.maximum(distance[judged].var(axis=0) - uncertainty[judged].mean(axis=0), 0.0)
        self.distance = typical + (distance - typical) * between / (between + uncertainty)
        standard = (residual / self.spread)[:, judged]
        product = np.einsum("slj,slk->jk", standard, standard)
        # Learners with a constant score have no residual: without the division a column in which
        # they are many would look precise, and weigh too much for all the others.
        size = np.sqrt(np.maximum(np.diag(product), 1e-12))
        correlation = product / np.outer(size, size)
        self.precision = np.linalg.inv(correlation + 0.1 * np.eye(scores.shape[2]))

    def log_ratio(self, observed: Floats) -> Floats:
        standard = (observed - self.middle) / self.spread
        ratio: Floats = ((standard @ self.precision) * self.distance).sum(axis=1)
        return ratio


def _strongest_columns(member: Flags, scores: Floats, judged: Flags) -> list[int]:
    """The columns that, calibrated on three quarters of the shadows, judge the rest best."""
    n_columns = scores.shape[2]
    candidates = [list(c) for size in range(1, n_columns + 1) for c in combinations(range(n_columns), size)]
    n_fit = (3 * len(member)) // 4
    if n_fit < 4 or n_fit == len(member) or not judged.any():
        return candidates[-1]

    def strength(columns: list[int]) -> float:
        laws = _Laws(member[:n_fit], scores[:n_fit][:, :, columns], judged)
        return float(
            np.mean(
                [
                    auc_with_error(laws.log_ratio(scores[k][:, columns])[judged], member[k][judged])[0]
                    for k in range(n_fit, len(member))
                ]
            )
        )

    return max(candidates, key=strength)
