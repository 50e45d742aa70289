"""Private difficulties, end to end: what reaches the noise on two neighbours, and what that costs.

Every draw of a fit goes through one object. Here it is replaced by one that writes down what it
was given, on a class and on its neighbours; the loss that each draw allows follows from how far
its input moved and from the scale of its noise, and all of them together must stay within the
claim. A wrong sensitivity, a limit that is not applied, a share that is not subtracted shows.
"""

import itertools
import math

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.difficulties import DifficultiesOptions as Request
from understudy.exams.difficulties import fit_difficulties, plan
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

N_ITEMS = 3
ROWS = np.array(list(itertools.product((-1, 0, 1), repeat=N_ITEMS)), dtype=np.int8)


class Transcript:
    """Noise that keeps its inputs and always draws the same, so that neighbours stay comparable."""

    secret = False

    def __init__(self):
        self._noise = seeded_noise(np.random.default_rng(1))
        self.draws = []

    def _draw(self, kind, values, scale):
        self.draws.append((kind, np.array(values, dtype=np.float64), scale))

    def discrete_gaussian(self, values, sigma):
        self._draw("gaussian", values, sigma)
        return np.asarray(values)

    def discrete_laplace(self, values, scale):
        self._draw("laplace", values, scale)
        return np.zeros_like(values)

    def cube(self, values, epsilon):
        self._draw("cube", values, epsilon)
        return np.full_like(values, 10)

    def hexagon(self, values, epsilon):
        self._draw("hexagon", values, epsilon)
        return np.full_like(values, 10)

    def gumbel_argmax(self, scores, scale):
        self._draw("choice", scores, scale)
        return 0


def transcript(matrix, request):
    responses = Responses(matrix, tuple(f"q{i}" for i in range(N_ITEMS)), declared=True)
    noise = Transcript()
    settled = plan(request, N_ITEMS, len(matrix))
    fit_difficulties(responses, settled, noise, np.random.default_rng(7))
    return settled, noise.draws


def losses(first, second):
    """(epsilon of the pure draws, squared mu of the Gaussian ones) between two transcripts."""
    pure, squared_mu = 0.0, 0.0
    assert [(kind, scale) for kind, _, scale in first] == [(kind, scale) for kind, _, scale in second]
    for (kind, one, scale), (_, other, _) in zip(first, second, strict=True):
        move = np.abs(one - other)
        if kind == "laplace":
            pure += move.sum() / scale
        elif kind == "cube":
            pure += scale * move.max()
        elif kind == "hexagon":
            gap = np.abs((one - other)[:, 0] - (one - other)[:, 1])
            pure += scale * max(move.max(), gap.max())
        elif kind == "choice":
            # Scores may move in opposite directions: twice the largest move.
            pure += 2 * move.max() / scale
        else:
            squared_mu += (move**2).sum() / scale**2
    return pure, squared_mu


REQUESTS = {
    "knorm": Request(epsilon=1.0),
    "knorm, skipped": Request(epsilon=1.0, missing="skipped"),
    "knorm, skipped, one answer": Request(epsilon=1.0, missing="skipped", at_most=1),
    "knorm, spread estimated": Request(epsilon=1.0, ability_sd="estimate"),
    "gaussian": Request("gaussian", 1.0, 1e-6),
    "gaussian, skipped": Request("gaussian", 1.0, 1e-6, missing="skipped"),
    "gaussian, two answers": Request("gaussian", 1.0, 1e-6, missing="skipped", at_most=2),
    "gaussian, spread estimated": Request("gaussian", 1.0, 1e-6, ability_sd="estimate"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_all_neighbours_stay_within_the_claim_and_the_worst_ones_reach_it(name):
    request = REQUESTS[name]
    rest = Exam(9, N_ITEMS, missing=0.3).simulate(np.random.default_rng(3)).responses.correct
    found = [transcript(np.vstack([rest, row]), request) for row in ROWS]
    settled = found[0][0]
    epsilon, rho = settled.guarantee.epsilon, settled.measurement.guarantee.rho
    worst_pure, worst_squared_mu = 0.0, 0.0
    for (_, first), (_, second) in itertools.combinations(found, 2):
        pure, squared_mu = losses(first, second)
        worst_pure, worst_squared_mu = max(worst_pure, pure), max(worst_squared_mu, squared_mu)
    if request.method == "knorm":
        assert worst_squared_mu == 0
        assert worst_pure <= epsilon * (1 + 1e-9)
        # Not more noise than needed, either: (right, wrong) of one answer moves two cells, of 2m.
        assert worst_pure > 0.9 * epsilon
    else:
        assert worst_pure <= settled.spread_epsilon * (1 + 1e-9)
        assert worst_squared_mu / 2 <= rho * (1 + 1e-9)
        assert worst_squared_mu / 2 > 0.9 * rho


def test_the_published_choice_mended_stays_within_its_share():
    """A learner in any part, replaced by any other: one candidate's totals move, or the judges' scores."""
    request = Request(epsilon=1.0, ability_sd="choose")
    sitting = Exam(60, N_ITEMS).simulate(np.random.default_rng(3))
    parts = np.array_split(np.random.default_rng(7).permutation(60), 5)
    settled, base = transcript(sitting.responses.correct, request)
    worst = 0.0
    for part in parts:
        for row in ROWS[(ROWS >= 0).all(axis=1)]:
            matrix = sitting.responses.correct.copy()
            matrix[part[0]] = row
            pure, _ = losses(base, transcript(matrix, request)[1])
            worst = max(worst, pure)
    assert worst <= settled.guarantee.epsilon * (1 + 1e-9)
    assert settled.guarantee.epsilon == 1.0
    # Somebody's totals move by all they can: the main totals and those of their part.
    assert worst == pytest.approx(1.0, abs=1e-6)


def test_a_planted_bug_is_seen(monkeypatch):
    """The same check with a limit on answers that is not applied."""
    monkeypatch.setattr(Responses, "at_most", lambda self, n_answers, rng: self)
    request = REQUESTS["knorm, skipped, one answer"]
    rest = Exam(9, N_ITEMS).simulate(np.random.default_rng(3)).responses.correct
    _, first = transcript(np.vstack([rest, [[0, 0, 0]]]).astype(np.int8), request)
    _, second = transcript(np.vstack([rest, [[1, 1, 1]]]).astype(np.int8), request)
    assert losses(first, second)[0] > 2.9


def test_pure_and_gaussian_parts_add_up_to_the_claim():
    for name in ("knorm, spread estimated", "gaussian, spread estimated"):
        settled = plan(REQUESTS[name], N_ITEMS, 10)
        assert math.isclose(
            settled.spread_epsilon + settled.measurement.guarantee.epsilon, settled.guarantee.epsilon
        )
