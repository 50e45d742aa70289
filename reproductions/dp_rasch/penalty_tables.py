"""The page's tables on the penalty: the published methods as run and as printed, the sweep, and the choice."""

from __future__ import annotations

from collections.abc import Callable

from reproductions.dp_rasch.penalties import MEASURES, SWEPT, WAYS, PenaltyRow, penalty_rows
from reproductions.dp_rasch.study import Result
from reproductions.pages import markdown_table, tables_of

TABLES = tables_of("dp_rasch")

Simulated = Callable[[str, float | None, int, str], Result]


def as_printed(simulated: Simulated, epsilons: tuple[float, ...], sizes: tuple[int, ...]) -> str:
    """Correlations of probabilities / of difficulties: as the program runs, as the paper prints, and the difference."""
    rows = []
    for epsilon in epsilons:
        for n in sizes:
            row = [f"{epsilon:g}", str(n)]
            for method in ("objective", "statistics"):
                for name in (method, f"{method}:printed"):
                    pair = [simulated(name, epsilon, n, measure).mean for measure in MEASURES[:2]]
                    row.append(" / ".join(f"{value:.2f}" for value in pair))
                gain = simulated(f"{method} - {method}:printed", epsilon, n, "difficulties_true")
                row.append(f"{gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f})")
            rows.append(row)
    header = ["epsilon", "learners"]
    for method in ("objective", "statistics"):
        header += [f"{method}, as run", f"{method}, as printed", "difference for difficulties"]
    return markdown_table(header, rows)


def _found(rows: list[PenaltyRow], **wanted: object) -> PenaltyRow:
    (row,) = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
    return row


def sweep_table(n_learners: int = 120) -> str:
    """Probabilities / difficulties / misclassified, by penalty."""
    rows = penalty_rows(TABLES / "penalty-sweep.csv")
    keys = dict.fromkeys((row.method, row.epsilon) for row in rows)
    lines = []
    for method, epsilon in keys:
        cells = []
        for penalty in SWEPT:
            pair = [
                _found(
                    rows,
                    method=method,
                    epsilon=epsilon,
                    n_learners=n_learners,
                    what=f"{penalty:g}",
                    measure=measure,
                ).mean
                for measure in MEASURES
            ]
            cells.append(f"{pair[0]:.2f} / {pair[1]:.2f} / {100 * pair[2]:.1f} %")
        name = "not private" if epsilon is None else f"{method}, epsilon {epsilon:g}"
        lines.append([name, *cells])
    return markdown_table(["method", *(f"{penalty:g}" for penalty in SWEPT)], lines)


def sweep_gains() -> dict[str, float]:
    """By measure, the largest gain of any penalty over the program's 0.02, of all sizes, epsilons and both methods."""
    rows = [row for row in penalty_rows(TABLES / "penalty-sweep.csv") if row.method != "joint"]
    gains: dict[str, float] = {}
    for measure in MEASURES:
        sign = -1 if measure == "misclassification" else 1
        cells = dict.fromkeys((row.method, row.epsilon, row.n_learners) for row in rows)
        for method, epsilon, n in cells:
            mine = [
                row
                for row in rows
                if (row.method, row.epsilon, row.n_learners, row.measure) == (method, epsilon, n, measure)
            ]
            (fixed,) = [row.mean for row in mine if row.what == "0.02"]
            best = max(sign * (row.mean - fixed) for row in mine)
            gains[measure] = max(gains.get(measure, 0.0), best)
    return gains


def choice_table() -> str:
    """Each way to a penalty: probabilities / difficulties, misclassified, and the penalty it took."""
    rows = penalty_rows(TABLES / "penalty-choice.csv")
    keys = dict.fromkeys((row.method, row.epsilon, row.n_learners) for row in rows)
    lines = []
    for method, epsilon, n in sorted(keys, key=lambda key: (key[0], key[1] or 0.0, key[2])):
        line = [f"`{method}`", f"{epsilon:g}", str(n)]
        for way in WAYS:
            cell = {
                row.measure: row.mean
                for row in rows
                if (row.method, row.epsilon, row.n_learners, row.what) == (method, epsilon, n, way)
            }
            text = f"{cell['probabilities_true']:.2f} / {cell['difficulties_true']:.2f}"
            free = way in ("chosen privately", "from public data", "public data, by errors")
            line.append(f"{text} ({cell['penalty']:.2g})" if free else text)
        lines.append(line)
    return markdown_table(["method", "epsilon", "learners", *WAYS], lines)
