"""Answers from noisy counts: counts, shares, histograms, quantiles."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from understudy.desk.private.answers import Answer, Estimate
from understudy.desk.private.intervals import (
    Z,
    clipped,
    quantile_interval,
    ratio_interval,
    ratio_noise,
)
from understudy.desk.private.measurements import Axis, Cells, Noisy
from understudy.desk.private.questions import Count, Histogram, Proportion, Quantile
from understudy.desk.private.schema import Schema

_N_BINS = 10
# Steps of the grid on which a quantile is looked for.
_FEWEST_STEPS, _MOST_STEPS = 4, 200


def count_cells(question: Count) -> Cells:
    """The table that is asked for."""
    return Cells(tuple(Axis(name) for name in question.by))


def proportion_cells(column: str, by: str | None) -> Cells:
    """Groups by categories."""
    return Cells(tuple(Axis(name) for name in (by, column) if name is not None))


def histogram_cells(question: Histogram, schema: Schema) -> Cells:
    """Bins from bound to bound."""
    low, high = schema.number(question.column)
    edges = question.edges or tuple(np.linspace(low, high, _N_BINS + 1).tolist())
    return Cells((Axis(question.column, tuple(sorted({low, *edges, high}))),))


def quantile_cells(question: Quantile, schema: Schema, n_learners: int, mu: float) -> Cells:
    """A grid from bound to bound, as fine as the noise allows: a step is about what the noise hides.

    With m steps the noise of the number of learners below the middle is sqrt(m / 2) / mu, and a step holds n / m of
    them: the two meet near m = (n mu)^(2/3). All of it is public.
    """
    low, high = schema.number(question.column)
    n_steps = round(min(max((n_learners * mu / math.sqrt(2.0)) ** (2 / 3), _FEWEST_STEPS), _MOST_STEPS))
    return Cells((Axis(question.column, tuple(np.linspace(low, high, n_steps + 1).tolist())),))


def count_answer(question: Count | Histogram, cells: Cells, noisy: Noisy, schema: Schema, n: int) -> Answer:
    """Counts of the learners in the table. Sampling has no part in them, and they add up to what is public."""
    sd = float(noisy.sd.flat[0])
    # The number of all learners is public: the least squares that fit it take off the same from every cell.
    n_cells = noisy.values.size
    values = noisy.values + (n - noisy.values.sum()) / n_cells
    noise = sd * math.sqrt(1.0 - 1.0 / n_cells)
    possible = (0.0, float(n))
    found = []
    for place, names in _cells_of(cells, schema):
        value = float(values[place])
        low, high = clipped(value - Z * noise, possible), clipped(value + Z * noise, possible)
        found.append(Estimate(names, clipped(value, possible), low, high, noise, possible))
    return Answer(question, tuple(found), notes=_bounds_note(cells, schema))


def share_estimates(
    column: str, by: str | None, noisy: Noisy, schema: Schema, n: int
) -> tuple[Estimate, ...]:
    """The share of each declared category among the learners of each declared group who have a value."""
    counts, sd = (noisy.values if by is not None else noisy.values[None]), float(noisy.sd.flat[0])
    categories = schema.categories(column)
    # Other values count as learners of the group, cells without a value do not.
    n_known = len(categories) + (1 if schema.column(column).values else 0)
    public = by is None and column in schema.complete
    groups = (None,) if by is None else schema.categories(by)
    found = []
    for row, group in zip(counts, groups, strict=False):
        learners = float(n) if public else float(row[:n_known].sum())
        # A cell is one of those that the learners of the group are added up from: both have its noise.
        noise = {
            "total_sd": sd,
            "n_sd": 0.0 if public else sd * math.sqrt(n_known),
            "covariance": 0.0 if public else sd**2,
        }
        for place, category in enumerate(categories):
            total = float(row[place])
            name = f"{column} = {category}" if group is None else f"{column} = {category}, {by} = {group}"
            low, high = ratio_interval(total, learners, variance=None, possible=(0.0, 1.0), **noise)
            value = clipped(total / learners if learners > 0 else 0.5, (low, high))
            found.append(Estimate(name, value, low, high, ratio_noise(total, learners, **noise), (0.0, 1.0)))
    return tuple(found)


def proportion_answer(question: Proportion, noisy: Noisy, schema: Schema, n: int) -> Answer:
    """Shares, with the chance of sampling."""
    found = share_estimates(question.column, question.by, noisy, schema, n)
    complete = question.column in schema.complete
    notes = () if complete else (f"Learners without '{question.column}' are left out.",)
    return Answer(question, found, notes=notes)


def quantile_answer(question: Quantile, cells: Cells, noisy: Noisy, schema: Schema, n: int) -> Answer:
    """Quantiles of the learners who have a value."""
    edges = np.array(cells.axes[0].edges)
    possible = (float(edges[0]), float(edges[-1]))
    sd, n_steps, n_cells = float(noisy.sd.flat[0]), len(edges) - 1, noisy.values.size
    values = noisy.values + (n - noisy.values.sum()) / n_cells
    total = max(float(values[:n_steps].sum()), 1.0)
    below = np.concatenate([[0.0], np.cumsum(values[:n_steps])]) / total
    # Of m cells, k are below an edge. If all learners are in them, what their sum is off by was taken off all alike: a
    # bridge from edge to edge. If not, total and sum share the noise of k cells: (1 - F) of it, and F of the others'.
    k = np.arange(n_steps + 1)
    part = k / n_steps if question.column in schema.complete else np.clip(below, 0.0, 1.0)
    below_sd = sd * np.sqrt(k * (1.0 - part) ** 2 + (n_steps - k) * part**2) / total
    rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2.0
    found = []
    for share in question.at:
        value = float(np.interp(share, rising, edges))
        low, high = quantile_interval(share, edges, below, below_sd, total)
        place = int(np.clip(np.searchsorted(edges, value, side="right") - 1, 0, n_steps - 1))
        density = max(float(rising[place + 1] - rising[place]), 1.0 / total) / (edges[1] - edges[0])
        noise = float(max(below_sd[place], below_sd[place + 1])) / density
        name = f"{question.column}, {100 * share:g} %"
        found.append(Estimate(name, clipped(value, (low, high)), low, high, noise, possible))
    note = f"On a grid of {n_steps} steps; the ends of intervals are steps of it."
    return Answer(question, tuple(found), notes=(note, *_bounds_note(cells, schema)))


def _cells_of(cells: Cells, schema: Schema) -> list[tuple[tuple[int, ...], str]]:
    axes = [list(enumerate(axis.names(schema))) for axis in cells.axes]
    return [
        (
            tuple(place for place, _ in combination),
            ", ".join(
                f"{axis.column} {name}" if axis.edges else f"{axis.column} = {name}"
                for axis, (_, name) in zip(cells.axes, combination, strict=True)
            ),
        )
        for combination in product(*axes)
    ]


def _bounds_note(cells: Cells, schema: Schema) -> tuple[str, ...]:
    """That numbers were cut to the bounds of their column."""
    (axis, *_) = cells.axes
    if not axis.edges:
        return ()
    low, high = schema.number(axis.column)
    return (f"Numbers below {low:g} or above {high:g} count as these.",)
