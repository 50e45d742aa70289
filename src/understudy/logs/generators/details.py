"""Details: what synthetic walks carry beside actions and outcomes, their times and declared columns.

Every generator that invents learners has them in the same way: walks are drawn first, details are added to them. What
is learned is a handful of sums over learners. A private generator releases them with noise in its own budget; for a
baseline they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.logs.generators.budget import Spending
from understudy.logs.interactions import Interactions


@dataclass(frozen=True)
class Details:
    """What was learned about times and columns: nothing, for a log that has neither."""

    def add_to(self, walks: Interactions, rng: np.random.Generator) -> Interactions:
        """The walks with times and columns."""
        return walks


def detail_shares(log: Interactions) -> dict[str, float]:
    """What times and columns take of the budget, where all else takes 1 together; by public facts alone."""
    return {}


def fit_details(log: Interactions, spending: Spending) -> Details:
    """Learn about times and columns from sums that `spending` releases."""
    return Details()
