"""An answer on the terminal: each number by its name, tables as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from understudy.desk.domain.results import Results


def show(results: Results, rounded: Results | None = None) -> None:
    """Print an answer; where it is given, with what would leave in brackets."""
    from understudy.cli.terminal import print_table

    leaves = {} if rounded is None else dict(_flat(rounded.values))
    for name, value in _flat(results.values):
        typer.echo(f"{name}: {_beside(value, leaves.get(name, value))}")
    for name, table in results.tables.items():
        other = None if rounded is None else rounded.tables.get(name)
        same = other is not None and (other.columns, len(other.rows)) == (table.columns, len(table.rows))
        rows = other.rows if other is not None and same else table.rows
        print_table(
            name,
            list(table.columns),
            [
                [_beside(cell, leaving) for cell, leaving in zip(*pair, strict=True)]
                for pair in zip(table.rows, rows, strict=True)
            ],
        )


def _beside(value: object, leaving: object) -> str:
    """A value, and what it would leave as if that is written differently."""
    exact, rounded = _said(value), _said(leaving)
    return exact if exact == rounded else f"{exact} ({rounded})"


def _flat(value: object, way: str = "") -> list[tuple[str, object]]:
    if isinstance(value, dict):
        parts = [(f"{way} / {name}" if way else str(name), part) for name, part in value.items()]
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        parts = [(f"{way} / {place}", part) for place, part in enumerate(value, 1)]
    else:
        return [(way or "result", value)] if value is not None or way else []
    return [one for name, part in parts for one in _flat(part, name)]


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_said(part) for part in value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return "missing" if value is None else str(value)
