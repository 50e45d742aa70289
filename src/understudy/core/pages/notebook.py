"""What results look like in a notebook: a sentence and a table."""

from __future__ import annotations

from html import escape

import polars as pl

_MOST_ROWS = 30


def notebook_table(caption: str, frame: pl.DataFrame) -> str:
    """A frame as an HTML table under a sentence; nothing in it is taken for markup."""
    head = "".join(f"<th>{escape(name)}</th>" for name in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in frame.head(_MOST_ROWS).iter_rows()
    )
    more = f"<p>and {frame.height - _MOST_ROWS} more rows</p>" if frame.height > _MOST_ROWS else ""
    return f"<p>{escape(caption)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
