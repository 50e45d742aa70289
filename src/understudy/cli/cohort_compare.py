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
    analyses: Annotated[
        Path | None,
        typer.Option(
            help="Python file with analyses of your own, run with the bank; it runs outside of the sandbox, with "
            "your rights: never name a file that somebody sent you."
        ),
    ] = None,
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
    from understudy.utility.findings import add_analyses, bank, run_bank

    plan = ComparePlan(epsilon, delta, seeds, deep, per_panelist, shadows, seed)
    # Found before minutes of work, not after.
    check_absent(out)
    check_parent(out)
    cohort = read_cohort(file, schema)
    check_cohort(cohort)
    own = () if analyses is None else add_analyses(analyses)
    run_bank(cohort, own)
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
                "learners": found.n_learners,
                "seeds": seeds,
                "own_analyses": [one.name for one in own],
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
        [
            *("method", "AJS", "precision", "recall", "findings", "precision, outcome", "recall, outcome"),
            *("strongest attack (AUC)", "control (AUC)", "seconds"),
        ],
        [
            [
                LABELS.get(method, method),
                shown(method, "ajs", 3),
                shown(method, "precision", 2),
                shown(method, "recall", 2),
                shown(method, "n_synthetic", 0),
                shown(method, "outcome_precision", 2),
                shown(method, "outcome_recall", 2),
                shown(method, "auc_worst", 2),
                shown(method, "control_auc_worst", 2),
                shown(method, "seconds", 1),
            ]
            for method in found.methods
        ],
    )
    references = [LABELS.get(one, one) for one in found.methods if "not private" in found.guarantee(one)]
    typer.echo(f"Not private, for reference: {'; '.join(references)}.")
    for line in _READING:
        typer.echo(line)
    if own:
        typer.echo(f"With {len(own)} of your own, {len(bank())} analyses were run.")
    if not deep:
        typer.echo("The deep baseline was left out; --deep trains it too (minutes, needs the extra `deep`).")
    typer.echo(f"Guarantee: {GUARANTEE}. Internal: computed from the learners' records; nothing was charged.")
    typer.echo(f"Report: {out / 'report.html'}")


_READING = (
    "AJS: how far habits are apart, 0 (alike) to 1. Precision: share of synthetic findings that hold on the real",
    "learners; recall: share of real findings that are found; outcome: the same for findings about the label.",
    "AUC: chance that an attack ranks a member above an outsider; 0.5 is guessing, the control shows pure luck.",
)
