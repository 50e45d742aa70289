"""`understudy cohort improve`: validation feedback to suggestions for the next cycle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.cohorts.feedback import FeedbackFile
    from understudy.cohorts.schema import Schema
    from understudy.cohorts.summary.suggestions import Suggestions


app = command_group()


@app.command()
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
    panel: Annotated[
        Path | None,
        typer.Option(
            help="TOML list of language models, of which the first writes the sentences (default: rules)."
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="Declaration of the cohort, to tell its features in findings.")
    ] = None,
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Print exactly what would be sent first, and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Turn feedback into suggestions: what to measure better, which effects to keep, which to drop.

    The feedback must be public already: what validation on real data costs is in no epsilon.
    In our study of simulated schools feedback alone raised recall a little and nothing else; last year's
    summary (`cohort summarize --previous`) did more: docs/reproductions/two-stage.md, Figure 4.

    Example: understudy cohort improve feedback.json -o suggestions.json
    """
    from understudy.core.files.writing import check_not_input, check_parent, write_json
    from understudy.errors import UsageError

    if out.suffix != ".json":
        raise UsageError(f"asked to write {out}; suggestions are written as json.", hint="end it with .json.")
    check_parent(out)
    check_not_input(out, feedback)
    if not feedback.is_file():
        raise UsageError(f"there is no file {feedback}.", hint="docs/explanation/cycles.md has an example.")

    from understudy.cohorts.feedback import prompt_for, read_feedback, suggest
    from understudy.cohorts.schema import Schema
    from understudy.cohorts.summary.budget import in_words
    from understudy.cohorts.summary.suggestions import PRICE

    told = read_feedback(feedback)
    if show_prompt:
        typer.echo(prompt_for(told))
        return
    _check_overwriting(out)
    declared = None if schema is None else Schema.read(schema)
    _check_names(told, declared, as_json)
    found = suggest(told, declared) if panel is None else _by_model(panel, told, declared)
    write_json(out, found.to_json())
    if as_json:
        echo_json({"out": str(out), **found.to_json()})
        return
    for sentence in found.sentences:
        typer.echo(f"- {sentence}")
    for name, factor in found.budget.items():
        if abs(factor - 1.0) >= 0.05:
            more = "more" if factor > 1 else "less"
            typer.echo(f"Budget: {more} for `{name}` ({in_words(name)}), times {factor:.2f}.")
    typer.echo(
        "Privacy: with suggestions the next summary costs its learners the same epsilon as without, which does not "
        "cover the learners whom this feedback is about; the summary will say so. " + PRICE
    )
    typer.echo(
        "What to expect: in our study of simulated schools feedback alone raised recall a little, last year's summary "
        "did more (docs/reproductions/two-stage.md, Figure 4)."
    )
    typer.echo(
        f"Written: {out}. Next year: understudy cohort summarize ... --previous summary.json --suggestions {out}, "
        f"then understudy cohort synthesize ... --suggestions {out}"
    )


def _check_overwriting(out: Path) -> None:
    """What rules wrote can be written again at no cost; what a model wrote, or anything else, is kept."""
    import json

    from understudy.cohorts.schema import SUGGESTIONS_FORMAT
    from understudy.errors import UsageError

    if not out.exists():
        return
    try:
        there = json.loads(out.read_text(encoding="utf-8"))
        again = there["format"] == SUGGESTIONS_FORMAT and there["written_by"] == "rules"
    except (OSError, ValueError, KeyError, TypeError):
        again = False
    if not again:
        raise UsageError(
            f"asked to write {out}, which is there already and was not written by rules.",
            hint="choose another name with -o, or move the old file away.",
        )


def _check_names(told: FeedbackFile, schema: Schema | None, quiet: bool) -> None:
    """A finding whose name is misspelled would be left aside without a word."""
    from understudy.cli.progress import progress_bar
    from understudy.cohorts.feedback import check_names

    if not told.findings:
        return
    with progress_bar("Checking the names of findings") as begin:
        step = begin(1)
        unknown = check_names(told, schema)
        step()
    if quiet:
        return
    if unknown:
        typer.echo(
            f"Not of the bank, taken for analyses of your own: {', '.join(unknown)}. They move neither the "
            "budget nor an effect; what did not hold goes into the prompt.",
            err=True,
        )
    if schema is None:
        typer.echo(
            "Names of windows in findings were not checked: say --schema cohort.toml to have them checked.",
            err=True,
        )


def _by_model(panel: Path, told: FeedbackFile, schema: Schema | None) -> Suggestions:
    from understudy.cohorts.feedback import suggest_with
    from understudy.cohorts.panel.providers import ModelPanelist, PanelistError, read_panel
    from understudy.errors import DataError, MissingError

    models = [one for one in read_panel(panel) if isinstance(one, ModelPanelist)]
    if not models:
        raise DataError(f"{panel.name} names no language model.", hint="leave --panel out: then rules do it.")
    author = models[0]
    author.ready()
    try:
        return suggest_with(
            lambda conversation: author.write(conversation).text,
            told,
            schema,
            f"{author.name} ({author.model})",
        )
    except PanelistError as error:
        raise MissingError(
            f"{author.name} gave no answer: {error.kind}.",
            hint="try again, or leave --panel out: then rules do it.",
        ) from None
