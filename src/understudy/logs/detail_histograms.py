"""When learners work and what declared columns hold: histograms of two logs, and how they are drawn.

Like those of `histograms`, which adds them to its own where both logs have times or columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.core.pages.charts import Drawing
from understudy.core.pages.week_map import week_map
from understudy.logs.column_codes import ColumnCodes
from understudy.logs.declared.columns import Column
from understudy.logs.interactions import Interactions
from understudy.logs.schedule import Schedule

Bin = dict[str, Any]
Logs = Mapping[str, Interactions]

# Bins of the time since the row before, by what a reader calls them: their upper ends in seconds.
_GAPS = {
    "1 s": 1.0,
    "5 s": 5.0,
    "20 s": 20.0,
    "1 min": 60.0,
    "5 min": 300.0,
    "30 min": 1800.0,
    "6 h": 6 * 3600.0,
    "1 day": 86400.0,
    "1 week": 7 * 86400.0,
}
LONGER = "longer"
# Weeks of a term that are shown; what is later counts as the last.
MOST_WEEKS = 60
# What the name of a column's histogram begins with.
COLUMN = "column "


def time_histograms(logs: Logs) -> dict[str, list[Bin]]:
    """Hours of the week, gaps, and the share of learners still active, if all logs have times."""
    if not all(log.has_times and log.n_rows for log in logs.values()):
        return {}
    schedules = {name: Schedule(log) for name, log in logs.items()}
    return {"hours": _hours(schedules), "gaps": _gaps(schedules), "active": _active(logs, schedules)}


def _hours(schedules: Mapping[str, Schedule]) -> list[Bin]:
    shares = {name: schedule.hour_shares for name, schedule in schedules.items()}
    n_hours = len(next(iter(shares.values())))
    return [
        {"at": hour, **{name: float(share[hour]) for name, share in shares.items()}}
        for hour in range(n_hours)
    ]


def _gaps(schedules: Mapping[str, Schedule]) -> list[Bin]:
    edges = np.array(list(_GAPS.values()))
    labels = [*_GAPS, LONGER]
    counts = {
        name: np.bincount(np.searchsorted(edges, schedule.gap[~schedule.first]), minlength=len(labels))
        for name, schedule in schedules.items()
    }
    return [
        {
            "at": label,
            **{name: float(count[place] / max(count.sum(), 1)) for name, count in counts.items()},
        }
        for place, label in enumerate(labels)
    ]


def _active(logs: Logs, schedules: Mapping[str, Schedule]) -> list[Bin]:
    """Share of learners who have a row in this week or a later one; weeks are counted from the first of any log."""
    first = min(int(schedule.week.min()) for schedule in schedules.values())
    last = {
        name: np.minimum(schedule.week[schedule.stops] - first, MOST_WEEKS - 1)
        for name, schedule in schedules.items()
    }
    n_weeks = 1 + max(int(weeks.max()) for weeks in last.values())
    return [
        {
            "at": week + 1,
            **{name: float(np.sum(weeks >= week) / logs[name].n_learners) for name, weeks in last.items()},
        }
        for week in range(n_weeks)
    ]


def column_histograms(logs: Logs) -> dict[str, list[Bin]]:
    """Shares of values, one histogram for each column that all logs have; of numbers in bins."""
    by_name = {name: {column.declared.name: column for column in log.columns} for name, log in logs.items()}
    shared = set.intersection(*(set(columns) for columns in by_name.values())) if by_name else set()
    first = next(iter(logs.values()))
    return {
        f"{COLUMN}{column.declared.name}": _values(
            {name: by_name[name][column.declared.name] for name in logs}
        )
        for column in first.columns
        if column.declared.name in shared
    }


def _values(columns: Mapping[str, Column]) -> list[Bin]:
    classes = ColumnCodes(*columns.values())
    shares = {
        name: np.bincount(classes.of(column), minlength=classes.n_codes) / max(len(column.cells), 1)
        for name, column in columns.items()
    }
    return [
        {"at": label, **{name: float(share[place]) for name, share in shares.items()}}
        for place, label in enumerate(classes.labels)
        if any(share[place] > 0 for share in shares.values())
    ]


def week_maps(found: list[Bin], titles: Mapping[str, str]) -> dict[str, Drawing]:
    """The week of each log, in the same colours."""
    highest = max(place[name] for place in found for name in titles)
    return {
        title: week_map([place[name] for place in found], highest=highest) for name, title in titles.items()
    }
