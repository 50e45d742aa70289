"""Do forecasts of times and declared columns come true? Releases of simulated logs, beside what was foreseen for them.

`python -m reproductions.detail_forecasts` draws logs with times and columns (30 to 8,000 learners, terms of 3 to 30
weeks, sessions of 4 to 30 rows, columns of rows and of learners with 2 to 15 categories, numbers, outcomes that rows
may lack), makes a release of each, and writes docs/explanation/detail-forecasts.csv and its table in
docs/explanation/forecasts.md. It takes some minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import numpy as np
import typer

from reproductions.command import new_app, run
from reproductions.forecasts import PAGE, between, measured_releases, with_table
from reproductions.pages import ROOT, markdown_table, rows_of, write_rows
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.columns import OUTCOME, Column, Declared, Kind
from understudy.logs.expectation import expected_of
from understudy.logs.generators.detail_forecast import TimeUse
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.simulated.term import Habits
from understudy.logs.utility import Comparison, Real
from understudy.logs.utility.columns import column_distances
from understudy.logs.utility.times import dropout_gap, gap_ks, hour_tv, session_ks

TABLE = ROOT / "docs/explanation/detail-forecasts.csv"
MEASURES: dict[TimeUse, Callable[[Comparison], float]] = {
    "hours": hour_tv,
    "gaps": gap_ks,
    "sessions": session_ks,
    "dropout": dropout_gap,
}
COLUMNS = (
    "learners",
    "rows",
    "epsilon",
    "names",
    "term",
    "method",
    "about",
    "low",
    "expected",
    "high",
    "found",
)
MOST_ROWS = 150_000

app = new_app("Measure whether forecasts of times and columns come true.")


def drawn_log(rng: np.random.Generator) -> Interactions:
    """A simulated log of any size with times and columns of any kind."""
    n_learners = round(between(30, 8_000, rng))
    log = Classroom(
        n_learners=n_learners,
        n_actions=round(between(5, 300, rng)),
        median_length=min(between(6, 80, rng), MOST_ROWS / n_learners),
        length_spread=rng.uniform(0.5, 1.3),
        longest=1000,
        run=rng.uniform(1.5, 6.0),
        wander=rng.uniform(0.05, 0.4),
        branches=int(rng.integers(2, 6)),
        timed=True,
        habits=Habits(
            int(rng.integers(3, 31)), between(4, 30, rng), between(0.01, 0.15, rng), between(8, 120, rng)
        ),
    ).simulate(rng)
    columns = [column for column in log.columns if rng.random() < 0.6]
    columns += [drawn_column(f"c{place}", log, rng) for place in range(int(rng.integers(0, 4)))]
    log = replace(log, columns=tuple(columns), group=None)
    if rng.random() < 0.2:
        assert log.outcome is not None
        graded = rng.random(log.n_actions) < rng.uniform(0.1, 0.8)
        outcome = Column(OUTCOME, np.where(graded[log.action], log.outcome, -1))
        log = replace(log, outcome=None, columns=(outcome, *log.columns))
    assert log.term is not None
    if rng.random() < 0.3:
        log = replace(log, term=replace(log.term, first=None, last=None))
    return log.declare() if rng.random() < 0.7 else log


def drawn_column(name: str, log: Interactions, rng: np.random.Generator) -> Column:
    """A column of rows or of learners: numbers, or categories that go with the action, some cells empty."""
    of_rows = bool(rng.integers(2))
    size = log.n_rows if of_rows else log.n_learners
    if rng.random() < 0.25:
        declared = Declared(name, Kind.number, "row" if of_rows else "learner", low=0.0, high=100.0)
        cells = np.clip(rng.gamma(rng.uniform(1.0, 6.0), rng.uniform(2.0, 15.0), size), 0.0, 100.0)
        return Column(declared, np.where(rng.random(size) < rng.uniform(0.0, 0.3), np.nan, cells))
    n_values = int(rng.integers(2, 16))
    weight = np.arange(1.0, n_values + 1.0) ** -rng.uniform(0.0, 1.5)
    code = rng.choice(n_values, size, p=weight / weight.sum())
    if of_rows:
        code = np.where(rng.random(size) < 0.3, log.action % n_values, code)
    if rng.random() < 0.3:
        code = np.where(rng.random(size) < rng.uniform(0.0, 0.5), -1, code)
    values = tuple(f"v{place}" for place in range(n_values))
    return Column(Declared(name, Kind.category, "row" if of_rows else "learner", values=values), code)


def measured(log: Interactions, epsilon: float, method: str, rng: np.random.Generator) -> list[list[object]]:
    """What was foreseen for a release and what was found: for each measure the values of `COLUMNS`."""
    generator = parse_generator(f"{method}:epsilon={epsilon!r}")
    foreseen = expected_of(log, epsilon, like=generator)
    synthetic = generator.fit(log, rng, seeded_noise(rng)).sample(None, rng)
    comparison, distances = Comparison(Real(log, log), synthetic), column_distances(log, synthetic)
    assert log.term is not None
    release = [
        log.n_learners,
        log.n_rows,
        f"{epsilon:.2f}",
        "public" if log.declared else "found",
        "declared" if log.term.declared else "found",
        method,
    ]
    figures: list[tuple[str, float, float, float, float]] = [
        (use, error.low, error.expected, error.high, MEASURES[use](comparison))
        for use, error in foreseen.times.items()
    ]
    figures += [
        (_about(column.declared), 0.0, 0.0, foreseen.columns[name], distances[name])
        for column in log.columns
        for name in (column.declared.name,)
    ]
    return [[*release, about, *(f"{value:.4f}" for value in values)] for about, *values in figures]


def _about(declared: Declared) -> str:
    return "outcome that rows may lack" if declared.is_outcome else f"{declared.kind} of {declared.of}s"


def covered(rows: list[dict[str, str]]) -> str:
    """The table of the page: how many releases lie in their interval, or below their limit."""
    body = []
    for about in sorted({row["about"] for row in rows}, key=lambda about: (about not in MEASURES, about)):
        some = [row for row in rows if row["about"] == about]
        low, high, found = (np.array([float(row[name]) for row in some]) for name in ("low", "high", "found"))
        inside = float(np.mean((found >= low) & (found <= high)))
        ratio = np.percentile(found / high, [5, 50, 95])
        body.append([about, str(len(some)), f"{100 * inside:.0f} %", *(f"{value:.2f}" for value in ratio)])
    return markdown_table(["about", "releases", "within", "found / upper end, 5 %", "50 %", "95 %"], body)


@app.command()
def measure(
    n_logs: Annotated[int, typer.Option(help="Logs to draw.")] = 300,
    seed: Annotated[int, typer.Option(help="Which logs; the curves were fitted to others.")] = 11,
) -> None:
    """Draw logs, make a release of each and write the table."""
    write_rows(TABLE, COLUMNS, measured_releases(n_logs, seed, drawn_log, measured))
    text = with_table(PAGE.read_text(encoding="utf-8"), covered(rows_of(TABLE)), "details")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(app)
