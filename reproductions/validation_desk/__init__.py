"""The two-stage paper's second stage: what 25 analyses cost."""
