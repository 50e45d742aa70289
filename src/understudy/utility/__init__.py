"""How much of what a log teaches survives in its synthetic stand-in."""

from understudy.utility.metrics import METRICS, Metric, Real, measure

__all__ = ["METRICS", "Metric", "Real", "measure"]
