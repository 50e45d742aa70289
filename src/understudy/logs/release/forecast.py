"""What accuracy an epsilon buys: predicted from public numbers and the noise scale alone."""

from __future__ import annotations

from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, WARNING, Figure
from understudy.logs.generators.budget import Prediction, predict

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
# Rows that a learner is taken to have: the log's own number is not public.
ROWS_PER_LEARNER = 20


def explain(n_learners: int, n_actions: int) -> list[Prediction]:
    """Predictions for a range of epsilons; the number of learners and the vocabulary are public."""
    return [predict(n_learners, n_actions, ROWS_PER_LEARNER, epsilon) for epsilon in EPSILONS]


def explanation_figure(predictions: list[Prediction]) -> Figure:
    """Expected errors against epsilon."""
    looks = {"action shares": Look(ACCENT), "difficulty": Look(WARNING, "diamond")}
    points = [
        Point(prediction.epsilon, error, series=series)
        for series, errors in zip(
            looks,
            ([p.action_shares for p in predictions], [p.difficulty for p in predictions]),
            strict=True,
        )
        for prediction, error in zip(predictions, errors, strict=True)
    ]
    drawing = curves(
        points,
        "epsilon: smaller is more private",
        "expected error: lower is better",
        looks=looks,
        domain=[0.0, 1.0],
        bands=True,
        logarithmic=True,
        ticks=EPSILONS,
        height=260,
    )
    return drawing.figure("Expected errors, by epsilon")
