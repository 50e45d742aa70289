"""The week as a picture: seven days by 24 hours, the darker the more happened."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.core.pages.charts import Drawing
from understudy.core.pages.figures import ACCENT, data

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# From an empty hour to the busiest one.
_PAPER = "#eef2f5"
_ROW = 20
# How many of the busiest hours are named in words.
_MOST_SAID = 3


def week_map(
    shares: Sequence[float], title: str = "hour of the day", *, highest: float | None = None
) -> Drawing:
    """Shares of 168 hours, Monday's first; the darkest colour is for `highest`, so that two maps can be compared."""
    import altair as alt

    top = highest or max(shares, default=0.0) or 1.0
    cells = [
        {"day": DAYS[hour // 24], "hour": hour % 24, "share": float(share)}
        for hour, share in enumerate(shares)
    ]
    chart = (
        alt.Chart(data(cells))
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "hour:O",
                title=title,
                axis=alt.Axis(values=[0, 6, 12, 18], labelAngle=0, ticks=False, domain=False),
            ),
            y=alt.Y("day:N", title=None, sort=list(DAYS), axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color(
                "share:Q",
                scale=alt.Scale(domain=[0.0, top], range=[_PAPER, ACCENT], interpolate="rgb", clamp=True),
                legend=None,
            ),
        )
        .properties(height=_ROW * len(DAYS))
    )
    busiest = sorted(range(len(shares)), key=lambda hour: -shares[hour])[:_MOST_SAID]
    said = ", ".join(f"{DAYS[hour // 24]} {hour % 24}:00 ({shares[hour]:.1%})" for hour in busiest)
    weekend = sum(shares[5 * 24 :])
    return Drawing(chart, f"the busiest hours are {said}; {weekend:.0%} on Saturday and Sunday")
