"""Offline panelist 1: zero-inflated gamma minutes, with random effects of learners and effects of weeks.

Whether a learner is active in a week follows a logistic model with a normal effect of the learner for
each feature, an effect of the week, and neighbouring weeks tied by an autoregressive normal variable.
Minutes of active weeks are gamma distributed around the learner's own level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, expit, logit, ndtr, polygamma

from understudy.cohorts.offline.summary_reading import Floats, read_summary, table


def generate(n: int, label: str, summary: dict[str, Any], rng: np.random.Generator) -> Any:
    """`n` learners of a label."""
    picture = read_summary(summary, label)
    standing = picture["standing"]
    n_features, n_weeks = picture["n_features"], picture["n_weeks"]
    centre, spread, slope = _logistic(picture)
    effect = picture["effect"] / picture["between"]
    rest = np.sqrt(np.maximum(1.0 - effect**2 * picture["label_variance"], 0.3))
    normal = rng.multivariate_normal(np.zeros(2 * n_features), picture["correlation"], size=n)
    shift = picture["effect"][:n_features] / slope * standing
    learner = centre + shift + spread * rest[:n_features] * normal[:, :n_features]
    week = picture["week"] * np.sqrt(1.0 + 0.346 * float((spread**2).mean()))
    chance = expit(learner[:, :, None] + week[None, None, :])
    tie = np.sin(np.pi / 2.0 * np.clip(picture["stays"], -0.3, 0.8))[None, :]
    state = rng.normal(size=(n, n_features))
    active = np.zeros((n, n_features, n_weeks), dtype=bool)
    for t in range(n_weeks):
        active[:, :, t] = ndtr(state) < chance[:, :, t]
        state = tie * state + np.sqrt(1.0 - tie**2) * rng.normal(size=state.shape)
    level = picture["size"] + picture["effect"][n_features:] * standing
    level = level + picture["between"][n_features:] * rest[n_features:] * normal[:, n_features:]
    bound = np.log1p(picture["highs"])
    size = np.zeros((n, n_features, n_weeks))
    for f in range(n_features):
        shape = _gamma_shape((picture["within"][f] * bound[f]) ** 2)
        drawn = np.log(rng.gamma(shape, size=(n, n_weeks)) + 1e-12) - digamma(shape)
        size[:, f] = level[:, f, None] + drawn / bound[f]
    return table(picture, size, active)


def _logistic(picture: dict[str, Any]) -> tuple[Floats, Floats, Floats]:
    """Mean and spread of the log-odds that give the shares and how they differ; the slope of the share."""
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    centres, spreads, slopes = [], [], []
    for share, sd in zip(picture["active"], picture["between"], strict=False):
        centre, spread = float(logit(share)), 1.0
        for _ in range(60):
            chance = expit(centre + spread * points)
            slope = float(weights @ (chance * (1.0 - chance)))
            found = float(np.sqrt(weights @ (chance - weights @ chance) ** 2))
            centre = float(np.clip(centre + 0.7 * (share - weights @ chance) / slope, -9.0, 9.0))
            spread = float(np.clip(spread * (sd / max(found, 1e-6)) ** 0.7, 0.05, 5.0))
        chance = expit(centre + spread * points)
        centres.append(centre)
        spreads.append(spread)
        slopes.append(float(weights @ (chance * (1.0 - chance))))
    return np.array(centres), np.array(spreads), np.array(slopes)


def _gamma_shape(variance: float) -> float:
    """The shape whose logarithm has this variance."""
    if variance <= polygamma(1, 1e3):
        return 1e3
    return float(brentq(lambda shape: float(polygamma(1, shape)) - variance, 0.05, 1e3))
