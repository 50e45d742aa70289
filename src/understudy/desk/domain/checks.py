"""What a check before release says: pass, review or fail, with the reason in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["pass", "review", "fail"]
_ORDER: tuple[Verdict, ...] = ("pass", "review", "fail")


@dataclass(frozen=True)
class Check:
    """One check of a held output. For reviewers: reasons and numbers depend on the data."""

    name: str
    """A short name that a policy file uses, such as `learners` or `differencing`."""
    verdict: Verdict
    reason: str
    """One or two sentences in plain words, without any learner's value."""
    numbers: tuple[str, ...] = ()
    """Names of the results it is about, the worst first."""

    def to_json(self) -> dict[str, Any]:
        """For the store and pages."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Check:
        """As `to_json` wrote it."""
        return cls(**{**content, "numbers": tuple(content["numbers"])})


def worst(checks: Sequence[Check]) -> Verdict:
    """The verdict of all together."""
    return max((check.verdict for check in checks), key=_ORDER.index, default="pass")
