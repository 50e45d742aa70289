"""`understudy desk init`: three questions, and there is a desk that works."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.desk.options import (
    DEFAULT_FOLDER,
    LearnerColumn,
    LedgerPath,
    Population,
    a_table,
    at_the_machine,
    existing,
    opened,
    require_desk,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.questions import ask, at_a_terminal, confirmed, file_named, stopped
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.desk.domain.policy import Policy

app = command_group()


DEFAULT_TITLE = "Validation desk"


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder to make.")] = DEFAULT_FOLDER,
    title: Annotated[str | None, typer.Option(help="Name of the desk (asked for if not given).")] = None,
    email: Annotated[
        str | None, typer.Option(help="Your e-mail address, as the custodian (asked for if not given).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Your name (default: what stands before the @ of your address).")
    ] = None,
    real: Annotated[
        Path | None,
        typer.Option(help="The real table, csv or parquet; it stays where it is (asked for if not given)."),
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(help="The synthetic table that stands in for it, with the same columns.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="The private summary that the synthetic table was made from, if any.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A policy file to copy (default: our limits, with comments).")
    ] = None,
    learner: LearnerColumn = "learner",
    population: Population = "",
    ledger: LedgerPath = None,
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

    Asks for what the options do not say: the desk's name, your e-mail address, and the real table with its stand-in.

    Example: understudy desk init desk --title "Our desk" --email me@school.example --no-data
    """
    require_desk()
    from understudy.desk.store.settings import SETTINGS
    from understudy.errors import UsageError

    if (folder / SETTINGS).exists():
        raise UsageError(f"there is a desk in {folder} already.", hint="choose another folder.")
    found = _policy(policy)
    title = title if title is not None else ask("Name of the desk", "--title", str, DEFAULT_TITLE)
    email = (
        _email(email)
        if email is not None
        else ask("Your e-mail address, as its custodian", "--email", _email)
    )
    if real is None and synthetic is None and not no_data:
        real = ask("The real table (nobody will see it; nothing: later)", "--real", _real, "")
        if real is not None:
            synthetic = ask(
                "Its synthetic stand-in (researchers will download it)",
                "--synthetic",
                partial(_synthetic, real),
            )
    if (real is None) != (synthetic is None):
        raise UsageError(
            "a real table and its synthetic stand-in are registered together, and only one was given.",
            hint="give --real and --synthetic, or neither.",
        )
    for path, what in ((real, "the real table"), (synthetic, "the synthetic table")):
        if path is not None:
            a_table(path, what)
    if summary is not None:
        existing(summary, "the summary")
    elif synthetic is not None and (beside := _summary_beside(synthetic)) and at_a_terminal():
        summary = beside if confirmed(f"Was the synthetic table made from {beside}?") else None
    before = set(folder.iterdir()) if folder.is_dir() else None
    try:
        _make(folder, title, database, address, found)
        said = _fill(
            folder, email, name or email.partition("@")[0], title, real, synthetic, summary, learner, population,
            ledger,
        )  # fmt: skip
    except BaseException as error:
        # A desk without its custodian could be entered by nobody; the next try starts afresh.
        _remove(folder, before)
        if isinstance(error, KeyboardInterrupt):
            raise stopped() from None
        raise
    if as_json:
        echo_json({"desk": str(folder), **said})
        return
    _tell(folder, said)
    if real is not None and synthetic is not None:
        _tell_files(folder, real, synthetic, summary, said)
    _tell_next(folder, said)


def _email(text: str) -> str:
    from understudy.desk.service.accounts import checked_email

    return checked_email(text)


def _real(text: str) -> Path | None:
    return a_table(file_named(text), "the real table") if text else None


def _synthetic(real: Path, text: str) -> Path:
    from understudy.errors import UsageError

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


def _policy(path: Path | None) -> tuple[str, Policy]:
    from understudy.desk.domain.policy import Policy

    if path is None:
        return Policy().to_toml(), Policy()
    found = Policy.read(existing(path, "the policy"))
    return path.read_text(encoding="utf-8"), found


def _make(folder: Path, title: str, database: str, address: str, policy: tuple[str, Policy]) -> None:
    from understudy.desk.store.settings import POLICY, Settings

    Settings.write(folder, title, database=database, address=address)
    (folder / POLICY).write_text(policy[0], encoding="utf-8")


def _fill(
    folder: Path,
    email: str,
    name: str,
    title: str,
    real: Path | None,
    synthetic: Path | None,
    summary: Path | None,
    learner: str,
    population: str,
    ledger: Path | None,
) -> dict[str, object]:
    """The custodian and the first data set."""
    from understudy.cli.desk.people import link_of
    from understudy.desk.domain.policy import Policy
    from understudy.desk.service import accounts, data_sets
    from understudy.desk.store.settings import POLICY

    with opened(folder) as desk:
        said: dict[str, object] = {"invitation": link_of(desk, accounts.first_custodian(desk, email, name))}
        if real is not None and synthetic is not None:
            view = data_sets.register(
                desk,
                at_the_machine(),
                title=f"{title}: data" if title == DEFAULT_TITLE else title,
                real=real,
                synthetic=synthetic,
                policy=Policy.read(folder / POLICY),
                summary=summary,
                learner=learner,
                ledger=ledger,
                population=population,
            )
            said |= {"data_set": view.name, "learners": view.n_learners, "columns": len(view.columns)}
        return said


def _remove(folder: Path, before: set[Path] | None) -> None:
    """All that was not there before."""
    import shutil

    if before is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in set(folder.iterdir()) - before:
        path.unlink()


def _at(folder: Path) -> str:
    return "" if folder == DEFAULT_FOLDER else f" --desk {folder}"


def _tell(folder: Path, said: dict[str, object]) -> None:
    typer.echo(
        f"{folder}/: a desk, for your eyes only (desk.toml, policy.toml, secret.key and its database)."
    )
    if "data_set" in said:
        typer.echo(
            f"Data set {said['data_set']}: {said['learners']} learners; analyses see the {said['columns']} columns of "
            "the synthetic table, and nobody's name."
        )
    else:
        typer.echo(f"No data yet: understudy desk data add REAL SYNTHETIC --title ...{_at(folder)}")


def _tell_files(
    folder: Path, real: Path, synthetic: Path, summary: Path | None, said: dict[str, object]
) -> None:
    """Who can download what, read back: one may have been given for the other."""
    typer.echo(f"Researchers can download: {synthetic}. Nobody can download: {real}.")
    if summary is not None:
        typer.echo(f"Prices count what the synthetic table already told, by {summary}.")
        return
    beside = _summary_beside(synthetic)
    typer.echo("No private summary was given: prices will not count what the synthetic table already told.")
    typer.echo(
        (f"  {beside} lies beside it. If the table was made from it" if beside else "  If there is one")
        + f", register the data with it: understudy desk data add {real} {synthetic} --title TITLE --summary "
        f"{beside or 'SUMMARY'}{_at(folder)}, then: understudy desk data remove {said['data_set']}{_at(folder)}"
    )


def _tell_next(folder: Path, said: dict[str, object]) -> None:
    at = _at(folder)
    typer.echo(f"Next: understudy desk serve{at}, then set your password here (once, within a week):")
    typer.echo(f"  {said['invitation']}")
    typer.echo(f"Then invite reviewers and researchers: understudy desk user add EMAIL --role reviewer{at}")
    typer.echo("Read policy.toml: its limits decide what may leave. Keep backups: understudy desk backup.")
