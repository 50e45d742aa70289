"""`understudy keystrokes coarsen`: events with coarse times and new names, and their card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    from understudy.keystrokes.coarsening import Coarsening


app = command_group()


@app.command()
def coarsen(
    file: EventsPath,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="File to write, csv or parquet by extension; its card lies beside it."
        ),
    ],
    bucket: Annotated[
        float | None, typer.Option(metavar="MS", help="Put latencies into buckets of so many milliseconds.")
    ] = None,
    rounding: Annotated[
        float | None, typer.Option("--round", metavar="MS", help="Round latencies to so many milliseconds.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            help="Another coarsening: shift:300, delay:25-500 or classes:3 (bucket, round too).",
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(help="Columns to keep beside keys and times: week, session, hold; several with commas."),
    ] = "",
    keys: Annotated[
        str,
        typer.Option(
            help="classes: only whether a letter, digit, space, symbol, backspace or other; or all: what was typed "
            "can be read then, and names in it too."
        ),
    ] = "classes",
    rare_keys: Annotated[
        int,
        typer.Option(
            min=1,
            help="Keys of fewer learners than this are given by their class, classes of fewer as other.",
        ),
    ] = 5,
    longest_pause: Annotated[
        float, typer.Option(metavar="MS", help="Longer pauses count as this: their lengths match other logs.")
    ] = 5000.0,
    attacks: Annotated[
        Path | None,
        typer.Option(
            help="results.csv of a sweep of this data: publishes on the card what its attacks found."
        ),
    ] = None,
    learner: Learner = None,
    time: Time = None,
    key: Key = None,
    session: Session = None,
    week: Week = None,
    unit: Unit = None,
    format: Format = None,
    ledger: LedgerPath = None,
    population: Annotated[
        str | None, typer.Option(help="Whose data this is (default: the learners of this file).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write events whose latencies are coarse, under new names, with a card. There is no formal guarantee.

    Real dates, names, and every column that is not asked for are dropped. Of keys only their class is kept:
    with --keys all the text can be read, which is an identifier of its own.

    Example: understudy keystrokes coarsen events.csv --bucket 300 -o coarse.csv
    """
    import secrets
    from datetime import UTC, datetime

    import numpy as np

    import understudy
    from understudy.core.files.writing import (
        check_not_input,
        check_parent,
        check_suffix,
        write_json,
        write_table,
        write_text,
    )
    from understudy.core.privacy.spending import Account, Spending
    from understudy.errors import UsageError
    from understudy.keystrokes.card import GUARANTEE, card_content, card_page, read_attacks
    from understudy.keystrokes.formats.progsnap import main_table
    from understudy.keystrokes.release import Keys, ReleasedColumns, coarsen_events, released_table

    # A folder and its main table are the same data, with one ledger and one population.
    data = main_table(file) if file.is_dir() else file
    check_suffix(out)
    check_parent(out)
    page, machine = out.with_suffix(".card.html"), out.with_suffix(".card.json")
    for path in (out, page, machine):
        check_not_input(path, data, *([] if attacks is None else [attacks]))
        if path.exists() and not force:
            raise UsageError(
                f"asked to write {path}, which is there already.", hint="choose another name, or add --force."
            )
    coarsening = _chosen(bucket, rounding, method)
    if keys not in set(Keys):
        raise UsageError(f"asked for the keys '{keys}'.", hint="give classes or all.")
    kept = ReleasedColumns.parse(keep, keys=Keys(keys), fewest=rare_keys, longest_pause=longest_pause)
    source = read_events(
        file,
        format=format,
        learner=learner,
        time=time,
        key=key,
        session=session,
        week=week,
        unit=unit,
        quiet=as_json,
    )
    real = source.keystrokes
    account = Account.open(Spending(population, ledger), path=data, simulated=real.simulated)
    found = [] if attacks is None else read_attacks(attacks, coarsening, real.n_learners)
    risk = {"attacks": found} if found else None
    with account.charge("keystrokes coarsen", str(coarsening), GUARANTEE, out=out, risk=risk) as charge:
        # A stream for random places and delays alone: order and names come from the operating system.
        coarse = coarsen_events(real, coarsening, kept, np.random.default_rng(secrets.randbits(128)))
        table = released_table(coarse, kept)
        provenance = {
            "card": charge.card,
            "made": datetime.now(UTC).date().isoformat(),
            "simulated": real.simulated,
            "version": understudy.__version__,
        }
        content = card_content(table, coarsening, kept, provenance, found)
        write_text(page, card_page(content))
        write_json(machine, content)
        write_table(table, out, kind=f"keystrokes under new names, coarse times ({coarsening})")
    if kept.keys is Keys.all:
        typer.echo(
            "The text that was typed can be read in it, letter by letter, and names in it too; --keys classes keeps "
            "neither.",
            err=True,
        )
    if as_json:
        echo_json(
            {
                "out": str(out),
                "card_page": str(page),
                "card_json": str(machine),
                **charge.to_json(),
                "coarsening": str(coarsening),
                "keys": str(kept.keys),
                "typing_range_ms": content["typing_range_ms"],
                "rows": table.height,
                "learners": content["n_learners"],
                "columns": table.columns,
                "left_out": source.left_out,
                "guarantee": GUARANTEE.to_json(),
            }
        )
        return
    typer.echo(
        f"{out}: {table.height:,} keys of {content['n_learners']} learners under new names, {coarsening}."
    )
    typer.echo(f"Guarantee: {GUARANTEE}.")
    if not found:
        typer.echo("No attack was run on it: `understudy keystrokes sweep` measures who can still be named.")
    typer.echo(f"Card: {page} and {machine}. Noted in the ledger {charge.to_json()['ledger']}.")


def _chosen(bucket: float | None, rounding: float | None, method: str | None) -> Coarsening:
    """The one coarsening that was asked for."""
    from understudy.errors import UsageError
    from understudy.keystrokes.coarsening import Bucketing, Rounding, parse_coarsening

    asked = [one for one in (bucket, rounding, method) if one is not None]
    if len(asked) != 1:
        raise UsageError(
            "no coarsening was chosen." if not asked else f"{len(asked)} coarsenings were chosen.",
            hint="give one of --bucket 300, --round 500, --method shift:300; `keystrokes sweep` helps to choose.",
        )
    chosen: Coarsening
    if bucket is not None:
        chosen = Bucketing(bucket)
    else:
        chosen = Rounding(rounding) if rounding is not None else parse_coarsening(str(method))
    if getattr(chosen, "size", 1) == 0:
        raise UsageError(f"{chosen} leaves latencies as they are.", hint="give a size above 0 ms.")
    return chosen
