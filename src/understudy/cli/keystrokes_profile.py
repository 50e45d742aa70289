"""`understudy keystrokes profile`: how each learner types, as averages per pair of keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.keystrokes_options import (
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
    read_events,
)
from understudy.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from understudy.keystrokes.profiles import Profiles


def profile(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="The table of profiles to write (csv).")],
    digraphs: Digraphs = 25,
    kinds: Annotated[
        str, typer.Option(help="What a profile averages: digraph, trigraph, key, hold; several with commas.")
    ] = "digraph",
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
    import numpy as np

    from understudy.errors import DataError, UsageError
    from understudy.keystrokes.latencies import Kind, count_latencies
    from understudy.keystrokes.profiles import build_profiles, enough_typed, most_common
    from understudy.pages.writing import check_not_input, check_parent

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
    found = build_profiles(totals.of(most_common([totals], digraphs)))
    _write(out, found)
    if as_json:
        echo_json(
            {
                "out": str(out),
                "internal": True,
                "n_learners": found.n_owners,
                "features": list(found.features),
                "missing_share": float(found.missing.mean()),
                "left_out": source.left_out,
            }
        )
        return
    typer.echo(
        f"{found.n_owners} profiles of {len(found.features)} features; "
        f"{found.missing.mean():.1%} of the averages rest on too few occurrences."
    )
    typer.echo(f"Written: {out}. Internal: a profile identifies its typist; do not share it.")


def _write(out: Path, found: Profiles) -> None:
    import polars as pl

    from understudy.pages.writing import write_with

    names = [*found.features, "average speed"]
    frame = pl.DataFrame({"learner": range(1, found.n_owners + 1)}).hstack(
        pl.DataFrame(found.values.round(1), schema=names)
    )
    write_with(out, frame.write_csv)
    out.chmod(0o600)
