"""`understudy cohort improve`: validation feedback to suggestions for the next cycle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from understudy.records.cohort import Schema
    from understudy.synthesis.cohorts.feedback import FeedbackFile, Suggestions


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

    Example: understudy cohort improve feedback.json -o suggestions.json
    """
    from understudy.errors import UsageError
    from understudy.pages.writing import check_not_input, check_parent, write_json
    from understudy.records.cohort import Schema
    from understudy.synthesis.cohorts.feedback import PRICE, WORDS, prompt_for, read_feedback, suggest

    if out.suffix != ".json":
        raise UsageError(f"asked to write {out}; suggestions are written as json.", hint="end it with .json.")
    check_parent(out)
    check_not_input(out, feedback)
    told = read_feedback(feedback)
    if show_prompt:
        typer.echo(prompt_for(told))
        return
    declared = None if schema is None else Schema.read(schema)
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
            typer.echo(f"Budget: {more} for `{name}` ({WORDS[name]}), times {factor:.2f}.")
    typer.echo(
        "Privacy: with suggestions the next summary costs its learners the same epsilon as without, which does not "
        "cover the learners whom this feedback is about; the summary will say so. " + PRICE
    )
    typer.echo(
        f"Written: {out}. Next year: understudy cohort summarize ... --suggestions {out} --previous summary.json, "
        f"then understudy cohort synthesize ... --suggestions {out}"
    )


def _by_model(panel: Path, told: FeedbackFile, schema: Schema | None) -> Suggestions:
    from understudy.errors import DataError, MissingError
    from understudy.synthesis.cohorts.feedback import suggest_with
    from understudy.synthesis.cohorts.panel.providers import ModelPanelist, PanelistError, read_panel

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
