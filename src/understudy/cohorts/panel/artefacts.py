"""The folder that a panel leaves beside its cohort: prompt, scripts with provenance, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.cohorts.panel.brief import Brief
from understudy.cohorts.panel.report import PanelReport
from understudy.cohorts.panel.scripts import Script
from understudy.core.files.writing import new_folder, write_json, write_text


def failed_folder(folder: Path) -> Path:
    """Where a panel that gave no cohort is kept, so that its name stays free for the next try."""
    number = 1
    while (found := folder.with_name(f"{folder.name}-failed-{number}")).exists():
        number += 1
    return found


def save_panel(
    folder: Path, brief: Brief, scripts: Sequence[Script], report: PanelReport, more: dict[str, Any]
) -> None:
    """Write `prompt.txt`, `<name>.py` and `<name>.json` of every script (also dropped ones), `report.json`.

    The prompt is the exact text that was sent; `more` goes into the report.
    """
    status = {one.name: one for one in report.panelists}
    with new_folder(folder) as temporary:
        write_text(temporary / "prompt.txt", brief.text)
        for script in scripts:
            of = status[script.author]
            write_text(temporary / f"{script.author}.py", script.source)
            write_json(
                temporary / f"{script.author}.json",
                {**script.provenance(), "status": of.status, "failures": list(of.failures)},
            )
        write_json(temporary / "report.json", {**report.to_json(), **more})
