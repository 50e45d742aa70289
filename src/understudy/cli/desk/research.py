"""`understudy desk submit` and `desk status`: asking a desk over the network, with a token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.desk.options import DEFAULT_FOLDER, DeskFolder, counted, existing, opened, require_desk
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.desk.researcher.client import DeskClient

app = command_group()


TOKEN = "UNDERSTUDY_TOKEN"

TokenFile = Annotated[
    Path | None, typer.Option(help=f"File with your token (default: the environment's {TOKEN}).")
]


@app.command()
def submit(
    code: Annotated[Path, typer.Argument(metavar="ANALYSIS", help="Python file with `analyze(data)`.")],
    data: Annotated[
        str, typer.Option(metavar="NAME", help="Title or name of the data set, as the desk shows it.")
    ],
    question: Annotated[str, typer.Option(help="Your research question, in a sentence.")],
    url: Annotated[str, typer.Option(help="Address of the desk.")],
    shown: Annotated[str, typer.Option(help="What the synthetic data showed.")] = "",
    kind: Annotated[str, typer.Option(help="Of analysis, in a word: regression, causal, ...")] = "",
    draft: Annotated[
        bool, typer.Option("--draft", help="Keep it as a draft, and submit it on the page.")
    ] = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Submit an analysis. It is tried on the synthetic data first, then somebody reviews it.

    Make a token on the page of your account, and give it by a file or the environment, never on the command line.

    Example: understudy desk submit analysis.py --data NAME --question "Do ...?" --url https://desk.school.example
    """
    require_desk()
    from understudy.errors import DataError

    try:
        text = existing(code, "the analysis").read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{code.name} is not text in UTF-8.", hint="save it as plain text.") from None
    with _client(url, token_file) as client:
        said = client.submit(data, text, question=question, shown=shown, kind=kind, draft=draft)
    if as_json:
        echo_json(said)
        return
    done = "kept as a draft" if draft else "submitted"
    typer.echo(f"Request {said['name']}: {done}. See {url.rstrip('/')}/requests/{said['name']}")


@app.command()
def status(
    request: Annotated[
        str | None, typer.Argument(metavar="[REQUEST]", help="One of your requests (default: all of them).")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Address of the desk (default: the desk of the folder, seen from inside)."),
    ] = None,
    token_file: TokenFile = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show where your requests are; or, without --url, how many requests of a desk's folder are in which state.

    Example: understudy desk status --url https://desk.school.example
    """
    require_desk()
    if url is None:
        _inside(folder, request, as_json)
        return
    with _client(url, token_file) as client:
        said = client.requests() if request is None else client.request(request)
    if as_json:
        echo_json(said)
        return
    from understudy.cli.terminal import print_table

    lines = [said] if isinstance(said, dict) else said
    if not lines:
        typer.echo("You have no requests there.")
        return
    print_table(
        "Your requests",
        ["request", "state", "since", "question"],
        [[one["name"], one["state"], str(one["day"]), one["question"][:80]] for one in lines],
    )
    if isinstance(said, dict) and said.get("note"):
        typer.echo(f"The reviewer says: {said['note']}")


def _inside(folder: Path, request: str | None, as_json: bool) -> None:
    """Counts only: what is inside of a request is for the pages."""
    from understudy.errors import UsageError

    if request is not None:
        raise UsageError(
            "a single request is shown to who made it, by --url and their token.",
            hint="leave its name out to see how many requests are in which state.",
        )
    with opened(folder) as desk:
        from understudy.desk.service.views import counts

        found = counts(desk)
    if as_json:
        echo_json({"states": found.states, "jobs": found.n_jobs})
        return
    for state, count in found.states.items():
        if count:
            typer.echo(f"{count:>5}  {state}")
    typer.echo(
        f"{counted(sum(found.states.values()), 'request')}; jobs that wait or are being done: {found.n_jobs}."
    )


def _client(url: str, token_file: Path | None) -> DeskClient:
    from understudy.desk.researcher.client import DeskClient
    from understudy.errors import UsageError

    token = (
        existing(token_file, "your token").read_text(encoding="utf-8")
        if token_file is not None
        else os.environ.get(TOKEN, "")
    ).strip()
    if not token:
        raise UsageError(
            "no token was given.",
            hint=f"make one on the page of your account; give it by --token-file or {TOKEN} in the environment.",
        )
    return DeskClient(url, token)
