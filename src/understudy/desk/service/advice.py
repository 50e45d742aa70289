"""What the desk advises a reviewer about a held output: one line, and the prices against the limits.

It says beforehand what the policy will say when somebody releases; the policy alone decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.desk.domain.policy import Policy
from understudy.desk.service.views import HeldOutput
from understudy.desk.web.wording import asked, counted

# How far a bar reaches beyond its limit, so that what is over can be seen to be over.
_BEYOND = 1.25


@dataclass(frozen=True)
class Bar:
    """A measured figure with its interval against a limit. Shares are of the length of the bar, in percent."""

    label: str
    value: float
    low: float
    high: float
    limit: float
    end: float

    @property
    def over(self) -> bool:
        """Whether what may be reaches over the limit."""
        return self.high > self.limit

    def share(self, value: float) -> float:
        """Where a value is on the bar."""
        return round(100 * min(1.0, max(0.0, value / self.end)), 2)


@dataclass(frozen=True)
class Advice:
    """A shape, a line, what stands behind it, and what the release form needs."""

    shape: str
    line: str
    reasons: tuple[str, ...] = ()
    may_release: bool = False
    needs_reason: bool = False
    main: str = "release"
    """What a reviewer most likely does next: release, return or run again."""


def bars(prices: Mapping[str, Any], policy: Policy) -> dict[str, list[Bar]]:
    """Mu and advantage, of everything together and of this answer alone, against the policy's limits."""
    limits = {"mu": policy.mu_limit, "advantage": policy.advantage_limit}
    ends = {
        measure: min(
            max(_BEYOND * limit, *(prices[part][measure]["high"] for part in ("own", "together"))),
            # An advantage is never above 1.
            1.0 if measure == "advantage" else float("inf"),
        )
        for measure, limit in limits.items()
    }
    labels = {"together": "everything released, with this answer", "own": "this answer alone"}
    return {
        measure: [
            Bar(label, **_ends(prices[part][measure]), limit=limit, end=ends[measure])
            for part, label in labels.items()
        ]
        for measure, limit in limits.items()
    }


def advise(held: HeldOutput, policy: Policy) -> Advice:
    """What a reviewer should know first."""
    if held.results is None:
        return Advice(
            "fail",
            "The code gave no result on the real data: nothing can be released.",
            (f"What the desk saw: {held.failure or 'no result'}.",),
            main="return",
        )
    if held.prices is None:
        return Advice(
            "fail",
            "The answer was not priced: nothing can be released.",
            tuple(f"{asked(one.name).title}: {one.reason}" for one in held.checks if one.verdict == "fail")
            or ("Run it again.",),
            main="return" if any(one.verdict == "fail" for one in held.checks) else "run again",
        )
    failed = [check for check in held.checks if check.verdict == "fail"]
    looks = [check for check in held.checks if check.verdict == "review"]
    final = [check for check in failed if check.name not in policy.may_override]
    over = [
        measure
        for measure, limit in (("mu", policy.mu_limit), ("advantage", policy.advantage_limit))
        if held.prices["together"][measure]["high"] > limit
    ]
    checks = _said(len(failed), len(looks), len(held.checks))
    price = f"{' and '.join(over)} would be over the limit" if over else "the price is within the limits"
    if over or final:
        reasons = []
        if final:
            titles = "; ".join(asked(check.name).title for check in final)
            reasons.append(f"{titles}: the policy lets nobody release against that.")
        if over:
            reasons.append("Limits of the price are final.")
        return Advice("fail", f"Cannot be released: {checks}; {price}.", tuple(reasons), main="return")
    if held.stale:
        return Advice(
            "review",
            "Run it again before you decide: the price is out of date.",
            (
                "Since it was priced, another answer was released, a learner withdrew, or the code changed.",
                f"As it was then: {checks}; {price}.",
            ),
            main="run again",
        )
    if failed or looks:
        named = "; ".join(asked(check.name).title for check in (*failed, *looks))
        return Advice(
            "review",
            f"{checks[0].upper()}{checks[1:]}; {price}.",
            (f"Look at: {named}. A release needs a written reason.",),
            may_release=True,
            needs_reason=True,
        )
    return Advice("pass", f"{checks[0].upper()}{checks[1:]}; {price}.", may_release=True)


def _said(n_failed: int, n_looks: int, n_checks: int) -> str:
    parts = []
    if n_failed:
        parts.append(f"{counted(n_failed, 'check')} failed")
    if n_looks:
        parts.append(f"{counted(n_looks, 'check')} {'asks' if n_looks == 1 else 'ask'} for review")
    return " and ".join(parts) or f"all {n_checks} checks pass"


def _ends(measured: Mapping[str, float]) -> dict[str, float]:
    return {name: float(measured[name]) for name in ("value", "low", "high")}
