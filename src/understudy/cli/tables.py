"""Tables on the terminal, and values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that stays readable when piped into a file."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        # A pipe has no width of its own: do not fold what a program may read.
        console = Console(width=200)
    table = Table(title=title, title_justify="left", title_style="italic", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """The same values with None for what JSON has no word for."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
