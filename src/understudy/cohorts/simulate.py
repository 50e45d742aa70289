"""A simulated school: three years of a cohort that never existed, with habits that are known.

Minutes are zero-inflated and heavy-tailed; learners differ in how active and how regular they
are; weeks have a rhythm (a slow start, a holiday, a rise before the exam); what a learner does
one week they tend to do the next; achievement goes with evening and afternoon work and with
regularity, and against work overnight. From year to year activity drifts. The effects are
fixed here before any generator is written, and are not tuned to a method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import Schema

CONTEXT = (
    "Minutes that seventh-grade students spent with an electronic textbook in mathematics, by time of day and "
    "week of one term, and their result in the exam at its end in three bins."
)
SCHEMA = Schema(title="A simulated school", context=CONTEXT, cuts=(48.0, 62.0))

# Morning (lessons), afternoon, evening, overnight: logit of being active in a week, mean log-minutes.
_ACTIVE = np.array([1.0, -0.3, -0.6, -3.2])
_LOG_MINUTES = np.array([3.4, 2.7, 2.9, 2.2])
_LOG_SPREAD = np.array([0.5, 0.9, 1.0, 0.9])
# What a learner's drive and regularity (standard normal, correlated with the score) do to each window.
_DRIVE_ACTIVE = np.array([0.3, 0.8, 1.0, 0.2])
_DRIVE_MINUTES = np.array([0.1, 0.3, 0.45, 0.1])
# What the score itself adds: evenings and afternoons for it, overnight against it.
_SCORE_ACTIVE = np.array([0.1, 0.45, 0.8, -0.6])
_SCORE_MINUTES = np.array([0.0, 0.15, 0.3, -0.2])
_PERSISTENCE = 1.2


@dataclass(frozen=True)
class School:
    """How many learners a year has, and how its habits drift from one year to the next."""

    n_learners: int = 120
    schema: Schema = SCHEMA
    drift: float = 0.25

    def simulate(self, year: int, rng: np.random.Generator) -> Cohort:
        """The cohort of a year, 0 being the first."""
        n, n_weeks = self.n_learners, self.schema.n_weeks
        drive = rng.normal(size=n)
        regular = rng.normal(size=n)
        score = np.clip(55.0 + 15.0 * (0.45 * drive + 0.25 * regular + 0.85 * rng.normal(size=n)), 0.0, 100.0)
        standing = (score - 55.0) / 15.0
        week = np.arange(n_weeks)
        rhythm = 0.5 * np.sin(2 * np.pi * (week - 2) / n_weeks) + 0.6 * (week >= n_weeks - 3)
        rhythm = rhythm - 1.5 * (week == n_weeks // 2)  # the holiday
        change = self.drift * year * np.array([0.2, 0.6, 1.0, 0.4])
        logit = (
            (_ACTIVE + change)[None, :, None]
            + (drive[:, None] * _DRIVE_ACTIVE + standing[:, None] * _SCORE_ACTIVE)[:, :, None]
            + rhythm[None, None, :]
        )
        active = np.zeros((n, 4, n_weeks), dtype=bool)
        before = rng.random((n, 4)) < 0.5
        for t in range(n_weeks):
            # The more regular a learner, the more last week decides.
            habit = (_PERSISTENCE * (1.0 + 0.3 * regular))[:, None] * (before - 0.5)
            chance = 1.0 / (1.0 + np.exp(-(logit[:, :, t] + habit)))
            active[:, :, t] = rng.random((n, 4)) < chance
            before = active[:, :, t]
        centre = (
            (_LOG_MINUTES + 0.3 * change)[None, :, None]
            + (drive[:, None] * _DRIVE_MINUTES + standing[:, None] * _SCORE_MINUTES)[:, :, None]
            + 0.3 * rng.normal(size=(n, 4))[:, :, None]
            + 0.25 * rhythm[None, None, :]
        )
        minutes = np.exp(rng.normal(centre, _LOG_SPREAD[None, :, None]))
        assert self.schema.cuts is not None
        label = np.searchsorted(self.schema.cuts, score, side="right").astype(np.int8)
        return Cohort(np.where(active, minutes, 0.0), label, self.schema, simulated=True)

    def years(self, rng: np.random.Generator, n_years: int = 3) -> list[Cohort]:
        """Consecutive years, each with new learners."""
        return [self.simulate(year, rng) for year in range(n_years)]
