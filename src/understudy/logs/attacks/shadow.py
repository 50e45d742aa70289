"""`shadow`: the attack that rehearses, calibrated for each learner.

The attacker's story: knowing all sequences and the method, the attacker plays the custodian.
Many random halves are fitted and sampled (shadows); each time the cheap scores of Ada are
noted, with her in the half and without. That gives two normal laws of each score for Ada, and
the log-likelihood ratio of what the released data shows (Carlini et al. 2022, LiRA).

With few shadows the laws of a single learner are uncertain, so the distance between the two
means is shrunk towards that of all learners by its reliability. How much to trust each score,
as it is and as a ratio, is learned on shadows that did not calibrate the laws, by a logistic
regression of membership; so the attack is about as strong as the best of its parts, or stronger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.steps import count_scores, rare_bag_scores, rare_scores, transition_scores
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

N_SHADOWS = 64

# The statistics of the other attacks that are cheap to recompute.
CHEAP = (transition_scores, count_scores, rare_scores, rare_bag_scores)

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
    """Laws of each learner and weights of each score, learned from shadows."""

    def __init__(self, knowledge: Knowledge, shadows: list[Shadow]) -> None:
        self._knowledge = knowledge
        member = np.array([shadow.member for shadow in shadows])
        scores = np.array([shadow.scores for shadow in shadows])
        judged = knowledge.judged
        self.scale_ = 1e-9 + np.median(np.abs(scores[:, judged]), axis=(0, 1)) if judged.any() else 1.0
        n_fit = (3 * len(member)) // 4
        rehearsed = _Laws(member[:n_fit], scores[:n_fit], judged)
        evidence = np.stack([self._evidence(rehearsed, observed) for observed in scores[n_fit:]])
        self.weights_ = _fit_weights(evidence[:, judged], member[n_fit:, judged])
        self._laws = _Laws(member, scores, judged)

    def scores(self, synthetic: Interactions) -> Floats:
        """Log-odds of membership up to a constant, per learner."""
        observed = cheap_scores(self._knowledge, synthetic)
        weighed: Floats = self._evidence(self._laws, observed) @ self.weights_
        return weighed

    def _evidence(self, laws: _Laws, observed: Floats) -> Floats:
        """The scores as they are and as ratios; the inverse hyperbolic sine tames their long tails."""
        return np.concatenate(
            [np.arcsinh(observed / self.scale_), np.arcsinh(laws.log_ratios(observed))], axis=1
        )


class _Laws:
    """Per learner and score: midpoint, spread and distance with and without them.

    `member` is shadows x learners, `scores` shadows x learners x columns.
    """

    def __init__(self, member: Flags, scores: Floats, judged: Flags) -> None:
        inside, outside = member[:, :, None], ~member[:, :, None]
        n_in = np.maximum(inside.sum(axis=0), 1)
        n_out = np.maximum(outside.sum(axis=0), 1)
        mean_in = np.where(inside, scores, 0.0).sum(axis=0) / n_in
        mean_out = np.where(outside, scores, 0.0).sum(axis=0) / n_out
        residual = scores - np.where(inside, mean_in, mean_out)
        variance = (residual**2).sum(axis=0) / max(len(member) - 2, 1)
        # A learner without, say, rare steps has a constant score, which carries no evidence.
        floor = 1e-6 + 1e-3 * np.median(variance[judged], axis=0) if judged.any() else 1e-6
        self.spread = np.sqrt(variance + floor)
        self.middle = (mean_in + mean_out) / 2
        distance = (mean_in - mean_out) / self.spread
        uncertainty = 1.0 / n_in + 1.0 / n_out
        typical = np.median(distance[judged], axis=0) if judged.any() else 0.0
        between = np.maximum(distance[judged].var(axis=0) - uncertainty[judged].mean(axis=0), 0.0)
        self.distance = typical + (distance - typical) * between / (between + uncertainty)

    def log_ratios(self, observed: Floats) -> Floats:
        """log N(observed; with) - log N(observed; without), learners x columns."""
        ratios: Floats = self.distance * (observed - self.middle) / self.spread
        return ratios


def _fit_weights(evidence: Floats, member: Flags, penalty: float = 1.0) -> Floats:
    """Weights of a logistic regression of membership with a free intercept, by Newton's method."""
    x = evidence.reshape(-1, evidence.shape[-1])
    y = member.reshape(-1).astype(np.float64)
    spread = x.std(axis=0) + 1e-9
    design = np.column_stack([x / spread, np.ones(len(x))])
    ridge = np.append(np.full(x.shape[1], penalty), 1e-6)
    weights = np.zeros(len(ridge))
    for _ in range(25):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (chance - y) + ridge * weights
        curvature = (design * (chance * (1.0 - chance))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        # A longer step leaves the region in which the quadratic model can be trusted.
        weights -= step * min(1.0, 3.0 / max(np.abs(step).max(), 1e-12))
    fitted: Floats = weights[:-1] / spread
    return fitted
