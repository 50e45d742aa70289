"""Runs independent pieces of work on this machine."""

from understudy.engine.local import growing_trees, n_cores, run_tasks

__all__ = ["growing_trees", "n_cores", "run_tasks"]
