"""`gru-dp`: its options, what it refuses, and that noisy sums of gradients are all it takes from a log."""

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, transcripts
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.private_training import calibrated
from understudy.errors import UsageError
from understudy.logs.generators.conformance import example_log
from understudy.logs.generators.gru_dp import BATCH, GruDP
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.study import StudyOptions, study
from understudy.logs.synthesize import synthesize

pytest.importorskip("torch")

ACTIONS = [f"action {i}" for i in range(5)]


def test_options_in_words():
    generator = parse_generator("gru-dp:epsilon=2:units=8:steps=5:longest=50")
    assert (generator.epsilon, generator.units, generator.steps, generator.longest) == (2, 8, 5, 50)
    assert GruDP(2.0, units=8).label == "gru-dp:epsilon=2:units=8"


@pytest.mark.parametrize(
    "words", ["epsilon=0", "epsilon=100", "delta=0.2", "longest=1", "units=0", "units=2.5", "steps=0"]
)
def test_options_that_make_no_sense_are_refused(words):
    with pytest.raises(UsageError, match="gru-dp cannot have"):
        parse_generator(f"gru-dp:{words}")


def test_names_that_are_not_public_are_refused_before_anything_is_charged(tmp_path):
    log, generator = example_log(), GruDP(units=2, steps=1)
    for refused in (
        lambda: generator.fit(log),
        lambda: synthesize(log, generator, ledger=tmp_path / "books.ledger"),
    ):
        with pytest.raises(UsageError) as caught:
            refused()
        assert caught.value.code == "names-not-public"
        assert "public_actions" in caught.value.settings
    assert not (tmp_path / "books.ledger").exists()


def test_a_release_is_charged_with_its_epsilon(tmp_path):
    generator = GruDP(1.5, units=2, embedding=2, steps=1, longest=20)
    made = synthesize(example_log().declare(), generator, ledger=tmp_path / "books.ledger")
    assert made.guarantee.formal
    assert made.charge.to_json()["epsilon"] == 1.5
    assert made.guarantee.delta == default_delta(61)


@pytest.mark.parametrize("n_learners", [61, 4 * BATCH])
def test_the_noise_of_a_fit_follows_from_public_numbers(n_learners):
    log = Interactions.from_sequences([[0]] * n_learners, [[1]] * n_learners, actions=ACTIONS).declare()
    found = transcripts(lambda log, noise: _fitted(log, noise, epsilon=2.0, steps=3), [log])[0]
    n_weights = len(found[0].values)
    rate = min(1.0, BATCH / n_learners)
    steps = calibrated(2.0, default_delta(n_learners), rate, 3, 1.0, n_weights)
    assert len(found) == 3
    assert {draw.scale for draw in found} == {steps.noise_multiplier * (1 + 2**-10) * 2**20}


def _fitted(log, noise, **options):
    generator = GruDP(units=3, embedding=2, longest=400, **options)
    fitted = generator.fit(log, np.random.default_rng(0), noise)
    drawn = fitted.sample(20, np.random.default_rng(0))
    return vars(fitted).copy(), drawn.action, drawn.outcome, drawn.offsets, drawn.actions


def test_nothing_of_a_log_goes_past_the_noise_and_one_learner_costs_no_more_than_is_claimed():
    """The same noisy sums give the same network and sample, also of a wholly other log with the same public numbers."""
    usual = [[i % 3, i % 3, 3] for i in range(30)]
    short, long = ([4], [0]), ([0, 1, 2, 3] * 75, [1] * 300)
    neighbours = [
        Interactions.from_sequences([*usual, walk], [*([[1, 0, 1]] * 30), outcome], actions=ACTIONS).declare()
        for walk, outcome in (short, long)
    ]
    other = Interactions.from_sequences([[4] * 9] * 31, [[0] * 9] * 31, actions=ACTIONS).declare()
    found = transcripts(lambda log, noise: _fitted(log, noise, epsilon=2.0, steps=8), [*neighbours, other])
    spent = sum(cost.rho for cost in costs(found[0], found[1]))
    steps = calibrated(2.0, default_delta(31), 1.0, 8, 1.0, len(found[0][0].values))
    claimed = 8 * 2 / steps.noise_multiplier**2  # rho of 8 steps in which a learner moves the sum by 2 clips
    assert 0.1 * claimed < spent <= claimed
    # The control: a log that differs in everybody is told apart at once.
    assert sum(cost.rho for cost in costs(found[0], found[2])) > 10 * claimed


def test_a_study_tries_it_with_public_names_only():
    log = Classroom(n_learners=30, n_actions=5, longest=30).simulate(np.random.default_rng(5))
    options = StudyOptions(n_seeds=1, n_shadows=8, found_names=True)
    found = study(log, ["gru-dp:units=2:embedding=2:steps=1:longest=20"], options)
    assert [row["names"] for row in found.rows] == ["taken as public"]
