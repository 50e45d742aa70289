"""What digraph statistics give away about who was in them, measured on halves of the learners.

The attacker's story: the statistics of a class are known, with the noise of each number. Bob has typing of many people
who may have been in that class, knows what each of them would add, and weighs all memberships together: the
statistics are noisy sums and nothing else, so `joint-linear` is `transcript` here, and no attack finds more on average
(`core/attacks/transcript.py`). `tracing` asks about one learner at a time (Dwork et al. 2015), for comparison.

Internal: the figures come from real typing, with seeded noise. Nothing is released, and nothing charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.estimate import (
    ChanceLevel,
    Risk,
    RiskEstimate,
    chance_level,
    judge,
    mean_chance,
    mean_risk,
)
from understudy.core.attacks.transcript import EXPOSED, LearnerSums, white_box
from understudy.core.pages.levels import RiskLevel, risk_levels
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.keystrokes.digraph_statistics import ONE, Release, contributions, release_statistics
from understudy.keystrokes.keystrokes import Keystrokes

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

N_HALVES = 10
# Halves of fewer learners say nothing.
SMALLEST = 8


@dataclass(frozen=True)
class StatisticsRisk:
    """Both attacks on statistics of a half, in the mean over halves; what luck gives; the share who are exposed."""

    risk: Risk
    chance: ChanceLevel
    exposed_share: float
    guarantee: Guarantee
    n_learners: int

    @property
    def optimum(self) -> RiskEstimate:
        """The attack that judges everybody together, which is the best one there is."""
        return next(estimate for estimate in self.risk.estimates if estimate.attack == "joint-linear")

    def levels(self) -> list[RiskLevel]:
        """Proved, found at best by whoever has the noisy sums, found by the strongest attack that was run."""
        return risk_levels(self.guarantee, self.risk.strongest, self.optimum, made="statistics")

    def to_json(self) -> dict[str, Any]:
        """The risk for machines."""
        return {
            **self.risk.to_json(),
            "chance": dict(vars(self.chance)),
            "levels": [dict(vars(level)) for level in self.levels()],
            "exposed": {"share": self.exposed_share, "above_auc": EXPOSED},
        }

    def lines(self) -> list[str]:
        """The risk for people."""
        n_exposed = round(self.exposed_share * self.n_learners)
        return [
            "Internal, measured on halves of these learners with seeded noise: shown a member and an outsider, how "
            "often does an attacker pick the member? Guessing gives 50 in 100.",
            *(f"  {level.sentence}" for level in self.levels()),
            f"  By luck alone, the strongest of these attacks reaches {self.chance.low:.2f} to {self.chance.high:.2f} "
            f"(AUC). {n_exposed} of {self.n_learners} learners could be told from an average one more than "
            f"{100 * EXPOSED:.0f} times in 100.",
        ]


def statistics_risk(
    keystrokes: Keystrokes, group: Codes, release: Release, rng: np.random.Generator, n_halves: int = N_HALVES
) -> StatisticsRisk | None:
    """The risk of statistics with this declaration and price, if half of the learners made them; None for too few."""
    n = keystrokes.n_learners
    if n < SMALLEST:
        return None
    half = Release(release.declaration, n // 2, release.epsilon, release.delta)
    added = learner_sums(keystrokes, group, half)
    middle = added.mean(axis=0)
    risks, chances, exposed = [], [], []
    for _ in range(n_halves):
        member = rng.permutation(n) < n // 2
        chosen = np.flatnonzero(member)
        found = release_statistics(keystrokes.learners(chosen), group[chosen], half, seeded_noise(rng))
        released = np.stack([found.count, found.total], axis=1).ravel() / half.noise_sd - (n // 2) * middle
        seen = white_box(LearnerSums(added - middle, released), (n // 2) / n)
        scores = {"tracing": (added - middle) @ released, "joint-linear": seen.scores}
        risks.append(judge(scores, member, rng))
        chances.append(chance_level(scores, member, rng))
        exposed.append(seen.exposed_share)
    return StatisticsRisk(
        mean_risk(risks),
        mean_chance(chances),
        float(np.mean(exposed)),
        half.guarantee,
        n,
    )


def learner_sums(keystrokes: Keystrokes, group: Codes, release: Release) -> Floats:
    """What each learner adds to counts and sums of all groups, in units of the noise: learners x sums."""
    added = contributions(keystrokes, release.declaration) / ONE / release.noise_sd
    n_groups = len(release.declaration.groups)
    placed = np.where(
        (np.arange(n_groups) == np.asarray(group)[:, None])[:, :, None, None], added[:, None], 0.0
    )
    return placed.reshape(len(added), -1)
