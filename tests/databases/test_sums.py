"""The sums of `markov-dp` as SQL: equal to the kernels', and bounded for each learner by themselves."""

import re

import numpy as np
import polars as pl
import pytest

from tests.databases.conftest import Store, rows_of, simulated
from tests.support.command import run
from understudy.core.files.databases.addresses import DatabaseAddress
from understudy.core.files.databases.connections import open_database
from understudy.core.files.simulated import mark_path, mark_simulated
from understudy.core.files.tables import SAMPLE_ROWS
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError, MissingError, UnderstudyError, UsageError
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_sums import WalkStatistics, bin_edges, first_rows
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.generators.sums_in_database import ChainStatistics, DatabaseStatistics, _factor
from understudy.logs.interactions import Interactions
from understudy.logs.log_in_database import _Columns, open_log_in_database
from understudy.logs.reading import read_log
from understudy.logs.synthesize import synthesize


def every_sum(walks: ChainStatistics, n_actions: int, norm: float = 3.7):
    """All sums that the generator asks for, at norms that clip some learners and at numbers of no special form."""
    rng = np.random.default_rng(5)
    easiness = rng.normal(0, 1.5, n_actions)
    weight = rng.uniform(0.5, 2.0, n_actions)
    return {
        "lengths": walks.lengths(bin_edges(200)),
        "length moments": walks.length_moments(200),
        "starts": walks.starts(),
        "row norms": walks.row_norms(30),
        "run norms": walks.run_norms(30),
        "totals": walks.totals(23.0),
        "rows": walks.rows(norm),
        "runs": walks.runs(norm),
        "jumps": walks.jumps(norm, np.arange(0, n_actions, 2)),
        "slopes": walks.slopes(easiness, weight, 1.3),
        "curvature": walks.curvature(easiness, weight, 1.3, 0.4),
        "abilities": walks.abilities(easiness, 1.1),
    }


def assert_equal(found, wanted):
    """Exactly: they are whole numbers."""
    assert found.keys() == wanted.keys()
    for name, total in wanted.items():
        np.testing.assert_array_equal(found[name].values, total.values, err_msg=name)
        assert found[name].sensitivity == total.sensitivity, name
        np.testing.assert_array_equal(found[name].step, total.step, err_msg=name)


@pytest.mark.oracle
@pytest.mark.parametrize("longest", [10_000, 17])
def test_sums_are_those_of_the_kernels(school, longest):
    store, log = school
    here = first_rows(log, longest)
    there = first_rows(open_log_in_database(store.address("table=events"), public_actions=True), longest)
    assert there.actions == here.actions
    assert there.n_learners == here.n_learners
    assert (here.lengths > 17).any() != (longest == 17)
    assert_equal(
        every_sum(DatabaseStatistics(there), there.n_actions), every_sum(WalkStatistics(here), here.n_actions)
    )


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_statistics_of_one_session_do_not_mix(store):
    """Others of fewer rows, and of another easiness, may be asked for meanwhile."""
    log = simulated(40, 6)
    store.fill(rows_of(log))
    there = open_log_in_database(store.address("table=events"), public_actions=True)
    few, many = (DatabaseStatistics(first_rows(there, longest)) for longest in (9, 50))
    one, other, weight = np.zeros(6), np.linspace(-1, 1, 6), np.ones(6)
    found = [few.rows(3.0), few.slopes(one, weight, 1.0)]
    many.rows(3.0), many.slopes(other, weight, 1.0)
    again = [few.rows(3.0), few.slopes(one, weight, 1.0)]
    for before, after in zip(found, again, strict=True):
        np.testing.assert_array_equal(before.values, after.values)
    assert (many.rows(3.0).values != again[0].values).any()


@pytest.mark.oracle
@pytest.mark.parametrize("outcomes", [True, False])
def test_the_generator_learns_the_same_in_the_database(school, outcomes):
    """With the same noise everything that follows is the same, to the last bit."""
    store, _ = school
    options = {"public_actions": True, "no_outcomes": not outcomes}
    here = read_log(store.address("table=events"), **options)
    there = open_log_in_database(store.address("table=events"), **options)
    made = []
    for log in (here, there):
        learned = MarkovDP().fit(log, noise=seeded_noise(np.random.default_rng(2)))
        made.append((learned, learned.sample(50, np.random.default_rng(3))))
    for name, noisy in made[0][0].transcript_.items():
        np.testing.assert_array_equal(noisy.values, made[1][0].transcript_[name].values, err_msg=name)
    np.testing.assert_array_equal(made[0][1].action, made[1][1].action)
    np.testing.assert_array_equal(made[0][1].offsets, made[1][1].offsets)
    assert (made[0][1].outcome is None) == (made[1][1].outcome is None) == (not outcomes)


def replaced(log: Interactions, action, outcome):
    """The rows of a log in which the first learner did something else."""
    frame = rows_of(log)
    first = frame["learner"][0]
    other = pl.DataFrame({"learner": [first] * len(action), "action": action, "outcome": outcome})
    at = pl.lit("2025-01-01").str.to_datetime() + pl.duration(seconds=pl.int_range(len(action)))
    return pl.concat(
        [frame.filter(pl.col("learner") != first), other.with_columns(at.alias("time")).cast(frame.schema)]
    )


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_no_learner_moves_a_sum_by_more_than_its_sensitivity(store):
    """Learners as different as they can be: a few rows, thousands at one action, and as many jumps."""
    log = simulated(40, 6)
    names = log.actions
    walks = {
        "one": ([names[0]], [1]),
        "same": ([names[1]] * 5000, [1] * 5000),
        "jumps": ([names[i % 6] for i in range(5000)], [i % 2 for i in range(5000)]),
        "forth": ([names[i] for i in [0, 2, 4] * 900], [1] * 2700),
        "back": ([names[i] for i in [4, 2, 0] * 900], [0] * 2700),
        "fails": ([names[2]] * 3000 + [names[3]] * 300, [0] * 3300),
    }
    found = {}
    for table, (action, outcome) in walks.items():
        store.fill(replaced(log, action, outcome), table=f"t_{table}")
    for table in walks:
        there = open_log_in_database(store.address(f"table=t_{table}"), public_actions=True)
        found[table] = every_sum(DatabaseStatistics(first_rows(there, 1000)), there.n_actions)
    reached = {}
    for one in walks:
        for other in walks:
            for name, total in found[one].items():
                moved = np.linalg.norm((total.values - found[other][name].values).astype(float))
                assert moved <= total.sensitivity, (one, other, name)
                reached[name] = max(reached.get(name, 0.0), moved / total.sensitivity)
    # They are tight: a clip that let twice as much through would be seen.
    assert {name: share for name, share in reached.items() if share <= 0.5} == {}


def test_what_a_learner_adds_follows_from_their_rows_alone(store):
    """To the last bit: floats are added up in an order that no other learner's rows, and no thread, can change."""
    m = 150
    rows = (
        "SELECT lpad(CAST(i AS text), 5, '0') AS learner, lpad(CAST(j AS text), 3, '0') AS action, "
        "(i * 7 + j * 3 + i * j) % 13 % 2 AS outcome, j AS time "
        f"FROM generate_series(0, 1499) AS learners(i), generate_series(0, {m - 1}) AS actions(j)"
    )
    store.run(f"CREATE TABLE events AS {rows}", f"CREATE TABLE neighbour AS {rows} WHERE i > 0 OR j < 3")
    easiness, found = np.random.default_rng(1).normal(0, 1.0, m), []
    for table in ("events", "neighbour"):
        there = open_log_in_database(
            store.address(f"table={table}"), public_actions=True, time="time", time_for_order=True
        )
        walks = DatabaseStatistics(there)
        state = f"SELECT learner, ability, bend FROM {walks._unexplained(easiness).state}"
        residuals = walks._residuals(easiness, np.ones(m))
        factors = f"SELECT learner, {_factor(1.0)} AS factor FROM ({residuals}) AS r GROUP BY learner"
        found.append(
            [
                there.walks.database.rows(f"SELECT * FROM ({asked}) AS q WHERE learner > 0 ORDER BY 1")
                for asked in (state, factors)
            ]
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_learners_without_rows_and_rows_without_cells(store):
    frame = pl.DataFrame(
        {
            "student": [" a", "a ", "b", "c", "c", None],
            "skill": ["x", "y", "x", None, "x ", "x"],
            "correct": ["yes", "no", "maybe", "yes", "true", "no"],
            "at": [1, 2, 3, 4, 5, 6],
        }
    )
    store.fill(frame)
    wanted = {"public_actions": True, "time": "at", "time_for_order": True}
    with pytest.raises(DataError) as caught:
        open_log_in_database(store.address("table=events"), **wanted)
    assert caught.value.code == "empty-cells"
    there = open_log_in_database(store.address("table=events"), skip_incomplete=True, **wanted)
    # Of b no row is left, and b still counts: whether a row can be read is a learner's own.
    assert (there.n_learners, there.lengths.tolist(), there.actions) == (3, [0, 1, 2], ("x", "y"))
    assert DatabaseStatistics(there).starts().values.tolist() == [2 * 2**18, 0]
    assert len(there.origin.notes) == 4


def test_learners_are_told_apart_as_in_a_file(store):
    """By their characters, without Unicode's blanks around them; a collation that ignores capitals changes nothing."""
    collation = "NOCASE"
    if store.kind == "postgresql":
        collation = "plain"
        store.run(
            "CREATE COLLATION plain (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    store.run(
        f"CREATE TABLE events (learner text COLLATE {collation}, action text COLLATE {collation}, "
        "outcome int, time int)"
    )
    around = [chr(code) for code in range(0x3001) if not chr(code).strip() or code == 0x200B]
    names = ["anna", "Anna", "ANNA", "bob", *(f"{blank}carl{blank}" for blank in around)]
    for at, name in enumerate(names):
        store.run("INSERT INTO events VALUES ({}, {}, 1, {})", values=(name, f"{name} x", at))
    options = {"public_actions": True, "time": "time", "time_for_order": True, "single_rows": True}
    here = read_log(store.address("table=events"), **options)
    there = open_log_in_database(store.address("table=events"), **options)
    assert there.actions == here.actions
    assert there.lengths.tolist() == sorted(here.lengths.tolist())
    np.testing.assert_array_equal(
        DatabaseStatistics(there).starts().values, WalkStatistics(here).starts().values
    )


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_database_of_another_encoding_is_refused(store):
    """There some of Unicode's blanks are not characters, or bytes that other characters have, too."""
    store.run("CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    elsewhere = Store(store.kind, re.sub(r"/\w+(?=\?|$)", "/bytes", store.place))
    elsewhere.fill(rows_of(simulated(10, 3)))
    assert read_log(elsewhere.address("table=events")).n_learners == 10
    with pytest.raises(UsageError) as caught:
        open_log_in_database(elsewhere.address("table=events"), public_actions=True)
    assert caught.value.code == "not-in-database"


def test_the_name_of_an_action_is_never_a_part_of_a_statement(store):
    """Even in a PostgreSQL of old habits, where a backslash in a text escapes the quote that follows."""
    if store.kind == "postgresql":
        store.run(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', "
            "current_database()); END $$"
        )
    names = ["\\', 0); CREATE TABLE taken AS SELECT 1; COMMIT; --", "'); --", "a\tb\\n", "c\\"]
    frame = pl.DataFrame(
        {"learner": ["a", "b"] * 2, "action": names, "outcome": [1] * 4, "time": [1, 2, 3, 4]}
    )
    store.run("CREATE TABLE events (learner text, action text, outcome bigint, time bigint)")
    for row in frame.rows():
        store.run("INSERT INTO events VALUES ({}, {}, {}, {})", values=row)
    options = {"public_actions": True, "time": "time", "time_for_order": True}
    there = open_log_in_database(store.address("table=events"), **options)
    assert there.actions == read_log(store.address("table=events"), **options).actions
    assert DatabaseStatistics(there).starts().values.sum() == 2 * 2**18
    found = DatabaseAddress.parse(store.address("table=events"))
    assert [name for _, name in open_database(found).tables()] == ["events"]


def test_a_list_of_names_pools_the_others(school, tmp_path):
    store, log = school
    names = tmp_path / "actions.csv"
    names.write_text(
        "action,chapter\n" + "".join(f"{name},{i // 3}\n" for i, name in enumerate(log.actions[:7]))
    )
    options = {"actions_file": names}
    here = read_log(store.address("table=events"), **options)
    there = open_log_in_database(store.address("table=events"), **options)
    assert there.actions == here.actions
    np.testing.assert_array_equal(there.chapters, here.chapters)
    assert_equal({"rows": DatabaseStatistics(there).rows(5.0)}, {"rows": WalkStatistics(here).rows(5.0)})


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "not-in-database"),
        ({"public_actions": True, "item": "item"}, "not-in-database"),
        ({"public_actions": True, "time": "time"}, "not-in-database"),
        ({"public_actions": True, "pass_from": 5}, "not-in-database"),
        ({"public_actions": True, "in_order": True}, "not-in-database"),
    ],
)
def test_what_cannot_be_followed_there_is_refused(store, options, code):
    store.fill(rows_of(simulated(10, 3)))
    with pytest.raises(UsageError) as caught:
        open_log_in_database(store.address("table=events"), **options)
    assert caught.value.code == code


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_rows_that_stay_elsewhere_are_for_markov_dp_alone(store):
    store.fill(rows_of(simulated(10, 3)))
    there = open_log_in_database(store.address("table=events"), public_actions=True)
    for method in (RunsDP(), "markov", "drop:0.5"):
        with pytest.raises(UsageError) as caught:
            synthesize(there, method, simulated=True)
        assert caught.value.code == "rows-elsewhere"
    with pytest.raises(UnderstudyError):
        RunsDP().fit(there)


def test_an_action_that_names_a_learner_is_refused(store, tmp_path):
    frame = rows_of(simulated(10, 3)).with_columns(
        pl.col("learner").replace({"real-000001": "Zacharias Quint"}).alias("learner"),
    )
    some = frame["learner"].unique(maintain_order=True)[0]
    store.fill(
        frame.with_columns(
            pl.when(pl.col("outcome") == 1)
            .then(pl.lit(f"chat with {some}"))
            .otherwise("action")
            .alias("action")
        )
    )
    done = run(
        *("synthesize", store.address("table=events"), "-o", "out.csv", "-m", "markov-dp", "--in-database"),
        *("--public-actions", "--population", "7b", "--ledger", "l"),
        cwd=tmp_path,
    )
    assert done.returncode == 3
    assert some not in done.stdout + done.stderr


def test_an_action_that_names_somebody_far_down_is_found(store):
    """Whom another column names is asked of all rows: the first ones show only which columns name people."""
    n = 2 * SAMPLE_ROWS
    frame = pl.DataFrame(
        {
            "learner": [f"u{i % 500:05}" for i in range(n)],
            "email": [f"surname{i:05}@school.example" for i in range(n)],
            "skill": ["task"] * 10 + [f"message to surname{n - 1:05}"] + ["task"] * (n - 11),
            "correct": [1] * n,
            "time": list(range(n)),
        }
    )
    store.fill(frame)
    options = {"public_actions": True, "time": "time", "time_for_order": True}
    for opened in (read_log, open_log_in_database):
        found = opened(store.address("table=events"), **options).origin.identifiers
        assert [(each.role, each.kind) for each in found] == [
            ("not read", "e-mail address"),
            ("action", "e-mail address"),
        ]


@pytest.mark.parametrize("filled", [1.0, 0.01])
def test_a_column_that_is_filled_far_down_is_noticed(store, filled):
    """Under a name that says nothing, behind the rows of a sample, and in few of them; titles and schools are not."""
    n, n_learners = 5 * SAMPLE_ROWS, 60
    begin = n - int(filled * n / 2)
    late = [i >= begin for i in range(n)]
    word = [f"{chr(65 + i // 26)}{chr(97 + i % 26)}lbert" for i in range(n_learners)]
    frame = pl.DataFrame(
        {
            "learner": [f"u{i % n_learners:05}" for i in range(n)],
            "x1": [f"Zoe {word[i % n_learners]}" if late[i] else None for i in range(n)],
            "x2": [f"zoe{i % n_learners}@school.example" if late[i] else "" for i in range(n)],
            "x3": [f"Plot {word[i // 7 % n_learners]}" for i in range(n)],
            "x4": [("North School", "South School")[i % 2] if late[i] else None for i in range(n)],
            # Every second row of another kind: a sample of every k-th row would see one kind alone.
            "x5": [f"zoe{i}@school.example" if i % 2 else f"n{i}" for i in range(n)],
            "skill": ["task"] * (n - 1) + ["message to Zoe Aalbert"],
            "correct": [1] * n,
            "time": list(range(n)),
        }
    )
    store.fill(frame)
    options = {"public_actions": True, "time": "time", "time_for_order": True}
    wanted = [("column 2", "name"), ("column 3", "e-mail address"), ("column 6", "e-mail address")]
    for opened in (read_log, open_log_in_database):
        found = opened(store.address("table=events"), **options).origin.identifiers
        assert [(each.column, each.kind) for each in found if each.role == "not read"] == wanted
        assert [each.kind for each in found if each.role == "action"] == ["name"]


def test_cells_are_sampled_evenly_inside(store):
    """Of each column's filled cells about as many as are wanted, from all over it, and in both halves of a pair."""
    n = 7 * SAMPLE_ROWS
    store.run(
        "CREATE TABLE events AS SELECT CASE WHEN i % 3 = 0 THEN i END AS a, CASE WHEN i < 9 THEN i END AS b, "
        f"'  ' AS c FROM generate_series(0, {n - 1}) AS rows(i)"
    )
    address = DatabaseAddress.parse(store.address("table=events"))
    database = open_database(address)
    found = _Columns(database, "SELECT * FROM events", ("a", "b", "c"), "a").sample()
    assert sorted(found["1"].drop_nulls().cast(pl.Int64)) == list(range(9))
    assert found["2"].drop_nulls().is_empty()
    chosen = found["0"].drop_nulls().cast(pl.Int64).sort()
    assert abs(len(chosen) - SAMPLE_ROWS) < 10
    assert chosen.diff().drop_nulls().max() < 20
    assert abs((chosen % 2).mean() - 0.5) < 0.02


def test_the_command_charges_as_ever(school, tmp_path):
    store, _ = school
    command = (
        *("synthesize", store.address("table=events"), "-m", "markov-dp:epsilon=4", "--in-database"),
        *("--public-actions", "--population", "7b", "--ledger", "l"),
    )
    made = run(*command, "-o", "out.csv", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "Charged epsilon 4" in made.stdout
    assert pl.read_csv(tmp_path / "out.csv").height > 100
    # The same learners are known again, read from the table as well.
    again = run(
        *("synthesize", store.address("table=events"), "-m", "markov-dp:epsilon=8", "--public-actions"),
        *("--population", "other", "--ledger", "l", "-o", "b.csv"),
        cwd=tmp_path,
    )
    if store.kind == "duckdb":
        # What is in one file adds up.
        assert "of which 4 is spent" in again.stderr
    else:
        assert again.returncode == 4


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_server_that_goes_is_said(store):
    store.fill(rows_of(simulated(10, 3)))
    there = open_log_in_database(store.address("table=events"), public_actions=True)
    store.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'understudy' "
        "AND datname = current_database()"
    )
    with pytest.raises(MissingError) as caught:
        DatabaseStatistics(there).rows(3.0)
    assert (caught.value.code, caught.value.exit_code) == ("database-gone", 5)


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_a_file_that_is_marked_as_simulated_is(store):
    store.fill(rows_of(simulated(10, 3)))
    path = DatabaseAddress.parse(store.address("table=events")).file
    mark_simulated(path)
    assert read_log(store.address("table=events")).simulated
    assert open_log_in_database(store.address("table=events"), public_actions=True).simulated
    mark_path(path).unlink()
    assert not open_log_in_database(store.address("table=events"), public_actions=True).simulated


def test_nothing_of_it_stays_in_the_database(school):
    store, _ = school
    there = open_log_in_database(store.address("table=events"), public_actions=True)
    DatabaseStatistics(there).rows(3.0)
    del there
    found = DatabaseAddress.parse(store.address("table=events"))
    assert [name for _, name in open_database(found).tables()] == ["events"]
