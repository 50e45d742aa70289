"""Reading a log and scores is part of the guarantee of a cohort: no learner's rows decide for other learners."""

import json
from datetime import date, datetime, timedelta

import pytest

from tests.privacy.support.neighbours import (
    N_LEARNERS,
    NUMBERS,
    check_others,
    delimited,
    excel,
    latin,
    neighbours,
    parquet,
)
from understudy.cohorts.building.activity import read_activity
from understudy.cohorts.building.join import join
from understudy.cohorts.building.scores import read_scores
from understudy.cohorts.building.sessions import Term
from understudy.cohorts.cohort import read_cohort
from understudy.cohorts.schema import Schema
from understudy.core.events.read_options import CellOptions
from understudy.core.files.times import DateOrder, read_each_time

SCHEMA = Schema(n_weeks=3, cuts=(40.0, 60.0))
START = date(2024, 9, 2)
HEADER = ["user", "time", "context"]
MOODLE = ["User full name", "Time", "Event context"]
# How times are written, and the zone that they need.
WRITTEN = {
    "iso": ("%Y-%m-%d %H:%M:%S", None),
    "offset": ("%Y-%m-%dT%H:%M:%S+01:00", "Europe/Berlin"),
    "points": ("%d.%m.%Y %H:%M", None),
    "marks": ("%d/%m/%y, %H:%M", None),
    "words": ("%d %b, %H:%M", "Europe/Berlin"),
    "numbers": ("%s", "Europe/Berlin"),
}


def events(written):
    """Makes the rows of a learner: learner, time, context."""

    def rows(rng, name):
        days = [datetime(2024, 9, 2) + timedelta(minutes=rng.randrange(21 * 24 * 60)) for _ in range(6)]
        return [[name, day.strftime(WRITTEN[written][0]), "page"] for day in days]

    return rows


def xapi(rows):
    return "\n".join(
        json.dumps({"actor": {"account": {"homePage": "h", "name": user}}, "timestamp": time})
        for user, time, _ in rows
    ).encode()


FORMATS = {
    "csv": delimited(",", HEADER),
    "csv in latin": latin(HEADER),
    "moodle": delimited(",", MOODLE),
    "tsv": delimited("\t", HEADER),
    "excel": excel(HEADER),
    "parquet": parquet(HEADER),
    "xapi": xapi,
}


def listed(path, rows):
    path.write_bytes(delimited(",", ["student", "score", "remark"])(rows))
    return read_scores(path)


def learners_of(activity, scores, term):
    """What the mechanisms take; learners without a score are left out, and the guarantee states it."""
    joined = join(activity, scores, SCHEMA, term)
    stated = [()] * (N_LEARNERS - joined.n_learners) if joined.schema.without_score == "dropped" else []
    minutes = map(tuple, joined.minutes.reshape(joined.n_learners, -1).tolist())
    return [*zip(minutes, joined.scores.tolist(), strict=True), *stated]


@pytest.mark.parametrize(
    ("name", "written", "set_aside"),
    [
        *((name, "iso", True) for name in FORMATS if name != "xapi"),
        *(("csv", written, True) for written in ("offset", "points", "marks", "words", "numbers")),
        *(("csv", "iso", False), ("excel", "numbers", False), ("xapi", "offset", True)),
    ],
)
def test_other_events_of_a_log_are_read_alike(tmp_path, name, written, set_aside):
    term = Term(START, SCHEMA.n_weeks, WRITTEN[written][1])
    cells = CellOptions(date_order=DateOrder.day_first, set_aside=set_aside)
    scores = listed(tmp_path / "scores.csv", [[f"u{n}", str(40 + n), ""] for n in range(N_LEARNERS)])

    def read(path):
        return learners_of(read_activity(path, term, cells), scores, term)

    files = neighbours(events(written), *(() if set_aside else (NUMBERS, 8)))
    check_others(tmp_path / "log", files, FORMATS[name], read)


@pytest.mark.parametrize("name", ["csv", "excel", "parquet"])
def test_other_scores_of_a_list_are_read_alike(tmp_path, name):
    term = Term(START, SCHEMA.n_weeks)
    log = tmp_path / "log.csv"
    log.write_bytes(FORMATS["csv"](next(neighbours(events("iso")))))
    activity = read_activity(log, term)
    header = ["student", "score", "remark"]
    write = {"csv": delimited(";", header), "excel": excel(header), "parquet": parquet(header)}[name]

    def read(path):
        return learners_of(activity, read_scores(path), term)

    # A learner has one row: the last of those that were made.
    files = (
        list({row[0]: row for row in rows}.values())
        for rows in neighbours(lambda rng, name: [[name, str(rng.randrange(100)), ""]], n_files=40)
    )
    check_others(tmp_path / "scores", files, write, read)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_other_rows_of_a_cohort_are_read_alike(tmp_path, suffix):
    columns = SCHEMA.columns()
    header = ["learner", *columns, SCHEMA.label]
    (tmp_path / "cohort.toml").write_text(SCHEMA.to_toml())

    def row(rng, name):
        return [[name, *(str(rng.randrange(90)) for _ in columns), rng.choice(SCHEMA.labels)]]

    def read(path):
        cohort = read_cohort(path)
        minutes = map(tuple, cohort.values.reshape(cohort.n_learners, -1).tolist())
        return list(zip(minutes, cohort.label.tolist(), strict=True))

    write = delimited(",", header) if suffix == "csv" else parquet(header)
    files = (list({row[0]: row for row in rows}.values()) for rows in neighbours(row, NUMBERS, n_files=15))
    check_others(tmp_path / f"cohort.{suffix}", files, write, read)


def test_a_reader_that_breaks_the_rule_is_found(tmp_path, monkeypatch):
    """One date that does not exist day-first makes this reader take all dates for month-first."""

    def guess(values, *, order, **options):
        times = read_each_time(values, order=order, **options)
        return read_each_time(values, order=DateOrder.month_first, **options) if times.null_count() else times

    monkeypatch.setattr("understudy.cohorts.building.activity.read_each_time", guess)
    with pytest.raises(AssertionError):
        test_other_events_of_a_log_are_read_alike(tmp_path, "csv", "marks", set_aside=True)
