"""`understudy desk init`: three questions, and there is a desk that works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.desk_options import DEFAULT_FOLDER, at_the_machine, existing, opened, require_desk
from understudy.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from understudy.desk.policies import Policy

DEFAULT_TITLE = "Validation desk"


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
    learner: Annotated[
        str, typer.Option(help="Column of the real table that says whose row it is.")
    ] = "learner",
    population: Annotated[
        str, typer.Option(help="Whose data this is, as in the ledger (default: learners of this folder).")
    ] = "",
    ledger: Annotated[
        Path | None, typer.Option(help="Where the ledger is kept, if not beside the real table.")
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

    Asks for what the options do not say: the desk's name, your e-mail address, and the real table with its stand-in.

    Example: understudy desk init desk --title "Our desk" --email me@school.example --no-data
    """
    require_desk()
    from understudy.desk.settings import SETTINGS
    from understudy.errors import UsageError

    if (folder / SETTINGS).exists():
        raise UsageError(f"there is a desk in {folder} already.", hint="choose another folder.")
    title = title if title is not None else _ask("Name of the desk", "--title", DEFAULT_TITLE)
    email = email if email is not None else _ask("Your e-mail address, as its custodian", "--email")
    if real is None and synthetic is None and not no_data:
        real, synthetic = _two_files(
            _ask("The real table and its synthetic stand-in, two files (nothing: later)", "--real", "")
        )
    if (real is None) != (synthetic is None):
        raise UsageError(
            "a real table and its synthetic stand-in are registered together, and only one was given.",
            hint="give --real and --synthetic, or neither.",
        )
    for path, what in (
        (real, "the real table"),
        (synthetic, "the synthetic table"),
        (summary, "the summary"),
    ):
        if path is not None:
            existing(path, what)
    _make(folder, title, database, address, _policy(policy))
    try:
        said = _fill(
            folder, email, name or email.partition("@")[0], title, real, synthetic, summary, learner, population,
            ledger,
        )  # fmt: skip
    except BaseException:
        # A desk without its custodian could be entered by nobody; the next try starts afresh.
        _remove(folder)
        raise
    if as_json:
        echo_json({"desk": str(folder), **said})
        return
    _tell(folder, said)


def _ask(words: str, option: str, default: str | None = None) -> str:
    from understudy.errors import UsageError

    try:
        answer: str = typer.prompt(words, default=default, show_default=bool(default), err=True)
    except typer.Abort:
        raise UsageError(
            f"nobody answered: {words}?", hint=f"give it with {option} where there is no terminal."
        ) from None
    return answer.strip()


def _two_files(answer: str) -> tuple[Path | None, Path | None]:
    import shlex

    from understudy.errors import UsageError

    try:
        files = shlex.split(answer)
    except ValueError:
        files = [answer]
    if not files:
        return None, None
    if len(files) != 2:
        raise UsageError(
            f"asked for two files, the real table and its synthetic stand-in; got {len(files)}.",
            hint="name both with a space between them, and quote names that have spaces.",
        )
    return Path(files[0]), Path(files[1])


def _policy(path: Path | None) -> tuple[str, Policy]:
    from understudy.desk.policies import Policy
    from understudy.desk.policy_file import commented

    if path is None:
        return commented(Policy()), Policy()
    found = Policy.read(existing(path, "the policy"))
    return path.read_text(encoding="utf-8"), found


def _make(folder: Path, title: str, database: str, address: str, policy: tuple[str, Policy]) -> None:
    from understudy.desk.settings import POLICY, Settings

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
    from understudy.cli.desk_people import link_of
    from understudy.desk.policies import Policy
    from understudy.desk.service import accounts, data_sets
    from understudy.desk.settings import POLICY

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


def _remove(folder: Path) -> None:
    from understudy.desk.settings import DATABASE, POLICY, SECRET, SETTINGS

    for name in (SETTINGS, SECRET, POLICY, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (folder / name).unlink(missing_ok=True)


def _tell(folder: Path, said: dict[str, object]) -> None:
    at = "" if folder == DEFAULT_FOLDER else f" --desk {folder}"
    typer.echo(
        f"{folder}/: a desk, for your eyes only (desk.toml, policy.toml, secret.key and its database)."
    )
    if "data_set" in said:
        typer.echo(
            f"Data set {said['data_set']}: {said['learners']} learners; analyses see the {said['columns']} columns of "
            "the synthetic table, and nobody's name."
        )
    else:
        typer.echo(f"No data yet: understudy desk data add REAL SYNTHETIC --title ...{at}")
    typer.echo(f"Next: understudy desk serve{at}, then set your password here (once, within a week):")
    typer.echo(f"  {said['invitation']}")
    typer.echo(f"Then invite reviewers and researchers: understudy desk user add EMAIL --role reviewer{at}")
    typer.echo("Read policy.toml: its limits decide what may leave. Keep backups: understudy desk backup.")
