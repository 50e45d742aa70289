"""`understudy keystrokes profile`: how each learner types, as averages per pair of keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.keystrokes.options import (
    Digraphs,
    EventsPath,
    Format,
    Key,
    Learner,
    MinCharacters,
    Session,
    Time,
    Unit,
    Week,
    check_clock,
    read_events,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.keystrokes.profiles import Profiles


app = command_group()


@app.command()
def profile(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="The table of profiles to write (csv).")],
    digraphs: Digraphs = 25,
    kinds: Annotated[
        str, typer.Option(help="What a profile averages: digraph, trigraph, key, hold; several with commas.")
    ] = "digraph",
    coarsen: Annotated[
        str | None, typer.Option(help="Make the averages coarse: bucket:500, round:700, microaggregate:5.")
    ] = None,
    min_characters: MinCharacters = 2000,
    learner: Learner = None,
    time: Time = None,
    key: Key = None,
    session: Session = None,
    week: Week = None,
    unit: Unit = None,
    format: Format = None,
    as_json: AsJson = False,
) -> None:
    """Typing profiles: average latencies per digraph. They identify people: keep them inside.

    A latency counts from 10 to 750 ms; an average takes 5 occurrences, otherwise the learner's average
    speed stands in its place. Learners are numbered in random order; their names are not written.

    Example: understudy keystrokes profile events.csv -o profiles.csv
    """
    from dataclasses import replace

    import numpy as np

    from understudy.core.files.writing import check_not_input, check_parent
    from understudy.errors import DataError, UsageError
    from understudy.keystrokes.coarsening import parse_profile_coarsening
    from understudy.keystrokes.latencies import Kind, count_latencies
    from understudy.keystrokes.profiles import build_profiles, enough_typed, most_common

    check_parent(out)
    check_not_input(out, file)
    if out.suffix != ".csv":
        raise UsageError(f"asked to write {out}; profiles are written as csv.", hint="end it with .csv.")
    unknown = [name for name in kinds.split(",") if name not in set(Kind)]
    if unknown or digraphs < 1:
        raise UsageError(
            f"asked for {digraphs} features of the kinds '{kinds}'.",
            hint="give 1 or more, and kinds among " + ", ".join(Kind) + ".",
        )
    source = read_events(
        file,
        format=format,
        learner=learner,
        time=time,
        key=key,
        session=session,
        week=week,
        unit=unit,
        quiet=as_json,
    )
    check_clock(file, source)
    chosen = enough_typed(source.keystrokes, min_characters)
    if not len(chosen):
        raise DataError(
            f"nobody of {source.keystrokes.n_learners} learners typed {min_characters} characters.",
            hint="ask for fewer with --min-characters.",
        )
    keystrokes = source.keystrokes.learners(np.random.default_rng().permutation(chosen))
    totals = count_latencies(
        keystrokes, keystrokes.learner, keystrokes.n_learners, tuple(Kind(name) for name in kinds.split(","))
    )
    common = most_common([totals], digraphs)
    if not len(common):
        raise DataError(
            f"{file.name}: no feature of the kinds '{kinds}' is typed by half of the learners.",
            hint="check --unit (latencies count from 10 to 750 ms), or ask for learners with more text.",
        )
    found = build_profiles(totals.of(common))
    if coarsen is not None:
        found = replace(
            found, values=parse_profile_coarsening(coarsen).averages(found.values, np.random.default_rng())
        )
    n_left_out = source.keystrokes.n_learners - len(chosen)
    _write(out, found)
    if as_json:
        echo_json(
            {
                "out": str(out),
                "internal": coarsen is None,
                "guarantee": "no formal guarantee",
                "n_learners": found.n_owners,
                "features": list(found.features),
                "missing_share": float(found.missing.mean()),
                "learners_left_out": n_left_out,
                "left_out": source.left_out,
            }
        )
        return
    typer.echo(
        f"{found.n_owners} profiles of {len(found.features)} features; "
        f"{found.missing.mean():.1%} of the averages rest on too few occurrences."
    )
    if n_left_out:
        typer.echo(f"{n_left_out} learners typed less than {min_characters} characters and are left out.")
    last = "Internal: a profile identifies its typist; do not share it."
    if coarsen is not None:
        last = "No formal guarantee: `keystrokes sweep` tells who can still be named at this size."
    typer.echo(f"Written: {out}. {last}")


def _write(out: Path, found: Profiles) -> None:
    import polars as pl

    from understudy.core.files.writing import write_with

    names = [*found.features, "average speed"]
    frame = pl.DataFrame({"learner": range(1, found.n_owners + 1)}).hstack(
        pl.DataFrame(found.values.round(1), schema=names)
    )
    write_with(out, frame.write_csv)
    out.chmod(0o600)
