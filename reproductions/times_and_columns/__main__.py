"""`python -m reproductions.times_and_columns`: measures the page of times and columns and renders it."""

from typing import Annotated

import typer

from reproductions.command import new_app, run
from reproductions.pages import PAGES
from reproductions.times_and_columns.measure import PARTS, TABLES
from reproductions.times_and_columns.page import page
from understudy.errors import UsageError

app = new_app("Times and declared columns: what is found with them, and what they cost.")


@app.command()
def measure(
    parts: Annotated[
        list[str] | None, typer.Argument(help=", ".join(PARTS) + ", or `page`. All by default.")
    ] = None,
) -> None:
    """Measure tables again and render the page. It takes about half an hour."""
    unknown = [part for part in parts or () if part not in (*PARTS, "page")]
    if unknown:
        raise UsageError(f"there is no part '{unknown[0]}'.", hint="the parts are " + ", ".join(PARTS) + ".")
    TABLES.mkdir(exist_ok=True)
    for part, work in PARTS.items():
        if not parts or part in parts:
            work()
    (PAGES / "times-and-columns.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    run(app)
