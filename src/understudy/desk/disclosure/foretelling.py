"""What the answers that lack learners foretell: the full answer, and the answers without one.

T_i + T_j - T_ij foretells T: for an honest statistic two learners left out act nearly like the sum of both. The
middle of what all pairs foretell is what leaves the desk, so that code which knows the full data, by its number of
rows or otherwise, cannot write into it. One step deeper, T_ij + T_ik - T_ijk foretells T_i. Of numbers that go
through orders of magnitude, such as p values, logarithms are foretold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.desk.disclosure.probing import Probes
from understudy.desk.domain.results import Floats

# From so many pairs on there is a middle.
LEAST_FORETELLINGS = 4
# So many of the foretellings are within what is called their scatter. With a half, a number that jumps for a third of
# all runs would not scatter at all.
WITHIN = 80
# Between the largest and the smallest value that a number takes without somebody: from here on ratios are compared.
ORDERS = 3.0


@dataclass(frozen=True, eq=False)
class Foretold:
    """Of each number (d,); NaN where too few pairs have it."""

    values: Floats
    """The middle of what pairs foretell."""
    scatter: Floats
    """How far most foretellings are from their middle."""
    lowest: Floats
    highest: Floats
    spread: Floats
    """Standard deviation of all foretellings."""
    deeper: Floats
    """How far the answers without one learner are from the middle of what triples foretell for them."""
    bend: Floats
    """How far most of them are from what is foretold: the error of foretelling itself."""

    @property
    def error(self) -> Floats:
        """(d,) by how much a foretelling may be off, for an honest statistic; 0 where none is known."""
        return np.fmax(np.fmax(self.scatter, self.bend), 0.0)


def foretold_by(probes: Probes) -> Foretold:
    """All foretellings of the probes."""
    d = len(probes.names)
    if not d or not len(probes.triples):
        # Texts alone, or too few learners.
        return Foretold(*(np.full(d, np.nan) for _ in range(7)))
    ratios = _by_ratio(probes)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two, three = (
            np.where(ratios, np.log(values), values)
            for values in (probes.without_one, probes.without_two, probes.without_three)
        )
    every = one[probes.pairs].sum(axis=1) - two
    q = len(probes.triples)
    first, second, third = two[:q], two[q : 2 * q], two[2 * q :]
    below = np.stack([first + second, first + third, second + third], axis=1) - three[:, None, :]
    missed = (one[probes.triples] - below).reshape(3 * q, d)
    enough = (~np.isnan(every)).sum(axis=0) >= LEAST_FORETELLINGS
    deep_enough = (~np.isnan(missed)).sum(axis=0) >= LEAST_FORETELLINGS
    middle, scatter, lowest, highest, spread, deeper, bend = (np.full(d, np.nan) for _ in range(7))
    seen, seen_deep = every[:, enough], missed[:, deep_enough]
    middle[enough] = np.nanmedian(seen, axis=0)
    scatter[enough] = np.nanpercentile(np.abs(seen - middle[enough]), WITHIN, axis=0)
    lowest[enough], highest[enough] = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
    spread[enough] = np.nanstd(seen, axis=0)
    deeper[deep_enough] = np.nanmedian(seen_deep, axis=0)
    bend[deep_enough] = np.nanpercentile(np.abs(seen_deep), WITHIN, axis=0)
    with np.errstate(over="ignore"):
        values, lowest, highest = (np.where(ratios, np.exp(one), one) for one in (middle, lowest, highest))
        scatter, spread, deeper, bend = (
            np.where(ratios, values * np.expm1(one), one) for one in (scatter, spread, deeper, bend)
        )
    return Foretold(values, scatter, lowest, highest, spread, deeper, bend)


def _by_ratio(probes: Probes) -> NDArray[np.bool_]:
    """(d,) what is above 0 in every run, by several times as much in one as in another. The full run does not say."""
    if not len(probes.pairs):
        return np.zeros(len(probes.names), dtype=bool)
    runs = np.concatenate([probes.without_one, probes.without_two, probes.without_three])
    least, most = np.fmin.reduce(runs, axis=0), np.fmax.reduce(runs, axis=0)
    return np.asarray((least > 0) & (most > ORDERS * least))
