"""`tracing` against a plain reading of its definition, and its strength where it is known."""

import numpy as np
import pytest

from understudy.core.attacks.estimate import auc_with_error
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.tracing import tracing_scores
from understudy.logs.interactions import Interactions

pytestmark = pytest.mark.oracle


def test_the_score_is_what_a_learner_adds_times_the_leaning():
    """Two actions, learners of equal length: no learner is cut, and everything can be done by hand."""
    rng = np.random.default_rng(0)
    log = Interactions.from_sequences([rng.permutation([0] * k + [1] * (10 - k)) for k in range(1, 10)])
    released = log.select([6, 7, 8])
    share = log.action.mean()
    own = log.action.reshape(9, 10).sum(axis=1)
    added = (own - 10 * share) / (90 * 4 / 9)
    leaning = (released.action.mean() - share) / (4 / 9 * 5 / 9 * np.sum(added**2))
    # Both actions say the same: what one gains the other loses. The longest vector of the nine is cut by a tenth.
    found = tracing_scores(Knowledge(log, 4), released)["tracing"]
    assert np.corrcoef(found, 2 * added * leaning)[0, 1] > 0.99
    assert found[8] > found[4] > found[0]


@pytest.mark.parametrize("name", ["tracing", "tracing-outcomes"])
def test_members_of_a_log_that_is_released_whole_are_traced(make_log, name):
    """Few learners and many actions; the control is a release of strangers. Standard errors are 0.05 / sqrt(8)."""
    found, control = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        log = make_log(rng, n_learners=120, n_actions=60, mean_length=40)
        member = rng.permutation(120) < 60
        knowledge = Knowledge(log, 60)
        strangers = make_log(rng, n_learners=60, n_actions=60, mean_length=40)
        found.append(auc_with_error(tracing_scores(knowledge, log.select(member))[name], member)[0])
        control.append(auc_with_error(tracing_scores(knowledge, strangers)[name], member)[0])
    assert np.mean(found) > 0.6
    assert np.mean(control) == pytest.approx(0.5, abs=4 * 0.05 / np.sqrt(8))
