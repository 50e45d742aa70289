"""Details: what synthetic walks carry beside actions and outcomes, their times and declared columns.

Every generator that invents learners has them in the same way: walks are drawn first, details are added to them. What
is learned is a handful of sums over learners. A private generator releases them with noise in its own budget; for a
baseline they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.logs.generators.budget import Spending
from understudy.logs.generators.private_times import fit_times, time_shares
from understudy.logs.interactions import Interactions
from understudy.logs.models.times import TimeModel


@dataclass(frozen=True)
class Details:
    """What was learned about times and columns: nothing, for a log that has neither."""

    times: TimeModel | None = None
    notes: tuple[str, ...] = ()
    """Sentences that follow from noisy sums alone, so that they may leave."""

    def add_to(self, walks: Interactions, rng: np.random.Generator) -> Interactions:
        """The walks with times and columns."""
        if self.times is not None:
            walks = self.times.add_to(walks, rng)
        return walks


def detail_shares(log: Interactions) -> dict[str, float]:
    """What times and columns take of the budget, where all else takes 1 together; by public facts alone."""
    return {**time_shares(log)}


def fit_details(log: Interactions, spending: Spending, n_learners: int) -> Details:
    """Learn about times and columns from sums that `spending` releases, those of `n_learners` learners.

    An attacker who saw the sums replays them with a log of other learners; how many there were is public.
    """
    times, note = fit_times(log, spending, n_learners) if log.has_times else (None, "")
    return Details(times, tuple(filter(None, (note,))))
