"""Attacks on a network: scores against closed forms and brute force, and a small measurement with controls."""

import numpy as np
import pytest
from scipy.stats import norm

from understudy.core.attacks.estimate import auc_with_error
from understudy.logs.generators.gru import Gru
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

torch = pytest.importorskip("torch")

from reproductions.synthetic_logs import network  # noqa: E402


@pytest.fixture
def losses():
    """Losses of learners with levels of their own; being in the fit lowers them by 1, and all scatter by 1."""
    rng, n = np.random.default_rng(0), 4000
    level = rng.normal(50.0, 20.0, n)
    fits = [(member, level - member + rng.normal(size=n)) for member in rng.random((41, n)) < 0.5]
    return fits[0], fits[1:]


@pytest.mark.oracle
def test_a_reference_takes_the_level_out(losses):
    (member, released), shadows = losses
    outside = ~shadows[0][0]  # learners whom the reference never saw
    scores = network.against_reference(released, shadows[0][1])
    found = auc_with_error(scores[outside], member[outside])[0]
    # Two scatters of 1 on either side of a distance of 1: Phi(1 / (sqrt(2) sqrt(2))).
    assert found == pytest.approx(norm.cdf(0.5), abs=0.02)
    assert auc_with_error(-released, member)[0] == pytest.approx(0.5, abs=0.03)


@pytest.mark.oracle
def test_many_shadows_come_near_the_best_test(losses):
    (member, released), shadows = losses
    scores = network.against_shadows(released, shadows, np.full(len(member), 20))
    # Neyman and Pearson: with all levels known the AUC is Phi(1 / sqrt(2)).
    assert auc_with_error(scores, member)[0] == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.025)


@pytest.mark.oracle
def test_a_loss_is_what_the_network_says_row_by_row():
    log = Classroom(n_learners=12, n_actions=4, longest=15).simulate(np.random.default_rng(0))
    fitted = Gru(units=3, embedding=2, epochs=1).fit(log, np.random.default_rng(0))
    ability = np.linspace(-1, 1, 12)
    found = fitted.losses(log, ability)
    weights = {name: torch.from_numpy(value) for name, value in fitted.weights_.items()}
    cell = torch.nn.GRUCell(2, 4)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data.copy_(weights[f"gru.{name}_l0"])
    for learner in range(12):
        rows = slice(log.offsets[learner], log.offsets[learner + 1])
        state = torch.tensor([[0.0, 0.0, 0.0, float(ability[learner])]])
        token, loss = 8, 0.0
        for comes, outcome in zip([*log.action[rows], 4], [*log.outcome[rows], 0], strict=True):
            state = cell(weights["embedding.weight"][token][None], state)
            odds = weights["next_action.weight"] @ state[0] + weights["next_action.bias"]
            loss -= torch.log_softmax(odds, 0)[int(comes)].item()
            token = 2 * int(comes) + int(outcome)
        assert found[learner] == pytest.approx(loss, rel=1e-4)


@pytest.fixture(scope="module")
def log():
    """Learners who each do one of many walks again and again: an over-trained network knows them by heart."""
    rng = np.random.default_rng(0)
    walks = [np.repeat(rng.integers(12, size=10), 2).tolist() for _ in range(60)]
    outcomes = [rng.integers(2, size=20).tolist() for _ in range(60)]
    return Interactions.from_sequences(walks, outcomes, actions=[f"action {i}" for i in range(12)])


def figures(found, sees, attack):
    return next(row for row in found if row["sees"] == sees and row["attack"] == attack)


def test_the_weights_of_a_network_that_read_its_learners_often_give_them_away(log, monkeypatch):
    monkeypatch.setattr(Gru, "_schedule", _over_trained)
    found = network.measure(log, "gru:units=40", attacker="gru:units=8:epochs=1", n_shadows=2)
    for attack in ("likelihood, against a reference", "likelihood, against shadows"):
        assert figures(found, "weights", attack)["auc"] > 0.75
        assert 0.3 < figures(found, "weights", attack)["luck"] < 0.7


def _over_trained(self, n_places):
    from understudy.logs.models.recurrent import TrainingSchedule

    return (
        TrainingSchedule(1e-2, 16, 40, patience=40, decay=False)
        if self.units == 40
        else TrainingSchedule(3e-3, 16, 1, 1)
    )


def test_a_network_fitted_to_released_rows_finds_their_learners(log, tmp_path, monkeypatch):
    found = network.measure(log, "drop:0", attacker="gru:units=30:epochs=30", n_shadows=2)
    assert figures(found, "sampled log", "own network, against a reference")["auc"] > 0.6
    assert not [row for row in found if row["sees"] == "weights"]
    monkeypatch.setattr(network, "TABLE", tmp_path / "network.csv")
    network.write(found)
    assert network.table().count("`drop:0`") == len(found)


def test_the_weights_of_a_private_network_are_attacked_too(log):
    found = network.measure(
        log, "gru-dp:units=4:embedding=2:steps=3", attacker="gru:units=4:epochs=1", n_shadows=2
    )
    assert {row["attack"] for row in found if row["sees"] == "weights"} == {
        "likelihood, against a reference",
        "likelihood, against shadows",
    }
