"""Shadow calibration: what scores look like with and without each learner, learned by refitting a generator.

The attacker's story: knowing all learners and the method, the attacker plays the custodian. Many random parts
of the learners are fitted and sampled (shadows); each time the scores of Ada are noted, with her in the part and
without. That gives two normal laws of each score for Ada, and the log-likelihood ratio of what the released
data shows (Carlini et al. 2022, LiRA).

With few shadows the laws of a single learner are uncertain, so the distance between the two means is shrunk
towards that of all learners by its reliability. How much to trust each score, as it is and as a ratio, is learned on
shadows that did not calibrate the laws, by a logistic regression of membership; so the attack is about as strong as
the best of its parts, or stronger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Shadow:
    """One refit: which learners were in the part, the scores of all (learners x scores), and what the refit released.

    `statistics` are numbers read off its synthetic data, for attacks that judge all learners together. `all_scores`
    are the scores of attacks that are too slow for every refit, by attack; most refits have none.
    """

    member: Flags
    scores: Floats
    statistics: Floats = field(default_factory=lambda: np.zeros(0))
    all_scores: Mapping[str, Floats] | None = None


class ShadowCalibration:
    """Laws of each learner and weights of each score, learned from shadows.

    `judged` are the learners whose scores are looked at: all of them by default.
    """

    def __init__(self, shadows: Sequence[Shadow], judged: Flags | None = None) -> None:
        member = np.array([shadow.member for shadow in shadows])
        scores = np.array([shadow.scores for shadow in shadows])
        judged = np.ones(member.shape[1], dtype=bool) if judged is None else judged
        self.scale_ = 1e-9 + np.median(np.abs(scores[:, judged]), axis=(0, 1)) if judged.any() else 1.0
        n_fit = (3 * len(member)) // 4
        laws = MembershipLaws(member[:n_fit], scores[:n_fit], judged)
        evidence = np.stack([self._evidence(laws, observed) for observed in scores[n_fit:]])
        self.weights_ = fit_score_weights(evidence[:, judged], member[n_fit:, judged])
        self.laws_ = MembershipLaws(member, scores, judged)

    def log_odds(self, observed: Floats) -> Floats:
        """Log-odds of membership up to a constant, per learner, from the scores of a release."""
        weighed: Floats = self._evidence(self.laws_, observed) @ self.weights_
        return weighed

    def _evidence(self, laws: MembershipLaws, observed: Floats) -> Floats:
        """The scores as they are and as ratios; the inverse hyperbolic sine tames their long tails."""
        return np.concatenate(
            [np.arcsinh(observed / self.scale_), np.arcsinh(laws.log_ratios(observed))], axis=1
        )


class MembershipLaws:
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


def fit_score_weights(evidence: Floats, member: Flags, penalty: float = 1.0) -> Floats:
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
