"""Where the pages of reproductions are kept, and how they are rendered from templates and tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reproductions"
# Data sets that stay outside of the repository.
DATA = ROOT.parent / "shared" / "data"

# Every paper's folder here, and the name of its page.
PAPERS = {
    "synthetic_logs": "synthetic-logs",
    "dp_rasch": "dp-rasch",
    "keystroke_privacy": "keystrokes",
    "two_stage": "two-stage",
    "validation_desk": "validation-desk",
}


def tables_of(paper: str) -> Path:
    """The folder with a paper's measured tables and figures."""
    return PAGES / PAPERS[paper]


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a measured table."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a measured table."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a page."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def fill(paper: str, values: Mapping[str, str]) -> str:
    """A paper's template with every `{{name}}` replaced by its value; both have to name the same things."""
    text = (PAGES / f"{PAPERS[paper]}.template.md").read_text(encoding="utf-8")
    asked = set(re.findall(r"{{(\w+)}}", text))
    assert asked == set(values), f"the template and the measured values differ in {asked ^ set(values)}"
    return re.sub(r"{{(\w+)}}", lambda found: values[found[1]], text)


def render() -> dict[Path, str]:
    """Every page by its path."""
    return {
        PAGES / f"{name}.md": import_module(f"reproductions.{paper}.page").page()
        for paper, name in PAPERS.items()
    }
