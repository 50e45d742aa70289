"""What accuracy an epsilon buys: predicted from public numbers and the noise scale alone."""

from __future__ import annotations

from understudy.core.pages.figures import ACCENT, WARNING, Figure, data
from understudy.logs.generators.budget import Prediction, predict

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
# Rows that a learner is taken to have: the log's own number is not public.
ROWS_PER_LEARNER = 20


def explain(n_learners: int, n_actions: int) -> list[Prediction]:
    """Predictions for a range of epsilons; the number of learners and the vocabulary are public."""
    return [predict(n_learners, n_actions, ROWS_PER_LEARNER, epsilon) for epsilon in EPSILONS]


def explanation_figure(predictions: list[Prediction]) -> Figure:
    """Expected errors against epsilon."""
    import altair as alt

    kinds = ("action shares", "difficulty")
    values = [
        {"epsilon": p.epsilon, "error": error, "of": kind}
        for p in predictions
        for kind, error in zip(kinds, (p.action_shares, p.difficulty), strict=True)
    ]
    colour = alt.Color(
        "of:N",
        scale=alt.Scale(domain=list(kinds), range=[ACCENT, WARNING]),
        legend=alt.Legend(orient="top", title=None),
    )
    x = alt.X(
        "epsilon:Q",
        scale=alt.Scale(type="log", domain=[EPSILONS[0], EPSILONS[-1]]),
        axis=alt.Axis(values=list(EPSILONS), format="~g"),
        title="epsilon: smaller is more private",
    )
    y = alt.Y("error:Q", scale=alt.Scale(domain=[0, 1]), title="expected error: lower is better")
    chart = alt.Chart(data(values)).mark_line(point=True).encode(x=x, y=y, color=colour)
    words = "; ".join(
        f"epsilon {p.epsilon:g}: shares {p.action_shares:.2f}, difficulty {p.difficulty:.2f}"
        for p in predictions
    )
    return Figure.of(chart.properties(width=480, height=260), f"Expected errors. {words}.")
