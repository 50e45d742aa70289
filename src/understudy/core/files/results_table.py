"""results.csv: the table that a study writes, a row per result."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def results_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as CSV text, with these columns or all that occur; what was not measured (also nan) is left empty."""
    rows = list(rows)
    if columns is None:
        columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({name: _written(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def read_results(text: str, words: Collection[str]) -> list[Row]:
    """The rows of `results_csv`: columns of `words` as text, all others as numbers, nan where empty."""
    return [
        {name: value if name in words else float(value or "nan") for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
