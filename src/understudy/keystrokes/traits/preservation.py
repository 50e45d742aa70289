"""What coarser typing still teaches: speed by digraph, its link with an outcome, who is faster than whom.

Intervals (95 %) are over learners and come from the jackknife: the figure without each learner in turn.
They need no random numbers, so the same profiles always give the same interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, rankdata

from understudy.errors import DataError

Floats = NDArray[np.float64]

LEVEL = 0.95
MIN_LEARNERS = 3  # for a correlation to have an interval
N_TOGETHER = 500  # learners whose pairs are held in memory at once


@dataclass(frozen=True)
class PreservedFigure:
    """A figure with its 95 % interval over learners; nan where it is not defined."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """The figure for a machine."""
        return {name: None if np.isnan(one) else one for name, one in vars(self).items()}


@dataclass(frozen=True)
class Preserved:
    """What is left after coarsening.

    `digraph_error` is the mean over digraphs of the absolute change of the learners' mean latency, in
    milliseconds, and `digraph_error_relative` the same in shares of that latency. `link_original`,
    `link_coarse` and `link_change` are Pearson's correlation of speed with the outcome before, after, and
    the difference (None without an outcome). `kendall` (tau-b, so ties count against it) and `spearman`
    compare the order of learners by speed before and after; `tied_pairs` is the share of pairs
    of learners that coarsening made equally fast. A correlation with something constant is nan.
    """

    n_learners: int
    n_digraphs: int
    digraph_error: PreservedFigure
    digraph_error_relative: PreservedFigure
    n_with_outcome: int
    link_original: PreservedFigure | None
    link_coarse: PreservedFigure | None
    link_change: PreservedFigure | None
    kendall: PreservedFigure
    spearman: PreservedFigure
    tied_pairs: float

    def to_json(self) -> dict[str, Any]:
        """The figures for a machine."""
        return {
            name: one.to_json() if isinstance(one, PreservedFigure) else one
            for name, one in vars(self).items()
        }


def preserved(
    original_profiles: Floats,
    coarse_profiles: Floats,
    speed_original: ArrayLike,
    speed_coarse: ArrayLike,
    outcome: ArrayLike | None = None,
) -> Preserved:
    """Compare profiles (learners x digraphs, in ms) and speeds of the same learners before and after.

    `outcome` is a number per learner, nan where it is not known; these count for the rest only.
    """
    before = np.asarray(original_profiles, dtype=np.float64)
    after = np.asarray(coarse_profiles, dtype=np.float64)
    speed, coarse = (np.asarray(one, dtype=np.float64) for one in (speed_original, speed_coarse))
    result = None if outcome is None else np.asarray(outcome, dtype=np.float64)
    _check(before, after, speed, coarse, result)
    absolute, relative = _digraph_errors(before, after)
    kendall, spearman = _orders(speed, coarse)
    links: tuple[PreservedFigure | None, ...] = (None, None, None)
    n_known = 0
    if result is not None:
        known = np.isfinite(result)
        n_known = int(known.sum())
        links = _links(speed[known], coarse[known], result[known])
    return Preserved(
        n_learners=len(before),
        n_digraphs=before.shape[1],
        digraph_error=absolute,
        digraph_error_relative=relative,
        n_with_outcome=n_known,
        link_original=links[0],
        link_coarse=links[1],
        link_change=links[2],
        kendall=kendall,
        spearman=spearman,
        tied_pairs=_tied_share(coarse) - _tied_share(speed),
    )


def _check(before: Floats, after: Floats, speed: Floats, coarse: Floats, outcome: Floats | None) -> None:
    if before.ndim != 2 or before.shape != after.shape or not before.shape[1]:
        raise DataError(
            f"profiles of shapes {before.shape} and {after.shape} cannot be compared.",
            hint="give the same learners and digraphs before and after coarsening.",
        )
    for name, one in (("speeds before", speed), ("speeds after", coarse), ("outcomes", outcome)):
        if one is not None and one.shape != (len(before),):
            raise DataError(f"there are {one.size} {name} for {len(before)} learners.")
    if len(before) < MIN_LEARNERS:
        raise DataError(f"a comparison of typing needs {MIN_LEARNERS} learners; found {len(before)}.")
    if not all(np.isfinite(one).all() for one in (before, after, speed, coarse)):
        raise DataError(
            "profiles or speeds hold values that are not numbers.",
            hint="replace missing latencies by the learner's average speed, and leave out learners who typed nothing.",
        )


def _jackknife(value: float, without: Floats, bounds: tuple[float, float]) -> PreservedFigure:
    """The value with the interval from its values without each learner, kept within its bounds."""
    half = _half_width(without)
    if np.isnan(value + half):
        return PreservedFigure(value, *(2 * [float("nan")] if np.isnan(value) else bounds))
    return PreservedFigure(value, max(bounds[0], value - half), min(bounds[1], value + half))


def _half_width(without: Floats) -> float:
    """1.96 jackknife errors; nan if the figure is not defined without some learner."""
    n = len(without)
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    return float(norm.ppf(0.5 + LEVEL / 2) * error)


def _digraph_errors(before: Floats, after: Floats) -> tuple[PreservedFigure, PreservedFigure]:
    """Mean over digraphs of |mean after - mean before|, in ms and in shares of the mean before."""
    n = len(before)
    change, level = after - before, before

    def errors(change_sum: Floats, level_sum: Floats, n_left: int) -> tuple[Floats, Floats]:
        absolute = np.abs(change_sum) / n_left
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = absolute / (np.abs(level_sum) / n_left)
        return absolute.mean(axis=-1), relative.mean(axis=-1)

    whole = errors(change.sum(axis=0), level.sum(axis=0), n)
    without = errors(change.sum(axis=0) - change, level.sum(axis=0) - level, n - 1)
    absolute, relative = (
        _jackknife(float(value), left, (0.0, np.inf)) for value, left in zip(whole, without, strict=True)
    )
    return absolute, relative


def _pearson(x: Floats, y: Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    return float(np.clip(x @ y / scale, -1.0, 1.0)) if scale > 0 else float("nan")


def _pearson_without_each(x: Floats, y: Floats) -> Floats:
    """Correlation without each learner; x and y are centred, so their sums over all learners are 0."""
    n = len(x)
    x, y = x - x.mean(), y - y.mean()
    cross = x @ y - x * y * n / (n - 1)
    square_x, square_y = (one @ one - one**2 * n / (n - 1) for one in (x, y))
    least = 1e-12 * (x @ x) * (y @ y)
    scale = square_x * square_y
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > least, np.clip(cross / np.sqrt(scale), -1.0, 1.0), np.nan)


def _links(
    speed: Floats, coarse: Floats, outcome: Floats
) -> tuple[PreservedFigure, PreservedFigure, PreservedFigure]:
    if len(outcome) < MIN_LEARNERS:
        raise DataError(
            f"a correlation with an outcome needs {MIN_LEARNERS} learners who have one; found {len(outcome)}."
        )
    values = [_pearson(one, outcome) for one in (speed, coarse)]
    without = [_pearson_without_each(one, outcome) for one in (speed, coarse)]
    original, blurred = (_on_fisher_scale(*one) for one in zip(values, without, strict=True))
    change = _jackknife(values[1] - values[0], without[1] - without[0], (-2.0, 2.0))
    return original, blurred, change


def _on_fisher_scale(value: float, without: Floats) -> PreservedFigure:
    """Interval of a correlation on the scale of arctanh, where its error hardly depends on it."""
    if abs(value) >= 1.0:
        return PreservedFigure(value, value, value)
    inside = np.clip(without, -1 + 1e-12, 1 - 1e-12)
    half = _half_width(np.arctanh(inside))
    return PreservedFigure(
        value, float(np.tanh(np.arctanh(value) - half)), float(np.tanh(np.arctanh(value) + half))
    )


def _orders(x: Floats, y: Floats) -> tuple[PreservedFigure, PreservedFigure]:
    """Kendall's tau-b and Spearman's rho, and both without each learner, from the signs of all pairs."""
    n = len(x)
    ranks_x, ranks_y = rankdata(x), rankdata(y)
    agree, apart_x, apart_y, rho = (np.empty(n) for _ in range(4))
    for start in range(0, n, N_TOGETHER):
        rows = slice(start, start + N_TOGETHER)
        sign_x, sign_y = np.sign(x[rows, None] - x), np.sign(y[rows, None] - y)
        agree[rows] = (sign_x * sign_y).sum(axis=1)
        apart_x[rows], apart_y[rows] = np.abs(sign_x).sum(axis=1), np.abs(sign_y).sum(axis=1)
        # Without learner i, learners above lose a rank and those with the same value half of one.
        left_x, left_y = ranks_x - 0.5 + 0.5 * sign_x, ranks_y - 0.5 + 0.5 * sign_y
        i = np.arange(len(left_x))
        left_x[i, i + start] = left_y[i, i + start] = n / 2  # the mean of the others' ranks: adds nothing
        left_x -= n / 2
        left_y -= n / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = np.sqrt((left_x**2).sum(axis=1) * (left_y**2).sum(axis=1))
            rho[rows] = (left_x * left_y).sum(axis=1) / scale
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = float(agree.sum() / np.sqrt(apart_x.sum() * apart_y.sum()))
        scale = np.sqrt((apart_x.sum() - 2 * apart_x) * (apart_y.sum() - 2 * apart_y))
        taus = (agree.sum() - 2 * agree) / scale
    return (
        _jackknife(tau, taus, (-1.0, 1.0)),
        _jackknife(_pearson(ranks_x, ranks_y), rho, (-1.0, 1.0)),
    )


def _tied_share(x: Floats) -> float:
    """The share of pairs of learners with the same value."""
    n = len(x)
    counts = np.unique(x, return_counts=True)[1].astype(np.float64)
    return float(np.sum(counts * (counts - 1)) / (n * (n - 1)))
