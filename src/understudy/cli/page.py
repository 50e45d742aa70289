"""`understudy page`: the page on which a student computes their own ability."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.ability import DifficultiesPath, PassMark
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


def _print_strings(asked: bool) -> None:
    if asked:
        from understudy.exams.student_page import english_strings

        typer.echo(english_strings(), nl=False)
        raise typer.Exit


@app.command()
def page(
    file: DifficultiesPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the page, html.")],
    language: Annotated[
        str | None, typer.Option(help="Language of the page: en (the default) or de.")
    ] = None,
    strings: Annotated[
        Path | None,
        typer.Option(
            help="File with all texts of the page, for another language: a translation of --print-strings."
        ),
    ] = None,
    print_strings: Annotated[
        bool,
        typer.Option(
            "--print-strings",
            callback=_print_strings,
            is_eager=True,
            help="Print the English texts as JSON, to be translated for --strings, and stop.",
        ),
    ] = False,
    title: Annotated[str, typer.Option(help="Title of the page (default: that of the difficulties).")] = "",
    pass_mark: PassMark = 0.5,
    accept_risk: Annotated[
        str,
        typer.Option(metavar="REASON", help="Publish difficulties without a guarantee; printed on the page."),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Make a page on which students compute their own ability.

    One file without any connection: what a student enters leaves the device in no way and is not
    stored. Difficulties without a formal guarantee are refused (exit code 4) unless --accept-risk
    gives a reason.

    Example: understudy page difficulties.json -o page.html --title "Statistics, first test"
    """
    from understudy.core.files.writing import check_not_input, check_parent, write_text
    from understudy.errors import UsageError
    from understudy.exams.difficulties_file import Difficulties
    from understudy.exams.student_page import read_strings, student_page

    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            f"asked to write {out.name}; a page is written as .html.", hint="choose a name with .html."
        )
    check_parent(out)
    check_not_input(out, file)
    if language is not None and strings is not None:
        raise UsageError(
            "both --language and --strings were given.", hint="the file of --strings names its own language."
        )
    released = Difficulties.read(file)
    text = student_page(
        released,
        strings=read_strings(strings if strings is not None else language or "en"),
        title=title,
        pass_mark=pass_mark,
        accept_risk=accept_risk.strip(),
    )
    write_text(out, text)
    if as_json:
        echo_json({"out": str(out), "items": len(released.items), "guarantee": released.guarantee.to_json()})
        return
    typer.echo(f"{out}: a page for students, {len(released.items)} items, works offline.")
    typer.echo(f"Guarantee of the difficulties: {released.guarantee}.")
