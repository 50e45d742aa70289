"""Example requests: analyses in a folder with an index of the questions, for the demonstration and the desk's study."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import DataError

ANALYSES = Path(__file__).parent / "analyses"
"""25 analyses of the kinds in a published case study."""
# Folder of analyses as they were first written.
FIRST = "first"


@dataclass(frozen=True)
class ExampleRequest:
    """An example request: its researcher, its year of data and its code.

    `first` is the code as it was first written, where the desk's checks sent it back and `code` is what the
    researcher made of it.
    """

    name: str
    researcher: str
    kind: str
    year: int
    code: str
    first: str | None = None

    @property
    def question(self) -> str:
        """The research question: the first line of the code."""
        return self.code.split('"""')[1].splitlines()[0]

    @property
    def label(self) -> str:
        """For a figure."""
        return self.name.replace("_", " ")


def path_of(folder: Path, name: str, year: int) -> Path:
    """The file of an analysis."""
    return folder / f"year_{year}" / f"{name}.py"


def read_examples(folder: Path = ANALYSES) -> list[ExampleRequest]:
    """The analyses that a folder's `index.toml` lists, in the order in which they are asked."""
    try:
        listed = tomllib.loads((folder / "index.toml").read_text(encoding="utf-8"))["analysis"]
        return [
            ExampleRequest(
                **entry,
                code=path_of(folder, entry["name"], entry["year"]).read_text(encoding="utf-8"),
                first=_first(folder, entry["name"]),
            )
            for entry in listed
        ]
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise DataError(
            f"the analyses in {folder.name} cannot be read ({type(error).__name__}).",
            hint="every [[analysis]] of index.toml has name, researcher, kind and year; its code is in year_N/name.py.",
        ) from None


def _first(folder: Path, name: str) -> str | None:
    path = folder / FIRST / f"{name}.py"
    return path.read_text(encoding="utf-8") if path.exists() else None
