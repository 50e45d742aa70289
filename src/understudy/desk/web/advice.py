"""What a reviewer reads before deciding: the verdict in a line with its reasons, and the price against the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.core.files.words import counted
from understudy.desk.domain.policy import Grounds, Policy
from understudy.desk.service.views import HeldOutput
from understudy.desk.web.wording import check_text

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
        """Whether the upper end is over the limit."""
        return self.high > self.limit

    def share(self, value: float) -> float:
        """Where a value is on the bar."""
        return round(100 * min(1.0, max(0.0, value / self.end)), 2)


@dataclass(frozen=True)
class Advice:
    """A shape, a line, the reasons for it, and what a reviewer most likely does next."""

    shape: str
    line: str
    reasons: tuple[str, ...] = ()
    next: str = "release"
    """release, return or run again."""


def bars(prices: Mapping[str, Any], policy: Policy) -> dict[str, list[Bar]]:
    """Mu and advantage, of everything together and of this answer alone, against the policy's limits."""
    ends = {
        measure: min(
            max(_BEYOND * limit, *(prices[part][measure]["high"] for part in ("own", "together"))),
            # An advantage is never above 1.
            1.0 if measure == "advantage" else float("inf"),
        )
        for measure, limit in policy.limits.items()
    }
    labels = {"together": "everything released, with this answer", "own": "this answer alone"}
    return {
        measure: [
            Bar(label, **_ends(prices[part][measure]), limit=limit, end=ends[measure])
            for part, label in labels.items()
        ]
        for measure, limit in policy.limits.items()
    }


def advise(held: HeldOutput) -> Advice:
    """What a reviewer should know first: the verdict in words."""
    verdict = held.verdict
    failed, looks = verdict.names(Grounds.FAILED), verdict.names(Grounds.REVIEW)
    if verdict.has(Grounds.NO_RESULT):
        return Advice(
            "fail",
            "The code gave no result on the real data: nothing can be released.",
            (f"What the desk saw: {held.failure or 'no result'}.",),
            next="return",
        )
    if verdict.has(Grounds.NOT_PRICED):
        return Advice(
            "fail",
            "The answer was not priced: nothing can be released.",
            tuple(
                f"{check_text(check.name).title}: {check.reason}"
                for check in held.checks
                if check.name in failed
            )
            or ("Run it again.",),
            next="return" if failed else "run again",
        )
    final, over = verdict.names(Grounds.FAILED, final=True), verdict.names(Grounds.OVER_LIMIT)
    checks = _checks_in_words(len(failed), len(looks), len(held.checks))
    price = f"{' and '.join(over)} would be over the limit" if over else "the price is within the limits"
    line = f"{checks[0].upper()}{checks[1:]}; {price}."
    if over or final:
        reasons = []
        if final:
            reasons.append(f"{_titles(final)}: the policy allows no release against that.")
        if over:
            reasons.append("Limits of the price are final.")
        return Advice("fail", f"Cannot be released: {checks}; {price}.", tuple(reasons), next="return")
    if verdict.has(Grounds.OUT_OF_DATE):
        return Advice(
            "review",
            "Run it again before you decide: the price is out of date.",
            (
                "Since it was priced, another answer was released, a learner withdrew, or the code changed.",
                f"As it was then: {checks}; {price}.",
            ),
            next="run again",
        )
    if verdict.needs_reason:
        look_at = f"Look at: {_titles([*failed, *looks])}. A release needs a written reason."
        return Advice("review", line, (look_at,))
    return Advice("pass", line)


def _titles(checks: list[str]) -> str:
    return "; ".join(check_text(name).title for name in checks)


def _checks_in_words(n_failed: int, n_looks: int, n_checks: int) -> str:
    parts = []
    if n_failed:
        parts.append(f"{counted(n_failed, 'check')} failed")
    if n_looks:
        parts.append(f"{counted(n_looks, 'check')} {'asks' if n_looks == 1 else 'ask'} for review")
    return " and ".join(parts) or f"all {n_checks} checks pass"


def _ends(measured: Mapping[str, float]) -> dict[str, float]:
    return {name: float(measured[name]) for name in ("value", "low", "high")}
