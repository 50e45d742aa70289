"""How strong each attack is: `python -m reproductions.attack_strength`.

Prints the tables of docs/explanation/attacks.md from what was measured: logs by `python -m reproductions measure
synthetic_logs private` and `python -m reproductions.epsilons`, cohorts by `python -m reproductions measure two_stage`,
typing by `python -m reproductions measure keystroke_privacy together`.
"""

from __future__ import annotations

import math
from statistics import fmean

import typer

from reproductions import epsilons
from reproductions.keystroke_privacy import together
from reproductions.synthetic_logs.page import attacks_table
from reproductions.two_stage.tables import compared
from understudy.cohorts.attacks.membership import COHORT_ATTACKS
from understudy.cohorts.comparison import Comparison
from understudy.cohorts.simulate import SCHEMA
from understudy.cohorts.summary.budget import propose
from understudy.core.privacy.risk import worst_case

COHORTS = {"year-1": "simulated", "moodle": "Moodle"}
# The pool and the panelists by themselves work from the same noisy sums: their mean is less noisy than one of them.
PRIVATE = ("pool", "zero-inflated", "habit-chain", "copula")
METHODS = {"resample": ("resample",), "pool-no-noise": ("pool-no-noise",), "private": PRIVATE}


def cohort_table() -> str:
    """The mean AUC of every attack on three kinds of methods and two cohorts; the strongest of each in bold."""
    columns = [
        (found, label, method)
        for name, label in COHORTS.items()
        if (found := compared(name)) is not None
        for method in METHODS
    ]
    lines = [
        "| attack | " + " | ".join(f"{label}: {_shown(method)}" for _, label, method in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    means = {
        attack: [_mean(found, method, f"auc_{attack.replace('-', '_')}") for found, _, method in columns]
        for attack in COHORT_ATTACKS
    }
    best = [max(figures) for figures in zip(*means.values(), strict=True)]
    for attack, figures in means.items():
        cells = [
            f"**{one:.3f}**" if one == top else f"{one:.3f}" for one, top in zip(figures, best, strict=True)
        ]
        lines.append(f"| `{attack}` | {' | '.join(cells)} |")
    for words, measure in (
        ("the strongest on each seed", "auc_worst"),
        ("luck alone, the strongest", "control_auc_worst"),
    ):
        cells = [f"{_mean(found, method, measure):.3f}" for found, _, method in columns]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    for words, measure, form in (
        ("`transcript` (white box)", "auc_transcript", ".3f"),
        ("learners exposed", "exposed_share", ".0%"),
    ):
        cells = [
            f"{_mean(found, method, measure):{form}}" if method == "private" else "–"
            for found, _, method in columns
        ]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    proved = worst_case(propose(SCHEMA, 120, 3.0, 1e-3).guarantee)["auc"]
    cells = [f"{proved:.2f}" if method == "private" else "–" for *_, method in columns]
    return "\n".join([*lines, f"| proved for any data | {' | '.join(cells)} |"])


def _shown(method: str) -> str:
    return method if method == "private" else f"`{method}`"


def _mean(found: Comparison, method: str, measure: str) -> float:
    """A figure in the mean over seeds, and over the methods that are shown as one."""
    intervals = [found.interval(one, measure) for one in METHODS[method]]
    return fmean(math.nan if interval is None else interval.mean for interval in intervals)


def tables() -> list[str]:
    """All tables that were measured, as on the page."""
    return [
        attacks_table(),
        *([epsilons.table()] if epsilons.TABLE.exists() else []),
        cohort_table(),
        together.matched_table(),
        together.statistics_table(),
    ]


if __name__ == "__main__":
    typer.echo("\n\n".join(tables()))
