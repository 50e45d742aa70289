"""`understudy ledger`: what has been spent on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json, print_table
from understudy.core.privacy.balance import REFUSED, TAKEN_BACK, Balance
from understudy.core.privacy.ledger import FILE_NAME, Entry, Ledger, ledger_path
from understudy.core.privacy.population import (
    FOLDER_POPULATION,
    SIMULATED_POPULATION,
    file_population,
    normalised,
)
from understudy.errors import UsageError

app = command_group()


@app.command()
def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The data set.")],
    ledger: Annotated[
        Path | None, typer.Option(help="Where the ledger is kept, if not beside the data.")
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            help="Whose releases to show (default: those that count for this file's learners). Limits are declared for "
            "them, or for all learners of the folder."
        ),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(min=0, help="Declare how much epsilon may be spent from now on.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why more may be spent than before; the ledger keeps it.")] = "",
    delta_limit: Annotated[
        float | None,
        typer.Option(help="Declare what deltas may add up to from now on (default: 1e-4)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every release that counts for the learners of a file.

    Example: understudy ledger log.csv
    """
    book = Ledger(_path(file, ledger))
    if limit is not None:
        book.set_limit(population or FOLDER_POPULATION, limit, reason)
    if delta_limit is not None:
        book.set_delta_limit(population or FOLDER_POPULATION, delta_limit, reason)
    population = population or _population(book, file)
    balance, entries = book.balance(population), book.entries(population)
    simulated = balance.population == SIMULATED_POPULATION
    about = {normalised(file_population(file)), FOLDER_POPULATION} | {entry.population for entry in entries}
    about.add(balance.population)
    # What was declared several times is shown as it was declared last.
    declared = list(
        {
            (fact["population"], fact["fact"], fact["how"]): fact
            for fact in book.declarations()
            if fact["population"] in about
        }.values()
    )
    if as_json:
        echo_json(
            {
                "ledger": str(book.path),
                "population": population,
                # Simulated learners have no budget.
                "limit": None if simulated else balance.limit,
                "epsilon": balance.epsilon,
                "counted": balance.counted,
                "delta": balance.delta,
                "delta_limit": None if simulated else balance.delta_limit,
                "remaining": None if simulated else balance.remaining(),
                "remaining_gaussian": None if simulated else balance.remaining(balance.gaussian),
                "entries": [vars(entry) for entry in entries],
                "declarations": declared,
            }
        )
        return
    if entries:
        _print_entries(f"What counts for {population} ({book.path})", entries)
    else:
        typer.echo(f"Nothing has been released about '{population}' according to {book.path}.")
    if simulated:
        typer.echo("These learners are simulated: no budget was spent, and there is no limit.")
    else:
        typer.echo(
            f"Spent: epsilon {balance.counted:.4g} of {balance.limit:g}; {_remaining(balance)} can still be asked for; "
            f"releases without a guarantee: {balance.n_without_guarantee}."
        )
        if balance.counted < balance.epsilon * (1 - 1e-6):
            typer.echo(f"The epsilons add up to {balance.epsilon:.4g}. Gaussian noise composes to less.")
    for fact in declared:
        typer.echo(
            f"Declared: {fact['population']} are {fact['fact']} ({fact['how']}; {fact['who']}, {fact['at']})."
        )
    counted = {entry.population for entry in entries} | {balance.population}
    if len(counted) > 2 and balance.population == FOLDER_POPULATION:
        typer.echo("Populations hold different learners, so of several the one with the largest sum counts.")
    if others := [name for name in book.populations() if name not in counted]:
        sums = ", ".join(
            name if name == SIMULATED_POPULATION else f"{name} (epsilon {book.balance(name).counted:.4g})"
            for name in others
        )
        same = "" if others == [SIMULATED_POPULATION] else " If they are the same learners, add them up."
        typer.echo(f"Other populations in this ledger: {sums}.{same}")


def _remaining(balance: Balance) -> str:
    """What can still be asked for: the more with Gaussian noise, which composes better."""
    any_noise, gaussian = balance.remaining(), balance.remaining(balance.gaussian)
    more = f", or {gaussian:.4g} with Gaussian noise," if gaussian > any_noise else ""
    return f"{any_noise:.4g}{more}"


def _path(file: Path, ledger: Path | None) -> Path:
    if not file.exists():
        raise UsageError(f"there is no {file}.", hint="give the data set whose ledger you want to see.")
    if ledger is not None or not file.is_dir():
        return ledger_path(file, ledger)
    if not (file / FILE_NAME).exists():
        raise UsageError(
            f"{file} holds no ledger; only bundles of simulated data do.",
            hint="give the data file: its ledger lies beside it, unless it is kept elsewhere.",
            settings=("ledger",),
        )
    return file / FILE_NAME


def _population(book: Ledger, file: Path) -> str:
    """Whose entries to show for a file: those of its learners, whom a charge would be about.

    A ledger in which there are simulated learners only is about them, and a folder about all of them.
    """
    if {entry.population for entry in book.entries()} == {SIMULATED_POPULATION}:
        return SIMULATED_POPULATION
    return FOLDER_POPULATION if file.is_dir() else normalised(file_population(file))


def _epsilon(entry: Entry) -> str:
    """What an entry costs; one that tells that nothing was released has no guarantee to lack."""
    if entry.epsilon is not None:
        return f"{entry.epsilon:g}"
    return "–" if entry.kind in (REFUSED, TAKEN_BACK) else "no guarantee"


def _print_entries(title: str, entries: list[Entry]) -> None:
    print_table(
        title,
        ["when", "who", "about", "what", "method", "epsilon", "delta", "strongest attack (AUC)", "card"],
        [
            [
                entry.at,
                entry.who,
                entry.population,
                entry.kind,
                entry.method,
                _epsilon(entry),
                "" if entry.delta is None else f"{entry.delta:.1e}",
                f"{entry.risk['auc_worst']:.3f}" if "auc_worst" in entry.risk else "",
                entry.card,
            ]
            for entry in entries
        ],
    )
