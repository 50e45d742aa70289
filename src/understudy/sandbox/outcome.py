"""Reads what came out of a run: bytes that the submitted code may have made up.

Nothing here is pickled, decompressed or sized by what the bytes say about themselves.
"""

from __future__ import annotations

import builtins
import json
import struct
from functools import cache
from importlib import import_module
from typing import Any

from understudy.sandbox.jobs import MEBIBYTE, Outcome

MAGIC = b"UNDERSTUDY-RESULT-1\n"
MOST_JSON_BYTES = 8 * MEBIBYTE  # parsed JSON takes up to thirty times its size
MOST_DEPTH = 64
# Cells of one table, all columns together.
MOST_CELLS = 20_000_000
MOST_TABLES = 100
MOST_COLUMNS = 2_000
MOST_NAME = 300
# A class can be named after a learner's value: only names that Python or numpy gave are passed on.
ERROR_TYPES = frozenset(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
) | {"LinAlgError"}
FALSE_RESULT = "FalseResult"


class FalseResultError(Exception):
    """The bytes are not a result; says why without quoting them."""


def read_result(content: bytes | bytearray, n_lines: int) -> Outcome:
    """The outcome that the bytes describe, for code of `n_lines` lines."""
    try:
        header, rest = _header(content)
        status = header.get("status")
        if status in ("output", "memory"):
            return Outcome(status)
        if status == "error":
            return _error(header, n_lines)
        if status != "done":
            raise FalseResultError("unknown status")
        values = header.get("values")
        _check_plain(values, MOST_DEPTH)
        return Outcome("done", values=values, tables=_tables(header.get("tables"), rest))
    except FalseResultError:
        return Outcome("error", error_type=FALSE_RESULT)


def _header(content: bytes | bytearray) -> tuple[dict[str, Any], memoryview]:
    start = len(MAGIC) + 8
    if content[: len(MAGIC)] != MAGIC or len(content) < start:
        raise FalseResultError("no result")
    (size,) = struct.unpack_from("<Q", content, len(MAGIC))
    if size > MOST_JSON_BYTES or start + size > len(content):
        raise FalseResultError("header too long")
    try:
        header = json.loads(content[start : start + size].decode())
    except (ValueError, RecursionError) as error:
        raise FalseResultError("header is not JSON") from error
    if not isinstance(header, dict):
        raise FalseResultError("header is not an object")
    return header, memoryview(content)[start + size :]


def _error(header: dict[str, Any], n_lines: int) -> Outcome:
    kinds = header.get("error_types")
    known = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    kind = next((kind for kind in known if kind in ERROR_TYPES), "Exception")
    line = header.get("error_line")
    if not isinstance(line, int) or isinstance(line, bool) or not 1 <= line <= n_lines:
        line = None
    return Outcome("error", error_type=kind, error_line=line)


def _check_plain(value: Any, depth: int) -> None:
    if depth == 0:
        raise FalseResultError("nested too deeply")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        for part in value:
            _check_plain(part, depth - 1)
    elif isinstance(value, dict):
        for name, part in value.items():
            _check_text(name)
            _check_plain(part, depth - 1)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair, which no file takes
        raise FalseResultError("text is not Unicode") from error


def _check_name(name: str) -> None:
    # Printable: no letters without width, no marks that turn the direction, no line breaks, no half characters.
    if len(name) > MOST_NAME or not name.isprintable():
        raise FalseResultError("name of a table or column")


def _tables(listed: Any, rest: memoryview) -> dict[str, bytes]:
    if not isinstance(listed, list) or len(listed) > MOST_TABLES:
        raise FalseResultError("too many tables")
    tables: dict[str, bytes] = {}
    start = 0
    for entry in listed:
        match entry:
            case [str(name), int(length)] if name not in tables and 0 <= length <= len(rest) - start:
                _check_name(name)
                tables[name] = _clean_table(bytes(rest[start : start + length]))
                start += length
            case _:
                raise FalseResultError("list of tables")
    if start != len(rest):
        raise FalseResultError("bytes left over")
    return tables


def _clean_table(content: bytes) -> bytes:
    """The table read, checked and written again, without metadata."""
    pa = import_module("pyarrow")

    try:
        _check_messages(content)
        table = pa.ipc.open_stream(content, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
        # Buffers that overlap, or bits that become bytes, would make much of a small stream.
        if table.nbytes > len(content) or table.num_rows * table.num_columns > MOST_CELLS:
            raise FalseResultError("larger than its stream")
        table.validate(full=True)
        schema = _plain_schema(table.schema)
        clean = pa.Table.from_arrays(
            [_rewritten(column, kind) for column, kind in zip(table.columns, schema.types, strict=True)],
            schema=schema,
        )
    except FalseResultError:
        raise
    except Exception:
        # Extension types are read by whatever code this process has registered: any error may come, with
        # any text, and none of it is passed on.
        raise FalseResultError("not an Arrow stream") from None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(clean)
    return bytes(sink.getvalue())


def _rewritten(column: Any, kind: Any) -> Any:
    """The column in new buffers. A slice keeps the whole text that it was cut from, a missing value may lie
    over a number, and a NaN has 51 bits that nobody sees: what is not shown must not be there."""
    import numpy as np

    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        kept = pc.array_take(column.combine_chunks(), pa.array(np.arange(len(column))))
        return kept.combine_chunks() if isinstance(kept, pa.ChunkedArray) else kept
    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    numbers = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy()
    if pa.types.is_floating(kind):
        numbers = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)
    plain = pa.array(numbers, type=column.type, mask=missing if missing.any() else None)
    return plain.cast(kind)


def _check_messages(content: bytes) -> None:
    """Refuse compressed bodies before anything unpacks them, and dictionaries, which we do not send."""
    pa = import_module("pyarrow")

    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(content))
    first = True
    for message in reader:
        kind = str(message.type)
        if first != (kind == "schema"):
            raise FalseResultError("order of messages")
        if first:
            _plain_schema(pa.ipc.read_schema(message))
        elif kind != "record batch":
            raise FalseResultError("kind of message")
        elif _field(*_record_batch(message.metadata.to_pybytes()), 3) is not None:
            raise FalseResultError("compressed")
        first = False
    if first:
        raise FalseResultError("no schema")


def _plain_schema(schema: Any) -> Any:
    """The columns' names with types of our own making; nothing else of what the bytes say about columns.

    A type can carry text (the zone of a timestamp, an extension's name, the fields of a struct): it has to be
    equal to one of the list, and the list's goes on.
    """
    pa = import_module("pyarrow")

    if not 0 < len(schema) <= MOST_COLUMNS or len(set(schema.names)) != len(schema):
        raise FalseResultError("columns")
    known = {kind: kind for kind in plain_types()}
    fields = []
    for field in schema:
        _check_name(field.name)
        if field.type not in known:
            raise FalseResultError("type of a column")
        fields.append(pa.field(field.name, known[field.type]))
    return pa.schema(fields)


@cache
def plain_types() -> tuple[Any, ...]:
    """Every type takes room for every row, so that a small stream cannot claim many rows."""
    pa = import_module("pyarrow")

    units = ("s", "ms", "us", "ns")
    return (
        *(pa.bool_(), pa.string(), pa.large_string(), pa.date32(), pa.date64()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64()),
        *(pa.timestamp(unit, zone) for unit in units for zone in (None, "UTC")),
        *(pa.duration(unit) for unit in units),
    )


# The few steps through Arrow's metadata (a flatbuffer, apache/arrow format/Message.fbs) that tell whether a
# body is compressed: a table is a signed offset back to its vtable, which gives each field's offset or 0.


def _record_batch(metadata: bytes) -> tuple[bytes, int]:
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _field(metadata, root, 2)
    if header is None:
        raise FalseResultError("message without header")
    (step,) = struct.unpack_from("<I", metadata, header)
    return metadata, header + step


def _field(metadata: bytes, table: int, index: int) -> int | None:
    (back,) = struct.unpack_from("<i", metadata, table)
    vtable = table - back
    if vtable < 0:
        raise FalseResultError("metadata")
    (size,) = struct.unpack_from("<H", metadata, vtable)
    if 4 + 2 * index + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, vtable + 4 + 2 * index)
    return table + int(offset) if offset else None
