"""`understudy cohort compare`: ways to make a synthetic cohort, side by side on one cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


@app.command()
def compare(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The cohort, csv or parquet; its schema lies beside it, as toml."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for table, figures and report.")],
    epsilon: Annotated[float, typer.Option(help="Of the private methods.")] = 3.0,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Of the private methods (default: as of `cohort summarize`, 1e-6, or one over the squared number "
            "of learners)."
        ),
    ] = None,
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
    synthetic: Annotated[
        list[Path] | None,
        typer.Option(
            help="Synthetic cohort to judge beside the methods, csv or parquet with the cohort's columns; whoever "
            "made it, such as `cohort synthesize`. Several times."
        ),
    ] = None,
    outsiders: Annotated[
        Path | None,
        typer.Option(
            help="Cohort of learners who did not make the --synthetic files, but could have: only with them is "
            "the risk of a file measured."
        ),
    ] = None,
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
    from understudy.cohorts.cohort import read_cohort
    from understudy.cohorts.compare import (
        ComparePlan,
        check_cohort,
        check_given,
    )
    from understudy.cohorts.compare import compare as run
    from understudy.cohorts.compare_report import write_comparison
    from understudy.cohorts.findings import read_analyses, run_bank
    from understudy.core.files.writing import check_absent, check_parent
    from understudy.core.privacy.composition import default_delta
    from understudy.errors import UsageError

    # Found before minutes of work, not after.
    check_absent(out)
    check_parent(out)
    cohort = read_cohort(file, schema)
    check_cohort(cohort)
    if delta is None:
        delta = default_delta(cohort.n_learners)
    plan = ComparePlan(epsilon, delta, seeds, deep, per_panelist, shadows, seed)
    # Read by the declaration of the real cohort, so that bounds and labels are the same.
    declared = schema or file.with_suffix(".toml")
    given = {path.name: read_cohort(path, declared) for path in synthetic or []}
    if len(given) < len(synthetic or []):
        raise UsageError("two synthetic cohorts have the same file name.", hint="rename one of them.")
    others = None if outsiders is None else read_cohort(outsiders, declared)
    check_given(cohort, given, others)
    own = () if analyses is None else read_analyses(analyses)
    run_bank(cohort, own)
    found = run(cohort, plan, given, others, own)
    write_comparison(found, out)
    from understudy.cohorts.methods import GUARANTEE

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
                "outsiders": found.n_outsiders,
                "own_analyses": [one.name for one in own],
                "methods": found.to_json(),
            }
        )
        return
    from understudy.cli.terminal import print_table
    from understudy.cohorts.compare_report import LABELS, floor_sentences

    def shown(method: str, measure: str, digits: int) -> str:
        one = found.shown(method, measure)
        return "–" if one is None else f"{one.mean:.{digits}f}"

    def risk(method: str) -> str:
        one = found.shown(method, "auc_worst")
        if one is None or one.low is None:
            return shown(method, "auc_worst", 2)
        return f"{one.mean:.2f} ({one.low:.2f} to {one.high:.2f})"

    print_table(
        f"{found.n_learners} learners, {seeds} {'seed' if seeds == 1 else 'seeds'}, epsilon {epsilon:g}, "
        f"delta {delta:.1e}",
        [
            *("method", "AJS", "precision", "recall", "findings", "precision, outcome", "recall, outcome"),
            *("strongest attack (AUC)", "luck alone (AUC)"),
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
                risk(method),
                shown(method, "control_auc_worst", 2),
            ]
            for method in found.methods
        ],
    )
    references = [LABELS.get(method, method) for method in found.references]
    typer.echo(f"Not private, for reference: {'; '.join(references)}.")
    for line in (*_READING, *floor_sentences(found)):
        typer.echo(line)
    if found.given and not found.n_outsiders:
        typer.echo(
            f"The risk of {', '.join(found.given)} was not measured: all learners may have made it, and nobody can be "
            "told from others where there are no others. --outsiders names learners who did not."
        )
    if own:
        typer.echo(f"With {len(own)} of your own, {len(found.analyses)} analyses were run.")
    if not deep:
        typer.echo("The deep baseline was left out; --deep trains it too (minutes, needs the extra `deep`).")
    typer.echo(f"Guarantee: {GUARANTEE}. Internal: computed from the learners' records; nothing was charged.")
    typer.echo(f"Report: {out / 'report.html'}")


_READING = (
    "AJS: how far habits are apart, 0 (alike) to 1. Precision: share of synthetic findings that hold on the real",
    "learners; recall: share of real findings that are found; outcome: the same for findings about the label.",
    "AUC: chance that an attack ranks a learner who made the cohort above one who did not, with its 95 % interval;",
    "0.5 is guessing. Luck alone: the strongest of the same attacks where there is nothing to find.",
)
