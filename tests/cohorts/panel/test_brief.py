"""The brief: what a panelist is told, and that nothing else can get into it."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from understudy.cohorts.panel.brief import (
    Brief,
    for_scripts,
    write_brief,
)
from understudy.cohorts.panel.scripts import RULES, ScriptFault, repair_request
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.suggestions import read_suggestions
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import DataError, RefusedError


def test_the_brief_has_context_schema_summary_noise_and_contract(summary):
    text = write_brief(summary).text
    assert summary.schema.context in text
    assert "morning_01 ... morning_17: minutes in each week, from 0 to 600" in text
    assert "Do\nnot build an effect that the noise could have made" in text
    assert "def generate(n, label, summary, rng)" in text
    assert "Suggestions" not in text
    (block,) = (part.partition("```")[0] for part in text.split("```json\n")[1:])
    assert json.loads(block) == json.loads(json.dumps(for_scripts(summary)))
    assert json.loads(block)["statistics"]["labels"]["noise_sd"] > 0


def test_the_hash_is_that_of_the_exact_text(summary):
    brief = write_brief(summary)
    assert brief.prompt_hash == hashlib.sha256(brief.text.encode()).hexdigest()
    assert Brief(brief.text + " ").prompt_hash != brief.prompt_hash


def test_only_a_private_summary_can_be_told(summary):
    for other in (summary.to_json(), {"mean": 3.0}, np.zeros(3), None, "rows"):
        with pytest.raises(TypeError, match="PrivateSummary"):
            write_brief(other)


def test_real_learners_without_a_guarantee_do_not_get_into_a_prompt(summary):
    """The type is not enough: seeded noise gives a summary that anybody can undo."""
    rng = np.random.default_rng(5)
    cohort = replace(School(n_learners=60).simulate(0, rng), simulated=False)
    plan = propose(cohort.schema, 60, 3.0, 1e-3)
    with pytest.raises(RefusedError, match="no formal guarantee"):
        write_brief(noisy_summary(cohort, plan, seeded_noise(rng)))
    private = write_brief(noisy_summary(cohort, plan, os_noise())).text
    assert "computed from the real group under differential privacy: noise was added" in private
    # Of simulated ones the brief says what they are.
    assert "differential privacy" not in write_brief(summary).text
    assert "computed from simulated learners, and no guarantee holds for them" in write_brief(summary).text


def test_where_the_summary_lay_is_not_told(summary):
    read = PrivateSummary.from_json(summary.to_json(), "class-of-mrs-planted.json")
    assert "planted" in json.dumps(read.to_json())
    assert "planted" not in write_brief(read).text
    assert write_brief(read).text == write_brief(summary).text


def test_suggestions_are_told_one_by_one(summary):
    text = write_brief(summary, ["match heavy tails", "more weekends"]).text
    assert "- match heavy tails\n- more weekends\n" in text


@pytest.mark.parametrize(
    "content",
    [
        "# from 2025\n- one  thing\n\nanother\n",
        '["one thing", "another"]',
        '{"suggestions": ["one thing", "another"]}',
    ],
)
def test_suggestions_are_read_from_lines_or_json(tmp_path, content):
    path = tmp_path / "suggestions.txt"
    path.write_text(content)
    assert read_suggestions(path).sentences == ("one thing", "another")


@pytest.mark.parametrize(
    "content", ["\n".join("0,1,2,3" for _ in range(31)), "x" * 501, "[1, 2]", "{", b"\xff\xfe"]
)
def test_a_table_is_not_taken_for_suggestions(tmp_path, content):
    path = tmp_path / "suggestions.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError):
        read_suggestions(path)


def test_a_repair_request_has_kind_line_and_our_own_rule_only():
    text = repair_request(ScriptFault("OutOfBounds", 7))
    assert "OutOfBounds in line 7" in text
    assert RULES["OutOfBounds"] in text
    # A script may call its error anything.
    odd = ScriptFault.of_error("Planted_Secret", 3)
    assert "Planted" not in repair_request(odd)
    assert "Error in line 3" in repair_request(odd)
    assert ScriptFault.of_error("KeyError", None).kind == "KeyError"
