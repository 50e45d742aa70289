"""Commands that measure typing and whose results stay inside: keystrokes profile, sweep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import print_table, show, tell, tell_reading
from understudy.keystrokes.formats.reading import KeystrokeOptions, KeystrokeSource, read_keystrokes
from understudy.keystrokes.profiles import ProfileOptions
from understudy.keystrokes.profiles import profile as profile_learners
from understudy.keystrokes.sweeps.course import SweepOptions
from understudy.keystrokes.sweeps.sweep import sweep as sweep_course
from understudy.keystrokes.sweeps.sweep import unfinished_folder

app = command_group()

EventsPath = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Keystrokes: event csv, JSON lines, source-code snapshots, or a ProgSnap2 table or folder.",
    ),
]


def read(
    file: Path, options: KeystrokeOptions, quiet: bool, labels: Path | None = None, label: str | None = None
) -> KeystrokeSource:
    """The keystrokes of a file, with notes on how it was read."""
    source = read_keystrokes(file, options, labels=labels, label=label)
    tell_reading(replace(source.origin, notes=source.messages), options, quiet)
    return source


@app.command()
@grouped
def profile(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="The table of profiles to write (csv).")],
    options: ProfileOptions,
    reading: KeystrokeOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Typing profiles: average latencies per digraph. They identify people: keep them inside.

    A latency counts from 10 to 750 ms; an average takes 5 occurrences, otherwise the learner's average
    speed is given in its place. Learners are numbered in random order; their names are not written.

    Example: understudy keystrokes profile events.csv -o profiles.csv
    """
    source = read(file, reading, as_json or quiet)
    show(profile_learners(source, options, out=out), as_json)


@app.command()
@grouped
def sweep(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the results.")],
    options: SweepOptions,
    reading: KeystrokeOptions,
    labels: Annotated[
        Path | None, typer.Option(help="Table with a label per learner, to see what can still be inferred.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Its column with the label, if it has several.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Try coarsenings of keystroke times: who can still be identified, and what can still be learned.

    Advice names a size only if the strongest of all attacks stays at chance there and at everything
    coarser. Interrupt it when you like: the same command goes on where it stopped. Internal: the
    results are computed from real learners, and no guarantee covers them.

    Example: understudy keystrokes sweep events.csv --labels labels.csv -o sweep
    """
    source = read(file, reading, as_json or quiet, labels, label)
    if unfinished_folder(out).exists():
        tell(["Going on where the last sweep stopped."], as_json or quiet)
    found = sweep_course(source, options, out=out)
    if not as_json:
        print_table(
            "Advice (internal)",
            ["what is made coarse", "way", "smallest size at chance"],
            [
                [advice.level, advice.way, "none" if advice.size is None else f"{advice.size:g} ms"]
                for advice in found.advice
            ],
        )
    show(found, as_json)
