"""`gru`: its options, its saved file, and what a release keeps of it."""

import numpy as np
import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.generators.conformance import example_log
from understudy.logs.generators.gru import Gru
from understudy.logs.generators.registry import parse_generator
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.simulated.classroom import Classroom

pytest.importorskip("torch")


def test_options_in_words():
    generator = parse_generator("gru:as=published:outcomes=learned:units=20")
    assert (generator.trained_as, generator.outcomes, generator.units) == ("published", "learned", 20)
    assert Gru(trained_as="published", units=20).label == "gru:as=published:units=20"


@pytest.mark.parametrize(
    "words", ["gru:as=mine", "gru:outcomes=irt", "gru:units=0", "gru:units=1.5", "gru:epochs=-1"]
)
def test_options_that_make_no_sense_are_refused(words):
    with pytest.raises(UsageError, match=words.partition(":")[2]):
        parse_generator(words)


@pytest.mark.parametrize(
    "words", ["gru:units=8:epochs=1", "gru:as=published:units=8:epochs=1:outcomes=learned"]
)
def test_a_saved_network_draws_the_same_learners(words, tmp_path):
    fitted = parse_generator(words).fit(example_log(), np.random.default_rng(0))
    np.savez(tmp_path / "model.npz", allow_pickle=False, **fitted.arrays())
    loaded = Gru.load(tmp_path / "model.npz")
    one, other = (made.sample(20, np.random.default_rng(1)) for made in (fitted, loaded))
    assert one.actions == other.actions
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.outcome, other.outcome)
    assert loaded.n_learners_ == 61
    assert not loaded.guarantee_.formal


def test_a_file_with_a_pickle_is_not_read(tmp_path):
    arrays = parse_generator("gru:units=8:epochs=1").fit(example_log()).arrays()
    arrays["easiness_"] = np.array([{"an": "object"}], dtype=object)
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(DataError, match="not the model of a network"):
        Gru.load(tmp_path / "model.npz")


def test_a_log_of_one_learner_can_be_read():
    log = example_log().select(np.array([0]))
    assert parse_generator("gru:units=4:epochs=1").fit(log).sample(3).n_learners == 3


def test_learned_outcomes_do_not_move_difficulties():
    """A network that finds every other action easier than the Rasch model: actions are moved until a fit agrees."""
    log = Classroom(n_learners=200, n_actions=6).simulate(np.random.default_rng(0))
    generator = parse_generator("gru:units=8:epochs=1:outcomes=learned").fit(log, np.random.default_rng(0))
    generator.weights_["practice.bias"] = np.array([1.0, 0.0] * 3, dtype=np.float32)
    errors = []
    for held in (False, True):
        generator.shift_ = np.zeros(6)
        if held:
            generator._hold_difficulties(np.random.default_rng(1))
        # As many learners as the log has: a fit draws extreme difficulties to the middle by their number of rows.
        fits = [fit_rasch(generator.sample(None, np.random.default_rng(seed))) for seed in range(5)]
        found = np.mean([fit.intercept - fit.difficulty for fit in fits], axis=0)
        errors.append(np.abs(found - generator.easiness_).mean())
    assert errors[0] > 0.4
    # Samples of 200 learners scatter, in the extreme action most of all.
    assert errors[1] < errors[0] / 2
