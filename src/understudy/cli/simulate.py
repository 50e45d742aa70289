"""`understudy simulate`: a classroom of learners who never existed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import AsJson, Seed, echo_json


def simulate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write, csv or parquet.")],
    learners: Annotated[int, typer.Option(min=2, help="Number of learners.")] = 600,
    actions: Annotated[int, typer.Option(min=2, help="Number of actions.")] = 40,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Write the log of a simulated classroom, to try things without anybody's data.

    Example: understudy simulate classroom.csv --learners 600
    """
    import numpy as np
    import polars as pl

    from understudy.records.classroom import Classroom
    from understudy.synthesis.writing import write_table

    log = Classroom(n_learners=learners, n_actions=actions).simulate(np.random.default_rng(seed))
    table = log.to_frame()
    assert log.group is not None
    table = table.with_columns(pl.Series("school", log.groups).gather(log.group[log.learner]))
    write_table(table, out, kind="simulated")
    if as_json:
        echo_json({"out": str(out), "rows": log.n_rows, "learners": log.n_learners, "actions": log.n_actions})
    else:
        typer.echo(
            f"{out}: {log.n_rows} rows of {log.n_learners} simulated learners, {log.n_actions} actions."
        )
