"""`understudy cohort build`: event logs and scores to a cohort table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def build(
    events: Annotated[Path, typer.Argument(metavar="EVENTS", help="The log of events.")],
) -> None:
    """Turn a log of events and a list of scores into a cohort table."""
    raise NotImplementedError
