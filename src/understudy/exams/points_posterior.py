"""The posterior of a student's ability where answers have points: the sums of `posterior.py`, for any number of steps.

The student's page repeats these sums (`templates/student.js`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from understudy.exams.estimators.credits import log_chances
from understudy.exams.released_file import Difficulties, Item

Floats = NDArray[np.float64]

# Where the difficulty of an item may be, in standard errors, and how likely: Gauss-Hermite, exact to degree 13.
DOUBTS, DOUBT_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
DOUBT_WEIGHTS = DOUBT_WEIGHTS / DOUBT_WEIGHTS.sum()


def log_tables(item: Item, abilities: Floats) -> Floats:
    """Logarithms of the chances of each number of steps at each ability, averaged over what the difficulty may be.

    A chance of guessing raises the chance of the one step of a right answer.
    """
    assert item.difficulty is not None
    beyond = abilities[:, None] - item.difficulty - (item.standard_error or 0.0) * DOUBTS
    logs = log_chances(beyond, item.credits or (0.0, 0.0), item.discrimination)
    averaged = np.asarray(logsumexp(logs, axis=1, b=DOUBT_WEIGHTS[:, None]))
    if item.guess:
        wrong = np.log1p(-item.guess) + averaged[:, 0]
        averaged = np.stack([wrong, np.log1p(-np.exp(wrong))], axis=1)
    return averaged


def bounds(items: tuple[Item, ...], mean: float, sd: float, reach: float) -> tuple[float, float, float]:
    """Where abilities of any points lie (`reach` deviations beyond the modes of none and all), and the narrowest sd.

    The modes are searched for at the known difficulties; what these may be is added to them.
    """
    steps = [item.points.steps for item in items]
    doubt = max((item.standard_error or 0.0) for item in items) * float(DOUBTS[-1])

    def moments(ability: Floats) -> tuple[Floats, Floats]:
        """The pull of all and of none, in steps, and the information, at each ability."""
        up, information = np.zeros_like(ability), np.zeros_like(ability)
        for item, n_steps in zip(items, steps, strict=True):
            assert item.difficulty is not None
            chance = np.exp(
                log_chances(ability - item.difficulty, item.credits or (0.0, 0.0), item.discrimination)
            )
            place = np.arange(n_steps + 1)
            middle = chance @ place
            up += item.discrimination * middle
            information += item.discrimination**2 * (chance @ place**2 - middle**2)
        return up, information

    most = sum(item.discrimination * n_steps for item, n_steps in zip(items, steps, strict=True))

    def mode(sign: float) -> float:
        near, far = 0.0, sd**2 * most
        for _ in range(60):
            middle = (near + far) / 2
            up = float(moments(np.array([mean + sign * middle]))[0][0])
            pull = most - up if sign > 0 else up
            near, far = (middle, far) if pull > middle / sd**2 else (near, middle)
        return mean + sign * far

    low, high = mode(-1.0) - doubt - reach * sd, mode(1.0) + doubt + reach * sd
    information = moments(np.linspace(low, high, 2001))[1].max()
    return low, high, 1.0 / math.sqrt(1.0 / sd**2 + float(information))


def lattice(items: tuple[Item, ...]) -> tuple[float, list[int]]:
    """The largest number of points of which every item's step is a multiple, and these multiples."""
    units = [Fraction(str(item.unit)) for item in items]
    common = Fraction(
        math.gcd(*(unit.numerator for unit in units)), math.lcm(*(u.denominator for u in units))
    )
    return float(common), [int(unit / common) for unit in units]


def steps_needed(items: tuple[Item, ...], pass_mark: float) -> tuple[int, float]:
    """How many steps of the lattice must be reached to pass, and what they are in points."""
    unit, multiples = lattice(items)
    total = sum(item.points.steps * each for item, each in zip(items, multiples, strict=True))
    needed = math.ceil(pass_mark * total - 1e-9)
    return needed, needed * unit


def at_least_points(tables: list[Floats], multiples: list[int], needed: int) -> Floats:
    """The chance of at least `needed` steps of the lattice at each ability: the items' laws, convolved."""
    exactly = np.ones((len(tables[0]), 1))
    for table, each in zip(tables, multiples, strict=True):
        chance = np.exp(table)
        longer = np.zeros((len(exactly), exactly.shape[1] + each * (chance.shape[1] - 1)))
        for step in range(chance.shape[1]):
            longer[:, each * step : each * step + exactly.shape[1]] += exactly * chance[:, step : step + 1]
        exactly = longer
    return np.asarray(exactly[:, needed:].sum(axis=1))


class PointTables:
    """Everything that does not depend on the answers, by point of the grid."""

    def __init__(
        self, difficulties: Difficulties, items: tuple[Item, ...], points: Floats, needed: int
    ) -> None:
        self.points = points
        prior = difficulties.ability
        self.log_prior = -0.5 * ((points - prior.mean) / prior.sd) ** 2
        self.tables = [log_tables(item, points) for item in items]
        self.shares = [
            np.exp(table) @ np.arange(table.shape[1]) / (table.shape[1] - 1) for table in self.tables
        ]
        self.passing = at_least_points(self.tables, lattice(items)[1], needed)

    def weights(self, steps: NDArray[np.int8]) -> Floats:
        """The posterior of each student."""
        weight = np.tile(self.log_prior, (len(steps), 1))
        for i, table in enumerate(self.tables):
            answered = steps[:, i] >= 0
            weight[answered] += table.T[steps[answered, i]]
        weight -= weight.max(axis=1, keepdims=True)
        np.exp(weight, out=weight)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def by_others(self, weight: Floats, steps: NDArray[np.int8]) -> tuple[Floats, Floats, Floats]:
        """Each item's expected share, and the chances of so few and of so many steps, judged by all other answers.

        Dividing the posterior by the answer's likelihood takes it out.
        """
        share = np.empty(steps.shape)
        so_few, so_many = np.ones(steps.shape), np.ones(steps.shape)
        for i, table in enumerate(self.tables):
            for step in range(-1, table.shape[1]):
                rows = steps[:, i] == step
                if not rows.any():
                    continue
                rest = weight[rows]
                if step >= 0:
                    rest = rest * np.exp(-table[:, step])
                    rest /= rest.sum(axis=1, keepdims=True)
                chance = rest @ np.exp(table)
                share[rows, i] = rest @ self.shares[i]
                if step >= 0:
                    so_few[rows, i] = chance[:, : step + 1].sum(axis=1)
                    so_many[rows, i] = chance[:, step:].sum(axis=1)
        return share, so_few, so_many
