"""Sheets that would not fit into memory are refused, and no others."""

from __future__ import annotations

import io
import zipfile

import pytest

from tests.support.workbook import workbook
from understudy.core.files import workbook_size
from understudy.core.files.source import Source
from understudy.core.files.workbook_size import check_workbook_size
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError

ROWS = [["learner", "action"], ["a", "x"], ["b", "y"]]


def with_cell(place: str) -> bytes:
    """A workbook with one more cell at a place."""
    old = zipfile.ZipFile(io.BytesIO(workbook(ROWS)))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("sheet1.xml"):
                row = "".join(letter for letter in place if letter.isdigit())
                more = f'<row r="{row}"><c r="{place}"><v>1</v></c></row></sheetData>'
                data = data.replace(b"</sheetData>", more.encode())
            new.writestr(name, data)
    return sink.getvalue()


@pytest.mark.parametrize(
    "place",
    ["XFD1048576", "ZZ900000", "CA700000", "ZZZZZZ9", "B99999999", "B9999999999999999"],
)
def test_a_cell_far_away_is_refused(place):
    with pytest.raises(DataError, match="most of them empty") as caught:
        read_workbook(Source("log.xlsx", with_cell(place)))
    assert caught.value.code == "workbook-too-large"


@pytest.mark.parametrize("place", ["Z1000", "XFD2", "A1048576", "AB100000"])
def test_a_cell_that_is_not_so_far_is_not(place):
    check_workbook_size(Source("log.xlsx", with_cell(place)))


def test_a_workbook_of_other_pieces_is_counted_alike(monkeypatch):
    for size in (60, 100, 1000):
        monkeypatch.setattr(workbook_size, "_PIECE", size)
        with pytest.raises(DataError):
            check_workbook_size(Source("log.xlsx", with_cell("XFD1048576")))
        check_workbook_size(Source("log.xlsx", with_cell("XFD2")))


def test_what_unpacks_to_gigabytes_is_refused(monkeypatch):
    monkeypatch.setattr(workbook_size, "MOST_UNPACKED", 1000)
    with pytest.raises(DataError, match="unpacked"):
        check_workbook_size(Source("log.xlsx", workbook(ROWS)))


def test_a_damaged_one_is_refused_and_an_older_one_is_for_the_reader():
    """Its reader does not look at checksums, so that it would believe a damaged cell."""
    content = bytearray(workbook(ROWS))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = archive.getinfo("xl/worksheets/sheet1.xml")
    content[content.rindex(sheet.CRC.to_bytes(4, "little"))] ^= 1
    for damaged in (bytes(content), workbook(ROWS)[:-30]):
        with pytest.raises(DataError, match="damaged"):
            check_workbook_size(Source("log.xlsx", damaged))
    check_workbook_size(Source("log.xls", b"\xd0\xcf\x11\xe0 an older one"))
