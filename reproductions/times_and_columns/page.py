"""The page of times and declared columns: what singles learners out, what attacks find, and how close it comes."""

from __future__ import annotations

from statistics import fmean

from reproductions.pages import fill, markdown_table, rows_of
from reproductions.times_and_columns.logs import COLUMNS, N_LEARNERS
from reproductions.times_and_columns.measure import LARGE, OPTIONS, PRIVATE, TABLES, WITH, WITHOUT
from understudy.logs.utility import METRICS

Row = dict[str, str]

# What was asked for of the 4,000 learners at epsilon 8.
LIMITS = {"gap_ks": 0.05, "hour_tv": 0.10, "session_ks": 0.08, "dropout_gap": 0.03}
# Times and four columns may cost actions and transitions this factor, and the strongest attack this much more AUC.
MOST_COST, MOST_FOUND = 1.4, 0.02
_POINTS = 4


def page() -> str:
    """The measured tables in words and tables."""
    return fill(
        "times_and_columns",
        {
            "uniqueness": _uniqueness(),
            "attacks": _attacks(),
            "differences": _differences(),
            "verdict": _verdict(),
            "utility": _utility(),
            "costs": _costs(),
            "columns": ", ".join(f"`{name}`" for name in COLUMNS),
            "n_learners": f"{N_LEARNERS:,}",
            "n_seeds": str(OPTIONS.n_seeds),
            "n_shadows": str(OPTIONS.n_shadows),
            "n_large_seeds": str(LARGE.n_seeds),
            "n_large_shadows": str(LARGE.n_shadows),
            "n_draws": str(len({row["draw"] for row in _rows("utility")})),
        },
    )


def _rows(name: str) -> list[Row]:
    return rows_of(TABLES / f"{name}.csv")


def _uniqueness() -> str:
    """Learners whom four points single out, by log and by what is known about each point."""
    rows = [row for row in _rows("uniqueness") if int(row["k"]) == _POINTS]
    points = list(dict.fromkeys(row["points"] for row in rows))
    body = []
    for log in dict.fromkeys(row["log"] for row in rows):
        found = {row["points"]: row for row in rows if row["log"] == log}
        body.append([log, *(_share(found[name]) if name in found else "–" for name in points)])
    return markdown_table(["log", *points], body)


def _share(row: Row) -> str:
    share, low, high = (100 * float(row[name]) for name in ("share", "low", "high"))
    return f"{share:.1f} % ({low:.1f} to {high:.1f})"


def _attacks() -> str:
    """Every method on every log, with times and columns and without."""
    names = {
        "auc_timing": "`timing`",
        "auc_timing_likelihood": "`timing-likelihood`",
        "auc_columns": "`columns`",
        "auc_columns_likelihood": "`columns-likelihood`",
        "auc_joint_linear": "`joint-linear`",
        "auc_worst": "strongest",
        "auc_chance_high": "luck, up to",
        "auc_transcript": "`transcript`",
    }
    body = [
        [row["log"], f"`{row['method']}`", row["told"], *(_number(row[name]) for name in names)]
        for row in _rows("attacks")
    ]
    return markdown_table(["log", "method", "times and columns", *names.values()], body)


def _number(text: str) -> str:
    return f"{float(text):.3f}" if text else "–"


def differences() -> list[tuple[str, str, float, float, float]]:
    """For each log and private method: the strongest attack with and without, and the ceiling with."""
    rows = {(row["log"], row["method"], row["told"]): row for row in _rows("attacks")}
    return [
        (
            log,
            method,
            float(row["auc_worst"]),
            float(rows[log, method, WITHOUT]["auc_worst"]),
            float(row["auc_transcript"]),
        )
        for (log, method, told), row in rows.items()
        if told == WITH and method in PRIVATE
    ]


def _differences() -> str:
    body = [
        [log, f"`{method}`", f"{told:.3f}", f"{untold:.3f}", f"{told - untold:+.3f}", f"{ceiling:.3f}"]
        for log, method, told, untold, ceiling in differences()
    ]
    return markdown_table(["log", "method", "with", "without", "difference", "white box"], body)


def _verdict() -> str:
    """Whether what was asked for holds, from the tables and not from a wish."""
    found = differences()
    most = max(told - untold for _, _, told, untold, _ in found)
    below = all(told < ceiling for _, _, told, _, ceiling in found)
    holds = "at most" if most <= MOST_FOUND else "**more than**"
    ceiling = "stays below" if below else "does **not** stay below"
    dropped = min(
        float(r["auc_worst"]) for r in _rows("attacks") if r["method"] == "drop:0.5" and r["told"] == WITH
    )
    return (
        f"With times and columns the strongest attack on a private generator finds {most:+.3f} at the most compared "
        f"with the same log without them ({holds} {MOST_FOUND}), and it {ceiling} the white box everywhere.\n"
        f"Leaving out half of the rows hides nobody once times are kept: the strongest attack reaches {dropped:.3f} or "
        "more on every log."
    )


def measured(method: str, told: str, metric: str) -> float:
    """The mean of a metric over synthetic logs of the classroom."""
    found = [row[metric] for row in _rows("utility") if (row["method"], row["told"]) == (method, told)]
    return fmean(map(float, found))


def _utility() -> str:
    meaning = {metric.name: metric.meaning for metric in METRICS}
    names = [metric.name for metric in METRICS if metric.about in ("times", "columns")]
    body = [
        [
            f"`{name}`",
            meaning[name],
            *(f"{measured(method, WITH, name):.3f}" for method in PRIVATE),
            f"{LIMITS[name]:.2f}" if name in LIMITS else "–",
        ]
        for name in names
    ]
    return markdown_table(["metric", "meaning", *(f"`{method}`" for method in PRIVATE), "asked for"], body)


def _costs() -> str:
    body = []
    for method in PRIVATE:
        for name in ("action_tv", "transition_tv"):
            told, untold = measured(method, WITH, name), measured(method, WITHOUT, name)
            body.append([f"`{method}`", f"`{name}`", f"{told:.3f}", f"{untold:.3f}", f"{told / untold:.2f}"])
    return markdown_table(["method", "metric", "with", "without", "factor"], body)
