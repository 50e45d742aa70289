"""Reading is part of the guarantee: how a learner's rows are read does not depend on other learners' rows.

Neighbouring files are drawn for every format: one learner's rows are replaced by others, with nasty cells, other
lengths and other orders. Then all other learners have the same rows in the log, and the number of learners is
the same; or the file is refused, which happens before anything is charged.
"""

import io
import json
import random
from collections import Counter

import polars as pl
import pytest

from understudy.core.files.times import DateOrder
from understudy.errors import DataError
from understudy.logs.reading import read_log

N_LEARNERS = 12
N_PAIRS = 60
NASTY = (
    *("", " ", "not a time", "99999999999999", "-1", "nan", "inf", "1e400", "0", "3/4/2024", "31/12/2023"),
    *(
        "2024-05-31T10:00:00+02:00",
        "2024-05-31 CEST",
        "31.5.2024",
        '"',
        'a"b',
        '"quoted"',
        "a,b",
        "a;b",
        "a\tb",
    ),
    *("é", "NA", "null", "#", "other actions", "1,5", "5 May 2024, 10:00", "١٢", "\u202f1600000000"),
)


def ordinary(rng, name):
    """The rows of a learner: learner, action, outcome, time."""
    clock = 1_600_000_000 + rng.randrange(10**7)
    rows = []
    for _ in range(rng.randint(1, 8)):
        clock += rng.randrange(1, 5000)
        rows.append([name, f"a{rng.randrange(5)}", str(rng.randrange(2)), str(clock)])
    rng.shuffle(rows)
    return rows


def nasty(rng, name):
    """Rows of which some cells are anything but the learner's name."""
    rows = ordinary(rng, name)[: rng.randint(1, 8)]
    for _ in range(rng.randint(1, 3)):
        rng.choice(rows)[rng.randint(1, 3)] = rng.choice(NASTY)
    return rows


def neighbours(seed):
    """Two files' rows, which differ in those of one learner, wherever that learner stands."""
    rng = random.Random(seed)
    learners = [ordinary(rng, f"u{n}") for n in range(N_LEARNERS)]
    place = rng.choice([0, 0, 1, N_LEARNERS - 1, rng.randrange(N_LEARNERS)])
    changed = list(learners)
    changed[place] = nasty(rng, f"u{place}")
    return [[row for rows in file for row in rows] for file in (learners, changed)]


def delimited(separator, header):
    def written(rows):
        def cell(text):
            special = separator in text or '"' in text or "\n" in text
            if separator == "\t":
                return text.replace("\t", " ")
            return '"' + text.replace('"', '""') + '"' if special else text

        return "\n".join(separator.join(map(cell, row)) for row in [header, *rows]).encode() + b"\n"

    return written


def latin(rows):
    return delimited(",", HEADER)(rows).decode().encode("cp1252", errors="replace")


def parquet(rows):
    buffer = io.BytesIO()
    pl.DataFrame(rows, schema=HEADER, orient="row").write_parquet(buffer)
    return buffer.getvalue()


def assistments(rows):
    table = [[str(n), user, skill, correct] for n, (user, skill, correct, _) in enumerate(rows)]
    return delimited(",", ["order_id", "user_id", "skill_name", "correct"])(table)


def datashop(rows):
    words = {"0": "INCORRECT", "1": "CORRECT"}
    table = [[user, skill, words.get(correct, correct), time] for user, skill, correct, time in rows]
    return delimited("\t", ["Anon Student Id", "KC (Default)", "Outcome", "Time"])(table)


def xapi(rows):
    words = {"0": False, "1": True}
    return "\n".join(
        json.dumps(
            {
                "actor": {"account": {"homePage": "h", "name": user}},
                "object": {"id": action, "definition": {"name": {"en": f"Task {action}"}}},
                "result": {"success": words[correct]} if correct in words else {},
                "timestamp": f"2024-05-31T10:00:{int(time) % 60:02}Z"
                if time.isdecimal() and time.isascii()
                else time,
            }
        )
        for user, action, correct, time in rows
    ).encode()


def slam(rows):
    return "\n".join(
        f"# user:{user}  days:1\nid {action} PRON x nsubj 4 {correct}\n" for user, action, correct, _ in rows
    ).encode()


def three_line(rows):
    learners = {}
    for user, action, correct, _ in rows:
        learners.setdefault(user, []).append((action, correct))
    return "\n".join(
        f"{len(tries)}\n{','.join(a for a, _ in tries)}\n{','.join(c for _, c in tries)}"
        for tries in learners.values()
    ).encode()


HEADER = ["learner", "action", "outcome", "timestamp"]
FORMATS = {
    "csv": (delimited(",", HEADER), {}),
    "csv by semicolons": (delimited(";", HEADER), {}),
    "csv in latin": (latin, {}),
    "csv with dates in numbers": (delimited(",", HEADER), {"date_order": DateOrder.day_first}),
    "csv, time asked for": (delimited(",", HEADER), {"time": "timestamp"}),
    "csv in order": (delimited(",", HEADER), {"in_order": True}),
    "tsv": (delimited("\t", HEADER), {}),
    "parquet": (parquet, {}),
    "assistments": (assistments, {}),
    "datashop": (datashop, {}),
    "xapi": (xapi, {}),
    "slam": (slam, {"format": "slam"}),
    "three-line": (three_line, {"format": "three-line"}),
}


@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_other_learners_are_read_alike(tmp_path, records, name, set_aside):
    write, options = FORMATS[name]
    n_compared = 0
    for seed in range(N_PAIRS):
        logs = []
        for which, rows in enumerate(neighbours(seed)):
            path = tmp_path / f"{which}.log"
            path.write_bytes(write(rows))
            try:
                logs.append(read_log(path, set_aside=set_aside, single_rows=True, **options))
            except DataError:
                break
        if len(logs) < 2:
            continue
        n_compared += 1
        before, after = (Counter(map(tuple, records(log))) for log in logs)
        assert logs[0].n_learners == logs[1].n_learners == N_LEARNERS, seed
        assert (before - after).total() <= 1, seed
        assert (after - before).total() <= 1, seed
    assert n_compared >= 5, "too few pairs could be compared"
