"""Details: what synthetic walks carry beside actions and outcomes, their times and declared columns.

Every generator that invents learners has them in the same way: walks are drawn first, details are added to them. What
is learned is a handful of sums over learners. A private generator releases them with noise in its own budget; for a
baseline they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from understudy.logs.generators.budget import Exact, Spending
from understudy.logs.generators.detail_split import detail_shares
from understudy.logs.generators.found_columns import with_found_columns
from understudy.logs.generators.private_columns import ColumnModels, fit_columns
from understudy.logs.generators.private_times import fit_times
from understudy.logs.interactions import Interactions
from understudy.logs.models.times import TimeModel


@dataclass(frozen=True)
class Details:
    """What was learned about times and columns: nothing, for a log that has neither."""

    times: TimeModel | None = None
    notes: tuple[str, ...] = ()
    """Sentences that follow from noisy sums alone, so that they may leave."""
    columns: ColumnModels = field(default_factory=ColumnModels)

    def add_to(self, walks: Interactions, rng: np.random.Generator) -> Interactions:
        """The walks with times and columns."""
        if self.times is not None:
            walks = self.times.add_to(walks, rng)
        if self.columns.order:
            walks = replace(walks, columns=self.columns.draw(walks, rng))
        return walks


def fit_details(log: Interactions, spending: Spending, n_learners: int) -> Details:
    """Learn about times and columns from sums that `spending` releases, those of `n_learners` learners.

    An attacker who saw the sums replays them with a log of other learners; how many there were is public. Categories
    and bounds of columns are known here: declared, or found before.
    """
    times, note = fit_times(log, spending, n_learners) if log.has_times else (None, "")
    return Details(times, tuple(filter(None, (note,))), fit_columns(log, spending, n_learners))


def exact_details(log: Interactions) -> Details:
    """What a baseline learns: all sums as they are, and categories and bounds read off the data."""
    spending = Exact(detail_shares(log, inf, log.n_learners))
    return fit_details(with_found_columns(log, spending, None), spending, log.n_learners)
