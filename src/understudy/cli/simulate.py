"""`understudy simulate`: a classroom of learners, an exam, a cohort, or a course of typing, that never existed."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Seed
from understudy.cli.terminal import echo_json
from understudy.cohorts.cohort import check_schema_beside, write_cohort
from understudy.cohorts.simulate import School
from understudy.core.files.simulated import check_replaceable, mark_simulated
from understudy.core.files.writing import check_parent, check_suffix, write_table, write_text
from understudy.core.names import SIMULATED_PREFIX
from understudy.errors import UsageError
from understudy.exams.simulate import Exam, simulate_points
from understudy.keystrokes.formats.events import event_table
from understudy.keystrokes.simulate import EXPERIENCE, TypingCourse
from understudy.logs.frames import rows_to_write
from understudy.logs.simulated.classroom import RARE_PATHS, Classroom
from understudy.logs.simulated.moodle import moodle_gradebook, moodle_report
from understudy.logs.simulated.term import plan_of
from understudy.logs.simulated.vocabulary import DUOLINGO_SHAPE, VocabularyCourse

app = command_group()

SHAPES: dict[str, Classroom | VocabularyCourse] = {
    "classroom": Classroom(),
    "duolingo": DUOLINGO_SHAPE,
    "rare-paths": RARE_PATHS,
}


class Shape(Enum):
    """Kinds of data that can be simulated."""

    classroom = "classroom"
    duolingo = "duolingo"
    rare_paths = "rare-paths"
    exam = "exam"
    cohort = "cohort"
    typing = "typing"
    moodle = "moodle"


@app.command()
def simulate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write, csv or parquet.")],
    shape: Annotated[
        Shape,
        typer.Option(
            help="A small classroom, a log like Duolingo's, few learners on rare paths, the sheet of an exam, "
            "a school's cohort, the keystrokes of a programming course, or the log report of a Moodle course with its "
            "gradebook (OUT-grades)."
        ),
    ] = Shape.classroom,
    learners: Annotated[
        int | None, typer.Option(min=2, help="Number of learners (default: the shape's).")
    ] = None,
    actions: Annotated[
        int | None,
        typer.Option(min=2, help="Number of actions, or of an exam's items (default: the shape's)."),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            min=2, help="Usual number of a learner's rows in a classroom, the median (default: 25)."
        ),
    ] = None,
    items: Annotated[int | None, typer.Option(min=2, help="Number of an exam's items (default: 20).")] = None,
    points: Annotated[
        int | None,
        typer.Option(min=2, max=100, help="Points of each item of an exam (default: right or wrong)."),
    ] = None,
    year: Annotated[
        int | None, typer.Option(min=0, max=99, help="Year of a cohort, whose habits drift (default: 0).")
    ] = None,
    times: Annotated[
        bool,
        typer.Option(
            "--times",
            help="Also write a classroom's times, columns of its rows, a table of its learners (OUT-learners), and the "
            "plan that declares them (OUT-plan.toml).",
        ),
    ] = False,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Write data of learners who never existed, to try things.

    That the learners are simulated is written beside the file (OUT.simulated). A file that is there is
    replaced only if it is such a file.

    Example: understudy simulate classroom.csv --learners 600
    """
    _refuse_what_does_not_fit(shape, actions, items, year)
    if points is not None and shape is not Shape.exam:
        raise UsageError(
            f"the shape {shape.value} has no points.",
            hint="choose the shape exam, or leave the points out.",
            settings=("shape", "points"),
        )
    if times and shape is not Shape.classroom:
        raise UsageError(
            f"the shape {shape.value} has no times of a term.",
            hint="choose the shape classroom, or leave the times out.",
            settings=("shape", "times"),
        )
    check_suffix(out)
    check_parent(out)
    check_replaceable(out)
    rng = np.random.default_rng(seed)
    if shape is Shape.typing:
        facts = _write_typing(out, learners, rng)
        words = (
            "{keys} keys of {learners} simulated learners over {weeks} weeks; "
            f"who had programmed before: {_labels_path(out)}."
        )
    elif shape is Shape.moodle:
        facts = _write_moodle(out, learners, actions, rng)
        words = f"{{rows}} rows of {{learners}} simulated learners; their grades: {_grades_path(out)}."
    elif shape is Shape.cohort:
        facts = _write_cohort(out, learners, year or 0, rng)
        words = "{learners} simulated learners over {weeks} weeks, year {year}; its schema lies beside it."
    elif shape is Shape.exam:
        facts = _write_exam(out, learners, items or actions, points, rng)
        words = "answers of {learners} simulated learners to {items} items."
    else:
        facts = _write_log(out, shape, learners, actions, length, times, rng)
        words = "{rows} rows of {learners} simulated learners, {actions} actions."
        if times:
            words = (
                words[:-1]
                + f"; their table: {_learners_path(out)}; a plan that declares both: {_plan_path(out)}."
            )
    mark_simulated(out)
    if as_json:
        echo_json({"out": str(out), **facts})
    else:
        typer.echo(f"{out}: " + words.format(**facts))


def _refuse_what_does_not_fit(shape: Shape, actions: int | None, items: int | None, year: int | None) -> None:
    if year is not None and shape is not Shape.cohort:
        raise UsageError(f"the shape {shape.value} has no year.", hint="a cohort has.", settings=("shape",))
    if shape in (Shape.cohort, Shape.typing) and not (actions is None and items is None):
        raise UsageError(
            f"the shape {shape.value} has neither actions nor items.",
            hint="leave them out.",
            settings=("actions", "items"),
        )
    if shape is Shape.exam and None not in (actions, items) and actions != items:
        raise UsageError(
            f"an exam has either {actions} or {items} items.", hint="give one of them.", settings=("items",)
        )
    if (shape.value in SHAPES or shape is Shape.moodle) and items is not None:
        raise UsageError(
            f"the shape {shape.value} has actions, not items.", hint="an exam has items.", settings=("shape",)
        )


_KIND = "simulated data: these learners do not exist"


def _learners_path(out: Path) -> Path:
    """Where the table of a log's learners lies: beside it."""
    return out.with_name(f"{out.stem}-learners{out.suffix}")


def _plan_path(out: Path) -> Path:
    """Where the plan lies that declares what a log has: beside it."""
    return out.with_name(f"{out.stem}-plan.toml")


def _write_log(
    out: Path,
    shape: Shape,
    learners: int | None,
    actions: int | None,
    length: int | None,
    times: bool,
    rng: np.random.Generator,
) -> dict[str, int]:
    """Write a log with a row per attempt, and with times a table of its learners; returns its sizes."""
    chosen = SHAPES[shape.value]
    chosen = replace(chosen, n_learners=learners or chosen.n_learners, n_actions=actions or chosen.n_actions)
    if length is not None:
        if not isinstance(chosen, Classroom):
            raise UsageError(
                f"the shape {shape.value} has lengths of its own.",
                hint="choose the shape classroom, or leave the length out.",
                settings=("shape", "length"),
            )
        chosen = replace(chosen, median_length=float(length), longest=max(chosen.longest, 16 * length))
    if times and isinstance(chosen, Classroom):
        table, plan = _learners_path(out), _plan_path(out)
        for path in (table, plan):
            check_replaceable(path)
        log = replace(chosen, timed=True).simulate(rng)
        write_table(log.to_polars(), out, kind=_KIND)
        write_table(log.learners_to_polars(), table, kind=_KIND)
        write_text(plan, plan_of(log, table.name))
        for path in (table, plan):
            mark_simulated(path)
        return {"rows": log.n_rows, "learners": log.n_learners, "actions": log.n_actions}
    log = chosen.simulate(rng)
    write_table(rows_to_write(log, SIMULATED_PREFIX, group="school"), out, kind=_KIND)
    return {"rows": log.n_rows, "learners": log.n_learners, "actions": log.n_actions}


def _grades_path(out: Path) -> Path:
    """Where the gradebook of a Moodle course lies: beside its log."""
    return out.with_name(f"{out.stem}-grades{out.suffix}")


def _write_moodle(
    out: Path, learners: int | None, actions: int | None, rng: np.random.Generator
) -> dict[str, int]:
    """Write the log report and the gradebook of a simulated course; returns its sizes."""
    check_replaceable(_grades_path(out))
    usual = Classroom(timed=True)
    log = replace(usual, n_learners=learners or 200, n_actions=actions or usual.n_actions).simulate(rng)
    write_table(moodle_report(log), out, kind=_KIND)
    write_table(moodle_gradebook(log), _grades_path(out), kind=_KIND)
    mark_simulated(_grades_path(out))
    return {"rows": log.n_rows, "learners": log.n_learners, "actions": log.n_actions}


def _write_exam(
    out: Path, learners: int | None, items: int | None, points: int | None, rng: np.random.Generator
) -> dict[str, int]:
    """Write a sheet with a row per learner and a column per item; returns its sizes."""
    usual = Exam()
    exam = replace(usual, n_learners=learners or usual.n_learners, n_items=items or usual.n_items)
    if points is None:
        responses, maximum = exam.simulate(rng).responses, ""
    else:
        responses, maximum = simulate_points(exam, points, rng), f" ({points} points)"
    sheet = pl.DataFrame(responses.correct, schema=[name + maximum for name in responses.items])
    number = pl.int_range(1, sheet.height + 1, eager=True).cast(pl.String)
    names = (SIMULATED_PREFIX + number).alias("learner")
    write_table(sheet.insert_column(0, names), out, kind=_KIND)
    return {"rows": sheet.height, "learners": responses.n_learners, "items": responses.n_items}


def _write_cohort(out: Path, learners: int | None, year: int, rng: np.random.Generator) -> dict[str, int]:
    """Write a cohort of the simulated school and its schema; returns its sizes."""
    usual = School()
    check_schema_beside(out, usual.schema)
    cohort = replace(usual, n_learners=learners or usual.n_learners).simulate(year, rng)
    write_cohort(cohort, out)
    return {"learners": cohort.n_learners, "weeks": cohort.schema.n_weeks, "year": year}


def _labels_path(out: Path) -> Path:
    """Where the labels of a typing course lie: beside its events."""
    return out.with_name(f"{out.stem}-labels.csv")


def _write_typing(out: Path, learners: int | None, rng: np.random.Generator) -> dict[str, int]:
    """Write the events of a simulated course, and who had programmed before; returns its sizes."""
    check_replaceable(_labels_path(out))
    usual = TypingCourse()
    keystrokes, experience = replace(usual, n_learners=learners or usual.n_learners).simulate(rng)
    number = pl.int_range(1, keystrokes.n_learners + 1, eager=True).cast(pl.String)
    labels = pl.DataFrame(
        {
            "learner": SIMULATED_PREFIX + number,
            "experience": pl.Series(EXPERIENCE).gather(experience),
        }
    )
    write_table(event_table(keystrokes), out, kind=_KIND)
    write_table(labels, _labels_path(out), kind=_KIND)
    mark_simulated(_labels_path(out))
    return {"keys": keystrokes.n_rows, "learners": keystrokes.n_learners, "weeks": usual.n_weeks}
