"""`understudy keystrokes`: typing that can be opened; one module per step."""

from __future__ import annotations

import typer

from understudy.cli.keystrokes.coarsen import coarsen
from understudy.cli.keystrokes.profile import profile
from understudy.cli.keystrokes.scrub import scrub
from understudy.cli.keystrokes.statistics import statistics
from understudy.cli.keystrokes.sweep import sweep

keystrokes = typer.Typer(
    name="keystrokes",
    help="Open keystroke data: how coarse its times must be, coarse events, text without names.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for step in (profile, sweep, coarsen, scrub, statistics):
    keystrokes.command()(step)
