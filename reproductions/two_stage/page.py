"""The page of two-stage sharing, stage one: the published results beside ours."""

from __future__ import annotations

import numpy as np

from reproductions.pages import fill
from reproductions.two_stage.cycles import Gain, levels
from reproductions.two_stage.tables import (
    DATASETS,
    DEEP_ROWS,
    N_SEEDS,
    SIMULATED,
    TABLES,
    compared,
    cycle_gains,
    cycle_rows,
    read_rows,
)

# Table I of the paper: requests by reported precision 0, 0.5 and 1, and the mean.
PUBLISHED = {"2022": (3, 5, 1, 9, 0.39), "2023": (5, 6, 0, 11, 0.27), "2024": (0, 5, 0, 5, 0.50)}


def page() -> str:
    """The paper's results beside ours."""
    seconds = read_rows(TABLES / "seconds.csv")
    values = {
        "goals": _goals(),
        "figure_3": _figure_3(),
        "table_1": _table_1(),
        "by_kind": _by_kind(),
        "figure_4": _figure_4(),
        "levels": _levels(),
        "risk": _risk(),
        "cycle_verdict": _cycle_verdict(),
        "seconds": " ".join(f"{row['method']} {row['seconds']:.0f} s," for row in seconds).rstrip(","),
        "seconds_total": f"{sum(row['seconds'] for row in seconds):.0f}",
        "n_schools": str(len({row["school"] for row in cycle_rows()})),
        "deep_rows": f"{DEEP_ROWS:,}",
        "n_seeds": str(N_SEEDS),
        "nobody": _cell("year-1", "nobody", "precision", 2),
        "nobody_recall": _cell("year-1", "nobody", "recall", 2),
        "nobody_findings": _cell("year-1", "nobody", "n_synthetic", 0),
        "moodle_words": _moodle_words(),
        "deep_words": _deep_words(),
    }
    return fill("two_stage", values)


def _cell(name: str, method: str, measure: str, digits: int, interval: bool = False) -> str:
    found = compared(name)
    one = None if found is None else found.shown(method, measure)
    if one is None:
        return "–"
    mean = f"{one.mean:.{digits}f}"
    shown = interval and one.low is not None
    return f"{mean} ({one.low:.{digits}f} to {one.high:.{digits}f})" if shown else mean


def _measured() -> list[str]:
    return [name for name in DATASETS if compared(name) is not None]


def _figure_3() -> str:
    lines = [
        "| cohort | pool | deep baseline | pool, no noise | a guess, no learner | real learners, resampled |",
        "|---|---|---|---|---|---|",
    ]
    for name in _measured():
        cells = [
            _cell(name, method, "ajs", 3, interval=True)
            for method in ("pool", "deep", "pool-no-noise", "nobody", "resample")
        ]
        lines.append(f"| {DATASETS[name]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _table_1() -> str:
    lines = [
        "| cohort | method | precision | recall | synthetic findings | real findings "
        "| about the outcome: precision | recall |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in _measured():
        found = compared(name)
        assert found is not None
        for method in found.methods:
            lines.append(
                f"| {DATASETS[name]} | `{method}` | {_cell(name, method, 'precision', 2, interval=True)} "
                f"| {_cell(name, method, 'recall', 2, interval=True)} | {_cell(name, method, 'n_synthetic', 0)} "
                f"| {_cell(name, method, 'n_real', 0)} "
                f"| {_cell(name, method, 'outcome_precision', 2, interval=True)} "
                f"| {_cell(name, method, 'outcome_recall', 2, interval=True)} |"
            )
    lines += ["", "Published (four researchers, 25 requests; a request counts 0, 0.5 or 1):", ""]
    lines += ["| year | requests at 0 / 0.5 / 1 | all | precision |", "|---|---|---|---|"]
    lines += [
        f"| {year} | {none} / {half} / {most} | {n} | {mean:.2f} |"
        for year, (none, half, most, n, mean) in PUBLISHED.items()
    ]
    return "\n".join([*lines, "| all | 8 / 16 / 1 | 25 | 0.36 |"])


def _by_kind() -> str:
    found = compared("year-1")
    assert found is not None
    others = [name for name in ("year-1", "moodle") if compared(name) is not None]
    head = " | ".join(f"{DATASETS[name]}: precision | recall | findings" for name in others)
    lines = [f"| kind | {head} |", "|---|" + "---|---|---|" * len(others)]
    for kind in found.kinds():
        cells = [
            _cell(name, "pool", f"{measure}_{kind}", digits)
            for name in others
            for measure, digits in (("precision", 2), ("recall", 2), ("n_synthetic", 0))
        ]
        lines.append(f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _risk() -> str:
    lines = [
        "| cohort | method | all learners together: AUC | strongest attack | luck alone | summary seen |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("year-1", "moodle"):
        found = compared(name)
        for method in () if found is None else found.methods:
            if found is not None and method != "deep":
                cells = [
                    _cell(name, method, "auc_joint_linear", 3, interval=True),
                    *(
                        _cell(name, method, measure, 2, interval=True)
                        for measure in ("auc_worst", "control_auc_worst", "auc_transcript")
                    ),
                ]
                lines.append(f"| {DATASETS[name]} | `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


_ARMS = {"prior": "last year's summary", "feedback": "feedback", "cycles": "both"}


def _figure_4() -> str:
    lines = ["| gain over one-shot | year | AJS | precision | recall |", "|---|---|---|---|---|"]
    for arm, label in _ARMS.items():
        for year in (2, 3, 0):
            mine = {one.measure: one.interval for one in cycle_gains() if one.arm == arm and one.year == year}
            cells = [
                f"{mine[m].mean:+.3f} ({mine[m].low:+.3f} to {mine[m].high:+.3f})"
                for m in ("ajs", "precision", "recall")
            ]
            lines.append(f"| {label} | {year or 'both years'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _levels() -> str:
    found = levels(cycle_rows(), np.random.default_rng(0))
    lines = ["| year | arm | AJS | precision | recall | synthetic findings |", "|---|---|---|---|---|---|"]
    for year in (1, 2, 3):
        for arm in ("one-shot", "cycles") if year > 1 else ("one-shot",):
            mine = {one.measure: one.interval for one in found if (one.year, one.arm) == (year, arm)}
            lines.append(
                f"| {year} | {arm} | {mine['ajs'].mean:.3f} | {mine['precision'].mean:.2f} "
                f"| {mine['recall'].mean:.2f} | {mine['n_synthetic'].mean:.0f} |"
            )
    return "\n".join(lines)


def cycle_gain(measure: str) -> Gain:
    """What the product's cycle gains over both later years."""
    (one,) = [g for g in cycle_gains() if (g.arm, g.year, g.measure) == ("cycles", 0, measure)]
    return one


def _moodle_words() -> str:
    """The pool beside the guess on the real cohort, as measured."""
    cells = [
        _cell("moodle", method, measure, 2)
        for measure in ("precision", "outcome_precision", "outcome_recall")
        for method in ("pool", "nobody")
    ]
    return (
        f"On Moodle the pool's precision is {cells[0]} and that of the guess {cells[1]}; for findings about the "
        f"outcome {cells[2]} against {cells[3]}, with a recall of {cells[4]} against {cells[5]}."
    )


def _deep_words() -> str:
    """Who is nearer, as measured."""
    names = [name for name in _measured() if not np.isnan(_mean(name, "deep", "ajs"))]
    better = [name for name in names if _mean(name, "pool", "ajs") < _mean(name, "deep", "ajs")]
    far = [name for name in names if _mean(name, "deep", "ajs") > _mean(name, "nobody", "ajs")]
    return (
        f"Ours: the pool lies below the deep baseline on {len(better)} of {len(names)} cohorts; the deep baseline lies "
        f"above the guess that it was pretrained on in {len(far)} of {len(names)}."
    )


_JUDGED = (
    ("ajs", "AJS", -1),
    ("precision", "precision", 1),
    ("recall", "recall", 1),
    ("outcome_precision", "precision about the outcome", 1),
    ("outcome_recall", "recall about the outcome", 1),
)


def _cycle_verdict() -> str:
    """Whether there is a gain, from its interval and not from a wish."""
    words = []
    for measure, name, better in _JUDGED:
        one = cycle_gain(measure).interval
        shown = f"{one.mean:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
        if better * one.low > 0 and better * one.high > 0:
            words.append(f"{name} improves by {shown}")
        elif better * one.low < 0 and better * one.high < 0:
            words.append(f"{name} gets worse by {shown}")
        else:
            words.append(f"no gain is shown for {name}: {shown}")
    return "; ".join(words)


def _goals() -> str:
    lines = ["| goal at epsilon 3, delta 1e-3 | simulated years | Moodle |", "|---|---|---|"]
    simulated = [name for name in SIMULATED if compared(name) is not None]
    rows = (
        ("pool's AJS at least as low as the deep baseline's", "ajs", None, 3),
        ("precision at least 0.60", "precision", 0.60, 2),
        ("recall at least 0.30", "recall", 0.30, 2),
        ("at least 20 synthetic findings", "n_synthetic", 20.0, 0),
    )
    for title, measure, least, digits in rows:
        cells = []
        for names in (simulated, ["moodle"] if compared("moodle") is not None else []):
            values = [_mean(name, "pool", measure) for name in names]
            against = [_mean(name, "deep", measure) for name in names]
            shown = ", ".join(f"{value:.{digits}f}" for value in values) or "–"
            if least is None and (not against or any(np.isnan(against))):
                cells.append(f"{shown} (no deep baseline measured)")
                continue
            met = all(
                value <= other if least is None else value >= least
                for value, other in zip(values, against, strict=True)
            )
            beside = (
                ""
                if least is not None
                else " against " + ", ".join(f"{other:.{digits}f}" for other in against)
            )
            cells.append(f"{shown}{beside}: {'met' if met else '**not met**'}" if values else "–")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(name: str, method: str, measure: str) -> float:
    found = compared(name)
    one = None if found is None else found.interval(method, measure)
    return float("nan") if one is None else one.mean
