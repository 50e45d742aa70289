"""Excel workbooks for tests of readers."""

from __future__ import annotations

import io


def workbook(rows: list[list[object]], *more_sheets: str) -> bytes:
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"default_date_format": "yyyy-mm-dd hh:mm"}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
        for name in more_sheets:
            book.add_worksheet(name)
    return buffer.getvalue()
