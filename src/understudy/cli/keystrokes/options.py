"""Options that the keystroke commands share, spelled once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.keystrokes.formats.reading import KeystrokeSource

EventsPath = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Keystrokes: event csv, JSON lines, source-code snapshots, or a ProgSnap2 table or folder.",
    ),
]
Learner = Annotated[str | None, typer.Option(help="Column that names the learner.")]
Time = Annotated[str | None, typer.Option(help="Column with the time of the key press.")]
Key = Annotated[str | None, typer.Option(help="Column with the key or the inserted text.")]
Session = Annotated[
    str | None, typer.Option(help="Column with the session; otherwise 30 idle minutes end one.")
]
Week = Annotated[
    str | None, typer.Option(help="Column with the week; otherwise 7 days each from the first key.")
]
Unit = Annotated[str | None, typer.Option(help="Unit of the times (ns, us, ms, s), when they do not tell.")]
Format = Annotated[
    str | None, typer.Option(help="events, lines, snapshots or progsnap2, when the file is not recognised.")
]
MinCharacters = Annotated[
    int, typer.Option("--min-characters", help="Leave out who typed less in the first week (or in all).")
]
Digraphs = Annotated[
    int, typer.Option("--digraphs", help="How many of the most common digraphs a profile has.")
]


class SplitBy(StrEnum):
    """Which typing the attacker knows, and which is to be named."""

    weeks = "weeks"
    sessions = "sessions"


def read_events(
    file: Path,
    *,
    format: str | None,
    learner: str | None,
    time: str | None,
    key: str | None,
    session: str | None,
    week: str | None,
    unit: str | None,
    labels: Path | None = None,
    label: str | None = None,
    quiet: bool = False,
) -> KeystrokeSource:
    """Read keystrokes the way the user asked, and say what was noticed."""
    from understudy.keystrokes.formats.reading import read_keystrokes

    source = read_keystrokes(
        file,
        format=format,
        learner=learner,
        time=time,
        key=key,
        session=session,
        week=week,
        unit=unit,
        labels=labels,
        label=label,
    )
    if not quiet:
        for note in source.notes:
            typer.echo(note, err=True)
        for reason, count in source.left_out.items():
            if count:
                typer.echo(f"Left out: {count:,} ({reason}).", err=True)
    return source


def check_clock(file: Path, source: KeystrokeSource) -> None:
    """Refuse times that are too coarse to hold a rhythm."""
    from understudy.errors import DataError

    if source.resolution_ms > 100:
        raise DataError(
            f"{file.name}: its clock has steps of {source.resolution_ms:g} ms, so it holds no typing rhythm.",
            hint="export the times in milliseconds, if the system kept them.",
        )
