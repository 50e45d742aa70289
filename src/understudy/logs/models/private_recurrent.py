"""A small recurrent network of a log whose training looks at each learner's gradient apart (extra `deep`).

Everything that a synthetic log needs is in it: the next action (with a word of its own for staying), the
outcome, and the end. Nothing else of the log is looked at. It is smaller than `recurrent.Network`, since every weight
costs noise: input and output share one table of actions, and the end depends on the number of rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.core.engine import progress
from understudy.core.extras import needs_extra
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.private_training import (
    LATTICE,
    PrivateSteps,
    lattice_contributions,
    poisson_sample,
)
from understudy.logs.interactions import IntArray, Interactions, offsets_of

with needs_extra("deep", "a recurrent network"):
    import torch
    from torch import Tensor
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

Floats = NDArray[np.float64]
Weights = dict[str, Tensor]

# Numbers that a step holds at a time, so that many learners with many actions fit into memory.
MOST_NUMBERS = 2**23
# What is believed before anybody is looked at: of 20 learners who reach an octave of rows, 7 end in it; 7 of 10 rows
# stay at their action; 7 of 10 succeed.
ENDS, STAYS, SUCCEEDS = 0.35, 0.7, 0.7
# The rounding of other learners' gradients may depend on who is computed beside them. The noise covers a change of
# this share of the clip by all of them together, more than a hundred times what is seen (tests).
ROUNDING = 2.0**-10


@dataclass(frozen=True)
class Shape:
    """The sizes of a network, all of them public."""

    n_actions: int
    units: int
    embedding: int
    longest: int

    @property
    def n_octaves(self) -> int:
        """Octaves of rows: 1, 2 to 3, 4 to 7, and so on up to `longest`."""
        return self.longest.bit_length()

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The weights and their sizes, in the order of a gradient."""
        a, h, e = self.n_actions, self.units, self.embedding
        return {
            "end": (self.n_octaves,),
            "token": (a + 1, e),  # the last one stands before the first row
            "result": (e,),
            "input": (3 * h, e),
            "state": (3 * h, h),
            "bias": (3 * h,),
            "question": (e, h),
            "popular": (a,),
            "stay": (h + 1,),
            "easy": (a,),
            "success": (h,),
        }

    @property
    def n_weights(self) -> int:
        """How many numbers each step adds noise to."""
        return sum(prod(size) for size in self.sizes().values())

    def first_weights(self, rng: np.random.Generator) -> Weights:
        """Weights before training, from public beliefs and `rng`."""
        sizes = self.sizes()
        small = {
            "token": self.embedding**-0.5,
            "result": self.embedding**-0.5,
            "input": 1.0,
            "state": self.units**-0.5,
            "question": 0.1 * self.units**-0.5,
        }
        weights = {
            name: torch.from_numpy(small.get(name, 0.0) * rng.standard_normal(sizes[name])) for name in sizes
        }
        rows = 2.0 ** np.arange(self.n_octaves)
        hazard = -np.expm1(np.log1p(-ENDS) / rows)
        weights["end"] = torch.from_numpy(np.log(hazard / (1.0 - hazard)))
        weights["easy"] += log(SUCCEEDS / (1 - SUCCEEDS))
        weights["stay"][-1] = log(STAYS / (1 - STAYS) * max(self.n_actions - 1, 1))
        return weights


@dataclass(frozen=True)
class Learners:
    """The rows of learners."""

    action: IntArray
    outcome: IntArray
    begin: IntArray
    length: IntArray

    @classmethod
    def of(cls, log: Interactions) -> Learners:
        """The learners of a log."""
        outcome = log.success.astype(np.int64)
        return cls(log.action.astype(np.int64), outcome, log.offsets[:-1], log.lengths)


@dataclass(frozen=True)
class _Rows:
    """The rows of some learners, time by time and by falling length: row k is `learner[k]`'s number `time[k]`."""

    learner: Tensor
    time: Tensor
    action: Tensor
    outcome: Tensor
    before: Tensor
    """The action before; the number of actions at the start."""
    result: Tensor
    """The outcome before, 1 or -1; 0 at the start."""
    n_left: IntArray
    n_learners: int

    @classmethod
    def of(cls, learners: Learners, some: IntArray, n_actions: int) -> _Rows:
        length = learners.length[some]
        time = np.arange(length.max())[:, None]
        present = time < length
        place = (learners.begin[some] + time)[present]
        first = np.broadcast_to(time == 0, present.shape)[present]
        last = np.maximum(place - 1, 0)
        return cls(
            torch.from_numpy(np.broadcast_to(np.arange(len(some)), present.shape)[present]),
            torch.from_numpy(np.broadcast_to(time, present.shape)[present]),
            torch.from_numpy(learners.action[place]),
            torch.from_numpy(learners.outcome[place].astype(np.float64)),
            torch.from_numpy(np.where(first, n_actions, learners.action[last])),
            torch.from_numpy(np.where(first, 0.0, 2.0 * learners.outcome[last] - 1.0)),
            present.sum(axis=1),
            len(some),
        )

    def by_learner(self, values: Tensor) -> Tensor:
        """Values of rows as learners x time x values, 0 where a learner has no row."""
        padded = values.new_zeros(self.n_learners, len(self.n_left), values.shape[1])
        padded[self.learner, self.time] = values
        return padded


def _next_state(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    """A gated recurrent unit: how much is reset, how much is kept, and what is new."""
    reset, keep, new = from_input.chunk(3, dim=1)
    reset_state, keep_state, new_state = from_state.chunk(3, dim=1)
    kept = torch.sigmoid(keep + keep_state)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
    return candidate + kept * (state - candidate)


def _log_odds(weights: Weights, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What comes next: the question that the state asks of each action, and the log-odds of actions and of staying."""
    question = hidden @ weights["question"].T
    stay = hidden @ weights["stay"][:-1] + weights["stay"][-1]
    return question, question @ weights["token"][:-1].T + weights["popular"], stay


def _with_stay(actions: Tensor, stay: Tensor, before: Tensor) -> Tensor:
    again = torch.nonzero(before < actions.shape[1])[:, 0]
    return actions.index_put((again, before[again]), stay[again], accumulate=True)


def learner_gradients(shape: Shape, weights: Weights, learners: Learners, some: IntArray) -> Tensor:
    """The gradient of each learner's own loss, a row each: cross-entropy of actions, outcomes and the end.

    `some` are learners by falling number of rows. Each weight enters products with what a row shows; so
    a learner's gradient is a sum over their rows of what came in times the gradient of what came out, and one pass
    through the network gives these for all rows.
    """
    rows = _Rows.of(learners, some, shape.n_actions)
    inputs = weights["token"][rows.before] + rows.result[:, None] * weights["result"]
    from_input = (inputs @ weights["input"].T + weights["bias"]).requires_grad_()
    state = from_input.new_zeros(rows.n_learners, shape.units)
    states, from_states, hidden, start = [], [], [], 0
    for n in rows.n_left:
        states.append(state[:n])
        from_states.append((states[-1] @ weights["state"].T).requires_grad_())
        state = _next_state(from_input[start : start + n], from_states[-1], states[-1])
        hidden.append(state)
        start += n
    out = torch.cat(hidden)
    question, actions, stay = _log_odds(weights, out)
    success = out @ weights["success"] + weights["easy"][rows.action]
    told = cross_entropy(_with_stay(actions, stay, rows.before), rows.action, reduction="sum")
    loss = told + binary_cross_entropy_with_logits(success, rows.outcome, reduction="sum")
    of_input, of_question, of_actions, of_stay, of_success, *of_states = torch.autograd.grad(
        loss, [from_input, question, actions, stay, success, *from_states]
    )
    with torch.no_grad():
        seen, before = out.detach(), of_input @ weights["input"]

        def products(gradient: Tensor, value: Tensor) -> Tensor:
            return rows.by_learner(gradient).transpose(1, 2) @ rows.by_learner(value)

        def sums_at(place: Tensor, gradient: Tensor, size: torch.Size) -> Tensor:
            sums = gradient.new_zeros(rows.n_learners, *size)
            return sums.index_put_((rows.learner, place), gradient, accumulate=True)

        token = sums_at(rows.before, before, weights["token"].shape)
        token[:, :-1] += products(of_actions, question.detach())
        parts = {
            "end": torch.from_numpy(_end_gradients(shape, weights, learners.length[some])),
            "token": token,
            "result": products(before, rows.result[:, None]),
            "input": products(of_input, inputs),
            "state": products(torch.cat(of_states), torch.cat(states).detach()),
            "bias": rows.by_learner(of_input).sum(dim=1),
            "question": products(of_question, seen),
            "popular": rows.by_learner(of_actions).sum(dim=1),
            "stay": products(of_stay[:, None], torch.cat([seen, seen.new_ones(len(seen), 1)], dim=1)),
            "easy": sums_at(rows.action, of_success, weights["easy"].shape),
            "success": products(of_success[:, None], seen),
        }
        return torch.cat([parts[name].reshape(rows.n_learners, -1) for name in weights], dim=1)


@torch.no_grad()
def learner_losses(shape: Shape, weights: Weights, learners: Learners) -> Floats:
    """The loss of each learner, in nats: what `learner_gradients` are the gradients of."""
    losses = np.zeros(len(learners.length))
    for some in _groups(shape, learners, learners.length > 0):
        rows = _Rows.of(learners, some, shape.n_actions)
        inputs = weights["token"][rows.before] + rows.result[:, None] * weights["result"]
        from_input = inputs @ weights["input"].T + weights["bias"]
        state, hidden, start = from_input.new_zeros(rows.n_learners, shape.units), [], 0
        for n in rows.n_left:
            state = _next_state(from_input[start : start + n], state[:n] @ weights["state"].T, state[:n])
            hidden.append(state)
            start += n
        out = torch.cat(hidden)
        _, actions, stay = _log_odds(weights, out)
        success = out @ weights["success"] + weights["easy"][rows.action]
        told = cross_entropy(_with_stay(actions, stay, rows.before), rows.action, reduction="none")
        told += binary_cross_entropy_with_logits(success, rows.outcome, reduction="none")
        of_rows = np.bincount(rows.learner.numpy(), weights=told.numpy(), minlength=len(some))
        passed, ended = _ends(shape, learners.length[some])
        log_odds = weights["end"].numpy()
        losses[some] = of_rows + passed @ np.logaddexp(0.0, log_odds) - ended @ log_odds
    return losses


def _end_gradients(shape: Shape, weights: Weights, n_rows: IntArray) -> Floats:
    passed, ended = _ends(shape, n_rows)
    gradients: Floats = passed * torch.sigmoid(weights["end"]).numpy() - ended
    return gradients


def _ends(shape: Shape, n_rows: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """By octave, after how many rows a learner may have ended, and where they did.

    They may end after each row and end after the last one; after `longest` rows there is nothing to learn.
    """
    first = 2 ** np.arange(shape.n_octaves)
    passed = np.clip(np.minimum(n_rows, shape.longest - 1)[:, None] - first + 1, 0, first)
    ended = (first <= n_rows[:, None]) & (n_rows[:, None] < 2 * first) & (n_rows < shape.longest)[:, None]
    return passed, ended


@dataclass(frozen=True)
class Part:
    """Weights whose gradients are cut together: to which norm, with which share of a learner's contribution.

    `rate` is the learning rate. All of it was chosen on simulated classrooms, two norms by a half of ASSISTments 2009.
    """

    weights: tuple[str, ...]
    norm: float
    share: float
    rate: float


# Gradients of outcomes and of the end would vanish beside those of actions if all were cut together.
PARTS = (
    Part(("end",), 1.5, 0.1, 0.1),
    Part(("popular",), 8.0, 0.25, 0.05),
    Part(("token", "result", "input", "state", "bias", "question", "stay"), 4.0, 0.3, 0.02),
    Part(("easy",), 4.0, 0.3, 0.09),
    Part(("success",), 6.0, 0.05, 0.02),
)


def contributions(shape: Shape, gradients: Tensor) -> NDArray[np.int64]:
    """What each learner adds to the sum, a row each, in units of 1 / LATTICE.

    The parts of their gradient are cut and scaled so that the squares of the norms add up to 1 at most; that the whole
    is no longer than LATTICE is then checked in integers.
    """
    sizes = shape.sizes()
    columns = dict(
        zip(sizes, torch.split(gradients, [prod(size) for size in sizes.values()], dim=1), strict=True)
    )
    for part in PARTS:
        norm = torch.cat([columns[name] for name in part.weights], dim=1).norm(dim=1, keepdim=True)
        factor = sqrt(part.share) / norm.clamp(min=part.norm)
        columns.update({name: columns[name] * factor for name in part.weights})
    return lattice_contributions(torch.cat([columns[name] for name in sizes], dim=1).numpy(), 1.0)


def clipped_sum(
    shape: Shape, weights: Weights, learners: Learners, taking_part: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The sum of the clipped gradients of those who take part, in units of 1 / LATTICE."""
    total = np.zeros(shape.n_weights, dtype=np.int64)
    for some in _groups(shape, learners, taking_part & (learners.length > 0)):
        gradients = learner_gradients(shape, weights, learners, some)
        total += contributions(shape, gradients).sum(axis=0)
    return total


def _groups(shape: Shape, learners: Learners, chosen: NDArray[np.bool_]) -> Iterator[IntArray]:
    """The chosen learners by falling number of rows, as many at a time as fit into memory."""
    some = np.flatnonzero(chosen)
    some = some[np.argsort(-learners.length[some], kind="stable")]
    while len(some):
        per_learner = shape.n_weights + int(learners.length[some[0]]) * (shape.n_actions + 8 * shape.units)
        now, some = np.split(some, [max(1, MOST_NUMBERS // per_learner)])
        yield now


def train(
    shape: Shape,
    learners: Learners,
    steps: PrivateSteps,
    rng: np.random.Generator,
    noise: Noise,
) -> Weights:
    """Take the private steps; the mean of the weights in the second half of them.

    `rng` draws the first weights, which are public. Who takes part and the noise come from the operating system,
    unless `noise` is a test's. Only the noisy sums depend on learners.
    """
    weights = shape.first_weights(rng)
    n_learners, sizes = len(learners.length), [value.numel() for value in weights.values()]
    optimizer = torch.optim.Adam(
        [{"params": [weights[name] for name in part.weights], "lr": part.rate} for part in PARTS]
    )
    mean = {name: torch.zeros_like(value) for name, value in weights.items()}
    scale = {name: part.norm / sqrt(part.share) for part in PARTS for name in part.weights}
    first_kept = steps.n_steps // 2
    with progress.task("Training the network", steps.n_steps) as task:
        for step in range(steps.n_steps):
            taking_part = poisson_sample(n_learners, steps.rate, None if noise.secret else rng)
            total = clipped_sum(shape, weights, learners, taking_part)
            noisy = noise.discrete_gaussian(total, (1 + ROUNDING) * steps.noise_multiplier * LATTICE)
            gradient = torch.from_numpy(noisy / (LATTICE * steps.rate * n_learners))
            for (name, value), part in zip(weights.items(), torch.split(gradient, sizes), strict=True):
                value.grad = scale[name] * part.view_as(value)
            optimizer.step()
            if step >= first_kept:
                for name, value in weights.items():
                    mean[name] += value.detach() / (steps.n_steps - first_kept)
            task.advance()
    return mean


@torch.no_grad()
def sample_sequences(
    shape: Shape, weights: Weights, n_learners: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Sequences and outcomes of invented learners: (action, outcome, offsets); everybody has a row."""
    dice = torch.Generator().manual_seed(int(rng.integers(2**62)))
    ends = torch.sigmoid(weights["end"])
    learner = torch.arange(n_learners)
    state = torch.zeros(n_learners, shape.units, dtype=torch.float64)
    before = torch.full((n_learners,), shape.n_actions)
    result = torch.zeros(n_learners, dtype=torch.float64)
    drawn: list[tuple[Tensor, Tensor, Tensor]] = [(learner[:0], before[:0], before[:0])]
    for row in range(1, shape.longest + 1):
        if not len(learner):
            break
        inputs = weights["token"][before] + result[:, None] * weights["result"]
        from_input = inputs @ weights["input"].T + weights["bias"]
        state = _next_state(from_input, state @ weights["state"].T, state)
        _, actions, stay = _log_odds(weights, state)
        chances = torch.softmax(_with_stay(actions, stay, before), dim=1)
        action = torch.multinomial(chances, 1, generator=dice)[:, 0]
        success = torch.sigmoid(state @ weights["success"] + weights["easy"][action])
        outcome = (torch.rand(len(learner), generator=dice) < success).long()
        drawn.append((learner, action, outcome))
        on = torch.rand(len(learner), generator=dice) >= ends[row.bit_length() - 1]
        learner, state, before, result = learner[on], state[on], action[on], 2.0 * outcome[on] - 1.0
    who, actions_, outcomes = (torch.cat(parts).numpy() for parts in zip(*drawn, strict=True))
    order = np.argsort(who, kind="stable")
    lengths = np.bincount(who, minlength=n_learners)
    return actions_[order].astype(np.int32), outcomes[order].astype(np.int8), offsets_of(lengths)
