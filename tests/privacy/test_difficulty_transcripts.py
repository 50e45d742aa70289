"""Private difficulties, end to end: what reaches the noise on two neighbours, and what that costs.

See `support/transcripts.py`. A wrong sensitivity, a limit that is not applied, a share that is not subtracted, a
number that goes past the noise shows.
"""

import itertools

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.exams.difficulties import DifficultiesOptions as Request
from understudy.exams.difficulties import fit_difficulties
from understudy.exams.plan import plan
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

N_ITEMS = 3
ROWS = np.array(list(itertools.product((-1, 0, 1), repeat=N_ITEMS)), dtype=np.int8)


def drawn(matrices, request):
    """The plan, and the draws on each matrix of answers; what is written is the same for all of them."""
    n_learners, n_items = matrices[0].shape
    settled = plan(request, n_items, n_learners)

    def release(matrix, noise):
        responses = Responses(matrix, tuple(f"q{i}" for i in range(n_items)), declared=True)
        return fit_difficulties(responses, settled, noise, np.random.default_rng(7)).content()

    return settled, transcripts(release, matrices)


REQUESTS = {
    "knorm": Request(epsilon=1.0),
    "knorm, skipped": Request(epsilon=1.0, missing="skipped"),
    "knorm, skipped, one answer": Request(epsilon=1.0, missing="skipped", at_most=1),
    "knorm, spread declared": Request(epsilon=1.0, ability_sd=1.0),
    "gaussian": Request("gaussian", 1.0, 1e-6),
    "gaussian, skipped": Request("gaussian", 1.0, 1e-6, missing="skipped"),
    "gaussian, two answers": Request("gaussian", 1.0, 1e-6, missing="skipped", at_most=2),
    "gaussian, spread declared": Request("gaussian", 1.0, 1e-6, ability_sd=1.0),
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
        assert pure == 0
        assert rho <= settled.measurement.guarantee.rho * (1 + 1e-9)
        # Who changes all answers agrees as before, so that one of the four cells stays.
        cells = N_ITEMS + settled.measurement.agreement_cells
        assert rho > 0.95 * N_ITEMS / cells * settled.measurement.guarantee.rho


def skipping(n_items, **answers):
    """A learner's row: `q3=1` is the third item, right; the others are skipped."""
    row = np.full(n_items, -1, dtype=np.int8)
    for name, answer in answers.items():
        row[int(name[1:]) - 1] = answer
    return row


@pytest.mark.parametrize("method", ["knorm", "gaussian"])
def test_agreement_counts_with_the_answers_that_are_allowed(method):
    """Four answers and their agreement move ten cells by one: two learners without an item in common reach it."""
    request = Request(method, 1.0, 1e-6 if method == "gaussian" else None, missing="skipped", at_most=4)
    rows = skipping(40, q1=1, q2=1, q3=1, q4=1), skipping(40, q5=1, q6=1, q7=0, q8=0)
    rest = np.full((9, 40), -1, dtype=np.int8)
    settled, (first, second) = drawn([np.vstack([rest, row]) for row in rows], request)
    assert settled.measurement.agreement_cells == 1
    assert "right, wrong" in settled.measurement.name
    spent = total(costs(first, second))
    if method == "knorm":
        assert spent.epsilon == pytest.approx(1.0, rel=1e-9)
    else:
        assert spent.rho == pytest.approx(settled.measurement.guarantee.rho, rel=1e-9)


@pytest.mark.parametrize("method", ["knorm", "gaussian"])
def test_agreement_that_crosses_a_whole_number_counts_with_all_items(method):
    """Two cells for agreement among 40 items: a learner who changes 39 answers moves 41 cells by one."""
    request = Request(method, 1.0, 1e-6 if method == "gaussian" else None)
    one, other = np.ones(40, dtype=np.int8), skipping(40, q1=1)
    other[other < 0] = 0
    # Learners whose agreement adds up to somewhere below a whole number that the replaced one takes it across.
    mixed = (np.arange(40) < 21).astype(np.int8)
    spent = []
    for n_mixed in range(0, 60, 4):
        rest = np.vstack([np.tile(mixed, (n_mixed, 1)), np.ones((60 - n_mixed, 40), dtype=np.int8)])
        settled, (first, second) = drawn([np.vstack([rest, row]) for row in (one, other)], request)
        spent.append(total(costs(first, second)))
    assert settled.measurement.agreement_cells == 2
    if method == "knorm":
        assert max(cost.epsilon for cost in spent) == pytest.approx(1.0, rel=1e-9)
    else:
        worst = max(cost.rho for cost in spent)
        assert worst == pytest.approx(41 / 42 * settled.measurement.guarantee.rho, rel=1e-9)


def test_whether_all_answered_is_not_decided_by_the_answers():
    """One skipped answer in a class without any other changes nothing but the totals by one learner."""
    rest = (np.arange(54).reshape(9, 6) % 2).astype(np.int8)
    rows = np.ones(6, dtype=np.int8), np.array([1, 1, 1, 1, 1, -1], dtype=np.int8)
    _, (first, second) = drawn(
        [np.vstack([rest, row]) for row in rows], Request(epsilon=1.0, missing="skipped")
    )
    assert total(costs(first, second)).epsilon <= 1.0 + 1e-9


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
