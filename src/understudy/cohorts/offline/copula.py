"""Offline panelist 3: a Gaussian copula over all weeks, with the sketch's own distribution of minutes.

Two layers of normal variables, for activity and for minutes: each cell is the sum of a learner's part,
correlated between features and with the label, and a week's part with autocorrelation. Ranks become
zeros by the week's chance, and minutes by the quantiles of the noisy sketch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import expit, logit, ndtr, ndtri

from understudy.cohorts.offline.summary_reading import Floats, read_summary, table


def generate(n: int, label: str, summary: dict[str, Any], rng: np.random.Generator) -> Any:
    """`n` learners of a label."""
    picture = read_summary(summary, label)
    standing = picture["standing"]
    n_features, n_weeks = picture["n_features"], picture["n_weeks"]
    effect = picture["effect"] / picture["between"]
    rest = np.sqrt(np.maximum(1.0 - effect**2 * picture["label_variance"], 0.3))
    root = np.linalg.cholesky(picture["correlation"])
    habit = effect * standing + rest * (rng.normal(size=(n, 2 * n_features)) @ root.T)
    part = _learners_part(picture)
    share = expit(logit(picture["active"])[:, None] + picture["week"][None, :])
    active = np.zeros((n, n_features, n_weeks), dtype=bool)
    size = np.zeros((n, n_features, n_weeks))
    for f in range(n_features):
        tie = np.sin(np.pi / 2.0 * max(float(picture["stays"][f]), 0.0))
        cell = _cells(habit[:, f], part[f], tie, n_weeks, rng)
        active[:, f] = cell > ndtri(1.0 - share[f])[None, :]
        total = picture["between"][n_features + f] ** 2 + picture["within"][f] ** 2
        own = picture["between"][n_features + f] ** 2 / total
        cell = _cells(habit[:, n_features + f], own, float(picture["size_stays"][f]), n_weeks, rng)
        size[:, f] = _quantile(ndtr(cell), picture["bins"], picture["sketch"][f])
    return table(picture, size, active)


def _cells(habit: Floats, part: float, tie: float, n_weeks: int, rng: np.random.Generator) -> Floats:
    """A learner's weeks: standard normal, of which `part` of the variance is the learner's own."""
    within = np.linalg.cholesky(toeplitz(tie ** np.arange(n_weeks)) + 1e-9 * np.eye(n_weeks))
    drawn = rng.normal(size=(len(habit), n_weeks)) @ within.T
    return np.asarray(np.sqrt(part) * habit[:, None] + np.sqrt(1.0 - part) * drawn)


def _learners_part(picture: dict[str, Any]) -> Floats:
    """The correlation of two weeks of a learner that makes shares of active weeks differ as they do.

    Two weeks are both active with the chance that two normal variables of this correlation exceed the
    threshold; its excess over the squared share is the variance between learners.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    grid = np.linspace(0.005, 0.9, 120)
    parts = []
    for share, sd in zip(picture["active"], picture["between"], strict=False):
        chance = ndtr(
            (ndtri(share) - np.sqrt(grid)[:, None] * points[None, :]) / np.sqrt(1.0 - grid)[:, None]
        )
        parts.append(float(np.interp(sd**2, (chance**2) @ weights - share**2, grid)))
    return np.array(parts)


def _quantile(rank: Floats, edges: Floats, chances: Floats) -> Floats:
    """Quantiles of a histogram, evenly within its bins."""
    below = np.concatenate([[0.0], np.cumsum(chances)])
    below = below / below[-1] + np.arange(len(below)) * 1e-12
    return np.interp(rank, below, edges)
