"""A simulated course as Moodle exports it: its log report and its gradebook, of people who never existed."""

from __future__ import annotations

import numpy as np
import polars as pl

from understudy.core.names import SIMULATED_PREFIX
from understudy.logs.interactions import Interactions

# Kinds of activities of a course, taken in turn; each with its component and what happens there.
_ACTIVITIES = (
    ("Quiz", "Quiz", "Course module viewed"),
    ("Page", "Page", "Course module viewed"),
    ("Forum", "Forum", "Discussion viewed"),
    ("Assignment", "Assignment", "The status of the submission has been viewed."),
)
# Moodle's English notation: day first, two digits of the year, no seconds.
_CLOCK = "%-d/%m/%y, %H:%M"
FULL_NAME = "User full name"


def moodle_report(log: Interactions) -> pl.DataFrame:
    """The log report of a simulated course, the newest row first, as Moodle writes it."""
    kinds = pl.DataFrame(_ACTIVITIES, schema=["kind", "component", "event"], orient="row")
    kind = kinds[(np.arange(log.n_actions) % len(_ACTIVITIES)).tolist()]
    activity = kind.with_columns(
        pl.format("{}: {}", "kind", pl.Series(log.actions)).alias("context"),
        pl.int_range(1, log.n_actions + 1).alias("module"),
    )[log.action]
    user = pl.Series("user", log.learner.astype(np.int64) + 1)
    report = activity.select(
        pl.Series("moment", log.time).alias("Time"),
        _full_names(log).gather(log.learner).alias(FULL_NAME),
        pl.lit("-").alias("Affected user"),
        pl.col("context").alias("Event context"),
        pl.col("component").alias("Component"),
        pl.col("event").alias("Event name"),
        pl.format(
            "The user with id '{}' viewed the activity with course module id '{}'.", user, "module"
        ).alias("Description"),
        pl.lit("web").alias("Origin"),
        # Addresses that are reserved for documentation.
        pl.format("192.0.2.{}", user % 250 + 1).alias("IP address"),
    )
    newest_first = report.sort("Time", descending=True, maintain_order=True)
    return newest_first.with_columns(pl.col("Time").dt.strftime(_CLOCK))


def moodle_gradebook(log: Interactions) -> pl.DataFrame:
    """The gradebook of the same course, with the final score of its learners."""
    number = pl.int_range(1, log.n_learners + 1, eager=True)
    (score,) = (column for column in log.learner_columns if column.declared.name == "final_score")
    written = pl.Series(score.cells).fill_nan(None).cast(pl.Int64).cast(pl.String)
    return pl.DataFrame(
        {
            "First name": pl.Series([SIMULATED_PREFIX.rstrip("-").capitalize()] * log.n_learners),
            "Last name": number.cast(pl.String),
            "ID number": number + 100_000,
            "Email address": pl.select(pl.format("learner{}@example.org", number)).to_series(),
            "Course total (Real)": written.fill_null("-"),
        }
    )


def _full_names(log: Interactions) -> pl.Series:
    names = moodle_gradebook(log)
    return names.select(pl.format("{} {}", "First name", "Last name")).to_series()
