"""Runs independent pieces of work on this machine."""

from understudy.engine.local import n_cores, run_tasks

__all__ = ["n_cores", "run_tasks"]
