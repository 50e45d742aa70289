"""How a Parquet file is laid out: its row groups and the headers of their pages, checked before a library trusts them.

polars ends the whole process where the header of a page claims a number of values for which there is no memory. So the
few numbers that say how much follows are read here (Thrift's compact protocol; parquet.thrift of the format names the
fields) and compared with each other. What is in the pages is left to the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

MAGIC = b"PAR1"
_MOST_DEPTH = 32
# What a page may take whatever its column is said to take.
_LEAST_BYTES = 1 << 20
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


class LayoutError(Exception):
    """The file does not say how it is laid out, or contradicts itself."""


class Content(Protocol):
    """Bytes in memory, or a file that is mapped."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> bytes: ...


@dataclass(frozen=True)
class RowGroup:
    """Rows that are stored together; `first` is the number of the first one, from 1 on."""

    number: int
    first: int
    n_rows: int
    chunks: tuple[Any, ...]

    def check(self, content: Content) -> None:
        """Refuse headers of pages that cannot be true."""
        for chunk in self.chunks:
            _check_pages(content, _part(chunk, 3, dict))


def row_groups(content: Content) -> list[RowGroup]:
    """The row groups of a file, by its footer."""
    size = len(content)
    if size < 12 or content[:4] != MAGIC or content[size - 4 : size] != MAGIC:
        raise LayoutError
    length = int.from_bytes(content[size - 8 : size - 4], "little")
    if length > size - 12:
        raise LayoutError
    footer = _Compact(content[size - 8 - length : size - 8]).struct()
    groups, first = [], 1
    for number, group in enumerate(_part(footer, 4, list)):
        n_rows = _count(group, 3)
        groups.append(RowGroup(number, first, n_rows, tuple(_part(group, 1, list))))
        first += n_rows
    if first - 1 != _count(footer, 3):
        raise LayoutError
    return groups


def _check_pages(content: Content, chunk: dict[int, Any]) -> None:
    """Refuse headers of pages that claim more than the footer says about their column.

    Nothing else is held against a file: writers have differed in what they count as part of a column.
    """
    n_values, n_unpacked = _count(chunk, 5), _count(chunk, 6)
    begin = _count(chunk, 9)
    # Some writers give 0 where there is no dictionary.
    if 0 < _count(chunk, 11, default=0) < begin:
        begin = _count(chunk, 11)
    found = 0
    while found < n_values:
        header, begin = _header(content, begin)
        begin += _count(header, 3)
        data, dictionary = header.get(5) or header.get(8), header.get(7)
        values = _count(data or dictionary, 1) if data or dictionary else 0
        found += values if data else 0
        if data and any(_count(data, field, default=0) > n_values for field in (2, 3) if 8 in header):
            raise LayoutError
        # A dictionary has no more entries than there are values, or bytes.
        too_many = found > n_values or values > max(n_values, n_unpacked)
        if too_many or _count(header, 2) > max(n_unpacked, _LEAST_BYTES):
            raise LayoutError


def _header(content: Content, begin: int) -> tuple[dict[int, Any], int]:
    """The header of the page that begins there, and where it ends."""
    # Some dozens of bytes, unless long texts are quoted as the smallest and the largest value.
    for size in (256, 1 << 16, 1 << 24):
        reader = _Compact(content[begin : begin + size])
        try:
            return reader.struct(), begin + reader.at
        except LayoutError:
            if begin + size >= len(content):
                raise
    raise LayoutError


def _part(struct: Any, field: int, kind: type) -> Any:
    value = struct.get(field) if isinstance(struct, dict) else None
    if not isinstance(value, kind):
        raise LayoutError
    return value


def _count(struct: Any, field: int, default: int | None = None) -> int:
    value = struct.get(field, default) if isinstance(struct, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise LayoutError
    return value


class _Compact:
    """Structures in Thrift's compact protocol, as dictionaries by the numbers of their fields."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The next structure."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise LayoutError
        if kind in _INTEGERS:
            return self._integer()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._skip(8)
        if kind == _BINARY:
            return self._skip(self._varint())
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 != 15 else self._varint()
            # Every element takes a byte at least.
            if size > len(self._data) - self.at:
                raise LayoutError
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise LayoutError

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise LayoutError
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, size: int) -> None:
        if size > len(self._data) - self.at:
            raise LayoutError
        self.at += size

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise LayoutError

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
