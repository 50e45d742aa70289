"""Runs independent pieces of work on this machine."""

from understudy.engine.local import ONE_FOREST, n_cores, run_tasks

__all__ = ["ONE_FOREST", "n_cores", "run_tasks"]
