"""The command that drafts the part of a plan in which a log is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, grouped
from understudy.cli.terminal import show
from understudy.core.files.writing import check_not_input
from understudy.logs.plan_draft import draft_plan
from understudy.logs.reading import LogOptions

app = command_group()


@app.command()
@grouped
def describe(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The log, as a file or a folder.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Plan to write, such as understudy.toml.")],
    options: LogOptions,
    as_json: AsJson = False,
) -> None:
    """Draft a plan: what a log has, for you to declare.

    The draft names the columns that were recognised, and has every other one with its kind, commented out: what is
    synthesized beside actions and outcomes is your decision, and categories and bounds are yours to fill in, never
    read off the data. Columns that identify people are named and left out. With --learners the table of learners is
    drafted too.

    Example: understudy describe log.csv -o understudy.toml
    """
    check_not_input(out, file)
    show(draft_plan(file, options, out=out), as_json)
