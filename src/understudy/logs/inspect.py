"""A first look at a log: Table 2 of the seed, and how few points single a learner out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from understudy.core.pages.figures import ACCENT, WARNING, Figure, data
from understudy.core.pages.render import render
from understudy.logs.attacks.uniqueness import Uniqueness, uniqueness
from understudy.logs.description import Description, describe
from understudy.logs.interactions import Interactions


@dataclass(frozen=True)
class Inspection:
    """What `understudy inspect` found."""

    description: Description
    uniqueness: list[Uniqueness]

    def to_json(self) -> dict[str, Any]:
        """The inspection for a machine."""
        return {**asdict(self.description), "uniqueness": [share.to_json() for share in self.uniqueness]}

    def lines(self) -> list[tuple[str, str]]:
        """The description as lines for people."""
        d = self.description
        lines = [
            ("rows", f"{d.n_rows:,}"),
            ("learners", f"{d.n_learners:,}"),
            ("actions", f"{d.n_actions:,}"),
            ("success rate", f"{100 * d.success_rate:.1f} %"),
            ("attempts of a learner at an action", f"median {d.repeats_median:g}, maximum {d.repeats_max:,}"),
            (
                "rows of a learner",
                f"minimum {d.length_min:,}, median {d.length_median:g}, maximum {d.length_max:,}",
            ),
            (
                "actions without a finite difficulty (set aside in studies)",
                f"{d.n_always_right} always right, {d.n_always_wrong} always wrong",
            ),
        ]
        lines.append(("actions that only one learner attempted", f"{d.n_by_one_learner:,}"))
        if d.first_time is not None:
            lines.append(("from", f"{d.first_time} to {d.last_time}"))
        return lines


def inspect_log(log: Interactions, rng: np.random.Generator) -> Inspection:
    """Describe a log and measure its uniqueness."""
    return Inspection(describe(log), uniqueness(log, rng))


def uniqueness_figure(shares: list[Uniqueness]) -> Figure:
    """Share of learners singled out by the number of points known."""
    import altair as alt

    values = [share.to_json() for share in shares]
    points = list(dict.fromkeys(share.points for share in shares))
    colour = alt.Color(
        "points:N",
        scale=alt.Scale(domain=points, range=[ACCENT, WARNING]),
        legend=alt.Legend(orient="top", title=None),
    )
    # The whole scale up to 100 % would flatten a log in which few are singled out.
    most = max((share.high for share in shares), default=1.0)
    scale = alt.Scale(domain=[0, 1.0 if most > 0.5 else max(0.1, 1.2 * most)], nice=True)
    x = alt.X("k:O", title="things known about a learner", axis=alt.Axis(labelAngle=0))
    y = alt.Y("share:Q", scale=scale, title="learners singled out", axis=alt.Axis(format=".0%", tickCount=5))
    base = alt.Chart(data(values)).encode(x=x, color=colour)
    band = base.mark_rule(strokeWidth=2, opacity=0.5).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=70), strokeWidth=2.5).encode(y=y)
    last = {share.points: share for share in shares}
    words = "; ".join(f"{s.k} points by {name}: {100 * s.share:.0f} %" for name, s in last.items())
    return Figure.of((band + line).properties(height=280), f"Learners singled out. {words}.")


def inspection_page(inspection: Inspection, content: dict[str, Any]) -> str:
    """The inspection as a page."""
    return render(
        "logs/inspection.html",
        content=content,
        lines=inspection.lines(),
        figure=uniqueness_figure(inspection.uniqueness),
    )
