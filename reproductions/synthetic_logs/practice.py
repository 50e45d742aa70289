"""Success that grows with practice, and learners who leave an action after a success: in real and in synthetic logs.

By the Rasch model a synthetic learner's chance of success at an action stays the same, however often they try it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from reproductions.pages import markdown_table, rows_of, tables_of, write_rows
from reproductions.synthetic_logs.samples import rng_of_fit, sampled
from reproductions.synthetic_logs.table_four import LEARNED, LOG, N_SAMPLES
from understudy.core.engine import progress
from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.trial import Split
from understudy.logs.utility import Comparison, Real, learning_curve, leaving_rates
from understudy.logs.utility.comparison import LAST_ATTEMPT
from understudy.logs.utility.rows import curve_gap

TABLE = tables_of("synthetic_logs") / "practice.csv"
TRAINING, OTHER = "training half", "other half"
METHODS = ("markov", "runs", "gru", LEARNED)
ATTEMPTS = tuple(f"success_{attempt}" for attempt in range(1, LAST_ATTEMPT + 1))
FIRST, LAST = ATTEMPTS[0], ATTEMPTS[-1]
MEASURED = (*ATTEMPTS, "gain", "curve_gap", "leaving_success", "leaving_failure", "prediction_auc")
# Of these single samples are shown as well.
SCATTERED = (*ATTEMPTS, "gain")
COLUMNS = (
    *("log", "n_samples", *MEASURED),
    *(f"{name}_{end}" for name in SCATTERED for end in ("low", "high")),
)
LOOKS = {
    TRAINING: Look(INK),
    OTHER: Look(INK, dashed=True),
    "markov": Look(MUTED, "square"),
    "runs": Look("#4d8f4a", "triangle-up"),
    "gru": Look(ACCENT),
    "gru, learned": Look(WARNING, "diamond"),
}
Figures = dict[str, float]


def measure_practice() -> None:
    """One half of our log, the other one, and what each generator writes after reading the first."""
    half = Split(read_log(LOG).declare(), seed=0).real
    write_rows(TABLE, COLUMNS, measure_half(half, METHODS, N_SAMPLES))


def measure_half(half: Real, methods: Sequence[str], n_samples: int) -> list[list[object]]:
    """A row for each real half, and one per method with the means over samples of one fit."""
    other = figures_of(half, half.held_out)
    del other["prediction_auc"]  # predictions are tested on this half
    rows = [_row(TRAINING, [figures_of(half, half.training)]), _row(OTHER, [other])]
    with progress.task("Fitting and sampling", len(methods)) as task:
        for method in methods:
            logs = sampled(half.training, method, n_samples, rng_of_fit(method, 0))
            rows.append(_row(method, [figures_of(half, log) for log in logs]))
            task.advance()
    return rows


def figures_of(half: Real, log: Interactions) -> Figures:
    """What a log shows of practice and of leaving; a model of it predicts the half that no generator has seen."""
    comparison, curve = Comparison(half, log), learning_curve(log)
    after_failure, after_success = leaving_rates(log)
    return {
        **dict(zip(ATTEMPTS, map(float, curve), strict=True)),
        "gain": float(curve[-1] - curve[0]),
        "curve_gap": curve_gap(comparison),
        "leaving_success": float(after_success),
        "leaving_failure": float(after_failure),
        "prediction_auc": comparison.prediction_auc,
    }


def _row(name: str, samples: Sequence[Figures]) -> list[object]:
    means = [
        f"{fmean(figures[column] for figures in samples):.4f}" if column in samples[0] else ""
        for column in MEASURED
    ]
    ends = [
        f"{end(figures[column] for figures in samples):.4f}" for column in SCATTERED for end in (min, max)
    ]
    return [name, len(samples), *means, *ends]


def values() -> dict[str, str]:
    """What the page says of practice."""
    rows = {row["log"]: row for row in rows_of(TABLE)}
    return {
        "practice": table(rows.values()),
        **{
            f"{name}_{column}": _rounded(rows[log][column])
            for name, log in (("real", TRAINING), ("learned", LEARNED))
            for column in ("gain", "prediction_auc")
        },
        "gain_range": " to ".join(_rounded(rows[LEARNED][f"gain_{end}"]) for end in ("low", "high")),
    }


def table(rows: Iterable[dict[str, str]]) -> str:
    """A row per log."""
    header = ["", "success: first attempt", "sixth attempt", "gain", "curve: largest difference"]
    header += ["leave after success", "leave after failure", "next outcome: AUC"]
    columns = (FIRST, LAST, "gain", "curve_gap", "leaving_success", "leaving_failure", "prediction_auc")
    lines = []
    for row in rows:
        name = row["log"] if row["log"] in (TRAINING, OTHER) else f"`{row['log']}`"
        lines.append([name, *(_rounded(row[column]) for column in columns)])
    return markdown_table(header, lines)


def figure() -> Figure:
    """Success by attempt, in the real halves and in what each generator writes."""
    points, ends = [], []
    for row in rows_of(TABLE):
        name = "gru, learned" if row["log"] == LEARNED else row["log"]
        for attempt, column in enumerate(ATTEMPTS, 1):
            value, low, high = (float(row[f"{column}{end}"]) for end in ("", "_low", "_high"))
            points.append(Point(attempt, value, low, high, name))
            ends += [low, high]
    drawing = curves(
        points,
        "attempt at an action",
        "success rate",
        looks=LOOKS,
        domain=[min(ends), max(ends)],
        axis=".0%",
        number=".3f",
        height=280,
    )
    return drawing.figure("Success rate by attempt at an action, with the range of single samples")


def _rounded(figure: str) -> str:
    return f"{float(figure):.3f}" if figure else "–"
