"""How much of what a log teaches survives in its synthetic stand-in."""

from understudy.utility.metrics import METRICS, Metric, measure

__all__ = ["METRICS", "Metric", "measure"]
