"""Offline panelists: generators of our own, as script texts that run in the sandbox like anybody's.

No key and no network: they turn a private summary into learners by themselves. A script is a
panelist's module with the reading of the summary in front, one file that imports numpy, pandas and scipy.
"""

from __future__ import annotations

import importlib
from importlib.resources import files
from typing import Any

import numpy as np

from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.errors import UsageError

PANELISTS = ("zero_inflated", "habit_chain", "copula")

# Annotations are never evaluated, and the reading stands above.
_LEFT_OUT = ("from understudy.cohorts.offline.summary_reading import", "from typing import")
_FUTURE = "from __future__ import annotations\n"


def scripts() -> dict[str, str]:
    """The panelists' scripts by name."""
    folder = files(__package__)
    reading = (folder / "summary_reading.py").read_text(encoding="utf-8")
    return {name: _joined(reading, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in PANELISTS}


def _joined(reading: str, panelist: str) -> str:
    """One script: the panelist's own docstring first, then the reading, then the panelist."""
    docstring, _, body = panelist.partition(_FUTURE)
    about, _, shared = reading.partition(_FUTURE)
    body, shared = (
        "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_LEFT_OUT))
        for text in (body, shared)
    )
    comment = "".join(f"# {line}\n" if line else "#\n" for line in about.strip().strip('"').splitlines())
    return f"{docstring}{_FUTURE}\n{comment}{shared.rstrip()}\n\n\n# The panelist.\n{body.lstrip()}"


def run_trusted(name: str, n: int, label: str, summary: PrivateSummary, rng: np.random.Generator) -> Any:
    """A panelist of ours in this process, for tests and studies; anybody else's runs in the sandbox."""
    if name not in PANELISTS:
        raise UsageError(
            f"no offline panelist is called '{name}'.", hint="known: " + ", ".join(PANELISTS) + "."
        )
    module = importlib.import_module(f"{__package__}.{name}")
    return module.generate(n, label, summary.to_json(), rng)
