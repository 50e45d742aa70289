"""The recurrent network against the equations written out, and on logs whose rule is known."""

import numpy as np
import pytest

from tests.support.interrupting import Interrupting
from understudy.core.engine import progress
from understudy.logs.interactions import Interactions

torch = pytest.importorskip("torch")
recurrent = pytest.importorskip("understudy.logs.models.recurrent")

pytestmark = pytest.mark.oracle


def shape(n_actions=3, units=5, learned=False, layers=1):
    return recurrent.Shape(n_actions, units, layers, embedding=4, dropout=0.0, learned_outcomes=learned)


def example(rng):
    lengths = [4, 1, 7, 2]
    sequences = [rng.integers(3, size=length) for length in lengths]
    outcomes = [rng.integers(2, size=length) for length in lengths]
    log = Interactions.from_sequences(sequences, outcomes, actions=["a", "b", "c"])
    return log, rng.normal(size=3), rng.normal(size=4)


def made(shape, seed=0):
    with recurrent.seeded(np.random.default_rng(seed)):
        network = recurrent.Network(shape)
        if shape.learned_outcomes:
            torch.nn.init.normal_(network.practice.weight)
    return network


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def plain_losses(network, log, easiness, ability):
    """The loss of each learner, row by row, from the equations of a gated recurrent unit."""
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    n, width, losses = log.n_actions, network.shape.units + 1, []
    for i in range(log.n_learners):
        rows = range(log.offsets[i], log.offsets[i + 1])
        states = [np.append(np.zeros(width - 1), ability[i]) for _ in range(network.shape.layers)]
        token, loss = 2 * n, 0.0
        for row in [*rows, None]:
            x = weights["embedding.weight"][token]
            for layer in range(network.shape.layers):
                h = states[layer]
                of_x = weights[f"gru.weight_ih_l{layer}"] @ x + weights[f"gru.bias_ih_l{layer}"]
                of_h = weights[f"gru.weight_hh_l{layer}"] @ h + weights[f"gru.bias_hh_l{layer}"]
                reset = sigmoid(of_x[:width] + of_h[:width])
                update = sigmoid(of_x[width : 2 * width] + of_h[width : 2 * width])
                new = np.tanh(of_x[2 * width :] + reset * of_h[2 * width :])
                states[layer] = x = (1 - update) * new + update * h
            logits = weights["next_action.weight"] @ x + weights["next_action.bias"]
            comes = n if row is None else log.action[row]
            loss += np.log(np.exp(logits).sum()) - logits[comes]
            if row is not None:
                if network.shape.learned_outcomes:
                    practice = (weights["practice.weight"] @ x + weights["practice.bias"])[comes]
                    chance = sigmoid(ability[i] + easiness[comes] + practice)
                    loss -= np.log(chance if log.outcome[row] else 1 - chance)
                token = 2 * log.action[row] + log.outcome[row]
        losses.append(loss)
    return losses


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_the_losses_are_those_of_the_equations(learned, layers):
    log, easiness, ability = example(np.random.default_rng(1))
    network = made(shape(learned=learned, layers=layers))
    tokens = recurrent.Tokens.of(log, easiness, ability)
    found = recurrent.learner_losses(network, tokens, at_once=3)
    np.testing.assert_allclose(found, plain_losses(network, log, easiness, ability), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_sequence_read_in_pieces_costs_what_it_costs_in_one(size):
    log, easiness, ability = example(np.random.default_rng(2))
    network = made(shape())
    tokens = recurrent.Tokens.of(log, easiness, ability)
    loss = np.zeros(len(tokens.seen))
    for i in range(log.n_learners):
        state, first = network.first_state(ability[[i]]), 0
        while first < tokens.length[i]:
            place, found, state = recurrent.read(
                network, tokens, np.array([i]), np.array([first]), size, state
            )
            loss[place.numpy()] = found.detach().numpy()
            first += size
    np.testing.assert_allclose(
        np.add.reduceat(loss, tokens.begin), recurrent.learner_losses(network, tokens), rtol=1e-5
    )


def rule_log(n_learners=40):
    """a, b, c in turn, six rows each; the first attempt at an action fails, the second succeeds."""
    sequences = [[(i + t) % 3 for t in range(6)] for i in range(n_learners)]
    outcomes = [[0, 0, 0, 1, 1, 1]] * n_learners
    return Interactions.from_sequences(sequences, outcomes, actions=["a", "b", "c", "never tried"])


SCHEDULE = recurrent.TrainingSchedule(rate=2e-2, lanes=16, epochs=60, patience=60, piece=4)


def trained(learned, schedule=SCHEDULE):
    log = rule_log()
    tokens = recurrent.Tokens.of(log, np.zeros(4), np.zeros(log.n_learners))
    rng = np.random.default_rng(3)
    with recurrent.seeded(rng):
        network = recurrent.Network(recurrent.Shape(4, 16, 1, 8, 0.0, learned))
        training = recurrent.train(network, tokens, tokens, schedule, rng)
    return network, training


def sampled(network, n=300, longest=20):
    tried = np.array([True, True, True, False])
    action, outcome, offsets = recurrent.sample_sequences(
        network, np.zeros(n), np.zeros(4), tried, longest, np.random.default_rng(4)
    )
    return Interactions(action, outcome, offsets, ("a", "b", "c", "never tried"))


def test_a_rule_is_learned_with_the_length_and_the_outcomes():
    network, training = trained(learned=True)
    assert (training.n_epochs, training.most_epochs, training.interrupted) == (60, 60, False)
    # Only where to begin is left to chance: a third each, over seven places.
    assert training.loss < np.log(3) / 7 + 0.1
    drawn = sampled(network)
    steps = np.diff(drawn.action)[np.diff(drawn.learner) == 0] % 3
    assert np.mean(steps == 1) > 0.95
    assert np.mean(drawn.lengths == 6) > 0.9
    place = np.arange(drawn.n_rows) - drawn.offsets[:-1][drawn.learner]
    assert drawn.outcome[place >= 3].mean() > 0.9 > 0.1 > drawn.outcome[place < 3].mean()


def test_a_schedule_of_cuts_goes_from_short_pieces_to_long_ones():
    sizes = []

    class Watched(recurrent.Lanes):
        def step(self, size):
            sizes.append(size)
            return super().step(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrent, "Lanes", Watched)
        trained(
            False, recurrent.TrainingSchedule(1e-3, 16, epochs=2, patience=2, decay=False, cuts=(7, 3, 1))
        )
    assert list(dict.fromkeys(sizes)) == [1, 3, 7]


def test_an_interrupt_ends_the_training_with_the_best_weights():
    with progress.reported_by(Interrupting(5)):
        network, training = trained(learned=False)
    assert (training.n_epochs, training.most_epochs, training.interrupted) == (5, 60, True)
    log = rule_log()
    tokens = recurrent.Tokens.of(log, np.zeros(4), np.zeros(log.n_learners))
    found = recurrent.learner_losses(network, tokens).sum() / len(tokens.seen)
    assert found == pytest.approx(training.loss, rel=1e-5)


def test_before_there_is_anything_to_keep_an_interrupt_goes_on_to_the_caller(monkeypatch):
    monkeypatch.setattr(recurrent, "LEAST_GAIN", 1e6)  # no epoch brings that much
    with progress.reported_by(Interrupting(5)), pytest.raises(KeyboardInterrupt):
        trained(learned=False)


def test_next_actions_are_drawn_by_their_chances():
    network = made(shape(n_actions=4))
    with torch.no_grad():
        network.next_action.weight.zero_()
        network.next_action.bias.copy_(torch.log(torch.tensor([0.2, 0.3, 0.1, 0.25, 0.15])))
    drawn = sampled(network, n=20_000, longest=3)
    assert drawn.lengths.min() == 1
    assert drawn.lengths.max() == 3
    # The fourth action was never tried; nobody ends before the first row.
    first = np.bincount(drawn.action[drawn.offsets[:-1]], minlength=4) / drawn.n_learners
    np.testing.assert_allclose(first, [2 / 6, 3 / 6, 1 / 6, 0], atol=0.02)
    assert np.mean(drawn.lengths == 1) == pytest.approx(0.15 / 0.75, abs=0.015)
    assert drawn.outcome.mean() == pytest.approx(0.5, abs=0.02)


def test_many_learners_are_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(recurrent, "MOST_NUMBERS", 200)
    drawn = sampled(made(shape(n_actions=4)), n=50, longest=5)
    assert drawn.n_learners == 50
    assert drawn.lengths.min() >= 1
    assert sampled(made(shape(n_actions=4)), n=0).n_learners == 0
