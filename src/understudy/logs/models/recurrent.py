"""A recurrent network of a log: after each (action, outcome), which action comes next, or the end.

Vie, Rigaux and Minn 2022, section 4: a gated recurrent unit, the learner's ability in its initial state,
cross-entropy, categorical sampling. Importing this module needs the extra `deep`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.core.engine import progress
from understudy.core.extras import needs_extra
from understudy.logs.interactions import IntArray, Interactions, offsets_of

with needs_extra("deep", "a recurrent network"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
    from torch.nn.utils.rnn import PackedSequence

Floats = NDArray[np.float64]

# Below this gain in nats per row, an epoch counts as one without gain.
LEAST_GAIN = 1e-4
# At most so many numbers per step of sampling: some learners at a time where there are very many.
MOST_NUMBERS = 2**26


@dataclass(frozen=True)
class Shape:
    """The sizes of a network."""

    n_actions: int
    units: int
    layers: int
    embedding: int
    dropout: float
    learned_outcomes: bool


@dataclass(frozen=True)
class TrainingSchedule:
    """How a network is trained.

    `lanes` learners are read side by side, `piece` rows at a time; the state is carried from piece to piece, gradients
    are not. A lane whose learner ends takes the next one, so that no lane ever runs empty. Where `cuts` is given,
    the longest sequence is cut into so many pieces instead: many short ones first, then fewer and longer ones;
    the next stage begins after `patience` epochs without gain on learners set aside.
    """

    rate: float
    lanes: int
    epochs: int
    patience: int
    piece: int = 32
    decay: bool = True
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Training:
    """How a training ended: the loss of the weights that were kept, and after how many of at most how many epochs."""

    loss: float
    n_epochs: int
    most_epochs: int
    interrupted: bool


class Network(nn.Module):
    """The network: tokens in, log-odds of what comes next out; with learned outcomes also their log-odds."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.units + 1  # the last unit begins with the ability
        self.embedding = nn.Embedding(2 * shape.n_actions + 1, shape.embedding)
        self.gru = nn.GRU(shape.embedding, width, shape.layers)
        self.dropout = nn.Dropout(shape.dropout)
        self.next_action = nn.Linear(width, shape.n_actions + 1)
        if shape.learned_outcomes:
            # What practice adds to the Rasch model's log-odds of each action: nothing at first.
            self.practice = nn.Linear(width, shape.n_actions)
            nn.init.zeros_(self.practice.weight)
            nn.init.zeros_(self.practice.bias)

    @property
    def start(self) -> int:
        """The token before the first row."""
        return 2 * self.shape.n_actions

    def first_state(self, ability: Floats) -> Tensor:
        """The state before the first row."""
        state = torch.zeros(self.shape.layers, len(ability), self.shape.units + 1)
        state[:, :, -1] = torch.as_tensor(ability, dtype=torch.float32)
        return state


@dataclass(frozen=True)
class Tokens:
    """A log as a network reads it: before each row the token seen last, the action that comes, and its outcome.

    A learner with k rows has k + 1 places; what comes at the last one is the end. `rasch` are the log-odds of success
    by the Rasch model, 0 at the end.
    """

    seen: Tensor
    comes: Tensor
    outcome: Tensor
    rasch: Tensor
    begin: IntArray
    length: IntArray
    ability: Floats

    @classmethod
    def of(cls, log: Interactions, easiness: Floats, ability: Floats) -> Tokens:
        """The places of a log whose learners have these abilities."""
        n, ends, action = log.n_actions, log.offsets[1:], log.action.astype(np.int64)
        log_odds = easiness[action] + ability[log.learner]
        length = log.lengths + 1
        return cls(
            torch.from_numpy(np.insert(2 * action + log.success, log.offsets[:-1], 2 * n)),
            torch.from_numpy(np.insert(action, ends, n)),
            torch.from_numpy(np.insert(log.success.astype(np.float32), ends, 0)),
            torch.from_numpy(np.insert(log_odds, ends, 0).astype(np.float32)),
            offsets_of(length)[:-1],
            length,
            ability,
        )

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.length)

    def piece(self, learner: IntArray, first: IntArray, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """The next `size` places of some learners, time by time, as packed sequences want them.

        Places, how many learners are left at each time, and the learners' positions by falling length.
        """
        left = np.minimum(self.length[learner] - first, size)
        order = np.argsort(-left, kind="stable")
        time = np.arange(left.max())[:, None]
        present = time < left[order]
        place = ((self.begin[learner] + first)[order] + time)[present]
        return torch.from_numpy(place), torch.from_numpy(present.sum(axis=1)), torch.from_numpy(order)


def read(
    network: Network, tokens: Tokens, learner: IntArray, first: IntArray, size: int, state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Read a piece: the places, the loss at each, and the learners' state after it."""
    place, n_left, order = tokens.piece(learner, first, size)
    seen = PackedSequence(network.embedding(tokens.seen[place]), n_left)
    out, last = network.gru(seen, state[:, order])
    hidden = network.dropout(out.data)
    loss = cross_entropy(network.next_action(hidden), tokens.comes[place], reduction="none")
    if network.shape.learned_outcomes:
        row = torch.nonzero(tokens.comes[place] < network.shape.n_actions)[:, 0]
        at = place[row]
        gained = network.practice(hidden[row]).gather(1, tokens.comes[at][:, None])[:, 0]
        told = binary_cross_entropy_with_logits(
            tokens.rasch[at] + gained, tokens.outcome[at], reduction="none"
        )
        loss = loss.index_add(0, row, told)
    return place, loss, last[:, torch.argsort(order)]


@torch.no_grad()
def learner_losses(network: Network, tokens: Tokens, at_once: int = 512) -> Floats:
    """The loss of each learner, in nats, summed over their places."""
    network.eval()
    loss = np.zeros(len(tokens.seen))
    order = np.argsort(-tokens.length)
    for low in range(0, len(order), at_once):
        some = order[low : low + at_once]
        whole = int(tokens.length[some].max())
        place, found, _ = read(
            network, tokens, some, np.zeros_like(some), whole, network.first_state(tokens.ability[some])
        )
        loss[place.numpy()] = found.numpy()
    network.train()
    return np.add.reduceat(loss, tokens.begin)


class Lanes:
    """Learners read side by side, without end, in an order drawn anew each time everybody was read."""

    def __init__(self, network: Network, tokens: Tokens, n_lanes: int, rng: np.random.Generator) -> None:
        self.tokens, self.network, self.rng = tokens, network, rng
        self.queue: list[int] = []
        self.learner = self._take(n_lanes)
        self.first = np.zeros(n_lanes, dtype=np.int64)
        self.state = network.first_state(tokens.ability[self.learner])

    def _take(self, n: int) -> NDArray[np.int64]:
        while len(self.queue) < n:
            self.queue[:0] = self.rng.permutation(self.tokens.n_learners).tolist()
        taken = self.queue[-n:]
        del self.queue[-n:]
        return np.array(taken, dtype=np.int64)

    def step(self, size: int) -> Tensor:
        """Read the next piece of every lane; the loss at each place."""
        _, loss, state = read(self.network, self.tokens, self.learner, self.first, size, self.state)
        self.state = state.detach()
        self.first += size
        done = np.flatnonzero(self.first >= self.tokens.length[self.learner])
        if len(done):
            self.learner[done], self.first[done] = self._take(len(done)), 0
            self.state[:, done] = self.network.first_state(self.tokens.ability[self.learner[done]])
        return loss


def train(
    network: Network, tokens: Tokens, aside: Tokens, schedule: TrainingSchedule, rng: np.random.Generator
) -> Training:
    """Train until the loss on learners set aside falls no more; the best weights stay in the network.

    An interrupt ends the training and keeps the best weights so far; before an epoch brought a gain there are none,
    and it goes on to the caller.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=schedule.rate)
    longest = int(tokens.length.max())
    pieces = [-(-longest // cut) for cut in schedule.cuts] or [schedule.piece]
    lanes = Lanes(network, tokens, min(schedule.lanes, tokens.n_learners), rng)
    best = _Best(network, aside)
    most_epochs, n_epochs, interrupted = schedule.epochs * len(pieces), 0, False
    with progress.task("Training the network", most_epochs) as task:
        try:
            for piece in pieces:
                best.restore()
                without_gain = 0
                for epoch in range(schedule.epochs):
                    if schedule.decay:
                        share = 0.5 * (1.0 + np.cos(np.pi * epoch / schedule.epochs))
                        for group in optimizer.param_groups:
                            group["lr"] = schedule.rate * (0.02 + 0.98 * share)
                    _epoch(network, lanes, optimizer, piece, len(tokens.seen))
                    without_gain = 0 if best.look() else without_gain + 1
                    n_epochs += 1
                    task.note(f"loss {best.loss:.3f}")
                    task.advance()
                    if without_gain >= schedule.patience:
                        break
        except KeyboardInterrupt:
            if not best.gained:
                raise
            interrupted = True
    best.restore()
    return Training(best.loss, n_epochs, most_epochs, interrupted)


def _epoch(
    network: Network, lanes: Lanes, optimizer: torch.optim.Optimizer, piece: int, n_places: int
) -> None:
    n_read = 0
    while n_read < n_places:
        loss = lanes.step(piece)
        optimizer.zero_grad()
        loss.mean().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        n_read += len(loss)


class _Best:
    """The weights with the lowest loss on learners set aside."""

    def __init__(self, network: Network, aside: Tokens) -> None:
        self.network, self.aside = network, aside
        # One value, so that an interrupt never leaves the loss of one epoch with the weights of another.
        self._kept = (self._loss(), self._weights(), False)

    @property
    def loss(self) -> float:
        """The loss of the weights that are kept, in nats per place."""
        return self._kept[0]

    @property
    def gained(self) -> bool:
        """Whether they are better than those before training."""
        return self._kept[2]

    def look(self) -> bool:
        """Keep the present weights if they are better; says whether they are."""
        loss = self._loss()
        gained = loss < self.loss - LEAST_GAIN
        if gained or not np.isfinite(self.loss):
            self._kept = (loss, self._weights(), gained)
        return gained

    def restore(self) -> None:
        """Put the best weights back."""
        self.network.load_state_dict(self._kept[1])

    def _loss(self) -> float:
        return float(learner_losses(self.network, self.aside).sum() / len(self.aside.seen))

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.network.state_dict().items()}


@torch.no_grad()
def sample_sequences(
    network: Network,
    ability: Floats,
    easiness: Floats,
    tried: NDArray[np.bool_],
    longest: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray]:
    """Sequences and outcomes of invented learners with these abilities: (action, outcome, offsets).

    All learners take their next step together, among actions that somebody tried; nobody ends before the
    first row or goes past `longest`.
    """
    network.eval()
    shape = network.shape
    at_once = max(1, MOST_NUMBERS // (3 * shape.units * shape.layers + 2 * shape.n_actions))
    drawn = [
        _sequences(network, ability[low : low + at_once], easiness, tried, longest, rng)
        for low in range(0, len(ability), at_once)
    ]
    empty = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64))
    action, outcome, lengths = map(np.concatenate, zip(empty, *drawn, strict=True))
    return action, outcome, offsets_of(lengths)


def _sequences(
    network: Network,
    ability: Floats,
    easiness: Floats,
    tried: NDArray[np.bool_],
    longest: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray]:
    dice = torch.Generator().manual_seed(int(rng.integers(2**62)))
    end = network.shape.n_actions
    own, common = (torch.as_tensor(values, dtype=torch.float32) for values in (ability, easiness))
    learner = torch.arange(len(ability))
    state = network.first_state(ability)
    token = torch.full((len(ability),), network.start)
    never = torch.from_numpy(np.append(np.flatnonzero(~tried), end))  # and no end at first
    steps: list[tuple[Tensor, Tensor, Tensor]] = []
    for row in range(longest):
        out, state = network.gru(network.embedding(token)[None], state)
        log_odds = network.next_action(out[0])
        log_odds[:, never if row == 0 else never[:-1]] = -torch.inf
        action = torch.multinomial(torch.softmax(log_odds, dim=1), 1, generator=dice)[:, 0]
        on = action < end
        learner, action, state = learner[on], action[on], state[:, on].contiguous()
        if not len(learner):
            break
        success = own[learner] + common[action]
        if network.shape.learned_outcomes:
            success = success + network.practice(out[0, on]).gather(1, action[:, None])[:, 0]
        outcome = (torch.rand(len(learner), generator=dice) < torch.sigmoid(success)).long()
        steps.append((learner, action, outcome))
        token = 2 * action + outcome
    who, actions, outcomes = (torch.cat(parts).numpy() for parts in zip(*steps, strict=True))
    order = np.argsort(who, kind="stable")
    lengths = np.bincount(who, minlength=len(ability))
    return actions[order].astype(np.int32), outcomes[order].astype(np.int8), lengths


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Weights and dropout follow from `rng`; torch's global state is left alone."""
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(int(rng.integers(2**62)))
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """On one core: a network this small is slower on two."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def to_arrays(network: Network) -> dict[str, NDArray[np.float32]]:
    """The weights by name."""
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def from_arrays(shape: Shape, arrays: dict[str, NDArray[np.float32]]) -> Network:
    """The network with these weights."""
    network = Network(shape)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items()})
    return network
