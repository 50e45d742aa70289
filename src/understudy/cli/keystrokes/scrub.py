"""`understudy keystrokes scrub`: the text of programs with names, strings and comments replaced."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


REMAINS = (
    "No guarantee: the structure and style of a program, the words of names that stay, numbers, and the "
    "rhythm of typing can still identify its author."
)
SHAPE = (
    "Names in the code keep their lengths and capitals, strings and comments their total lengths: whoever "
    "has a class list may recognise a name by them. --no-keep-shape hides both."
)


class ProgramLanguage(Enum):
    """The languages whose programs can be read."""

    java = "java"
    python = "python"


@app.command()
def scrub(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="A program (.java, .py), a folder with a folder per learner, or a csv or JSON-lines table.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The result: a file, or a new folder.")],
    language: Annotated[
        ProgramLanguage | None, typer.Option(help="Language, where a file's name does not tell it.")
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="List of people, one a line: names and student numbers. Found without case and accents."
        ),
    ] = None,
    replace: Annotated[
        str,
        typer.Option(
            help="What is replaced; emails includes web addresses and user names in paths, identifiers "
            "all names in the code that no known library has."
        ),
    ] = "names,emails,strings,comments,identifiers",
    column: Annotated[str | None, typer.Option(help="Table: column with the source text.")] = None,
    learner: Annotated[str | None, typer.Option(help="Table: column that names the learner.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Table: column of order or time to keep as it is; all others are dropped."),
    ] = None,
    across: Annotated[
        bool, typer.Option("--across", help="Replace alike for all learners: their texts become linkable.")
    ] = False,
    keep_shape: Annotated[
        bool,
        typer.Option(
            "--keep-shape/--no-keep-shape",
            help="Same lengths, so that positions stay; names in the code letter for letter.",
        ),
    ] = True,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the replacements, for tests only: it undoes them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replace names, addresses, strings, comments and names in the code in the text of programs.

    Not a guarantee: the structure and style of a program, the words of names that stay (those of
    known libraries), numbers, and the rhythm of typing still identify people.

    Example: understudy keystrokes scrub snapshots.csv -o scrubbed.csv --language java --names class.txt
    """
    import random

    from understudy.errors import UsageError
    from understudy.keystrokes.scrub.files import (
        Scrubber,
        TableColumns,
        is_table,
        scrub_file,
        scrub_folder,
        scrub_table,
    )
    from understudy.keystrokes.scrub.people import People, read_people
    from understudy.keystrokes.scrub.scrubbing import Wanted

    if not source.exists():
        raise UsageError("there is no such file or folder to read.", hint="check the path of INPUT.")
    wanted = Wanted.of(replace)
    scrubber = Scrubber(
        people=read_people(names) if names is not None else People(),
        wanted=wanted,
        keep_shape=keep_shape,
        across=across,
        chance=random.SystemRandom() if seed is None else random.Random(seed),
    )
    spoken = None if language is None else language.value
    columns = TableColumns(column, learner, tuple(keep or ()))
    table = source.is_file() and is_table(source)
    if not table and (column or learner or keep):
        raise UsageError(
            "asked for columns, but INPUT is no table.", hint="tables end in .csv, .tsv or .jsonl."
        )
    if source.is_dir():
        report = scrub_folder(source, output, scrubber, spoken)
    elif table:
        report = scrub_table(source, output, scrubber, columns, spoken)
    else:
        report = scrub_file(source, output, scrubber, spoken)
    notes = _notes(names is not None, "names" in wanted, seed is not None, keep_shape)
    if as_json:
        figures = report.to_json()
        echo_json({**figures, "replace": sorted(wanted.kinds), "seeded": seed is not None, "notes": notes})
        return
    from understudy.cli.terminal import print_table
    from understudy.keystrokes.scrub.scrubbing import KINDS

    texts = f"{report.n_texts} texts of {report.n_learners} learners, {report.n_broken} of them do not parse"
    rows = [[words, str(report.replaced.get(kind, 0))] for kind, words in KINDS.items()]
    print_table(f"Replaced in {texts}", ["what", "count"], rows)
    for note in notes:
        typer.echo(note)


def _notes(listed: bool, names_wanted: bool, seeded: bool, keep_shape: bool) -> list[str]:
    notes = [REMAINS, *([SHAPE] if keep_shape else [])]
    if names_wanted and not listed:
        notes.append(
            "No list of names was given (--names): people are replaced only where they stand in what "
            "else is replaced."
        )
    if seeded:
        notes.append("Replacements were drawn with a seed: whoever knows it can undo them. For tests only.")
    return notes
