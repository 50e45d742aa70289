"""`understudy audit`: judge any generator by its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Action, AsJson, Format, Learner, Outcome, Seed, Time, echo_json, read


def audit(
    members: Annotated[Path, typer.Option(help="Log of the learners whom the generator learned from.")],
    outsiders: Annotated[Path, typer.Option(help="Log of learners of the same kind whom it never saw.")],
    synthetic: Annotated[Path, typer.Option(help="The synthetic log.")],
    learner: Learner = None,
    action: Action = None,
    outcome: Outcome = None,
    time: Time = None,
    format: Format = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Run every attack and metric that needs no more than three files.

    The shadow attack is left out: it refits the generator, which files cannot do. The result
    is internal: it is computed from real learners and costs no budget.

    Example: understudy audit --members train.csv --outsiders rest.csv --synthetic fake.csv
    """
    import numpy as np

    from understudy.logs.audit import audit_files

    def log(path: Path, single_rows: bool = False):  # type: ignore[no-untyped-def]
        return read(
            path,
            learner=learner,
            action=action,
            outcome=outcome,
            time=time,
            format=format,
            single_rows=single_rows,
        )

    result = audit_files(
        log(members, True), log(outsiders, True), log(synthetic, True), np.random.default_rng(seed)
    )
    if as_json:
        echo_json({"internal": True, **result.to_json()})
        return
    from understudy.cli.tables import print_table
    from understudy.logs.utility import METRICS

    risk = result.risk
    if result.strange_share:
        typer.echo(
            f"{100 * result.strange_share:.1f} % of the synthetic rows have actions that no real log has."
        )
    print_table(
        "Risk (internal: computed from real learners, covered by no guarantee)",
        ["attack", "AUC", "interval", "TPR at 1 %"],
        [
            [e.attack, f"{e.auc:.3f}", f"{e.low:.3f}–{e.high:.3f}", f"{100 * e.tpr_at_1pct:.1f} %"]
            for e in risk.estimates
        ],
    )
    typer.echo("Left out: shadow, which refits the generator; files cannot do that.")
    typer.echo(
        f"Strongest: {risk.worst.attack}, AUC {risk.worst.auc:.3f} "
        f"(simultaneous interval {risk.low:.3f}–{risk.high:.3f}; 0.5 is guessing)."
    )
    typer.echo(
        f"Attribute attack: advantage {result.attribute.advantage:+.3f} over the baseline "
        f"({result.attribute.low:+.3f} to {result.attribute.high:+.3f})."
    )
    print_table(
        "Utility",
        ["metric", "value", "best", "meaning"],
        [[m.name, f"{result.utility[m.name]:.3f}", f"{m.best:g}", m.meaning] for m in METRICS],
    )
