"""The density of what objective perturbation releases, and how far one learner moves it.

Seed dp-rasch, Algorithm 1, minimises over abilities and difficulties

    sum of log(1 + exp(ability_n - difficulty_i)) + difficulty . (s + b) - ability . r
        + penalty/2 (|ability|^2 + |difficulty|^2),

r and s the right answers by learner and by item, b noise with density proportional to
exp(-epsilon |b| / sqrt(I)), and releases the difficulties. Given difficulties d, each learner's
ability solves sum_i sigma(ability_n - d_i) + penalty ability_n = r_n, and

    b_i(d) = sum_n sigma(ability_n(d) - d_i) - s_i - penalty d_i

is the one b that leads to d. Its Jacobian, with w_ni = sigma'(ability_n - d_i) and the abilities
moving along, is minus the positive definite matrix

    H = sum_n [diag(w_n) - w_n w_n' / (penalty + sum_i w_ni)] + penalty * identity,

so the density of d is h(b(d)) det H(d). The published proof (Theorem 1) takes the abilities as
given, so that neither det H nor the abilities depend on the replaced learner's answers. They do:
a learner whose ability is far from all difficulties has w near 0, another one's w reaches 1/4,
and then the determinants alone differ by up to about (1 + 1 / (4 penalty))^(I-1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, gammaln

from understudy.exams.estimators.joint import fit_joint

Floats = npt.NDArray[np.float64]

# Centres of the difficulties from which a search starts, in units of 1 / penalty: there the
# penalty's pull on an ability is some of the right answers' own.
_CENTRES = np.array([-5.0, -1.5, -0.5, -0.1, 0.0, 0.1, 0.5, 1.5, 5.0])
_SPREADS = np.array([0.01, 0.3, 2.0])
_STEP = 1e-5


@dataclass(frozen=True)
class ObjectiveLoss:
    """Two neighbouring data sets and a release that tells them apart.

    `loss` is the log-density of `difficulty` under `responses` minus that under `neighbour`,
    which differs in the last learner. The norms are those of the two noise vectors b that lead to
    this release; the noise has mean norm I sqrt(I) / epsilon, so small ones are usual draws.
    """

    loss: float
    difficulty: Floats
    responses: Floats
    neighbour: Floats
    noise_norm: float
    neighbour_noise_norm: float


@dataclass(frozen=True)
class ObjectiveDraws:
    """Releases of one data set compared with its neighbour, over draws of the noise.

    `share` of them have a loss above the claimed epsilon; the mechanism is (epsilon, delta)-DP
    for no delta below `delta`, the mean of 1 - e^(epsilon - loss) where that is positive (up to
    the draws' own chance). `largest` is the largest loss among them.
    """

    share: float
    delta: float
    largest: float
    n_draws: int


def abilities(difficulty: Floats, scores: Floats, penalty: float) -> Floats:
    """The optimal ability of each score given each row of difficulties: shape (rows, scores).

    The left side grows with slope `penalty` or more, and all sigmas together lie between 0 and I:
    Newton's method in that bracket, with a bisection wherever it does not halve its step. (Between
    difficulties that are far apart it would jump back and forth for ever.)
    """
    n_items = difficulty.shape[1]
    score = np.broadcast_to(scores, (len(difficulty), len(scores)))
    low, high = (score - n_items) / penalty, score / penalty
    ability: Floats = np.clip(difficulty.mean(axis=1, keepdims=True), low, high)
    last = np.full_like(ability, np.inf)
    for _ in range(200):
        chance = expit(ability[:, :, None] - difficulty[:, None, :])
        excess = chance.sum(axis=2) + penalty * ability - score
        low, high = np.where(excess < 0, ability, low), np.where(excess > 0, ability, high)
        newton = -excess / ((chance * (1 - chance)).sum(axis=2) + penalty)
        astray = (ability + newton < low) | (ability + newton > high) | (np.abs(newton) > last / 2)
        done = np.abs(newton) <= 1e-13 * (1 + np.abs(ability))
        if done.all():
            break
        move = np.where(astray & ~done, (low + high) / 2 - ability, newton)
        ability, last = ability + move, np.abs(move)
    return ability


def implied_noise(difficulty: Floats, responses: Floats, penalty: float) -> tuple[Floats, Floats]:
    """The noise b that leads to each row of difficulties, and minus its Jacobian H, abilities moving along."""
    ability = abilities(difficulty, responses.sum(axis=1), penalty)
    margin = ability[:, :, None] - difficulty[:, None, :]
    chance = expit(margin)
    weight = chance * expit(-margin)
    noise = chance.sum(axis=1) - responses.sum(axis=0) - penalty * difficulty
    shrunk = weight / (penalty + weight.sum(axis=2, keepdims=True))
    hessian = -np.einsum("bni,bnj->bij", weight, shrunk)
    diagonal = np.arange(difficulty.shape[1])
    hessian[:, diagonal, diagonal] += weight.sum(axis=1) + penalty
    return noise, hessian


def log_density(difficulty: Floats, responses: Floats, epsilon: float, penalty: float) -> Floats:
    """Log of the density with which Algorithm 1 releases each row of difficulties.

    The normalising constant is that of a uniform direction and a Gamma(I, sqrt(I) / epsilon) norm.
    """
    n_items = difficulty.shape[1]
    noise, hessian = implied_noise(difficulty, responses, penalty)
    rate = epsilon / math.sqrt(n_items)
    log_sphere = math.log(2) + n_items / 2 * math.log(math.pi) - float(gammaln(n_items / 2))
    constant = n_items * math.log(rate) - float(gammaln(n_items)) - log_sphere
    logdet = np.linalg.slogdet(hessian)[1]
    return np.asarray(constant - rate * np.linalg.norm(noise, axis=1) + logdet, dtype=np.float64)


def log_ratio(
    difficulty: Floats, responses: Floats, neighbour: Floats, epsilon: float, penalty: float
) -> Floats:
    """The privacy loss of each release: the difference of its log-densities under two data sets."""
    here, there = (log_density(difficulty, data, epsilon, penalty) for data in (responses, neighbour))
    return here - there


def objective_loss(
    n_items: int,
    n_learners: int,
    epsilon: float = 1.0,
    penalty: float = 0.01,
    *,
    n_starts: int = 200,
    n_polished: int = 6,
    rng: np.random.Generator | None = None,
) -> ObjectiveLoss:
    """The largest loss found of Algorithm 1, over difficulties and data sets with one learner replaced.

    The items can be exchanged, so the replaced learner's answers before and after matter only by
    how many are right and how many of these are the same; all such pairs are tried. The other
    learners answer alike: all wrong, all right or every second item right. Each pair is screened
    on random difficulties, and the best pairs are climbed from there. So the result is a lower
    bound of the supremum, attained by the data and the release that it states.
    """
    if rng is None:
        rng = np.random.default_rng(0)  # a search, not noise: any start is as honest as another
    others = [np.zeros(n_items), np.ones(n_items), np.arange(n_items) % 2.0]
    rows = [np.tile(answers, (n_learners - 1, 1)) for answers in others[: 3 if n_learners > 1 else 1]]
    screened: list[tuple[float, Floats, Floats, Floats]] = []
    for one, other in _answer_pairs(n_items):
        for rest in rows:
            responses, neighbour = np.vstack([rest, one]), np.vstack([rest, other])
            centre = rng.choice(_CENTRES, (n_starts, 1)) / penalty
            starts = centre + rng.choice(_SPREADS, (n_starts, 1)) * rng.normal(size=(n_starts, n_items))
            losses = log_ratio(starts, responses, neighbour, epsilon, penalty)
            best = int(np.argmax(losses))
            screened.append((float(losses[best]), responses, neighbour, starts[best]))
    screened.sort(key=lambda found: -found[0])
    climbed = [
        (*_climb(start, responses, neighbour, epsilon, penalty), responses, neighbour)
        for _, responses, neighbour, start in screened[:n_polished]
    ]
    loss, difficulty, responses, neighbour = max(climbed, key=lambda found: found[0])
    norms = [
        float(np.linalg.norm(implied_noise(difficulty[None], data, penalty)[0]))
        for data in (responses, neighbour)
    ]
    return ObjectiveLoss(loss, difficulty, responses, neighbour, *norms)


def objective_draws(
    responses: Floats,
    neighbour: Floats,
    epsilon: float = 1.0,
    penalty: float = 0.01,
    *,
    n_draws: int = 2000,
    rng: np.random.Generator,
) -> ObjectiveDraws:
    """How often the loss exceeds the claim when Algorithm 1 is run on `responses`."""
    difficulty = release_difficulties(responses, epsilon, penalty, n_draws=n_draws, rng=rng)
    loss = log_ratio(difficulty, responses, neighbour, epsilon, penalty)
    delta = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - loss)))
    share = float(np.mean(loss > epsilon * (1 + 1e-9)))
    return ObjectiveDraws(share, float(delta.mean()), float(loss.max()), n_draws)


def release_difficulties(
    responses: Floats, epsilon: float, penalty: float, *, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Difficulties as Algorithm 1 releases them, one row a draw. For audits: the noise is seeded."""
    n_items = responses.shape[1]
    direction = rng.normal(size=(n_draws, n_items))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    noise = direction * rng.gamma(n_items, math.sqrt(n_items) / epsilon, (n_draws, 1))

    by_learner, by_item = responses.sum(axis=1), responses.sum(axis=0)
    return np.array([fit_joint(by_learner, by_item, penalty=penalty, tilt=b).difficulty for b in noise])


def _answer_pairs(n_items: int) -> list[tuple[Floats, Floats]]:
    """A learner's answers before and after, one pair for each (right before, right after, right in both)."""
    pairs = []
    for before in range(n_items + 1):
        for after in range(n_items + 1):
            for both in range(max(0, before + after - n_items), min(before, after) + 1):
                if before == after == both:
                    continue
                one, other = np.zeros(n_items), np.zeros(n_items)
                one[:before] = 1.0
                other[:both] = 1.0
                other[before : before + after - both] = 1.0
                pairs.append((one, other))
    return pairs


def _climb(
    start: Floats, responses: Floats, neighbour: Floats, epsilon: float, penalty: float
) -> tuple[float, Floats]:
    """A local maximum of the loss near `start`, and the loss there."""
    moves = _STEP * np.vstack([np.zeros(len(start)), np.eye(len(start)), -np.eye(len(start))])

    def descend(difficulty: Floats) -> tuple[float, Floats]:
        losses = log_ratio(difficulty + moves, responses, neighbour, epsilon, penalty)
        forward, backward = losses[1 : len(start) + 1], losses[len(start) + 1 :]
        return -float(losses[0]), -(forward - backward) / (2 * _STEP)

    found = minimize(descend, start, jac=True, method="L-BFGS-B")
    best: Floats = np.asarray(found.x, dtype=np.float64)
    return float(log_ratio(best[None], responses, neighbour, epsilon, penalty)[0]), best
