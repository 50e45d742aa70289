"""Options that several verbs share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.core.files.identifiers import Identifier
    from understudy.logs.interactions import Interactions

LogPath = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The log: csv, tsv, xlsx, parquet, json lines or another known format."
    ),
]
Learner = Annotated[str | None, typer.Option(help="Column that names the learner.")]
Action = Annotated[str | None, typer.Option(help="Column that names the action (skill, task, word).")]
Outcome = Annotated[str | None, typer.Option(help="Column with the outcome, 0 or 1.")]
Time = Annotated[str | None, typer.Option(help="Column with the time, when rows are not in order.")]
Format = Annotated[
    str | None,
    typer.Option(
        help="csv, tsv, excel, parquet, assistments, user-item-skill, three-line, slam, datashop or xapi, "
        "when the file is not recognised."
    ),
]
KeepSkills = Annotated[
    bool, typer.Option("--keep-skills", help="ASSISTments: one row per skill of an item, not merged.")
]
Exclude = Annotated[
    Path | None, typer.Option(help="File that lists learners who withdrew; they are left out.")
]
Group = Annotated[
    str | None, typer.Option(help="Column with a group of each learner; figures are shown for each group.")
]
Method = Annotated[
    str,
    typer.Option(
        "-m",
        "--method",
        help="markov-dp (options epsilon, delta, longest: markov-dp:epsilon=2:longest=200), "
        "or without a guarantee markov, drop:RATIO. Choose longest by what is plausible, not from the data.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of everything left to chance (noise of a guarantee aside).")]
PublicActions = Annotated[
    bool,
    typer.Option(
        "--public-actions", help="The names of the actions are public, as those of a curriculum are."
    ),
]
ActionsFile = Annotated[
    Path | None,
    typer.Option("--actions", help="File with the public names of actions, one a line; others are pooled."),
]
OptionalSeed = Annotated[
    int | None, typer.Option(help="Seed of the sampling, for tests; drawn afresh by default.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result for a machine.")]
LedgerPath = Annotated[
    Path | None, typer.Option("--ledger", help="Where the ledger is kept, if not beside the data.")
]
Population = Annotated[
    str, typer.Option(help="Whose data this is: everything about the same learners adds up.")
]
DEFAULT_POPULATION = "learners of this folder"


def read(
    path: Path,
    *,
    learner: str | None = None,
    action: str | None = None,
    outcome: str | None = None,
    time: str | None = None,
    group: str | None = None,
    format: str | None = None,
    keep_skills: bool = False,
    exclude: Path | None = None,
    single_rows: bool = False,
) -> Interactions:
    """Read a log the way the user asked."""
    from understudy.core.files.columns import Columns
    from understudy.logs.reading import read_log

    return read_log(
        path,
        format=format,
        columns=Columns(learner=learner, action=action, outcome=outcome, time=time, group=group),
        exclude=exclude,
        skills="keep" if keep_skills else "merge",
        single_rows=single_rows,
    )


def declared(log: Interactions, public: bool, names_file: Path | None) -> Interactions:
    """The log with the vocabulary that the user declared, if any."""
    if names_file is None:
        return log.declare() if public else log
    from understudy.errors import UsageError

    if not names_file.is_file():
        raise UsageError(f"there is no file {names_file}.", hint="give a file with one action's name a line.")
    names = [line.strip() for line in names_file.read_text(encoding="utf-8").splitlines()]
    return log.with_vocabulary([name for name in dict.fromkeys(names) if name])


def say_notes(log: Interactions, quiet: bool) -> None:
    """What the reader assumed, dropped and counted."""
    if not quiet:
        for note in log.origin.notes:
            typer.echo(note, err=True)


def refuse_identifiers(identifiers: Sequence[Identifier], result: str, option: str = "--action") -> None:
    """Names of actions and items reach the result; names of people must not."""
    from understudy.errors import DataError

    for identifier in identifiers:
        if identifier.role == "action":
            raise DataError(
                f"column '{identifier.column}' would reach {result} and points at people: "
                f"{identifier.kind} ({identifier.evidence}).",
                hint=f"choose another column with {option}, or replace these names in the file first.",
            )


def echo_json(content: Any) -> None:
    """Print a result for a machine."""
    import json

    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
