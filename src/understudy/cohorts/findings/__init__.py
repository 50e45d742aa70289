"""Findings that replicate: a bank of analyses, run on the real and the synthetic cohort."""

# Importing a module of analyses adds them to the bank; see `bank` for their order.
from understudy.cohorts.findings import (  # isort: skip
    simple_analyses as simple_analyses,
    model_analyses as model_analyses,
)
from understudy.cohorts.findings.bank import (
    ALPHA,
    Analysis,
    Finding,
    add_analyses,
    add_analysis,
    bank,
    bank_table,
    finding_names,
    read_analyses,
    register,
    remove_analysis,
    run_bank,
    without_effect,
)
from understudy.cohorts.findings.evidence import NO_EVIDENCE, Evidence
from understudy.cohorts.findings.replication import Pair, Replication, Shares, compare_findings

__all__ = [
    "ALPHA",
    "NO_EVIDENCE",
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
    "finding_names",
    "read_analyses",
    "register",
    "remove_analysis",
    "run_bank",
    "without_effect",
]
