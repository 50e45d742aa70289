"""Utility and risk for groups of learners: an average can hide that some pay for it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.estimate import auc_with_interval
from understudy.logs.interactions import Interactions
from understudy.logs.models.next_outcome import fit_next_outcome
from understudy.logs.utility import Real, prediction_auc_on

# Figures of fewer learners than this, on either side, would be about individuals.
SMALLEST_GROUP = 20
POOLED = "small groups, pooled"


@dataclass(frozen=True)
class GroupFigures:
    """The strongest attack and the next-outcome model on the learners of one group."""

    group: str
    n_learners: int
    auc: float
    low: float
    high: float
    prediction_auc: float
    prediction_loss: float

    def to_json(self) -> dict[str, Any]:
        """The figures for a machine."""
        return dict(vars(self))


def group_figures(
    log: Interactions,
    member: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    scores: NDArray[np.float64],
    real: Real,
    synthetic: Interactions,
) -> list[GroupFigures]:
    """Figures of each group; groups too small on either side are pooled."""
    if log.group is None:
        return []
    from_real, from_synthetic = fit_next_outcome(real.training), fit_next_outcome(synthetic)
    outsiders = np.flatnonzero(~member)
    figures = []
    for name, inside in pooled_groups(log, member, judged):
        mine = inside & judged
        area, low, high = auc_with_interval(scores[mine], member[mine])
        held_out = real.held_out.select(inside[outsiders])
        reached = prediction_auc_on(from_synthetic, held_out)
        figures.append(
            GroupFigures(
                group=name,
                n_learners=int(inside.sum()),
                auc=area,
                low=low,
                high=high,
                prediction_auc=reached,
                prediction_loss=prediction_auc_on(from_real, held_out) - reached,
            )
        )
    return figures


def pooled_groups(
    log: Interactions, member: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Groups and who is in them; a pool that is itself too small is left out."""
    assert log.group is not None
    large, rest = [], np.zeros(log.n_learners, dtype=bool)
    for code, name in enumerate(log.groups):
        inside = log.group == code
        if _enough(inside, member, judged):
            large.append((name, inside))
        else:
            rest |= inside
    return [*large, (POOLED, rest)] if _enough(rest, member, judged) else large


def _enough(inside: NDArray[np.bool_], member: NDArray[np.bool_], judged: NDArray[np.bool_]) -> bool:
    mine = inside & judged
    return min(int((mine & member).sum()), int((mine & ~member).sum())) >= SMALLEST_GROUP


def averaged(trials: Iterable[list[GroupFigures]]) -> list[GroupFigures]:
    """Means over trials, for groups that were large enough in each."""
    lists = list(trials)
    common = [f.group for f in lists[0] if all(any(f.group == g.group for g in other) for other in lists)]
    result = []
    for name in common:
        mine = [f for figures in lists for f in figures if f.group == name]
        means = {
            key: statistics.fmean(getattr(f, key) for f in mine)
            for key in ("auc", "low", "high", "prediction_auc", "prediction_loss")
        }
        result.append(GroupFigures(name, mine[0].n_learners, **means))
    return result
