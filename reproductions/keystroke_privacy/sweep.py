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
from understudy.cli.keystrokes.measure import EventsPath
from understudy.cli.options import grouped
from understudy.core.files.writing import check_new, check_parent, new_folder, results_csv, write_text
from understudy.keystrokes.formats.reading import read_courses, read_keystrokes
from understudy.keystrokes.sweeps.course import SweepOptions, prepare
from understudy.keystrokes.sweeps.report import figures
from understudy.keystrokes.sweeps.results import COLUMNS, select
from understudy.keystrokes.sweeps.sweep import run_sweep


@grouped
def sweep(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the results.")],
    options: SweepOptions,
    labels: Annotated[Path | None, typer.Option(help="Table with a label per learner.")] = None,
    label: Annotated[str | None, typer.Option(help="Its column with the label, if it has several.")] = None,
    other_course: Annotated[
        Path | None, typer.Option(help="Keystrokes of the same learners in another course.")
    ] = None,
) -> None:
    """Repeat the experiments of Leinonen (2016) on a file of keystrokes."""
    repeat(file, out, options, labels, label, other_course)


def repeat(
    file: Path,
    out: Path,
    options: SweepOptions,
    labels: Path | None = None,
    label: str | None = None,
    other_course: Path | None = None,
) -> None:
    """Sweep as in Leinonen (2016), and write table and figures."""
    check_new(out, folder=True)
    check_parent(out)
    source = read_keystrokes(file, labels=labels, label=label)
    source.require_rhythm()
    course = replace(prepare(source.keystrokes, source.labels, options), infer=infer_as_thesis)
    rows = run_sweep(course, options) + knowledge(course, options)
    if other_course is not None:
        here, there = read_courses(file, other_course)
        rows += from_another_course(here.keystrokes, there.keystrokes, options)
    found = figures(rows, options.most_guesses)
    for measure, name in ((BY_DIGRAPHS, "digraphs"), (BY_WEEKS, "weeks")):
        if select(rows, measure=measure):
            found[name] = knowledge_figure(rows, measure)
    with new_folder(out) as folder:
        for name, figure in found.items():
            figure.save(folder, name)
        write_text(folder / "results.csv", results_csv(map(asdict, rows), COLUMNS))
        folder.chmod(0o700)
