"""`understudy inspect`: what is in a log, and how few points single a learner out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    Seed,
    Time,
    echo_json,
    read,
)


def inspect(
    file: LogPath,
    html: Annotated[Path | None, typer.Option(help="Also write the result as a page.")] = None,
    learner: Learner = None,
    action: Action = None,
    outcome: Outcome = None,
    time: Time = None,
    format: Format = None,
    keep_skills: KeepSkills = False,
    exclude: Exclude = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show the size of a log, its repeats and lengths, columns that identify people, and uniqueness.

    Example: understudy inspect log.csv
    """
    import numpy as np

    from understudy.logs.inspect import inspect_log, inspection_page

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
    inspection = inspect_log(log, np.random.default_rng(seed))
    content: dict[str, Any] = {
        "file": file.name,
        "format": log.origin.format,
        "columns": dict(log.origin.columns),
        "notes": list(log.origin.notes),
        "simulated": log.simulated,
        "identifiers": [vars(identifier) for identifier in log.origin.identifiers],
        **inspection.to_json(),
    }
    if html is not None:
        from understudy.core.files.writing import check_not_input, write_text

        check_not_input(html, file)
        write_text(html, inspection_page(inspection, content))
    if as_json:
        echo_json(content)
        return
    _print(inspection, content)
    if html is not None:
        typer.echo(f"Page: {html}")


def _print(inspection: Any, content: dict[str, Any]) -> None:
    from understudy.cli.tables import print_table

    for note in content["notes"]:
        typer.echo(note)
    typer.echo("Columns: " + ", ".join(f"{role} = {name}" for role, name in content["columns"].items()) + ".")
    print_table(content["file"], ["what", "value"], [list(line) for line in inspection.lines()])
    if content["identifiers"]:
        print_table(
            "Columns that identify people: none of these reaches a synthetic file",
            ["column", "kind", "evidence", "role"],
            [[i["column"], i["kind"], i["evidence"], i["role"]] for i in content["identifiers"]],
        )
    else:
        typer.echo("No column looks like a name, e-mail address, phone or student number, or IP address.")
    shares = inspection.uniqueness
    print_table(
        f"Share of learners singled out by k random points (95 % interval, {shares[0].n_targets} learners)",
        ["k", "by action", "interval", "by action and outcome", "interval"],
        [
            [
                str(a.k),
                f"{100 * a.share:.1f} %",
                f"{100 * a.low:.1f}–{100 * a.high:.1f} %",
                f"{100 * b.share:.1f} %",
                f"{100 * b.low:.1f}–{100 * b.high:.1f} %",
            ]
            for a, b in zip(shares[: len(shares) // 2], shares[len(shares) // 2 :], strict=True)
        ],
    )
