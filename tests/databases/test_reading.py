"""Logs read from real databases."""

import re
import stat
import traceback
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.databases.conftest import rows_of, simulated
from tests.support.command import run
from understudy.core.engine.engine import running_on
from understudy.core.files.databases import streams as database_streams
from understudy.core.files.databases.addresses import DatabaseAddress, database_address, refuse_address
from understudy.core.files.databases.connections import open_database
from understudy.core.files.databases.streams import open_database_stream
from understudy.core.files.source import open_source
from understudy.errors import DataError, MissingError, UnderstudyError, UsageError
from understudy.logs.reading import read_log

CANARY = "Zacharias Quint"


def same_walks(one, other):
    """Whether two logs have the same learners, whatever their order."""
    walks = [
        sorted(
            (tuple(log.actions[a] for a in log.action[b:e]), tuple(log.success[b:e]))
            for b, e in zip(log.offsets[:-1], log.offsets[1:], strict=True)
        )
        for log in (one, other)
    ]
    return walks[0] == walks[1]


def test_a_table_is_read_in_the_order_of_its_times(school):
    store, log = school
    found = read_log(store.address("table=events"))
    assert same_walks(found, log)
    assert found.origin.name.startswith("events (")


def test_a_query_may_say_the_order_itself(school):
    store, log = school
    query = 'SELECT learner AS student, action AS skill, outcome AS correct FROM events ORDER BY "time"'
    assert same_walks(read_log(store.address(f"query={query}")), log)


def test_rows_without_an_order_are_refused(school):
    store, _ = school
    with pytest.raises(UsageError) as caught:
        read_log(store.address("query=SELECT learner, action, outcome FROM events"))
    assert caught.value.code == "no-order"


def test_blocks_have_all_rows_once_and_in_order(school, monkeypatch):
    store, log = school
    monkeypatch.setattr(database_streams, "BLOCK_ROWS", 1000)
    query = 'SELECT learner, action, outcome, "time" FROM events ORDER BY "time"'
    stream = open_database_stream(DatabaseAddress.parse(store.address(f"query={query}")))
    blocks = list(stream.blocks([3, 1]))
    assert stream.n_rows == log.n_rows
    assert max(block.height for block in blocks) <= 2048  # DuckDB gives whole vectors
    rows = pl.concat(blocks)
    assert rows.columns == ["3", "1", "line"]
    assert rows["line"].to_list() == list(range(1, log.n_rows + 1))
    assert rows["1"].to_list() == rows_of(log)["action"].to_list()
    head = stream.head()
    assert head.names == ("learner", "action", "outcome", "time")
    assert head.frame.height == min(log.n_rows, 2000)


def test_rows_are_fetched_once(school, tmp_path, monkeypatch):
    """And what they are kept in meanwhile is removed, and readable by nobody else."""
    store, log = school
    asked, seen = [], []

    def recording(stream, positions, fetch=database_streams.DatabaseStream.blocks):
        asked.append(positions)
        for block in fetch(stream, positions):
            yield block
            seen.extend(path for path in tmp_path.rglob("*"))
            assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o700}

    monkeypatch.setattr(database_streams.DatabaseStream, "blocks", recording)
    monkeypatch.setattr(database_streams, "BLOCK_ROWS", 1000)
    with running_on(scratch=str(tmp_path)):
        found = read_log(store.address("table=events"))
    assert same_walks(found, log)
    assert asked == [[0, 1, 2, 3]]
    fetched = {path for path in seen if path.name == "fetched"}
    assert len(fetched) == 1
    assert not fetched.pop().exists()


def test_a_missing_table_is_said_with_those_that_are_there(school):
    store, _ = school
    with pytest.raises(UsageError) as caught:
        read_log(store.address("table=event"))
    assert caught.value.code == "no-such-table"
    assert "events" in caught.value.hint


def test_a_query_that_is_no_sql_is_said(school):
    store, _ = school
    for query in ("SELEKT 1", "SELECT nothing FROM events", "SELECT * FROM nowhere", "DROP TABLE events"):
        with pytest.raises(UsageError) as caught:
            read_log(store.address(f"query={query}"))
        assert caught.value.code == "bad-query"


def test_nothing_is_changed(school):
    store, log = school
    for query in (
        "DELETE FROM events RETURNING *",
        "WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone",
    ):
        with pytest.raises(UnderstudyError):
            read_log(store.address(f"query={query}"))
    assert read_log(store.address("table=events")).n_rows == log.n_rows


def test_no_message_quotes_a_value(store):
    frame = pl.DataFrame(
        {"learner": [CANARY, "b"], "action": ["x", "y"], "outcome": [CANARY, "1"], "time": ["1", "2"]}
    )
    store.fill(frame)
    for wanted in (
        "table=events",
        "query=SELECT CAST(learner AS integer) AS learner, action, outcome, time FROM events ORDER BY action",
    ):
        with pytest.raises(DataError) as caught:
            read_log(store.address(wanted))
        shown = "".join(traceback.format_exception(caught.value))
        assert CANARY not in f"{shown} {caught.value.fields}"


def test_empty_cells_and_types_are_read_as_those_of_a_file(store, tmp_path):
    frame = pl.DataFrame(
        {
            "learner": [7, 7, 12, 12, 12],
            "action": ["a,b", 'c "d"', "e\nf", " a,b ", "ü'"],
            "outcome": [True, False, None, True, True],
            "score": [0.1, None, 3.0, 1e300, -0.0],
            "time": pl.Series(
                ["2024-01-05", "2024-01-04", "2024-01-03", "2024-01-02", "2024-01-01"]
            ).str.to_datetime(),
        }
    )
    store.fill(frame)
    frame.write_parquet(tmp_path / "log.parquet")
    found = read_log(store.address("table=events"), skip_incomplete=True)
    wanted = read_log(tmp_path / "log.parquet", skip_incomplete=True)
    assert found.actions == wanted.actions
    np.testing.assert_array_equal(found.action, wanted.action)
    np.testing.assert_array_equal(found.outcome, wanted.outcome)


def test_an_empty_table_is_said(store):
    store.run("CREATE TABLE events (learner text, action text, outcome int, time timestamp)")
    with pytest.raises(DataError, match="no row"):
        read_log(store.address("table=events"))


def test_tables_of_one_name_need_their_schema(store):
    store.run(
        "CREATE SCHEMA y7",
        "CREATE SCHEMA y8",
        *(
            f"CREATE TABLE {s}.events AS SELECT 1 AS learner, 'a' AS action, 1 AS outcome, 5 AS time"
            for s in ("y7", "y8")
        ),
    )
    with pytest.raises(UsageError, match="different schemas"):
        read_log(store.address("table=events"))
    assert read_log(store.address("table=y8.events"), single_rows=True, time="time").n_rows == 1


def test_commands_take_an_address(school, tmp_path):
    store, _ = school
    address = store.address("table=events")
    seen = run("inspect", address, cwd=tmp_path)
    assert seen.returncode == 0, seen.stderr
    assert "events (" in seen.stdout
    ledger = ("--ledger", tmp_path / "ledger", "--population", "7b")
    command = ("synthesize", address, "-o", "out.csv", "-m", "markov-dp", "--public-actions", *ledger)
    made = run(*command, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert pl.read_csv(tmp_path / "out.csv").height > 0
    assert stat.S_ISREG((tmp_path / "ledger").stat().st_mode)


def test_a_server_has_no_place_for_a_ledger(store, tmp_path):
    store.fill(rows_of(simulated()))
    made = run(
        "synthesize",
        store.address("table=events"),
        "-o",
        "o.csv",
        "-m",
        "markov-dp",
        "--public-actions",
        cwd=tmp_path,
    )
    if store.kind == "duckdb":
        # It is beside the database, as for every file.
        assert made.returncode == 0, made.stderr
    else:
        assert made.returncode == 2
        assert "--population" in made.stderr
        assert "--ledger" in made.stderr


def test_the_same_learners_are_known_from_a_file(school, tmp_path):
    """Whoever was charged as a table of a database is charged again as a file of the same learners."""
    store, log = school
    rows_of(log).write_csv(tmp_path / "log.csv")
    common = ("-m", "markov-dp", "--public-actions", "--ledger", tmp_path / "ledger")
    first = run(
        "synthesize",
        store.address("table=events"),
        "-o",
        "a.csv",
        "--population",
        "7b",
        *common,
        cwd=tmp_path,
    )
    assert first.returncode == 0, first.stderr
    again = run("synthesize", "log.csv", "-o", "b.csv", *common, cwd=tmp_path)
    assert again.returncode == 4
    assert "7b" in again.stderr


def test_a_plan_keeps_the_address(school, tmp_path):
    store, _ = school
    planned = run(
        *(
            "release",
            store.address("table=events"),
            "-o",
            "bundle",
            "--public-actions",
            "--write-plan",
            "plan.toml",
        ),
        *("--population", "7b", "--ledger", "l"),
        cwd=tmp_path,
    )
    assert planned.returncode == 0, planned.stderr
    page = run("release", "--plan", "plan.toml", "--plan-page", "page.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_a_file_that_is_not_there_or_not_duckdb(store, tmp_path):
    with pytest.raises(UsageError, match="no file"):
        read_log(store.address("table=events"))
    (tmp_path / "school.db").write_text("learner,action\n1,2\n")
    with pytest.raises(DataError, match="not a DuckDB"):
        read_log(store.address("table=events"))


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_a_file_that_is_open_for_writing_is_said(store):
    import duckdb

    store.fill(rows_of(simulated(10, 3)))
    with duckdb.connect(store.place.removeprefix("duckdb:")), pytest.raises(MissingError) as caught:
        read_log(store.address("table=events"))
    assert caught.value.code == "database-locked"


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_every_type_of_numbers_is_known(store):
    types = [f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")]
    types += ["INTEGER", "UINTEGER", "FLOAT", "DOUBLE", "DECIMAL(9, 2)"]
    store.run(f"CREATE TABLE events ({', '.join(f'c{at} {name}' for at, name in enumerate(types))})")
    database = open_database(DatabaseAddress.parse(store.address("table=events")))
    assert set(database.kinds("SELECT * FROM events")) == {"number"}


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_wrong_password_is_said_and_not_shown(store, postgresql, tmp_path):
    store.run("CREATE ROLE ana LOGIN PASSWORD 'richtig'")
    rules = postgresql.folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all ana scram-sha-256\n{rules.read_text()}")
    store.run("SELECT pg_reload_conf()")
    address = store.address("table=events").replace("desk@", "ana:geheim@")
    shown = run("inspect", address, cwd=tmp_path)
    assert shown.returncode == 2
    assert "password" in shown.stderr
    assert "geheim" not in shown.stdout + shown.stderr
    # With the right one, there is still no right to read.
    store.run("CREATE TABLE events (learner int, action int, outcome int, time int)")
    refused = run("inspect", address.replace("geheim", "richtig"), cwd=tmp_path)
    assert refused.returncode == 2
    assert "richtig" not in refused.stdout + refused.stderr


def test_a_server_that_is_not_there(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(MissingError) as caught:
        read_log("postgresql://ana:geheim@127.0.0.1:9/school?table=events")
    assert caught.value.exit_code == 5
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ana:ge/heim@127.0.0.1:9/school?table=events",
        "postgresql://ana:\tge/heim@127.0.0.1:9/school?table=events",
        "postgresql://ana:ge#heim@127.0.0.1:9/school?table=events",
        "postgresql://ana:ge?heim@127.0.0.1:9/school&table=events",
        "postgresql://ana:ge@heim/x@127.0.0.1:9/school?table=events",
        "Postgresql://ana:geheim@127.0.0.1:9/school?table=events",
        " postgres://ana:geheim@127.0.0.1:9/school?table=events",
        "postgresql:/ana:geheim@127.0.0.1:9/school?table=events",
        "postgresql+psycopg://ana:geheim@127.0.0.1:9/school?table=events",
        "jdbc:postgresql://ana:geheim@127.0.0.1:9/school?table=events",
        "mysql://ana:geheim@127.0.0.1:9/school?table=events",
        "\nMySQL://ana:geheim@127.0.0.1:9/school",
        "postgresql://ana:geheim@127.0.0.1:9/school",
    ],
)
def test_no_message_shows_a_part_of_an_address(address, tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    for given in (address, Path(address)):
        with pytest.raises((UsageError, MissingError)) as caught:
            read_log(given)
        shown = f"{caught.value} {caught.value.hint} {caught.value.fields}"
        assert not [part for part in ("ana", "ge", "heim") if re.search(rf"\b{part}", shown)]
    with pytest.raises(UsageError) as refused:
        open_source(Path(address))
    assert refused.value.code == "not-a-file"


KEYWORDS = [
    "host=db.example user=ana password=geheim dbname=school",
    "dbname = school  host = geheim.example",
    "password='ge heim' host=db.example",
    "postgresql:host=geheim.example dbname=school",
    "POSTGRES:password=geheim",
    "application_name=ana\tPASSWORD=geheim",
    "Server=db.example;User Id=ana;Password=geheim;",
    "Driver={PostgreSQL};Server=db.example;UID=ana;PWD=geheim",
    "sslmode=require sslpassword=geheim",
]


@pytest.mark.parametrize("given", KEYWORDS)
def test_keywords_of_a_client_are_known_and_not_shown(given, tmp_path):
    shown = run("inspect", given, cwd=tmp_path)
    assert shown.returncode == 2
    assert "postgresql://USER@HOST/DATABASE?query=" in shown.stderr
    with pytest.raises(UsageError) as refused:
        open_source(Path(given))
    assert refused.value.code == "not-a-file"
    said = f"{shown.stdout} {shown.stderr} {refused.value} {refused.value.hint}"
    assert not [part for part in ("ana", "ge", "geheim", "heim") if re.search(rf"\b{part}\b", said)]


@pytest.mark.parametrize(
    "name",
    ["user=7/host=3/log.parquet", "user=7.csv", "host=7 b.csv", "port 8 = school.csv", "no-password.csv"],
)
def test_files_of_such_names_are_files(name):
    assert database_address(name) is None
    refuse_address(Path(name))


def test_a_database_is_called_by_its_name_and_host():
    for begin in ("postgresql://", "Postgres://ana:ge%2Fheim@", " postgresql://ana@"):
        address = DatabaseAddress.parse(f"{begin}db.example/school?table=events")
        assert address.name == "events (school on db.example)"
    assert DatabaseAddress.parse("postgresql:///school?table=events").name == "events (school)"
    assert DatabaseAddress.parse("DuckDB:a/school.db?table=events").name == "events (school.db)"
    assert database_address("C:/logs/log.csv") is None
    assert database_address("logs: 7b/log.csv") is None
