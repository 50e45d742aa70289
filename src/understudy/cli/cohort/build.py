"""`understudy cohort build`: a log of events and a list of scores to a cohort table."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import print_table, show, tell
from understudy.cohorts.building.build import BuildOptions
from understudy.cohorts.building.build import build as build_cohort

app = command_group()


@app.command()
@grouped
def build(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS", help="The log: xAPI statements, Moodle's csv, csv, xlsx or parquet."
        ),
    ],
    scores: Annotated[
        Path, typer.Option(help="List of scores: csv, xlsx or parquet, a learner in each row.")
    ],
    schema: Annotated[Path, typer.Option(help="Declaration of the cohort: windows, bounds, weeks, labels.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Cohort to write, csv or parquet; its schema is written beside."),
    ],
    term_start: Annotated[
        datetime, typer.Option(formats=["%Y-%m-%d"], help="First day of the term's first week: 2024-09-02.")
    ],
    options: BuildOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Turn a log of events and a list of scores into a table of minutes per window and week, and a label.

    Example: understudy cohort build log.csv --scores grades.csv --schema cohort.toml --term-start 2024-09-02
    -o cohort.parquet
    """
    found = build_cohort(events, scores, schema, out, options, term_start=term_start)
    if not as_json:
        tell(found.notes, quiet)
        print_table(
            f"{found.cohort.n_learners} learners over {found.cohort.schema.n_weeks} weeks",
            ["window", "minutes", "weeks without"],
            [
                [name, f"{minutes:,.0f}", f"{idle:.0%}"]
                for name, minutes, idle in found.to_frame().iter_rows()
            ],
        )
    show(found, as_json)
