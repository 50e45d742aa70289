"""Which format a file is in, from its content; a file's extension is only what somebody called it."""

from __future__ import annotations

from understudy.core.events.assistments import looks_like_assistments
from understudy.core.events.datashop import looks_like_datashop
from understudy.core.events.slam import looks_like_slam
from understudy.core.events.three_line import looks_like_three_lines
from understudy.core.files.columns import plain
from understudy.core.files.delimited import SEPARATORS, guess_separator, header_names
from understudy.core.files.excel import MAGICS as EXCEL_MAGICS
from understudy.core.files.parquet import MAGIC as PARQUET_MAGIC
from understudy.core.files.source import Source, Text, decode
from understudy.errors import DataError


def sniff(source: Source) -> tuple[str, str]:
    """A format's name and the reason for it, which reads on from "Read as csv:"."""
    if source.data.startswith(PARQUET_MAGIC):
        return "parquet", "it begins like a Parquet file"
    if source.data.startswith(EXCEL_MAGICS):
        if source.data.startswith(b"PK") and b"xl/" not in source.data:
            raise DataError(
                f"{source.name}: this is a zip archive and no Excel workbook.",
                hint="unpack it and give the file inside.",
            )
        return "excel", "it begins like an Excel workbook"
    text = decode(source, latin=True)
    lines = first_lines(text, 3)
    if lines[0].lstrip().startswith(("{", "[")):
        return "xapi", "it begins like JSON"
    if looks_like_slam(lines):
        return "slam", "it begins with the header of an exercise"
    if looks_like_three_lines(lines):
        return "three-line", "it begins with a length, a line of skills and a line of outcomes"
    separator = guess_separator(lines[0])
    names = header_names(lines[0], separator)
    if separator == "\t" and looks_like_datashop(names):
        return "datashop", "its header has the columns of a DataShop export"
    if looks_like_assistments(names):
        return "assistments", "its header has order_id, user_id, correct and a skill"
    if {"user", "item", "skill", "correct"} <= {plain(name) for name in names}:
        return "user-item-skill", "its header has user, item, skill and correct"
    if len(names) > 1:
        return ("tsv" if separator == "\t" else "csv"), f"its first line has {SEPARATORS[separator]}"
    raise DataError(
        f"{source.name}: the content is in no format that the reader knows.",
        hint="a log begins with a line of column names, by commas or tabs; other formats: see --format.",
    )


def first_lines(text: Text, n_lines: int) -> list[str]:
    """The first lines that are not blank, without decoding the whole text."""
    lines: list[str] = []
    begin = 0
    while len(lines) < n_lines and begin < len(text.data):
        end = text.data.find(b"\n", begin)
        end = len(text.data) if end < 0 else end
        line = text.data[begin:end].decode()
        if line.strip():
            lines.append(line)
        begin = end + 1
    return lines
