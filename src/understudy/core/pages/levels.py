"""Three numbers side by side: the proved worst case, the white-box optimum on this data, the strongest attack.

They answer three questions about one game: shown a member and an outsider, how often does an attacker pick the member?
The first holds for any data and any attacker, the second for these learners and an attacker who sees the noisy sums,
the third for these learners and the attacks that were run on what was made of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from understudy.core.attacks.estimate import RiskEstimate
from understudy.core.pages.card import NO_LIMIT
from understudy.core.pages.charts import Look, Point, dots
from understudy.core.pages.figures import ACCENT, INK, WARNING, Figure
from understudy.core.pages.words import GUESSING, in_100
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.risk import worst_case

PROVED, SEEN, STRONGEST = "proved limit", "noisy sums seen", "strongest attack"


@dataclass(frozen=True)
class RiskLevel:
    """One of the three numbers, with its interval where it was measured; without a number nothing limits it."""

    name: str
    sentence: str
    auc: float | None = None
    low: float | None = None
    high: float | None = None


def risk_levels(
    guarantee: Guarantee,
    strongest: RiskEstimate,
    white_box: RiskEstimate | None,
    *,
    made: str = "synthetic log",
) -> list[RiskLevel]:
    """The three numbers, rounded to two digits; `made` is what the strongest attack looks at."""

    def rounded(name: str, words: str, auc: float, low: float, high: float) -> RiskLevel:
        auc, low, high = (round(value, 2) for value in (auc, low, high))
        interval = f"interval {100 * low:.0f} to {100 * high:.0f}"
        return RiskLevel(name, f"{words}: {in_100(auc)} ({interval}).", auc, low, high)

    if guarantee.formal:
        bound = worst_case(guarantee)["auc"]
        proved = (
            RiskLevel(
                PROVED,
                f"Proved, whatever the data and whatever an attacker knows: at most {in_100(bound)}.",
                bound,
            )
            if bound < NO_LIMIT
            else RiskLevel(PROVED, "What is proved here is no limit worth stating: its epsilon is too large.")
        )
    else:
        proved = RiskLevel(PROVED, "Nothing is proved: no number limits what an attacker can reach.")
    if white_box is None:
        seen = RiskLevel(
            SEEN, "The method rests on no noisy sums, so there is no optimum between proof and attack."
        )
    else:
        words = f"Measured, for these learners, by an attacker who sees the noisy sums behind the {made}"
        seen = rounded(SEEN, words, white_box.auc, white_box.low, white_box.high)
    words = f"Measured, for these learners, by the strongest attack on the {made} that we ran ({strongest.attack})"
    return [proved, seen, rounded(STRONGEST, words, strongest.auc, strongest.low, strongest.high)]


def levels_figure(levels: list[dict[str, Any]]) -> Figure:
    """The numbers on one scale from guessing to every time; `levels` as they are in a card's JSON."""
    points = [
        Point(level["name"], level["auc"], level["low"], level["high"], level["name"])
        for level in levels
        if level["auc"] is not None
    ]
    drawing = dots(
        points,
        ["members picked (AUC)", "0.5 is guessing, 1 is every time"],
        looks={PROVED: Look(INK, "square"), SEEN: Look(WARNING, "diamond"), STRONGEST: Look(ACCENT)},
        domain=[0.4, 1.0],
        axis=".1f",
        reference=GUESSING,
        legend=None,
    )
    return drawing.figure("How often an attacker picks the member", "Guessing is 0.5.")
