"""Studies: methods compared on the same halves of the same learners."""

from understudy.studies.study import Plan, run_study
from understudy.studies.trial import Stage, Trial

__all__ = ["Plan", "Stage", "Trial", "run_study"]
