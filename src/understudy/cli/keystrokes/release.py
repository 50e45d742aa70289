"""Commands whose results may leave: keystrokes coarsen, statistics, scrub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.keystrokes.measure import EventsPath, read
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import print_table, show, tell
from understudy.core.privacy.risk import RISK_COLUMNS, RISK_LEGEND, StatedRisk
from understudy.errors import UsageError
from understudy.keystrokes.digraph_statistics import DigraphStatistics
from understudy.keystrokes.formats.reading import KeystrokeOptions
from understudy.keystrokes.group_statistics import StatisticsOptions, StatisticsPlan, plan_statistics
from understudy.keystrokes.group_statistics import statistics as release_statistics
from understudy.keystrokes.program_text.files import ScrubOptions
from understudy.keystrokes.program_text.files import scrub as scrub_programs
from understudy.keystrokes.release import CoarsenOptions
from understudy.keystrokes.release import coarsen as coarsen_events

app = command_group()


@app.command()
@grouped
def coarsen(
    file: EventsPath,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="File to write, csv or parquet by extension; its card is written beside it."
        ),
    ],
    options: CoarsenOptions,
    reading: KeystrokeOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write events whose latencies are coarse, under new names, with a card. There is no formal guarantee.

    Real dates, names, and every column that is not asked for are dropped. Of keys only their class is kept:
    with --keys all the text can be read, which is an identifier of its own.

    Example: understudy keystrokes coarsen events.csv --bucket 300 -o coarse.csv
    """
    found = coarsen_events(read(file, reading, as_json or quiet), options, out=out)
    tell(found.warnings, quiet=False)
    show(found, as_json)


@app.command()
@grouped
def statistics(
    file: EventsPath,
    options: StatisticsOptions,
    reading: KeystrokeOptions,
    digraphs: Annotated[
        Path | None, typer.Option(help="File with the digraphs, declared: one per line, such as `i n`.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Table with a row per learner and the label that groups them.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label, if there are several.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show the noise to expect and what attacks find on these learners, which stays inside; spend and "
            "write nothing.",
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Release how fast groups of learners type digraphs: noisy counts, sums and means, each with its noise.

    Digraphs, groups and bounds are declared, not looked up in the data.

    Example: understudy keystrokes statistics events.csv --labels labels.csv --groups none,some
    --digraphs digraphs.txt --epsilon 2 -o statistics.json
    """
    if out is None and not explain:
        raise UsageError("no file to write was given.", hint="add -o statistics.json.")
    source = read(file, reading, as_json or quiet, labels, label)
    if explain:
        plan = plan_statistics(source, digraphs, options)
        tell([str(doubt) for doubt in plan.account.doubts()], as_json or quiet)
        show(plan, as_json)
        if not as_json:
            _print_risks(plan)
        return
    found = release_statistics(source, digraphs, options, out=out)
    if not as_json:
        _print_means(found.found)
    show(found, as_json)
    tell(options.asked(found.guarantee), as_json or quiet)


@app.command()
@grouped
def scrub(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="A program (.java, .py), a folder with a folder per learner, or a csv or JSON-lines table.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The result: a file, or a new folder.")],
    options: ScrubOptions,
    as_json: AsJson = False,
) -> None:
    """Replace names, addresses, strings, comments and names in the code in the text of programs.

    Not a guarantee: the structure and style of a program, the words of names that stay (those of
    known libraries), numbers, and the rhythm of typing still identify people.

    Example: understudy keystrokes scrub snapshots.csv -o scrubbed.csv --language java --names class.txt
    """
    found = scrub_programs(source, output, options)
    if not as_json:
        rows = [[what, str(count)] for what, count in found.to_frame().iter_rows()]
        print_table(f"Replaced in {found.report}", ["what", "count"], rows)
    show(found, as_json)


def _print_risks(plan: StatisticsPlan) -> None:
    print_table(
        "Noise at other risks and epsilons (*: as asked)",
        ["", *RISK_COLUMNS, "a count +-", "a mean +-"],
        [
            [
                "*" * (other.epsilon == plan.release.epsilon),
                *StatedRisk.of(other.guarantee).cells(),
                f"{other.noise_sd:.1f} learners",
                f"{other.expected_error(plan.typical_group):.0f} ms",
            ]
            for other in plan.others()
        ],
    )
    typer.echo(f"{RISK_LEGEND} State a risk with --risk, or an epsilon.")


def _print_means(found: DigraphStatistics) -> None:
    release, (mean, error) = found.release, found.means
    declared = release.declaration

    def figure(g: int, j: int) -> str:
        return "lost in noise" if mean[g, j] != mean[g, j] else f"{mean[g, j]:.0f} +- {error[g, j]:.0f}"

    print_table(
        f"Mean latency by group, {release.n_learners} learners, epsilon {release.epsilon:g}, delta {release.delta:.1e}",
        ["digraph", *(f"{name} (ms)" for name in declared.groups)],
        [
            [digraph, *(figure(g, j) for g in range(len(declared.groups)))]
            for j, digraph in enumerate(declared.digraphs)
        ],
    )
