"""Guarantee: what is proved about a release, or the statement that nothing is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from understudy.errors import UsageError

UNIT = "a learner with all their rows"
ADJACENCY = "replace one learner"


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy of a release for `unit` under `adjacency`.

    With `epsilon` finite: whatever the release shows would have been shown with nearly the
    same probability (a factor e^epsilon, up to `delta`) had one learner been another one.
    With `epsilon` infinite nothing is promised, and `reason` says why.

    `mu` is Gaussian DP and `rho` zero-concentrated DP, each given only where it is proved. The
    discrete Gaussian has a rho and no mu: it is zCDP, and not exactly Gaussian DP. (epsilon,
    delta) alone implies neither. `slack` says how close to Gaussian it is: with mu = sqrt(2 rho),
    probabilities differ from those of a mu-Gaussian-DP mechanism by a factor of at most
    e^slack, and by delta; `rho` alone is then no zCDP claim for the whole.

    `caveats` say what went into the release beside what is guaranteed; they are part of the statement.
    """

    epsilon: float
    delta: float = 0.0
    mu: float | None = None
    mechanisms: tuple[str, ...] = ()
    reason: str = ""
    unit: str = UNIT
    adjacency: str = ADJACENCY
    rho: float | None = None
    slack: float | None = None
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.epsilon > 0 or not 0 <= self.delta < 1:
            raise UsageError(
                f"a guarantee needs epsilon above 0 and delta in [0, 1); "
                f"got epsilon {self.epsilon:g}, delta {self.delta:.3g}.",
                hint="epsilon between 0.1 and 10 and delta below one over the number of learners are usual.",
            )

    @classmethod
    def none(cls, reason: str) -> Guarantee:
        """No formal guarantee, and why."""
        return cls(math.inf, reason=reason)

    @classmethod
    def seeded(cls, claim: Guarantee) -> Guarantee:
        """What is left of `claim` when its noise came from a seed: nothing, since it can be drawn again."""
        return claim if not claim.formal else cls.none("test: the noise was seeded")

    def with_caveats(self, *sentences: str) -> Guarantee:
        """The same guarantee, stated with more that it does not cover; each sentence once."""
        return replace(self, caveats=tuple(dict.fromkeys((*self.caveats, *sentences))))

    @property
    def formal(self) -> bool:
        """Whether anything is proved."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        if not self.formal:
            return f"no formal guarantee ({self.reason})" if self.reason else "no formal guarantee"
        delta = f", delta {self.delta:.2e}" if self.delta else ""
        how = f"; {', '.join(self.mechanisms)}" if self.mechanisms else ""
        proved = f"epsilon {self.epsilon:g}{delta} for {self.unit} ({self.adjacency}{how})"
        return "; ".join((proved, *self.caveats))

    def to_json(self) -> dict[str, Any]:
        """The guarantee for a machine; an infinite epsilon becomes null."""
        return {
            "formal": self.formal,
            "epsilon": self.epsilon if self.formal else None,
            "delta": self.delta if self.formal else None,
            "mu": self.mu,
            "rho": self.rho,
            "slack": self.slack,
            "mechanisms": list(self.mechanisms),
            "unit": self.unit,
            "adjacency": self.adjacency,
            **({"caveats": list(self.caveats)} if self.caveats else {}),
            "statement": str(self),
        }
