"""Transcripts: what reaches the noise on neighbouring data sets, and what that costs, without chance.

A release is computed from what its noise gave back. So it is made on one data set with noise that notes every draw, and
on others with noise that gives back the same: whatever is released has to be the same then, or something of the data
went past the noise. How far the inputs of a draw are apart, and its scale, say exactly what the draw costs on these
neighbours, and no attack on them can find more (Neyman and Pearson).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from understudy.core.privacy.noise import seeded_noise


@dataclass(frozen=True)
class Draw:
    """A draw of noise: its kind, what it was given, its scale (or epsilon), and what it gave back."""

    kind: str
    values: np.ndarray
    scale: float
    answer: Any


@dataclass(frozen=True)
class Cost:
    """What one draw costs on two neighbours: rho for Gaussian noise, epsilon for the pure kinds."""

    rho: float = 0.0
    epsilon: float = 0.0


class _Draws:
    """Noise of every kind that goes through one method."""

    secret = False

    def __init__(self) -> None:
        self.draws: list[Draw] = []

    def discrete_gaussian(self, values: Any, sigma: float) -> Any:
        return self._draw("discrete_gaussian", values, sigma)

    def discrete_laplace(self, values: Any, scale: float) -> Any:
        return self._draw("discrete_laplace", values, scale)

    def cube(self, values: Any, epsilon: float) -> Any:
        return self._draw("cube", values, epsilon)

    def hexagon(self, values: Any, epsilon: float) -> Any:
        return self._draw("hexagon", values, epsilon)

    def gumbel_argmax(self, scores: Any, scale: float) -> Any:
        return self._draw("gumbel_argmax", scores, scale)

    def _draw(self, kind: str, values: Any, scale: float) -> Any:
        answer = self._answer(kind, values, scale)
        self.draws.append(Draw(kind, np.array(values, dtype=np.float64), scale, answer))
        return answer

    def _answer(self, kind: str, values: Any, scale: float) -> Any:
        raise NotImplementedError


class Recording(_Draws):
    """Notes every draw of seeded noise; with a `factor` it is a mechanism whose noise has the wrong scale."""

    def __init__(self, rng: np.random.Generator, factor: float = 1.0) -> None:
        super().__init__()
        self._noise, self._factor = seeded_noise(rng), factor

    def _draw(self, kind: str, values: Any, scale: float) -> Any:
        pure = kind in ("cube", "hexagon")
        return super()._draw(kind, values, scale / self._factor if pure else scale * self._factor)

    def _answer(self, kind: str, values: Any, scale: float) -> Any:
        return getattr(self._noise, kind)(values, scale)


class Replaying(_Draws):
    """Gives back what a recording gave, and notes what another data set would have put in."""

    def __init__(self, recorded: Sequence[Draw]) -> None:
        super().__init__()
        self._recorded = iter(recorded)

    def _answer(self, kind: str, values: Any, scale: float) -> Any:
        before = next(self._recorded)
        assert (before.kind, before.values.shape) == (kind, np.shape(values))
        return before.answer


def transcripts(
    release: Callable[[Any, Any], Any], data_sets: Sequence[Any], *, seed: int = 0, factor: float = 1.0
) -> list[list[Draw]]:
    """The draws of `release(data, noise)` on each data set, all with the same answers, so that all releases agree."""
    noise: _Draws = Recording(np.random.default_rng(seed), factor)
    found: list[list[Draw]] = []
    for data in data_sets:
        released = release(data, noise)
        if not found:
            first = released
        else:
            assert_same(first, released)
            assert len(noise.draws) == len(found[0])
        found.append(noise.draws)
        noise = Replaying(found[0])
    return found


def costs(first: Sequence[Draw], second: Sequence[Draw]) -> list[Cost]:
    """What each draw costs when one data set is told from the other."""
    return [_cost(one, other) for one, other in zip(first, second, strict=True)]


def _cost(one: Draw, other: Draw) -> Cost:
    move = np.abs(one.values - other.values)
    if one.kind == "discrete_gaussian":
        return Cost(rho=float((move**2).sum() / one.scale**2 / 2))
    if one.kind == "discrete_laplace":
        return Cost(epsilon=float(move.sum() / one.scale))
    if one.kind == "cube":
        return Cost(epsilon=float(move.max() * one.scale))
    if one.kind == "hexagon":
        apart = np.abs((one.values - other.values) @ np.array([1.0, -1.0]))
        return Cost(epsilon=float(max(move.max(), apart.max()) * one.scale))
    # The chances of each choice, exactly.
    chances = [draw.values / draw.scale for draw in (one, other)]
    logs = [chance - np.logaddexp.reduce(chance) for chance in chances]
    return Cost(epsilon=float(np.abs(logs[0] - logs[1]).max()))


def total(found: Sequence[Cost]) -> Cost:
    """What all draws cost together: rhos add up, and so do epsilons."""
    return Cost(sum(cost.rho for cost in found), sum(cost.epsilon for cost in found))


def assert_same(before: Any, after: Any) -> None:
    """The same down to the last number, whatever it is."""
    assert type(before) is type(after)
    if is_dataclass(before):
        for field in fields(before):
            assert_same(getattr(before, field.name), getattr(after, field.name))
    elif isinstance(before, Mapping):
        assert before.keys() == after.keys()
        for key, value in before.items():
            assert_same(value, after[key])
    elif isinstance(before, list | tuple):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(before, after)
