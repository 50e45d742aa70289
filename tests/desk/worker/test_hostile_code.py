"""Requests that try to carry a learner out, through the whole desk and the real sandbox: held, or without effect.

A value is planted in the real table that is nowhere else. Wherever it turns up besides the held outputs
themselves, which reviewers decide about, something leaks.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.desk.support.fixtures import POLICY, REASON, fill, school_frame
from understudy.desk.service import releases, requests, views
from understudy.desk.service.verification import verify
from understudy.desk.store.tables import Base, RunRow
from understudy.errors import MissingError, RefusedError
from understudy.sandbox import require_sandbox
from understudy.sandbox.pool import Sandbox

pytestmark = pytest.mark.functional

NUMBER, WORD = 731973.25, "canary-QX7431"
CANARY = re.compile(r"731973\.?25|canary-QX", re.IGNORECASE)
N_LEARNERS = 14
STRICT = replace(POLICY, n_shadows=40, may_override=("reconstruction",), run_seconds=5.0)
FINDS = """
import pandas as pd
import time

def planted(data):
    return data[data["evening_01"] > 50_000]

"""
HOSTILE = {
    "in many digits": (
        "def analyze(data):\n    own = planted(data)['evening_01'].sum()\n"
        "    return {'mean': round(data['morning_01'].mean(), 1) + own * 1e-11}\n"
    ),
    "in a name": (
        "def analyze(data):\n    own = planted(data)['evening_01'].sum()\n"
        "    return {f'value {own}': float(data['morning_01'].mean())}\n"
    ),
    "in a text": ("def analyze(data):\n    return {'who': ' '.join(sorted(set(data['achievement'])))}\n"),
    "in the shape of a table": (
        "def analyze(data):\n    own = int(planted(data)['evening_01'].sum()) // 10_000\n"
        "    return {'table': pd.DataFrame({'x': [1.0] * (own + 1)})}\n"
    ),
    "in an error": (
        "def analyze(data):\n    own = planted(data)\n    if len(own):\n"
        "        print(own)\n        raise ValueError(own.iloc[0].to_dict())\n    return 1\n"
    ),
    "in the time": (
        "def analyze(data):\n    if len(planted(data)):\n        time.sleep(0.05)\n"
        "    return {'mean': float(data['morning_01'].mean())}\n"
    ),
    "by a learner's name": (
        "def analyze(data):\n    one = data[data['learner'] == 'learner-03']\n"
        "    return {'mean': float(one['evening_01'].mean())}\n"
    ),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)
    real = (
        school_frame(1, N_LEARNERS)
        .with_row_index()
        .with_columns(
            pl.when(pl.col("index") == 4).then(pl.lit(WORD)).otherwise("achievement").alias("achievement"),
            pl.when(pl.col("index") == 4).then(NUMBER).otherwise("evening_01").alias("evening_01"),
        )
    )
    folder = tmp_path_factory.mktemp("hostile")
    made = fill(folder, policy=STRICT, real=real.drop("index"), synthetic=school_frame(2, N_LEARNERS))
    yield made
    made.desk.close()


@pytest.mark.sandbox
def test_nothing_of_a_learner_leaves(desk, monkeypatch, tmp_path, caplog, capfd):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    caplog.set_level("DEBUG")
    names = {way: desk.submitted(FINDS + code) for way, code in HOSTILE.items()}
    plain = desk.submitted(
        "def analyze(data):\n    return {'mean': float(data['morning_01'].mean())}\n",
        who=desk.second_researcher,
    )
    with desk.worker(open_sandbox=Sandbox) as worker:
        while worker.do_one():
            pass
        for name in (*names.values(), plain):
            requests.approve(desk.desk, desk.reviewer, name)
        while worker.do_one():
            pass
        held = {way: views.request(desk.desk, desk.reviewer, name).held for way, name in names.items()}
        for way in ("in a name", "in a text", "in the shape of a table", "by a learner's name"):
            assert "fail" in {check.verdict for check in held[way].checks}, way
            with pytest.raises(RefusedError, match="failed"):
                releases.decide(desk.desk, desk.reviewer, names[way], REASON)
        # The planted value did get as far as this, and no reason quotes it.
        assert CANARY.search(" ".join(held["in a name"].results.texts + held["in a text"].results.texts))
        assert not CANARY.search(" ".join(check.reason for one in held.values() for check in one.checks))
        assert str(held["in an error"].failure) == "ValueError in line 12"
        # What is left of the digits is what an answer without them has.
        told = held["in many digits"].results.numbers["mean"]
        assert told == round(told, 2)
        seen = {way: views.request(desk.desk, desk.researcher, name) for way, name in names.items()}
        assert {(view.state, view.day, view.note) for view in seen.values()} == {
            ("being answered", seen["in the time"].day, "")
        }
        releases.decide(desk.desk, desk.reviewer, plain, REASON)
        releases.withhold(desk.desk, desk.reviewer, names["in a text"])
        requests.send_back(desk.desk, desk.reviewer, names["in a name"], "names may not hold values")
        while worker.do_one():
            pass
    assert desk.state(plain) == "released"
    verify(desk.desk)
    _scan(desk, caplog, capfd)


def _scan(desk, caplog, capfd):
    """Everywhere but in the held outputs themselves."""
    output = capfd.readouterr()
    assert not CANARY.search(caplog.text + output.out + output.err)
    with desk.desk.database.reading() as session:
        for table in Base.metadata.sorted_tables:
            for row in session.execute(table.select()).mappings():
                inside = table.name == RunRow.__tablename__ and not row["trial"] and not row["deleted_at"]
                content = {
                    name: value
                    for name, value in row.items()
                    if not isinstance(value, bytes)
                    and not (inside and name in ("results", "checks", "support"))
                }
                assert not CANARY.search(json.dumps(content, default=str)), table.name
    for person in desk.people:
        for line in views.requests(desk.desk, person):
            view = views.request(desk.desk, person, line.name)
            if view.held is None:
                assert not CANARY.search(repr(view))
    ledger = desk.desk.settings.folder / "understudy.ledger"
    assert not CANARY.search(Path(ledger).read_bytes().decode("latin-1"))
