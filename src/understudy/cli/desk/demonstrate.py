"""`understudy desk demonstrate`: a desk to look at, with simulated learners and a request in every state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.desk.options import require_desk
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


@app.command()
def demonstrate(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder to make.")] = Path("desk-demo"),
    analyses: Annotated[
        Path | None, typer.Option(help="Folder of analyses with their index.toml (default: our own).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a desk with simulated learners, five people and requests in every state. Takes some minutes.

    Example: understudy desk demonstrate
    """
    require_desk()
    from understudy.cli.progress import progress_bar
    from understudy.desk.demonstration import fill
    from understudy.desk.researcher.examples import ANALYSES
    from understudy.desk.store.settings import Settings

    with progress_bar("Filling the desk") as begin:
        begin(1)
        people = fill(
            folder,
            analyses or ANALYSES,
            lambda words: None if as_json else typer.echo(f"- {words}", err=True),
        )
    address = Settings.read(folder).address
    if as_json:
        echo_json({"desk": str(folder), "address": address, "people": [vars(one) for one in people]})
        return
    typer.echo(f"{folder}/ is filled. Start it: understudy desk serve --desk {folder}, then go to {address}")
    for one in people:
        typer.echo(f"  {one.role.value:<10}  {one.email:<20}  {one.password}")
