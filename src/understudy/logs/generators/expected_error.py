"""An error to expect of a release, with an interval, and what it is called: close, fair, rough, mostly noise.

The words are here, so that no two pages can differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal, get_args

Likeness = Literal["close", "fair", "rough", "mostly noise"]
CLOSE, FAIR, ROUGH, NOISE = get_args(Likeness)

# A release that leaves more than this of it is noise for the most part; less than the others is close, fair.
MOSTLY, OF_CLOSE, OF_FAIR = 2 / 3, 1 / 8, 1 / 3
# Nine of ten releases lie between these multiples of what is expected.
LOW, HIGH = 0.5, 1.8


def likeness(error: float, unknowing: float, *, noise: bool | None = None) -> Likeness:
    """What an error is called, by how far one is off without any release; `noise` where that is decided otherwise."""
    if error > MOSTLY * unknowing if noise is None else noise:
        return "mostly noise"
    return "close" if error <= OF_CLOSE * unknowing else "fair" if error <= OF_FAIR * unknowing else "rough"


@dataclass(frozen=True)
class ExpectedError:
    """An error to expect: what privacy does, what chance does in a log of finite size, and both together.

    Of shares of attempts and of steps it is the share that is elsewhere than it should be, of difficulties a typical
    distance in log-odds. Whoever knows nothing about these learners is off by about `unknowing`.
    """

    noise: float
    chance: float
    unknowing: float
    named_noise: float | None = None
    """The noise of rows whose action is named, where others are pooled: that these are pooled is true, and no noise."""
    most: float = 1.0
    spread: tuple[float, float] = (LOW, HIGH)
    """Nine of ten releases lie between these multiples of what is expected."""

    @property
    def expected(self) -> float:
        """Of a release like this one; no share is further off than wholly."""
        return min(sqrt(self.noise**2 + self.chance**2), self.most)

    @property
    def low(self) -> float:
        """Nineteen of twenty releases are off by more."""
        return self.spread[0] * self.expected

    @property
    def high(self) -> float:
        """Nineteen of twenty releases are off by less."""
        return self.spread[1] * self.expected

    @property
    def mostly_noise(self) -> bool:
        """Whether what is not known without the release would for the most part be unknown after it."""
        noise = self.noise if self.named_noise is None else self.named_noise
        return noise > MOSTLY * self.unknowing

    def to_json(self, *, mostly_noise: bool | None = None) -> dict[str, Any]:
        """For machines; `mostly_noise` where that is decided otherwise."""
        noise = self.mostly_noise if mostly_noise is None else mostly_noise
        figures = {name: getattr(self, name) for name in ("expected", "low", "high", "noise", "chance")}
        word = likeness(self.expected, self.unknowing, noise=noise)
        return {**figures, "mostly_noise": noise, "likeness": word}
