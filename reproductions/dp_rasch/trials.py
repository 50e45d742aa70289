"""One repetition of the study: a class, every method fitted on it, and how each is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from reproductions.dp_rasch.baselines import gradients, spectral
from understudy.core.privacy.noise import seeded_noise
from understudy.exams.agreement import Agreement
from understudy.exams.difficulties import DifficultiesOptions
from understudy.exams.estimators.joint import PENALTY, PRINTED_PENALTY, estimate_ability, fit_joint
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.estimators.published import objective, statistics
from understudy.exams.mechanisms.totals import NoisyAgreement, NoisyTotals
from understudy.exams.plan import plan
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam, Sitting

Floats = NDArray[np.float64]
Measures = dict[str, float]

# How a student's ability is found from difficulties. The product's way: the posterior under
# normal abilities. The seed's way (section 3): the joint fit's own objective, with its penalty.
POSTERIOR = "posterior"
REESTIMATED = "reestimated"
WAYS = (POSTERIOR, REESTIMATED)

# The correlation with the probabilities of the joint fit, abilities and all (the seed's Figure 2, third line).
GLOBAL = "probabilities_global"
# The two methods of the seed, whose probabilities are compared with each other as well.
EACH_OTHER = ("objective", "statistics")

# Cells along each axis of the histogram of probabilities (the seed's Figure 6).
N_BINS = 20


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method gives: difficulties, and their standard errors (0 where it has none).

    `centre` and `ability_sd` say where on the scale abilities are, and how much they differ; `penalty` is that
    of re-estimated abilities.
    """

    difficulty: Floats
    standard_error: Floats
    centre: float = 0.0
    ability_sd: float = 1.0
    penalty: float = PENALTY

    @classmethod
    def exactly(cls, difficulty: Floats, penalty: float = PENALTY) -> Fitted:
        """Difficulties of a method that does not say how sure they are."""
        return cls(difficulty, np.zeros(len(difficulty)), penalty=penalty)

    @classmethod
    def adrift(cls, difficulty: Floats, penalty: float = PENALTY) -> Fitted:
        """Difficulties of a joint fit with noise, whose common place on the scale is lost.

        Only the penalty holds the scale: summing equation 6's derivatives over everything, noise b
        moves all abilities and difficulties together by sum(b) / (penalty (N + I)), many units at
        epsilon 1. Their median is the best guess of the zero that anybody has; with it,
        abilities N(0, 1) can be used with published difficulties at all.
        """
        centre = float(np.median(difficulty))
        return cls(difficulty, np.zeros(len(difficulty)), centre, penalty=penalty)


@dataclass(frozen=True)
class Method:
    """A method of the study: how it fits, the way its authors find abilities, and its fit without noise.

    A `slow` one takes many times as long as the others, so that fewer bootstrap samples are fitted with it.
    """

    name: str
    fit: Callable[[Responses, float, np.random.Generator], Fitted]
    way: str
    noiseless: str | None = None
    slow: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """The measures of one method in one repetition; epsilon is None where there is none."""

    method: str
    epsilon: float | None
    measures: Measures
    pairs: NDArray[np.int64] | None = None


def _measured(
    name: str, ability_sd: float | str = "estimate"
) -> Callable[[Responses, float, np.random.Generator], Fitted]:
    def fit(responses: Responses, epsilon: float, rng: np.random.Generator) -> Fitted:
        measurement = plan(
            DifficultiesOptions(name, epsilon=epsilon, ability_sd=ability_sd),
            responses.n_items,
            responses.n_learners,
        ).measurement
        assert measurement is not None
        return _estimated(measurement.release(responses, seeded_noise(rng)), ability_sd)

    return fit


def _estimated(totals: NoisyTotals, ability_sd: float | str) -> Fitted:
    found = estimate_difficulties(totals, ability_sd if isinstance(ability_sd, float) else None)
    return Fitted(found.difficulty, found.standard_error, ability_sd=found.ability_sd)


def _objective(
    responses: Responses, epsilon: float, rng: np.random.Generator, *, penalty: float = PENALTY
) -> Fitted:
    return Fitted.adrift(objective(responses, epsilon, rng, penalty=penalty).difficulty, penalty)


def _statistics(
    responses: Responses,
    epsilon: float,
    rng: np.random.Generator,
    *,
    penalty: float = PENALTY,
    clamp: bool = True,
) -> Fitted:
    return Fitted.adrift(
        statistics(responses, epsilon, rng, penalty=penalty, clamp=clamp).difficulty, penalty
    )


def _gradients(responses: Responses, epsilon: float, rng: np.random.Generator) -> Fitted:
    return Fitted.exactly(gradients(responses, epsilon, seeded_noise(rng)).difficulty)


def _spectral(responses: Responses, epsilon: float, rng: np.random.Generator) -> Fitted:
    return Fitted.exactly(spectral(responses, epsilon, seeded_noise(rng)).difficulty)


def _joint(responses: Responses, penalty: float = PENALTY) -> Fitted:
    """The seed's difficulties without noise (equation 6)."""
    right = responses.correct
    by_learner, by_item = (right.sum(axis=axis, dtype=np.int64) for axis in (1, 0))
    return Fitted.exactly(fit_joint(by_learner, by_item, penalty=penalty).difficulty, penalty)


def _totals(responses: Responses, ability_sd: float | str = "estimate") -> Fitted:
    """The estimator of `knorm` on exact totals."""
    totals = responses.totals()
    right, answered = totals.correct.astype(np.float64), totals.answered.astype(np.float64)
    agreement = None
    if ability_sd == "estimate":
        exact = Agreement.of(responses.correct, complete=True)
        agreement = NoisyAgreement(float(exact.whole), 0.0, exact.fewest)
    return _estimated(
        NoisyTotals(right, answered, np.zeros((2, 2)), totals.n_learners, agreement), ability_sd
    )


# Fits without noise, by name, and the way to abilities that goes with each.
NOISELESS: dict[str, tuple[Callable[[Responses], Fitted], str]] = {
    "joint": (_joint, REESTIMATED),
    "joint:printed": (partial(_joint, penalty=PRINTED_PENALTY), REESTIMATED),
    "totals": (_totals, POSTERIOR),
    "totals:ability-sd=1": (partial(_totals, ability_sd=1.0), POSTERIOR),
}

_PRINTED_OBJECTIVE = partial(_objective, penalty=PRINTED_PENALTY)
_PRINTED_STATISTICS = partial(_statistics, penalty=PRINTED_PENALTY, clamp=False)

# The published methods as their authors' program runs them, and as the paper prints them. Of the two later methods'
# papers neither says how a student finds an ability: they get the way that gives them the better probabilities.
METHODS = {
    method.name: method
    for method in (
        Method("knorm", _measured("knorm"), POSTERIOR, "totals", slow=True),
        Method("gaussian", _measured("gaussian"), POSTERIOR, "totals", slow=True),
        Method("objective", _objective, REESTIMATED, "joint"),
        Method("statistics", _statistics, REESTIMATED, "joint"),
        Method("gradients", _gradients, POSTERIOR),
        Method("spectral", _spectral, POSTERIOR),
        Method("knorm:ability-sd=1", _measured("knorm", 1.0), POSTERIOR, "totals:ability-sd=1", slow=True),
        Method("objective:printed", _PRINTED_OBJECTIVE, REESTIMATED, "joint:printed"),
        Method("statistics:printed", _PRINTED_STATISTICS, REESTIMATED, "joint:printed"),
    )
}


def way_of(method: str) -> str:
    """The way of finding abilities that goes with a method."""
    return METHODS[method].way if method in METHODS else NOISELESS[method][1]


# A student's probabilities


def chances(fitted: Fitted, correct: NDArray[np.int8], way: str) -> Floats:
    """Each student's success probabilities, from their own complete answers and the difficulties."""
    if way == POSTERIOR:
        return posterior_chances(fitted, correct)
    ability = estimate_ability(correct, fitted.difficulty, penalty=fitted.penalty)
    return np.asarray(expit(ability[:, None] - fitted.difficulty[None, :]))


def posterior_chances(fitted: Fitted, correct: NDArray[np.int8]) -> Floats:
    """The chances of `exams.posterior.abilities`, without the rest of its results.

    Item i counts with k_i = 1 / sqrt(1 + pi s_i^2 / 8) (`posterior.slope`). The likelihood of ability
    t is exp(t * sum of k_i over right answers) / product of (1 + exp(k_i (t - d_i))), up to a
    constant, so one number stands for a student's answers.
    """
    slope = 1.0 / np.sqrt(1.0 + np.pi * fitted.standard_error**2 / 8.0)
    precision = fitted.ability_sd**-2
    # No answers pull the mode further than sd^2 times the sum of the slopes; sums over a step of half the
    # narrowest posterior's standard deviation are exact to rounding.
    half = 9.0 * fitted.ability_sd + float(slope.sum()) / precision
    step = 0.5 / np.sqrt(precision + float((slope**2).sum()) / 4.0)
    difficulty = fitted.difficulty - fitted.centre
    points = np.linspace(-half, half, 1 + 2 * int(np.ceil(half / step)))
    return np.asarray(
        _posterior_chances(points, precision, difficulty, slope, (correct > 0).astype(np.float64) @ slope)
    )


@njit(cache=True, nogil=True)
def _posterior_chances(points, precision, difficulty, slope, statistic):  # type: ignore[no-untyped-def]
    n_points, n_items = len(points), len(difficulty)
    chance = np.empty((n_points, n_items))
    base = np.empty(n_points)
    for g in range(n_points):
        base[g] = -0.5 * precision * points[g] * points[g]
        for i in range(n_items):
            logit = slope[i] * (points[g] - difficulty[i])
            small = np.exp(-abs(logit))
            chance[g, i] = (1.0 if logit >= 0 else small) / (1.0 + small)
            base[g] -= np.log1p(small) + max(logit, 0.0)
    result = np.zeros((len(statistic), n_items))
    weight = np.empty(n_points)
    for n in range(len(statistic)):
        highest = -np.inf
        for g in range(n_points):
            weight[g] = base[g] + points[g] * statistic[n]
            highest = max(highest, weight[g])
        total = 0.0
        for g in range(n_points):
            if weight[g] > highest - 45.0:
                share = np.exp(weight[g] - highest)
                total += share
                for i in range(n_items):
                    result[n, i] += share * chance[g, i]
        for i in range(n_items):
            result[n, i] /= total
    return result


# Measures


def correlation(a: Floats, b: Floats) -> float:
    """Pearson's correlation over all entries; 0 where one of them is constant and tells nothing."""
    a, b = a.ravel() - a.mean(), b.ravel() - b.mean()
    # Sums and not products of matrices: these would start threads of their own in every thread.
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0


def misclassification(chance: Floats, correct: NDArray[np.int8]) -> float:
    """Share of answers that the rounded probability gets wrong."""
    return float(np.count_nonzero((chance > 0.5) != (correct > 0))) / correct.size


def joint_histogram(a: Floats, b: Floats) -> NDArray[np.int64]:
    """Counts of pairs of probabilities in square cells; rows by `a`, columns by `b`."""
    row, column = (np.minimum((values.ravel() * N_BINS).astype(np.int64), N_BINS - 1) for values in (a, b))
    counts = np.bincount(row * N_BINS + column, minlength=N_BINS * N_BINS)
    return counts.reshape(N_BINS, N_BINS)


# Repetitions


def child(seed: int, *key: int) -> np.random.Generator:
    """The generator of one part of the study: the same whatever else runs, in any order."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


# Of the first part of a repetition's key. Real data counts on from the third experiment.
SIMULATED = 2
# Where a key names a method, those without noise need no generator.
_PLACES = {name: place for place, name in enumerate(METHODS)}


def simulated_trial(
    seed: int, n_learners: int, n_items: int, repetition: int, methods: tuple[str, ...], epsilons: Floats
) -> list[Outcome]:
    """Experiments 1 and 2 on one simulated class: seed's N(0, 1) abilities, N(0, 2^2) difficulties."""
    key = (SIMULATED, n_learners, repetition)
    rng = child(seed, *key)
    sitting = Exam(n_learners=n_learners, n_items=n_items).simulate(rng)
    judge = _Judge(sitting.responses, sitting.again(rng).correct, sitting)
    right = sitting.responses.correct.sum(axis=1, dtype=np.int64)
    together = fit_joint(right, sitting.responses.totals().correct)
    both = np.asarray(expit(together.ability[:, None] - together.difficulty[None, :]))
    outcomes = [
        Outcome("global", None, judge.compared(both)),
        Outcome("re-estimated", None, judge.compared(judge.seeds) | {GLOBAL: correlation(judge.seeds, both)}),
        Outcome("true model", None, {"misclassification": misclassification(sitting.chances, judge.answers)}),
        *(judge.outcome(name, None, judge.noiseless(name)) for name in ("joint", "totals")),
    ]
    for epsilon in epsilons.tolist():
        for name in methods:
            noise = child(seed, *key, _PLACES[name], round(1000 * epsilon))
            fitted = METHODS[name].fit(sitting.responses, epsilon, noise)
            outcomes.append(judge.outcome(name, epsilon, fitted))
        outcomes += judge.each_other(epsilon)
    return outcomes


def real_trial(
    seed: int,
    experiment: int,
    responses: Responses,
    n_learners: int,
    repetition: int,
    methods: tuple[str, ...],
    epsilon: float,
) -> list[Outcome]:
    """Experiments 3 and 4: one bootstrap sample of so many students; a missing answer is wrong.

    As in the seed, misclassification is that of the answers which the fit has seen.
    """
    key = (experiment, n_learners, repetition)
    drawn = child(seed, *key).integers(responses.n_learners, size=n_learners)
    sample = responses.missing_as_wrong().select(drawn)
    judge = _Judge(sample, sample.correct)
    outcomes = [judge.outcome("joint", None, judge.noiseless("joint"))]
    for name in methods:
        noise = child(seed, *key, _PLACES[name], round(1000 * epsilon))
        fitted = METHODS[name].fit(sample, epsilon, noise)
        outcomes.append(judge.outcome(name, epsilon, fitted, pairs=True))
    return [*outcomes, *judge.each_other(epsilon)]


class _Judge:
    """Compares the probabilities of a class with those of the truth (if known) and of fits without noise.

    `answers` are those on which misclassification is counted; `seeds` are the probabilities of
    the seed's fit without privacy.
    """

    def __init__(self, responses: Responses, answers: NDArray[np.int8], sitting: Sitting | None = None):
        self.responses, self.answers, self.sitting = responses, answers, sitting
        self._fits: dict[str, Fitted] = {}
        self._chances: dict[tuple[str, str], Floats] = {}
        self._published: dict[tuple[str, float | None], Floats] = {}
        self.truth = None if sitting is None else sitting.chances
        self.seeds = self._without_noise("joint", REESTIMATED)

    def noiseless(self, name: str) -> Fitted:
        """A fit without noise, made once."""
        if name not in self._fits:
            self._fits[name] = NOISELESS[name][0](self.responses)
        return self._fits[name]

    def outcome(self, name: str, epsilon: float | None, fitted: Fitted, *, pairs: bool = False) -> Outcome:
        """All measures of a fit, with the abilities found in each way; on real classes in the method's own.

        The method's own way has the plain name, the other one says which it is.
        """
        measures: Measures = {}
        if self.sitting is not None:
            measures["difficulties_true"] = correlation(fitted.difficulty, self.sitting.difficulty)
        histogram = None
        for way in WAYS if self.sitting is not None else (way_of(name),):
            chance = chances(fitted, self.responses.correct, way)
            found = self.compared(chance) | {"probabilities_nonprivate": correlation(chance, self.seeds)}
            counterpart = METHODS[name].noiseless if name in METHODS else None
            if counterpart is not None:
                exact = self._without_noise(counterpart, way)
                found["probabilities_noiseless"] = correlation(chance, exact)
                if pairs and way == way_of(name):
                    histogram = joint_histogram(chance, exact)
            own = way == way_of(name)
            if own and name in EACH_OTHER:
                self._published[name, epsilon] = chance
            measures |= {measure if own else f"{measure}_{way}": value for measure, value in found.items()}
        return Outcome(name, epsilon, measures, histogram)

    def each_other(self, epsilon: float) -> list[Outcome]:
        """The published methods against each other, if both were tried (the seed's Figure 5)."""
        first, second = (self._published.get((name, epsilon)) for name in EACH_OTHER)
        if first is None or second is None:
            return []
        return [Outcome(" with ".join(EACH_OTHER), epsilon, {"probabilities": correlation(first, second)})]

    def compared(self, chance: Floats) -> Measures:
        """Against the truth, and against answers."""
        found = {"misclassification": misclassification(chance, self.answers)}
        if self.truth is not None:
            found["probabilities_true"] = correlation(chance, self.truth)
        return found

    def _without_noise(self, name: str, way: str) -> Floats:
        if (name, way) not in self._chances:
            self._chances[name, way] = chances(self.noiseless(name), self.responses.correct, way)
        return self._chances[name, way]
