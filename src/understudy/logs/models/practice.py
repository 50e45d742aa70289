"""Success that grows with practice: log-odds = ability + easiness of the action + what earlier attempts at it add.

What they add is linear in features of the earlier attempts: none (`rasch`); the class of their number (`attempts`);
this and logarithms of one plus successes and of one plus failures, the performance factors of Pavlik, Cen and
Koedinger 2009 (`pfa`); or this and logarithms of one plus successes and of one plus attempts within the last hour, day,
week, month, and ever, so that practice is forgotten (`das3h`, Choffin et al. 2019). The class is kept in these, because
a first attempt teaches more, whatever its outcome, than logarithms allow. An action's easiness and weights are
normal around those of all actions.

Abilities are integrated out: they are normal around a mean by the octave of a learner's length, since able learners
stay longer. Estimated for each learner like the rest, abilities would soak up the very outcomes that the weights are to
explain, and the learning curve would come out too flat (incidental parameters).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Classes of earlier attempts begin at these numbers.
CLASSES = np.array([1, 2, 3, 4, 6])
HOUR = 3600.0
EVER = np.array([np.inf])
WINDOWS = np.array([HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR, np.inf])
# Penalties on what an action's easiness and weights depart by from those of all actions: a standard deviation of 1, as
# in the Rasch model, and of a third.
EASINESS_PENALTY, WEIGHT_PENALTY = 1.0, 10.0
# Penalties on what all actions have in common: the base rate is free, weights have a standard deviation of 1.
BASE_PENALTY, COMMON_PENALTY = 1e-6, 1.0
# Abilities differ by this at least, or nothing would be left to integrate.
LEAST_SPREAD = 0.05
# A step longer than this leaves the region in which the quadratic model can be trusted.
LONGEST_STEP = 2.0
# Nodes at which each learner's ability is integrated (Gauss and Hermite, around its most likely value).
N_NODES = 7


@dataclass(frozen=True)
class Features:
    """What of the earlier attempts at an action counts.

    `classes` has a column per class of their number; each of `windows` (seconds) a column for successes, and one for
    failures or for all attempts.
    """

    classes: Ints
    windows: Floats
    failures: bool = True

    @property
    def timed(self) -> bool:
        """Whether times are needed."""
        return bool(np.isfinite(self.windows).any())

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.classes) + 2 * len(self.windows)

    def of(self, log: Interactions) -> Floats:
        """A row of features for each row of a log."""
        seconds = seconds_of(log) if self.timed else np.zeros(1)
        columns = (self.classes, self.windows, self.failures)
        return _features(log.offsets, log.action, log.outcome, log.n_actions, seconds, *columns)  # type: ignore[no-any-return]


NO_FEATURES = Features(np.empty(0, dtype=np.int64), np.empty(0))
FEATURES = {
    "rasch": NO_FEATURES,
    "attempts": Features(CLASSES, NO_FEATURES.windows),
    "pfa": Features(CLASSES, EVER),
    "das3h": Features(CLASSES, WINDOWS, failures=False),
}


def seconds_of(log: Interactions) -> Floats:
    """Times of the rows in seconds."""
    assert log.time is not None
    return (log.time - log.time[0]) / np.timedelta64(1, "s") if log.n_rows else np.empty(0)


@dataclass(frozen=True)
class Practice:
    """A fitted model: log-odds are ability + easiness[action] + weights[action] @ features.

    Abilities are normal around a mean that depends on the octave of the learner's length (1, 2 to 3, 4 to 7, ...).
    """

    easiness: Floats
    weights: Floats
    ability_mean: Floats
    ability_spread: float
    log_likelihood: float

    def draw_abilities(self, lengths: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        """Abilities of learners with these lengths."""
        octave = np.minimum(octave_of(lengths), len(self.ability_mean) - 1)
        return rng.normal(self.ability_mean[octave], self.ability_spread)


def octave_of(lengths: NDArray[np.integer]) -> Ints:
    """The octave of each length; nothing has the first."""
    octave: Ints = np.frexp(np.maximum(lengths, 1))[1].astype(np.int64) - 1
    return octave


def fit_practice(
    log: Interactions, features: Features, *, n_rounds: int = 200, tolerance: float = 1e-3
) -> Practice:
    """Maximise the penalised marginal likelihood: abilities by quadrature, then a Newton step for actions (EM).

    Ends when no parameter moves by more than `tolerance`.
    """
    design = np.column_stack([np.ones(log.n_rows), features.of(log)])
    n_columns = design.shape[1]
    penalty = np.diag([EASINESS_PENALTY] + [WEIGHT_PENALTY] * features.n_columns)
    common_penalty = np.array([BASE_PENALTY] + [COMMON_PENALTY] * features.n_columns)
    common, own = np.zeros(n_columns), np.zeros((log.n_actions, n_columns))
    octave = octave_of(log.lengths)
    n_in = np.bincount(octave)
    mean, spread = np.zeros(len(n_in)), 1.0
    mode = np.zeros(log.n_learners)
    node, weight = np.polynomial.hermite.hermgauss(N_NODES)
    likelihood = 0.0
    for _ in range(n_rounds):
        eta = np.einsum("rc,rc->r", design, (common + own)[log.action])
        chance, bend, ability, square, likelihood = _integrate(
            log.offsets, eta, log.outcome, mean[octave], spread, mode, node, np.log(weight) + node**2
        )
        # The Hessian is diagonal in the actions: they are eliminated, and the common part is solved for.
        slope, curvature = _by_action(log.action, design, log.outcome - chance, bend, log.n_actions)
        right = np.concatenate([(slope - own @ penalty)[:, :, None], curvature], axis=2)
        solved = np.linalg.solve(curvature + penalty, right)
        alone, shared = solved[:, :, 0], solved[:, :, 1:]
        corner = (curvature - curvature @ shared).sum(axis=0) + np.diag(common_penalty)
        remaining = (slope - np.einsum("aij,aj->ai", curvature, alone)).sum(axis=0) - common_penalty * common
        step = np.clip(np.linalg.solve(corner, remaining), -LONGEST_STEP, LONGEST_STEP)
        step_own = np.clip(alone - shared @ step, -LONGEST_STEP, LONGEST_STEP)
        common, own = common + step, own + step_own
        # One learner's worth of doubt about the mean of each octave; the overall mean belongs to the actions.
        before = mean, spread
        mean = np.bincount(octave, ability, len(n_in)) / (n_in + 1.0)
        departure = square - 2 * ability * mean[octave] + mean[octave] ** 2
        spread = max(float(np.sqrt(departure.mean())), LEAST_SPREAD)
        mean -= float(n_in @ mean) / log.n_learners
        moves = (step, step_own, mean - before[0], np.array(spread - before[1]))
        if max(float(np.abs(move).max(initial=0.0)) for move in moves) <= tolerance:
            break
    fitted = common + own
    return Practice(fitted[:, 0], fitted[:, 1:], mean, spread, float(likelihood))


def earlier_outcomes(log: Interactions) -> tuple[Ints, Ints]:
    """Per row: earlier successes and failures of the learner at the action."""
    return _earlier(log.offsets, log.action, log.outcome, log.n_actions)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _earlier(offsets, action, outcome, n_actions):  # type: ignore[no-untyped-def]
    successes, failures = np.zeros(len(action), dtype=np.int64), np.zeros(len(action), dtype=np.int64)
    good, bad = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions, dtype=np.int64)
    for i in range(len(offsets) - 1):
        for row in range(offsets[i], offsets[i + 1]):
            here = action[row]
            successes[row], failures[row] = good[here], bad[here]
            good[here] += outcome[row]
            bad[here] += 1 - outcome[row]
        for row in range(offsets[i], offsets[i + 1]):
            good[action[row]], bad[action[row]] = 0, 0
    return successes, failures


@njit(cache=True, nogil=True)
def fill_features(out, classes, windows, failures, good, bad, now, last, previous, seconds, outcome):  # type: ignore[no-untyped-def]
    """Features of one attempt: earlier successes and failures, rows of earlier attempts from the last one on."""
    n = len(classes)
    for k in range(n):
        out[k] = good + bad >= classes[k] and (k + 1 == n or good + bad < classes[k + 1])
    for w in range(len(windows)):
        successes, others = 0, 0
        if windows[w] == np.inf:
            successes, others = good, bad
        else:
            row = last
            while row >= 0 and now - seconds[row] <= windows[w]:
                successes += outcome[row]
                others += 1 - outcome[row]
                row = previous[row]
        out[n + 2 * w] = np.log1p(successes)
        out[n + 2 * w + 1] = np.log1p(others if failures else successes + others)


@njit(cache=True, nogil=True)
def _features(offsets, action, outcome, n_actions, seconds, classes, windows, failures):  # type: ignore[no-untyped-def]
    found = np.zeros((len(action), len(classes) + 2 * len(windows)))
    good, bad = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions, dtype=np.int64)
    last = np.full(n_actions, -1, dtype=np.int64)
    previous = np.full(len(action), -1, dtype=np.int64)
    timed = len(seconds) == len(action)
    for i in range(len(offsets) - 1):
        for row in range(offsets[i], offsets[i + 1]):
            here = action[row]
            now = seconds[row] if timed else 0.0
            fill_features(
                found[row],
                classes,
                windows,
                failures,
                good[here],
                bad[here],
                now,
                last[here],
                previous,
                seconds,
                outcome,
            )
            good[here] += outcome[row]
            bad[here] += 1 - outcome[row]
            previous[row], last[here] = last[here], row
        for row in range(offsets[i], offsets[i + 1]):
            good[action[row]], bad[action[row]], last[action[row]] = 0, 0, -1
    return found


@njit(cache=True, nogil=True)
def _integrate(offsets, eta, outcome, mean, spread, mode, node, log_weight):  # type: ignore[no-untyped-def]
    """Expected chance and curvature per row; mean and mean square of each ability; the marginal log-likelihood.

    `mode` is where each ability was most likely, and is moved to where it is now.
    """
    n_nodes = len(node)
    chance, bend = np.zeros(len(eta)), np.zeros(len(eta))
    ability, square = np.zeros(len(mean)), np.zeros(len(mean))
    place, support = np.empty(n_nodes), np.empty(n_nodes)
    precision = 1.0 / (spread * spread)
    likelihood = 0.0
    for i in range(len(mean)):
        begin, end = offsets[i], offsets[i + 1]
        curvature = precision
        for _ in range(25):
            slope, curvature = precision * (mean[i] - mode[i]), precision
            for row in range(begin, end):
                p = 1.0 / (1.0 + np.exp(-(eta[row] + mode[i])))
                slope += outcome[row] - p
                curvature += p * (1.0 - p)
            step = min(max(slope / curvature, -1.0), 1.0)
            mode[i] += step
            if abs(step) < 1e-3:
                break
        width = np.sqrt(2.0 / curvature)
        for k in range(n_nodes):
            place[k] = mode[i] + width * node[k]
            departure = place[k] - mean[i]
            support[k] = log_weight[k] - 0.5 * precision * departure * departure
            for row in range(begin, end):
                signed = eta[row] + place[k] if outcome[row] else -eta[row] - place[k]
                support[k] -= max(-signed, 0.0) + np.log1p(np.exp(-abs(signed)))
        top = support.max()
        share = np.exp(support - top)
        total = share.sum()
        likelihood += top + np.log(total * width * np.sqrt(precision / (2.0 * np.pi)))
        share /= total
        for k in range(n_nodes):
            ability[i] += share[k] * place[k]
            square[i] += share[k] * place[k] * place[k]
            for row in range(begin, end):
                p = 1.0 / (1.0 + np.exp(-(eta[row] + place[k])))
                chance[row] += share[k] * p
                bend[row] += share[k] * p * (1.0 - p)
    return chance, bend, ability, square, likelihood


@njit(cache=True, nogil=True)
def _by_action(action, design, residual, bend, n_actions):  # type: ignore[no-untyped-def]
    """Sums of residual x features, and of curvature x features x features, of each action."""
    n = design.shape[1]
    slope, curvature = np.zeros((n_actions, n)), np.zeros((n_actions, n, n))
    for row in range(len(action)):
        a = action[row]
        for j in range(n):
            x = design[row, j]
            if x == 0.0:
                continue
            slope[a, j] += residual[row] * x
            for k in range(n):
                curvature[a, j, k] += bend[row] * x * design[row, k]
    return slope, curvature
