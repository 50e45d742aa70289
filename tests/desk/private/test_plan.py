"""Plans: shared sums are measured once, the budget follows predictions, and answers say what is too wide."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.desk.support.private_tables import SCHEMA, analyze, table
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.desk import private
from understudy.desk.private.mechanism import answer_privately
from understudy.desk.private.questions import Correlation, Count, Linear, Logistic, Mean, Variance
from understudy.errors import DataError, UsageError


def test_questions_that_need_the_same_sums_share_them():
    def asked(ask):
        ask.mean("grade", by="school")
        ask.variance("grade", by="school")
        ask.compare("grade", by="school", test="anova")
        ask.mean("grade", by="school")
        ask.correlations("minutes", "grade")
        ask.linear("grade", on=["minutes"])
        ask.linear("minutes", on=["grade"])
        ask.count("school", "passed")
        ask.independence("passed", by="school")

    plan = private.propose(private.questions_of(asked), SCHEMA, 500, 1.0)
    assert len(plan.questions) == 8
    assert len(plan.measurements) == 3
    assert math.fsum(plan.shares.values()) <= 1.0
    assert math.fsum(plan.shares.values()) == pytest.approx(1.0)


def test_the_budget_goes_where_it_is_needed():
    """A mean of all learners needs less than a table of many groups, and two equal questions get the same."""
    one, many = Mean("grade"), Mean("minutes", by="school")
    plan = private.propose([one, many], SCHEMA, 300, 1.0)
    assert plan.shares[plan.needs[0]] < 0.5 * plan.shares[plan.needs[1]]
    even = private.propose([Mean("grade"), Mean("minutes")], SCHEMA, 300, 1.0)
    assert even.shares[even.needs[0]] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("n_learners", [1, 2, 3])
def test_the_budget_is_split_however_few_learners_there_are(n_learners):
    """Where nothing can be predicted of a question, it has a share all the same: it is charged, and drawn."""
    for questions in ([question] for question in private.questions_of(analyze)):
        plan = private.propose(questions, SCHEMA, n_learners, 1.0)
        assert 0 < sum(plan.shares.values()) <= 1
        records = private.read_records(table(n_learners), SCHEMA)
        assert len(answer_privately(plan, records, seeded_noise(np.random.default_rng(1)))) == 1


def test_no_other_split_is_predicted_to_be_much_better():
    """Shares are at the least sum of predicted widths: moving some of them to another measurement makes it larger."""
    questions = [Mean("grade"), Mean("minutes", by="school"), Count(("school", "passed")), Variance("hours")]
    plan = private.propose(questions, SCHEMA, 100_000, 1.0)

    def loss(shares):
        moved = replace(plan)
        moved.__dict__["shares"] = shares
        return math.fsum(answer.width for answer in moved.predictions())

    best = loss(plan.shares)
    for place in range(4):
        for factor in (0.5, 2.0):
            shares = {
                need: share * (factor if i == place else 1.0)
                for i, (need, share) in enumerate(plan.shares.items())
            }
            total = math.fsum(shares.values())
            assert loss({need: share / total for need, share in shares.items()}) > best * 0.999


def test_predictions_know_public_numbers_alone_and_come_true():
    """On learners like those that are assumed, found widths are near the predicted ones."""
    rng = np.random.default_rng(1)
    rows = table(2000).with_columns(
        grade=np.clip(rng.normal(50, 25, 2000), 0, 100),
        minutes=np.clip(rng.normal(300, 150, 2000), 0, 600),
        school=np.array(["north", "south", "west"])[np.arange(2000) % 3],
    )

    def asked(ask):
        ask.mean("grade", by="school")
        ask.correlations("minutes", "grade")
        ask.count("school")
        ask.linear("grade", on=["minutes", "school"])

    trial = private.try_out(asked, rows, SCHEMA, 2.0)
    assert trial.expected == private.expect(asked, SCHEMA, 2000, 2.0)
    few = private.try_out(asked, rows, SCHEMA, 2.0, n_learners=113)
    assert few.answers == trial.answers
    assert few.expected == private.expect(asked, SCHEMA, 113, 2.0)
    assert "expected on 113 learners" in str(few)
    for answer, expected in zip(trial.answers, trial.expected, strict=True):
        assert answer.width == pytest.approx(expected.width, rel=0.35)


def test_what_is_too_wide_says_what_would_be_enough():
    def asked(ask):
        ask.mean("grade", by="school")

    trial = private.try_out(asked, table(113), SCHEMA, 1.0)
    (answer,) = trial.answers
    assert answer.too_wide
    assert answer.enough.epsilon > 1
    assert answer.enough.n_learners > 113
    assert "too wide to be of use" in answer.warning
    assert f"epsilon {answer.enough.epsilon:g}" in answer.warning
    more = private.expect(asked, SCHEMA, answer.enough.n_learners, 1.0)
    assert not more[0].too_wide
    assert not private.expect(asked, SCHEMA, 113, answer.enough.epsilon)[0].too_wide
    (fine,) = private.try_out(asked, table(5000), SCHEMA, 1.0).answers
    assert not fine.warning
    assert fine.enough is None


@pytest.mark.parametrize(
    "question", [Linear("grade", ("minutes", "school")), Logistic("passed", ("minutes",))]
)
def test_a_regression_that_is_lost_in_the_noise_has_no_interval(question):
    plan = private.propose([question], SCHEMA, 40, 0.1)
    records = private.read_records(table(40), SCHEMA)
    (answer,) = answer_privately(plan, records, seeded_noise(np.random.default_rng(0)))
    assert len(answer.too_wide) == len(answer.estimates)
    assert "lost in the noise" in str(answer.estimates[1])
    assert answer.to_json()["estimates"][1]["low"] is None
    assert answer.enough.n_learners > 40


def test_answers_are_json_and_have_a_guarantee_with_secret_noise_only():
    records = private.read_records(table(60), SCHEMA)
    plan = private.propose(private.questions_of(analyze), SCHEMA, 60, 1.0)
    secret = answer_privately(plan, records, os_noise())
    assert secret.guarantee.formal
    assert (secret.guarantee.epsilon, secret.guarantee.delta) == (1.0, default_delta(60))
    content = json.loads(json.dumps(secret.to_json(), allow_nan=False))
    assert len(content["answers"]) == len(plan.questions)
    assert all(line for line in secret.lines())
    assert secret.to_frame().height == sum(len(answer.estimates) for answer in secret)
    assert not answer_privately(plan, records, seeded_noise(np.random.default_rng(1))).guarantee.formal
    assert secret[Mean("grade")]["grade"].noise > 0
    with pytest.raises(KeyError):
        secret[Correlation(("a", "b"))]


def test_a_plan_is_for_one_table():
    plan = private.propose([Mean("grade")], SCHEMA, 60, 1.0)
    with pytest.raises(DataError, match="another table"):
        answer_privately(plan, private.read_records(table(61), SCHEMA), os_noise())


@pytest.mark.parametrize(
    "settings", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"epsilon": 101}, {"epsilon": 1, "delta": 0.0}]
)
def test_budgets_that_prove_nothing_are_refused(settings):
    with pytest.raises(UsageError):
        private.propose([Mean("grade")], SCHEMA, 60, **settings)


def test_an_analysis_asks_for_something():
    with pytest.raises(UsageError, match="asked for nothing"):
        private.questions_of(lambda ask: None)
    with pytest.raises(UsageError):
        private.propose([], SCHEMA, 60, 1.0)


def test_the_front_door_has_what_it_names():
    assert all(hasattr(private, name) for name in private.__all__)
