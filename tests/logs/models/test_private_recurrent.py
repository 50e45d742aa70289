"""The private network: each learner's gradient against torch and Opacus, what a learner adds at most, the noise."""

import numpy as np
import pytest

from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.core.privacy.private_training import LATTICE, PrivateSteps
from understudy.logs.interactions import Interactions

torch = pytest.importorskip("torch")

from understudy.logs.models import private_recurrent as private  # noqa: E402

SHAPE = private.Shape(n_actions=4, units=3, embedding=2, longest=12)


def a_log(lengths, n_actions=4, seed=0):
    rng = np.random.default_rng(seed)
    drawn = [(rng.integers(n_actions, size=n).tolist(), rng.integers(2, size=n).tolist()) for n in lengths]
    walks, outcomes = zip(*drawn, strict=True)
    return Interactions.from_sequences(walks, outcomes, actions=[f"action {i}" for i in range(n_actions)])


def some_weights(shape=SHAPE, seed=1):
    rng = np.random.default_rng(seed)
    return {name: torch.from_numpy(rng.normal(size=size)) for name, size in shape.sizes().items()}


def loss_of(weights, gru, action, outcome, longest):
    """One learner's loss, written down row by row with torch's own unit."""
    state, before, result, loss = torch.zeros(1, 3, dtype=torch.float64), 4, 0.0, 0.0
    for row, (a, o) in enumerate(zip(action, outcome, strict=True), start=1):
        state = gru((weights["token"][before] + result * weights["result"])[None], state)
        odds = weights["token"][:-1] @ weights["question"] @ state[0] + weights["popular"]
        if before < 4:
            stay = torch.zeros(4, dtype=torch.float64)
            stay[before] = 1.0
            odds = odds + stay * (weights["stay"][:-1] @ state[0] + weights["stay"][-1])
        success = torch.sigmoid(weights["success"] @ state[0] + weights["easy"][a])
        loss = loss - torch.log_softmax(odds, 0)[a] - torch.log(success if o else 1 - success)
        if row < longest:
            end = torch.sigmoid(weights["end"][int(np.log2(row))])
            loss = loss - torch.log(end if row == len(action) else 1 - end)
        before, result = a, 2.0 * o - 1.0
    return loss


def unit_of(weights, kind=None):
    """torch's unit (or Opacus') with our weights."""
    gru = torch.nn.GRUCell(2, 3, dtype=torch.float64) if kind is None else kind
    own = dict(zip(("weight_ih", "weight_hh", "bias_ih"), ("input", "state", "bias"), strict=True))
    for parameter in gru.parameters():
        parameter.data.zero_()
    for theirs, ours in own.items():
        getattr(gru, theirs).data.copy_(weights[ours])
    return gru, own


@pytest.mark.oracle
def test_each_learners_gradient_is_that_of_their_own_loss():
    log, longest = a_log([12, 9, 5, 4, 1]), SHAPE.longest
    weights = some_weights()
    found = private.learner_gradients(SHAPE, weights, private.Learners.of(log), np.arange(5))
    for learner in range(5):
        rows = slice(log.offsets[learner], log.offsets[learner + 1])
        leaves = {name: value.clone().requires_grad_() for name, value in weights.items()}
        gru, own = unit_of(weights)
        loss_of(leaves, gru, log.action[rows].tolist(), log.outcome[rows].tolist(), longest).backward()
        parts = {name: leaf.grad for name, leaf in leaves.items()}
        parts |= {ours: getattr(gru, theirs).grad for theirs, ours in own.items()}
        expected = torch.cat(
            [torch.zeros(0)]
            + [
                (torch.zeros_like(weights[name]) if part is None else part).ravel()
                for name, part in parts.items()
            ]
        )
        torch.testing.assert_close(found[learner], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.oracle
def test_a_learners_loss_is_that_of_their_rows_and_of_their_end():
    log, weights = a_log([4, 12, 1, 9, 5]), some_weights()
    found = private.learner_losses(SHAPE, weights, private.Learners.of(log))
    gru, _ = unit_of(weights)
    for learner in range(5):
        rows = slice(log.offsets[learner], log.offsets[learner + 1])
        expected = loss_of(weights, gru, log.action[rows].tolist(), log.outcome[rows].tolist(), SHAPE.longest)
        assert found[learner] == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.oracle
def test_the_units_gradients_are_those_of_opacus():
    pytest.importorskip("opacus")
    from opacus import GradSampleModule
    from opacus.layers import DPGRU

    log, weights = a_log([6, 6, 6]), some_weights()
    learners = private.Learners.of(log)
    found = private.learner_gradients(SHAPE, weights, learners, np.arange(3))
    theirs = DPGRU(2, 3, batch_first=True).double()
    names = {"weight_ih_l0": "input", "weight_hh_l0": "state", "bias_ih_l0": "bias", "bias_hh_l0": ""}
    for name, parameter in theirs.named_parameters():
        parameter.data.copy_(weights[names[name]] if names[name] else torch.zeros_like(parameter))
    module = GradSampleModule(theirs, batch_first=True, loss_reduction="sum")
    action, outcome = (
        torch.from_numpy(values.reshape(3, 6).astype(np.int64)) for values in (log.action, log.outcome)
    )
    before = torch.cat([torch.full((3, 1), 4), action[:, :-1]], dim=1)
    result = torch.cat([torch.zeros(3, 1), 2.0 * outcome[:, :-1] - 1.0], dim=1)
    inputs = weights["token"][before] + result[:, :, None] * weights["result"]
    hidden, _ = module(inputs.requires_grad_())
    odds = hidden @ weights["question"].T @ weights["token"][:-1].T + weights["popular"]
    again = torch.nn.functional.one_hot(before, 5)[:, :, :4]
    odds = odds + again * (hidden @ weights["stay"][:-1] + weights["stay"][-1])[:, :, None]
    success = hidden @ weights["success"] + weights["easy"][action]
    loss = torch.nn.functional.cross_entropy(odds.reshape(18, 4), action.reshape(18), reduction="sum")
    loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(
        success, outcome.double(), reduction="sum"
    )
    loss.backward()
    sizes = [value.numel() for value in weights.values()]
    ours = dict(zip(weights, torch.split(found, sizes, dim=1), strict=True))
    for name, parameter in theirs.named_parameters():
        if names[name]:
            expected = parameter.grad_sample.reshape(3, -1)
            torch.testing.assert_close(ours[names[name]], expected, rtol=1e-9, atol=1e-12)


def contributions_of(log, shape, weights):
    learners = private.Learners.of(log)
    order = np.argsort(-learners.length, kind="stable")
    return private.contributions(shape, private.learner_gradients(shape, weights, learners, order))


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_learner_with_300_rows_adds_no_more_than_the_sensitivity(scale):
    shape = private.Shape(n_actions=4, units=3, embedding=2, longest=1000)
    weights = {name: scale * value for name, value in some_weights(shape).items()}
    found = contributions_of(a_log([300, 300, 17, 1]), shape, weights)
    squares = (found.astype(object) ** 2).sum(axis=1)
    assert max(squares) <= LATTICE**2
    # Every part is cut, so a long record uses all that it may.
    assert squares[0] > 0.99 * LATTICE**2


def test_the_shares_of_the_parts_are_one_learner():
    names = [name for part in private.PARTS for name in part.weights]
    assert sorted(names) == sorted(SHAPE.sizes())
    assert sum(part.share for part in private.PARTS) <= 1.0 + 1e-12


def test_replacing_a_learner_moves_the_sum_by_two_contributions_and_others_by_rounding_alone():
    rest = [7, 60, 3, 25, 110, 2, 44, 9]
    shape = private.Shape(n_actions=4, units=3, embedding=2, longest=200)
    weights = some_weights(shape)
    one, other = (a_log([*rest, length], seed=5) for length in (150, 1))
    sums = [
        private.clipped_sum(shape, weights, private.Learners.of(log), np.ones(9, dtype=bool))
        for log in (one, other)
    ]
    own = [contributions_of(log.select([8]), shape, weights).sum(axis=0) for log in (one, other)]
    assert np.linalg.norm(sums[0] - sums[1]) <= 2 * LATTICE
    without = [total - part for total, part in zip(sums, own, strict=True)]
    assert np.linalg.norm(without[0] - without[1]) <= private.ROUNDING * LATTICE / 100


def test_the_sum_is_of_those_who_take_part_whatever_fits_into_memory(monkeypatch):
    log = a_log([5, 9, 2, 12, 7])
    weights, part = some_weights(), np.array([True, False, True, True, False])
    found = private.clipped_sum(SHAPE, weights, private.Learners.of(log), part)
    expected = contributions_of(log.select(np.flatnonzero(part)), SHAPE, weights).sum(axis=0)
    np.testing.assert_allclose(found, expected, atol=3)
    monkeypatch.setattr(private, "MOST_NUMBERS", 1)
    np.testing.assert_allclose(
        private.clipped_sum(SHAPE, weights, private.Learners.of(log), part), expected, atol=3
    )


class Noted:
    """Noise that adds nothing, and notes how much it should have added."""

    secret = False

    def __init__(self):
        self.sigmas, self.sums = [], []

    def discrete_gaussian(self, values, sigma):
        self.sigmas.append(sigma)
        self.sums.append(np.array(values))
        return np.asarray(values)


def test_every_step_has_the_noise_that_is_accounted_for():
    noise, steps = Noted(), PrivateSteps(rate=0.5, n_steps=4, clip=1.0, noise_multiplier=3.0)
    private.train(SHAPE, private.Learners.of(a_log([5] * 40)), steps, np.random.default_rng(0), noise)
    assert len(noise.sigmas) == 4
    assert all(sigma >= (1 + private.ROUNDING) * 3.0 * LATTICE for sigma in noise.sigmas)


@pytest.mark.parametrize("secret", [True, False])
def test_each_learner_takes_part_on_their_own_and_nobody_can_draw_it_again(monkeypatch, secret):
    """Poisson sampling: numbers of those who take part scatter as a binomial does, and come from the system."""
    taken, generators, original = [], [], private.poisson_sample

    def spied(n, rate, rng=None):
        generators.append(rng)
        taken.append(original(n, rate, rng))
        return taken[-1]

    seen = []
    monkeypatch.setattr(private, "poisson_sample", spied)
    monkeypatch.setattr(
        private,
        "clipped_sum",
        lambda shape, w, learners, part: (seen.append(part), np.zeros(shape.n_weights, int))[1],
    )
    noise = os_noise() if secret else seeded_noise(np.random.default_rng(1))
    steps = PrivateSteps(rate=0.25, n_steps=30, clip=1.0, noise_multiplier=1.0)
    private.train(SHAPE, private.Learners.of(a_log([2] * 200)), steps, np.random.default_rng(0), noise)
    assert all((rng is None) == secret for rng in generators)
    assert all(part is one for part, one in zip(seen, taken, strict=True))
    sizes = np.sum(taken, axis=1)
    assert 40 < sizes.mean() < 60
    assert len(set(sizes)) > 4


@pytest.mark.oracle
def test_lengths_follow_the_hazards_and_first_actions_their_popularity():
    shape = private.Shape(n_actions=3, units=2, embedding=2, longest=4)
    weights = {name: torch.zeros(size, dtype=torch.float64) for name, size in shape.sizes().items()}
    weights["end"] += torch.tensor([-1.0, 0.5, 0.0])
    weights["popular"] += torch.tensor([0.0, 1.0, -1.0])
    weights["easy"] += torch.tensor([2.0, 0.0, -2.0])
    action, outcome, offsets = private.sample_sequences(shape, weights, 20_000, np.random.default_rng(0))
    first, second = torch.sigmoid(weights["end"])[:2].tolist()
    on = (1 - first) * (1 - second)
    law = [first, (1 - first) * second, on * second, on * (1 - second)]
    np.testing.assert_allclose(np.bincount(np.diff(offsets), minlength=5)[1:] / 20_000, law, atol=0.015)
    starts = np.bincount(action[offsets[:-1]], minlength=3) / 20_000
    np.testing.assert_allclose(starts, torch.softmax(weights["popular"], 0).numpy(), atol=0.015)
    for code, chance in enumerate(torch.sigmoid(weights["easy"]).tolist()):
        assert outcome[action == code].mean() == pytest.approx(chance, abs=0.02)


def test_with_little_noise_it_learns_what_learners_do():
    """Everybody repeats their action three times, fails at the first of four actions and succeeds at the others."""
    walks = [[i % 4] * 3 + [(i + 1) % 4] * 3 for i in range(60)]
    log = Interactions.from_sequences(walks, [[int(code > 0) for code in walk] for walk in walks])
    shape = private.Shape(n_actions=4, units=6, embedding=4, longest=50)
    steps = PrivateSteps(rate=1.0, n_steps=60, clip=1.0, noise_multiplier=0.01)
    rng = np.random.default_rng(0)
    weights = private.train(shape, private.Learners.of(log), steps, rng, seeded_noise(rng))
    action, outcome, offsets = private.sample_sequences(shape, weights, 500, rng)
    assert outcome[action == 0].mean() < 0.25
    assert outcome[action > 0].mean() > 0.75
    assert 4 < np.diff(offsets).mean() < 9
    inner = np.setdiff1d(np.arange(1, len(action)), offsets)
    assert (action[inner] == action[inner - 1]).mean() > 0.5
