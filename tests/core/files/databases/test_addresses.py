"""Addresses of logs in databases."""

from pathlib import Path

import pytest

from understudy.core.files.databases.addresses import DatabaseAddress, database_address, refuse_address
from understudy.core.files.databases.streams import is_ordered
from understudy.errors import UsageError


def test_an_address_has_a_place_and_a_table():
    found = database_address("duckdb:data/school.db?table=events")
    assert found is not None
    assert (found.kind, found.file, found.table) == ("duckdb", Path("data/school.db"), "events")
    assert found.name == "events (school.db)"


def test_a_query_is_taken_as_it_is():
    query = "SELECT a, b FROM t WHERE b = 'x?table=y&query=z' AND c % 2 = 1"
    found = DatabaseAddress.parse(
        f"postgresql://ana:geheim@db.example:5433/school?sslmode=require&query={query}"
    )
    assert found.query == query
    assert found.place == "postgresql://ana:geheim@db.example:5433/school?sslmode=require"
    assert found.name == "query (school on db.example)"
    assert "geheim" not in f"{found} {found!r} {found.name} {found.database}"


@pytest.mark.parametrize(
    "text",
    [
        "duckdb:school.db",
        "duckdb:school.db?query=",
        "duckdb:school.db?table=a&table=b",
        "duckdb:school.db?table=a&query=SELECT 1",
        "duckdb:school.db?tabel=a",
        "postgresql://host/school",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError) as caught:
        database_address(text)
    assert caught.value.code == "bad-address"


@pytest.mark.parametrize("text", ["log.csv", "duckdb", "postgres", "a/postgresql:x", "C:log.csv"])
def test_files_are_no_addresses(text):
    assert database_address(text) is None


def test_where_only_files_are_read_no_message_shows_a_password():
    with pytest.raises(UsageError) as caught:
        refuse_address(Path("postgresql://ana:geheim@host/school?table=events"))
    assert "geheim" not in str(caught.value)


def test_an_address_in_a_plan_is_seen_from_its_folder(tmp_path):
    address = DatabaseAddress.parse(f"duckdb:{tmp_path}/data/school.db?table=events")
    written = address.text(tmp_path)
    assert written == "duckdb:data/school.db?table=events"
    assert DatabaseAddress.parse(written).seen_from(tmp_path).file == tmp_path / "data" / "school.db"
    server = "postgresql://host/school?sslmode=require&table=events"
    assert DatabaseAddress.parse(server).seen_from(tmp_path).text() == server


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT * FROM t ORDER BY at", True),
        ("select * from t\norder\n by at desc limit 5", True),
        ("SELECT * FROM t", False),
        ("SELECT row_number() OVER (PARTITION BY a ORDER BY (b + 1)) FROM t", False),
        ("SELECT * FROM (SELECT * FROM t ORDER BY at) AS s", False),
        ("SELECT 'order by' FROM t -- order by\n", False),
    ],
)
def test_the_order_of_a_query_is_its_own(query, ordered):
    assert is_ordered(query) == ordered
