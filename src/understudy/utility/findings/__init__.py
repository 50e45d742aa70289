"""Findings that replicate: a bank of analyses, run on the real and the synthetic cohort."""

# Importing a module of analyses adds them to the bank; their order here is their order there.
from understudy.utility.findings import (  # isort: skip
    relations as relations,
    groups as groups,
    regressions as regressions,
    times_of_day as times_of_day,
    profiles as profiles,
    trends as trends,
    mechanisms as mechanisms,
    causes as causes,
)
from understudy.utility.findings.own import add_analyses
from understudy.utility.findings.registry import (
    ALPHA,
    Analysis,
    Finding,
    add_analysis,
    bank,
    bank_table,
    register,
    remove_analysis,
    run_bank,
    without_effect,
)
from understudy.utility.findings.replication import Pair, Replication, Shares, compare_findings
from understudy.utility.findings.statistics import NOTHING, Evidence

__all__ = [
    "ALPHA",
    "NOTHING",
    "Analysis",
    "Evidence",
    "Finding",
    "Pair",
    "Replication",
    "Shares",
    "add_analyses",
    "add_analysis",
    "bank",
    "bank_table",
    "compare_findings",
    "register",
    "remove_analysis",
    "run_bank",
    "without_effect",
]
