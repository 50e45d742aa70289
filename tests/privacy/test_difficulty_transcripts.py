"""Private difficulties, end to end: what reaches the noise on two neighbours, and what that costs.

See `support/transcripts.py`. A wrong sensitivity, a limit that is not applied, a share that is not subtracted, a
number that goes past the noise shows.
"""

import itertools
import math

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.exams.difficulties import DifficultiesOptions as Request
from understudy.exams.difficulties import fit_difficulties, plan
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

N_ITEMS = 3
ROWS = np.array(list(itertools.product((-1, 0, 1), repeat=N_ITEMS)), dtype=np.int8)


def drawn(matrices, request):
    """The plan, and the draws on each matrix of answers; what is written is the same for all of them."""
    settled = plan(request, N_ITEMS, len(matrices[0]))

    def release(matrix, noise):
        responses = Responses(matrix, tuple(f"q{i}" for i in range(N_ITEMS)), declared=True)
        return fit_difficulties(responses, settled, noise, np.random.default_rng(7)).content()

    return settled, transcripts(release, matrices)


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
    settled, found = drawn([np.vstack([rest, row]) for row in ROWS], request)
    spent = [total(costs(one, other)) for one, other in itertools.combinations(found, 2)]
    pure, rho = max(cost.epsilon for cost in spent), max(cost.rho for cost in spent)
    if request.method == "knorm":
        assert rho == 0
        assert pure <= settled.guarantee.epsilon * (1 + 1e-9)
        # Not more noise than needed, either: (right, wrong) of one answer moves two cells, of 2m.
        assert pure > 0.95 * settled.guarantee.epsilon
    else:
        assert pure <= settled.spread_epsilon * (1 + 1e-9)
        assert rho <= settled.measurement.guarantee.rho * (1 + 1e-9)
        assert rho > 0.95 * settled.measurement.guarantee.rho


def test_the_published_choice_mended_stays_within_its_share():
    """A learner in any part, replaced by any other: one candidate's totals move, or the judges' scores."""
    request = Request(epsilon=1.0, ability_sd="choose")
    answers = Exam(60, N_ITEMS).simulate(np.random.default_rng(3)).responses.correct
    matrices = [answers]
    for part in np.array_split(np.random.default_rng(7).permutation(60), 5):
        for row in ROWS[(ROWS >= 0).all(axis=1)]:
            matrices.append(answers.copy())
            matrices[-1][part[0]] = row
    settled, (base, *others) = drawn(matrices, request)
    worst = max(total(costs(base, other)).epsilon for other in others)
    assert worst <= settled.guarantee.epsilon * (1 + 1e-9)
    assert settled.guarantee.epsilon == 1.0
    # Somebody's totals move by all they can: the main totals and those of their part.
    assert worst == pytest.approx(1.0, abs=1e-6)


def test_a_planted_bug_is_seen(monkeypatch):
    """The same check with a limit on answers that is not applied."""
    monkeypatch.setattr(Responses, "at_most", lambda self, n_answers, rng: self)
    rest = Exam(9, N_ITEMS).simulate(np.random.default_rng(3)).responses.correct
    matrices = [np.vstack([rest, [[answer] * N_ITEMS]]).astype(np.int8) for answer in (0, 1)]
    _, (first, second) = drawn(matrices, REQUESTS["knorm, skipped, one answer"])
    assert total(costs(first, second)).epsilon > 2.9


def test_pure_and_gaussian_parts_add_up_to_the_claim():
    for name in ("knorm, spread estimated", "gaussian, spread estimated"):
        settled = plan(REQUESTS[name], N_ITEMS, 10)
        assert math.isclose(
            settled.spread_epsilon + settled.measurement.guarantee.epsilon, settled.guarantee.epsilon
        )
