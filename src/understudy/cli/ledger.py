"""`understudy ledger`: what has been spent on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import DEFAULT_POPULATION, AsJson, LedgerPath, Population, echo_json


def ledger(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The data set, or a bundle of simulated data.")
    ],
    ledger: LedgerPath = None,
    population: Population = DEFAULT_POPULATION,
    limit: Annotated[
        float | None, typer.Option(min=0, help="Declare how much epsilon may be spent from now on.")
    ] = None,
    delta_limit: Annotated[
        float | None,
        typer.Option(help="Declare what deltas may add up to from now on (1e-4 if nobody does)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every release about these learners, what it cost and what remains.

    Example: understudy ledger log.csv
    """
    from understudy.cli.tables import print_table
    from understudy.errors import UsageError
    from understudy.privacy.ledger import FILE_NAME, Ledger, ledger_path

    if not file.exists():
        raise UsageError(f"there is no {file}.", hint="give the data set whose ledger you want to see.")
    inside = file / FILE_NAME
    if ledger is None and file.is_dir() and not inside.exists():
        raise UsageError(
            f"{file} holds no ledger; only bundles of simulated data do.",
            hint="give the data file: its ledger lies beside it, unless --ledger said otherwise.",
        )
    path = inside if ledger is None and file.is_dir() else ledger_path(file, ledger)
    book = Ledger(path)
    if limit is not None:
        book.set_limit(population, limit)
    if delta_limit is not None:
        book.set_delta_limit(population, delta_limit)
    balance = book.balance(population)
    entries = book.entries(population)
    if as_json:
        echo_json(
            {
                "ledger": str(path),
                "population": population,
                "limit": balance.limit,
                "epsilon": balance.epsilon,
                "delta": balance.delta,
                "delta_limit": balance.delta_limit,
                "remaining": balance.remaining,
                "entries": [vars(entry) for entry in entries],
            }
        )
        return
    counted = {entry.population for entry in entries} | {balance.population}
    others = [name for name in book.populations() if name not in counted]
    if not entries:
        typer.echo(f"Nothing has been released about '{population}' according to {path}.")
    else:
        print_table(
            f"What counts for {population} ({path})",
            ["when", "who", "about", "what", "method", "epsilon", "delta", "strongest attack (AUC)", "card"],
            [
                [
                    entry.at,
                    entry.who,
                    entry.population,
                    entry.kind,
                    entry.method,
                    "no guarantee" if entry.epsilon is None else f"{entry.epsilon:g}",
                    "" if entry.delta is None else f"{entry.delta:.1e}",
                    f"{entry.risk['auc_worst']:.3f}" if "auc_worst" in entry.risk else "",
                    entry.card,
                ]
                for entry in entries
            ],
        )
    typer.echo(
        f"Spent: epsilon {balance.epsilon:g} of {balance.limit:g}; remaining {balance.remaining:g}; "
        f"releases without a guarantee: {balance.n_without_guarantee}."
    )
    if len(counted) > 2 and balance.population == DEFAULT_POPULATION:
        typer.echo("Populations hold different learners, so of several the one with the largest sum counts.")
    if others:
        typer.echo(f"Other populations in this ledger: {', '.join(others)}.")
