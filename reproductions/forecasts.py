"""Do forecasts come true? Releases of simulated logs of very different shapes, beside what was foreseen for them.

`python -m reproductions.forecasts` draws logs (30 to 20,000 learners, 5 to 2,000 actions, epsilon 0.5 to 8, names
public or not, short and long sequences, runs and paths of many kinds), makes a release of each, and writes
docs/explanation/forecasts.csv and the table of docs/explanation/forecasts.md. It takes half an hour on two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer

from reproductions.command import new_app, run
from reproductions.pages import ROOT, markdown_table, rows_of, write_rows
from understudy.core.engine import progress
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.expectation import expected_of
from understudy.logs.generators.forecast import USES, Use
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import POOLED, Interactions
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.utility import Comparison, Real, action_tv, transition_tv, wrmse_centred

TABLE = ROOT / "docs/explanation/forecasts.csv"
PAGE = ROOT / "docs/explanation/forecasts.md"
MEASURES: dict[Use, Callable[[Comparison], float]] = {
    "shares": action_tv,
    "difficulties": wrmse_centred,
    "steps": transition_tv,
}
COLUMNS = (
    "learners",
    "actions",
    "rows",
    "epsilon",
    "names",
    "method",
    "use",
    "low",
    "expected",
    "high",
    "found",
)
MOST_ROWS = 400_000
app = new_app("Measure whether forecasts come true.")


def between(low: float, high: float, rng: np.random.Generator) -> float:
    """A number of any size between two."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def drawn_log(rng: np.random.Generator) -> Interactions:
    """A simulated log of any size and shape."""
    n_learners = round(between(30, 20_000, rng))
    log = Classroom(
        n_learners=n_learners,
        n_actions=round(between(5, 2_000, rng)),
        median_length=min(between(6, 80, rng), MOST_ROWS / n_learners),
        length_spread=rng.uniform(0.5, 1.3),
        longest=1000,
        run=rng.uniform(1.5, 6.0),
        wander=rng.uniform(0.05, 0.4),
        branches=int(rng.integers(2, 6)),
    ).simulate(rng)
    return log.declare() if rng.random() < 0.7 else log


def measured(log: Interactions, epsilon: float, method: str, rng: np.random.Generator) -> list[list[object]]:
    """What was foreseen for a release and what was found: for each use the values of `COLUMNS`."""
    foreseen = expected_of(log, epsilon)
    generator = parse_generator(f"{method}:epsilon={epsilon!r}")
    synthetic = generator.fit(log, rng, seeded_noise(rng)).sample(None, rng)
    names = tuple(dict.fromkeys((*log.actions, POOLED)))
    real = Real(log.recode(names), log.recode(names))
    comparison = Comparison(real, synthetic.recode(names))
    release = [
        log.n_learners,
        log.n_actions,
        log.n_rows,
        f"{epsilon:.2f}",
        "public" if log.declared else "found",
    ]
    return [
        [
            *release,
            method,
            use,
            *(f"{value:.4f}" for value in (error.low, error.expected, error.high, measure(comparison))),
        ]
        for use, measure in MEASURES.items()
        for error in (foreseen.of(use),)
    ]


def covered(rows: list[dict[str, str]]) -> str:
    """The table of the page: how many releases lie in their interval."""
    body = []
    for method in dict.fromkeys(row["method"] for row in rows):
        for names in ("public", "found"):
            for use in USES:
                some = [
                    row for row in rows if (row["method"], row["names"], row["use"]) == (method, names, use)
                ]
                if not some:
                    continue
                low, expected, high, found = (
                    np.array([float(row[name]) for row in some])
                    for name in ("low", "expected", "high", "found")
                )
                inside = float(np.mean((found >= low) & (found <= high)))
                ratio = np.percentile(found / expected, [5, 50, 95])
                body.append(
                    [
                        f"`{method}`",
                        names,
                        use,
                        str(len(some)),
                        f"{100 * inside:.0f} %",
                        *(f"{value:.2f}" for value in ratio),
                    ]
                )
    header = ["method", "names", "use", "releases", "within", "found / expected, 5 %", "50 %", "95 %"]
    return markdown_table(header, body)


def with_table(text: str, table: str, name: str) -> str:
    """The page with another table in the place of this name."""
    begin, end = f"<!-- table {name} -->", f"<!-- end of table {name} -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def measured_releases(
    n_logs: int,
    seed: int,
    draw: Callable[[np.random.Generator], Interactions],
    measure: Callable[[Interactions, float, str, np.random.Generator], list[list[object]]],
) -> list[list[object]]:
    """The rows of a table: what `measure` finds in a release of each log, at an epsilon of 0.5 to 8."""
    rows: list[list[object]] = []
    for place in progress.each(range(n_logs), "Releases"):
        rng = np.random.default_rng((seed, place))
        log, epsilon = draw(rng), between(0.5, 8.0, rng)
        rows += measure(log, epsilon, "markov-dp" if place % 5 == 4 else "runs-dp", rng)
    return rows


@app.command()
def measure(
    n_logs: Annotated[int, typer.Option(help="Logs to draw.")] = 160,
    seed: Annotated[int, typer.Option(help="Which logs.")] = 0,
) -> None:
    """Draw logs, make a release of each and write the table."""
    write_rows(TABLE, COLUMNS, measured_releases(n_logs, seed, drawn_log, measured))
    text = with_table(PAGE.read_text(encoding="utf-8"), covered(rows_of(TABLE)), "walks")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(app)
