"""`understudy desk user`: who may come in, by links that are used once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.desk.options import DEFAULT_FOLDER, DeskFolder, at_the_machine, group, opened
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.desk.domain.people import Person
    from understudy.desk.service import Desk

app = group(
    "user",
    "People: custodians, reviewers and researchers, by invitation.\n\n"
    "Example: understudy desk user add ada@university.example --role researcher",
)

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Their e-mail address.")]


@app.command()
def add(
    email: Email,
    role: Annotated[str, typer.Option(help="researcher, reviewer or custodian.")] = "researcher",
    name: Annotated[
        str | None, typer.Option(help="Their name (default: what stands before the @ of the address).")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Invite somebody; prints the link by which they set their password, once, within a week.

    Example: understudy desk user add ada@university.example --role researcher --name "Ada Example"
    """
    from understudy.errors import RefusedError, UsageError

    with opened(folder) as desk:
        from understudy.desk.domain.people import Role
        from understudy.desk.service import accounts

        if role not in list(Role):
            raise UsageError(f"there is no role '{role}'.", hint="researcher, reviewer or custodian.")
        if accounts.by_email(desk, email) is not None:
            raise RefusedError(
                "there is an account with this e-mail address.",
                hint=f"for a new link, or to open it again: understudy desk user reset {email}",
            )
        name = name or email.partition("@")[0]
        link = link_of(desk, accounts.invite(desk, at_the_machine(), email, name, Role(role)))
    if as_json:
        echo_json({"email": email, "role": role, "invitation": link})
        return
    typer.echo(f"Send this to {name} ({role}), by a way that only they read:")
    typer.echo(f"  {link}")


@app.command("list")
def list_(folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """List everybody with an account.

    Example: understudy desk user list
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        people = accounts.people(desk, at_the_machine())
    if as_json:
        echo_json(
            [
                {
                    "name": one.name,
                    "email": one.email,
                    "role": one.role.value,
                    "active": one.active,
                    "invited": one.invited,
                }
                for one in people
            ]
        )
        return
    from understudy.cli.terminal import print_table

    print_table(
        "People",
        ["name", "e-mail", "role", ""],
        [
            [
                one.name,
                one.email,
                one.role.value,
                "closed" if not one.active else "invited, has not come in" if one.invited else "",
            ]
            for one in people
        ],
    )


@app.command()
def remove(email: Email, folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """Close an account: sessions, links, tokens and the feed end at once. What they did stays in the log.

    Example: understudy desk user remove ada@university.example
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        accounts.deactivate(desk, at_the_machine(), _found(desk, email).id)
    if as_json:
        echo_json({"email": email, "active": False})
    else:
        typer.echo(f"The account of {email} is closed.")


@app.command()
def reset(email: Email, folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """Print a new link by which somebody sets their password; an account that was closed is opened again.

    Example: understudy desk user reset ada@university.example
    """
    with opened(folder) as desk:
        from understudy.desk.service import accounts

        person = _found(desk, email)
        accounts.reactivate(desk, at_the_machine(), person.id)
        link = link_of(desk, accounts.reset(desk, at_the_machine(), person.id))
    if as_json:
        echo_json({"email": email, "invitation": link})
        return
    typer.echo(f"Send this to {person.name}, by a way that only they read:")
    typer.echo(f"  {link}")


def link_of(desk: Desk, secret: str) -> str:
    """The address of an invitation."""
    return f"{desk.settings.address.rstrip('/')}/invitation/{secret}"


def _found(desk: Desk, email: str) -> Person:
    from understudy.desk.service import accounts
    from understudy.errors import UsageError

    person = accounts.by_email(desk, email)
    if person is None:
        raise UsageError("nobody here has that e-mail address.", hint="see: understudy desk user list.")
    return person
