"""Guesses of declared cells: against loops, from copies, and from strangers."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.logs.attacks import column_attribute
from understudy.logs.attacks.attribute import N_NEIGHBOURS, PRIOR_NEIGHBOURS
from understudy.logs.attacks.column_attribute import (
    Question,
    column_attribute_attacks,
    guess_cells,
    strongest_attribute,
)
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle

ROOM = Classroom(n_learners=150, n_actions=6, timed=True)
NAMES = ["school", "grade", "home_language", "final_score", "hint", "device"]


def simulated(seed):
    return ROOM.simulate(np.random.default_rng(seed))


def named(log, name):
    return next(column for column in log.columns if column.declared.name == name)


def profile_of(log, i, hidden):
    """What is known about a learner: roots of counts of (action, outcome), and cells but the hidden one."""
    part = slice(log.offsets[i], log.offsets[i + 1])
    rows = list(zip(log.action[part].tolist(), log.outcome[part].tolist(), strict=True))
    known = {row: np.sqrt(rows.count(row)) for row in rows}
    for column in log.learner_columns:
        name, cell = column.declared.name, column.cells[i]
        if name != hidden:
            if name == "final_score":
                cell = "none" if np.isnan(cell) else min(int(cell // 10), 9)
            known[name, cell] = 1.0
    return known


@pytest.mark.parametrize("name", ["school", "home_language", "final_score"])
def test_guesses_are_those_of_loops(name, monkeypatch):
    members, source = simulated(1).select(np.arange(40)), simulated(2).select(np.arange(60))
    target = np.flatnonzero(Question(named(members, name)).answers(members)[1])[:25]
    cells, others = named(members, name).cells, named(source, name).cells
    if name == "final_score":
        answer = others > np.nanmedian(cells)
        there = ~np.isnan(others)
    else:
        asked = np.bincount(cells).argmax() if name == "school" else 1
        answer, there = others == asked, others >= 0
    profiles = [profile_of(source, i, name) for i in range(60)]
    features = {f for p in profiles for f in p}
    weight = {f: np.log(61 / (1 + sum(f in p for p in profiles))) + 0.1 for f in features}
    prior = (answer[there].sum() + 1) / (there.sum() + 2)
    wanted = []
    for i in target:
        own = profile_of(members, i, name)
        near = []
        for j, other in enumerate(profiles):
            if there[j]:
                product = sum(own.get(f, 0.0) * v * weight[f] ** 2 for f, v in other.items())
                near.append(
                    (product / np.sqrt(sum((v * weight[f]) ** 2 for f, v in other.items())), answer[j])
                )
        near = sorted(near, key=lambda pair: -pair[0])[:N_NEIGHBOURS]
        influence = [(likeness / near[0][0]) ** 8 for likeness, _ in near]
        top = sum(a * yes for a, (_, yes) in zip(influence, near, strict=True)) + PRIOR_NEIGHBOURS * prior
        wanted.append(top / (sum(influence) + PRIOR_NEIGHBOURS))
    for block in (4_000_000, 300):
        monkeypatch.setattr(column_attribute, "BLOCK_CELLS", block)
        found = guess_cells(Question(named(members, name)), members, target, source)
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_copy_tells_every_cell():
    """A learner's cell of the table is told whole; of a row it is told how often it was so at the same action."""
    room = replace(ROOM, n_learners=300, n_actions=40)
    members, outsiders = (room.simulate(np.random.default_rng(seed)) for seed in (3, 4))
    found = column_attribute_attacks(members, outsiders, members, np.random.default_rng(0))
    assert [estimate.of for estimate in found] == NAMES
    assert all(estimate.auc > 0.95 for estimate in found[:4])
    assert all(estimate.auc > 0.7 for estimate in found[4:])
    assert all(estimate.low > 0 for estimate in found)
    assert strongest_attribute(found).advantage == max(estimate.advantage for estimate in found)


def test_strangers_tell_nothing():
    """Six intervals that hold together, over eight classes: more than two misses have probability 0.006."""
    missed = 0
    advantages = []
    for seed in range(8):
        # Three parts of one class: another class has other laws, which are no leak and no baseline either.
        whole = replace(ROOM, n_learners=450).simulate(np.random.default_rng(seed))
        logs = [whole.select(np.arange(part, 450, 3)) for part in range(3)]
        found = column_attribute_attacks(*logs, np.random.default_rng(seed))
        missed += any(not estimate.low <= 0 <= estimate.high for estimate in found)
        advantages += [estimate.advantage for estimate in found]
    assert missed <= 2
    assert abs(np.mean(advantages)) < 4 * np.std(advantages, ddof=1) / np.sqrt(len(advantages))


def test_only_columns_of_all_logs_and_none_of_an_empty_log():
    log = simulated(5)
    assert column_attribute_attacks(log, log.select([0, 1]), log.without_outcomes(), np.random.default_rng(0))
    nothing = log.select(np.empty(0, dtype=int))
    for estimate in column_attribute_attacks(log, log, nothing, np.random.default_rng(0)):
        assert estimate.advantage == 0.0
    assert strongest_attribute([]) is None
