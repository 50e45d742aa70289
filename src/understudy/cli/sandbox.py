"""`understudy sandbox check`: whether code from others can be run on this machine."""

from __future__ import annotations

import typer

from understudy import sandbox
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json, print_table
from understudy.sandbox.battery import place, refuse, remember

app = command_group("sandbox", "The sandbox that submitted code and panelists' scripts run in.")


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(as_json: AsJson = False) -> None:
    """Try every escape and every excess we know on this machine's sandbox.

    Exit code 5 when there is no sandbox here, or when one attempt gets through: then every command that needs
    the sandbox refuses, until a full check passes. That nothing got through is kept for this boot, kernel and version.

    Example: understudy sandbox check
    """
    sandbox.require_sandbox()
    probes = sandbox.check()
    through = [probe for probe in probes if not probe.holds]
    if as_json:
        echo_json(
            {"holds": not through, "probes": [{**vars(probe), "holds": probe.holds} for probe in probes]}
        )
    else:
        print_table(
            "Attempts on the sandbox",
            ["attempt", "expected", "found", ""],
            [
                [probe.name, probe.expected, probe.found, "" if probe.holds else "GOT THROUGH"]
                for probe in probes
            ],
        )
        typer.echo(f"{len(probes) - len(through)} of {len(probes)} attempts were stopped.")
    try:
        remember(probes)
    except OSError:
        typer.echo(f"This could not be kept in {place()}: every start tries a few attempts again.", err=True)
    refuse([probe.name for probe in through])
