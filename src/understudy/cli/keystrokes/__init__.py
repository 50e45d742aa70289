"""`understudy keystrokes`: open keystroke data: how coarse its times must be, coarse events, text without names."""

from __future__ import annotations

from understudy.cli.lazy import lazy_group

COMMANDS = {
    "Commands": {
        "profile": (
            "understudy.cli.keystrokes.measure",
            "Show how learners type, as typing profiles.",
        ),
        "sweep": (
            "understudy.cli.keystrokes.measure",
            "Measure every coarseness: who is identified, what is learned.",
        ),
        "coarsen": ("understudy.cli.keystrokes.release", "Write coarser events that may be given out."),
        "scrub": ("understudy.cli.keystrokes.release", "Replace names in program text."),
        "statistics": (
            "understudy.cli.keystrokes.release",
            "Release digraph statistics with a guarantee.",
        ),
    },
}

app = lazy_group(
    "keystrokes",
    "Open keystroke data: how coarse its times must be, coarse events, text without names.",
    COMMANDS,
)
