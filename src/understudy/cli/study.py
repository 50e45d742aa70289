"""`understudy study`: methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import (
    Action,
    AsJson,
    Exclude,
    Format,
    KeepSkills,
    Learner,
    LogPath,
    Outcome,
    Time,
    echo_json,
    read,
    say_notes,
)
from understudy.cli.progress import progress_bar


def study(
    file: LogPath,
    method: Annotated[list[str], typer.Option("-m", "--method", help="A method; give it several times.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the results; resumed when it is there.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Number of random halves.")] = 3,
    shadows: Annotated[int, typer.Option(min=8, help="Refits per method for the shadow attack.")] = 64,
    control: Annotated[bool, typer.Option(help="Also attack learners whom no generator saw.")] = True,
    learner: Learner = None,
    action: Action = None,
    outcome: Outcome = None,
    time: Time = None,
    format: Format = None,
    keep_skills: KeepSkills = False,
    exclude: Exclude = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods: what their logs are worth, and what attacks find in them.

    The results are internal: they are computed from real learners and cost no budget.

    Example: understudy study log.csv -m drop:0.5 -m markov --seeds 3 -o study
    """
    from understudy.logs.study import Plan, run_study
    from understudy.logs.study_report import summarise

    plan = Plan(tuple(dict.fromkeys(method)), seeds, shadows, control)
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
    with progress_bar("Trying methods") as progress:
        rows = run_study(log, plan, out, source=file.name, progress=progress)
    summaries = summarise(rows)
    if as_json:
        from understudy.cli.tables import finite

        echo_json({"out": str(out), "internal": True, "methods": [finite(s) for s in summaries]})
        return
    from understudy.cli.tables import print_table

    print_table(
        "Internal: computed from real learners, covered by no guarantee",
        [
            "method",
            "wrmse",
            "action_tv",
            "transition_tv",
            "strongest attack",
            "AUC",
            "interval",
            "TPR at 1 %",
        ],
        [
            [
                s["method"],
                *(f"{s[name]:.3f}" if name in s else "" for name in ("wrmse", "action_tv", "transition_tv")),
                ", ".join(s["worst_attacks"]),
                f"{s['auc_worst']:.3f}",
                f"{s['auc_worst_low']:.3f}–{s['auc_worst_high']:.3f}",
                f"{100 * s['tpr_at_1pct']:.1f} %",
            ]
            for s in summaries
        ],
    )
    typer.echo(f"Report: {out / 'report.html'}")
