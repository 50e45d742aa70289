"""`python -m reproductions`: measures what the papers' pages show, and renders the pages."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from reproductions.command import new_app, run
from reproductions.pages import PAPERS, ROOT, tables_of
from reproductions.pages import render as render_pages
from understudy.errors import UsageError

app = new_app("Rebuild the tables and figures of published papers.")


@app.command()
def measure(
    paper: Annotated[str, typer.Argument(help=", ".join(PAPERS) + ".")],
    parts: Annotated[
        list[str] | None,
        typer.Argument(help="Parts of it, such as `figures`: drawn again from the tables. All by default."),
    ] = None,
) -> None:
    """Measure a paper's tables and figures again, and render all pages. It takes minutes to hours.

    Most papers need the data sets in ../shared/data.
    """
    if paper not in PAPERS:
        raise UsageError(f"there is no paper '{paper}'.", hint="the papers are " + ", ".join(PAPERS) + ".")
    measured = import_module(f"reproductions.{paper}.measure").PARTS
    unknown = [part for part in parts or () if part not in measured]
    if unknown:
        raise UsageError(
            f"{paper} has no part '{unknown[0]}'.", hint="the parts are " + ", ".join(measured) + "."
        )
    tables_of(paper).mkdir(exist_ok=True)
    for part, work in measured.items():
        if not parts or part in parts:
            work()
    render()


@app.command()
def render() -> None:
    """Render every page from the measured tables."""
    for path, text in render_pages().items():
        path.write_text(text, encoding="utf-8")
        typer.echo(path.relative_to(ROOT))


if __name__ == "__main__":
    run(app)
