"""The membership game of Definition 5 for every learner at once, and the price of an answer.

A price is a lower bound that was measured, against an attacker who knows one learner and not the others. It is
no guarantee: another attacker, or the same answer beside another release, can do better.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.desk.risk.curves import advantage_at, mu_of, regret_of, threshold_of
from understudy.desk.risk.likelihoods import ATTACKERS, cross_fitted
from understudy.desk.risk.shadows import ShadowBank
from understudy.errors import UsageError

Floats = NDArray[np.float64]

LEVEL = 0.95
N_BOOTSTRAPS = 200
N_NULLS = 8


@dataclass(frozen=True)
class Measured:
    """A figure with its 95 % interval over shadows."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Price:
    """What an answer tells about the worst-placed learner, by the stronger of two attackers.

    `mu` and `advantage` are those of the learner who looks worst on one half of the shadows, estimated on
    the other. `largest_mu` is the largest of all learners, which chance alone raises: `largest_mu_by_chance` is
    what it is (median and 95 % point) when nobody's membership matters. `regret` is how far the curve of
    the worst learner lies from a Gaussian one.
    """

    attacker: str
    mu: Measured
    advantage: Measured
    regret: float
    largest_mu: float
    largest_mu_by_chance: tuple[float, float]
    largest_advantage: float
    n_outputs: int
    n_shadows: int
    n_learners: int

    def to_json(self) -> dict[str, Any]:
        """The price for a machine."""
        return asdict(self)


def price(outputs: Floats, bank: ShadowBank, rng: np.random.Generator) -> Price:
    """The price of an answer that is `outputs[b]` on shadow b."""
    if outputs.shape[0] != bank.n_shadows:
        raise UsageError(
            f"the game needs an answer for each of {bank.n_shadows} shadows; got {outputs.shape[0]}."
        )
    found = [_price_by(name, outputs, bank, rng) for name in ATTACKERS]
    return max(found, key=lambda one: one.mu.value)


def learners_mu(outputs: Floats, bank: ShadowBank, attacker: str = "correlated") -> Floats:
    """The mu of every learner, from all shadows. About learners one by one: for trusted code only."""
    return _mus(cross_fitted(outputs, bank, ATTACKERS[attacker]), bank)


def _price_by(attacker: str, outputs: Floats, bank: ShadowBank, rng: np.random.Generator) -> Price:
    halves = [np.flatnonzero(np.arange(bank.n_shadows) // 2 % 2 == half) for half in (0, 1)]
    banks = [bank.part(half) for half in halves]
    scores = [
        cross_fitted(outputs[half], one, ATTACKERS[attacker]) for half, one in zip(halves, banks, strict=True)
    ]
    worst = [int(np.argmax(_mus(one, part))) for one, part in zip(scores, banks, strict=True)]
    # The worst learner of one half, judged on the other; both ways, averaged.
    judged = [_sides(scores[1 - half], banks[1 - half], worst[half]) for half in (0, 1)]
    chosen = [threshold_of(*_sides(scores[half], banks[half], worst[half])) for half in (0, 1)]
    mus = np.array([mu_of(*sides) for sides in judged])
    advantages = np.array(
        [advantage_at(*sides, threshold) for sides, threshold in zip(judged, chosen, strict=True)]
    )
    resampled = np.array([_resampled(judged, chosen, rng) for _ in range(N_BOOTSTRAPS)])
    whole = cross_fitted(outputs, bank, ATTACKERS[attacker])
    largest = _mus(whole, bank)
    nulls = [_largest_by_chance(outputs, bank, attacker, rng) for _ in range(N_NULLS)]
    edges = ((1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2)
    return Price(
        attacker,
        _measured(float(mus.mean()), resampled[:, 0], edges),
        _measured(max(0.0, float(advantages.mean())), resampled[:, 1], edges),
        float(np.mean([regret_of(*sides, mu) for sides, mu in zip(judged, mus, strict=True)])),
        float(largest.max()),
        (float(np.median(nulls)), float(np.quantile(nulls, LEVEL))),
        _largest_advantage(whole, bank),
        outputs.shape[1],
        bank.n_shadows,
        bank.n_learners,
    )


def _measured(value: float, resampled: Floats, edges: tuple[float, float]) -> Measured:
    low, high = np.quantile(resampled, edges)
    return Measured(value, max(0.0, float(min(low, value))), float(max(high, value)))


def _sides(scores: Floats, bank: ShadowBank, learner: int) -> tuple[Floats, Floats]:
    own = scores[:, learner]
    return own[bank.once[:, learner]], own[bank.absent[:, learner]]


def _mus(scores: Floats, bank: ShadowBank) -> Floats:
    return np.array([mu_of(*_sides(scores, bank, learner)) for learner in range(bank.n_learners)])


def _resampled(
    judged: list[tuple[Floats, Floats]], thresholds: list[float], rng: np.random.Generator
) -> tuple[float, float]:
    mus, advantages = [], []
    for (inside, outside), threshold in zip(judged, thresholds, strict=True):
        again = rng.choice(inside, len(inside)), rng.choice(outside, len(outside))
        mus.append(mu_of(*again))
        advantages.append(advantage_at(*again, threshold))
    return float(np.mean(mus)), float(np.mean(advantages))


def _largest_by_chance(outputs: Floats, bank: ShadowBank, attacker: str, rng: np.random.Generator) -> float:
    """The largest mu when the answers belong to other shadows than those they were computed from."""
    shuffled = outputs[rng.permutation(bank.n_shadows)]
    return float(_mus(cross_fitted(shuffled, bank, ATTACKERS[attacker]), bank).max())


def _largest_advantage(scores: Floats, bank: ShadowBank) -> float:
    found = []
    for learner in range(bank.n_learners):
        inside, outside = _sides(scores, bank, learner)
        found.append(advantage_at(inside, outside, 0.0))
    return max(0.0, max(found))
