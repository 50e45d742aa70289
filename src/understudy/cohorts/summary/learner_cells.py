"""What each learner adds to the noisy sums of a summary, in units of their noise: for attacks and for their price.

`habits` is centred by the noisy levels that were released with it. A summary that was combined with an earlier
year's counts by its own measurement: its noisy sums are no longer known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.summary.previous_year import own_noise
from understudy.cohorts.summary.statistics import MEASURES, Measure, habits_around
from understudy.cohorts.summary.summary_file import PrivateSummary

Floats = NDArray[np.float64]


def measures_of(summary: PrivateSummary) -> list[Measure]:
    """The statistics that a summary holds, as they were measured."""
    return [_measure(name, summary) for name in summary.statistics]


def added_by_learners(summary: PrivateSummary, cohort: Cohort) -> Floats:
    """What each learner would add to each cell: learners x cells, noise of variance 1 in each."""
    return np.hstack(
        [
            measure.learner_cells(cohort) / measure.cell_noise(own_noise(summary.statistics[measure.name]))
            for measure in measures_of(summary)
        ]
    )


def released_cells(summary: PrivateSummary) -> Floats:
    """The noisy sums of a summary, in the same order and units."""
    return np.concatenate(
        [
            measure.cells(found.values) / measure.cell_noise(own_noise(found))
            for measure, found in zip(measures_of(summary), summary.statistics.values(), strict=True)
        ]
    )


def _measure(name: str, summary: PrivateSummary) -> Measure:
    if name == "habits":
        context = summary.statistics[name].context
        centres = (np.array(context[key], dtype=np.float64) for key in ("centre_active", "centre_l"))
        return habits_around(summary.schema, *centres)
    return MEASURES[name](summary.schema, summary.statistics)
