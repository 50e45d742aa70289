"""From responses to released difficulties."""

import json

import numpy as np
import pytest

from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import DataError, UsageError
from understudy.exams import forecast as forecasting
from understudy.exams.difficulties import DifficultiesOptions, difficulties, fit_difficulties
from understudy.exams.estimation import METHODS, PRIVATE
from understudy.exams.estimators.choice import PENALTIES
from understudy.exams.estimators.joint import fit_joint
from understudy.exams.estimators.published import objective, statistics
from understudy.exams.forecast import forecast
from understudy.exams.plan import plan
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam


def fit(responses, noise=None, **options):
    request = DifficultiesOptions(**options)
    rng = np.random.default_rng(1)
    settled = plan(request, responses.n_items, responses.n_learners)
    return fit_difficulties(responses, settled, noise or os_noise(), rng)


@pytest.fixture(scope="module")
def sitting():
    return Exam(3000, 8).simulate(np.random.default_rng(1))


@pytest.fixture
def few_exams(monkeypatch):
    """For tests of which rows a forecast has: the exams behind their figures are nearly all of its time."""
    monkeypatch.setattr(forecasting, "_N_EXAMS", 2)


def with_epsilon(method, epsilon=5.0):
    return None if method in ("marginal", "two-parameter", "conditional", "joint") else epsilon


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_difficulties_of_a_large_class(method, sitting):
    found = fit(sitting.responses, method=method, epsilon=with_epsilon(method, 50.0))
    estimates = np.array([item.difficulty for item in found.items])
    true = sitting.difficulty
    assert np.corrcoef(estimates, true)[0, 1] > 0.99
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("method", METHODS)
def test_only_our_mechanisms_carry_a_guarantee(method, sitting):
    found = fit(sitting.responses, method=method, epsilon=with_epsilon(method))
    if method in PRIVATE:
        assert found.guarantee.epsilon == 5.0
    else:
        assert not found.guarantee.formal
        assert str(found.guarantee).startswith("no formal guarantee (")


@pytest.mark.parametrize("method", PRIVATE)
def test_seeded_noise_leaves_no_guarantee(method, sitting):
    found = fit(sitting.responses, seeded_noise(np.random.default_rng(1)), method=method, epsilon=1.0)
    assert str(found.guarantee) == "no formal guarantee (test: the noise was seeded)"


@pytest.mark.parametrize("method", METHODS)
def test_items_that_all_or_none_solved_are_kept(method):
    matrix = Exam(80, 4).simulate(np.random.default_rng(2)).responses.correct.copy()
    matrix[:, 0], matrix[:, 1] = 1, 0
    found = fit(Responses.from_matrix(matrix), method=method, epsilon=with_epsilon(method))
    easy, hard = found.items[:2]
    assert len(found.items) == 4
    if method in ("marginal", "two-parameter", "conditional"):
        assert (easy.difficulty, easy.unbounded, easy.reading) == (None, "easy", "solved by all students")
        assert (hard.difficulty, hard.unbounded, hard.reading) == (None, "hard", "solved by no student")
    else:
        assert easy.difficulty < hard.difficulty


@pytest.mark.parametrize("method", METHODS)
def test_an_item_that_nobody_answered_is_kept(method):
    matrix = Exam(80, 4).simulate(np.random.default_rng(2)).responses.correct.copy()
    matrix[:, 0] = -1
    found = fit(Responses.from_matrix(matrix), method=method, epsilon=with_epsilon(method), missing="skipped")
    assert len(found.items) == 4
    assert 0 <= found.items[0].chance <= 1
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("method", ["marginal", "conditional"])
def test_answers_that_tell_no_spread_are_refused_in_words(method):
    with pytest.raises(DataError, match="how much abilities differ"):
        fit(Responses.from_matrix(np.array([[1, 0], [1, -1]])), method=method, missing="skipped")


def test_one_learner_is_no_class():
    with pytest.raises(DataError, match="describe a class"):
        fit(Responses.from_matrix(np.ones((1, 3), dtype=int)), epsilon=1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"method": "knorm", "epsilon": None},
        {"method": "magic", "epsilon": 1.0},
        {"method": "marginal", "epsilon": 1.0},
        {"method": "gaussian", "epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "ability_sd": 0.0},
        {"method": "joint", "ability_sd": "estimate"},
        {"method": "joint", "guess": 0.25},
        {"discrimination_spread": 0.3},
        {"epsilon": 1.0, "discrimination_spread": 2.0},
        {"epsilon": 1.0, "guess": "a quarter"},
        {"epsilon": 1.0, "guess": "1/0"},
        {"epsilon": 1.0, "guess": 0.95},
        {"epsilon": 1.0, "penalty": 0.02},
        {"method": "marginal", "penalty_from": "public.csv"},
        {"method": "joint", "penalty": "choose"},
        {"method": "joint", "penalty": 0.0},
        {"method": "joint", "penalty": "small"},
        {"method": "objective", "epsilon": 1.0, "penalty": 0.02, "penalty_from": "public.csv"},
    ],
)
def test_wrong_requests_say_what_to_do(options):
    with pytest.raises(UsageError) as error:
        DifficultiesOptions(**options)
    assert error.value.hint


@pytest.mark.parametrize("method", PRIVATE)
def test_the_published_choice_of_the_spread_is_part_of_the_price(method, sitting):
    settled = plan(DifficultiesOptions(method, 2.0, ability_sd="choose"), 8, 3000)
    assert settled.guarantee.epsilon == 2.0
    assert settled.choice_epsilon == pytest.approx(0.4)
    assert settled.measurement.guarantee.epsilon == pytest.approx(1.6)
    assert len(settled.guarantee.mechanisms) == 2
    found = fit(sitting.responses, method=method, epsilon=2.0, ability_sd="choose")
    assert "privately" in found.ability.source


@pytest.mark.parametrize("method", ["joint", "objective", "statistics"])
def test_the_penalty_is_the_programs_unless_it_is_given(method, sitting):
    responses = sitting.responses.select(np.arange(200))
    epsilon = with_epsilon(method)
    given = {"method": method, "epsilon": epsilon}
    default, program, printed = (
        fit(responses, **given, **more) for more in ({}, {"penalty": 0.02}, {"penalty": "0.01"})
    )
    assert default.items == program.items
    assert default.provenance["penalty"] == {"value": 0.02, "source": "as in the published program"}
    assert printed.provenance["penalty"] == {"value": 0.01, "source": "as printed in the paper"}
    assert printed.ability.sd == pytest.approx(10.0)
    correct = responses.correct
    if method == "joint":
        expected = fit_joint(correct.sum(axis=1), correct.sum(axis=0), penalty=0.01).difficulty
    else:
        published = {"objective": objective, "statistics": statistics}[method]
        expected = published(responses, epsilon, np.random.default_rng(1), penalty=0.01).difficulty
    np.testing.assert_allclose([item.difficulty for item in printed.items], expected, atol=1e-6)


@pytest.mark.parametrize("method", ["objective", "statistics"])
def test_a_penalty_chosen_as_published_still_promises_nothing(method, sitting):
    settled = plan(DifficultiesOptions(method, 2.0, penalty="choose"), 8, 3000)
    assert settled.choice_epsilon == pytest.approx(0.4)
    found = fit(sitting.responses.select(np.arange(100)), method=method, epsilon=2.0, penalty="choose")
    assert found.provenance["penalty"]["value"] in PENALTIES
    assert not found.guarantee.formal
    assert "its choice carries no guarantee either" in str(found.guarantee)
    assert "no formal guarantee" in found.provenance["penalty"]["source"]
    with pytest.raises(DataError, match="at least 50 learners"):
        plan(DifficultiesOptions(method, 2.0, penalty="choose"), 8, 49)


@pytest.mark.parametrize("method", ["joint", "objective", "statistics"])
def test_a_penalty_can_be_chosen_on_public_responses(method, sitting):
    public = Exam(60, 8).simulate(np.random.default_rng(9)).responses
    options = {"method": method, "epsilon": with_epsilon(method), "penalty_from": public}
    assert plan(DifficultiesOptions(**options), 8, 3000).choice_epsilon == 0
    found = fit(sitting.responses.select(np.arange(100)), **options)
    assert found.provenance["penalty"]["value"] in PENALTIES
    assert found.provenance["penalty"]["source"] == "chosen on public responses"
    assert not found.guarantee.formal


@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("sd", [0.6, 2.2])
def test_the_spread_of_abilities_is_found_along_with_the_items(method, sd):
    rng = np.random.default_rng(5)
    responses = Exam(3000, 12, ability_sd=sd).simulate(rng).responses
    found = fit(responses, seeded_noise(rng), method=method, epsilon=2.0)
    assert found.ability.sd == pytest.approx(sd, rel=0.2)
    assert found.ability.source == "estimated privately, along with the items"
    settled = plan(DifficultiesOptions(method, 2.0), 12, 3000)
    assert settled.guarantee == settled.measurement.guarantee


def test_one_answer_per_learner_leaves_the_spread_at_what_is_usual():
    responses = Exam(500, 30).simulate(np.random.default_rng(3)).responses
    found = fit(responses, epsilon=1.0, missing="skipped", at_most=1)
    assert found.ability.source == "what is usual"


def test_a_given_prior_is_used_and_named(sitting):
    from understudy.exams.estimators.noisy_totals import Prior

    found = fit(sitting.responses, epsilon=0.001, prior=Prior(2.0, 0.1))
    assert all(abs(item.difficulty - 2.0) < 0.3 for item in found.items)
    assert found.provenance["difficulties_prior"] == {"mean": 2.0, "sd": 0.1, "source": "given"}


def test_people_in_the_items_of_a_matrix_are_refused(tmp_path):
    responses = Responses.from_matrix([[0, 1], [1, 0], [1, 1]], ["item 1", "ana.kestrel@school.example"])
    with pytest.raises(DataError, match=r"a name of the items .* e-mail address \(1 of 2") as caught:
        difficulties(responses, epsilon=1, population="a class", ledger=tmp_path / "l")
    assert caught.value.code == "names-of-people"
    assert "kestrel" not in str(caught.value)
    assert not (tmp_path / "l").exists()


def test_answers_of_a_learner_are_limited_where_the_mechanism_needs_it():
    responses = Exam(500, 30).simulate(np.random.default_rng(3)).responses
    found = fit(responses, epsilon=1.0, missing="skipped", at_most=2)
    assert found.provenance["answers_at_most"] == 2
    assert "right, wrong" in found.provenance["mechanism"]


def test_the_released_file_depends_on_the_learners_through_noise_only(sitting):
    """Whatever is not a figure of the items, or of noisy totals, follows from public numbers."""
    other = Exam(3000, 8).simulate(np.random.default_rng(99))
    first, second = (fit(one.responses, epsilon=1.0) for one in (sitting, other))
    public = [
        {key: value for key, value in found.provenance.items() if key not in ("difficulties_prior", "totals")}
        for found in (first, second)
    ]
    assert public[0] == public[1]
    assert first.provenance["totals"]["covariance"] == second.provenance["totals"]["covariance"]
    assert first.guarantee == second.guarantee
    assert first.ability.source == second.ability.source


def test_explained_precision_agrees_with_what_comes_out():
    """Ten exams of a kind that the forecast does not draw itself; `reproductions.dp_rasch coverage` has many more."""
    request = DifficultiesOptions(epsilon=1.0)
    rows = forecast(request, 20, 400)
    row = next(row for row in rows if row.risk.epsilon == 1.0)
    assert row.method == "knorm"
    rng = np.random.default_rng(4)
    inside = []
    for _ in range(10):
        sitting = Exam(400, 20, ability_sd=1.3, difficulty_sd=1.5).simulate(rng)
        found = fit(sitting.responses, seeded_noise(rng), epsilon=1.0)
        difficulty = np.array([item.difficulty for item in found.items])
        error = np.sqrt(np.mean((difficulty - sitting.difficulty) ** 2))
        correlation = np.corrcoef(difficulty, sitting.difficulty)[0, 1]
        inside += [
            row.error.low <= error <= row.error.high,
            row.correlation.low <= correlation <= row.correlation.high,
        ]
    assert np.mean(inside) >= 0.7
    errors = [one.error.expected for one in rows]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.usefixtures("few_exams")
def test_many_items_are_better_measured_with_gaussian_noise():
    assert {one.better for one in forecast(DifficultiesOptions(epsilon=1.0), 300, 400)} == {"gaussian"}


def test_fewer_answers_are_expected_to_tell_less(monkeypatch):
    # One row is enough.
    monkeypatch.setattr(forecasting, "EPSILONS", (10.0,))
    monkeypatch.setattr(forecasting, "RISKS", ())
    request = DifficultiesOptions(epsilon=5.0, missing="skipped")
    few, many = (forecast(request, 40, 400, answers, "long")[-1] for answers in (8, 40))
    assert few.error.expected > 1.3 * many.error.expected
    assert few.correlation.expected < many.correlation.expected


def test_a_prior_from_an_earlier_exam_has_its_mean_and_true_spread():
    rng = np.random.default_rng(8)
    sitting = Exam(400, 300, difficulty_sd=1.2).simulate(rng)
    request = DifficultiesOptions(epsilon=20.0)
    private = fit_difficulties(sitting.responses, plan(request, 300, 400), seeded_noise(rng), rng)
    plain = fit_difficulties(
        sitting.responses, plan(DifficultiesOptions("marginal"), 300, 400), seeded_noise(rng), rng
    )
    for earlier in (private, plain):
        prior = earlier.as_prior()
        assert prior.mean == pytest.approx(sitting.difficulty.mean(), abs=0.2)
        assert prior.spread == pytest.approx(sitting.difficulty.std(), rel=0.4)
    with pytest.raises(DataError):
        type(private)(private.items[:1], (), private.ability, private.guarantee).as_prior()


@pytest.mark.usefixtures("few_exams")
def test_a_forecast_leaves_out_risks_that_no_noise_keeps_to():
    """A delta of 0.02 alone lets two in a hundred be found."""
    rows = forecast(DifficultiesOptions(method="gaussian", delta=0.02, epsilon=1.0), 20, 100)
    assert len(rows) >= 5


@pytest.mark.usefixtures("few_exams")
@pytest.mark.parametrize(
    "given", [{}, {"method": "knorm", "epsilon": 1.0}, {"method": "gaussian", "epsilon": 1.0}]
)
def test_a_forecast_is_about_the_method_that_would_be_used(given):
    """What is explained for a risk is what the same command reaches with that risk."""
    method = given.get("method", "knorm")
    options = DifficultiesOptions(**given)
    rows = forecast(options, 20, 100)
    assert {row.method for row in rows} == {method}
    settled = DifficultiesOptions(method=given.get("method"), risk="5 in 100")
    settled = settled.by_risk(lambda tried: plan(tried, 20, 100).guarantee)
    assert settled.method == method
    assert settled.epsilon in [row.risk.epsilon for row in rows]
    better = [row for row in rows if row.better]
    assert better
    assert all(row.better in set(PRIVATE) - {method} and row.better_noise < row.total_noise for row in better)


def test_gaussian_noise_can_be_set_by_a_risk():
    options = DifficultiesOptions(method="gaussian", risk="5 in 100")
    settled = options.by_risk(lambda tried: plan(tried, 20, 100).guarantee)
    assert settled.method == "gaussian"
    assert 2 < settled.epsilon < 4


@pytest.mark.parametrize("missing", [0.0, 0.6])
def test_the_chances_of_a_joint_fit_are_those_of_the_class(missing):
    """They are over the fitted abilities: an item that 95 % solved is solved by 95 %, whatever the penalty."""
    sitting = Exam(2000, 30, missing=missing).simulate(np.random.default_rng(3))
    found = fit(sitting.responses, method="joint", missing="skipped")
    totals = sitting.responses.totals()
    share = totals.correct / totals.answered
    assert share.max() > 0.95
    # Where all answer, the fit meets the totals up to its penalty; else the learners of an item are a sample.
    error = np.sqrt(share * (1 - share) / totals.answered)
    chance = np.array([item.chance for item in found.items])
    np.testing.assert_array_less(np.abs(chance - share), 0.003 if not missing else 0.003 + 4 * error)


def test_an_item_that_no_learner_answered_has_no_joint_difficulty():
    rows = np.array([[1, 0, -1], [0, 1, -1], [1, 1, -1]])
    found = fit(Responses.from_matrix(rows), method="joint", missing="skipped")
    assert [item.difficulty is None for item in found.items] == [False, False, True]
    assert found.items[2].reading == "answered by no student"
