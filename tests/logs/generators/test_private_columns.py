"""Sums of declared columns against a slow count, and what generators make of them: baselines exactly, others nearly."""

from collections import Counter
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.expectation import expected_of
from understudy.logs.generators.baselines import Markov
from understudy.logs.generators.budget import Exact
from understudy.logs.generators.detail_split import detail_shares
from understudy.logs.generators.details import Details, fit_details
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_columns import cells, relation, sizes
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import totals
from understudy.logs.simulated.classroom import Classroom

VALUES = ("a", "b", "c")


def with_columns(log, rng):
    """Columns that depend on the rows: cells of actions and outcomes, a score of success and length, groups of both."""
    rate = totals(log.learner, log.success, log.n_learners) / np.maximum(log.lengths, 1)
    ability = rate + 0.05 * rng.normal(size=log.n_learners)
    score = np.round(np.clip(100 * (0.2 + 0.5 * ability + 0.05 * np.log2(log.lengths)), 0, 100))
    score[rng.random(log.n_learners) < 0.1] = np.nan
    group = np.digitize(ability + 0.1 * rng.normal(size=log.n_learners), np.quantile(ability, [0.4, 0.8]))
    device = np.where(rng.random(log.n_rows) < 0.7, log.action % 3, rng.integers(-1, 3, log.n_rows))
    hint = rng.random(log.n_rows) < np.where(log.success == 1, 0.1, 0.6)
    return replace(
        log,
        columns=(
            Column(Declared("group", Kind.category, "learner", values=VALUES), group),
            Column(Declared("device", Kind.category, "row", values=VALUES), device),
            Column(Declared("score", Kind.number, "learner", low=0.0, high=100.0, step=1.0), score),
            Column(Declared("hint", Kind.flag, "row"), hint),
        ),
    ).declare()


@pytest.fixture(scope="module")
def classroom():
    rng = np.random.default_rng(0)
    return with_columns(Classroom(n_learners=4000, n_actions=20).simulate(rng), rng)


@pytest.mark.oracle
def test_sums_equal_a_slow_count(make_log):
    log = make_log(np.random.default_rng(0), n_learners=12, n_actions=3)
    cell = np.random.default_rng(1).integers(0, 5, log.n_rows)
    norm = 4.0
    wanted, bins = np.zeros(5), Counter()
    for i in range(log.n_learners):
        own = Counter(cell[log.offsets[i] : log.offsets[i + 1]].tolist())
        length = sum(count**2 for count in own.values()) ** 0.5
        for code, count in own.items():
            wanted[code] += count * min(1.0, norm / length)
        bins[int(np.log2(length))] += 1
    total = cells(log, cell, 5, norm)
    assert total.values * total.step == pytest.approx(wanted, abs=1e-3)
    found = sizes(log, cell, 5)
    assert (found.values * found.step).tolist() == [bins[i] for i in range(16)]


@pytest.mark.oracle
def test_a_relation_of_noise_alone_is_hardly_ever_found_and_a_real_one_nearly_always():
    """Of independent tables about one in a hundred; the exact rate is that of a chi-square of four."""
    rng = np.random.default_rng(0)
    found = {"none": 0, "some": 0}
    for _ in range(400):
        one, other = rng.integers(0, 3, (2, 2000))
        related = np.where(rng.random(2000) < 0.25, one, other)
        for name, second in (("none", other), ("some", related)):
            table = np.bincount(one * 3 + second, minlength=9).reshape(3, 3) + rng.normal(0, 10, (3, 3))
            found[name] += relation(table, 10.0) > 0
    assert found["none"] <= 16
    assert found["some"] >= 396
    assert relation(np.full((1, 5), 30.0), 1.0) == 0.0


def drawn_on(log, seed=0):
    """Columns that a baseline draws for the very walks that it learned from."""
    details = fit_details(log, Exact(detail_shares(log, inf, log.n_learners)), log.n_learners)
    return details, details.add_to(replace(log, columns=()), np.random.default_rng(seed))


@pytest.mark.oracle
def test_a_baseline_reproduces_the_marginals_of_rows(classroom):
    _, drawn = drawn_on(classroom)
    for place in (1, 3):
        n = len(classroom.columns[place].declared.names) + 1
        tables = [
            np.bincount(log.code * n + log.columns[place].cells + 1, minlength=40 * n).reshape(40, n)
            for log in (classroom, drawn)
        ]
        # As nearly as whole rows can, and as sums on the lattice are.
        assert np.abs(tables[0] - tables[1]).max() <= 0.01 * tables[0].sum(axis=1).max() + 2
    assert [column.declared for column in drawn.columns] == [column.declared for column in classroom.columns]


def facts(log):
    """What a researcher looks at: means, and how columns of learners go with walks and with each other."""
    rate = totals(log.learner, log.success, log.n_learners) / log.lengths
    columns = {column.declared.name: column.cells for column in log.columns}
    score = columns["score"]
    known = ~np.isnan(score)
    return {
        "mean score": score[known].mean() / 100,
        "missing": 1 - known.mean(),
        "score and success": np.corrcoef(score[known], rate[known])[0, 1],
        "score and rows": np.corrcoef(score[known], np.log(log.lengths[known]))[0, 1],
        **{f"success of {value}": rate[columns["group"] == code].mean() for code, value in enumerate(VALUES)},
        **{f"share of {value}": (columns["group"] == code).mean() for code, value in enumerate(VALUES)},
        "hints after failure": (columns["hint"][log.success == 0] == 1).mean(),
        "hints after success": (columns["hint"][log.success == 1] == 1).mean(),
        "device of action 1": (columns["device"][log.action == 1] == 1).mean(),
    }


def test_a_baseline_keeps_relations_on_the_walks_that_it_learned_from(classroom):
    details, drawn = drawn_on(classroom)
    wanted, found = facts(classroom), facts(drawn)
    for name, value in wanted.items():
        # Within a class scores are drawn by chance, which takes a little of a correlation.
        assert found[name] == pytest.approx(value, abs=0.06 if "and" in name else 0.015), name
    # The group goes with success as the score does, and tells nothing about it beyond that.
    assert {name: set(given) for name, given in details.columns.given.items()} == {
        "device": {"action", "outcome"},
        "hint": {"action", "outcome"},
        "group": {"success rate", "number of rows"},
        "score": {"success rate", "number of rows"},
    }


@pytest.mark.parametrize("kind", [MarkovDP, RunsDP])
def test_relations_are_kept_at_epsilon_8(classroom, kind):
    wanted = facts(classroom)
    rng = np.random.default_rng(3)
    fitted = kind(8.0).fit(classroom, rng, seeded_noise(rng))
    drawn = fitted.details_.add_to(replace(classroom, columns=()), rng)
    found, sampled = facts(drawn), facts(fitted.sample(None, rng))
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=0.15 if "and" in name else 0.05), name
    # On walks that were drawn, too: success has another spread there, and lengths are drawn apart from it.
    assert sampled["score and success"] > 0.6 * wanted["score and success"]
    assert sampled["success of c"] - sampled["success of a"] > 0.6 * (
        wanted["success of c"] - wanted["success of a"]
    )
    assert all(fitted.details_.columns.given.values())


def test_a_baseline_draws_what_the_log_has(classroom):
    rng = np.random.default_rng(0)
    log = classroom.select(np.arange(300))
    drawn = Markov().fit(log, rng).sample(40, rng)
    assert [column.declared.name for column in drawn.columns] == ["group", "device", "score", "hint"]
    assert drawn.learners_to_polars().columns == ["learner", "group", "score"]
    assert drawn.to_polars().columns == ["learner", "action", "outcome", "device", "hint"]
    plain = Markov().fit(replace(log, columns=()), rng)
    assert plain.details_ == Details()


def test_with_very_many_actions_columns_of_rows_depend_on_outcomes(make_log):
    log = make_log(np.random.default_rng(0), n_learners=30, n_actions=4)
    log = replace(log, actions=tuple(map(str, range(30_000))))
    log = replace(log, columns=(Column(Declared("hint", Kind.flag, "row"), log.success),)).declare()
    details, drawn = drawn_on(log)
    assert details.columns.given == {"hint": ("outcome",)}
    assert (drawn.columns[0].cells == log.success).all()


def test_the_forecast_knows_what_columns_take(classroom):
    plain, more = (expected_of(log, 2.0) for log in (replace(classroom, columns=()), classroom))
    assert 1.0 < more.shares.noise / plain.shares.noise < 1.24
    assert more.difficulties.noise > plain.difficulties.noise
