"""What a reviewer is told about code before reading it."""

import json

from understudy.desk.disclosure.code_review import CodeReading, read_code
from understudy.desk.domain.policy import Policy

CODE = """
import os
import numpy as np
from lingam import DirectLiNGAM


def analyze(data, rng):
    if len(data) == 120:
        one = data[data.learner == "learner-007"]
    fit = DirectLiNGAM(random_state=1).fit(data[["evening", "score"]])
    some = data.query("morning > 50").groupby("achievement").agg(["mean", "max"])
    getattr(data, "to_" + "csv")
    return {"m": data.loc[data.score > 3, "evening"].mean()}
"""
COLUMNS = ["learner", "morning", "evening", "score", "achievement", "week_1"]


def test_what_code_imports_uses_and_picks():
    reading = read_code(CODE, COLUMNS, Policy())
    assert reading.imports == ("lingam", "numpy", "os")
    assert reading.not_allowed == ("os",)
    assert reading.findings == ("the policy does not allow the import of os.",)
    assert reading.columns == ("learner", "morning", "evening", "score", "achievement")
    assert [(one.line, one.remark) for one in reading.subsets] == [
        (9, "rows by a condition"),
        (11, "groups"),
        (11, "rows by a condition"),
        (13, "rows by a condition"),
    ]
    assert [one.remark.split(":")[0] for one in reading.sensitive] == ["DirectLiNGAM", "max"]
    assert reading.chance == (10,)
    assert [one.line for one in reading.warnings] == [8, 9, 9, 12]
    assert CodeReading.from_json(json.loads(json.dumps(reading.to_json()))) == reading


def test_code_that_cannot_run_is_said():
    policy = Policy()
    assert read_code("def analyze(:", [], policy).findings == ("line 1 is not Python: invalid syntax.",)
    assert read_code("x = 1", [], policy).findings == ("there is no `def analyze(data)`.",)
    assert read_code("def analyze(frame): pass", [], policy).findings == (
        "`analyze` has no parameter `data`.",
    )
    assert read_code("x = " + "(" * 5000 + ")" * 5000, [], policy).findings
    assert read_code("def analyze(data): pass", [], policy) == CodeReading()
    assert read_code("#" * 200, [], Policy(most_code_bytes=100)).findings


def test_reading_does_not_run(tmp_path):
    mark = tmp_path / "ran"
    read_code(f"open({str(mark)!r}, 'w').close()\ndef analyze(data): pass", [], Policy())
    assert not mark.exists()


def test_columns_that_are_picked_by_name_are_no_rows():
    code = (
        '"""Does evening matter?"""\n'
        "def analyze(data):\n"
        '    """Of score."""\n'
        "    late = data.filter(like='morning')\n"
        "    named = data.filter(['week_1'])\n"
        "    large = data.groupby('achievement').filter(lambda group: len(group) > 3)\n"
    )
    reading = read_code(code, COLUMNS, Policy())
    assert reading.columns == ("morning", "achievement", "week_1"), "not those of docstrings"
    said = [(one.line, one.remark) for one in reading.subsets]
    assert (4, "columns whose name contains 'morning'") in said
    assert (5, "columns by name") in said
    assert (6, "rows or groups by a condition") in said
