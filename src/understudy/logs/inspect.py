"""inspect(): a first look at a log, and how few points single a learner out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from understudy.core.files.origin import Origin
from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, WARNING, Figure
from understudy.core.pages.notebook import notebook_table
from understudy.core.pages.render import render
from understudy.logs.attacks.uniqueness import Uniqueness, uniqueness
from understudy.logs.description import Description, describe
from understudy.logs.interactions import Interactions, as_log


@dataclass(frozen=True)
class Inspection:
    """What was found in a log: internal, since it is computed from real learners."""

    description: Description
    uniqueness: list[Uniqueness]
    origin: Origin
    simulated: bool

    def to_json(self) -> dict[str, Any]:
        """The inspection for machines."""
        return {
            "file": None if self.origin.path is None else self.origin.path.name,
            "format": self.origin.format,
            "columns": dict(self.origin.columns),
            "notes": list(self.origin.notes),
            "simulated": self.simulated,
            "identifiers": [vars(identifier) for identifier in self.origin.identifiers],
            **asdict(self.description),
            "uniqueness": [share.to_json() for share in self.uniqueness],
        }

    def to_frame(self) -> pl.DataFrame:
        """Share of learners singled out, a row per number and kind of points."""
        return pl.DataFrame([share.to_json() for share in self.uniqueness])

    def plot(self) -> Any:
        """Learners singled out by the number of points known, as an altair chart."""
        return uniqueness_figure(self.uniqueness).chart

    def page(self) -> str:
        """The inspection as a page."""
        return render(
            "logs/inspection.html",
            content=self.to_json(),
            lines=self.facts(),
            figure=uniqueness_figure(self.uniqueness),
        )

    def _repr_html_(self) -> str:
        facts = pl.DataFrame(self.facts(), schema=["what", "value"], orient="row")
        return notebook_table("Internal: computed from real learners.", facts)

    def facts(self) -> list[tuple[str, str]]:
        """The description as pairs for people."""
        d = self.description
        lines = [
            ("rows", f"{d.n_rows:,}"),
            ("learners", f"{d.n_learners:,}"),
            ("actions", f"{d.n_actions:,}"),
            ("success rate", "no outcomes" if d.success_rate is None else f"{100 * d.success_rate:.1f} %"),
            ("attempts of a learner at an action", f"median {d.repeats_median:g}, maximum {d.repeats_max:,}"),
            (
                "rows of a learner",
                f"minimum {d.length_min:,}, median {d.length_median:g}, maximum {d.length_max:,}",
            ),
        ]
        if d.success_rate is not None:
            lines.append(
                (
                    "actions without a finite difficulty (set aside in studies)",
                    f"{d.n_always_right} always right, {d.n_always_wrong} always wrong",
                )
            )
        lines.append(("actions that only one learner attempted", f"{d.n_by_one_learner:,}"))
        if d.first_time is not None and d.last_time is not None:
            days, note = (d.first_time, d.last_time), ""
            if self.origin.yearless:
                days, note = (d.first_time[5:], d.last_time[5:]), " (month and day; no year is known)"
            lines.append(("from", f"{days[0]} to {days[1]}{note}"))
        if d.seconds_since_start is not None:
            lines.append(("times count from a start, up to", f"{d.seconds_since_start:,.0f} s"))
        return lines


def inspect(log: Interactions, *, rng: np.random.Generator | None = None) -> Inspection:
    """Describe a log and measure how few points single a learner out."""
    log = as_log(log)
    found = uniqueness(log, rng or np.random.default_rng(0))
    return Inspection(describe(log), found, log.origin, log.simulated)


_LOOKS = (Look(ACCENT), Look(WARNING, "diamond"))


def uniqueness_figure(shares: list[Uniqueness]) -> Figure:
    """Share of learners singled out by the number of points known."""
    looks = dict(zip(dict.fromkeys(share.points for share in shares), _LOOKS, strict=False))
    # The whole scale up to 100 % would flatten a log in which few are singled out.
    most = max((share.high for share in shares), default=1.0)
    drawing = curves(
        [Point(share.k, share.share, share.low, share.high, share.points) for share in shares],
        "things known about a learner",
        "learners singled out",
        looks=looks,
        domain=[0.0, 1.0 if most > 0.5 else max(0.1, 1.2 * most)],
        axis=".0%",
        number=".0%",
        height=280,
    )
    return drawing.figure("Learners singled out, by how many things are known")
