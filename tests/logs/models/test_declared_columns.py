"""Codes of declared columns, shares out of noisy counts, and the draw: against closed forms and brute force."""

import numpy as np
import pytest

from understudy.errors import DataError
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.interactions import Interactions
from understudy.logs.models.declared_columns import (
    N_RATE_CLASSES,
    Axis,
    Coding,
    Groups,
    backed_off,
    even_draw,
    margin,
    raked,
    row_classes,
    shaped,
    smoothed,
    success_classes,
)

SCORE = Declared("score", Kind.number, "learner", low=0.0, high=100.0, step=1.0)
NUMBERS = [
    SCORE,
    Declared("few", Kind.number, "row", low=0.5, high=4.0, step=0.5),
    Declared("plain", Kind.number, "row", low=-3.0, high=12.5),
    Declared("large", Kind.number, "row", low=0.0, high=1e9),
    Declared("tiny", Kind.number, "row", low=0.0, high=1e-6),
    Declared("between", Kind.number, "row", low=0.2, high=0.8, step=1.0),
    Declared("odd", Kind.number, "row", low=-1.0, high=10.0, step=0.3),
    Declared("when", Kind.time, "row", low=1.7e9, high=1.8e9),
    Declared("day", Kind.time, "row", low=1.7e9, high=1.8e9, step=86400.0),
]


@pytest.mark.parametrize("declared", NUMBERS, ids=lambda each: each.name)
def test_drawn_numbers_lie_within_bounds_on_multiples_of_the_step_and_in_their_bin(declared):
    rng = np.random.default_rng(0)
    coding = Coding(declared)
    codes = np.concatenate([np.repeat(np.arange(coding.n_codes), 50), rng.integers(0, coding.n_codes, 500)])
    drawn = coding.cells(codes, rng)
    known = ~np.isnan(drawn.cells)
    assert (known == (codes < coding.n_codes - 1)).all()
    assert ((drawn.cells[known] >= declared.low) & (drawn.cells[known] <= declared.high)).all()
    if declared.step and declared.name != "between":
        steps = drawn.cells[known] / declared.step
        assert steps == pytest.approx(np.round(steps), abs=1e-6)
    # Whoever codes what was drawn finds the bin that it was drawn from.
    assert (coding.codes(drawn) == codes).all()
    assert coding.n_codes <= 66


def test_bins_do_not_depend_on_cells_and_take_in_whatever_lies_outside():
    coding = Coding(SCORE)
    codes = coding.codes(Column(SCORE, [-np.inf, -5.0, 0.0, 100.0, 1e12, np.inf, np.nan]))
    last = coding.n_codes - 1
    assert codes.tolist() == [0, 0, 0, last - 1, last - 1, last - 1, last]
    small = Coding(NUMBERS[1])
    assert small.codes(Column(NUMBERS[1], np.arange(0.5, 4.5, 0.5))).tolist() == list(range(8))


def test_categories_and_flags_are_their_own_codes():
    declared = Declared("group", Kind.category, "learner", values=("a", "b"))
    column = Column(declared, [0, 1, 2, -1])
    coding = Coding(declared)
    assert coding.codes(column).tolist() == [0, 1, 2, 3]
    assert coding.cells(coding.codes(column), np.random.default_rng(0)).cells.tolist() == [0, 1, 2, -1]
    assert Coding(Declared("hint", Kind.flag, "row")).n_codes == 3


def test_a_step_that_is_far_too_small_is_refused():
    with pytest.raises(DataError, match="step that is too small"):
        Coding(Declared("x", Kind.number, "row", low=0.0, high=1e20, step=1e-3)).codes(Column(SCORE, [1.0]))


def test_classes_of_walks():
    outcomes = [[1], [0, 1], [1] * 9, [], [0] * 300_000]
    log = Interactions.from_sequences([[0] * len(each) for each in outcomes], outcomes)
    assert row_classes(log).tolist() == [0, 2, 6, 0, 31]
    rates = [2 / 3, 2 / 4, 10 / 11, 1 / 2, 1 / 300_002]
    assert success_classes(log).tolist() == [int(N_RATE_CLASSES * rate) for rate in rates]


@pytest.mark.oracle
def test_backing_off_has_its_closed_form():
    """For two contexts and two codes, written out: t from the squares, then each departure by its own factor."""
    noisy, sigma, guess = np.array([[80.0, 20.0], [30.0, 70.0]]), 5.0, np.array([0.5, 0.5])
    # Departures are 30, -30, -20, 20; g (1 - g) is 1/4, and n is 100 in both.
    spread = (2 * 30**2 + 2 * 20**2 - 4 * 5**2) / (4 * 100**2 / 4)
    known = spread * 100**2 / 4 / (spread * 100**2 / 4 + 5**2)
    wanted = [[0.5 + 0.3 * known, 0.5 - 0.3 * known], [0.5 - 0.2 * known, 0.5 + 0.2 * known]]
    assert backed_off(noisy, sigma, guess) == pytest.approx(np.array(wanted))


def test_backing_off_reaches_from_the_counts_to_the_guess():
    rng = np.random.default_rng(0)
    counts, guess = rng.integers(0, 50, (30, 5)).astype(float), np.full(5, 0.2)
    counts[3] = 0.0
    exact = backed_off(counts, 1e-9, guess)
    present = counts.sum(axis=1) > 0
    assert exact[present] == pytest.approx(counts[present] / counts[present].sum(axis=1, keepdims=True))
    assert exact[~present] == pytest.approx(np.full(((~present).sum(), 5), 0.2))
    assert backed_off(counts, 1e6, guess) == pytest.approx(np.tile(guess, (30, 1)))
    absent = backed_off(counts, 1.0, np.array([0.0, 0.25, 0.25, 0.25, 0.25]))
    assert (absent[:, 0] == 0).all()


@pytest.mark.oracle
def test_backing_off_is_closer_than_the_counts_and_than_the_guess():
    """On shares that really depart from a guess, with known noise."""
    rng = np.random.default_rng(1)
    guess, n, sigma = np.array([0.5, 0.3, 0.15, 0.05]), rng.integers(20, 2000, 200), 40.0
    real = rng.dirichlet(guess * 20, 200)
    noisy = n[:, None] * real + rng.normal(0, sigma, (200, 4))
    found = backed_off(noisy, sigma, guess)
    plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum(axis=1, keepdims=True)
    error = [np.abs(each - real).sum() for each in (found, plain, np.tile(guess, (200, 1)))]
    assert error[0] < 0.8 * min(error[1:])


@pytest.mark.parametrize("ordered", [True, False])
def test_shaped_shares_reach_from_the_counts_to_the_guess(ordered):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, (6, 4, 5)).astype(float)
    axes = (Axis(6, ordered, False), Axis(4, ordered, True), Axis(5, ordered, True))
    for axis in axes:
        assert axis.waves() @ axis.waves().T == pytest.approx(np.eye(axis.n))
    guess = np.full(5, 0.2)
    exact = shaped(counts, 1e-9, guess, axes)
    assert exact == pytest.approx(counts / counts.sum(axis=2, keepdims=True))
    assert shaped(counts, 1e6, guess, axes) == pytest.approx(np.full((6, 4, 5), 0.2), abs=1e-3)


@pytest.mark.oracle
def test_a_trend_is_seen_through_noise_that_hides_every_cell():
    rng = np.random.default_rng(2)
    x = (np.arange(12) + 0.5) / 12 - 0.5
    real = (1.0 + 3.0 * np.outer(x, x)) / 12
    noisy = 4000 / 12 * real + rng.normal(0, 12, (12, 12))
    axes = (Axis(12, True, False),) * 2
    error = [
        np.abs(each - real).sum()
        for each in (
            shaped(noisy, 12.0, np.full(12, 1 / 12), axes),
            backed_off(noisy, 12.0, np.full(12, 1 / 12)),
            np.full((12, 12), 1 / 12),
        )
    ]
    assert error[0] < 0.75 * min(error[1:])


@pytest.mark.oracle
def test_raking_finds_the_table_that_has_no_interaction():
    """A table whose every cell is a product of three pairwise factors is the one with its margins."""
    rng = np.random.default_rng(0)
    weight, one, other = rng.random((3, 4)), rng.random((3, 5)), rng.random((4, 5))
    table = one[:, None, :] * other[None, :, :]
    table /= table.sum(axis=2, keepdims=True)
    joint = weight[:, :, None] * table / weight.sum()
    first = joint.sum(axis=1) / joint.sum(axis=(1, 2))[:, None]
    second = joint.sum(axis=0) / joint.sum(axis=(0, 2))[:, None]
    found = raked(weight / weight.sum(), first, second, joint.sum(axis=(0, 1)))
    assert found == pytest.approx(table, abs=1e-4)


def test_smoothed_bins_keep_their_sum_and_exact_ones_their_counts():
    rng = np.random.default_rng(0)
    counts, widths = rng.integers(0, 100, 45).astype(float), rng.random(45) + 0.1
    assert smoothed(counts, 1e-9, widths) == pytest.approx(counts)
    noisy = counts + rng.normal(0, 30, 45)
    found = smoothed(noisy, 30.0, widths)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(noisy.sum())
    hidden = smoothed(noisy, 1e6, widths)
    assert hidden == pytest.approx(noisy.sum() * widths / widths.sum(), rel=1e-3)
    assert (smoothed(np.full(4, -3.0), 1.0, np.ones(4)) == 0).all()


def test_a_margin_has_no_category_that_noise_hides():
    coding = Coding(Declared("group", Kind.category, "learner", values=("a", "b", "c")))
    found = margin(np.array([500.0, 300.0, 12.0, 9.0, -4.0]), 10.0, coding)
    assert found[2:].tolist() == [0, 0, 0]
    assert found.sum() == pytest.approx(1.0)
    nothing = margin(np.full(5, -2.0), 10.0, coding)
    assert nothing == pytest.approx([0.25, 0.25, 0.25, 0.25, 0.0])


def test_groups():
    shares = np.array([0.1, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1])
    known = Groups.of(shares, 3, ordered=True)
    assert known.of_code.tolist() == [0, 0, 1, 2, 2, 2, 3] or (np.diff(known.of_code[:-1]) >= 0).all()
    assert known.of_code[-1] == known.n - 1
    alone = Groups.of(shares, 3, ordered=False)
    assert alone.of_code[1] == 0
    assert alone.n == 4
    assert alone.summed(shares).sum() == pytest.approx(1.0)
    within = alone.within(shares)
    assert within.sum(axis=1) == pytest.approx(np.ones(4))
    assert (within > 0).sum() == 7
    # Nothing is missing: the last code is no group of its own.
    none = Groups.of(np.array([0.5, 0.5, 0.0]), 5, ordered=False)
    assert none.n == 2
    assert Groups.alone(4).within(np.full(4, 0.25)) == pytest.approx(np.eye(4))


@pytest.mark.oracle
def test_an_even_draw_has_its_shares_as_nearly_as_so_many_can():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(6), 40)
    shares[5] = [0, 0, 1, 0, 0, 0]
    context = rng.integers(0, 40, 20_000)
    codes = even_draw(context, shares, rng)
    for each in range(40):
        n = (context == each).sum()
        found = np.bincount(codes[context == each], minlength=6)
        assert np.abs(found - n * shares[each]).max() <= 2.0
    assert set(codes[context == 5]) == {2}
    # Over many draws of few, chances are the shares, and learners of a context are drawn alike.
    counts = np.zeros((3, 6))
    for _ in range(4000):
        counts[np.arange(3), even_draw(np.zeros(3, dtype=int), shares[:1], rng)] += 1
    assert counts / 4000 == pytest.approx(np.tile(shares[0], (3, 1)), abs=0.04)
