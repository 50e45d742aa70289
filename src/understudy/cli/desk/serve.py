"""`understudy desk serve` and `desk work`: the pages with a worker beside them, and a worker more."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.desk.options import DEFAULT_FOLDER, DeskFolder, opened
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    import socket

    from understudy.desk.store.jobs import Kind
    from understudy.desk.store.settings import Settings

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
    """Run the desk: its pages, and workers that do what was submitted and approved. Ctrl-C ends all.

    Listens on this machine only. For others, put a web server with https before it: docs/explanation/desk.md.

    Example: understudy desk serve
    """
    from understudy.sandbox import require_sandbox

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
            "run would tell its author how long the run took."
        ),
    ] = Only.RUNS,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when the standard input does.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one worker more, until Ctrl-C or a normal stop (SIGTERM). It may run as another process beside `desk serve`.

    Beside `desk serve --workers 0` there has to be one with `--only trials` and one with `--only runs`.
    Work in hand is given back, and taken up by the next worker.

    Example: understudy desk work
    """
    import logging

    from understudy.sandbox import require_sandbox

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # Alembic tells every start of a migration.
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


def _kinds(only: Only) -> tuple[Kind, ...]:
    from understudy.desk.store.jobs import QUICK, RUNS

    return {Only.TRIALS: QUICK, Only.RUNS: RUNS, Only.ALL: (*QUICK, *RUNS)}[only]


def _work_command(folder: Path, only: Only) -> list[str]:
    import sys

    command = [sys.executable, "-c", "from understudy.cli import main; main()"]
    return [*command, "desk", "work", "--desk", str(folder), "--only", only.value, "--with-parent"]


def _say_restarted(code: int) -> None:
    typer.echo(f"The worker ended (code {code}); it is started again.", err=True)


def _hang_up_is_a_stop() -> None:
    """A terminal that is closed ends us as SIGTERM does: in order, with work given back."""
    import signal

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
            f"Invitations and mails lead to {settings.address}: `address` in desk.toml says so.", err=True
        )


def _port(settings: Settings) -> int:
    from urllib.parse import urlsplit

    parts = urlsplit(settings.address)
    # Behind a web server its port is not ours.
    return (parts.port if parts.scheme == "http" else None) or DEFAULT_PORT


def _listening(host: str, port: int) -> socket.socket:
    """Taken before anything is said or started: a desk that says where it is should be there."""
    import errno
    import socket

    from understudy.errors import UsageError

    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"something listens at {host}:{port} already, perhaps another desk.",
                hint="end it, or use --port N and set address in desk.toml.",
            ) from None
        raise UsageError(
            f"nobody can listen at {host}:{port} here ({type(error).__name__}).",
            hint="use another --host or --port; ports below 1024 are for the machine's administrator.",
        ) from None


def _refuse_plain(settings: Settings, host: str) -> None:
    """Passwords and answers do not travel in the clear."""
    import ipaddress

    from understudy.errors import RefusedError

    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if local or settings.address.startswith("https://"):
        return
    raise RefusedError(
        f"asked to listen at {host}, where others could read passwords and answers on the way: the address of this "
        "desk is plain http.",
        hint="listen at 127.0.0.1, put a web server with https before it, and say so in desk.toml: "
        'address = "https://..."',
    )
