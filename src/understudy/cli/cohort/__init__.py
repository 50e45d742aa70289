"""`understudy cohort`: share the habits of a small cohort: a table, a private summary, synthetic learners."""

from __future__ import annotations

from understudy.cli.lazy import lazy_group

COMMANDS = {
    "Commands": {
        "build": ("understudy.cli.cohort.summary", "Make the table of a cohort from a log and scores."),
        "summarize": ("understudy.cli.cohort.summary", "Release a private summary of a cohort."),
        "prompt": ("understudy.cli.cohort.synthetic", "Show the prompt that a panel would get."),
        "synthesize": (
            "understudy.cli.cohort.synthetic",
            "Let a panel write generators; draw a cohort.",
        ),
        "compare": ("understudy.cli.cohort.synthetic", "Compare synthetic cohorts with the real one."),
        "improve": ("understudy.cli.cohort.synthetic", "Turn feedback from validation into suggestions."),
    },
}

app = lazy_group(
    "cohort", "Share the habits of a small cohort: a table, a private summary, synthetic learners.", COMMANDS
)
