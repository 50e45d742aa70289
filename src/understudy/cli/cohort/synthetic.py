"""`understudy cohort prompt`, `synthesize`, `compare` and `improve`: synthetic cohorts, and what they are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.cohort.summary import CohortPath, SchemaPath
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import print_table, show, tell
from understudy.cohorts.cohort import read_cohort
from understudy.cohorts.comparison import CompareOptions, Comparison, read_synthetic
from understudy.cohorts.comparison import compare as compare_methods
from understudy.cohorts.comparison_report import LABELS
from understudy.cohorts.feedback import ImproveOptions, prompt_for, read_feedback
from understudy.cohorts.feedback import improve as improve_cycle
from understudy.cohorts.panel.providers import ModelPanelist
from understudy.cohorts.synthesis import SynthesizeOptions, chosen_panelists
from understudy.cohorts.synthesis import prompt as write_prompt
from understudy.cohorts.synthesis import synthesize as synthesize_cohort
from understudy.core.files.words import counted
from understudy.errors import UsageError

app = command_group()

SummaryPath = Annotated[
    Path, typer.Argument(metavar="SUMMARY", help="The private summary, from `understudy cohort summarize`.")
]


@app.command()
def prompt(
    summary: SummaryPath,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, instead of printing.")
    ] = None,
    suggestions: Annotated[
        Path | None,
        typer.Option(
            help="File with suggestions from the last cycle, one per line; they become part of the prompt."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print exactly what every panelist is sent, to look at it or to paste it into any chat.

    Save the script that the chat gives and name it with `understudy cohort synthesize --script`.

    Example: understudy cohort prompt summary.json -o prompt.txt
    """
    found = write_prompt(summary, suggestions=suggestions, out=out)
    # That no epsilon covers suggestions is printed whoever reads it.
    tell(found.notes, quiet=False)
    if out is not None:
        # With the suggestions, so that the card of what the script makes states them too.
        more = "" if suggestions is None else f" --suggestions {suggestions}"
        tell(
            [
                f"{found.lines()[0]} Paste it into a chat, save the script that it gives, then: understudy cohort "
                f"synthesize {summary} -o synthetic.parquet --script FILE.py{more}"
            ],
            quiet,
        )
    if as_json:
        show(found, as_json)
    elif out is None:
        # The bytes that are sent, whatever the terminal's encoding or the system's line ends.
        typer.get_binary_stream("stdout").write(found.brief.text.encode("utf-8"))


@app.command()
@grouped
def synthesize(
    summary: SummaryPath,
    options: SynthesizeOptions,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, csv or parquet by extension.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a synthetic cohort by a panel that sees the private summary only.

    Beside it, to be shared with it: its schema (.toml) and a data card (-card.html, -card.json). To be kept:
    a folder (-panel) with the prompt, every script and a report. Scripts run in the sandbox. What the summary
    guarantees holds for the cohort too. `understudy cohort prompt` shows what a panel is sent.

    Example: understudy cohort synthesize summary.json -o synthetic.parquet
    """
    if out is None:
        raise UsageError("no file was named for the synthetic cohort.", hint="-o synthetic.parquet")
    panelists = chosen_panelists(options)
    tell(
        [
            f"{panelist.name}: the prompt goes to {panelist.model} at {panelist.address}."
            for panelist in panelists
            if isinstance(panelist, ModelPanelist)
        ],
        as_json or quiet,
    )
    show(synthesize_cohort(summary, options, out=out, panelists=panelists), as_json)


@app.command()
@grouped
def compare(
    file: CohortPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for table, figures and report.")],
    options: CompareOptions,
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
            "your rights: never name a file that someone sent you."
        ),
    ] = None,
    schema: SchemaPath = None,
    as_json: AsJson = False,
) -> None:
    """Compare panelists, their pool and references: habits, findings that hold, membership risk.

    Internal: measured against the learners' records with seeded noise, so that nothing here has a
    formal guarantee, costs budget, or may leave.

    Example: understudy cohort compare cohort.parquet -o comparison
    """
    cohort = read_cohort(file, schema)
    found = compare_methods(
        cohort,
        options,
        synthetic=read_synthetic(synthetic or [], cohort),
        outsiders=None if outsiders is None else read_cohort(outsiders, cohort.schema),
        analyses=analyses or (),
        out=out,
    )
    if not as_json:
        _print_comparison(found)
    show(found, as_json)


@app.command()
@grouped
def improve(
    feedback: Annotated[
        Path,
        typer.Argument(
            metavar="FEEDBACK",
            help="JSON or TOML: a list of questions with what the synthetic and the real data showed, in words or "
            "as findings of the bank.",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write, json: suggestions.json.")],
    options: ImproveOptions,
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Print exactly what would be sent first, and stop.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Turn feedback into suggestions: what to measure better, which effects to keep, which to drop.

    The feedback must be public already: what validation on real data costs is in no epsilon.
    In our study of simulated schools feedback alone raised recall a little and nothing else; last year's
    summary (`cohort summarize --previous`) did more: docs/reproductions/two-stage.md, Figure 4.

    Example: understudy cohort improve feedback.json -o suggestions.json
    """
    if show_prompt:
        typer.echo(prompt_for(read_feedback(feedback)))
        return
    found = improve_cycle(feedback, options, out=out)
    tell(found.notes, as_json or quiet)
    show(found, as_json)
    if not as_json:
        typer.echo(
            f"Next year: understudy cohort summarize ... --previous summary.json --suggestions {out}, then understudy "
            f"cohort synthesize ... --suggestions {out}"
        )


def _print_comparison(found: Comparison) -> None:
    def mean(method: str, measure: str, digits: int) -> str:
        shown = found.shown(method, measure)
        return "–" if shown is None else f"{shown.mean:.{digits}f}"

    def risk(method: str) -> str:
        shown = found.shown(method, "auc_worst")
        if shown is None or shown.low is None:
            return mean(method, "auc_worst", 2)
        return f"{shown.mean:.2f} ({shown.low:.2f} to {shown.high:.2f})"

    plan = found.plan
    print_table(
        f"{found.n_learners} learners, {counted(plan.n_seeds, 'seed')}, epsilon {plan.epsilon:g}, "
        f"delta {plan.delta:.1e}",
        [
            *("method", "AJS", "precision", "recall", "findings", "precision, outcome", "recall, outcome"),
            *("strongest attack (AUC)", "luck alone (AUC)"),
        ],
        [
            [
                LABELS.get(method, method),
                mean(method, "ajs", 3),
                mean(method, "precision", 2),
                mean(method, "recall", 2),
                mean(method, "n_synthetic", 0),
                mean(method, "outcome_precision", 2),
                mean(method, "outcome_recall", 2),
                risk(method),
                mean(method, "control_auc_worst", 2),
            ]
            for method in found.methods
        ],
    )
