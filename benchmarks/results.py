"""What was measured last, part by part, with the machine and the day of each: `results.json`."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Spread:
    """The median, the least and the most of all rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: Iterable[float]) -> Spread:
        values = list(rounds)
        return cls(median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)} to {_short(self.high)})"


@dataclass(frozen=True)
class Ratio:
    """Processor seconds of a peer and of ours for the same task, by round; `goal` is what we hold ourselves to."""

    task: str
    peer: str
    ours: list[float]
    theirs: list[float]
    goal: float | None = None

    @property
    def times(self) -> Spread:
        """How many times as long the peer takes."""
        return Spread.of(theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True))

    def __str__(self) -> str:
        return f"{self.task}: {self.peer} takes {self.times} times as long"


@dataclass(frozen=True)
class Rate:
    """Millions of rows per second, by round."""

    task: str
    millions: list[float]
    goal: float | None = None

    def __str__(self) -> str:
        return f"{self.task}: {Spread.of(self.millions)} million rows per second"


def _short(value: float) -> str:
    """Three digits."""
    return f"{float(f'{value:.3g}'):,.10g}"


@dataclass(frozen=True)
class Part:
    """Where and when a part was measured; `load` is how many programs wanted to run when it began."""

    day: str
    machine: str
    load: float

    @classmethod
    def begin(cls) -> Part:
        return cls(datetime.now(UTC).date().isoformat(), _machine(), round(os.getloadavg()[0], 1))


@dataclass
class Results:
    """The parts by name, and why parts could not be measured the last time."""

    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = RESULTS) -> Results:
        if not path.exists():
            return cls()
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(content["parts"], content["skipped"])

    def write(self, path: Path = RESULTS) -> None:
        content = {"parts": self.parts, "skipped": self.skipped}
        path.write_text(json.dumps(_rounded(content), indent=2) + "\n", encoding="utf-8")

    def ratios(self) -> list[Ratio]:
        """All comparisons with peers."""
        return [Ratio(**each) for part in self.parts.values() for each in part.get("ratios", ())]

    def rates(self) -> list[Rate]:
        return [Rate(**each) for part in self.parts.values() for each in part.get("rates", ())]

    def figures(self, kind: str) -> dict[str, float]:
        """All figures of `times` or of `instructions`."""
        return {name: each for part in self.parts.values() for name, each in part.get(kind, {}).items()}

    def keep(self, name: str, part: Part, measured: dict[str, Any]) -> None:
        """In place of what was measured before."""
        self.parts[name] = {**vars(part), **measured}
        self.skipped.pop(name, None)

    def skip(self, name: str, message: str) -> None:
        """What was measured before stays."""
        self.skipped[name] = message


def _machine() -> str:
    """The processor and what the figures depend on most."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return f"{processor}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}"


def _rounded(value: Any) -> Any:
    """Four digits are more than the noise leaves."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
