"""`understudy study-difficulties`: private difficulties side by side, as in the publication."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import AsJson, echo_json
from understudy.cli.progress import progress_bar

if TYPE_CHECKING:
    from understudy.exams.responses import Responses
    from understudy.reproductions.dp_rasch.study import Result


def study_difficulties(
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

    Example: understudy study-difficulties -o study --repetitions 50 --data exam.csv
    """
    from understudy.core.files.writing import check_absent, check_parent
    from understudy.reproductions.dp_rasch.study import GUARANTEE, DifficultyPlan, check_size, write_study

    plan = DifficultyPlan(repetitions, bootstrap, seed)
    # Found before minutes of work, not after.
    check_absent(out)
    check_parent(out)
    classes = _read(data or [], quiet=as_json)
    for name, responses in classes.items():
        check_size(name, responses)
    with progress_bar("Trying classes") as progress:
        findings = write_study(plan, out, classes, progress)
    if as_json:
        from dataclasses import asdict

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
    from understudy.cli.tables import print_table
    from understudy.reproductions.dp_rasch.figures import both

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
    from understudy.errors import UsageError
    from understudy.exams.formats.reading import read_responses

    classes: dict[str, Responses] = {}
    for file in files:
        if file.stem in classes:
            raise UsageError(
                f"two files of --data are called '{file.stem}', and results are told apart by that.",
                hint="give one of them another name, or give it once.",
            )
        source = read_responses(file)
        if not quiet:
            for note in source.notes:
                typer.echo(f"{file.name}: {note}", err=True)
        classes[file.stem] = source.responses
    return classes


def _show_real(rows: list[Result]) -> None:
    from understudy.cli.tables import print_table
    from understudy.reproductions.dp_rasch.study import REAL_METHODS

    print_table(
        "Internal: computed from real learners, covered by no guarantee. Correlation with the same fit without noise",
        ["class", "learners", "method", "mean", "95 % of samples"],
        [
            [row.data, str(row.n_learners), row.method, f"{row.mean:.3f}", f"{row.low:.3f}–{row.high:.3f}"]
            for row in rows
            if row.experiment > 2 and row.method in REAL_METHODS
        ],
    )
