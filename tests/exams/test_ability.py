"""Abilities: which answers count, which stand out, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.exams.support.made_difficulties import make_difficulties
from understudy.errors import DataError, UsageError
from understudy.exams.ability import blanks_are_wrong, pass_share
from understudy.exams.posterior import abilities, at_least, grid_of, matched, n_needed, slope
from understudy.exams.responses import Responses


def judged(difficulties, *rows, names=None, **options):
    names = names or [item.name for item in difficulties.items]
    return abilities(difficulties, Responses.from_matrix(list(rows), names), **options)


def test_without_answers_a_student_is_one_of_the_group():
    found = judged(make_difficulties(mean=0.7, sd=1.3), [-1, -1, -1, -1])
    assert found.ability[0] == pytest.approx(0.7, abs=1e-9)
    assert found.sd[0] == pytest.approx(1.3, abs=1e-9)
    assert (found.low[0] + found.high[0]) / 2 == pytest.approx(0.7, abs=1e-3)
    assert found.high[0] - 0.7 == pytest.approx(1.96 * 1.3, abs=5e-3)
    assert found.n_answered[0] == 0
    assert not found.should_have.any()
    assert not found.surprising.any()


def test_items_that_the_answers_lack_are_not_answered():
    difficulties = make_difficulties()
    some = judged(difficulties, [1, 0], names=["Task 3", "Task 1"])
    full = judged(difficulties, [0, -1, 1, -1])
    assert some.items == full.items
    for name in ("ability", "sd", "low", "high", "chances", "by_others", "passing"):
        np.testing.assert_allclose(getattr(some, name), getattr(full, name), atol=1e-12)


def test_items_without_a_difficulty_are_left_out_and_named():
    found = judged(make_difficulties((None, -1.0, 1.0)), [0, 1, 0])
    other = judged(make_difficulties((None, -1.0, 1.0)), [1, 1, 0])
    assert found.left_out == ("Task 1",)
    assert found.items == ("Task 2", "Task 3")
    assert found.ability == other.ability
    assert found.n_answered[0] == 2
    assert found.needed == 1
    with pytest.raises(DataError, match="none of the 2 items"):
        judged(make_difficulties((None, None)), [0, 1])


def test_items_of_another_test_are_named_and_counted():
    with pytest.raises(DataError, match=r"2 of the 3 items .* 'Essay', 'Oral'") as caught:
        judged(make_difficulties(), [1, 0, 1], names=["Essay", "Task 1", "Oral"])
    assert "leave out" in caught.value.hint
    assert "item,correct" in caught.value.hint
    with pytest.raises(
        DataError, match=r"^1 of the 1 item of the answers has no .*: 'Oral'\. .*: 'Task 1', "
    ):
        judged(make_difficulties(), [1], names=["Oral"])
    many = make_difficulties([0.1 * k for k in range(14)])
    with pytest.raises(DataError, match=r"'extra 4' and 7 more\. .*'Task 10' and 4 more\.\n"):
        judged(many, [1] * 12, names=[f"extra {k}" for k in range(12)])


def test_case_and_spaces_of_an_item_do_not_matter_where_that_is_certain():
    difficulties = make_difficulties()
    given = Responses.from_matrix([[1, 0, 1]], ["task 3", "Task1", "TASK  2"])
    assert matched(difficulties, given).items == ("Task 3", "Task 1", "Task 2")
    assert abilities(difficulties, given).ability == judged(difficulties, [0, 1, 1, -1]).ability
    for names in (["Task 1", "task 1"], ["task 1", "TASK1"]):
        with pytest.raises(DataError, match="no released difficulty"):
            matched(difficulties, Responses.from_matrix([[1, 0]], names))
    twins = make_difficulties((0.0, 1.0), names=["a b", "AB"])
    with pytest.raises(DataError, match="'ab'"):
        matched(twins, Responses.from_matrix([[1]], ["ab"]))
    assert matched(twins, Responses.from_matrix([[1, 0]], ["AB", "a b"])).items == ("AB", "a b")


@pytest.mark.parametrize(
    ("provenance", "wrong", "share"),
    [
        ({"missing": "counted as wrong", "pass_share": 0.6}, True, 0.6),
        ({"missing": "not asked", "pass_share": None}, False, None),
        ({}, False, None),
        ({"missing": 1, "pass_share": True}, False, None),
        ({"pass_share": 60}, False, None),
    ],
)
def test_what_the_file_says_about_blanks_and_points(provenance, wrong, share):
    made = replace(make_difficulties(), provenance=provenance)
    assert blanks_are_wrong(made) is wrong
    assert pass_share(made) == share


def test_answers_that_stand_out_are_judged_by_the_others():
    difficulties = make_difficulties((-3.0, -2.5, 2.5, 3.0, 0.0, 0.2), 0.1)
    strong = judged(difficulties, [0, 1, 1, 1, 1, 1])
    assert strong.should_have.tolist() == [[True, False, False, False, False, False]]
    assert strong.by_others[0, 0] > 0.8
    weak = judged(difficulties, [1, 0, 0, 1, 0, 0])
    assert weak.surprising.tolist() == [[False, False, False, True, False, False]]
    assert weak.by_others[0, 3] < 0.2
    # Its own answer would have hidden how surprising it is.
    assert weak.chances[0, 3] > weak.by_others[0, 3]


def test_the_chance_by_others_is_that_of_leaving_the_item_out():
    difficulties = make_difficulties((-1.5, 0.4, 0.9, 2.2), (0.1, 0.9, None, 0.5))
    answers = [1, 0, -1, 1]
    found = judged(difficulties, answers)
    for k in range(4):
        others = [answer if j != k else -1 for j, answer in enumerate(answers)]
        assert found.by_others[0, k] == pytest.approx(judged(difficulties, others).chances[0, k], abs=1e-12)


def test_an_unsure_difficulty_counts_less():
    sure, unsure = (judged(make_difficulties((1.0,), error, step=1), [1]) for error in (None, 3.0))
    assert sure.ability[0] > unsure.ability[0] > 0
    assert slope(make_difficulties((1.0,), None).items[0]) == 1.0


def test_many_students_come_out_like_each_alone():
    difficulties = make_difficulties(np.linspace(-2, 2, 7).tolist(), 0.4)
    matrix = np.random.default_rng(5).integers(-1, 2, (1100, 7))
    names = [item.name for item in difficulties.items]
    together = abilities(difficulties, Responses.from_matrix(matrix, names))
    for k in (0, 511, 512, 1099):
        alone = abilities(difficulties, Responses.from_matrix(matrix[k : k + 1], names))
        assert together.ability[k] == pytest.approx(alone.ability[0], abs=1e-12)
        assert together.passing[k] == pytest.approx(alone.passing[0], abs=1e-12)
        np.testing.assert_allclose(together.by_others[k], alone.by_others[0], atol=1e-12)
    empty = abilities(difficulties, Responses.from_matrix(np.zeros((0, 7), dtype=int), names))
    assert empty.ability.shape == (0,)
    assert empty.chances.shape == (0, 7)


@pytest.mark.parametrize(
    ("share", "n_items", "needed"), [(0.5, 4, 2), (0.5, 5, 3), (0.07, 100, 7), (1.0, 3, 3), (0.01, 3, 1)]
)
def test_how_many_must_be_right(share, n_items, needed):
    assert n_needed(share, n_items) == needed


@pytest.mark.parametrize("share", [0, -1, 1.01, float("nan")])
def test_a_pass_mark_that_is_no_share_is_refused(share):
    with pytest.raises(UsageError, match="pass mark"):
        n_needed(share, 10)


def test_the_grid_reaches_past_extreme_answers():
    difficulties = make_difficulties([3.0] * 400, 0.0, sd=0.1, names=[f"T{k}" for k in range(400)])
    found = judged(difficulties, [1] * 400, [0] * 400)
    grid = grid_of(difficulties)
    assert grid.low + 0.5 < found.low.min()
    assert found.high.max() < grid.high - 0.5
    # All right where the prior expects nearly nothing: the mode of 400 log sigma(b - 3) - b^2 / 0.02.
    mode = found.ability[0]
    assert mode / 0.01 == pytest.approx(400 / (1 + np.exp(mode - 3)), rel=0.02)


def test_at_least_counts_the_certain_and_the_impossible():
    np.testing.assert_allclose(at_least(np.array([[1.0, 0.0, 1.0], [0.5, 0.5, 0.5]]), 2), [1.0, 0.5])
    np.testing.assert_allclose(at_least(np.array([[1.0, 0.0]]), 0), [1.0])
