"""Controls: an audit that should find nothing finds nothing; one that should, does.

Negative control: the release is made from learners who are not in the population at all, so
"members" are a random half. The simultaneous interval misses 0.5 in at most 5 % of such
audits; with eight audits, more than two misses have probability 0.006 (the seeds are fixed).
"""

from functools import partial

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.audit import MEMBERSHIP_ATTACKS, attack, train_shadow_attack
from understudy.logs.generators.registry import parse_generator

pytestmark = pytest.mark.oracle

# Those that need times or declared columns, which these logs have not; their controls are next to their oracles.
OF_DETAILS = {"timing", "timing-likelihood", "columns", "columns-likelihood"}
SHAPE = {"n_learners": 80, "n_actions": 20, "mean_length": 15}


def generate(name, log, rng):
    return parse_generator(name).fit(log, rng, seeded_noise(rng)).sample(None, rng)


def audit(make_log, name, seed, *, leak):
    rng = np.random.default_rng(seed)
    population, strangers = make_log(rng, **SHAPE), make_log(rng, **SHAPE)
    member = np.zeros(80, dtype=bool)
    member[rng.permutation(80)[:40]] = True
    knowledge = Knowledge(population, 40)
    shadow = train_shadow_attack(
        knowledge, partial(generate, name), np.random.SeedSequence(seed), n_shadows=12
    )
    trained_on = population.select(member) if leak else strangers.select(np.arange(40))
    return attack(knowledge, member, generate(name, trained_on, rng), shadow, rng)


@pytest.mark.parametrize("name", ["drop:0.25", "markov"])
def test_nothing_is_found_about_those_who_were_not_used(make_log, name):
    risks = [audit(make_log, name, seed, leak=False) for seed in range(8)]
    assert sum(not risk.low <= 0.5 <= risk.high for risk in risks) <= 2
    for attack_name in set(MEMBERSHIP_ATTACKS) - OF_DETAILS:
        areas = [e.auc for risk in risks for e in risk.estimates if e.attack == attack_name]
        # The mean of eight areas, each with standard error 0.065, within four of its own.
        assert np.mean(areas) == pytest.approx(0.5, abs=4 * 0.065 / np.sqrt(8)), attack_name


@pytest.mark.parametrize(("name", "at_least"), [("drop:0", 0.95), ("drop:0.5", 0.85), ("markov", 0.7)])
def test_those_who_were_used_are_found(make_log, name, at_least):
    risks = [audit(make_log, name, seed, leak=True) for seed in range(3)]
    assert np.mean([risk.worst.auc for risk in risks]) > at_least
    assert all(risk.low > 0.5 for risk in risks)
    assert {estimate.attack for estimate in risks[0].estimates} == set(MEMBERSHIP_ATTACKS) - OF_DETAILS
