"""How few points single a learner out, against sets."""

import numpy as np
import pytest

from understudy.logs.attacks import uniqueness as module
from understudy.logs.attacks.uniqueness import MOST_POINTS, uniqueness
from understudy.logs.interactions import Interactions

pytestmark = pytest.mark.oracle


def test_singled_out_means_that_nobody_else_has_the_points(make_log, monkeypatch):
    rng = np.random.default_rng(0)
    log = make_log(rng, n_learners=50, n_actions=12, mean_length=8)
    targets = np.sort(rng.choice(50, 30, replace=False))
    rows = module.drawn_rows(log, targets, rng)
    assert (log.learner[rows] == targets[:, None]).all()
    for i, own in zip(targets, rows, strict=True):
        assert len(set(own.tolist())) == min(MOST_POINTS, log.lengths[i])  # without replacement
    code = 2 * log.action.astype(np.int64) + log.outcome
    has = [set(code[log.learner == i].tolist()) for i in range(50)]
    wanted = [
        [sum(set(code[own[: k + 1]].tolist()) <= other for other in has) == 1 for k in range(MOST_POINTS)]
        for own in rows
    ]
    assert module.singled_out(log, code, targets, rows).tolist() == wanted
    monkeypatch.setattr(module, "BLOCK_BYTES", 14)
    assert module.singled_out(log, code, targets, rows).tolist() == wanted
    assert 0 < np.mean(wanted) < 1


def test_shares_of_a_log_that_can_be_counted_by_hand():
    log = Interactions.from_sequences([[0, 0], [0, 1], [0, 0, 0], [2]])
    shares = {(u.points, u.k): u.share for u in uniqueness(log, np.random.default_rng(1))}
    assert len(shares) == 2 * MOST_POINTS
    # Learner 2 (with action 1) and learner 4 are alone; the others look like each other.
    assert shares["action", 2] == shares["action", 8] == shares["action and outcome", 8] == 0.5
