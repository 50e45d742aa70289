"""What every registered generator has to do; a new one is put through this by being registered."""

import numpy as np
import pytest

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.baselines import Markov
from understudy.logs.generators.conformance import (
    CHECKS,
    ConformanceError,
    check_generator,
    example_log,
)
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import GENERATORS, generator_names, parse_generator
from understudy.logs.interactions import Interactions

# A network as small and as little trained as may be.
QUICK = {"gru": "gru:units=8:epochs=1", "gru-dp": "gru-dp:units=2:embedding=2:steps=2:longest=50"}


@pytest.fixture(params=generator_names())
def generator(request):
    return parse_generator(QUICK.get(request.param, request.param))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(generator, check):
    check(generator, example_log())


def test_a_registered_generator_describes_itself(generator):
    assert GENERATORS[generator.name] is type(generator)
    assert generator.summary


def test_noise_from_a_seed_leaves_no_guarantee(generator):
    fitted = generator.fit(example_log().declare(), noise=seeded_noise(np.random.default_rng(1)))
    assert not fitted.guarantee_.formal
    assert not fitted.sample(rng=np.random.default_rng(2)).guarantee.formal


def test_a_fit_and_its_sample_carry_the_guarantee_and_are_not_charged(generator):
    fitted = generator.fit(example_log().declare())
    claim = fitted.guarantee_for(example_log().declare())
    assert fitted.guarantee_ == fitted.sample().guarantee == claim
    assert "not charged to a ledger" in repr(fitted)


def test_an_action_absent_from_the_log_never_appears(generator):
    if generator.guarantee(61).formal:
        pytest.skip("whether anybody tried an action of the declared vocabulary is what is protected")
    log = example_log()
    sample = generator.fit(log.declare()).sample()
    assert set(sample.action) <= set(log.action)


class Broken(Markov):
    """A generator with one fault."""

    name = "broken"


class Remembering(Broken):
    def _fit(self, log, rng, noise):
        super()._fit(log, rng, noise)
        self.rows_ = log.action


class Lively(Broken):
    def __init__(self):
        self.table_ = {}


class Unruly(Broken):
    def _sample(self, n_learners, rng):
        return super()._sample(n_learners, np.random.default_rng())


class Eager(Broken):
    def _sample(self, n_learners, rng):
        return super()._sample(None, rng)


class Talkative(Broken):
    def _sample(self, n_learners, rng):
        drawn = super()._sample(n_learners, rng)
        return Interactions(
            drawn.action, drawn.outcome, drawn.offsets, drawn.actions, item=drawn.action, items=drawn.actions
        )


class Vague(Broken):
    def guarantee(self, n_learners):
        return "private"


@pytest.mark.parametrize("kind", [Remembering, Lively, Unruly, Eager, Talkative, Vague])
def test_the_checks_find_what_is_wrong(kind):
    with pytest.raises(ConformanceError):
        check_generator(kind())


def test_the_checks_take_what_is_right():
    check_generator("markov")
    check_generator(Markov)


class Minimal:
    """Somebody's own generator: two methods, and a frame."""

    def fit(self, log):
        self.counts_ = np.bincount(log.action, minlength=log.n_actions)
        self.actions_ = log.actions

    def sample(self, n_learners=None, rng=None):
        import pandas as pd

        rng = rng or np.random.default_rng()
        n = 61 if n_learners is None else n_learners
        actions = rng.choice(self.actions_, 8 * n, p=self.counts_ / self.counts_.sum())
        return pd.DataFrame(
            {"learner": np.repeat(np.arange(n), 8), "action": actions, "outcome": rng.integers(0, 2, 8 * n)}
        )


def test_an_object_with_fit_and_sample_is_a_generator():
    from understudy.logs.generators.registry import as_generator

    adapted = as_generator(Minimal())
    assert isinstance(adapted, Generator)
    assert adapted.label == "Minimal"
    sample = adapted.fit(example_log()).sample(7, np.random.default_rng(0))
    assert sample.n_learners == 7
    assert sample.guarantee == Guarantee.none("nothing is proved here about Minimal, which others wrote")
