"""A small table of learners who never existed, and its public schema, for the tests of private answers."""

import numpy as np
import polars as pl

from understudy.desk.private import Schema
from understudy.logs.declared.columns import Declared

SCHOOLS = ("north", "south", "west")
SCHEMA = Schema(
    (
        Declared("minutes", "number", "learner", low=0.0, high=600.0, unit="minutes"),
        Declared("grade", "number", "learner", low=0.0, high=100.0),
        Declared("school", "category", "learner", values=SCHOOLS),
        Declared("passed", "yes/no", "learner"),
        Declared("hours", "number", "learner", low=-5.0, high=5.0),
    ),
    complete=("minutes", "grade", "passed"),
)
# What the table is drawn with.
GRADE_BY_MINUTE, GRADE_OF_SOUTH = 0.05, 4.0
LOG_ODDS_BY_MINUTE, LOG_ODDS_OF_WEST = 0.006, -0.5


def table(n: int, seed: int = 0) -> pl.DataFrame:
    """Learners of three schools; a tenth have no hours, and every value lies within its bounds."""
    rng = np.random.default_rng(seed)
    school = rng.choice(SCHOOLS, n, p=[0.45, 0.3, 0.25])
    minutes = 600.0 * rng.beta(2.0, 4.0, n)
    noise = 10.0 * np.clip(rng.normal(size=n), -3.0, 3.0)
    grade = 35.0 + GRADE_BY_MINUTE * minutes + GRADE_OF_SOUTH * (school == "south") + noise
    log_odds = -1.0 + LOG_ODDS_BY_MINUTE * minutes + LOG_ODDS_OF_WEST * (school == "west")
    hours = np.clip(rng.normal(0.0, 1.5, n) + 0.004 * (minutes - 200.0), -5.0, 5.0)
    return pl.DataFrame(
        {
            "learner": [f"learner-{i}" for i in range(n)],
            "minutes": minutes,
            "grade": grade,
            "school": school,
            "passed": rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds)),
            "hours": pl.Series(hours, dtype=pl.Float64).set(pl.Series(rng.random(n) < 0.1), None),
        }
    )


def analyze(ask):
    """One of every kind of question."""
    ask.count("school", "passed")
    ask.proportion("passed", by="school")
    ask.proportion("school")
    ask.histogram("minutes", [100, 200, 300])
    ask.quantiles("minutes")
    ask.mean("grade")
    ask.mean("hours", by="school")
    ask.variance("grade", by="school")
    ask.correlations("minutes", "grade", "hours")
    ask.linear("grade", on=["minutes", "school"])
    ask.logistic("passed", on=["minutes", "school"])
    ask.compare("grade", by="school", groups=["north", "south"])
    ask.compare("grade", by="school", test="anova")
    ask.independence("passed", by="school")
