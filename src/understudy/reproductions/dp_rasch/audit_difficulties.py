"""`understudy audit-difficulties`: what is claimed about private difficulties, and what can be shown against it."""

from __future__ import annotations

import typer

from understudy.cli.options import AsJson, echo_json


def audit_difficulties(as_json: AsJson = False) -> None:
    """Audit the published private difficulties and our own: claimed against found privacy loss.

    No file is needed: the worst pairs of classes are made up here. It takes about a minute.

    Example: understudy audit-difficulties
    """
    from understudy.reproductions.dp_rasch.audit import run_audit, to_json

    # What comes next is told in words: the steps take very different times.
    findings = run_audit(progress=None if as_json else lambda what: typer.echo(f"Auditing: {what}", err=True))
    if as_json:
        echo_json({"findings": to_json(findings)})
        return
    from understudy.cli.tables import print_table

    print_table(
        "Claimed and found privacy loss; a loss that is found is a lower bound",
        ["mechanism", "setting", "measure", "claimed", "found", "verdict"],
        [
            [f.mechanism, f.setting, f.measure, f"{f.claimed:.2f}", f"{f.found:.2f}", f.verdict]
            for f in findings
        ],
    )
