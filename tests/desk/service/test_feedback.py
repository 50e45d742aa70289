"""After a release: what researchers report, what the desk counts, and what the next cycle gets."""

import json

import pytest
from sqlalchemy import select

from tests.support.command import run
from understudy.cohorts.feedback import read_feedback
from understudy.desk.domain.people import NotAllowedError
from understudy.desk.domain.results import Results, Table
from understudy.desk.service import feedback, requests, views
from understudy.desk.store.tables import FeedbackRow, RunRow
from understudy.errors import RefusedError, UsageError

TEST = """
import pandas as pd
from scipy.stats import spearmanr


def analyze(data):
    level = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    rho, p = spearmanr(data["evening_01"], level)
    return {"activity_and_outcome": pd.DataFrame([{"window": "evening", "rho": rho, "p": p}])}
"""


def table(*rows, columns=("window", "rho", "p")):
    return Results({}, {"activity_and_outcome": Table(columns, rows)})


def test_tests_become_findings_with_direction_and_significance():
    synthetic = table(("evening", 0.4, 0.001), ("morning", -0.3, 0.2))
    real = table(("evening", -0.2, 0.01), ("morning", -0.3, 0.04))
    assert feedback.findings_of(synthetic, real) == [
        {
            "name": "activity_and_outcome: evening",
            "synthetic": {"direction": 1, "significant": True},
            "real": {"direction": -1, "significant": True},
        },
        {
            "name": "activity_and_outcome: morning",
            "synthetic": {"direction": -1, "significant": False},
            "real": {"direction": -1, "significant": True},
        },
    ]


def test_in_a_dict_too_and_names_of_the_bank_are_kept():
    both = Results({"peak_and_outcome: evening": {"r": -0.5, "p value": 0.01}})
    assert [one["name"] for one in feedback.findings_of(both, both)] == ["peak_and_outcome: evening"]


@pytest.mark.parametrize(
    "both",
    [
        pytest.param(
            table(("evening", 3.0, 4.0, 0.01), columns=("window", "low", "high", "p")), id="which way?"
        ),
        pytest.param(table(("evening", None, 0.01)), id="effect missing"),
        pytest.param(Results({"p": 0.01}), id="alone"),
        pytest.param(Results({"mean": 4.0}), id="no test"),
        pytest.param(table(("evening", 0.3, None)), id="p missing"),
    ],
)
def test_what_does_not_say_which_way_is_no_finding(both):
    assert [one for one in feedback.findings_of(both, both) if one["real"]["direction"]] == []


def test_a_name_that_only_looks_like_one_of_the_bank_does_not_stop_the_next_cycle():
    """`cohort improve` takes such a name for misspelled."""
    both = Results({"activity_and_outcomes: evening": {"rho": 0.4, "p": 0.01}})
    (found,) = feedback.findings_of(both, both)
    assert found["name"] == "a researcher's own activity_and_outcomes: evening"


def test_a_report_is_given_once_and_by_its_owner_only(small):
    name = small.released(TEST)
    for precision in (0.3, -1, 2):
        with pytest.raises(UsageError, match="precision"):
            feedback.report(small.desk, small.researcher, name, precision)
    with pytest.raises(UsageError, match="too long"):
        feedback.report(small.desk, small.researcher, name, 1.0, "x" * 4001)
    with pytest.raises(NotAllowedError):
        feedback.report(small.desk, small.reviewer, name, 1.0)
    feedback.report(small.desk, small.researcher, name, 0.5, " Less than expected. ")
    assert small.state(name) == "feedback given"
    with pytest.raises(RefusedError):
        feedback.report(small.desk, small.researcher, name, 1.0)
    own = views.request(small.desk, small.researcher, name).feedback
    assert own == {"precision": 0.5, "own_precision": None, "words": "Less than expected."}


def test_the_desk_counts_for_itself_where_it_can(small):
    """Standard errors come from the runs without each learner: the count without them is another one."""
    plain = small.released()
    assert feedback.own_precision(small.desk, small.reviewer, plain) in (0.0, 1.0)
    with pytest.raises(NotAllowedError):
        feedback.own_precision(small.desk, small.researcher, plain)
    with small.desk.database.writing() as session:
        for run_row in session.scalars(select(RunRow)):
            run_row.probes = None
    assert feedback.own_precision(small.desk, small.reviewer, plain) is None
    feedback.report(small.desk, small.researcher, plain, 1.0)
    with small.desk.database.reading() as session:
        assert session.scalar(select(FeedbackRow.own_precision)) is None


def test_only_what_was_released_is_exported(small):
    with pytest.raises(UsageError, match="anything to compare"):
        feedback.export(small.desk, small.custodian, small.data_set)
    small.held(TEST)
    with pytest.raises(UsageError):
        feedback.export(small.desk, small.custodian, small.data_set)
    with pytest.raises(NotAllowedError):
        feedback.export(small.desk, small.researcher, small.data_set)


def test_from_a_release_to_the_suggestions_of_the_next_cycle(small, tmp_path):
    """By the commands, as a custodian would: the export is what `cohort improve` reads."""
    tested = small.released(TEST)
    worded = requests.create(
        small.desk,
        small.second_researcher,
        small.data_set,
        question="Do weekly habits persist over the term?",
        code="def analyze(data):\n    return {'spread': float(data['evening_02'].std())}\n",
        shown="They persist clearly.",
    )
    requests.submit(small.desk, small.second_researcher, worded)
    small.work()
    requests.approve(small.desk, small.reviewer, worded)
    small.work()
    from tests.desk.support.fixtures import REASON
    from understudy.desk.service import releases

    releases.decide(small.desk, small.reviewer, worded, REASON)
    small.work()
    feedback.report(small.desk, small.second_researcher, worded, 0.0, "They do not persist.")
    folder = small.desk.settings.folder
    done = run("desk", "feedback", small.data_set, "-o", "feedback.json", "--desk", folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = read_feedback(tmp_path / "feedback.json")
    assert told.n_learners == 36
    assert [entry.question for entry in told.entries] == [
        "How many minutes in the evening?",
        "Do weekly habits persist over the term?",
    ]
    (finding,) = told.findings
    released = views.request(small.desk, small.researcher, tested).released
    rho, p = (released.numbers[f"activity_and_outcome / {column} / evening"] for column in ("rho", "p"))
    assert finding.name == "activity_and_outcome: evening"
    assert (finding.real.direction, finding.real.significant) == ((rho > 0) - (rho < 0), p < 0.05)
    assert told.entries[1].real == "They do not persist."
    done = run("cohort", "improve", "feedback.json", "-o", "suggestions.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    suggestions = json.loads((tmp_path / "suggestions.json").read_text())
    assert suggestions["validated_on"] == 36
    # What a researcher wrote goes into the prompt and moves no share of the budget.
    assert set(suggestions["budget"]) <= {"habits"}
    assert any("They do not persist." in sentence for sentence in suggestions["suggestions"])
