"""The comparison of a run with the last accepted one: what became slower, faster, or is new.

Every figure is smaller where it is better. There are two kinds, each with a tolerance of its own (`accepted.json`):

- `times`: the processor time of a job as a multiple of the unit's in the same run on the same machine, or a peak of
  memory in gigabytes;
- `instructions`: what the processor executes of a kernel, which hardly differs from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCEPTED = Path(__file__).with_name("accepted.json")
UNITS = {
    "times": "processor time of a stable sort of five million numbers",
    "instructions": "instructions, compiled for a processor of the level x86-64-v3",
}


@dataclass(frozen=True)
class Accepted:
    """The figures of a kind that were accepted last, and how much more than them is not worth a word."""

    figures: Mapping[str, float]
    tolerance: float

    @classmethod
    def read(cls, kind: str, path: Path = ACCEPTED) -> Accepted:
        content = json.loads(path.read_text(encoding="utf-8"))[kind]
        if content["unit"] != UNITS[kind]:
            raise ValueError(f"{path}: accepted in another unit ({content['unit']}); accept all jobs again")
        return cls(content["figures"], float(content["tolerance"]))

    def write(self, kind: str, path: Path = ACCEPTED) -> None:
        """Write this kind; the other one stays as it is."""
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        rounded = {name: float(f"{value:.4g}") for name, value in sorted(self.figures.items())}
        content[kind] = {"unit": UNITS[kind], "tolerance": self.tolerance, "figures": rounded}
        path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")

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
        return f"{self.name}: {self.was:.4g} -> {self.now:.4g} ({self.factor:.2f} times)"


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
