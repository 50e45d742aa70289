"""The sweep of the thesis on a file of keystrokes.

Beside what `understudy keystrokes sweep` measures: the label inferred as the thesis did, and what an attacker
needs to know (digraphs, weeks, another course). Writes `results.csv` and figures; both are computed from
the learners of the file, and no guarantee covers them.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from reproductions.keystroke_privacy.knowledge import (
    BY_DIGRAPHS,
    BY_WEEKS,
    from_another_course,
    knowledge,
    knowledge_figure,
)
from reproductions.keystroke_privacy.traits import infer_as_thesis
from understudy.cli.keystrokes.options import Digraphs, EventsPath, MinCharacters, SplitBy, check_clock
from understudy.core.files.results_table import results_csv
from understudy.core.files.writing import check_absent, check_parent, new_folder, write_text
from understudy.keystrokes.formats.reading import read_courses, read_keystrokes
from understudy.keystrokes.sweep.report import figures
from understudy.keystrokes.sweep.results import COLUMNS, select
from understudy.keystrokes.sweep.sweep import SweepPlan, prepare, run_sweep


def sweep(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the results.")],
    labels: Annotated[Path | None, typer.Option(help="Table with a label per learner.")] = None,
    label: Annotated[str | None, typer.Option(help="Its column with the label, if it has several.")] = None,
    other_course: Annotated[
        Path | None, typer.Option(help="Keystrokes of the same learners in another course.")
    ] = None,
    split: Annotated[
        SplitBy, typer.Option(help="Identify the last week or the last sessions.")
    ] = SplitBy.weeks,
    largest: Annotated[float, typer.Option(help="Largest size, in milliseconds.")] = 750.0,
    step: Annotated[float, typer.Option(help="Nearest-profile attacks run at every such step.")] = 10.0,
    trained_step: Annotated[float, typer.Option(help="Everything else runs at every such step.")] = 50.0,
    guesses: Annotated[str, typer.Option(help="Numbers of guesses, with commas.")] = "1,5,10",
    digraphs: Digraphs = 25,
    min_characters: MinCharacters = 2000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 1,
) -> None:
    """Repeat the experiments of Leinonen (2016) on a file of keystrokes."""
    check_absent(out)
    check_parent(out)
    plan = SweepPlan(
        largest,
        step,
        trained_step,
        tuple(int(number) for number in guesses.split(",")),
        digraphs,
        least_characters=min_characters,
        split=split.value,
        seed=seed,
    )
    source = read_keystrokes(file, labels=labels, label=label)
    check_clock(file, source)
    course = replace(prepare(source.keystrokes, source.labels, plan), infer=infer_as_thesis)
    rows = run_sweep(course, plan) + knowledge(course, plan)
    if other_course is not None:
        here, there = read_courses(file, other_course)
        rows += from_another_course(here.keystrokes, there.keystrokes, plan)
    found = figures(rows, max(plan.guesses))
    for measure, name in ((BY_DIGRAPHS, "digraphs"), (BY_WEEKS, "weeks")):
        if select(rows, measure=measure):
            found[name] = knowledge_figure(rows, measure)
    with new_folder(out) as folder:
        for name, figure in found.items():
            figure.save(folder, name)
        write_text(folder / "results.csv", results_csv(map(asdict, rows), COLUMNS))
        folder.chmod(0o700)
