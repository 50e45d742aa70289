"""Analyses of one's own: a Python file that adds to the bank.

It runs as part of this program, with all its rights and outside of the sandbox: it is meant for the
custodian's own code, never for a file that somebody sent.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import (
    Analysis,
    Finding,
    add_analysis,
    bank,
    remove_analysis,
)
from understudy.errors import DataError, UsageError


def add_analyses(path: Path) -> tuple[Analysis, ...]:
    """Run a file that adds analyses (`register` or `add_analysis`); what it added, or nothing on an error."""
    if not path.is_file() or path.suffix != ".py":
        raise UsageError(
            f"there is no Python file {path}.", hint="docs/explanation/findings.md has an example of one."
        )
    path = path.resolve()
    before = {analysis.name for analysis in bank()}
    specification = importlib.util.spec_from_file_location("analyses_of_ones_own", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        _forget(before)
        if isinstance(error, UsageError):
            raise
        raise DataError(
            f"the file of analyses {_ended(error, path)}.", hint="run it with Python to see more."
        ) from None
    added = [analysis for analysis in bank() if analysis.name not in before]
    if not added:
        raise UsageError(
            f"{path.name} adds no analysis.",
            hint='write @register("my kind", "My question?") above a function that returns findings.',
        )
    # In their place, with errors that name the file and never say what a learner did.
    for analysis in added:
        remove_analysis(analysis.name)
    return tuple(
        add_analysis(**vars(replace(one, function=_guarded(one.name, one.function, path)))) for one in added
    )


def _forget(before: set[str]) -> None:
    for analysis in bank():
        if analysis.name not in before:
            remove_analysis(analysis.name)


def _guarded(
    name: str, function: Callable[[Cohort], list[Finding]], path: Path
) -> Callable[[Cohort], list[Finding]]:
    def findings(cohort: Cohort) -> list[Finding]:
        try:
            found = list(function(cohort))
        except Exception as error:
            raise DataError(
                f"the analysis '{name}' {_ended(error, path)}.",
                hint="it has to work for the real cohort and for synthetic ones, also where there is nothing to find.",
            ) from None
        if not all(isinstance(one, Finding) for one in found):
            raise DataError(
                f"the analysis '{name}' of {path.name} returned something else than findings.",
                hint="return a list of Finding.of(name, Evidence(effect, p_value)).",
            )
        return found

    findings.__doc__ = function.__doc__
    return findings


def _ended(error: Exception, path: Path) -> str:
    """The kind of an error and the line of the file; its message may quote a value."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path
    ]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    where = f" in line {line}" if line else ""
    return f"ended with {type(error).__name__}{where} of {path.name}"
