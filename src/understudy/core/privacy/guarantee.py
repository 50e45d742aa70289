"""Guarantee: what is proved about a release, or the statement that nothing is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from understudy.core.files.documents import ContractError, checked, contract
from understudy.errors import UsageError

UNIT = "a learner with all their rows"
ADJACENCY = "replace one learner"
SEEDED = "test: the noise was seeded"
_NOTHING_PROVED = "no formal guarantee"


@dataclass(frozen=True)
class Caveat:
    """Something that went into a release beside what is guaranteed: a code for programs, a sentence for people.

    `headline` is a short form for the first line of a card.
    """

    code: str
    sentence: str
    headline: str = ""

    def __str__(self) -> str:
        return self.sentence


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
    e^slack, and by delta; `rho` alone is then no zCDP claim for the whole. `extra_delta` is the part of delta
    that is not for the tails of Gaussians, such as for the names of actions.

    `caveats` are part of the statement.
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
    caveats: tuple[Caveat, ...] = ()
    extra_delta: float = 0.0

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
        return claim if not claim.formal else cls.none(SEEDED)

    def with_caveats(self, *caveats: Caveat) -> Guarantee:
        """The same guarantee, stated with more that it does not cover; each caveat once."""
        return replace(self, caveats=tuple(dict.fromkeys((*self.caveats, *caveats))))

    @property
    def formal(self) -> bool:
        """Whether anything is proved."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        if not self.formal:
            nothing = f"{_NOTHING_PROVED} ({self.reason})" if self.reason else _NOTHING_PROVED
            return "; ".join((nothing, *map(str, self.caveats)))
        delta = f", delta {self.delta:.2e}" if self.delta else ""
        how = f"; {', '.join(self.mechanisms)}" if self.mechanisms else ""
        proved = f"epsilon {self.epsilon:g}{delta} for {self.unit} ({self.adjacency}{how})"
        return "; ".join((proved, *map(str, self.caveats)))

    def to_json(self) -> dict[str, Any]:
        """The guarantee for a machine; an infinite epsilon becomes null, and caveats become their codes."""
        return {
            "formal": self.formal,
            "epsilon": self.epsilon if self.formal else None,
            "delta": self.delta if self.formal else None,
            "mu": self.mu,
            "rho": self.rho,
            "slack": self.slack,
            **({"extra_delta": self.extra_delta} if self.extra_delta else {}),
            "mechanisms": list(self.mechanisms),
            "unit": self.unit,
            "adjacency": self.adjacency,
            **({} if self.formal else {"reason": self.reason}),
            **({"caveats": [caveat.code for caveat in self.caveats]} if self.caveats else {}),
            "statement": str(self),
        }

    @classmethod
    def from_json(
        cls, content: Any, source: str = "the guarantee", *, caveats: Iterable[Caveat] = ()
    ) -> Guarantee:
        """The guarantee that was written by `to_json`; whether it is true is another matter.

        `caveats` are those that the file may name. Files of before name them by their sentences, and have the
        reason for no guarantee in the statement only.
        """
        form = checked(content, _Form, source)
        known = {name: caveat for caveat in caveats for name in (caveat.code, caveat.sentence)}
        if not set(form.caveats) <= set(known):
            raise ContractError(
                f"{source} names a caveat that is not known here.", hint="it may be of a newer version."
            )
        told = form.statement.partition(_NOTHING_PROVED)[2].strip()
        return cls(
            math.inf if form.epsilon is None else form.epsilon,
            form.delta or 0.0,
            form.mu,
            form.mechanisms,
            "" if form.formal else form.reason or told.removeprefix("(").removesuffix(")"),
            form.unit,
            form.adjacency,
            form.rho,
            form.slack,
            tuple(known[name] for name in form.caveats),
            form.extra_delta,
        )


@dataclass(frozen=True)
class _Form:
    """A guarantee in a file."""

    __pydantic_config__: ClassVar = contract()

    formal: bool
    epsilon: float | None
    delta: float | None
    mechanisms: tuple[str, ...]
    unit: str
    adjacency: str
    statement: str
    mu: float | None = None
    rho: float | None = None
    slack: float | None = None
    reason: str = ""
    caveats: tuple[str, ...] = ()
    extra_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.formal != (self.epsilon is not None):
            raise ContractError(
                "`formal` does not agree with `epsilon`.", hint="one without the other.", key="formal"
            )
        if self.epsilon is not None and (not self.epsilon > 0 or not 0 <= (self.delta or 0.0) < 1):
            raise ContractError(
                "epsilon is above 0 and delta in [0, 1).", hint="see what was released.", key="epsilon"
            )
        if not self.formal and not self.reason and not self.statement.startswith(_NOTHING_PROVED):
            raise ContractError(
                "`statement` does not agree with `formal`.", hint="one without the other.", key="statement"
            )
