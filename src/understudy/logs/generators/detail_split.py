"""How a private fit divides its budget between actions and outcomes, times, and declared columns.

Of a few divisions the one with the least predicted error is taken. The prediction knows public numbers alone: how many
learners there are, how much noise the budget buys, which actions and categories are declared. So the choice tells
nothing about the learners, and costs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import sqrt
from statistics import fmean

from understudy.logs.declared.columns import Declared, Kind
from understudy.logs.generators.detail_forecast import UNKNOWN_COLUMN, column_limits, time_errors
from understudy.logs.generators.found_columns import Unknown
from understudy.logs.generators.private_columns import column_shares
from understudy.logs.generators.private_times import time_shares
from understudy.logs.interactions import Interactions

# What the usual shares of times and of columns are multiplied by; the usual ones come first, and are taken where
# nothing is better.
WEIGHTS = (1.0, 0.5, 2.0)
# Times and columns together take no more than this beside the 1 of actions and outcomes, whose noise then is 1.4 times
# what it is without them.
MOST_DETAILS = 0.96
# What of actions and outcomes stays unknown: half of it, where learners in units of the noise for one of them are this
# many for each action; it falls as this power. Fitted to `forecast`, with 40 rows for each learner (within 0.11).
HALF_KNOWN, FALLS = 2.6, 0.78
# So many actions and categories are assumed where their names are found: how many the log has is nobody's to know.
USUAL_ACTIONS, USUAL_CATEGORIES = 100, 5


def detail_shares(log: Interactions, rho: float, n_learners: int) -> dict[str, float]:
    """What times and columns take of the budget `rho`, where actions and outcomes take 1 together."""
    divisions = [_division(log, of_times, of_columns) for of_times, of_columns in product(WEIGHTS, repeat=2)]
    allowed = [shares for shares in divisions if sum(shares.values()) <= MOST_DETAILS] or divisions[:1]
    return min(allowed, key=lambda shares: predicted_loss(log, shares, rho, n_learners))


def _division(log: Interactions, of_times: float, of_columns: float) -> dict[str, float]:
    return {**time_shares(log, of_times), **column_shares(log, of_columns), **Unknown.of(log).shares()}


def predicted_loss(log: Interactions, shares: dict[str, float], rho: float, n_learners: int) -> float:
    """What noise hides of actions, of times and of columns: of each a share of what can be known, and their sum."""
    left = rho / (1.0 + sum(shares.values()))
    n_actions = log.n_actions if log.declared else USUAL_ACTIONS
    loss: float = 1.0 / (1.0 + (n_learners * sqrt(left) / (HALF_KNOWN * n_actions)) ** FALLS)
    if times := time_errors(n_learners, left, shares).values():
        loss += fmean(error.noise / error.unknowing for error in times)
    declared = [_public(column.declared) for column in log.columns if not column.declared.is_outcome]
    # Without the chance that `few` stands for: it is the same however the budget is divided.
    if limits := column_limits(n_learners, left, shares, declared, few=0.0).values():
        loss += fmean(limit / UNKNOWN_COLUMN for limit in limits)
    return loss


def _public(declared: Declared) -> Declared:
    """A column without what was read off the data, where its categories are to be found."""
    if declared.found and declared.kind is Kind.category:
        return replace(declared, values=("",) * USUAL_CATEGORIES)
    return declared
