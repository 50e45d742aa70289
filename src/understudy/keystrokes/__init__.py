"""Keystrokes: how coarse typing must be before others may see it. Its verbs are loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The home of each public name. No module here has the name of a verb: it would take the verb's place when imported.
_HOME_OF = {
    "Keystrokes": "keystrokes.Keystrokes",
    "coarsen": "release.coarsen",
    "plan_statistics": "group_statistics.plan_statistics",
    "profile": "profiles.profile",
    "read": "formats.reading.read_keystrokes",
    "scrub": "program_text.files.scrub",
    "statistics": "group_statistics.statistics",
    "sweep": "sweeps.sweep.sweep",
}

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:
    from understudy.keystrokes.formats.reading import read_keystrokes as read  # noqa: F401 (the verb, by its name)
    from understudy.keystrokes.group_statistics import plan_statistics as plan_statistics
    from understudy.keystrokes.group_statistics import statistics as statistics
    from understudy.keystrokes.keystrokes import Keystrokes as Keystrokes
    from understudy.keystrokes.profiles import profile as profile
    from understudy.keystrokes.program_text.files import scrub as scrub
    from understudy.keystrokes.release import coarsen as coarsen
    from understudy.keystrokes.sweeps.sweep import sweep as sweep


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'understudy.keystrokes' has no attribute '{name}'")
    module, _, home = _HOME_OF[name].rpartition(".")
    value = getattr(import_module(f"understudy.keystrokes.{module}"), home)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
