"""sweep(): every coarseness of typing with what it identifies and what it still teaches, and advice on the size."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from understudy.core.engine import progress
from understudy.core.engine.cells import FinishedCells
from understudy.core.engine.tasks import run_tasks
from understudy.core.extras import needs_extra
from understudy.core.files.words import counted
from understudy.core.files.writing import check_new, new_folder
from understudy.core.options import settled
from understudy.core.pages.notebook import notebook_table
from understudy.keystrokes.formats.reading import KeystrokeSource
from understudy.keystrokes.sweeps.course import Course, Infer, SweepOptions, prepare
from understudy.keystrokes.sweeps.measures import (
    WAYS,
    Coarseness,
    both_sides,
    measure_averages,
    measure_events,
    measure_text,
)
from understudy.keystrokes.sweeps.report import all_advice, tradeoff, write_results
from understudy.keystrokes.sweeps.results import AVERAGES, EVENTS, Advice, Row
from understudy.keystrokes.traits.inference import infer_trait


@dataclass(frozen=True)
class Sweep:
    """What a sweep found: internal, since it is computed from real learners."""

    rows: list[Row]
    advice: list[Advice]
    n_learners: int
    n_left_out: int
    simulated: bool
    folder: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """The sweep for machines."""
        return {
            "out": None if self.folder is None else str(self.folder),
            "internal": True,
            "guarantee": "no formal guarantee",
            "n_learners": self.n_learners,
            "n_left_out": self.n_left_out,
            "report": None if self.folder is None else str(self.folder / "report.html"),
            "advice": [advice.to_json() for advice in self.advice],
        }

    def lines(self) -> list[str]:
        """The advice for people."""
        lines = []
        if self.n_left_out:
            lines.append(f"{counted(self.n_left_out, 'learner')} typed too little and are left out.")
        for advice in self.advice:
            lines.append(f"{advice.way} on {advice.level}: {advice.because}")
            if advice.dip is not None:
                lines.append(f"  {advice.dip}")
        lines += [
            "No formal guarantee. The text that was typed is a separate identifier: scrub replaces names in it.",
            "At chance: the upper 95 % bound of every attack is at most twice what guessing gives.",
        ]
        if self.folder is not None:
            about = "simulated learners" if self.simulated else "internal: computed from real learners"
            lines.append(f"Report: {self.folder / 'report.html'} ({about})")
        return lines

    def to_frame(self) -> pl.DataFrame:
        """`results.csv` as a frame."""
        return pl.DataFrame([asdict(row) for row in self.rows])

    def plot(self, way: str = "bucket", level: str = EVENTS) -> Any:
        """Identification and inference against the size, as an altair chart."""
        return tradeoff(self.rows, level, way, max(row.k for row in self.rows)).chart

    def _repr_html_(self) -> str:
        frame = pl.DataFrame([advice.to_json() for advice in self.advice])
        return notebook_table("Advice. Internal: computed from real learners.", frame)


def sweep(
    source: KeystrokeSource,
    options: SweepOptions = SweepOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    infer: Infer = infer_trait,
    **settings: Any,
) -> Sweep:
    """Try every coarseness of the times; with a folder, write table, figures and page.

    The settings of `SweepOptions` may be given as keywords. A sweep into a folder that was interrupted goes on
    where it stopped. `infer` is how a label is inferred from profiles.
    """
    options = settled(options, settings)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_new(folder, folder=True)
    source.require_rhythm()
    course = replace(prepare(source.keystrokes, source.labels, options), infer=infer)
    unfinished = None if folder is None else unfinished_folder(folder)
    try:
        rows = run_sweep(course, options, unfinished)
    except KeyboardInterrupt as stop:
        if folder is not None:
            stop.add_note("The same sweep goes on where it stopped.")
        raise
    if folder is not None and unfinished is not None:
        with new_folder(folder) as temporary:
            write_results(temporary, rows, course, options, source.label)
        folder.chmod(0o700)
        shutil.rmtree(unfinished, ignore_errors=True)
    n_learners, simulated = course.keystrokes.n_learners, course.keystrokes.simulated
    return Sweep(rows, all_advice(rows, options), n_learners, course.n_left_out, simulated, folder)


def unfinished_folder(out: Path) -> Path:
    """Where figures of finished sizes are kept until the sweep is done."""
    return out.parent / f".{out.name}-unfinished-sweep"


def run_sweep(course: Course, options: SweepOptions, folder: Path | None = None) -> list[Row]:
    """All rows. With a folder, finished tasks are kept there and not done again when the sweep is resumed."""
    with needs_extra("keystrokes", "the sweep"):
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    tasks = sweep_tasks(course, options)
    cells = None if folder is None else FinishedCells(folder, "sweep", asdict(options), _data(course))
    done = {}
    if cells is not None:
        kept = {name: cells.find(name) for name in tasks}
        done = {name: [Row(**row) for row in rows] for name, rows in kept.items() if rows is not None}
    pending = {name: task for name, task in tasks.items() if name not in done}
    # Tasks fill the cores already; libraries that start threads of their own in each would only get in the way.
    with threadpool_limits(1), progress.task("Trying coarsenings", len(tasks)) as step:
        step.advance(len(done))
        results = run_tasks(
            [partial(_run, cells, name, task) for name, task in pending.items()], step.advance
        )
    done |= dict(zip(pending, results, strict=True))
    return [row for name in tasks for row in done[name]]


def sweep_tasks(course: Course, options: SweepOptions) -> dict[str, Callable[[], list[Row]]]:
    """The tasks by name; each gives the rows of one coarseness, the last one those of the text."""
    tasks: dict[str, Callable[[], list[Row]]] = {}
    fine, many = both_sides(course, course.features), both_sides(course, course.trait_features)
    for way in WAYS:
        for size in options.sizes:
            averages, events = (Coarseness(level, way, size) for level in (AVERAGES, EVENTS))
            tasks[str(averages)] = partial(measure_averages, course, options, fine, many, averages)
            # Every fine size of events costs a pass over all keys, and they show no dip.
            if options.is_full(size):
                tasks[str(events)] = partial(measure_events, course, options, events)
    tasks["text"] = partial(measure_text, course, options)
    return tasks


def _data(course: Course) -> tuple[np.ndarray | None, ...]:
    data = course.keystrokes
    return (data.key, data.time, data.follows, data.offsets, data.session, data.week, course.labels)


def _run(cells: FinishedCells | None, name: str, task: Callable[[], list[Row]]) -> list[Row]:
    rows = task()
    if cells is not None:
        cells.keep(name, [asdict(row) for row in rows])
    return rows
