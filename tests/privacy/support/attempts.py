"""Files of attempts in every format that a log or an exam is read from."""

from __future__ import annotations

import json

from tests.privacy.support.neighbours import delimited, excel, latin, parquet
from understudy.core.files.times import DateOrder

HEADER = ["learner", "action", "outcome", "timestamp"]


def attempts(rng, name):
    """The rows of a learner: learner, action, outcome, time."""
    clock = 1_600_000_000 + rng.randrange(10**7)
    rows = []
    for _ in range(rng.randint(1, 8)):
        clock += rng.randrange(1, 5000)
        rows.append([name, str(rng.randrange(10, 15)), str(rng.randrange(2)), str(clock)])
    rng.shuffle(rows)
    return rows


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
                "timestamp": at_second(time),
            }
        )
        for user, action, correct, time in rows
    ).encode()


def edx(rows):
    words = {"0": "incorrect", "1": "correct"}
    return "\n".join(
        json.dumps(
            {
                "username": user,
                "event_type": "problem_check",
                "event_source": "server",
                "event": {
                    "problem_id": f"i4x://o/c/problem/{action}",
                    "success": words.get(correct, correct),
                },
                "context": {"user_id": user} if action != "11" else {},
                "time": at_second(time),
            }
        )[
            # A cell that breaks a line off.
            : 60 if correct == '"' else None
        ]
        for user, action, correct, time in rows
    ).encode()


def caliper(rows):
    return "\n".join(
        json.dumps(
            {
                "actor": {"id": user, "type": "Person"},
                "action": "Graded",
                "object": {"id": action, "name": f"Task {action}"},
                "generated": {
                    "scoreGiven": float(correct) if correct in "01" and correct else correct,
                    "maxScore": 1,
                },
                "eventTime": at_second(time),
            }
        )
        for user, action, correct, time in rows
    ).encode()


def at_second(time):
    ordinary = time.isdecimal() and time.isascii()
    return f"2024-05-31T10:00:{int(time) % 60:02}Z" if ordinary else time


def slam(rows):
    # A blank would end a field, and every label that is not 0 or 1 is refused.
    return "\n".join(
        f"# user:{user}  days:1\nid {'_'.join(action.split()) or '_'} PRON x nsubj 4 {int(correct == '1')}\n"
        for user, action, correct, _ in rows
    ).encode()


def three_line(rows):
    learners = {}
    for user, action, correct, _ in rows:
        learners.setdefault(user, []).append((action, correct))
    return "\n".join(
        f"{len(tries)}\n{','.join(a for a, _ in tries)}\n{','.join(c for _, c in tries)}"
        for tries in learners.values()
    ).encode()


FORMATS = {
    "csv": (delimited(",", HEADER), {}),
    "csv by semicolons": (delimited(";", HEADER), {}),
    "csv in latin": (latin(HEADER), {}),
    "csv with dates in numbers": (delimited(",", HEADER), {"date_order": DateOrder.day_first}),
    "csv, time asked for": (delimited(",", HEADER), {"time": "timestamp"}),
    "csv in order": (delimited(",", HEADER), {"in_order": True}),
    "csv on a clock": (delimited(",", HEADER), {"time_zone": "Europe/Berlin"}),
    "csv without a header": (
        lambda rows: delimited(",", HEADER)(rows).split(b"\n", 1)[1],
        {"no_header": True, "format": "csv", "learner": "1", "action": "2", "outcome": "3", "time": "4"},
    ),
    "tsv": (delimited("\t", HEADER), {}),
    "parquet": (parquet(HEADER), {}),
    "excel": (excel(HEADER), {}),
    "assistments": (assistments, {}),
    "datashop": (datashop, {}),
    "xapi": (xapi, {}),
    "edx": (edx, {"format": "edx"}),
    "caliper": (caliper, {"format": "caliper"}),
    "slam": (slam, {"format": "slam"}),
    "three-line": (three_line, {"format": "three-line"}),
}
