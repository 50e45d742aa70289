"""`understudy release`: the bundle that may leave."""

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
    Group,
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
from understudy.cli.progress import progress_bar


def release(
    file: LogPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the bundle; must not be there yet.")],
    method: Method = "markov-dp",
    learners: Annotated[
        int | None, typer.Option(min=1, help="Number of synthetic learners (default: as many as real ones).")
    ] = None,
    accept_risk: Annotated[
        str,
        typer.Option(metavar="REASON", help="Release although learners can be told; printed on the card."),
    ] = "",
    publish_figures: Annotated[
        bool, typer.Option("--publish-figures", help="Put the measured figures, rounded, on the card.")
    ] = False,
    title: Annotated[str, typer.Option(help="Title on the card.")] = "",
    custodian: Annotated[str, typer.Option(help="Who stands behind the release.")] = "",
    group: Group = None,
    exclude: Exclude = None,
    learner: Learner = None,
    action: Action = None,
    outcome: Outcome = None,
    time: Time = None,
    format: Format = None,
    keep_skills: KeepSkills = False,
    public_actions: PublicActions = False,
    actions: ActionsFile = None,
    ledger: LedgerPath = None,
    population: Population = DEFAULT_POPULATION,
    seed: OptionalSeed = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Spend nothing: show what accuracy each epsilon would buy.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a bundle: synthetic data with a card in share/, what was measured in keep/.

    The method is markov-dp with epsilon 8 unless another is given. The risk is measured on halves
    of the learners; a method without a formal guarantee is refused when its learners can be told from others,
    and one that would pass the budget always (exit code 4).

    Example: understudy release log.csv -o bundle --public-actions
    """
    from understudy.core.privacy.ledger import Ledger, ledger_path
    from understudy.logs.release.bundle import Options, make_release

    log = read(
        file,
        learner=learner,
        action=action,
        outcome=outcome,
        time=time,
        group=group,
        format=format,
        keep_skills=keep_skills,
        exclude=exclude,
    )
    say_notes(log, as_json)
    refuse_identifiers(log.origin.identifiers, "the synthetic file")
    if explain:
        from understudy.cli.explaining import explain_budget

        explain_budget(declared(log, public_actions, actions), out, as_json)
        return
    options = Options(
        method=method,
        n_learners=learners,
        accept_risk=accept_risk.strip(),
        publish_figures=publish_figures,
        custodian=custodian,
        title=title,
        population=population,
        seed=seed,
    )
    real = declared(log, public_actions, actions)
    inside = real.simulated and ledger is None
    book = None if inside else Ledger(ledger_path(file, ledger))
    with progress_bar("Measuring the risk") as progress:
        released = make_release(real, out, options, ledger=book, notes=log.origin.notes, progress=progress)
    worst = released.assessment.worst
    if as_json:
        echo_json(
            {
                "out": str(out),
                "card": str(out / "share" / "card.html"),
                "report": str(out / "keep" / "report.html"),
                "id": released.card,
                "withdrawn": log.origin.n_withdrawn,
                "guarantee": released.guarantee.to_json(),
                "measured": released.assessment.to_json(),
            }
        )
        return
    who = "renumbered real" if released.synthesizer.keeps_rows else "synthetic"
    typer.echo(f"{released.synthetic.n_rows} rows of {released.synthetic.n_learners} {who} learners.")
    typer.echo(f"Guarantee: {released.guarantee}.")
    typer.echo(
        f"Strongest attack: {worst.attack}, AUC {worst.auc:.2f} "
        f"(interval {released.assessment.low:.2f} to {released.assessment.high:.2f}; 0.5 is guessing)."
    )
    typer.echo(f"To share: {out / 'share'}")
    typer.echo(f"To keep inside: {out / 'keep' / 'report.html'}")
    typer.echo(f"Card: {out / 'share' / 'card.html'}")
