"""`understudy cohort build` and `summarize`: the table of a cohort, and its private summary."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import print_table, show, tell, tell_reading
from understudy.cohorts.building.build import BuildOptions
from understudy.cohorts.building.build import build as build_cohort
from understudy.cohorts.cohort import read_cohort
from understudy.cohorts.summary.budget import Plan
from understudy.cohorts.summary.summarize import Forecast, SummarizeOptions
from understudy.cohorts.summary.summarize import plan as plan_summary
from understudy.cohorts.summary.summarize import summarize as summarize_cohort
from understudy.core.privacy.risk import RISK_COLUMNS, RISK_LEGEND, StatedRisk
from understudy.errors import UsageError

app = command_group()

CohortPath = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The cohort, csv or parquet; its schema lies beside it, as toml."),
]
SchemaPath = Annotated[Path | None, typer.Option(help="Declaration of the cohort, if not beside the file.")]


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
        tell_reading(found.cohort.origin, options, quiet)
        print_table(
            f"{found.cohort.n_learners} learners over {found.cohort.schema.n_weeks} weeks",
            ["window", "minutes", "weeks without"],
            [
                [name, f"{minutes:,.0f}", f"{idle:.0%}"]
                for name, minutes, idle in found.to_frame().iter_rows()
            ],
        )
    show(found, as_json)


@app.command()
@grouped
def summarize(
    file: CohortPath,
    options: SummarizeOptions,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    schema: SchemaPath = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show the errors, the budget that is left and other epsilons; spend and write nothing.",
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Release noisy sums about a cohort, each with the scale of its noise.

    With --explain: the errors to expect, the budget that is left, and what other epsilons would give.

    Example: understudy cohort summarize cohort.parquet --epsilon 3 --delta 1e-5 -o summary.json
    """
    if explain:
        forecast = plan_summary(read_cohort(file, schema), options)
        if not as_json:
            tell([*map(str, forecast.doubts), *forecast.notes], quiet)
            _print_forecast(forecast)
        show(forecast, as_json)
        return
    if out is None:
        raise UsageError("no file to write was given.", hint="add -o summary.json.")
    found = summarize_cohort(read_cohort(file, schema), options, out=out)
    if not as_json:
        tell(found.notes, quiet)
        _print_plan(found.plan)
    show(found, as_json)
    tell(options.asked(found.summary.guarantee), as_json or quiet)
    if not as_json:
        synthetic = out.with_name(f"{out.stem}-synthetic.parquet")
        typer.echo(f"Next: understudy cohort synthesize {shlex.join([str(out), '-o', str(synthetic)])}")


def _print_plan(plan: Plan) -> None:
    print_table(
        f"Private summary of {plan.n_learners} learners, epsilon {plan.epsilon:g}, delta {plan.delta:.1e}",
        ["statistic", "says", "budget", "off by"],
        plan.rows(),
    )
    typer.echo(
        "Off by: one standard deviation of the noise in a share (of learners, weeks, windows; for `spread` of its "
        "usual size) or a correlation. 0.01 is little; ! is as much as there is to learn."
    )


def _print_forecast(forecast: Forecast) -> None:
    _print_plan(forecast.plan)
    print_table(
        "Off by at other risks and epsilons (*: as asked)",
        ["", *RISK_COLUMNS, *forecast.plan.shares],
        [
            ["*" * (other.epsilon == forecast.plan.epsilon), *StatedRisk.of(other.guarantee).cells()]
            + [f"{error:.2f}" for error in other.errors().values()]
            for other in forecast.others()
        ],
    )
    typer.echo(f"{RISK_LEGEND} State a risk with --risk, or an epsilon.")
