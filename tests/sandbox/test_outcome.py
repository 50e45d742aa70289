"""Bytes that a run may have made up: read, refused, or cleaned."""

import json
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.sandbox import outcome
from understudy.sandbox.outcome import MAGIC, read_result


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def told(header, *tables):
    text = json.dumps(header).encode()
    return MAGIC + struct.pack("<Q", len(text)) + text + b"".join(tables)


def with_tables(**tables):
    listed = [[name, len(content)] for name, content in tables.items()]
    return told({"status": "done", "values": 1, "tables": listed}, *tables.values())


def read_table(content):
    return pa.ipc.open_stream(content).read_all()


def refused(content):
    outcome = read_result(content, 10)
    return (outcome.status, outcome.error_type) == ("error", "FalseResult")


def test_values_and_tables_come_back():
    table = pa.table(
        {
            "n": [1, None, 3],
            "x": [0.5, float("nan"), None],
            "s": ["a", None, "ü"],
            "b": [True, None, False],
            "t": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
            "d": pa.array([1, None, 3], pa.date32()),
        }
    )
    outcome = read_result(with_tables(result=stream(table)), 1)
    assert outcome.status == "done"
    assert outcome.values == 1
    assert str(read_table(outcome.tables["result"]).to_pydict()) == str(table.to_pydict())
    assert read_table(outcome.tables["result"]).schema == table.schema


def test_an_empty_table_comes_back():
    table = pa.table({"n": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    assert read_table(read_result(with_tables(r=stream(table)), 1).tables["r"]).equals(table)


def test_nothing_hides_behind_what_is_shown():
    secret = b"canary-4711"
    text = pa.array(["a", "b", secret.decode()])
    buffers = pa.array([1, 0x3131372D7972616E]).buffers()
    covered = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), buffers[1]])
    offsets = pa.py_buffer(struct.pack("<3i", 0, 1, 2))
    beyond = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab" + secret)])
    schema = pa.schema([pa.field("s", pa.string(), metadata={"m": secret})], metadata={"m": secret})
    made = {
        "sliced": stream(pa.table({"s": text})[:2]),
        "covered": stream(pa.table({"n": covered})),
        "beyond": stream(pa.table({"s": beyond})),
        "metadata": stream(pa.table([pa.array(["a"])], schema=schema)),
    }
    assert sum(secret in content for content in made.values()) >= 2
    assert buffers[1].to_pybytes()[8:] in made["covered"]
    outcome = read_result(with_tables(**made), 1)
    assert outcome.status == "done"
    for content in outcome.tables.values():
        assert secret not in content
        assert buffers[1].to_pybytes()[8:] not in content


def test_every_type_that_passes_is_one_of_ours():
    for kind in outcome.plain_types():
        table = pa.table({"c": pa.nulls(2, kind)})
        content = read_result(with_tables(r=stream(table)), 1).tables["r"]
        assert read_table(content).equals(table), kind


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pa.timestamp(unit, zone)
            for unit in ("s", "ns")
            for zone in ("canary", "Europe/Berlin", "+02:00", "utc")
        ),
        *(pa.time32("s"), pa.time64("ns"), pa.month_day_nano_interval(), pa.null()),
        *(pa.decimal128(38, 5), pa.decimal256(50, 5), pa.binary(), pa.large_binary(), pa.binary(4)),
        *(pa.string_view(), pa.binary_view(), pa.dictionary(pa.int8(), pa.string())),
        *(pa.struct([("canary", pa.int64())]), pa.map_(pa.string(), pa.int64())),
        *(pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.list_view(pa.int64())),
        *(pa.list_(pa.field("canary", pa.int64())), pa.run_end_encoded(pa.int16(), pa.int64())),
        pa.sparse_union([pa.field("canary", pa.int64())]),
        pa.dense_union([pa.field("canary", pa.int64())]),
        *(pa.opaque(pa.int64(), "canary", "canary"), pa.bool8(), pa.uuid(), pa.json_()),
        pa.fixed_shape_tensor(pa.int64(), [1], dim_names=["canary"]),
    ],
    ids=str,
)
def test_types_that_carry_text_or_parameters_are_refused(kind):
    schema = pa.schema([("c", kind)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema):
        pass
    assert refused(with_tables(r=bytes(sink.getvalue())))


@pytest.mark.parametrize("name", ["x" * 301, "a\nb", "a\u200bb", "a\u202eb", "a\0", "\x1b[2J"])
def test_names_that_are_refused(name):
    table = stream(pa.table({"n": [1]}))
    assert refused(with_tables(r=stream(pa.table({name: [1]}))))
    assert refused(with_tables(**{name: table}))
    assert not refused(with_tables(**{"Mittel (min) für x": table}))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_hidden_bits_of_a_nan_are_gone(size):
    import numpy as np

    secret = {2: 0x7E11, 4: 0x7FC12345, 8: 0x7FF8_6361_6E61_7279}[size].to_bytes(size, "little")
    numbers = np.frombuffer(secret + bytes(size), f"<f{size}")
    assert np.isnan(numbers[0])
    made = stream(pa.table({"x": pa.array(numbers)}))
    assert secret in made
    content = read_result(with_tables(r=made), 1).tables["r"]
    assert secret not in content
    assert str(read_table(content).to_pydict()) == "{'x': [nan, 0.0]}"
    assert read_table(content).schema.field("x").type.byte_width == size


def test_tables_that_are_refused():
    plain = pa.table({"n": list(range(1000))})
    assert not refused(with_tables(r=stream(plain)))
    for name, content in {
        "compressed": stream(plain, compression="zstd"),
        "dictionary": stream(pa.table({"s": pa.array(["a", "b"]).dictionary_encode()})),
        "no room for rows": stream(pa.table({"n": pa.nulls(1_000_000)})),
        "nested": stream(pa.table({"n": [[1], [2]]})),
        "bytes": stream(pa.table({"n": [b"x"]})),
        "no columns": stream(pa.table({})),
        "same names": stream(pa.table([pa.array([1]), pa.array([1])], names=["a", "a"])),
        "cut off": stream(plain)[:-2000],
        "not Arrow": b"x" * 100,
        "nothing": b"",
    }.items():
        assert refused(with_tables(r=content)), name


def with_shared_buffers(n_columns, n_rows):
    """A stream whose columns all lie over the same bytes of its body: the first column's."""
    table = pa.table({f"c{place:03}": pa.array(range(n_rows), pa.int64()) for place in range(n_columns)})
    content = bytearray(stream(table))
    # The metadata lists the buffers of each column as (offset, length), without validity bits (length 0).
    size = 8 * n_rows
    first = content.index(struct.pack("<4q", 0, 0, 0, size))
    for place in range(n_columns):
        assert struct.unpack_from("<4q", content, first + 32 * place)[1::2] == (0, size)
        struct.pack_into("<4q", content, first + 32 * place, 0, 0, 0, size)
    return bytes(content)


def test_columns_over_the_same_bytes_are_refused():
    # The body of one column for fifty of them, which Arrow itself reads.
    n_columns, n_rows = 50, 1000
    content = with_shared_buffers(n_columns, n_rows)
    metadata_bytes = content.index(struct.pack("<3q", 0, 1, 2))
    length = struct.pack("<q", 8 * n_rows * n_columns)
    short = content[: metadata_bytes + 8 * n_rows].replace(length, struct.pack("<q", 8 * n_rows))
    short += struct.pack("<II", 0xFFFFFFFF, 0)
    assert read_table(short).nbytes > 10 * len(short)
    assert refused(with_tables(r=short))


def test_bits_that_would_become_bytes_are_limited(monkeypatch):
    table = pa.table({name: pa.array([True] * 1000) for name in "abcd"})
    assert not refused(with_tables(r=stream(table)))
    monkeypatch.setattr(outcome, "MOST_CELLS", 3999)
    assert refused(with_tables(r=stream(table)))


class Registered(pa.ExtensionType):
    """A type that this process knows: reading it runs code of ours on what the bytes say."""

    def __init__(self):
        super().__init__(pa.int64(), "understudy.test.registered")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        raise LookupError(f"canary {serialized!r}")


def test_extension_types_are_refused_whether_known_or_not():
    made = stream(pa.table({"n": pa.ExtensionArray.from_storage(Registered(), pa.array([1, 2]))}))
    unknown = pa.schema([pa.field("n", pa.list_(pa.int64()), metadata={"ARROW:extension:name": "unknown"})])
    assert refused(with_tables(r=stream(pa.table([pa.array([[1]])], schema=unknown))))
    pa.register_extension_type(Registered())
    try:
        with pytest.raises(LookupError):
            read_table(made)
        assert refused(with_tables(r=made))
    finally:
        pa.unregister_extension_type("understudy.test.registered")
    # Unknown here, it is the plain numbers that it is stored as, and its name and metadata are gone.
    cleaned = read_result(with_tables(r=made), 1).tables["r"]
    assert read_table(cleaned).schema == pa.schema([("n", pa.int64())])
    assert b"understudy.test.registered" not in cleaned


def test_an_extension_type_in_pyarrow_itself_is_refused():
    import uuid

    known = pa.array([uuid.UUID(int=1).bytes], pa.uuid())
    assert refused(with_tables(r=stream(pa.table({"u": known}))))


def test_text_that_is_not_unicode_is_refused():
    offsets = pa.py_buffer(struct.pack("<2i", 0, 2))
    wrong = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    assert refused(with_tables(r=stream(pa.table({"s": wrong}))))
    assert refused(told({"status": "done", "values": "\ud800", "tables": []}))


def test_headers_that_are_refused(monkeypatch):
    monkeypatch.setattr(outcome, "MOST_JSON_BYTES", 1000)
    deep = []
    for _ in range(80):
        deep = [deep]
    for content in (
        b"",
        MAGIC,
        b"x" * 100,
        MAGIC + struct.pack("<Q", 2**63) + b"{}",
        MAGIC + struct.pack("<Q", 1) + b"{",
        told([]),
        told({"status": "fine"}),
        told({"status": "done", "values": "x" * 2000, "tables": []}),
        told({"status": "done", "values": deep, "tables": []}),
        told({"status": "done"}),
        told({"status": "done", "tables": [["a", -1]]}),
        told({"status": "done", "tables": [["a", 10]]}),
        told({"status": "done", "tables": [{"a": 1}]}),
        told({"status": "done", "tables": []}, b"more"),
    ):
        assert refused(content)


def test_an_error_is_a_known_type_and_a_line_of_the_code():
    def outcome(kinds, line):
        return read_result(told({"status": "error", "error_types": kinds, "error_line": line}), 10)

    known = outcome(["LinAlgError", "ValueError"], 3)
    assert (known.error_type, known.error_line) == ("LinAlgError", 3)
    assert outcome(["canary", "KeyError"], 3).error_type == "KeyError"
    assert outcome(["canary", 7, None], 3).error_type == "Exception"
    assert outcome("canary", 3).error_type == "Exception"
    for line in (0, 11, "canary", True, 3.0, None):
        assert outcome(["KeyError"], line).error_line is None


@given(st.data())
def test_no_change_of_bytes_gets_past_the_reader(data):
    content = bytearray(with_tables(r=stream(pa.table({"n": [1, 2, 3], "s": ["a", "b", None]}))))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(len(MAGIC), len(content) - 1))] = data.draw(st.integers(0, 255))
    outcome = read_result(bytes(content), 1)
    assert outcome.status in ("done", "error", "output", "memory")
    for table in outcome.tables.values():
        read_table(table).validate(full=True)


@pytest.mark.parametrize("status", ["output", "memory"])
def test_limits_that_the_inside_noticed(status):
    assert read_result(told({"status": status}), 1).status == status
