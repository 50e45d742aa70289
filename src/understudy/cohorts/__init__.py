"""Cohorts: share the habits of a small cohort year after year. Its verbs are loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Where each public name stands. No module here has the name of a verb: it would take the verb's place when imported.
_HOME_OF = {
    "Cohort": "cohort.Cohort",
    "PrivateSummary": "summary.summary_file.PrivateSummary",
    "School": "simulate.School",
    "Schema": "schema.Schema",
    "build": "building.build.build",
    "compare": "comparison.compare",
    "improve": "feedback.improve",
    "plan": "summary.summarize.plan",
    "prompt": "synthesis.prompt",
    "read": "cohort.read_cohort",
    "summarize": "summary.summarize.summarize",
    "synthesize": "synthesis.synthesize",
}

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:
    from understudy.cohorts.building.build import build as build
    from understudy.cohorts.cohort import Cohort as Cohort
    from understudy.cohorts.cohort import read_cohort as read  # noqa: F401 (the verb, by its name)
    from understudy.cohorts.comparison import compare as compare
    from understudy.cohorts.feedback import improve as improve
    from understudy.cohorts.schema import Schema as Schema
    from understudy.cohorts.simulate import School as School
    from understudy.cohorts.summary.summarize import plan as plan
    from understudy.cohorts.summary.summarize import summarize as summarize
    from understudy.cohorts.summary.summary_file import PrivateSummary as PrivateSummary
    from understudy.cohorts.synthesis import prompt as prompt
    from understudy.cohorts.synthesis import synthesize as synthesize


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'understudy.cohorts' has no attribute '{name}'")
    module, _, home = _HOME_OF[name].rpartition(".")
    value = getattr(import_module(f"understudy.cohorts.{module}"), home)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
