"""Items of which some are guessed: choices per item, from the list of items to the students' page."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from tests.support.command import run
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import UsageError
from understudy.exams.ability import ability
from understudy.exams.difficulties import DifficultiesOptions, fit_difficulties
from understudy.exams.forecast import precision
from understudy.exams.mechanisms.totals import NoisyTotals, below_guess
from understudy.exams.plan import plan, plan_for
from understudy.exams.responses import Points, Responses
from understudy.exams.student_page import page

# Half of the items are chosen from four answers, half are written.
GUESSES = (0.25, 0.0) * 10


def exam(n_learners=3000, guesses=GUESSES, seed=1):
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.5, 1.2, len(guesses))
    know = expit(rng.normal(0.0, 1.2, n_learners)[:, None] - difficulty)
    right = rng.random(know.shape) < np.array(guesses) + (1 - np.array(guesses)) * know
    return Responses.from_matrix(right.astype(np.int8)), difficulty


def fit(responses, **options):
    rng = np.random.default_rng(2)
    planned = plan(DifficultiesOptions(epsilon=5.0, **options), responses.n_items, responses.n_learners)
    found = fit_difficulties(responses, planned, seeded_noise(rng), rng)
    # As it would be with secret noise.
    return replace(found, guarantee=planned.guarantee)


def errors(found, truth):
    return np.array([item.difficulty for item in found.items]) - truth


def test_each_item_has_the_guess_of_its_choices():
    responses, truth = exam()
    found = fit(replace(responses, guesses=GUESSES))
    assert tuple(item.guess for item in found.items) == GUESSES
    guessed = np.array(GUESSES) > 0
    assert abs(errors(found, truth)[guessed].mean()) < 0.15
    assert abs(errors(found, truth)[~guessed].mean()) < 0.15
    # Without the choices guessed items seem easier, by half a logit and more.
    assert errors(fit(responses), truth)[guessed].mean() < -0.4
    # And one guess for all makes written ones seem harder.
    assert errors(fit(responses, guess=0.25), truth)[~guessed].mean() > 0.3
    assert not found.warnings()


def test_choices_reach_abilities_and_the_page(tmp_path):
    responses, _ = exam(500)
    found = fit(replace(responses, guesses=GUESSES))
    written = tmp_path / "d.json"
    written.write_text(json.dumps(found.content()), encoding="utf-8")
    # Right at a guessed item says less than right at a written one of the same difficulty.
    items = [replace(item, difficulty=0.0, standard_error=0.1) for item in found.items[:2]]
    made = replace(found, items=tuple(items), steps=(tuple(item.name for item in items),))
    abilities = []
    for name in (items[0].name, items[1].name):
        answers = tmp_path / f"{name}.csv"
        answers.write_text(f"item,correct\n{name},1\n", encoding="utf-8")
        abilities.append(float(ability(made, answers, missing="skipped").to_frame()["ability"][0]))
    assert abilities[0] < abilities[1] - 0.1
    out = tmp_path / "page.html"
    page(written, out=out)
    assert '"guess": 0.25' in out.read_text(encoding="utf-8")


def test_choices_and_one_guess_for_all_are_two_declarations():
    responses = replace(exam(50)[0], guesses=GUESSES)
    with pytest.raises(UsageError, match="leave one of them out") as caught:
        plan_for(responses, DifficultiesOptions(epsilon=1.0, guess=0.25))
    assert caught.value.settings == ("guess", "items")
    with pytest.raises(UsageError, match="not guessed"):
        plan_for(responses, DifficultiesOptions(method="marginal"))
    with pytest.raises(UsageError, match="with points know no guessing"):
        plan_for(replace(responses, points=(Points(),) * 20), DifficultiesOptions(epsilon=1.0))
    # Written answers alone are what every method fits.
    plan_for(replace(responses, guesses=(0.0,) * 20), DifficultiesOptions(method="marginal"))


def test_a_forecast_knows_the_choices():
    planned = plan(DifficultiesOptions(epsilon=5.0), 20, 300)
    written = precision(planned, 20, 300)
    mixed = precision(planned, 20, 300, guesses=GUESSES)
    guessed = precision(planned, 20, 300, guesses=(0.25,))
    assert written.error.expected < mixed.error.expected < guessed.error.expected
    assert guessed == precision(plan(DifficultiesOptions(epsilon=5.0, guess=0.25), 20, 300), 20, 300)


def test_a_guess_that_does_not_fit_is_told():
    responses, _ = exam(guesses=(0.0,) * 20)
    hard = Responses.from_matrix(
        responses.correct * (np.random.default_rng(3).random(responses.correct.shape) < 0.4)
    )
    found = fit(hard, guess=0.25)
    assert found.provenance["items_below_guess"] >= 5
    (sentence,) = [line for line in found.warnings() if "guessing" in line]
    assert sentence.startswith(
        f"{found.provenance['items_below_guess']} items were solved clearly less often"
    )


@pytest.mark.oracle
@pytest.mark.parametrize("n_items", [10, 60])
def test_guesses_that_fit_are_not_doubted(n_items):
    """Items that nobody knows, with normal noise: doubted in no more than one of a thousand exams."""
    rng = np.random.default_rng(5)
    guess = np.full(n_items, 0.25)
    covariance = np.diag([150.0, 0.0])
    doubted = 0
    for _ in range(1000):
        right = rng.binomial(200, 0.25, n_items) + rng.normal(0.0, np.sqrt(150.0), n_items)
        doubted += below_guess(NoisyTotals(right, np.full(n_items, 200.0), covariance, 200), guess) > 0
    assert doubted <= 4


def test_choices_at_the_command_line(tmp_path):
    responses, _ = exam(60, GUESSES[:4])
    rows = "\n".join(f"l{n}," + ",".join(map(str, row)) for n, row in enumerate(responses.correct.tolist()))
    (tmp_path / "s.csv").write_text(f"learner,a,b,c,d\n{rows}\n", encoding="utf-8")
    (tmp_path / "i.csv").write_text("item,choices\na,4\nb,\nc,3\nd,0\n", encoding="utf-8")
    done = run("difficulties", "s.csv", "--items", "i.csv", "--epsilon", 2, "-o", "d.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert [item["guess"] for item in content["items"]] == [0.25, 0.0, 0.333333, 0.0]
    # No points, so no share of them is told to students.
    assert content["provenance"]["pass_share"] is None


def test_explain_takes_a_list_with_choices_without_an_epsilon(monkeypatch):
    from understudy.cli import exams as commands

    asked = []
    monkeypatch.setattr(commands, "forecast", lambda options, *_: asked.append(options.method) or [])
    commands._explain(replace(exam(50)[0], guesses=GUESSES), DifficultiesOptions(), as_json=True)
    assert asked == ["knorm"]


def test_skipped_answers_are_not_proposed_where_they_would_be_refused():
    from understudy.cli.exams import _about_missing

    responses = Responses.from_matrix(np.array([[1, -1], [0, 1], [1, 1]]))
    assert (
        "--missing skipped" in _about_missing(responses, DifficultiesOptions(epsilon=1.0, missing="wrong"))[0]
    )
    points = replace(responses, points=(Points(),) * 2)
    assert "skipped" not in _about_missing(points, DifficultiesOptions(epsilon=1.0, missing="wrong"))[0]
    assert "--missing skipped" in _about_missing(points, DifficultiesOptions(missing="wrong"))[0]
