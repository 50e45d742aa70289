"""`understudy keystrokes sweep`: how coarse typing must be, and what is left of it then."""

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
    SplitBy,
    Time,
    Unit,
    Week,
    check_clock,
    read_events,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Seed
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.keystrokes.sweep.results import Advice


app = command_group()


@app.command()
def sweep(
    file: EventsPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the results.")],
    labels: Annotated[
        Path | None, typer.Option(help="Table with a label per learner, to see what can still be inferred.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Its column with the label, if it has several.")] = None,
    largest: Annotated[float, typer.Option(help="Largest size tried, in milliseconds.")] = 750.0,
    step: Annotated[float, typer.Option(help="Nearest-profile attacks run at every such step.")] = 10.0,
    trained_step: Annotated[
        float, typer.Option(help="Trained attackers and inference run at every such step.")
    ] = 50.0,
    guesses: Annotated[
        str, typer.Option(help="Numbers of guesses an attacker has; the advice is for the largest.")
    ] = "1,5,10",
    split: Annotated[
        SplitBy,
        typer.Option(help="What is known and what is to be named: earlier and last week, or sessions."),
    ] = SplitBy.weeks,
    digraphs: Digraphs = 25,
    min_characters: MinCharacters = 2000,
    learner: Learner = None,
    time: Time = None,
    key: Key = None,
    session: Session = None,
    week: Week = None,
    unit: Unit = None,
    format: Format = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Try coarsenings of keystroke times: who can still be named, and what can still be learned.

    An advice names a size only if the strongest of all attacks stays at chance there and at everything
    coarser. Interrupt it when you like: the same command goes on where it stopped. Internal: the
    results are computed from real learners, and no guarantee covers them.

    Example: understudy keystrokes sweep events.csv --labels labels.csv -o sweep
    """
    import shutil

    from understudy.core.files.writing import check_absent, check_parent, new_folder
    from understudy.errors import UsageError
    from understudy.keystrokes.sweep.report import all_advice, write_results
    from understudy.keystrokes.sweep.sweep import SweepPlan, prepare, run_sweep

    if not all(one.strip().isdigit() for one in guesses.split(",")):
        raise UsageError(f"asked for '{guesses}' guesses.", hint="give whole numbers: --guesses 1,5,10.")
    plan = SweepPlan(
        largest,
        step,
        trained_step,
        tuple(int(one) for one in guesses.split(",")),
        digraphs,
        least_characters=min_characters,
        split=split.value,
        seed=seed,
    )
    check_absent(out)
    check_parent(out)
    source = read_events(
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
        quiet=as_json,
    )
    check_clock(file, source)
    course = prepare(source.keystrokes, source.labels, plan)
    if course.n_left_out and not as_json:
        typer.echo(f"{course.n_left_out} learners typed too little and are left out.", err=True)
    # Figures of finished sizes, so that an interrupted sweep goes on; it goes when the sweep is done.
    unfinished = out.parent / f".{out.name}-unfinished-sweep"
    if unfinished.exists() and not as_json:
        typer.echo("Going on where the last sweep stopped.", err=True)
    try:
        rows = run_sweep(course, plan, unfinished)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on where it stopped.", err=True)
        raise
    with new_folder(out) as folder:
        write_results(folder, rows, course, plan, label if source.labels is not None else None)
        folder.chmod(0o700)
    out.chmod(0o700)
    shutil.rmtree(unfinished, ignore_errors=True)
    advice = all_advice(rows, plan)
    if as_json:
        echo_json(
            {
                "out": str(out),
                "internal": True,
                "guarantee": "no formal guarantee",
                "n_learners": course.keystrokes.n_learners,
                "n_left_out": course.n_left_out,
                "report": str(out / "report.html"),
                "advice": [one.to_json() for one in advice],
            }
        )
        return
    _show(advice)
    typer.echo("No formal guarantee. The text that was typed is a separate identifier: see keystrokes scrub.")
    typer.echo("At chance: the upper 95 % bound of every attack is at most twice what guessing gives.")
    about = "simulated learners" if course.keystrokes.simulated else "internal: computed from real learners"
    typer.echo(f"Report: {out / 'report.html'} ({about})")


def _show(advice: list[Advice]) -> None:
    from understudy.cli.terminal import print_table

    print_table(
        "Advice (internal)",
        ["what is made coarse", "way", "smallest size at chance"],
        [[one.level, one.way, "none" if one.size is None else f"{one.size:g} ms"] for one in advice],
    )
    for one in advice:
        typer.echo(f"{one.way} on {one.level}: {one.because}")
        if one.dip is not None:
            typer.echo(f"  {one.dip}")
