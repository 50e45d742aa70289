"""Latencies counted and summed against a loop over events, for every kind of feature."""

import numpy as np
import pytest

from understudy.keystrokes import latencies
from understudy.keystrokes.keystrokes import NANOSECONDS, Keystrokes
from understudy.keystrokes.latencies import Kind, count_latencies, latency_rows, shown

KEYS = ("a", " ", "Backspace", "{")


def typed(rng, n_learners=4, n_rows=300, hold=True):
    lengths = rng.multinomial(n_rows, np.full(n_learners, 1 / n_learners))
    lengths[1] = 0  # somebody who typed nothing
    n_rows = int(lengths.sum())
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = rng.choice([0, 5, 9.999999, 10, 120, 430.5, 750, 750.000001, 4000], size=n_rows)
    follows = rng.random(n_rows) < 0.9
    follows[offsets[:-1][lengths > 0]] = False
    held = rng.choice([-1, 0, 3, 90, 750, 2000], size=n_rows)
    return Keystrokes(
        rng.integers(len(KEYS), size=n_rows),
        np.cumsum((steps * NANOSECONDS).astype(np.int64)),
        follows,
        offsets,
        KEYS,
        np.zeros(n_rows, dtype=np.int32),
        rng.integers(3, size=n_rows),
        hold=np.where(held >= 0, held * NANOSECONDS, -1) if hold else None,
    )


def looped(keystrokes, owner, kind, shortest=10.0, longest=750.0):
    """Feature name to owner to list of milliseconds."""
    found = {}

    def latency(r):
        if r < 1 or not keystrokes.follows[r] or owner[r] < 0 or owner[r] != owner[r - 1]:
            return None
        passed = (int(keystrokes.time[r]) - int(keystrokes.time[r - 1])) / NANOSECONDS
        return passed if shortest <= passed <= longest else None

    for r in range(keystrokes.n_rows):
        names = [shown(KEYS[keystrokes.key[s]]) for s in range(max(0, r - 2), r + 1)]
        value = latency(r)
        if kind is Kind.hold:
            value = keystrokes.hold[r] / NANOSECONDS
            value = value if owner[r] >= 0 and 0 <= value <= longest else None
            name = f"↓ {names[-1]}"
        elif kind is Kind.key:
            name = f"→ {names[-1]}"
        elif kind is Kind.digraph:
            name = " → ".join(names[-2:])
        else:
            name = " → ".join(names)
            before = latency(r - 1)
            value = None if value is None or before is None else value + before
        if value is not None:
            found.setdefault(name, {}).setdefault(int(owner[r]), []).append(value)
    return found


@pytest.mark.parametrize("table", [latencies.LARGEST_TABLE, 3])
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("seed", range(3))
def test_totals_are_those_of_a_loop(kind, seed, table, monkeypatch):
    monkeypatch.setattr(latencies, "LARGEST_TABLE", table)
    rng = np.random.default_rng(seed)
    keystrokes = typed(rng)
    # Owners change in the middle of a learner's typing, and some rows belong to nobody.
    owner = np.where(rng.random(keystrokes.n_rows) < 0.1, -1, keystrokes.learner)
    owner[keystrokes.n_rows // 2 :: 40] = 3
    totals = count_latencies(keystrokes, owner, 5, (kind,))
    expected = looped(keystrokes, owner, kind)
    seen = {name for name, column in zip(totals.features, totals.count.T, strict=True) if column.any()}
    assert seen == set(expected)
    assert len(expected) > 1
    for j, name in enumerate(totals.features):
        for i in range(5):
            values = expected.get(name, {}).get(i, [])
            assert totals.count[i, j] == len(values)
            assert totals.total[i, j] == pytest.approx(sum(values))
    digraphs = looped(keystrokes, owner, Kind.digraph)
    for i in range(5):
        every = [value for by_owner in digraphs.values() for value in by_owner.get(i, [])]
        assert totals.speed_count[i] == len(every)
        assert np.isnan(totals.speed[i]) if not every else totals.speed[i] == pytest.approx(np.mean(every))


def test_kinds_stand_beside_each_other():
    keystrokes = typed(np.random.default_rng(0))
    together = count_latencies(keystrokes, keystrokes.learner, 4, tuple(Kind))
    alone = [count_latencies(keystrokes, keystrokes.learner, 4, (kind,)) for kind in Kind]
    assert together.features == sum((one.features for one in alone), ())
    np.testing.assert_array_equal(together.count, np.hstack([one.count for one in alone]))
    np.testing.assert_array_equal(together.total, np.hstack([one.total for one in alone]))


def test_bounds_are_included_and_can_be_moved():
    keystrokes = typed(np.random.default_rng(0))
    for shortest, longest in [(0.0, 1e9), (10.0, 10.0), (200.0, 500.0)]:
        totals = count_latencies(keystrokes, keystrokes.learner, 4, shortest=shortest, longest=longest)
        expected = looped(keystrokes, keystrokes.learner, Kind.digraph, shortest, longest)
        assert totals.count.sum() == sum(len(v) for one in expected.values() for v in one.values())


def test_totals_of_parts_add_up():
    keystrokes = typed(np.random.default_rng(0))
    learner = keystrokes.learner
    whole = count_latencies(keystrokes, learner, 4, (Kind.key,))
    halves = [
        count_latencies(keystrokes, np.where(learner % 2 == half, learner, -1), 4, (Kind.key,))
        for half in (0, 1)
    ]
    np.testing.assert_array_equal(whole.count, halves[0].count + halves[1].count)


def test_without_hold_times_there_are_none():
    keystrokes = typed(np.random.default_rng(0), hold=False)
    assert count_latencies(keystrokes, keystrokes.learner, 4, (Kind.hold,)).count.sum() == 0


def test_nothing_typed_gives_empty_totals():
    some = typed(np.random.default_rng(0))
    keystrokes = some.rows(np.zeros(some.n_rows, dtype=bool))
    totals = count_latencies(keystrokes, keystrokes.learner, 4)
    assert totals.features == ()
    assert np.isnan(totals.speed).all()


def test_rows_are_what_the_totals_add_up():
    keystrokes = typed(np.random.default_rng(1))
    for kind in Kind:
        code, value, labels = latency_rows(keystrokes, keystrokes.learner, kind)
        totals = count_latencies(keystrokes, keystrokes.learner, 4, (kind,))
        assert tuple(labels) == totals.features
        np.testing.assert_array_equal(
            np.bincount(code[code >= 0], minlength=len(labels)), totals.count.sum(axis=0)
        )
        assert value[code >= 0].sum() == pytest.approx(totals.total.sum())


def test_features_and_owners_can_be_chosen():
    keystrokes = typed(np.random.default_rng(0))
    totals = count_latencies(keystrokes, keystrokes.learner, 4)
    part = totals.of(np.array([2, 0])).owners(np.array([3, 0]))
    assert part.features == (totals.features[2], totals.features[0])
    np.testing.assert_array_equal(part.count, totals.count[[3, 0]][:, [2, 0]])
    np.testing.assert_array_equal(part.speed, totals.speed[[3, 0]])
