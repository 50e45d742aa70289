"""`timing` and `timing-likelihood`: do the synthetic times give away when the learner worked, or how fast?

The attacker's story: Bob sat next to Ada. He knows that she began on Tuesday at a quarter past ten, that she needed 41
seconds and then 7, and which evenings she works. A time is a fingerprint like no other: hardly two learners click at
the same second.

`timing` looks for Ada's fingerprints among the synthetic rows: exact times, actions at a minute and at an hour, two
gaps in a row, and a gap between two actions. Those that hardly any other learner has are counted, less what equally
rare ones of other learners are found by chance. So it finds times that were kept, shifted or rounded.

`timing-likelihood` asks how much more probable Ada's days, hours of the week, gaps by kind of step, pauses, start and
end are in the synthetic log than among all other learners: a ratio of densities with a reference population, as in
`transitions`. So it finds a generator that learned her habits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.fingerprints import FingerprintTables, Occurrences, mixed
from understudy.logs.interactions import Interactions
from understudy.logs.schedule import Schedule

Floats = NDArray[np.float64]

_MINUTE, _HOUR = 60_000_000, 3_600_000_000
# Classes of gaps within a session and of pauses between two, on logarithmic scales.
N_GAPS, N_PAUSES = 24, 16
LONGEST_PAUSE = 366 * 86400.0


class TimingTable:
    """When the learners of a population worked."""

    def __init__(self, population: Interactions) -> None:
        assert population.term is not None
        self._minutes = population.term.session_minutes
        self._edges = gap_edges(population)
        self._exact = FingerprintTables(self._moments(population), population.n_learners)
        self._habits = FingerprintTables(self._laws(population), population.n_learners)

    def rare_learners(self, most: int) -> NDArray[np.bool_]:
        """Learners with an exact time that at most so many share."""
        return self._exact.tables[0].rare_learners(most)

    def scores(self, synthetic: Interactions) -> dict[str, Floats]:
        """The scores of each learner; none where the synthetic log tells no times."""
        if not synthetic.has_times:
            return {}
        return {
            "timing": self._exact.matches(self._moments(synthetic)),
            "timing-likelihood": self._habits.log_ratios(self._laws(synthetic)),
        }

    def _moments(self, log: Interactions) -> list[Occurrences]:
        """Exact times, actions at a minute and at an hour, two gaps in a row, gaps between actions."""
        schedule = Schedule(log, self._minutes)
        time, gap, action, learner = schedule.time, schedule.gap, log.action, log.learner
        goes_on = schedule.continues
        twice = np.flatnonzero(goes_on[1:] & goes_on[:-1]) + 1
        once = np.flatnonzero(goes_on)
        return [
            (learner, mixed(time)),
            (learner, mixed(time // _MINUTE, action)),
            (learner, mixed(time // _HOUR, action)),
            (learner[twice], mixed(gap[twice - 1], gap[twice])),
            (learner[once], mixed(action[once - 1], gap[once], action[once])),
        ]

    def _laws(self, log: Interactions) -> list[Occurrences]:
        """Days and hours of sessions, gaps by kind of step, pauses, first and last days."""
        schedule = Schedule(log, self._minutes)
        begins, goes_on = schedule.begins, schedule.continues
        pauses = begins & ~schedule.first
        learner = log.learner
        classes = gap_classes(schedule, self._edges)
        return [
            (learner[begins], mixed(schedule.day[begins])),
            (learner[begins], mixed(schedule.hour_of_week[begins])),
            (learner[goes_on], mixed(classes[goes_on], schedule.step_kind[goes_on])),
            (learner[pauses], mixed(classes[pauses])),
            (schedule.active, mixed(schedule.day[schedule.starts])),
            (schedule.active, mixed(schedule.day[schedule.stops])),
        ]


def gap_edges(log: Interactions) -> Floats:
    """Edges of the classes of gaps: fine up to the pause that ends a session, coarse beyond; all of it declared."""
    assert log.term is not None
    limit = 60.0 * log.term.session_minutes
    least = min(log.term.resolution, limit / 2)
    within = np.geomspace(least, limit, N_GAPS)
    beyond = np.geomspace(limit, max(LONGEST_PAUSE, 2 * limit), N_PAUSES)[1:]
    return np.concatenate([within, beyond])


def gap_classes(schedule: Schedule, edges: Floats) -> NDArray[np.int64]:
    """The class of each gap; one on an edge belongs to the class below, so that pauses have classes of their own."""
    return np.searchsorted(edges, schedule.gap, side="left")
