"""`understudy keystrokes statistics`: private digraph statistics by group, charged to the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.charging import paid_output
from understudy.cli.keystrokes.options import (
    EventsPath,
    Format,
    Key,
    Learner,
    Session,
    Time,
    Unit,
    Week,
    read_events,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, LedgerPath
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.keystrokes.statistics import DigraphStatistics, Release


app = command_group()


@app.command()
def statistics(
    file: EventsPath,
    labels: Annotated[
        Path | None, typer.Option(help="Table with a row per learner and the label that groups them.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label, if there are several.")] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="The groups, declared: values of the label with commas. Other learners count in none. "
            "Without --labels: one group of all."
        ),
    ] = None,
    digraphs: Annotated[
        Path | None, typer.Option(help="File with the digraphs, declared: one a line, such as `i n`.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy loss allowed.")] = 2.0,
    delta: Annotated[
        float | None,
        typer.Option(
            help="The small chance beyond it (default: 1e-6, or one over the squared number of learners)."
        ),
    ] = None,
    shortest: Annotated[float, typer.Option(metavar="MS", help="Latencies below are left out.")] = 10.0,
    longest: Annotated[
        float, typer.Option(metavar="MS", help="Latencies above are left out; closer bounds mean less noise.")
    ] = 750.0,
    least: Annotated[
        int, typer.Option(help="A learner counts for a digraph from so many occurrences on.")
    ] = 5,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the noise to expect; spend and write nothing.")
    ] = False,
    learner: Learner = None,
    time: Time = None,
    key: Key = None,
    session: Session = None,
    week: Week = None,
    unit: Unit = None,
    format: Format = None,
    ledger: LedgerPath = None,
    population: Annotated[
        str | None,
        typer.Option(
            help="Whose data this is (default: the learners of this file). If the same learners are in another "
            "file, give both the same population: it all adds up."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Release how fast groups of learners type digraphs: noisy counts, sums and means, each with its noise.

    Digraphs, groups and bounds are declared, not looked up in the data.

    Example: understudy keystrokes statistics events.csv --labels labels.csv --groups none,some
    --digraphs digraphs.txt --epsilon 2 -o statistics.json
    """
    import numpy as np

    from understudy.core.files.writing import write_json
    from understudy.core.privacy.composition import default_delta
    from understudy.core.privacy.spending import Account, Spending
    from understudy.keystrokes.formats.progsnap import main_table
    from understudy.keystrokes.statistics import (
        Declaration,
        Release,
        declared_groups,
        read_digraphs,
        release_statistics,
    )

    out = paid_output(out, "statistics.json", explain=explain)
    declaration = Declaration(read_digraphs(digraphs), _groups(groups, labels), shortest, longest, least)
    source = read_events(
        file,
        format=format,
        learner=learner,
        time=time,
        key=key,
        session=session,
        week=week,
        unit=unit,
        labels=labels,
        label=label,
        quiet=as_json,
    )
    real = source.keystrokes
    release = Release(
        declaration,
        real.n_learners,
        epsilon,
        default_delta(real.n_learners) if delta is None else delta,
    )
    # A folder and its main table are the same data, with one ledger and one population.
    data = main_table(file) if file.is_dir() else file
    account = Account.open(Spending(population, ledger), path=data, simulated=real.simulated)
    if explain:
        _explain(release, as_json)
        return
    account.check(release.guarantee)
    group = declared_groups(
        declaration.groups,
        source.label_names if source.labels is not None else declaration.groups,
        source.labels if source.labels is not None else np.zeros(real.n_learners, dtype=np.int64),
    )
    with account.charge("keystrokes statistics", "discrete Gaussian", release.guarantee, out=out) as charge:
        found = release_statistics(real, group, release, charge.noise)
        write_json(out, {**found.to_json(), "card": charge.card, "simulated": real.simulated})
    if as_json:
        echo_json(
            {
                "out": str(out),
                **charge.to_json(),
                "noise_sd": release.noise_sd,
                "guarantee": found.guarantee.to_json(),
            }
        )
        return
    _show(found)
    typer.echo(f"Guarantee: {found.guarantee}.")
    typer.echo(charge.sentence())
    typer.echo(f"Written: {out}.")


def _groups(groups: str | None, labels: Path | None) -> tuple[str, ...]:
    """The declared groups; what the labels hold must not decide them."""
    from understudy.errors import UsageError

    if labels is None:
        if groups is not None:
            raise UsageError("groups were declared, but no labels given.", hint="add --labels FILE.")
        return ("all",)
    if groups is None:
        raise UsageError(
            "the groups were not declared.",
            hint="name them with --groups none,some: which labels occur would tell about learners.",
        )
    return tuple(name.strip() for name in groups.split(",") if name.strip())


def _explain(release: Release, as_json: bool) -> None:
    declared = release.declaration
    typical = release.n_learners / len(declared.groups)
    content = {
        "spent": 0,
        "epsilon": release.epsilon,
        "delta": release.delta,
        "n_learners": release.n_learners,
        "count_noise_sd": release.noise_sd,
        "mean_noise_sd_ms": release.expected_error(typical),
        "guarantee": release.guarantee.to_json(),
    }
    if as_json:
        echo_json(content)
        return
    typer.echo(
        f"{len(declared.digraphs)} digraphs in {len(declared.groups)} groups at epsilon {release.epsilon:g}, "
        f"delta {release.delta:.1e}: every count +- {release.noise_sd:.1f} learners; a mean +- "
        f"{content['mean_noise_sd_ms']:.0f} ms where {typical:.0f} learners of a group typed the digraph, and none "
        f"is given below {3 * release.noise_sd:.0f}."
    )
    typer.echo("Fewer digraphs and closer bounds mean less noise. Nothing was spent.")


def _show(found: DigraphStatistics) -> None:
    from understudy.cli.terminal import print_table

    release, (mean, error) = found.release, found.means
    declared = release.declaration
    print_table(
        f"Mean latency by group, {release.n_learners} learners, epsilon {release.epsilon:g}, delta {release.delta:.1e}",
        ["digraph", *(f"{name} (ms)" for name in declared.groups)],
        [
            [digraph, *(_figure(mean[g, j], error[g, j]) for g in range(len(declared.groups)))]
            for j, digraph in enumerate(declared.digraphs)
        ],
    )
    typer.echo("+- is one standard deviation of the noise; that other learners type otherwise comes on top.")


def _figure(mean: float, error: float) -> str:
    return "lost in noise" if mean != mean else f"{mean:.0f} +- {error:.0f}"
