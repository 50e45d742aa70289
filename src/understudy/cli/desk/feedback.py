"""`understudy desk feedback`: what released requests showed, for the next cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.desk.options import DEFAULT_FOLDER, DeskFolder, at_the_machine, counted, opened
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


@app.command()
def feedback(
    name: Annotated[str, typer.Argument(metavar="DATA", help="The data set's name (`desk data list`).")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write, json.")],
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write what released requests showed on synthetic and on real data, for `understudy cohort improve`.

    Only what was released goes into it, and what researchers wrote about it.

    Example: understudy desk feedback DATA -o feedback.json
    """
    from understudy.core.files.writing import check_parent, write_json
    from understudy.errors import UsageError

    if out.suffix != ".json":
        raise UsageError(f"asked to write {out}; feedback is written as json.", hint="end it with .json.")
    check_parent(out)
    with opened(folder) as desk:
        from understudy.desk.service import feedback as service

        content = service.export(desk, at_the_machine(), name)
    write_json(out, content)
    n_findings = sum(len(entry.get("findings", ())) for entry in content["feedback"])
    if as_json:
        echo_json({"out": str(out), "requests": len(content["feedback"]), "findings": n_findings})
        return
    told = f"{counted(len(content['feedback']), 'request')}, {counted(n_findings, 'finding')}"
    typer.echo(f"Written: {out} ({told}).")
    typer.echo(f"Next: understudy cohort improve {out} -o suggestions.json")
