"""Typing, judged all together: what naming everybody at once adds, and what digraph statistics give away.

What is kept are shares of people and areas under curves, never a person's latency.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from reproductions.pages import rows_of, tables_of
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.risk import worst_case
from understudy.keystrokes.digraph_statistics import Declaration, Release
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.statistics_risk import statistics_risk
from understudy.keystrokes.sweeps.course import SweepOptions, prepare
from understudy.keystrokes.sweeps.measures import LIKELIHOODS
from understudy.keystrokes.sweeps.results import IDENTIFICATION, MATCHED, Row, select
from understudy.keystrokes.sweeps.sweep import sweep_tasks

TABLES = tables_of("keystroke_privacy")
RELEASES = {
    "events bucket 0": "as typed",
    "events bucket 300": "events, bucket 300",
    "events round 500": "events, round 500",
    "averages bucket 300": "averages, bucket 300",
    "averages round 500": "averages, round 500",
}
DATASETS = {
    "simulated": "simulated course",
    "typing": "one fixed text",
    "free": "free text",
}
EPSILONS = (2.0, 8.0)


def matched_rows(
    data: str, keystrokes: Keystrokes, options: SweepOptions, releases: Collection[str] = tuple(RELEASES)
) -> Iterator[dict[str, Any]]:
    """What each likelihood names, person by person and matched, with each number of guesses."""
    course = prepare(keystrokes, None, options)
    tasks = sweep_tasks(course, options)
    for release in releases:
        rows = select(tasks[release](), measure=IDENTIFICATION)
        for single in (row for row in rows if row.name in LIKELIHOODS):
            (joint,) = select(rows, name=f"{single.name}{MATCHED}", k=single.k)
            yield {"data": data, "release": release, **_figures(single, joint)}


def _figures(single: Row, joint: Row) -> dict[str, Any]:
    return {
        "attack": single.name,
        "k": single.k,
        "one_by_one": round(single.value, 4),
        "matched": round(joint.value, 4),
        "low": round(joint.low, 4),
        "high": round(joint.high, 4),
        "chance": round(joint.baseline, 4),
        "n_learners": joint.n_learners,
    }


def statistics_rows(
    data: str, keystrokes: Keystrokes, options: SweepOptions, n_halves: int = 40
) -> Iterator[dict[str, Any]]:
    """The risk of private statistics of the most common digraphs.

    The digraphs are taken from the data, which a release must not do.
    """
    course = prepare(keystrokes, None, options)
    typing = course.keystrokes
    declared = Declaration(course.features, ("all",))
    for epsilon in EPSILONS:
        release = Release(declared, typing.n_learners, epsilon, default_delta(typing.n_learners))
        group = np.zeros(typing.n_learners, dtype=np.int64)
        found = statistics_risk(typing, group, release, np.random.default_rng(1), n_halves)
        if found is not None:
            areas = {estimate.attack: estimate.auc for estimate in found.risk.estimates}
            yield {
                "data": data,
                "epsilon": epsilon,
                "n_learners": typing.n_learners,
                "tracing": round(areas["tracing"], 4),
                "joint_linear": round(areas["joint-linear"], 4),
                "chance": round(found.chance.auc, 4),
                "exposed_share": round(found.exposed_share, 4),
                "proved": worst_case(found.guarantee)["auc"],
            }


def matched_table() -> str:
    """The best likelihood of each kind of release, person by person and matched, with 1 and 10 guesses."""
    rows = rows_of(TABLES / "together.csv")
    guesses = sorted({int(row["k"]) for row in rows})
    heads = [f"{k} guess{'es' * (k > 1)}, {how}" for k in guesses for how in ("one by one", "matched")]
    lines = [
        f"| typing | release | {' | '.join(heads)} | guessing |",
        "|---|---|" + "---|" * (len(heads) + 1),
    ]
    for data, words in DATASETS.items():
        for release, what in RELEASES.items():
            cells, chances = [], []
            for k in guesses:
                mine = [
                    row for row in rows if (row["data"], row["release"], row["k"]) == (data, release, str(k))
                ]
                best = max(mine, key=lambda row: float(row["matched"]))
                single = max(float(row["one_by_one"]) for row in mine)
                cells += [f"{single:.2f}", _interval(best)]
                chances.append(f"{float(best['chance']):.2f}")
            lines.append(
                f"| {words} ({best['n_learners']}) | {what} | {' | '.join(cells)} | {', '.join(chances)} |"
            )
    return "\n".join(lines)


def _interval(row: dict[str, str]) -> str:
    return f"{float(row['matched']):.2f} ({float(row['low']):.2f} to {float(row['high']):.2f})"


def statistics_table() -> str:
    """The attacks on private statistics."""
    lines = [
        "| typing | epsilon | `tracing` | `joint-linear` = `transcript` | luck alone | learners exposed | proved |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows_of(TABLES / "statistics.csv"):
        cells = [
            f"{DATASETS[row['data']]} ({row['n_learners']})",
            f"{float(row['epsilon']):g}",
            *(f"{float(row[name]):.3f}" for name in ("tracing", "joint_linear", "chance")),
            f"{100 * float(row['exposed_share']):.0f} %",
            f"{float(row['proved']):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
