"""From responses to released difficulties."""

import json

import numpy as np
import pytest

from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import DataError, UsageError
from understudy.exams.difficulties import DifficultiesOptions, difficulties, fit_difficulties, plan
from understudy.exams.estimation import METHODS, PRIVATE
from understudy.exams.forecast import forecast
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


def with_epsilon(method, epsilon=5.0):
    return None if method in ("marginal", "conditional", "joint") else epsilon


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
    if method in ("marginal", "conditional"):
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
    assert {one.better for one in forecast(request, 300, 400)} == {"gaussian"}


def test_fewer_answers_are_expected_to_tell_less():
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


def test_a_forecast_leaves_out_risks_that_no_noise_keeps_to():
    """A delta of 0.02 alone lets two in a hundred be found."""
    rows = forecast(DifficultiesOptions(method="gaussian", delta=0.02, epsilon=1.0), 20, 100)
    assert len(rows) >= 5


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
