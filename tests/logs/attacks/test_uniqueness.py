"""How few points single a learner out, against sets."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.logs.attacks import uniqueness as module
from understudy.logs.attacks.uniqueness import MOST_POINTS, uniqueness
from understudy.logs.inspect import inspect
from understudy.logs.interactions import Interactions
from understudy.logs.large import parts
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle


def test_singled_out_means_that_nobody_else_has_the_points(make_log, monkeypatch):
    rng = np.random.default_rng(0)
    log = make_log(rng, n_learners=50, n_actions=12, mean_length=8)
    some = log.select(np.sort(rng.choice(50, 30, replace=False)))
    rows = module.drawn_rows(some, rng)
    assert (some.learner[rows] == np.arange(30)[:, None]).all()
    for length, own in zip(some.lengths, rows, strict=True):
        assert len(set(own.tolist())) == min(MOST_POINTS, length)  # without replacement
    points = some.code[rows]
    has = [set(log.code[log.learner == i].tolist()) for i in range(50)]
    wanted = [
        [sum(set(own[: k + 1].tolist()) <= other for other in has) for k in range(MOST_POINTS)]
        for own in points
    ]
    assert module.holders(log, lambda part: part.code, points).tolist() == wanted
    monkeypatch.setattr(module, "BLOCK_BYTES", 100)
    monkeypatch.setattr(parts, "PART_ROWS", 40)
    assert module.holders(log, lambda part: part.code, points).tolist() == wanted
    assert 0 < np.mean(np.array(wanted) == 1) < 1


def test_shares_of_a_log_that_can_be_counted_by_hand():
    log = Interactions.from_sequences([[0, 0], [0, 1], [0, 0, 0], [2]])
    shares = {(u.points, u.k): u.share for u in uniqueness(log, np.random.default_rng(1))}
    assert len(shares) == 2 * MOST_POINTS
    # Learner 2 (with action 1) and learner 4 are alone; the others look like each other.
    assert shares["action", 2] == shares["action", 8] == shares["action and outcome", 8] == 0.5


def test_days_hours_and_gaps_are_points_where_a_log_has_times():
    """Against sets of what a watcher would write down, with k = 8 points of learners who have no more."""
    log = Classroom(n_learners=120, n_actions=4, timed=True, longest=8).simulate(np.random.default_rng(2))
    found = {u.points: u.share for u in uniqueness(log, np.random.default_rng(1)) if u.k == MOST_POINTS}
    seconds = log.time.astype("datetime64[s]").astype(int)
    after = [
        int(seconds[r + 1] - seconds[r])
        if r + 1 < log.n_rows and log.learner[r + 1] == log.learner[r]
        else -1
        for r in range(log.n_rows)
    ]
    watched = {
        "action": log.action.tolist(),
        "action and day": list(zip(log.action.tolist(), (seconds // 86400).tolist(), strict=True)),
        "action and hour": list(zip(log.action.tolist(), (seconds // 3600).tolist(), strict=True)),
        "action and gap": list(zip(log.action.tolist(), after, strict=True)),
    }
    for points, known in watched.items():
        has = [{known[r] for r in range(a, b)} for a, b in zip(log.offsets, log.offsets[1:], strict=False)]
        alone = [sum(own <= other for other in has) == 1 for own in has]
        assert found[points] == np.mean(alone), points
    assert found["action"] < found["action and day"] <= found["action and hour"]
    # Times that only put the rows in order are looked at as well; a log without times has no such points.
    untold = uniqueness(replace(log, term=None), np.random.default_rng(1))
    assert {u.points: u.share for u in untold if u.k == MOST_POINTS} == found
    assert {u.points for u in uniqueness(replace(log, time=None, term=None), np.random.default_rng(1))} == {
        "action",
        "action and outcome",
    }


def test_an_inspection_tells_times_and_what_is_declared():
    log = Classroom(n_learners=60, n_actions=4, timed=True).simulate(np.random.default_rng(2))
    found = inspect(log)
    sessions = [
        1 + int((np.diff(log.time[a:b]) > np.timedelta64(30, "m")).sum())
        for a, b in zip(log.offsets, log.offsets[1:], strict=False)
    ]
    assert (found.times.n_sessions, found.times.sessions_max) == (sum(sessions), max(sessions))
    assert found.times.sessions_median == np.median(sessions)
    assert sum(found.times.hours) == pytest.approx(1.0)
    states = {d.what: (d.state, bool(d.missing)) for d in found.declarations}
    assert states["names of actions"] == ("not declared", True)
    assert states["times"] == ("included, from 2024-09-02 to 2024-12-08", False)
    assert states["column final_score"] == ("number, of each learner", False)
    assert "for the order of rows only" in {d.state for d in inspect(replace(log, term=None)).declarations}
    assert inspect(log.declare()).declarations[0].state == "public"
    bare = inspect(replace(log, time=None, term=None, columns=()))
    assert bare.times is None
    assert [d.what for d in bare.declarations] == ["names of actions"]
    page = found.page()
    assert "When learners work" in page
    assert "When learners work" not in bare.page()
    # The fewest points that say nearly as much as any number of them.
    assert found.worst.k < MOST_POINTS
    assert found.to_json()["times"]["n_sessions"] == sum(sessions)
