"""Running a desk: `desk serve`, `work`, `verify`, `feedback`, `backup`, `restore` and `demonstrate`."""

from __future__ import annotations

import errno
import ipaddress
import logging
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from understudy.cli.desk.options import (
    DEFAULT_FOLDER,
    DeskFolder,
    at_the_machine,
    existing,
    hexadecimal,
    opened,
    require_desk,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json
from understudy.core.files.words import counted
from understudy.core.files.writing import check_parent, write_json
from understudy.desk.researcher.examples import ANALYSES
from understudy.desk.store.settings import Settings
from understudy.errors import RefusedError, UsageError
from understudy.sandbox import require_sandbox

if TYPE_CHECKING:
    from understudy.desk.store.jobs import Kind

app = command_group()

DEFAULT_PORT = 8765


@app.command()
def serve(
    folder: DeskFolder = DEFAULT_FOLDER,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"Port (default: the address's, or {DEFAULT_PORT}).")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            max=16,
            help="Workers for runs on the real data; trials have one of their own. 0 if `desk work` runs elsewhere.",
        ),
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Run the desk: its pages, and workers that do what was submitted and approved. Ctrl-C ends all of them.

    Listens on this machine only. To let others in, put a web server with https in front: docs/explanation/desk.md.

    Example: understudy desk serve
    """
    with ExitStack() as stack:
        desk = stack.enter_context(opened(folder))
        _refuse_plain(desk.settings, host)
        if port is None:
            port = _port(desk.settings)
        listening = stack.enter_context(_listening(host, port))
        port = listening.getsockname()[1]
        if workers:
            require_sandbox()
        if as_json:
            echo_json({"address": desk.settings.address, "host": host, "port": port, "workers": workers})
        else:
            _say_where(desk.settings, host, port)
        from understudy.desk.web.app import make_app
        from understudy.desk.worker.supervision import SupervisedWorker

        app = make_app(desk)
        _hang_up_is_a_stop()
        # Trials have a worker of their own.
        for only in [Only.TRIALS] * (workers > 0) + [Only.RUNS] * workers:
            stack.enter_context(SupervisedWorker(_work_command(folder, only), _say_restarted))
        _answer(app, listening, proxied=desk.settings.address.startswith("https://"))


class Only(StrEnum):
    """Which jobs a worker takes."""

    ALL = "all"
    TRIALS = "trials"
    RUNS = "runs"


@app.command()
def work(
    folder: DeskFolder = DEFAULT_FOLDER,
    only: Annotated[
        Only,
        typer.Option(
            help="trials (and releases), runs (on the real data), or all. Keep them apart: a trial that waits for a "
            "run would show its author how long the run took."
        ),
    ] = Only.RUNS,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when the standard input does.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one more worker, until Ctrl-C or SIGTERM. It is a process of its own next to `desk serve`.

    With `desk serve --workers 0` you need one with `--only trials` and one with `--only runs`.
    A job that it has not finished is given back, and the next worker takes it up.

    Example: understudy desk work
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # Alembic reports every start of a migration.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with opened(folder) as desk:
        require_sandbox()
        from understudy.desk.service import releases
        from understudy.desk.worker import mail, worker
        from understudy.desk.worker.supervision import end_with_parent

        if with_parent:
            end_with_parent()
        elif as_json:
            echo_json({"desk": str(folder), "only": only.value})
        else:
            typer.echo("Waiting for work (Ctrl-C ends it).", err=True)
        _hang_up_is_a_stop()
        worker.work(desk, duties=(releases.expire, mail.send_waiting), kinds=_kinds(only))


@app.command()
def verify(
    known: Annotated[
        str | None, typer.Option(metavar="HASH", help="The newest hash that an earlier `verify` printed.")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Check the desk's log line by line, that every release is in the ledger once, and every certificate.

    Keep the hash that it prints in another place: a person who can write the database could write the whole log
    anew, and only an old hash (--known) reveals that.

    Example: understudy desk verify
    """
    hexadecimal(known, "hash", "known", "give it as an earlier `desk verify` printed it.")
    with opened(folder) as desk:
        from understudy.desk.service.verification import verify as verified

        found = verified(desk, known)
    if as_json:
        echo_json(vars(found))
        return
    typer.echo(f"The log holds: {counted(found.n_events, 'line')}, each chained to the one before.")
    typer.echo(
        f"Releases: {found.n_releases}, each of them once in the ledger, with a certificate that holds."
    )
    typer.echo(f"Key with which anyone can verify certificates: {found.key}")
    typer.echo(f"Newest hash, to keep in another place: {found.newest}")


@app.command()
def feedback(
    name: Annotated[str, typer.Argument(metavar="DATA", help="The data set's name (`desk data list`).")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write, json.")],
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write what released requests showed on synthetic and on real data, for `understudy cohort improve`.

    It holds only what was released, and what researchers wrote about it.

    Example: understudy desk feedback DATA -o feedback.json
    """
    if out.suffix != ".json":
        raise UsageError(f"cannot write {out}: feedback is written as json.", hint="end the name with .json.")
    check_parent(out)
    with opened(folder) as desk:
        from understudy.desk.service import feedback as service

        content = service.export(desk, at_the_machine(), name)
    write_json(out, content)
    n_findings = sum(len(entry.get("findings", ())) for entry in content["feedback"])
    if as_json:
        echo_json({"out": str(out), "requests": len(content["feedback"]), "findings": n_findings})
        return
    held = f"{counted(len(content['feedback']), 'request')}, {counted(n_findings, 'finding')}"
    typer.echo(f"Written: {out} ({held}).")
    typer.echo(f"Next: understudy cohort improve {out} -o suggestions.json")


@app.command()
def backup(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; it must not exist yet.")],
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write a backup of the desk while it runs: database, settings, secret, policy and ledgers.

    It contains the held outputs and the desk's secret: protect it like the desk itself. It has no real tables.

    Example: understudy desk backup desk-backup.tar.gz
    """
    if out.exists():
        raise UsageError(
            f"{out} exists already.",
            hint="choose another name; backups are never overwritten.",
            code="already-exists",
        )
    check_parent(out)
    with opened(folder) as desk:
        from understudy.desk.service.backup import back_up

        back_up(desk, out)
    if as_json:
        echo_json({"out": str(out), "bytes": out.stat().st_size})
    else:
        typer.echo(
            f"Written: {out}. It contains the desk's secret and the held outputs: protect it like the desk."
        )


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="The file that `desk backup` wrote.")],
    folder: DeskFolder = DEFAULT_FOLDER,
    ledgers_too: Annotated[
        bool,
        typer.Option("--ledgers-too", help="Also write missing ledgers that belong outside of the folder."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a desk's folder from a backup. The folder must not contain a desk.

    Ledgers that exist stay as they are. Restore only your own backups: a backup is a whole desk, with its secret.

    Example: understudy desk restore desk-backup.tar.gz --desk restored
    """
    require_desk()
    from understudy.desk.service.backup import restore as restored

    restored(existing(file, "the backup"), folder, ledgers_too=ledgers_too).close()
    if as_json:
        echo_json({"desk": str(folder)})
    else:
        typer.echo(f"Restored: {folder}/. Check it: understudy desk verify --desk {folder}")


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
    from understudy.desk.demonstration import fill

    people = fill(folder, analyses or ANALYSES)
    address = Settings.read(folder).address
    if as_json:
        echo_json({"desk": str(folder), "address": address, "people": [vars(person) for person in people]})
        return
    typer.echo(f"{folder}/ is filled. Start it: understudy desk serve --desk {folder}, then go to {address}")
    for person in people:
        typer.echo(f"  {person.role.value:<10}  {person.email:<20}  {person.password}")


def _kinds(only: Only) -> tuple[Kind, ...]:
    from understudy.desk.store.jobs import QUICK, RUNS

    return {Only.TRIALS: QUICK, Only.RUNS: RUNS, Only.ALL: (*QUICK, *RUNS)}[only]


def _work_command(folder: Path, only: Only) -> list[str]:
    command = [sys.executable, "-c", "from understudy.cli import main; main()"]
    return [*command, "desk", "work", "--desk", str(folder), "--only", only.value, "--with-parent"]


def _say_restarted(code: int) -> None:
    typer.echo(f"The worker ended (code {code}); it is started again.", err=True)


def _hang_up_is_a_stop() -> None:
    """End in order when the terminal is closed, as after SIGTERM: jobs are given back."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def _answer(app: object, listening: socket.socket, *, proxied: bool) -> None:
    import uvicorn

    settings = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_level="warning",
        # Addresses hold secrets: invitations and feeds.
        access_log=False,
        server_header=False,
        proxy_headers=proxied,
        timeout_graceful_shutdown=10,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listening])


def _say_where(settings: Settings, host: str, port: int) -> None:
    if settings.address.startswith("https://"):
        typer.echo(
            f"{settings.title}: {settings.address}, listening at {host}:{port} (Ctrl-C ends it)", err=True
        )
        return
    here = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    typer.echo(f"{settings.title}: {here} (Ctrl-C ends it)", err=True)
    if here != settings.address.rstrip("/"):
        typer.echo(
            f"Invitations and mails lead to {settings.address}, which is `address` in desk.toml.", err=True
        )


def _port(settings: Settings) -> int:
    parts = urlsplit(settings.address)
    # Behind a web server its port is not ours.
    return (parts.port if parts.scheme == "http" else None) or DEFAULT_PORT


def _listening(host: str, port: int) -> socket.socket:
    """The socket, taken before anything is printed or started: a printed address must answer."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"another program listens at {host}:{port} already, perhaps another desk.",
                hint="end it, or choose another port and set address in desk.toml.",
                settings=("port",),
            ) from None
        raise UsageError(
            f"this machine cannot listen at {host}:{port} ({type(error).__name__}).",
            hint="ports below 1024 are for the machine's administrator; choose another.",
            settings=("host", "port"),
        ) from None


def _refuse_plain(settings: Settings, host: str) -> None:
    """Passwords and answers do not travel in the clear."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if local or settings.address.startswith("https://"):
        return
    raise RefusedError(
        f"asked to listen at {host}, where others could read passwords and answers on the way: the address of this "
        "desk is plain http.",
        hint="listen at 127.0.0.1, put a web server with https in front, and set its address in desk.toml: "
        'address = "https://..."',
    )
