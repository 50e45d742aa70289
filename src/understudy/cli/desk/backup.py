"""`understudy desk backup` and `desk restore`: everything that a desk needs to go on, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.desk.options import DEFAULT_FOLDER, DeskFolder, existing, opened, require_desk
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


@app.command()
def backup(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; it must not be there yet.")],
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write a backup of the desk while it runs: database, settings, secret, policy and ledgers.

    It holds held outputs and the desk's secret: keep it as well as the desk itself. The real tables are not in it.

    Example: understudy desk backup desk-backup.tar.gz
    """
    from understudy.core.files.writing import check_parent
    from understudy.errors import UsageError

    if out.exists():
        raise UsageError(f"{out} is there already.", hint="give another name; backups are never overwritten.")
    check_parent(out)
    with opened(folder) as desk:
        from understudy.desk.service.backup import back_up

        back_up(desk, out)
    if as_json:
        echo_json({"out": str(out), "bytes": out.stat().st_size})
    else:
        typer.echo(
            f"Written: {out}. It holds the desk's secret and held outputs: keep it as well as the desk."
        )


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `desk backup` wrote.")],
    folder: DeskFolder = DEFAULT_FOLDER,
    ledgers_too: Annotated[
        bool,
        typer.Option(
            "--ledgers-too", help="Write ledgers outside of the folder, too, where they are missing."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a desk's folder from a backup. The folder must not hold a desk.

    Ledgers that are there stay as they are. Restore only what you backed up: a backup is a whole desk, with its secret.

    Example: understudy desk restore desk-backup.tar.gz --desk restored
    """
    require_desk()
    from understudy.desk.service.backup import restore as restored

    restored(existing(file, "the backup"), folder, ledgers_too=ledgers_too).close()
    if as_json:
        echo_json({"desk": str(folder)})
    else:
        typer.echo(f"Restored: {folder}/. Check it: understudy desk verify --desk {folder}")
