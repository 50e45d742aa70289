"""`understudy cohort`: from learners' habits to cohorts that stand in for them; one module per step."""

from __future__ import annotations

import typer

from understudy.cli.cohort.build import build
from understudy.cli.cohort.compare import compare
from understudy.cli.cohort.improve import improve
from understudy.cli.cohort.summarize import summarize
from understudy.cli.cohort.synthesize import prompt, synthesize

cohort = typer.Typer(
    name="cohort",
    help="Share the habits of a small cohort: a table, a private summary, synthetic learners.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for step in (build, summarize, prompt, synthesize, compare, improve):
    cohort.command()(step)
