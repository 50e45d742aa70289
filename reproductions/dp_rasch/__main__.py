"""`python -m reproductions.dp_rasch`: a study of private difficulties, and an audit of their guarantees."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reproductions.command import new_app, run
from reproductions.dp_rasch import audit as audits
from reproductions.dp_rasch import coverage as intervals
from reproductions.dp_rasch import points as graded
from reproductions.dp_rasch.figures import both
from reproductions.dp_rasch.study import (
    GUARANTEE,
    REAL_METHODS,
    DifficultyPlan,
    Result,
    check_size,
    write_study,
)
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json, print_table
from understudy.core.files.writing import check_new, check_parent
from understudy.errors import UsageError
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import Responses

app = new_app("Private item difficulties as published, and ours: a study and an audit.")


@app.command()
def study(
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the results.")],
    repetitions: Annotated[int, typer.Option(help="Simulated classes of each size.")] = 50,
    bootstrap: Annotated[int, typer.Option(help="Samples of the students of each real class.")] = 1000,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Responses of a real class, as for `understudy difficulties`; give it several times.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulation and of the noise.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Compare private difficulties: what they cost in simulated classes, and in real ones with --data.

    The noise is seeded, so nothing here has a formal guarantee. With --data the results are internal:
    they are computed from real learners and cost no budget.

    Example: python -m reproductions.dp_rasch study -o study --repetitions 50 --data exam.csv
    """
    plan = DifficultyPlan(repetitions, bootstrap, seed=seed)
    # Found before minutes of work, not after.
    check_new(out, folder=True)
    check_parent(out)
    classes = _read(data or [], quiet=as_json)
    for name, responses in classes.items():
        check_size(name, responses)
    findings = write_study(plan, out, classes)
    if as_json:
        echo_json(
            {
                "out": str(out),
                "internal": bool(classes),
                "guarantee": GUARANTEE,
                "seed": seed,
                "results": [asdict(row) for row in findings.results],
            }
        )
        return
    print_table(
        "Correlation with the truth in simulated classes: success probabilities / difficulties",
        ["epsilon", "learners", *plan.methods, "not private"],
        [
            [
                f"{epsilon:g}",
                str(n),
                *(" / ".join("–" if row is None else f"{row.mean:.2f}" for row in pair) for pair in cells),
            ]
            for epsilon, n, cells in both(findings, plan)
        ],
    )
    if classes:
        _show_real(findings.of(measure="probabilities_noiseless"))
    typer.echo(f"Guarantee: {GUARANTEE}.")
    typer.echo(f"Report: {out / 'report.html'}")


def _read(files: list[Path], *, quiet: bool) -> dict[str, Responses]:
    classes: dict[str, Responses] = {}
    for file in files:
        if file.stem in classes:
            raise UsageError(
                f"two files of --data are called '{file.stem}', and results are told apart by that.",
                hint="give one of them another name, or give it once.",
            )
        source = read_responses(file)
        if not quiet:
            for note in source.origin.notes:
                typer.echo(f"{file.name}: {note}", err=True)
        classes[file.stem] = source
    return classes


def _show_real(rows: list[Result]) -> None:
    print_table(
        "Internal: computed from real learners, covered by no guarantee. Correlation with the same fit without noise",
        ["class", "learners", "method", "mean", "95 % of samples"],
        [
            [row.data, str(row.n_learners), row.method, f"{row.mean:.3f}", f"{row.low:.3f}–{row.high:.3f}"]
            for row in rows
            if row.experiment > 2 and row.method in REAL_METHODS
        ],
    )


@app.command()
def audit(as_json: AsJson = False) -> None:
    """Audit the published private difficulties and our own: claimed against found privacy loss.

    No file is needed: the worst pairs of classes are made up here. It takes about a minute.

    Example: python -m reproductions.dp_rasch audit
    """
    # The steps take very different times, so their names are printed instead of a bar.
    findings = audits.run_audit(
        progress=None if as_json else lambda what: typer.echo(f"Auditing: {what}", err=True)
    )
    if as_json:
        echo_json({"findings": audits.to_json(findings)})
        return
    print_table(
        "Claimed and found privacy loss; a loss that is found is a lower bound",
        ["mechanism", "setting", "measure", "claimed", "found", "verdict"],
        [
            [f.mechanism, f.setting, f.measure, f"{f.claimed:.2f}", f"{f.found:.2f}", f.verdict]
            for f in findings
        ],
    )


@app.command()
def coverage(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Table for the results, csv; what it holds is kept.")
    ],
    seed: Annotated[int, typer.Option(help="Of the simulation and of the noise.")] = 1,
) -> None:
    """Measure how often 95 % intervals of private difficulties hold the truth, over a grid of simulated exams.

    It takes about half an hour of one core, and goes on where it was stopped.

    Example: python -m reproductions.dp_rasch coverage -o coverage.csv
    """
    check_parent(out)
    intervals.measure_grid(out, lambda row: typer.echo(row.line()), seed)


@app.command()
def points(
    exams: Annotated[int, typer.Option(help="Simulated exams of each kind.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the simulation and of the noise.")] = 7,
) -> None:
    """Measure the same for exams with points, and for discriminations; rows as the documentation has them.

    It takes a few minutes.

    Example: python -m reproductions.dp_rasch points --exams 20
    """
    for cells in (graded.POINTS, graded.DISCRIMINATIONS):
        graded.measure(cells, exams, seed, typer.echo)


if __name__ == "__main__":
    run(app)
