"""`understudy synthesize`: a synthetic log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import (
    DEFAULT_POPULATION,
    Action,
    ActionsFile,
    AsJson,
    Exclude,
    Format,
    KeepSkills,
    Learner,
    LedgerPath,
    LogPath,
    Method,
    OptionalSeed,
    Outcome,
    Population,
    PublicActions,
    Time,
    declared,
    echo_json,
    read,
    refuse_identifiers,
    say_notes,
)


def synthesize(
    file: LogPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write, csv or parquet by extension.")],
    method: Method,
    learners: Annotated[
        int | None, typer.Option(min=1, help="Number of synthetic learners (default: as many as real ones).")
    ] = None,
    learner: Learner = None,
    action: Action = None,
    outcome: Outcome = None,
    time: Time = None,
    format: Format = None,
    keep_skills: KeepSkills = False,
    exclude: Exclude = None,
    public_actions: PublicActions = False,
    actions: ActionsFile = None,
    ledger: LedgerPath = None,
    population: Population = DEFAULT_POPULATION,
    seed: OptionalSeed = None,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic log, and say what is guaranteed about it.

    Unlike `release` it measures no risk: for trying methods out, not for giving away.

    Example: understudy synthesize log.csv -o synthetic.csv -m markov
    """
    import secrets

    import numpy as np

    from understudy.core.files.writing import (
        check_not_input,
        check_parent,
        check_suffix,
        write_table,
    )
    from understudy.core.privacy.ledger import SIMULATED_POPULATION, Ledger, ledger_path, new_card_id
    from understudy.core.privacy.noise import os_noise
    from understudy.logs.generators.generator import kind_of, make_method

    check_suffix(out)
    check_parent(out)
    check_not_input(out, file)
    synthesizer = make_method(method)
    log = read(
        file,
        learner=learner,
        action=action,
        outcome=outcome,
        time=time,
        format=format,
        keep_skills=keep_skills,
        exclude=exclude,
    )
    say_notes(log, as_json)
    refuse_identifiers(log.origin.identifiers, "the synthetic file")
    real = declared(log, public_actions, actions)
    book = Ledger(
        ledger_path(file, ledger, simulated_output=out.resolve().parent if real.simulated else None)
    )
    card = new_card_id()
    guarantee = synthesizer.guarantee(real.n_learners)
    book.record(
        population=SIMULATED_POPULATION if real.simulated else population,
        card=card,
        kind="synthesize",
        method=method,
        guarantee=guarantee,
    )
    # Whoever knows the seed can undo part of the randomness, so it is drawn afresh.
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    synthetic = synthesizer.fit(real, rng, os_noise()).sample(learners, rng)
    write_table(synthetic.to_frame("synthetic-"), out, kind=kind_of(synthesizer))
    if as_json:
        echo_json(
            {
                "out": str(out),
                "method": method,
                "card": card,
                "rows": synthetic.n_rows,
                "learners": synthetic.n_learners,
                "withdrawn": log.origin.n_withdrawn,
                "guarantee": guarantee.to_json(),
            }
        )
    else:
        who = "renumbered real" if synthesizer.keeps_rows else "synthetic"
        typer.echo(f"{out}: {synthetic.n_rows} rows of {synthetic.n_learners} {who} learners by {method}.")
        typer.echo(f"Guarantee: {guarantee}.")
        if seed is not None:
            typer.echo("Seeded: whoever knows the seed can undo part of the randomness.")
        if not guarantee.formal:
            typer.echo("Before you give it away: `understudy release` measures the risk.")
