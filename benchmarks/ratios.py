"""The comparison of a run with the last accepted one: what became slower, faster, or is new.

Every figure is smaller where it is better, and measured against something of the same run on the same machine: the
processor time of a job as a multiple of the unit's, of ours as a share of a peer's, or a peak of memory in gigabytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCEPTED = Path(__file__).with_name("accepted.json")
UNIT = "processor time of a stable sort of five million numbers"


@dataclass(frozen=True)
class Accepted:
    """The figures that were accepted last, and how much more than them is not worth a word."""

    figures: Mapping[str, float]
    tolerance: float

    @classmethod
    def read(cls, path: Path = ACCEPTED) -> Accepted:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["unit"] != UNIT:
            raise ValueError(f"{path}: accepted in another unit ({content['unit']}); accept all jobs again")
        return cls(content["figures"], float(content["tolerance"]))

    def write(self, path: Path = ACCEPTED) -> None:
        rounded = {name: float(f"{value:.3g}") for name, value in sorted(self.figures.items())}
        content = {"unit": UNIT, "tolerance": self.tolerance, "figures": rounded}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def updated(self, measured: Mapping[str, float]) -> Accepted:
        """With what was measured now; jobs that did not run keep their figures."""
        return Accepted({**self.figures, **measured}, self.tolerance)


@dataclass(frozen=True)
class Change:
    """A figure that is not as it was accepted."""

    name: str
    was: float
    now: float

    @property
    def factor(self) -> float:
        return self.now / self.was

    def __str__(self) -> str:
        return f"{self.name}: {self.was:.3g} -> {self.now:.3g} ({self.factor:.2f} times)"


@dataclass(frozen=True)
class Comparison:
    """Figures beyond the tolerance in both directions, those without an accepted one, and those that did not run."""

    slower: tuple[Change, ...]
    faster: tuple[Change, ...]
    new: tuple[str, ...]
    not_measured: tuple[str, ...]
    tolerance: float

    @property
    def ok(self) -> bool:
        return not self.slower and not self.new

    def lines(self) -> list[str]:
        within = f"{100 * self.tolerance:.0f} %"
        lines = [f"SLOWER  {change}" for change in self.slower]
        lines += [f"faster  {change}" for change in self.faster]
        lines += [f"NEW     {name}: nothing was accepted yet" for name in self.new]
        lines += [f"left out  {name}" for name in self.not_measured]
        if self.slower or self.new:
            lines.append("Find out why, or accept it: make bench ACCEPT=1")
        else:
            lines.append(f"Nothing became slower by more than {within}.")
            if self.faster:
                lines.append("Accept what became faster, so that it stays so: make bench ACCEPT=1")
        return lines


def compare(accepted: Accepted, measured: Mapping[str, float]) -> Comparison:
    """Slower is more than (1 + tolerance) times the accepted figure, faster less than it divided by that."""
    changes = [
        Change(name, accepted.figures[name], now)
        for name, now in measured.items()
        if name in accepted.figures
    ]
    limit = 1.0 + accepted.tolerance
    return Comparison(
        slower=tuple(change for change in changes if change.now > change.was * limit),
        faster=tuple(change for change in changes if change.now < change.was / limit),
        new=tuple(name for name in measured if name not in accepted.figures),
        not_measured=tuple(name for name in accepted.figures if name not in measured),
        tolerance=accepted.tolerance,
    )
