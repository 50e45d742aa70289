"""Utility metrics: each knows what it means, its best value and in which direction that lies."""

from __future__ import annotations

from understudy.logs.interactions import Interactions
from understudy.logs.utility.columns import COLUMN_METRICS
from understudy.logs.utility.comparison import (
    Comparison,
    Metric,
    Real,
    learning_curve,
    leaving_rates,
    prediction_auc_on,
)
from understudy.logs.utility.rows import ROW_METRICS, action_tv, transition_tv, wrmse_centred
from understudy.logs.utility.times import TIME_METRICS

__all__ = [
    "METRICS",
    "Comparison",
    "Metric",
    "Real",
    "action_tv",
    "learning_curve",
    "leaving_rates",
    "measure",
    "prediction_auc_on",
    "transition_tv",
    "wrmse_centred",
]

METRICS: tuple[Metric, ...] = (*ROW_METRICS, *TIME_METRICS, *COLUMN_METRICS)


def measure(real: Real, synthetic: Interactions) -> dict[str, float]:
    """All metrics that a synthetic log can have: those of what both logs hold."""
    comparison = Comparison(real, synthetic)
    return {metric.name: metric.compute(comparison) for metric in METRICS if comparison.has(metric.about)}
