"""Damaged Parquet files: which row group, what to do, nothing of what a library prints; whole ones are let through."""

from __future__ import annotations

import contextlib
import io
import os
import threading

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fuzz import quick
from understudy.core.files.parquet import _panics, check_parquet, intact, read_whole_parquet
from understudy.core.files.parquet_layout import row_groups
from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

parquet = pytest.importorskip("pyarrow.parquet")

N_ROWS, N_GROUPS = 6000, 6
ZSTANDARD = b"\x28\xb5\x2f\xfd"


def table() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "learner": [f"pupil {n // 40}" for n in range(N_ROWS)],
            "action": rng.choice(["add", "subtract", "divide"], N_ROWS),
            "outcome": rng.integers(2, size=N_ROWS),
            "x": rng.random(N_ROWS),
            "words": [[str(n)] * (n % 3) for n in range(N_ROWS)],
        }
    )


def written(**options) -> bytes:
    sink = io.BytesIO()
    table().write_parquet(sink, row_group_size=N_ROWS // N_GROUPS, **options)
    return sink.getvalue()


def damaged(content: bytes, *groups: int, what: str = "page") -> bytes:
    """The file with a page of each of these row groups broken, or the header of one."""
    metadata = parquet.ParquetFile(io.BytesIO(content)).metadata
    broken = bytearray(content)
    for group in groups:
        # The column x: numbers without a dictionary, so that there is one page.
        column = metadata.row_group(group).column(3)
        at = column.data_page_offset
        if what == "page":
            at = content.index(ZSTANDARD, at)
        broken[at : at + 4] = bytes([255] * 4)
    return bytes(broken)


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd", "lz4", "gzip"])
@pytest.mark.parametrize("statistics", ["full", False])
def test_whole_files_are_let_through(compression, statistics):
    content = written(compression=compression, statistics=statistics)
    check_parquet("log.parquet", content)
    groups = row_groups(content)
    assert [(group.first, group.n_rows) for group in groups] == [
        (1 + 1000 * n, 1000) for n in range(N_GROUPS)
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_what_another_library_writes_is_let_through(version, pages, dictionary):
    sink = io.BytesIO()
    options = {"version": version, "data_page_version": pages, "use_dictionary": dictionary}
    arrow = table().to_arrow()
    parquet.write_table(
        arrow,
        sink,
        row_group_size=1000,
        data_page_size=500,
        write_page_checksum=True,
        write_page_index=True,
        **options,
    )
    check_parquet("log.parquet", sink.getvalue())
    metadata = parquet.ParquetFile(sink).metadata
    found = [group.n_rows for group in row_groups(sink.getvalue())]
    assert found == [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]


@pytest.mark.parametrize("what", ["page", "header"])
@pytest.mark.parametrize("how", ["file", "folder"])
def test_a_damaged_row_group_is_named(tmp_path, what, how):
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "second.parquet"
    path.write_bytes(damaged(written(compression="zstd"), 2, 4, what=what))
    (folder / "first.parquet").write_bytes(written())
    with pytest.raises(DataError) as caught:
        read_log(path if how == "file" else folder, action="action", outcome="outcome", group="x")
    assert caught.value.message.startswith(
        "second.parquet: the Parquet file is damaged or cut short: row group 2 of 6"
    )
    assert "(rows 2,001 to 3,000)" in caught.value.message
    assert "and so is 1 other" in caught.value.message
    assert (caught.value.code, caught.value.fields["row_groups"]) == ("damaged-row-group", [2, 4])
    assert "the other row groups are whole" in caught.value.hint


def test_a_file_without_its_end(tmp_path):
    path = tmp_path / "cut.parquet"
    path.write_bytes(written()[:-100])
    with pytest.raises(DataError, match="damaged or cut short") as caught:
        read_whole_parquet(path)
    assert caught.value.code == "damaged-parquet"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="damaged or cut short"):
        read_whole_parquet(path)


CONTENT = written(compression="zstd")


@quick(300)
@given(place=st.floats(0, 1), value=st.binary(min_size=1, max_size=4), at_end=st.booleans())
def test_any_few_wrong_bytes(place, value, at_end):
    at = int(place * 3000) + len(CONTENT) - 3000 if at_end else int(place * len(CONTENT))
    content = CONTENT[:at] + value + CONTENT[at + len(value) :]
    with contextlib.suppress(DataError):
        check_parquet("x", content)
        with intact("x", content):
            pl.read_parquet(io.BytesIO(content))


def test_what_is_printed_about_a_failure_is_lost_and_all_else_is_not(capfd):
    with _panics.silenced():
        os.write(2, b"fine\n")

    def panic():
        with intact("x", b""):
            os.write(2, b"thread panicked at a learner's value\n")
            raise BaseException("as a panic is")

    with pytest.raises(DataError):
        panic()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "fine\nafter\n"


def test_threads_keep_the_stream_back_together(capfd):
    inside, go_on = threading.Barrier(3), threading.Event()

    def work():
        with _panics.silenced():
            inside.wait()
            go_on.wait()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    os.write(2, b"meanwhile\n")
    assert capfd.readouterr().err == ""
    go_on.set()
    for thread in threads:
        thread.join()
    assert capfd.readouterr().err == "meanwhile\n"


def test_errors_of_ours_and_stops_pass():
    with pytest.raises(UsageError), intact("x", b""):
        raise UsageError("ours", hint="none")
    with pytest.raises(KeyboardInterrupt), intact("x", b""):
        raise KeyboardInterrupt
