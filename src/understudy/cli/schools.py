"""Commands on released difficulties, for teachers: difficulties combine, ladder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import echo_json, print_table, show, tell
from understudy.exams.combine import CombinedDifficulties, CombineOptions, combine_difficulties
from understudy.exams.ladder import ladder as make_ladder

app = command_group()

# More than a screen of items is for a file.
_MOST_ITEMS = 40


@app.command("difficulties combine")
@grouped
def combine(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE FILE...", help="Files that `understudy difficulties` wrote, one per school."
        ),
    ],
    options: CombineOptions,
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put the private difficulties of several schools on one scale.

    Schools need items in common, with the same names. Nothing but the files is used: no answers
    move, and nothing is charged. Shows which item behaves differently in which school.

    Example: understudy difficulties combine north.json south.json -o joint.json
    """
    found = combine_difficulties([str(file) for file in files], options, out=out)
    if as_json:
        echo_json(found.to_json())
        return
    tell(found.notes, quiet)
    _print(found)
    show(found, as_json=False)
    tell(found.difficulties.warnings(), quiet=False)
    typer.echo(f"Written: {out}.")


@app.command()
@grouped
def ladder(
    file: Annotated[
        Path, typer.Argument(metavar="DIFFICULTIES", help="The file that `understudy difficulties` wrote.")
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="File for the picture, svg, or for a page with it, html.")
    ],
    as_json: AsJson = False,
) -> None:
    """Draw students and items on one scale, for teachers.

    The students are a curve of the model, from the private spread of abilities; no student is
    drawn. Items are in the order of their difficulty, with 95 % intervals and ties.

    Example: understudy ladder difficulties.json -o ladder.svg
    """
    show(make_ladder(file, out=out), as_json)


def _print(found: CombinedDifficulties) -> None:
    print_table(
        f"{len(found.schools)} schools; abilities on the joint scale, whose zero is the mean of all learners",
        ["school", "learners", "items", "in common", "ability", "standard error"],
        [
            [
                school.name,
                str(school.n_learners),
                str(school.n_items),
                str(school.n_common),
                f"{school.ability:+.2f}",
                f"{school.standard_error:.2f}",
            ]
            for school in found.schools
        ],
    )
    items = found.difficulties.from_easy_to_hard()
    print_table(
        f"{len(items)} items from easy to hard"
        + (f", the first {_MOST_ITEMS}" if len(items) > _MOST_ITEMS else ""),
        ["item", "difficulty", "standard error", "reading", "place"],
        [
            [item.name, f"{item.difficulty:.2f}", f"{item.standard_error:.2f}", item.reading, item.place]
            for item in items[:_MOST_ITEMS]
        ],
    )
