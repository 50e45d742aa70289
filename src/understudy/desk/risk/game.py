"""The membership game of Definition 5 for every learner at once, and the price of an answer.

A price is a lower bound that was measured, against an attacker who knows one learner and not the others. It is
no guarantee: another attacker, or the same answer beside another release, can do better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from understudy.desk.risk.likelihoods import ATTACKERS, NoisySums, cross_fitted
from understudy.desk.risk.shadows import ShadowBank
from understudy.errors import UsageError

# Between these false-positive rates mu is read off; nearer to the edges a few shadows decide.
STABLE = (0.1, 0.9)
_ALPHA = np.linspace(*STABLE, 81)
_QUANTILE = ndtri(1 - _ALPHA)


@dataclass(frozen=True, eq=False)
class Curve:
    """False-positive and false-negative rates of all thresholds, the strictest first."""

    false_positive: Floats
    false_negative: Floats


def curve(inside: Floats, outside: Floats) -> Curve:
    """The curve of scores of shadows with the learner (`inside`) and without (`outside`)."""
    scores = np.concatenate([inside, outside])
    member = np.concatenate([np.ones(len(inside)), np.zeros(len(outside))])
    order = np.argsort(-scores, kind="stable")
    scores, member = scores[order], member[order]
    # One point per distinct score: ties are accepted together.
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    hits = np.cumsum(member)[last] / max(len(inside), 1)
    alarms = np.cumsum(1 - member)[last] / max(len(outside), 1)
    return Curve(np.concatenate([[0.0], alarms]), np.concatenate([[1.0], 1 - hits]))


def mu_of(inside: Floats, outside: Floats) -> float:
    """The median over the stable range of the mu that each point of the curve has.

    A point (alpha, beta) lies on the curve of mu = q(1 - alpha) - q(beta), q the standard normal quantile.
    Rates are kept half a shadow away from 0 and 1. Below 0 there is no leak, and 0 is said.
    """
    return max(0.0, signed_mu_of(inside, outside))


def signed_mu_of(inside: Floats, outside: Floats) -> float:
    """The same, below 0 where the scores are worse than guessing: what chance alone gives goes both ways."""
    found = curve(inside, outside)
    beta = np.interp(_ALPHA, found.false_positive, found.false_negative)
    half = 0.5 / max(len(inside), 1)
    return float(np.median(_QUANTILE - ndtri(np.clip(beta, half, 1 - half))))


def most_mu(n_shadows: int) -> float:
    """The largest mu that so many shadows can show: that of an answer that certainly gives a learner away.

    Rates are kept half a shadow away from 0. A learner is exactly once in exp(-1) of the shadows, and half of
    them are judged: with m of these, mu ends at q(1 - 1 / (2 m)). Beyond it nothing can be distinguished.
    """
    judged = max(1.0, n_shadows / 2 * math.exp(-1))
    return float(ndtri(1 - 0.5 / judged))


def regret_of(inside: Floats, outside: Floats, mu: float) -> float:
    """How far the curve lies from the Gaussian one of this mu: the largest difference of the rates."""
    found = curve(inside, outside)
    gaussian = ndtr(ndtri(1 - found.false_positive) - mu)
    return float(np.max(np.abs(found.false_negative - gaussian)))


def threshold_of(inside: Floats, outside: Floats) -> float:
    """The score from which on saying "in" wins most often, halfway to the next score below.

    Halfway, because it is applied to scores of other shadows, which are never quite the same.
    """
    scores = np.unique(np.concatenate([inside, outside]))
    gain = np.searchsorted(np.sort(outside), scores) / max(len(outside), 1)
    gain = gain - np.searchsorted(np.sort(inside), scores) / max(len(inside), 1)
    best = int(np.argmax(gain))
    return float(scores[best] if best == 0 else (scores[best] + scores[best - 1]) / 2)


def advantage_at(inside: Floats, outside: Floats, threshold: float) -> float:
    """True-positive minus false-positive rate of saying "in" from a score on (equation 19)."""
    hits, alarms = (np.count_nonzero(side >= threshold) / max(len(side), 1) for side in (inside, outside))
    return float(hits - alarms)


def points_of(inside: Floats, outside: Floats, n_points: int = 21) -> Floats:
    """The false-negative rate at evenly spaced false-positive rates, 0 and 1 among them, for a figure."""
    found = curve(inside, outside)
    # Of several points with the same false positives the last has the fewest false negatives.
    last = np.append(np.flatnonzero(np.diff(found.false_positive)), len(found.false_positive) - 1)
    grid = np.linspace(0.0, 1.0, n_points)
    return np.asarray(np.interp(grid, found.false_positive[last], found.false_negative[last]))


Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

LEVEL = 0.95
N_BOOTSTRAPS = 200
N_NULLS = 3
# Of the curve of the worst-placed learner, for a figure.
N_POINTS = 21
# What `progress` counts for each attacker: choosing, judging, and the nulls.
_STEPS = 2 + N_NULLS
N_STEPS = _STEPS * len(ATTACKERS)


@dataclass(frozen=True)
class IntervalEstimate:
    """A figure with its 95 % interval over shadows."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Attack:
    """What one attacker reached on the learner who looked worst to them."""

    mu: IntervalEstimate
    advantage: IntervalEstimate


@dataclass(frozen=True)
class Price:
    """What an answer reveals about the worst-placed learner, by the strongest of several attackers.

    `mu` and `advantage` are those of the learner who looks worst on one half of the shadows, estimated on
    the other; the largest of all attackers, each of whom is in `attacks`, with the farthest upper end of all.
    `attacker` reached `mu`. `largest_mu` is the largest of all learners, which chance alone raises:
    `largest_mu_by_chance` is what it is (median and 95 % point) when no learner's membership matters. `regret` is how
    far the curve of the worst learner lies from a Gaussian one; `misses` are its false-negative rates at evenly
    spaced false-positive rates from 0 to 1.
    """

    attacker: str
    mu: IntervalEstimate
    advantage: IntervalEstimate
    regret: float
    largest_mu: float
    largest_mu_by_chance: tuple[float, float]
    largest_advantage: float
    n_outputs: int
    n_shadows: int
    n_learners: int
    attacks: Mapping[str, Attack]
    misses: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """The price for a machine."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Price:
        """As `to_json` wrote it."""
        attacks = {
            name: Attack(IntervalEstimate(**one["mu"]), IntervalEstimate(**one["advantage"]))
            for name, one in content["attacks"].items()
        }
        low, high = content["largest_mu_by_chance"]
        return cls(
            **{
                **content,
                "mu": IntervalEstimate(**content["mu"]),
                "advantage": IntervalEstimate(**content["advantage"]),
                "largest_mu_by_chance": (low, high),
                "attacks": attacks,
                "misses": tuple(content["misses"]),
            }
        )


def price(
    outputs: Floats,
    bank: ShadowBank,
    rng: np.random.Generator,
    sums: NoisySums | None = None,
    progress: Progress | None = None,
) -> Price:
    """The price of an answer that is `outputs[b]` on shadow b, beside the noisy sums that were released before.

    `progress` hears how many of `N_STEPS` are done; what it raises ends the game.
    """
    if outputs.shape[0] != bank.n_shadows:
        raise UsageError(
            f"the game needs an answer for each of {bank.n_shadows} shadows; got {outputs.shape[0]}.",
            hint="run the analysis on all shadows of the same bank.",
        )
    found = []
    for place, attacker in enumerate(ATTACKERS):

        def done(step: int, before: int = place * _STEPS) -> None:
            if progress is not None:
                progress(before + step, N_STEPS)

        found.append(_price_by(attacker, outputs, bank, rng, sums, done))
    strongest = max(found, key=lambda one: one.mu.value)
    return Price(
        **{
            **vars(strongest),
            "mu": farthest([one.mu for one in found]),
            "advantage": farthest([one.advantage for one in found]),
            "largest_advantage": max(one.largest_advantage for one in found),
            "attacks": {name: attack for one in found for name, attack in one.attacks.items()},
        }
    )


def farthest(figures: Sequence[IntervalEstimate]) -> IntervalEstimate:
    """The largest of several figures of the same; its upper end is the farthest of all of them."""
    best = max(figures, key=lambda one: one.value)
    return replace(best, high=max(one.high for one in figures))


def learners_mu(
    outputs: Floats, bank: ShadowBank, attacker: str = "linear", sums: NoisySums | None = None
) -> Floats:
    """The mu of every learner, from all shadows. About learners one by one: for trusted code only."""
    return np.maximum(_signed_mus(cross_fitted(outputs, bank, ATTACKERS[attacker], sums), bank), 0.0)


def judged_mu(outputs: Floats, bank: ShadowBank) -> float:
    """The mu of the worst-placed learner as in `price`, of the independent attacker and without its interval."""
    _, judged, _ = _worst("independent", outputs, bank, None)
    return float(np.mean([mu_of(*sides) for sides in judged]))


_Sides = tuple[Floats, Floats]


def _worst(
    attacker: str, outputs: Floats, bank: ShadowBank, sums: NoisySums | None
) -> tuple[Floats, list[_Sides], list[float]]:
    """All scores; those of the worst learner of one half in the other, both ways; and thresholds for them.

    Who looks worst in a half, and from which score on to say "in", is found within that half, by scores that are
    cross-fitted within it. The scores of the other half are by what was fitted to this half: nothing that is judged
    had a part in the choice or in the fit.
    """
    scores = cross_fitted(outputs, bank, ATTACKERS[attacker], sums)
    judged, thresholds = [], []
    for half in (0, 1):
        # The folds of `cross_fitted`: what is judged in one was fitted to the other.
        here, there = (np.arange(bank.n_shadows) % 2 == side for side in (half, 1 - half))
        part = bank.part(np.flatnonzero(here))
        inner = cross_fitted(
            outputs[here], part, ATTACKERS[attacker], None if sums is None else sums.part(here)
        )
        learner = int(np.argmax(_signed_mus(inner, part)))
        thresholds.append(threshold_of(*_sides(inner, part, learner)))
        judged.append(_sides(scores[there], bank.part(np.flatnonzero(there)), learner))
    return scores, judged, thresholds


def _price_by(
    attacker: str,
    outputs: Floats,
    bank: ShadowBank,
    rng: np.random.Generator,
    sums: NoisySums | None,
    done: Callable[[int], None],
) -> Price:
    scores, judged, thresholds = _worst(attacker, outputs, bank, sums)
    done(1)
    mus = np.array([mu_of(*sides) for sides in judged])
    advantages = np.array(
        [advantage_at(*sides, threshold) for sides, threshold in zip(judged, thresholds, strict=True)]
    )
    resampled = np.array([_resampled(judged, thresholds, rng) for _ in range(N_BOOTSTRAPS)])
    attack = Attack(
        _measured(float(mus.mean()), resampled[:, 0]),
        _measured(max(0.0, float(advantages.mean())), resampled[:, 1]),
    )
    largest = _signed_mus(scores, bank)
    done(2)
    nulls = []
    for place in range(N_NULLS):
        nulls.append(_mus_by_chance(attacker, outputs, bank, rng, sums))
        done(3 + place)
    return Price(
        attacker,
        attack.mu,
        attack.advantage,
        float(np.mean([regret_of(*sides, mu) for sides, mu in zip(judged, mus, strict=True)])),
        max(0.0, float(largest.max())),
        _largest_by_chance(np.concatenate(nulls), bank.n_learners),
        _largest_advantage(scores, bank),
        outputs.shape[1],
        bank.n_shadows,
        bank.n_learners,
        {attacker: attack},
        tuple(float(miss) for miss in np.mean([points_of(*sides, N_POINTS) for sides in judged], axis=0)),
    )


def _measured(value: float, resampled: Floats) -> IntervalEstimate:
    low, high = np.quantile(resampled, ((1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2))
    return IntervalEstimate(value, max(0.0, float(min(low, value))), float(max(high, value)))


def _sides(scores: Floats, bank: ShadowBank, learner: int) -> _Sides:
    own, count = scores[:, learner], bank.counts[:, learner]
    return own[count == 1], own[count == 0]


def _signed_mus(scores: Floats, bank: ShadowBank) -> Floats:
    return np.array([signed_mu_of(*_sides(scores, bank, learner)) for learner in range(bank.n_learners)])


def _resampled(
    judged: list[_Sides], thresholds: list[float], rng: np.random.Generator
) -> tuple[float, float]:
    mus, advantages = [], []
    for (inside, outside), threshold in zip(judged, thresholds, strict=True):
        again, other = (side[rng.integers(0, max(len(side), 1), len(side))] for side in (inside, outside))
        mus.append(mu_of(again, other))
        advantages.append(advantage_at(again, other, threshold))
    return float(np.mean(mus)), float(np.mean(advantages))


def _mus_by_chance(
    attacker: str, outputs: Floats, bank: ShadowBank, rng: np.random.Generator, sums: NoisySums | None
) -> Floats:
    """Each learner's mu when the answers belong to other shadows than those they were computed from."""
    order = rng.permutation(bank.n_shadows)
    moved = None if sums is None else NoisySums(sums.values[order], sums.loadings)
    return _signed_mus(cross_fitted(outputs[order], bank, ATTACKERS[attacker], moved), bank)


def _largest_by_chance(mus: Floats, n_learners: int) -> tuple[float, float]:
    """Median and 95 % point of the largest of so many, as of independent Gaussians with these mus' mean and spread.

    The largest of each shuffle would need very many of them for a point in its tail.
    """
    middle, spread = float(mus.mean()), float(mus.std())
    found = [max(0.0, middle + spread * float(ndtri(chance ** (1 / n_learners)))) for chance in (0.5, LEVEL)]
    return found[0], found[1]


def _largest_advantage(scores: Floats, bank: ShadowBank) -> float:
    found = [advantage_at(*_sides(scores, bank, learner), 0.0) for learner in range(bank.n_learners)]
    return max(0.0, *found)
