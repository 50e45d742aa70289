"""Attacks of others join the audit, and are checked."""

import numpy as np
import pytest

from understudy.errors import DataError
from understudy.logs import study as study_module
from understudy.logs.attacks import scores as scores_module
from understudy.logs.attacks.plugins import check_attack, scores_of
from understudy.logs.attacks.steps import transition_scores
from understudy.logs.audit import audit
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.study import StudyOptions, study


@pytest.fixture
def plugged(monkeypatch):
    attacks = {"theirs": transition_scores}
    for module in (scores_module, study_module):
        monkeypatch.setattr(module, "plugged_attacks", lambda: attacks)


def test_a_plugged_attack_is_judged_like_ours(plugged):
    log = Classroom(n_learners=60, n_actions=8).simulate(np.random.default_rng(0))
    half = np.arange(60) < 30
    found = audit(log.select(half), log.select(~half), log.select(half))
    by_name = {estimate.attack: estimate.auc for estimate in found.risk.estimates}
    assert by_name["theirs"] == by_name["transitions"]
    rows = study(log, ["markov"], StudyOptions(n_seeds=1, n_shadows=8))
    assert rows.to_frame()["auc_theirs"][0] == rows.to_frame()["auc_transitions"][0]


def test_the_checks_take_what_is_right():
    check_attack(transition_scores)


def wrong_length(knowledge, synthetic):
    return np.zeros(3)


def not_finite(knowledge, synthetic):
    return np.full(knowledge.population.n_learners, np.nan)


def by_chance(knowledge, synthetic):
    return np.random.default_rng().random(knowledge.population.n_learners)


def by_position(knowledge, synthetic):
    return -np.arange(knowledge.population.n_learners, dtype=float)


def blind(knowledge, synthetic):
    return np.zeros(knowledge.population.n_learners)


@pytest.mark.parametrize("attack", [wrong_length, not_finite, by_chance, by_position, blind])
def test_the_checks_find_what_is_wrong(attack):
    with pytest.raises((AssertionError, DataError)):
        check_attack(attack)


def test_a_bad_score_names_the_attack_and_no_learner():
    from understudy.logs.attacks.knowledge import Knowledge

    log = Classroom(n_learners=20, n_actions=4).simulate(np.random.default_rng(0))
    with pytest.raises(DataError, match="the attack 'theirs' did not give a finite score"):
        scores_of("theirs", wrong_length, Knowledge(log, 10), log)
