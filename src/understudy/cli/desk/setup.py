"""`understudy desk init` and `desk user`: a desk that works after three questions, and the people who use it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from understudy.cli.desk.options import (
    DEFAULT_FOLDER,
    DeskFolder,
    TableOptions,
    a_table,
    at_the_machine,
    existing,
    opened,
    require_desk,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, grouped
from understudy.cli.terminal import echo_json, file_named, listen_to_ctrl_c, print_table
from understudy.core.files.words import counted
from understudy.desk.domain.people import Person, Role
from understudy.desk.store.settings import POLICY, SETTINGS, Settings
from understudy.errors import RefusedError, UnderstudyError, UsageError

if TYPE_CHECKING:
    from understudy.desk.service import Desk

app = command_group()
user = command_group(
    "user",
    "People: custodians, reviewers and researchers, by invitation.\n\n"
    "Example: understudy desk user add ada@university.example --role researcher",
)
app.add_typer(user)

Answer = TypeVar("Answer")
DEFAULT_TITLE = "Validation desk"
NOTHING_MADE = "Nothing was made."


@app.command()
@grouped
def init(
    options: TableOptions,
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder to make.")] = DEFAULT_FOLDER,
    title: Annotated[str | None, typer.Option(help="Name of the desk (asked for if not given).")] = None,
    email: Annotated[
        str | None, typer.Option(help="Your e-mail address, as the custodian (asked for if not given).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Your name (default: the part of your address before the @).")
    ] = None,
    real: Annotated[
        Path | None,
        typer.Option(help="The real table, csv or parquet; it stays where it is (asked for if not given)."),
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(help="The synthetic table that stands in for it, with the same columns.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A policy file to copy (default: our limits, with comments).")
    ] = None,
    database: Annotated[
        str, typer.Option(metavar="URL", help="postgresql+psycopg://... (default: a file in the folder).")
    ] = "",
    address: Annotated[
        str, typer.Option(metavar="URL", help="Where people reach it (default: http://127.0.0.1:8765).")
    ] = "",
    no_data: Annotated[
        bool, typer.Option("--no-data", help="Register no table now; `desk data add` does it later.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a desk: a folder with its settings, its policy and its database, and your invitation.

    Asks for what the options leave open: the desk's name, your e-mail address, and the real table with its stand-in.

    Example: understudy desk init desk --title "Our desk" --email me@school.example --no-data
    """
    require_desk()
    if (folder / SETTINGS).exists():
        raise UsageError(f"there is a desk in {folder} already.", hint="choose another folder.")
    limits = _policy(policy)
    title = title if title is not None else _ask("Name of the desk", "title", str, DEFAULT_TITLE)
    question = "Your e-mail address, as its custodian"
    email = _email(email) if email is not None else _ask(question, "email", _email)
    if real is None and synthetic is None and not no_data:
        question = "The real table (it is never shown to anyone; leave empty to add it later)"
        real = _ask(question, "real", _real, "")
        if real is not None:
            question = "Its synthetic stand-in (researchers will download it)"
            synthetic = _ask(question, "synthetic", partial(_synthetic, real))
    if (real is None) != (synthetic is None):
        raise UsageError(
            "a real table and its synthetic stand-in are registered together, and only one was given.",
            hint="give both, or neither.",
            settings=("real", "synthetic"),
        )
    tables = None if real is None or synthetic is None else (real, synthetic)
    for path, what in zip(tables or (), ("the real table", "the synthetic table"), strict=False):
        a_table(path, what)
    if options.schema is not None:
        existing(options.schema, "the schema")
    if options.summary is not None:
        existing(options.summary, "the summary")
    elif synthetic is not None and (beside := _summary_beside(synthetic)) and at_a_terminal():
        options = replace(options, summary=beside if _confirm_summary(beside) else None)
    before = set(folder.iterdir()) if folder.is_dir() else None
    try:
        Settings.write(folder, title, database=database, address=address)
        (folder / POLICY).write_text(limits, encoding="utf-8")
        made = _fill(folder, email, name or email.partition("@")[0], title, tables, options)
    except BaseException as error:
        # Without its custodian a desk has no user who could sign in: the next try starts afresh.
        _remove(folder, before)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(NOTHING_MADE)
        raise
    if as_json:
        echo_json({"desk": str(folder), **made})
        return
    for line in _lines(folder, tables, options.summary, made):
        typer.echo(line)


def at_a_terminal() -> bool:
    """Whether questions can be answered."""
    return sys.stdin.isatty()


def _ask(
    question: str, setting: str, understood: Callable[[str], Answer], default: str | None = None
) -> Answer:
    """The answer as `understood` takes it; at a terminal, what it refuses is asked again."""
    listen_to_ctrl_c()
    while True:
        try:
            given = typer.prompt(question, default=default, show_default=bool(default), err=True)
        except typer.Abort as stop:
            if at_a_terminal():
                stop.add_note(NOTHING_MADE)
                raise
            raise UsageError(
                f"a question was not answered: {question}?",
                hint="without a terminal, give the answer as an option.",
                settings=(setting,),
            ) from None
        try:
            return understood(given.strip())
        except UnderstudyError as error:
            if not at_a_terminal():
                raise
            typer.echo(f"{error.message} Hint: {error.hint}", err=True)


def _confirm_summary(beside: Path) -> bool:
    listen_to_ctrl_c()
    try:
        return typer.confirm(f"Was the synthetic table made from {beside}?", default=True, err=True)
    except typer.Abort as stop:
        stop.add_note(NOTHING_MADE)
        raise


def _email(text: str) -> str:
    from understudy.desk.service.accounts import checked_email

    return checked_email(text)


def _real(text: str) -> Path | None:
    return a_table(file_named(text), "the real table") if text else None


def _synthetic(real: Path, text: str) -> Path:
    path = a_table(file_named(text), "the synthetic table")
    if path.samefile(real):
        raise UsageError(
            "this is the real table itself, and researchers will download it.",
            hint="give the synthetic table that stands in for it.",
        )
    return path


def _summary_beside(synthetic: Path) -> Path | None:
    path = synthetic.parent / "summary.json"
    return path if path.is_file() else None


def _policy(path: Path | None) -> str:
    from understudy.desk.domain.policy import Policy

    if path is None:
        return Policy().to_toml()
    Policy.read(existing(path, "the policy"))
    return path.read_text(encoding="utf-8")


def _fill(
    folder: Path, email: str, name: str, title: str, tables: tuple[Path, Path] | None, options: TableOptions
) -> dict[str, object]:
    """The custodian and the first data set."""
    from understudy.desk.domain.policy import Policy
    from understudy.desk.service import accounts, data_sets

    with opened(folder) as desk:
        made: dict[str, object] = {"invitation": _link(desk, accounts.first_custodian(desk, email, name))}
        if tables is not None:
            view = data_sets.register(
                desk,
                at_the_machine(),
                title=f"{title}: data" if title == DEFAULT_TITLE else title,
                real=tables[0],
                synthetic=tables[1],
                policy=Policy.read(folder / POLICY),
                **vars(options),
            )
            made |= {"data_set": view.name, "learners": view.n_learners, "columns": len(view.columns)}
        return made


def _remove(folder: Path, before: set[Path] | None) -> None:
    """All that was not there before."""
    if before is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in set(folder.iterdir()) - before:
        path.unlink()


def _lines(
    folder: Path, tables: tuple[Path, Path] | None, summary: Path | None, made: dict[str, object]
) -> list[str]:
    """What was made, who can download which file (one may have been given for the other), and what comes next."""
    at = "" if folder == DEFAULT_FOLDER else f" --desk {folder}"
    lines = [
        f"{folder}/: a desk that only you can read (desk.toml, policy.toml, secret.key and its database)."
    ]
    if tables is None:
        lines += [f"No data yet: understudy desk data add REAL SYNTHETIC --title ...{at}"]
    else:
        real, synthetic = tables
        lines += [
            f"Data set {made['data_set']}: {counted(int(str(made['learners'])), 'learner')}; analyses see the "
            f"{made['columns']} columns of the synthetic table, and no names.",
            f"Researchers can download: {synthetic}. Nobody can download: {real}.",
        ]
        if summary is not None:
            lines += [f"Prices count what the synthetic table already revealed, by {summary}."]
        else:
            beside = _summary_beside(synthetic)
            if_so = f"{beside} is next to it. If the table was made from it" if beside else "If there is one"
            lines += [
                "No private summary was given: prices will not count what the synthetic table already revealed.",
                f"  {if_so}, register the data with it: understudy desk data add {real} {synthetic} --title TITLE "
                f"--summary {beside or 'SUMMARY'}{at}, then: understudy desk data remove {made['data_set']}{at}",
            ]
    return [
        *lines,
        f"Next: understudy desk serve{at}, then set your password here (once, within a week):",
        f"  {made['invitation']}",
        f"Then invite reviewers and researchers: understudy desk user add EMAIL --role reviewer{at}",
        "Read policy.toml: its limits decide what may leave. Keep backups: understudy desk backup.",
    ]


Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Their e-mail address.")]


@user.command()
def add(
    email: Email,
    role: Annotated[str, typer.Option(help="researcher, reviewer or custodian.")] = "researcher",
    name: Annotated[
        str | None, typer.Option(help="Their name (default: the part of the address before the @).")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Invite a person; prints the link with which they set their password, once, within a week.

    Example: understudy desk user add ada@university.example --role researcher --name "Ada Example"
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        if role not in list(Role):
            raise UsageError(f"there is no role '{role}'.", hint="researcher, reviewer or custodian.")
        if accounts.by_email(desk, email) is not None:
            raise RefusedError(
                "there is an account with this e-mail address.",
                hint=f"for a new link, or to open it again: understudy desk user reset {email}",
            )
        name = name or email.partition("@")[0]
        link = _link(desk, accounts.invite(desk, at_the_machine(), email, name, Role(role)))
    if as_json:
        echo_json({"email": email, "role": role, "invitation": link})
        return
    typer.echo(f"Send this to {name} ({role}), over a channel that only they read:")
    typer.echo(f"  {link}")


@user.command("list")
def list_(folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """List all accounts.

    Example: understudy desk user list
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        people = accounts.people(desk, at_the_machine())
    if as_json:
        shown = ("name", "email", "role", "active", "invited")
        echo_json([{part: getattr(person, part) for part in shown} for person in people])
        return

    def status(active: bool, invited: bool) -> str:
        return "closed" if not active else "invited, has not signed in" if invited else ""

    rows = [
        [person.name, person.email, person.role.value, status(person.active, person.invited)]
        for person in people
    ]
    print_table("People", ["name", "e-mail", "role", ""], rows)


@user.command()
def remove(email: Email, folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """Close an account: its sessions, links, tokens and feed end at once. What its owner did stays in the log.

    Example: understudy desk user remove ada@university.example
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        accounts.deactivate(desk, at_the_machine(), _account(desk, email).id)
    if as_json:
        echo_json({"email": email, "active": False})
    else:
        typer.echo(f"The account of {email} is closed.")


@user.command()
def reset(email: Email, folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """Print a new link for setting a password; an account that was closed is opened again.

    Example: understudy desk user reset ada@university.example
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        person = _account(desk, email)
        accounts.reactivate(desk, at_the_machine(), person.id)
        link = _link(desk, accounts.reset(desk, at_the_machine(), person.id))
    if as_json:
        echo_json({"email": email, "invitation": link})
        return
    typer.echo(f"Send this to {person.name}, over a channel that only they read:")
    typer.echo(f"  {link}")


def _link(desk: Desk, secret: str) -> str:
    """The address of an invitation."""
    return f"{desk.settings.address.rstrip('/')}/invitation/{secret}"


def _account(desk: Desk, email: str) -> Person:
    from understudy.desk.service import accounts

    person = accounts.by_email(desk, email)
    if person is None:
        raise UsageError("no account has that e-mail address.", hint="see: understudy desk user list.")
    return person
