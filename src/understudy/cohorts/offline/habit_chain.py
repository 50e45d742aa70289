"""Offline panelist 2: a chain of weeks for each habit, active or not, and log-normal minutes.

Every learner has an own chance of being active for each feature, beta distributed between learners. The
chain keeps to last week's state with a probability on top of that chance; weeks move the chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import beta

from understudy.cohorts.offline.summary_reading import read_summary, table


def generate(n: int, label: str, summary: dict[str, Any], rng: np.random.Generator) -> Any:
    """`n` learners of a label."""
    picture = read_summary(summary, label)
    standing = picture["standing"]
    n_features, n_weeks = picture["n_features"], picture["n_weeks"]
    effect = picture["effect"] / picture["between"]
    rest = np.sqrt(np.maximum(1.0 - effect**2 * picture["label_variance"], 0.3))
    factor = np.linalg.cholesky(picture["correlation"])
    habit = effect * standing + rest * (rng.normal(size=(n, 2 * n_features)) @ factor.T)
    share, variance = picture["active"], picture["between"][:n_features] ** 2
    weight = share * (1.0 - share) / variance - 1.0
    uniform = np.clip(ndtr(habit[:, :n_features]), 1e-6, 1 - 1e-6)
    chance = np.clip(beta.ppf(uniform, share * weight, (1.0 - share) * weight), 1e-4, 1 - 1e-4)
    weekly = expit(logit(chance)[:, :, None] + picture["week"][None, None, :])
    active = np.zeros((n, n_features, n_weeks), dtype=bool)
    active[:, :, 0] = rng.random((n, n_features)) < weekly[:, :, 0]
    for t in range(1, n_weeks):
        kept = picture["stays"] * (active[:, :, t - 1] - weekly[:, :, t - 1])
        active[:, :, t] = rng.random((n, n_features)) < weekly[:, :, t] + kept
    level = picture["size"] + picture["between"][n_features:] * habit[:, n_features:]
    tie = picture["size_stays"][None, :]
    size = np.zeros((n, n_features, n_weeks))
    state = rng.normal(size=(n, n_features))
    for t in range(n_weeks):
        size[:, :, t] = level + picture["within"] * state
        state = tie * state + np.sqrt(1.0 - tie**2) * rng.normal(size=state.shape)
    return table(picture, size, active)
