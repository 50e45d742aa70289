"""Exams with points, end to end: reading, difficulties, abilities, the file and the commands."""

import contextlib
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exams.support.point_exams import simulate_points
from tests.support.command import run
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError, UsageError
from understudy.exams.ability import ability
from understudy.exams.difficulties import difficulties
from understudy.exams.formats.reading import read_responses
from understudy.exams.mechanisms.points import choose_points_measurement, share_totals
from understudy.exams.posterior import abilities, grid_of
from understudy.exams.released_file import Ability, Difficulties, Item
from understudy.exams.responses import Points, Responses

SHEET = "learner,Q1,Q2 (2 points),Q3 (4 points)\n" + "".join(
    f"s{n},{n % 2},{n % 3},{n % 5}\n" for n in range(30)
)


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "exam.csv"
    path.write_text(SHEET)
    return path


def test_points_are_read_in_steps(sheet):
    found = read_responses(sheet, points=1)
    assert found.points == (Points(1), Points(2), Points(4))
    assert found.correct[4].tolist() == [0, 1, 4]
    halves = read_responses(sheet, points=0.5)
    assert halves.points == (Points(1), Points(4, 0.5), Points(8, 0.5))
    assert halves.correct[4].tolist() == [0, 2, 8]
    assert read_responses(sheet).points is None


@pytest.mark.parametrize(
    ("cell", "words"),
    [("1.5", "between the declared steps"), ("3", "more points than the maximum"), ("-1", "negative")],
)
def test_points_that_do_not_fit_are_named_by_their_line(sheet, cell, words):
    sheet.write_text(SHEET.replace("s3,1,0,3", f"s3,1,{cell},3"))
    with pytest.raises(DataError, match=words) as error:
        read_responses(sheet, points=1)
    assert "line 5" in error.value.message


def test_the_hint_for_points_between_steps_asks_for_the_marking_scheme(sheet):
    """A step read off the sheet would depend on its learners."""
    sheet.write_text(SHEET.replace("s3,1,0,3", "s3,1,1.5,3"))
    with pytest.raises(DataError) as error:
        read_responses(sheet, points=1)
    assert "the step of the marking scheme, such as 0.5, not what the sheet shows" in error.value.hint


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["knorm", "gaussian"])
@pytest.mark.parametrize("points", [(Points(4),), (Points(1), Points(1)), (Points(1),)])
def test_items_without_pairs_or_parts_are_measured_with_noise(points, method):
    steps = np.array([[n % (item.steps + 1) for item in points] for n in range(200)], dtype=np.int8)
    exam = Responses(steps, tuple(f"q{n}" for n in range(len(points))), declared=True, points=points)
    measurement = choose_points_measurement(method, points, epsilon=1.0, delta=1e-6, agreement=True)
    found = measurement.release(exam, seeded_noise(np.random.default_rng(1)))
    assert (found.agreement is None) == (len(points) == 1)
    assert (found.parts is None) == (points[0].steps == 1)
    assert np.abs(found.shares - share_totals(steps, points)).max() < 60


def test_one_item_with_points_is_released(tmp_path):
    sheet = tmp_path / "essay.csv"
    sheet.write_text("learner,Essay /4\n" + "".join(f"s{n},{n % 5}\n" for n in range(100)))
    made = run("difficulties", sheet, "-o", "d.json", "--points", "1", "--epsilon", "1", cwd=tmp_path)
    assert made.returncode == 0, made.stderr


def test_steps_that_do_not_divide_the_maximum_are_refused(sheet):
    with pytest.raises(UsageError, match="steps of 3"):
        read_responses(sheet, points=3)
    with pytest.raises(UsageError, match="steps of 0 "):
        read_responses(sheet, points=0)


def test_words_and_percentages_are_points(tmp_path):
    path = tmp_path / "exam.csv"
    path.write_text("learner,Q1 (4 points),Q2\na,true,1\nb,50 %,0\nc,,true\n")
    assert read_responses(path, points=1).correct.tolist() == [[4, 1], [2, 0], [-1, 1]]


def test_points_of_a_list_are_refused(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("learner,item,correct\na,q1,1\nb,q1,0\n")
    with pytest.raises(UsageError, match="one row per answer"):
        read_responses(path, points=1)


def test_methods_for_right_and_wrong_refuse_points(sheet):
    with pytest.raises(UsageError, match="method joint is for right and wrong"):
        difficulties(read_responses(sheet, points=1), method="joint")


def exam(*, errors=(0.2, 0.4, 0.1), guess=0.0):
    """Three items with points whose difficulties are not exactly known."""
    credits = ((0.0, 0.0), (0.0, 0.9, 0.0), (0.0, 1.1, 0.3, 0.8, 0.0))
    items = tuple(
        Item(
            f"Q{k + 1}",
            place,
            error,
            0.5,
            "words",
            1,
            3,
            credits=credit,
            unit=0.5 if k == 2 else 1.0,
            discrimination=1.3 if k == 1 else 1.0,
            guess=guess if k == 0 else 0.0,
        )
        for k, (place, error, credit) in enumerate(zip((-0.7, 0.2, 0.6), errors, credits, strict=True))
    )
    return Difficulties(items, (("Q1", "Q2", "Q3"),), Ability(0.1, 1.2), Guarantee(1.0))


def by_brute_force(released, row, pass_mark=0.5):
    """Every number by plain sums over a fine grid of abilities, difficulties and outcomes."""
    grid = np.linspace(-12, 12, 2401)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    tables = []
    for item in released.items:
        beyond = grid[:, None] - (item.difficulty + item.standard_error * nodes)
        logs = item.discrimination * beyond[..., None] * np.arange(len(item.credits)) + np.array(item.credits)
        chance = np.exp(logs) / np.exp(logs).sum(axis=-1, keepdims=True)
        table = np.einsum("gnk,n->gk", chance, weights / weights.sum())
        if item.guess:
            table[:, 0] *= 1 - item.guess
            table[:, 1] = 1 - table[:, 0]
        tables.append(table)
    posterior = np.exp(-0.5 * ((grid - released.ability.mean) / released.ability.sd) ** 2)
    prior = posterior.copy()
    for table, step in zip(tables, row, strict=True):
        if step >= 0:
            posterior = posterior * table[:, step]
    posterior /= posterior.sum()
    shares = [table @ np.arange(table.shape[1]) / (table.shape[1] - 1) for table in tables]
    units = [item.unit for item in released.items]
    most = sum(item.points.maximum for item in released.items)
    passing = np.zeros(len(grid))
    for outcome in itertools.product(*(range(table.shape[1]) for table in tables)):
        if sum(unit * step for unit, step in zip(units, outcome, strict=True)) >= pass_mark * most - 1e-9:
            passing += np.prod([table[:, step] for table, step in zip(tables, outcome, strict=True)], axis=0)
    others = []
    for own in range(len(row)):
        weight = prior.copy()
        for item, (table, step) in enumerate(zip(tables, row, strict=True)):
            if step >= 0 and item != own:
                weight = weight * table[:, step]
        weight /= weight.sum()
        chance = weight @ tables[own]
        few = row[own] >= 0 and chance[: row[own] + 1].sum() < 0.2
        many = row[own] >= 0 and chance[row[own] :].sum() < 0.2
        others.append((weight @ shares[own], few, many))
    return posterior @ grid, posterior @ passing, [posterior @ share for share in shares], others


@pytest.mark.oracle
@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("row", [[1, 2, 4], [0, 0, 0], [1, 0, 3], [-1, 1, -1], [0, 2, 0]])
def test_abilities_are_those_of_brute_force(row, guess):
    released = exam(guess=guess)
    responses = Responses(
        np.array([row], dtype=np.int8), ("Q1", "Q2", "Q3"), points=tuple(i.points for i in released.items)
    )
    found = abilities(released, responses)
    place, passing, shares, others = by_brute_force(released, row)
    assert found.ability[0] == pytest.approx(place, abs=2e-5)
    assert found.passing[0] == pytest.approx(passing, abs=2e-5)
    np.testing.assert_allclose(found.chances[0], shares, atol=2e-5)
    np.testing.assert_allclose(found.by_others[0], [share for share, _, _ in others], atol=2e-5)
    assert found.should_have[0].tolist() == [few for _, few, _ in others]
    assert found.surprising[0].tolist() == [many for _, _, many in others]
    assert found.needed == 2.5
    assert sum(found.maxima) == 5


def test_the_grid_of_an_exam_with_many_points_holds_the_posterior():
    rng = np.random.default_rng(3)
    credits = tuple(np.zeros(11).tolist())
    items = tuple(
        Item(f"Q{k}", float(place), 0.3, 0.5, "words", 1, 20, credits=credits)
        for k, place in enumerate(rng.normal(0, 2, 20))
    )
    released = Difficulties(items, ((items[0].name,),), Ability(0.0, 0.4), Guarantee(1.0))
    grid = grid_of(released)
    steps = np.array([[0] * 20, [10] * 20, [5] * 20], dtype=np.int8)
    found = abilities(
        released, Responses(steps, tuple(i.name for i in items), points=tuple(i.points for i in items))
    )
    assert grid.low < found.low.min() - 1
    assert found.high.max() + 1 < grid.high
    assert (np.diff(found.ability[[0, 2, 1]]) > 0).all()


def test_the_file_is_read_again_and_files_without_points_are_as_before(sheet, tmp_path):
    out = tmp_path / "d.json"
    made = difficulties(read_responses(sheet, points=1), out=out)
    again = Difficulties.read(out)
    assert again.items == made.items
    assert again.has_points
    assert again.items[2].points == Points(4)
    plain = difficulties(read_responses(sheet)).content()["items"][0]
    assert set(plain) == {
        *("item", "difficulty", "standard_error", "chance", "reading", "rank_from", "rank_to"),
        *("unbounded", "guess"),
    }


def test_two_parameter_discriminations_reach_the_file_and_the_students():
    rng = np.random.default_rng(8)
    slopes = np.array([0.4, 2.5, 1.0, 1.0])
    right = simulate_points(rng.normal(0, 1, 2000), [np.zeros(1)] * 4, rng, slopes=slopes)
    found = difficulties(replace(Responses.from_matrix(right), simulated=True), method="two-parameter")
    assert found.items[0].discrimination < 0.7 < 1.8 < found.items[1].discrimination
    rows = Responses.from_matrix([[1, 0, 0, 0], [0, 1, 0, 0]])
    first, second = abilities(found, rows).ability
    assert first < second - 0.3


def test_one_students_own_points(sheet, tmp_path):
    released = difficulties(read_responses(sheet, points=1))
    own = tmp_path / "own.csv"
    own.write_text("item,points\nq1,1\nQ2,2\nQ 3,3\n")
    report = ability(released, own)
    assert report.to_frame()["points"].to_list() == [6.0]
    assert report.chances()[2]["points"] == 4
    own.write_text("item,points\nQ1,1\nQ2,3\n")
    with pytest.raises(DataError, match="from 0 to 2 in steps of 1"):
        ability(released, own)
    own.write_text("item,points\nQ1,1\nQ2,2\n")
    assert ability(released, own).n_to_enter == 1
    by_class = ability(released, sheet).to_frame()
    assert by_class["points"].to_list() == [n % 2 + n % 3 + n % 5 for n in range(30)]


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet='Q123,;.\n"item points%-', max_size=60))
def test_any_text_of_own_points_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("own") / "own.csv"
    path.write_text("item,points\n" + text)
    with contextlib.suppress(DataError, UsageError):
        ability(exam(), path, missing="wrong")


def test_the_commands_show_points(sheet, tmp_path):
    made = run("difficulties", sheet, "--points", "1", "-o", "d.json", cwd=tmp_path)
    assert made.returncode == 0
    assert "of 4 points on average" in made.stdout
    shown = run("ability", "d.json", "--answers", sheet, "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["students"][4]["points"] == 5
