"""How often 95 % intervals of private difficulties hold the truth in exams with points, and with discriminations.

Settings of the estimators were chosen with seed 1; what is published was measured with another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators.noisy_discriminations import estimate_discriminations
from understudy.exams.estimators.noisy_points import estimate_from_points
from understudy.exams.estimators.partial_credit import half_points
from understudy.exams.mechanisms.discrimination import discrimination_measurement
from understudy.exams.mechanisms.points import choose_points_measurement
from understudy.exams.responses import Points, Responses

Floats = NDArray[np.float64]
Row = list[str]


@dataclass(frozen=True)
class PointsCell:
    """A kind of exam: learners, items, what items may have as their maxima, and how thresholds differ."""

    n_learners: int
    n_items: int
    maxima: tuple[int, ...]
    epsilon: float
    spread: float
    thresholds_differ: float = 0.7

    def measure(self, n_exams: int, rng: np.random.Generator) -> Row:
        """The share of intervals that hold, its standard error over exams, and the correlation with the truth."""
        found = [self._one(rng) for _ in range(n_exams)]
        return [
            f"{self.n_learners:,}, {self.n_items}, {' or '.join(map(str, self.maxima))}",
            f"{self.epsilon:g}",
            f"{self.spread:.1f}",
            f"{self.thresholds_differ:.1f}",
            *_shown(found),
        ]

    def _one(self, rng: np.random.Generator) -> tuple[float, float]:
        maxima = rng.choice(self.maxima, self.n_items)
        middle = rng.normal(0, 1, self.n_items)
        thresholds = [
            rng.normal(0, self.thresholds_differ, most) + place
            for most, place in zip(maxima, middle, strict=True)
        ]
        truth = np.array([half_points(np.append(0, np.cumsum(each))) for each in thresholds])
        ability = rng.normal(0, self.spread, self.n_learners)
        steps = np.stack([_steps(ability, each, rng) for each in thresholds], axis=1)
        points = tuple(Points(int(most)) for most in maxima)
        names = tuple(f"q{item}" for item in range(self.n_items))
        responses = Responses(steps, names, declared=True, points=points)
        measurement = choose_points_measurement(
            "knorm", points, epsilon=self.epsilon, delta=1e-6, agreement=True
        )
        estimate = estimate_from_points(measurement.release(responses, seeded_noise(rng)), points)
        return _judged(estimate.difficulty, estimate.standard_error, truth)


@dataclass(frozen=True)
class DiscriminationsCell:
    """A kind of exam whose items differ in how well they distinguish learners."""

    n_learners: int
    n_items: int
    epsilon: float
    spread: float

    def measure(self, n_exams: int, rng: np.random.Generator) -> Row:
        """Of difficulties and of log discriminations: as for points."""
        found = [self._one(rng) for _ in range(n_exams)]
        difficulties, discriminations = zip(*found, strict=True)
        return [
            f"{self.n_learners:,}, {self.n_items}",
            f"{self.epsilon:g}",
            f"{self.spread:.1f}",
            *_shown(list(difficulties)),
            *_shown(list(discriminations)),
        ]

    def _one(self, rng: np.random.Generator) -> tuple[tuple[float, float], tuple[float, float]]:
        difficulty = rng.normal(0, 1.2, self.n_items)
        log_slope = rng.normal(0, self.spread, self.n_items)
        ability = rng.normal(0, 1, self.n_learners)[:, None]
        right = rng.random((self.n_learners, self.n_items)) < expit(
            np.exp(log_slope) * (ability - difficulty)
        )
        measurement = discrimination_measurement("knorm", self.n_items, epsilon=self.epsilon, delta=0.0)
        noisy = measurement.release(Responses.from_matrix(right.astype(np.int8)), seeded_noise(rng))
        estimate = estimate_discriminations(noisy)
        return (
            _judged(estimate.difficulty, estimate.standard_error, difficulty),
            _judged(estimate.log_slope, estimate.log_slope_error, log_slope),
        )


Cell = PointsCell | DiscriminationsCell

POINTS = (
    PointsCell(60, 20, (1, 2, 4), 1, 1.0),
    PointsCell(300, 20, (1, 2, 4), 1, 1.0),
    PointsCell(300, 20, (1, 2, 4), 5, 1.0),
    PointsCell(500, 10, (5, 10), 1, 0.6),
    PointsCell(120, 40, (4,), 1, 1.0),
    PointsCell(500, 30, (2,), 2, 1.8),
    PointsCell(3000, 20, (1, 2, 4), 1, 0.6),
    PointsCell(3000, 20, (1, 2, 4), 5, 1.0),
    PointsCell(1000, 20, (3, 4), 5, 1.0, 0.2),
    PointsCell(1000, 20, (3, 4), 5, 1.0, 1.2),
)
DISCRIMINATIONS = (
    DiscriminationsCell(500, 10, 5, 0.3),
    DiscriminationsCell(1000, 20, 1, 0.3),
    DiscriminationsCell(1000, 20, 5, 0.3),
    DiscriminationsCell(5000, 20, 1, 0.5),
    DiscriminationsCell(5000, 40, 5, 0.3),
)


def measure(
    cells: tuple[Cell, ...], n_exams: int, seed: int, show: Callable[[str], None] = lambda line: None
) -> list[Row]:
    """A row per cell; each has random numbers of its own."""
    rows = []
    for cell, sequence in zip(cells, np.random.SeedSequence(seed).spawn(len(cells)), strict=True):
        rows.append(cell.measure(n_exams, np.random.default_rng(sequence)))
        show("| " + " | ".join(rows[-1]) + " |")
    return rows


def _steps(ability: Floats, thresholds: Floats, rng: np.random.Generator) -> NDArray[np.int8]:
    logs = np.arange(len(thresholds) + 1) * ability[:, None] - np.append(0.0, np.cumsum(thresholds))
    below = np.cumsum(softmax(logs, axis=1), axis=1)
    steps: NDArray[np.int8] = (rng.random(len(ability))[:, None] > below[:, :-1]).sum(axis=1).astype(np.int8)
    return steps


def _judged(found: Floats, error: Floats, truth: Floats) -> tuple[float, float]:
    holds = np.abs(found - truth) < 1.96 * error
    return float(holds.mean()), float(np.corrcoef(found, truth)[0, 1])


def _shown(found: list[tuple[float, float]]) -> Row:
    holds = np.array([held for held, _ in found])
    error = holds.std(ddof=1) / np.sqrt(len(holds)) if len(holds) > 1 else np.nan
    return [
        f"{100 * holds.mean():.1f} ± {100 * error:.1f} %",
        f"{np.mean([correlation for _, correlation in found]):.2f}",
    ]
