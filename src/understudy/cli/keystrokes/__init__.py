"""`understudy keystrokes`: open keystroke data: how coarse its times must be, coarse events, text without names."""

from __future__ import annotations

from understudy.cli.lazy import lazy_group

COMMANDS = {
    "Commands": {
        "profile": (
            "understudy.cli.keystrokes.profile",
            "Show how learners type, as typing profiles.",
        ),
        "sweep": (
            "understudy.cli.keystrokes.sweep",
            "Measure every coarseness: who is named, what is learned.",
        ),
        "coarsen": ("understudy.cli.keystrokes.coarsen", "Write coarser events that may be given out."),
        "scrub": ("understudy.cli.keystrokes.scrub", "Replace names in program text."),
        "statistics": (
            "understudy.cli.keystrokes.statistics",
            "Release digraph statistics with a guarantee.",
        ),
    },
}

app = lazy_group(
    "keystrokes",
    "Open keystroke data: how coarse its times must be, coarse events, text without names.",
    COMMANDS,
)
