"""`understudy simulate`: a classroom of learners who never existed."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import AsJson, Seed, echo_json


class Shape(Enum):
    """Kinds of logs that can be simulated."""

    classroom = "classroom"
    duolingo = "duolingo"
    rare_paths = "rare-paths"


def simulate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write, csv or parquet.")],
    shape: Annotated[
        Shape, typer.Option(help="A small classroom, a log like Duolingo's, or few learners on rare paths.")
    ] = Shape.classroom,
    learners: Annotated[
        int | None, typer.Option(min=2, help="Number of learners (default: the shape's).")
    ] = None,
    actions: Annotated[
        int | None, typer.Option(min=2, help="Number of actions (default: the shape's).")
    ] = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Write the log of a simulated classroom, to try things without anybody's data.

    Example: understudy simulate classroom.csv --learners 600
    """
    import numpy as np
    import polars as pl

    from understudy.records.classroom import SHAPES
    from understudy.synthesis.writing import check_suffix, write_table

    check_suffix(out)
    chosen = SHAPES[shape.value]
    chosen = replace(chosen, n_learners=learners or chosen.n_learners, n_actions=actions or chosen.n_actions)
    log = chosen.simulate(np.random.default_rng(seed))
    table = log.to_frame()
    assert log.group is not None
    table = table.with_columns(pl.Series("school", log.groups).gather(log.group[log.learner]))
    write_table(table, out, kind="simulated data: these learners do not exist")
    if as_json:
        echo_json({"out": str(out), "rows": log.n_rows, "learners": log.n_learners, "actions": log.n_actions})
    else:
        typer.echo(
            f"{out}: {log.n_rows} rows of {log.n_learners} simulated learners, {log.n_actions} actions."
        )
