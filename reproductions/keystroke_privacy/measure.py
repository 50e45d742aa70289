"""Measures the sweeps of the keystroke thesis.

What is kept are the rows of two sweeps: shares of learners, never a learner's latency.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproductions.command import understudy
from reproductions.keystroke_privacy import together
from reproductions.keystroke_privacy.knowledge import BY_DIGRAPHS, BY_WEEKS, knowledge_figure
from reproductions.keystroke_privacy.sweep import repeat
from reproductions.pages import DATA, rows_of, tables_of, write_rows
from understudy.core.files.writing import results_csv
from understudy.keystrokes.formats.reading import KeystrokeOptions, read_keystrokes
from understudy.keystrokes.sweeps.course import SweepOptions
from understudy.keystrokes.sweeps.report import figures
from understudy.keystrokes.sweeps.results import COLUMNS, PUBLISHED, Row, select

TABLES = tables_of("keystroke_privacy")
# The guesses of an attacker whose results are kept.
K = 10
FIGURES = (
    "bucket-averages",
    "round-averages",
    "bucket-events",
    "round-events",
    "attacks",
    "digraphs",
    "weeks",
)


def measure_sweeps() -> None:
    """Sweep the simulated course, and the real typing data if it is there."""
    seconds = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        course = folder / "course.csv"
        understudy("simulate", "--shape", "typing", str(course))
        labels = folder / "course-labels.csv"
        seconds.append(("simulated", _sweep("simulated", folder, course, SweepOptions(), labels=labels)))
        events, users = DATA / "typing_events.csv.gz", DATA / "typing_users.csv"
        if events.exists():
            took = _sweep(
                "typing",
                folder,
                events,
                SweepOptions(split="sessions", min_characters=200),
                labels=users,
                label="sex",
            )
            seconds.append(("typing", took))
    write_rows(TABLES / "seconds.csv", ("data", "seconds"), seconds)


def _sweep(name: str, folder: Path, file: Path, options: SweepOptions, **labels: Any) -> str:
    """Sweep a file, keep what the page needs, and return the seconds that it took."""
    began = time.perf_counter()
    repeat(file, folder / name, options, **labels)
    keep(name, folder / name)
    return f"{time.perf_counter() - began:.0f}"


def keep(name: str, folder: Path) -> None:
    """Keep of a sweep what the page needs: its figures, and the rows with ten guesses or none."""
    with (folder / "results.csv").open(encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        kept = [row for row in reader if _needed(row)]
    with (TABLES / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    for figure in FIGURES:
        if (folder / f"{figure}.png").exists():
            shutil.copy(folder / f"{figure}.png", TABLES / f"{name}-{figure}.png")


def measure_together() -> None:
    """All likelihoods person by person and matched, and the risk of private statistics, on three sets of typing."""
    matched: list[dict[str, Any]] = []
    released: list[dict[str, Any]] = []
    usual = SweepOptions(guesses="1,10", step=50.0)
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch) / "course.csv"
        understudy("simulate", "--shape", "typing", str(course))
        for name, file, reading, options in (
            ("simulated", course, KeystrokeOptions(), usual),
            (
                "typing",
                DATA / "typing_events.csv.gz",
                KeystrokeOptions(),
                replace(usual, split="sessions", min_characters=200),
            ),
            (
                "free",
                DATA / "free_typing.csv.gz",
                KeystrokeOptions(time="press_ms"),
                replace(usual, split="sessions", min_characters=1000),
            ),
        ):
            if file.exists():
                typed = read_keystrokes(file, reading).keystrokes
                matched += together.matched_rows(name, typed, options)
                released += together.statistics_rows(name, typed, options)
    for table, rows in (("together", matched), ("statistics", released)):
        (TABLES / f"{table}.csv").write_text(results_csv(rows), encoding="utf-8")


def rows_of_sweep(name: str) -> tuple[Row, ...]:
    """The rows that were kept of a sweep."""
    return tuple(
        Row(
            level=row["level"],
            way=row["way"],
            size=float(row["size"]),
            measure=row["measure"],
            name=row["name"],
            k=int(row["k"]),
            value=float(row["value"]),
            low=float(row["low"]),
            high=float(row["high"]),
            baseline=float(row["baseline"]),
            n_learners=int(row["n_learners"]),
        )
        for row in rows_of(TABLES / f"{name}.csv")
    )


def _needed(row: dict[str, str]) -> bool:
    if row["measure"] in (BY_DIGRAPHS, BY_WEEKS):
        return True
    # Of the fine steps between, the dip needs the published attack and how full the fullest cell is.
    between = float(row["size"]) % 50 > 0
    return row["k"] in ("0", str(K)) and (not between or row["name"] in (PUBLISHED, "fullest cell"))


def draw_figures() -> None:
    """The figures, from the tables."""
    for name in ("simulated", "typing"):
        kept = rows_of_sweep(name)
        found = figures(kept, K)
        for figure, measure in (("digraphs", BY_DIGRAPHS), ("weeks", BY_WEEKS)):
            if select(kept, measure=measure):
                found[figure] = knowledge_figure(kept, measure)
        for figure in FIGURES:
            if figure in found:
                (TABLES / f"{name}-{figure}.png").write_bytes(found[figure].png())


PARTS = {"sweeps": measure_sweeps, "together": measure_together, "figures": draw_figures}
