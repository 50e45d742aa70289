"""A simulated class in a DuckDB file and in a PostgreSQL of the tests' own, as addresses."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.desk.support.fixtures import postgresql
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

__all__ = ["postgresql"]


@dataclass
class Store:
    """A database that tests fill, and its address without what is asked for."""

    kind: str
    place: str

    def address(self, wanted):
        """`table=...` or `query=...` of it."""
        return f"{self.place}{'&' if '?' in self.place else '?'}{wanted}"

    def run(self, *statements, values=None):
        """Run statements as the owner; `values` are in the place of each {}."""
        if values is not None:
            mark = "?" if self.kind == "duckdb" else "%s"
            statements = [statement.replace("{}", mark) for statement in statements]
        if self.kind == "duckdb":
            import duckdb

            with duckdb.connect(self.place.removeprefix("duckdb:")) as connection:
                for statement in statements:
                    connection.execute(statement, values)
            return
        import psycopg

        with psycopg.connect(self.place, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement, values)

    def fill(self, frame: pl.DataFrame, table="events"):
        """A table with these rows; times are timestamps."""
        kinds = {pl.String: "text", pl.Datetime: "timestamp", pl.Boolean: "boolean", pl.Float64: "float8"}
        columns = ", ".join(
            f'"{name}" {kinds.get(kind.base_type(), "bigint")}' for name, kind in frame.schema.items()
        )
        cells = frame.with_columns(pl.col(pl.String).str.replace_all("'", "''")).rows()
        written = [
            "(" + ", ".join("NULL" if cell is None else f"'{cell}'" for cell in row) + ")" for row in cells
        ]
        self.run(
            f"CREATE TABLE {table} ({columns})",
            *(
                f"INSERT INTO {table} VALUES {', '.join(written[i : i + 5000])}"
                for i in range(0, len(written), 5000)
            ),
        )


def _store(kind, request, folder: Path) -> Store:
    if kind == "duckdb":
        pytest.importorskip("duckdb")
        return Store(kind, f"duckdb:{folder / 'school.db'}")
    url = request.getfixturevalue("postgresql").new(template="template0")
    return Store(kind, url.replace("postgresql+psycopg:", "postgresql:"))


@pytest.fixture(params=["duckdb", "postgresql"])
def store(request, tmp_path):
    """An empty database."""
    return _store(request.param, request, tmp_path)


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def school(request, tmp_path_factory):
    """A database with a simulated class in the table `events`, shuffled, and the class."""
    store = _store(request.param, request, tmp_path_factory.mktemp("school"))
    log = simulated()
    store.fill(rows_of(log).sample(fraction=1.0, shuffle=True, seed=1))
    return store, log


def simulated(n_learners=150, n_actions=12) -> Interactions:
    """A class."""
    return Classroom(n_learners=n_learners, n_actions=n_actions).simulate(np.random.default_rng(0))


def rows_of(log: Interactions) -> pl.DataFrame:
    """Its rows with a time each, all different."""
    frame = log.to_polars().select("learner", "action", "outcome")
    seconds = pl.int_range(frame.height).alias("at")
    return frame.with_columns(
        (pl.lit("2024-09-01").str.to_datetime() + pl.duration(seconds=seconds)).alias("time")
    )
