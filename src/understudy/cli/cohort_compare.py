"""`understudy cohort compare`: ways to make a synthetic cohort, side by side on one cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import AsJson, echo_json
from understudy.cli.progress import progress_bar


def compare(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The cohort, csv or parquet; its schema lies beside it, as toml."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for table, figures and report.")],
    epsilon: Annotated[float, typer.Option(help="Of the private methods.")] = 3.0,
    delta: Annotated[float, typer.Option(help="Of the private methods.")] = 1e-3,
    seeds: Annotated[int, typer.Option(min=1, help="Synthetic cohorts of each method.")] = 5,
    deep: Annotated[
        bool, typer.Option("--deep", help="Train the deep baseline too (minutes; needs the extra `deep`).")
    ] = False,
    shadows: Annotated[
        int,
        typer.Option(min=0, help="Rehearsals of the membership attack, 8 or more; 0 leaves that attack out."),
    ] = 24,
    per_panelist: Annotated[
        int, typer.Option(min=2, max=100_000, help="Rows that each panelist gives for each label.")
    ] = 1000,
    schema: Annotated[
        Path | None, typer.Option(help="Declaration of the cohort, if not beside the file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the noise and of everything else.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Compare panelists, their pool and references: habits, findings that hold, membership risk.

    Internal: measured against the learners' records with seeded noise, so that nothing here has a
    formal guarantee, costs budget, or may leave.

    Example: understudy cohort compare cohort.parquet -o comparison
    """
    from understudy.pages.writing import check_absent, check_parent
    from understudy.records.cohort import read_cohort
    from understudy.studies.cohort_compare import (
        ComparePlan,
        check_cohort,
        write_comparison,
    )
    from understudy.studies.cohort_compare import compare as run

    plan = ComparePlan(epsilon, delta, seeds, deep, per_panelist, shadows, seed)
    # Found before minutes of work, not after.
    check_absent(out)
    check_parent(out)
    cohort = read_cohort(file, schema)
    check_cohort(cohort)
    with progress_bar("Comparing") as progress:
        found = run(cohort, plan, progress)
    write_comparison(found, out)
    from understudy.studies.cohort_trials import GUARANTEE

    if as_json:
        echo_json(
            {
                "out": str(out),
                "internal": True,
                "guarantee": GUARANTEE,
                "epsilon": epsilon,
                "delta": delta,
                "seed": seed,
                "methods": found.to_json(),
            }
        )
        return
    from understudy.cli.tables import print_table
    from understudy.studies.cohort_figures import LABELS

    def shown(method: str, measure: str, digits: int) -> str:
        one = found.interval(method, measure)
        return "–" if one is None else f"{one.mean:.{digits}f}"

    print_table(
        f"{found.n_learners} learners, {seeds} seeds, epsilon {epsilon:g}, delta {delta:.1e}",
        ["method", "AJS", "precision", "recall", "findings", "strongest attack", "control", "seconds"],
        [
            [
                LABELS.get(method, method),
                shown(method, "ajs", 3),
                shown(method, "precision", 2),
                shown(method, "recall", 2),
                shown(method, "n_synthetic", 0),
                shown(method, "auc_worst", 2),
                shown(method, "control_auc_worst", 2),
                shown(method, "seconds", 1),
            ]
            for method in found.methods
        ],
    )
    typer.echo(f"Guarantee: {GUARANTEE}. Internal; nothing was charged.")
    typer.echo(f"Report: {out / 'report.html'}")
