"""Declared columns of a private generator: what their sums spend on the worst neighbours, and what is found about them.

A release is computed from noisy sums, so its privacy loss on two neighbouring logs is known without chance: see
`support/transcripts.py`.
"""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.stats import norm

from tests.privacy.support.transcripts import costs, transcripts
from tests.privacy.support.worst_pairs import (
    logs,
    logs_with_shared_names,
    random_logs,
    released_log,
    with_columns,
)
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.columns import OTHER, Column, Declared, Kind
from understudy.logs.generators.budget import VOCABULARY_SHARE, budget
from understudy.logs.generators.detail_split import detail_shares
from understudy.logs.generators.found_columns import MOST_OWN
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_columns import cells, sizes
from understudy.logs.generators.private_sums import RESOLUTION
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions

DELTA = 1e-6


def losses(pair, **options):
    """What each draw loses on a pair, in rho, and what it may lose: its statistic's share, divided among its draws."""
    kept = []

    def release(log, noise):
        released = released_log(log, noise, **options)
        kept.append(released[0])
        return released

    found = [cost.rho for cost in costs(*transcripts(release, pair))]
    names = [name.rpartition(" ")[0] for name in kept[0]["transcript_"]]
    assert len(names) == len(found)
    return np.array(found), names


def allowed(rho, names, log, kind=MarkovDP):
    """By the shares of all statistics, those of columns added."""
    generator = kind(8.0, DELTA)
    generator.n_learners_, generator.has_outcomes_ = log.n_learners, log.outcome is not None
    generator.in_order_, generator.n_declared_ = False, log.n_actions if log.declared else None
    base = generator._shares
    shares = {name: share / sum(base.values()) for name, share in base.items()} | generator.divided(log)
    total = sum(shares.values())
    rest = 1.0 if log.declared else 1.0 - VOCABULARY_SHARE
    parts = {name: rest * share / total for name, share in shares.items()} | {"vocabulary": VOCABULARY_SHARE}
    return np.array([rho * parts[name] / names.count(name) for name in names])


@pytest.mark.parametrize("kind", [MarkovDP, RunsDP])
def test_no_sum_loses_more_than_its_share_and_all_of_them_nearly_that(kind):
    pair = with_columns([log.declare() for log in logs()])
    rho = budget(8.0, DELTA)
    found, names = losses(pair, kind=kind)
    limits = allowed(rho, names, pair[0], kind)
    assert (found <= limits * (1 + 1e-9)).all()
    # Every table has noise of its own: two of walks, and one for each pair that is looked at.
    assert (names.count("columns walks"), names.count("columns relations")) == (2, 6)
    # The long learner's counts by action differ from the short one's in every cell: nothing is left of the share.
    of_columns = np.array([name.startswith("columns") for name in names])
    assert found[of_columns].sum() > 0.97 * limits[of_columns].sum()
    assert 0.95 * np.sqrt(rho) < np.sqrt(found.sum()) <= np.sqrt(rho)


def usual(log):
    """What times and columns take where nothing speaks for more or less."""
    return detail_shares(log, inf, log.n_learners)


def test_columns_take_no_more_than_a_quarter_of_what_all_else_has():
    pair = with_columns([log.declare() for log in logs()])
    assert sum(usual(pair[0]).values()) == pytest.approx(0.24)
    single = replace(pair[0], columns=pair[0].columns[:1])
    assert sum(usual(single).values()) == pytest.approx(0.06)
    many = replace(
        pair[0],
        columns=tuple(
            replace(pair[0].columns[i % 4], declared=replace(pair[0].columns[i % 4].declared, name=f"c{i}"))
            for i in range(12)
        ),
    )
    assert sum(usual(many).values()) == pytest.approx(0.25)


def random_columns(log, rng):
    """Columns of every kind; the last learner's cells are extreme, missing, or like those of the others."""
    declared = [
        Declared("a", Kind.category, "row", values=("x", "y")),
        Declared("b", Kind.number, "row", low=-5.0, high=5.0),
        Declared("c", Kind.flag, "learner"),
        Declared("d", Kind.number, "learner", low=0.0, high=10.0, step=0.5),
        Declared("e", Kind.time, "learner", low=0.0, high=1e6),
        Declared("f", Kind.category, "learner", values=("p", "q", "r")),
        # At which actions it has values is public, and only rows there are asked about.
        Declared("graded", Kind.flag, "row", at=log.actions[::2]),
    ]
    columns = []
    for each in declared:
        n = log.n_rows if each.of == "row" else log.n_learners
        fixed = np.random.default_rng(len(columns))
        drawn = (
            fixed.integers(-1, len(each.names), 100_000) if each.coded else fixed.normal(3.0, 3.0, 100_000)
        )
        cell = np.array(drawn[:n], dtype=float)
        own = (log.learner if each.of == "row" else np.arange(log.n_learners)) == log.n_learners - 1
        cell[own] = rng.choice([-1.0, 0.0, 1.0] if each.coded else [np.nan, -1e9, 1e9, 0.3])
        columns.append(Column(each, cell))
    return replace(log, columns=tuple(columns)).declare()


def test_no_pair_that_was_drawn_loses_more():
    rng = np.random.default_rng(0)
    rho = budget(8.0, DELTA)
    for _ in range(12):
        # All learners but the last have the same rows in both logs, and so the same cells.
        pair = [random_columns(log, rng) for log in random_logs(rng)]
        found, names = losses(pair)
        assert (found <= allowed(rho, names, pair[0]) * (1 + 1e-9)).all()
        assert found.sum() <= rho


def test_where_rows_of_a_column_are_clipped_is_decided_by_noisy_sizes():
    """Whether the last learner has one row or hundreds in one cell decides nothing but their own part of the sums."""
    rng = np.random.default_rng(0)
    walks = [rng.integers(0, 4, 100) for _ in range(400)]
    pair = []
    for last in (np.zeros(1, dtype=np.int64), np.zeros(900, dtype=np.int64)):
        outcomes = [np.arange(len(walk)) % 2 for walk in (*walks, last)]
        log = Interactions.from_sequences([*walks, last], outcomes, actions=list("abcd")).declare()
        device = Declared("device", Kind.category, "row", values=("x", "y"))
        pair.append(replace(log, columns=(Column(device, log.action % 2),)))
    found, names = losses(pair)
    assert (found <= allowed(budget(8.0, DELTA), names, pair[0]) * (1 + 1e-9)).all()


def test_without_outcomes_columns_depend_on_actions_and_rows():
    pair = with_columns([log.without_outcomes().declare() for log in logs()])
    rho = budget(8.0, DELTA)
    found, names = losses(pair)
    assert (found <= allowed(rho, names, pair[0]) * (1 + 1e-9)).all()
    rng = np.random.default_rng(0)
    fitted = MarkovDP(8.0).fit(pair[0], rng, seeded_noise(rng))
    assert fitted.sample(10, rng).outcome is None
    assert {name for given in fitted.details_.columns.given.values() for name in given} <= {
        "action",
        "number of rows",
        "'group'",
    }


# ---- what is found


@pytest.mark.parametrize("declared", [True, False])
def test_categories_that_are_found_are_paid_for(declared):
    pair = with_columns(logs_with_shared_names(), found=True)
    pair = [log.declare() for log in pair] if declared else pair
    rho = budget(8.0 + np.log1p(-DELTA / 2), DELTA / 2)
    found, names = losses(pair)
    assert names.count("columns 'group' found") == 1
    assert (found <= allowed(rho, names, pair[0]) * (1 + 1e-9)).all()
    assert found.sum() <= rho
    # Half of delta is for what is found, though the names of actions are public.
    assert MarkovDP(8.0, DELTA).guarantee_for(pair[0]).extra_delta == DELTA / 2


class FixedDraw:
    """Noise that puts every count of one draw at one value, and leaves all other sums alone."""

    secret = False

    def __init__(self, number, count):
        self.number, self.count, self.n_draws, self.sigma = number, count, 0, 0.0

    def discrete_gaussian(self, values, sigma):
        self.n_draws += 1
        if self.n_draws - 1 != self.number:
            return values
        self.sigma = sigma
        return np.full_like(values, self.count)


@pytest.mark.parametrize(("declared", "n_lists"), [(True, 2), (False, 3)])
def test_a_category_of_one_learner_is_told_with_no_more_than_its_part_of_delta(declared, n_lists):
    """The threshold is found from outside, by halving; every list of names has the same part of half of delta."""
    device = Declared("device", Kind.category, "row", values=("a", "b"), found=True)
    group = Declared("group", Kind.category, "learner", values=("p", "q"), found=True)
    log = Interactions.from_sequences([[0], [0, 1]], [[1], [0, 1]])
    log = replace(log, columns=(Column(device, [0, 0, 1]), Column(group, [0, 1])), declared=declared)

    def told(place, count):
        noise = FixedDraw(place + (not declared), count)
        fitted = MarkovDP(8.0, delta=DELTA, longest=10).fit(log, np.random.default_rng(0), noise)
        return len(fitted.declared_columns_[place].values) > 0, noise.sigma

    for place in (0, 1):
        low, high = 0, 2**40
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if told(place, middle)[0] else (middle, high)
        # A learner has one cell of a column of learners.
        own, sigma = np.arange(1, (MOST_OWN, 1)[place] + 1), told(place, high)[1]
        chance = -np.expm1(own * norm.logcdf((high - RESOLUTION / np.sqrt(own)) / sigma)).min()
        assert 0.99 * DELTA / 2 / n_lists < chance <= DELTA / 2 / n_lists


class Shouting:
    """Noise that lifts every sum far above any threshold."""

    secret = False

    def discrete_gaussian(self, values, sigma):
        return np.asarray(values) + int(1000 * sigma)


def test_a_learner_has_no_more_candidates_than_the_proof_allows():
    values = tuple(f"value {i}" for i in range(100))
    device = Declared("device", Kind.category, "row", values=values, found=True)
    log = Interactions.from_sequences([[0, 1] * 50], [[1, 0] * 50], actions=["a", "b"]).declare()
    log = replace(log, columns=(Column(device, np.arange(100)),))
    fitted = MarkovDP(8.0).fit(log, np.random.default_rng(0), Shouting())
    assert len(fitted.declared_columns_[0].values) == MOST_OWN


def test_a_category_that_one_learner_has_is_not_told():
    """False-alarm rate: delta / 2, five in ten million."""
    log = with_columns(logs(), found=True)[0].declare()
    group = log.columns[2]
    named = replace(group.declared, values=(*group.declared.values, "my diagnosis"))
    own = np.append(group.cells[:-1], 3)
    log = replace(log, columns=(*log.columns[:2], Column(named, own), log.columns[3]))
    fitted = MarkovDP(8.0).fit(log, np.random.default_rng(0), seeded_noise(np.random.default_rng(0)))
    assert fitted.declared_columns_[2].values == ("a", "b", "c")
    drawn = {each.declared.name: each for each in fitted.sample(50, np.random.default_rng(0)).columns}
    assert drawn["group"].declared.names == ("a", "b", "c", OTHER)
    # Nothing that is kept has the length of the list of candidates.
    assert len(fitted.transcript_["columns 'group' found 0"].values) == 3


def test_bounds_are_found_from_bins_that_are_public():
    rng = np.random.default_rng(0)
    score = Declared("score", Kind.number, "learner", found=True)
    when = Declared("when", Kind.time, "learner", found=True)
    log = Interactions.from_sequences([[0, 1]] * 2000, [[0, 1]] * 2000).declare()
    numbers, times = rng.uniform(3.0, 90.0, 2000), rng.uniform(1.70e9, 1.72e9, 2000)
    numbers[0], times[0] = 1e9, 4e9
    log = replace(log, columns=(Column(score, numbers), Column(when, times)))
    fitted = MarkovDP(8.0).fit(log, rng, seeded_noise(rng))
    found, when_found = fitted.declared_columns_
    assert (found.low, found.high) == (2.0, 128.0)
    assert when_found.high - when_found.low < 0.03e9
    drawn = fitted.sample(500, rng)
    assert np.nanmax(drawn.columns[0].cells) <= 128.0
    # All learners but one are as before; whatever the noise was, bounds follow from the noisy bins alone.
    pair = [log, replace(log, columns=(Column(score, np.append(-1e9, numbers[1:])), log.columns[1]))]
    found_losses, names = losses(pair)
    assert (found_losses <= allowed(budget(8.0, DELTA), names, log) * (1 + 1e-9)).all()


# ---- sums of one learner


def test_statistics_of_one_learner_move_no_further_than_stated():
    """Against sums of whole logs, learner by learner: everybody is replaced by everybody else."""
    rng = np.random.default_rng(3)
    parts = {}
    for n in (0, 1, 3, 30, 500):
        for spread in (1, 40):
            log = Interactions.from_sequences(
                [rng.integers(0, 4, n)], [rng.integers(0, 2, n)], actions=list("abcd")
            )
            cell = rng.integers(0, spread, n)
            for name, total in {"sizes": sizes(log, cell, 40), "cells": cells(log, cell, 40, 5.0)}.items():
                parts.setdefault(name, []).append((total.values.astype(float), total.sensitivity))
    for name, found in parts.items():
        distances = [np.linalg.norm(a - b) for a, _ in found for b, _ in found]
        assert 0.9 * found[0][1] < max(distances) <= found[0][1], name


def test_what_each_learner_adds_explains_the_released_sums():
    """The attack that sees the noisy sums gets each learner's part of every one of them, found categories aside."""
    rng = np.random.default_rng(1)
    log = with_columns(logs(), found=True)[0].declare()
    log = log.select(np.arange(3000, log.n_learners))
    fitted = MarkovDP(8.0).fit(log, rng, seeded_noise(rng))
    sums = fitted.learner_sums(log)
    left = sums.released - np.asarray(sums.added.sum(axis=0)).ravel()
    assert np.std(left) == pytest.approx(1.0, abs=0.15)
    # Other learners, and more of them or fewer, have the same columns of sums.
    assert fitted.learner_sums(log.select(np.arange(10))).added.shape == (10, len(sums.released))


@pytest.mark.parametrize("epsilon", [0.01, 50.0])
@pytest.mark.parametrize("kind", [MarkovDP, RunsDP])
def test_no_epsilon_and_no_log_is_too_small(epsilon, kind):
    rng = np.random.default_rng(0)
    log = Interactions.from_sequences([[0], [0, 1], []], [[1], [0, 1], []])
    log = random_columns(log, rng)
    unbounded = Column(Declared("g", Kind.number, "row", found=True), [1.0, 2.0, np.nan])
    log = replace(log, columns=(*log.columns, unbounded))
    fitted = kind(epsilon).fit(log, rng, seeded_noise(rng))
    sample = fitted.sample(20, rng)
    assert [column.declared.name for column in sample.columns] == [*"abcdef", "graded", "g"]
    for column in sample.columns:
        declared, cell = column.declared, column.cells
        if declared.coded:
            assert ((cell >= -1) & (cell < len(declared.names))).all()
        else:
            assert (np.isnan(cell) | ((cell >= declared.low) & (cell <= declared.high))).all()


def test_what_is_looked_for_follows_from_what_is_declared():
    one, other = (log.declare() for log in with_columns(logs(), found=True))
    for rho in (0.01, 0.1, 1.0, inf):
        assert detail_shares(one, rho, 100) == detail_shares(other, rho, 100)
    known = with_columns(logs())[0].declare()
    assert not any(name.endswith("found") for name in usual(known))
    assert MarkovDP(8.0).guarantee_for(known).extra_delta == 0
