"""What a panel did: the prompt that all got, each panelist's way, tokens, cost and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.cohorts.panel.brief import Brief
from understudy.cohorts.panel.scripts import Script, Tokens
from understudy.core.files.writing import new_folder, write_json, write_text


@dataclass(frozen=True)
class PanelistReport:
    """What one panelist did.

    `status` is used, repaired or dropped; `failures` name what went wrong in each attempt that
    failed; `cost` is in US dollars, None when no price is known. `repair` is the message
    for the author of a dropped script: our own sentence, and none of the script's output.
    """

    name: str
    provider: str
    model: str
    status: str
    attempts: int
    failures: tuple[str, ...]
    tokens: Tokens
    cost: float | None
    seconds: float
    n_rows: int
    repair: str = ""

    def to_json(self) -> dict[str, Any]:
        """The report for a file."""
        return {
            "name": self.name,
            "provider": self.provider,
            "model": self.model,
            "status": self.status,
            "attempts": self.attempts,
            "failures": list(self.failures),
            **({"repair": self.repair} if self.repair else {}),
            "tokens_read": self.tokens.read,
            "tokens_written": self.tokens.written,
            "cost_usd": self.cost,
            "seconds": round(self.seconds, 3),
            "rows": self.n_rows,
        }

    def __str__(self) -> str:
        words = [f"{self.name}: {self.status}"]
        if self.model and self.model != self.provider:
            words[0] += f" ({self.model})"
        if self.failures:
            words.append("failed by " + ", then ".join(self.failures))
        if self.tokens.read or self.tokens.written:
            words.append(spent(self.tokens, self.cost))
        elif self.provider not in ("offline", "manual"):
            words.append("tokens not reported by the server")
        words.append(f"{self.seconds:.1f} s")
        return "; ".join(words)


@dataclass(frozen=True)
class PanelReport:
    """All panelists' reports, and how many learners of each label were drawn from their pool."""

    prompt_hash: str
    panelists: tuple[PanelistReport, ...]
    n_each: int
    drawn: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> Tokens:
        """All that was read and written."""
        return sum((panelist.tokens for panelist in self.panelists), Tokens())

    @property
    def cost(self) -> float | None:
        """US dollars; None when a price is not known."""
        return total_cost([panelist.cost for panelist in self.panelists])

    def to_json(self) -> dict[str, Any]:
        """The report for a file."""
        return {
            "prompt_sha256": self.prompt_hash,
            "rows_per_panelist_and_label": self.n_each,
            "drawn": dict(self.drawn),
            "tokens_read": self.tokens.read,
            "tokens_written": self.tokens.written,
            "cost_usd": self.cost,
            "panelists": [panelist.to_json() for panelist in self.panelists],
        }


def spent(tokens: Tokens, cost: float | None) -> str:
    """Tokens, and what they cost by the list prices that were known when the library was installed."""
    price = "price not known" if cost is None else f"about {cost:.4f} US dollars by list prices"
    return f"{tokens.read:,} tokens read, {tokens.written:,} written, {price}"


def total_cost(costs: Sequence[float | None]) -> float | None:
    """The sum, or None as soon as one is not known."""
    known = [cost for cost in costs if cost is not None]
    return None if len(known) < len(costs) else float(sum(known))


def failed_folder(folder: Path) -> Path:
    """Where a panel that gave no cohort is kept, so that its name stays free for the next try."""
    number = 1
    while (found := folder.with_name(f"{folder.name}-failed-{number}")).exists():
        number += 1
    return found


def save_panel(
    folder: Path, brief: Brief, scripts: Sequence[Script], report: PanelReport, more: dict[str, Any]
) -> None:
    """Write `prompt.txt`, `<name>.py` and `<name>.json` of every script (also dropped ones), `report.json`.

    The prompt is the exact text that was sent; `more` goes into the report.
    """
    status = {panelist.name: panelist for panelist in report.panelists}
    with new_folder(folder) as temporary:
        write_text(temporary / "prompt.txt", brief.text)
        for script in scripts:
            of = status[script.author]
            write_text(temporary / f"{script.author}.py", script.source)
            write_json(
                temporary / f"{script.author}.json",
                {**script.provenance(), "status": of.status, "failures": list(of.failures)},
            )
        write_json(temporary / "report.json", {**report.to_json(), **more})
