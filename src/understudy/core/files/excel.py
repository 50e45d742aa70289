"""Excel workbooks: the table on the first sheet."""

from __future__ import annotations

import polars as pl

from understudy.core.files.source import Source, keeping_values_inside
from understudy.core.files.tables import FrameTable, rows_from
from understudy.errors import DataError

MAGICS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def read_workbook(source: Source) -> FrameTable:
    """The first sheet, whose first row holds the columns' names."""
    import fastexcel

    with keeping_values_inside(
        f"{source.name}: the Excel workbook is damaged, protected, or no workbook.",
        hint="save it again as .xlsx without a password, or export it as csv.",
    ):
        workbook = fastexcel.read_excel(source.data)
        sheets = workbook.sheet_names
        header = workbook.load_sheet(0, header_row=None, n_rows=1).to_polars()
        frame = workbook.load_sheet(
            0, header_row=None, skip_rows=1, schema_sample_rows=None, whitespace_as_null=True
        ).to_polars()
    if header.height == 0 or header.width < 2:
        raise DataError(f"{source.name}: the first sheet has no table.", hint="put the table on sheet 1.")
    if frame.height == 0:
        raise DataError(
            f"{source.name}: the log is empty: there is a header but no row.", hint="check the export."
        )
    notes = [f"Only the first of {len(sheets)} sheets was read."] if len(sheets) > 1 else []
    names = tuple(
        str(name).strip() if name is not None and str(name).strip() else f"column {position}"
        for position, name in enumerate(header.row(0), start=1)
    )
    filled = ~frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    rows = rows_from(2, frame).filter(filled)
    return FrameTable(source.name, names, frame.filter(filled), rows, tuple(notes))
