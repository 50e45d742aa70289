"""`understudy release --explain`: what accuracy each epsilon would buy, before anything is spent."""

from __future__ import annotations

from pathlib import Path

import typer

from understudy.cli.options import echo_json
from understudy.logs.interactions import Interactions


def explain_budget(log: Interactions, out: Path, as_json: bool) -> None:
    """Print the table, and write the figure beside where the bundle would go."""
    from understudy.cli.tables import print_table
    from understudy.logs.release.forecast import ROWS_PER_LEARNER, explain, explanation_figure

    predictions = explain(log.n_learners, log.n_actions)
    folder = out.resolve().parent
    if log.declared:
        explanation_figure(predictions).save(folder, f"{out.name}-explained")
    if as_json:
        echo_json({"spent": 0, "internal": not log.declared, "predictions": [vars(p) for p in predictions]})
        return
    print_table(
        f"Expected errors for {log.n_learners:,} learners, {log.n_actions:,} actions and "
        f"{ROWS_PER_LEARNER} rows a learner (a guess: the real number is not public); nothing was spent",
        ["epsilon", "delta", "action shares off by", "difficulty of a typical action off by"],
        [
            [
                f"{p.epsilon:g}",
                f"{p.delta:.1e}",
                f"{100 * p.action_shares:.0f} %",
                f"{p.difficulty:.2f} log-odds",
            ]
            for p in predictions
        ],
    )
    if log.declared:
        typer.echo(f"Figure: {folder / (out.name + '-explained.svg')}")
    else:
        typer.echo("Keep this inside: the number of actions is not public unless --public-actions says so.")
        typer.echo(
            "Without that, a tenth of the budget goes to names, and what few learners share is pooled."
        )
