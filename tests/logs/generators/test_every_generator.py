"""What every method in the registry has to do; a new method is put through this by being registered."""

import gc
import weakref

import numpy as np
import pytest

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import UsageError
from understudy.logs.generators.generator import METHODS, make_method, method_names
from understudy.logs.interactions import Interactions


@pytest.fixture(params=method_names())
def method(request):
    return make_method(request.param)


@pytest.fixture
def log(make_log):
    """A log whose vocabulary has an action that nobody tried, with columns that must not leave."""
    drawn = make_log(np.random.default_rng(0), n_learners=61, n_actions=6, mean_length=20)
    return Interactions(
        drawn.action.copy(),
        drawn.outcome.copy(),
        drawn.offsets.copy(),
        (*drawn.actions, "never tried"),
        time=np.arange(drawn.n_rows).astype("datetime64[us]"),
        group=np.zeros(drawn.n_learners, dtype=np.int32),
        groups=("g",),
    )


def fitted(method, log):
    """Fitted with the same randomness each time; the vocabulary is declared."""
    return method.fit(log.declare(), np.random.default_rng(1), seeded_noise(np.random.default_rng(1)))


def everything_in(value, seen=None):
    """All objects reachable from a value through attributes and containers."""
    seen = {} if seen is None else seen
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type, type(None))):
        return seen.values()
    seen[id(value)] = value
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
    elif isinstance(value, np.ndarray):
        inner = [value.base] if value.base is not None else []
    else:
        inner = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        inner += list(getattr(value, "__dict__", {}).values())
    for part in inner:
        everything_in(part, seen)
    return seen.values()


def same(a, b):
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("action", "outcome", "offsets"))


def test_a_method_says_what_it_is(method):
    assert METHODS[method.name] is type(method)
    assert method.summary
    assert isinstance(method.keeps_rows, bool)
    assert isinstance(method.guarantee(100), Guarantee)


def test_the_constructor_only_stores(method):
    assert not [name for name in vars(method) if name.endswith("_")]


def test_fit_returns_the_method_and_learns_names_with_an_underscore(method, log):
    before = set(vars(method))
    assert fitted(method, log) is method
    assert all(name.endswith("_") for name in set(vars(method)) - before)


def test_a_fitted_method_keeps_no_rows(method, log):
    fitted(method, log)
    kept = list(everything_in(vars(method)))
    holds_rows = any(isinstance(v, Interactions) for v in kept) or any(
        hasattr(v, "__len__") and len(v) >= log.n_rows for v in kept
    )
    assert holds_rows == method.keeps_rows
    columns = (log.action, log.outcome, log.offsets, log.time, log.group)
    shared = any(isinstance(v, np.ndarray) and any(np.shares_memory(v, c) for c in columns) for v in kept)
    assert shared == method.keeps_rows
    # Nor a value per learner, such as an ability: 61 and 62 are no sizes of anything else here.
    per_learner = any(isinstance(v, np.ndarray) and {61, 62} & set(v.shape) for v in kept)
    assert per_learner == method.keeps_rows


def test_a_method_outlives_the_log(method, log):
    fitted(method, log)
    wanted = method.sample(None, np.random.default_rng(2))
    gone = weakref.ref(log.action)
    del log
    gc.collect()
    if method.keeps_rows:
        assert gone() is not None
    assert same(method.sample(None, np.random.default_rng(2)), wanted)


def test_the_log_is_left_as_it_was(method, log):
    before = log.action.copy(), log.outcome.copy()
    fitted(method, log).sample(None, np.random.default_rng(2))
    np.testing.assert_array_equal(log.action, before[0])
    np.testing.assert_array_equal(log.outcome, before[1])


def test_a_sample_is_a_valid_log_with_the_same_vocabulary(method, log):
    sample = fitted(method, log).sample(None, np.random.default_rng(2))
    assert sample.actions == log.actions
    assert set(np.unique(sample.outcome)) <= {0, 1}
    assert sample.offsets[0] == 0
    assert sample.offsets[-1] == sample.n_rows > 0
    assert (np.diff(sample.offsets) > 0).all()
    if not method.guarantee(61).formal:  # under a guarantee even the longest sequence is not known
        assert sample.lengths.max() <= log.lengths.max()
    assert sample.simulated == log.simulated


def test_nothing_leaves_that_was_not_asked_for(method, log):
    sample = fitted(method, log).sample(None, np.random.default_rng(2))
    assert (sample.time, sample.group, sample.item) == (None, None, None)
    assert sample.to_frame().columns == ["learner", "action", "outcome"]


def test_an_action_absent_from_the_log_never_appears(method, log):
    if method.guarantee(61).formal:
        pytest.skip("whether anybody tried an action of the declared vocabulary is what is protected")
    sample = fitted(method, log).sample(None, np.random.default_rng(2))
    assert log.actions.index("never tried") not in sample.action
    assert set(sample.action) <= set(log.action)


@pytest.mark.parametrize("n_learners", [0, 1, 25])
def test_as_many_learners_as_asked(method, log, n_learners):
    fitted(method, log)
    assert method.sample(n_learners, np.random.default_rng(2)).n_learners == n_learners


def test_more_learners_than_there_are(method, log):
    fitted(method, log)
    if method.keeps_rows:
        with pytest.raises(UsageError) as caught:
            method.sample(1000, np.random.default_rng(2))
        assert caught.value.hint
    else:
        assert method.sample(1000, np.random.default_rng(2)).n_learners == 1000


def test_a_seed_fixes_the_sample(method, log):
    fitted(method, log)
    first, again, other = (method.sample(None, np.random.default_rng(s)) for s in (2, 2, 3))
    assert same(first, again)
    assert not same(first, other)


def test_fitting_again_forgets(method, log, make_log):
    other = make_log(np.random.default_rng(9), n_learners=20, n_actions=3)
    fresh = fitted(type(method)(**vars(method)), other)
    fitted(fitted(method, log), other)
    samples = [m.sample(None, np.random.default_rng(2)) for m in (fresh, method)]
    assert samples[0].actions == samples[1].actions == other.actions
    assert same(*samples)
