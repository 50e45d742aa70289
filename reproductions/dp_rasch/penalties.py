"""Does lambda matter? A sweep over penalties, and how well each way of choosing one does.

Steiner, Nyrnberg and Hansen (2019, section 4) found that "fine-tuning of the regularization parameter was not
essential". Here the published methods, as their authors' program runs them, are fitted with penalties from 0.001 to 10
on simulated classes; and with a penalty that is fixed, chosen privately (equation 7, corrected, a fifth of epsilon),
chosen on a small public class, drawn at random among the same candidates, or the best of them in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reproductions.dp_rasch.study import t_interval
from reproductions.dp_rasch.trials import Floats, child, correlation, misclassification
from reproductions.pages import rows_of
from understudy.core.engine.tasks import run_tasks
from understudy.core.pages.charts import Drawing, Look, Point, curves, panels
from understudy.core.pages.figures import INK, WARNING, Figure
from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators.choice import PENALTIES, Fit, choose_penalty, count_errors, penalty_on_public
from understudy.exams.estimators.joint import PENALTY, estimate_ability
from understudy.exams.estimators.penalised import penalised_fit
from understudy.exams.plan import CHOICE_SHARE
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam, Sitting

SWEPT = (0.001, 0.01, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0)
METHODS = ("joint", "objective", "statistics")
MEASURES = ("probabilities_true", "difficulties_true", "misclassification")
# Learners whose answers are public, of the same distribution.
PUBLIC_LEARNERS = 40
WAYS = (
    "fixed at 0.02",
    "fixed at 1",
    "chosen privately",
    "from public data",
    "public data, by errors",
    "at random",
    "best in hindsight",
)

# The parts of this study's random numbers.
_SWEEP, _CHOICE = 101, 102


@dataclass(frozen=True)
class PenaltyPlan:
    """What is tried; the small version runs in the tests."""

    repetitions: int = 50
    sweep_sizes: tuple[int, ...] = (40, 120, 200)
    choice_sizes: tuple[int, ...] = (60, 120, 200)
    epsilons: tuple[float, ...] = (1.0, 5.0, 10.0)
    choice_epsilons: tuple[float, ...] = (1.0, 5.0)
    n_items: int = 20
    seed: int = 1


@dataclass(frozen=True)
class PenaltyRow:
    """One measure over all classes; `what` is a penalty of the sweep, or a way of choosing one."""

    method: str
    epsilon: float | None
    n_learners: int
    what: str
    measure: str
    mean: float
    low: float
    high: float


def measure_sweep(plan: PenaltyPlan = PenaltyPlan()) -> list[PenaltyRow]:  # noqa: B008 (frozen)
    """Every method with every penalty of the sweep on the same classes, with the same noise."""
    return list(_rows(plan, plan.sweep_sizes, _swept))


def measure_choice(plan: PenaltyPlan = PenaltyPlan()) -> list[PenaltyRow]:  # noqa: B008 (frozen)
    """Every way to a penalty on the same classes; the measure "penalty" is the one that was taken, its mean geometric.

    Best in hindsight: for each class and measure, the candidate that turned out best.
    """
    return list(_rows(plan, plan.choice_sizes, _chosen))


def penalty_rows(path: Path) -> list[PenaltyRow]:
    """The rows of a measured table."""
    return [
        PenaltyRow(
            row["method"],
            float(row["epsilon"]) if row["epsilon"] else None,
            int(row["n_learners"]),
            row["what"],
            row["measure"],
            *(float(row[name]) for name in ("mean", "low", "high")),
        )
        for row in rows_of(path)
    ]


_Key = tuple[str, float | None, str, str]


def _rows(
    plan: PenaltyPlan, sizes: Sequence[int], trial: Callable[[PenaltyPlan, int, int], dict[_Key, float]]
) -> Iterator[PenaltyRow]:
    for n in sizes:
        trials = run_tasks([partial(trial, plan, n, r) for r in range(plan.repetitions)])
        for method, epsilon, what, measure in trials[0]:
            values = np.array([found[method, epsilon, what, measure] for found in trials])
            if measure == "penalty":
                mean, low, high = np.exp(t_interval(np.log(values)))
            else:
                mean, low, high = t_interval(values)
            yield PenaltyRow(method, epsilon, n, what, measure, float(mean), float(low), float(high))


def _swept(plan: PenaltyPlan, n_learners: int, repetition: int) -> dict[_Key, float]:
    key = (_SWEEP, n_learners, repetition)
    judge = _Judge(plan, n_learners, child(plan.seed, *key))
    found: dict[_Key, float] = {}
    for place, method in enumerate(METHODS):
        for epsilon in (None,) if method == "joint" else plan.epsilons:
            for penalty in SWEPT:
                # The same noise for every penalty: what differs is the penalty alone.
                noise = child(plan.seed, *key, place, round(1000 * (epsilon or 0)))
                difficulty = penalised_fit(method, epsilon)(judge.responses, penalty, noise)
                for measure, value in judge.measures(difficulty, penalty).items():
                    found[method, epsilon, f"{penalty:g}", measure] = value
    return found


def _chosen(plan: PenaltyPlan, n_learners: int, repetition: int) -> dict[_Key, float]:
    key = (_CHOICE, n_learners, repetition)
    rng = child(plan.seed, *key)
    judge = _Judge(plan, n_learners, rng)
    public = Exam(PUBLIC_LEARNERS, plan.n_items).simulate(rng).responses
    found: dict[_Key, float] = {}
    for place, method in enumerate(METHODS[1:]):
        for epsilon in plan.choice_epsilons:
            noise = partial(child, plan.seed, *key, place, round(1000 * epsilon))
            fit = penalised_fit(method, epsilon)
            measured = partial(judge.fit_measures, fit, noise)
            spent = CHOICE_SHARE * epsilon
            private = choose_penalty(
                penalised_fit(method, spent), judge.responses, spent, seeded_noise(noise(1)), noise(2)
            )
            left = penalised_fit(method, epsilon - spent)
            shared = penalty_on_public(fit, public, n_learners, noise(3))
            by_errors = penalty_on_public(fit, public, n_learners, noise(3), loss=_errors)
            drawn = float(noise(4).choice(PENALTIES))
            tried = [measured(candidate) for candidate in PENALTIES]
            best = {
                name: (min if name == "misclassification" else max)(one[name] for one in tried)
                for name in MEASURES
            }
            ways = {
                "fixed at 0.02": measured(PENALTY) | {"penalty": PENALTY},
                "fixed at 1": measured(1.0) | {"penalty": 1.0},
                "chosen privately": judge.fit_measures(left, noise, private) | {"penalty": private},
                "from public data": measured(shared) | {"penalty": shared},
                "public data, by errors": measured(by_errors) | {"penalty": by_errors},
                "at random": measured(drawn) | {"penalty": drawn},
                "best in hindsight": best,
            }
            found |= {
                (method, epsilon, way, name): value
                for way, values in ways.items()
                for name, value in values.items()
            }
    return found


def _errors(correct: NDArray[np.int8], difficulty: Floats, penalty: float, _: np.random.Generator) -> float:
    """The score of equation 7, for public data too."""
    return count_errors(correct, difficulty, penalty)


class _Judge:
    """A simulated class, and how its fits are measured: against the truth, and by new answers."""

    def __init__(self, plan: PenaltyPlan, n_learners: int, rng: np.random.Generator):
        self._sitting: Sitting = Exam(n_learners, plan.n_items).simulate(rng)
        self._again = self._sitting.again(rng).correct
        self.responses: Responses = self._sitting.responses

    def fit_measures(
        self, fit: Fit, noise: Callable[[int], np.random.Generator], penalty: float
    ) -> dict[str, float]:
        """The measures of a method with a penalty; all have the same noise."""
        return self.measures(fit(self.responses, penalty, noise(0)), penalty)

    def measures(self, difficulty: Floats, penalty: float) -> dict[str, float]:
        """The measures of a fit, with abilities re-estimated with its penalty."""
        ability = estimate_ability(self.responses.correct, difficulty, penalty=penalty)
        chance: Floats = np.asarray(expit(ability[:, None] - difficulty))
        return {
            "probabilities_true": correlation(chance, self._sitting.chances),
            "difficulties_true": correlation(difficulty, self._sitting.difficulty),
            "misclassification": misclassification(chance, self._again),
        }


_LOOKS = {"objective": Look(WARNING), "statistics": Look("#c9a227"), "not private": Look(INK, dashed=True)}


def draw_sweep(rows: Sequence[PenaltyRow], n_learners: int = 120) -> Figure:
    """Both correlations with the truth over the penalty: a row per measure, a panel per epsilon."""
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    parts: list[Drawing] = []
    words = f"Correlation with the truth by penalty, {n_learners} learners."
    for measure in MEASURES[:2]:
        for place, epsilon in enumerate(epsilons):
            shown = [
                row
                for row in rows
                if row.measure == measure and row.n_learners == n_learners and row.epsilon in (None, epsilon)
            ]
            points = [
                Point(
                    float(r.what), r.mean, r.low, r.high, "not private" if r.method == "joint" else r.method
                )
                for r in shown
            ]
            kind = measure.removesuffix("_true")
            drawing = curves(
                points,
                "lambda",
                [f"correlation of {kind}", "with the true ones"] if place == 0 else None,
                looks=_LOOKS,
                domain=[0.4, 1.0],
                axis=".1f",
                bands=True,
                logarithmic=True,
                ticks=[0.001, 0.01, 0.1, 1, 10],
                legend="top" if not parts else None,
            )
            parts.append(drawing.headed(f"epsilon {epsilon:g}"))
            words += f" {kind.capitalize()}, epsilon {epsilon:g}: {drawing.words}."
    return panels(parts, words, columns=len(epsilons))
