"""A simulated exam: students who never existed answer items of known difficulty."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from understudy.exams.responses import NOT_ANSWERED, Points, Responses

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sitting:
    """What a simulation knows and a school does not: the true abilities and difficulties."""

    responses: Responses
    ability: Floats
    difficulty: Floats

    @property
    def chances(self) -> Floats:
        """The true chance of each student at each item."""
        return chances(self.ability, self.difficulty)

    def again(self, rng: np.random.Generator) -> Responses:
        """The same students at the same items another time: new answers from the same distribution.

        A student who was not given an item is not given it this time either.
        """
        return _hidden(_answers(self.chances, rng), self.responses.correct < 0)


@dataclass(frozen=True)
class Exam:
    """An exam whose abilities are N(0, `ability_sd`^2) and whose difficulties are N(0, `difficulty_sd`^2).

    The defaults are those of Steiner, Nyrnberg and Hansen (2019, section 4).

    `missing` is the chance that a student is not given an item.
    """

    n_learners: int = 120
    n_items: int = 20
    ability_sd: float = 1.0
    difficulty_sd: float = 2.0
    missing: float = 0.0

    def simulate(self, rng: np.random.Generator) -> Sitting:
        """One sitting of such an exam."""
        ability = rng.normal(0.0, self.ability_sd, self.n_learners)
        difficulty = rng.normal(0.0, self.difficulty_sd, self.n_items)
        responses = _answers(chances(ability, difficulty), rng)
        if self.missing:
            responses = _hidden(responses, rng.random(responses.correct.shape) < self.missing)
        return Sitting(responses, ability, difficulty)


def simulate_points(exam: Exam, points: int, rng: np.random.Generator) -> Responses:
    """A sitting of items with so many points each, by the partial credit model.

    Thresholds differ from the difficulty, and difficulties spread by half as much as those of right and wrong: among
    many points one is more telling.
    """
    ability = rng.normal(0.0, exam.ability_sd, exam.n_learners)
    difficulty = rng.normal(0.0, exam.difficulty_sd / 2.0, exam.n_items)
    thresholds = difficulty[:, None] + rng.normal(0.0, 0.7, (exam.n_items, points))
    steps = np.arange(points + 1)
    costs = np.concatenate([np.zeros((exam.n_items, 1)), np.cumsum(thresholds, axis=1)], axis=1)
    below = np.cumsum(softmax(ability[:, None, None] * steps - costs, axis=2), axis=2)[:, :, :-1]
    matrix = (rng.random((exam.n_learners, exam.n_items, 1)) > below).sum(axis=2).astype(np.int8)
    names = tuple(f"item {i + 1}" for i in range(exam.n_items))
    of_items = (Points(points),) * exam.n_items
    return Responses(matrix, names, declared=True, simulated=True, points=of_items)


def chances(ability: Floats, difficulty: Floats) -> Floats:
    """The Rasch model: the chance of each ability at each difficulty."""
    return np.asarray(expit(ability[:, None] - difficulty))


def _answers(chance: Floats, rng: np.random.Generator) -> Responses:
    correct = (rng.random(chance.shape) < chance).astype(np.int8)
    names = tuple(f"item {i + 1}" for i in range(chance.shape[1]))
    return Responses(correct, names, declared=True, simulated=True)


def _hidden(responses: Responses, hidden: NDArray[np.bool_]) -> Responses:
    return replace(responses, correct=np.where(hidden, np.int8(NOT_ANSWERED), responses.correct))
