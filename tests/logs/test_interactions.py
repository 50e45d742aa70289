"""Logs: selecting, thinning and recoding against plain Python; what may not be changed or shown."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.names import natural_order
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError
from understudy.logs.description import describe
from understudy.logs.interactions import Interactions, common_vocabulary, joined

VOCABULARY = ("a", "b", "c", "d")

learner_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=6)
logs = st.lists(learner_rows, min_size=1, max_size=8)
examples = settings(max_examples=60, deadline=None, derandomize=True)


def made(learners):
    return Interactions.from_sequences(
        [[action for action, _ in rows] for rows in learners],
        [[outcome for _, outcome in rows] for rows in learners],
        actions=VOCABULARY,
    )


def full(learners):
    """The same with items, times and groups that say where each row and learner was."""
    plain = made(learners)
    return Interactions(
        plain.action,
        plain.outcome,
        plain.offsets,
        plain.actions,
        item=np.arange(plain.n_rows),
        items=tuple(str(r) for r in range(plain.n_rows)),
        time=np.arange(plain.n_rows).astype("datetime64[us]"),
        group=np.arange(plain.n_learners),
        groups=tuple(str(i) for i in range(plain.n_learners)),
    )


def rows_of(log):
    parts = list(pairwise(log.offsets))
    return [list(zip(log.action[a:b].tolist(), log.outcome[a:b].tolist(), strict=True)) for a, b in parts]


@examples
@given(logs)
def test_a_log_holds_what_it_was_made_from(learners):
    log = made(learners)
    assert rows_of(log) == learners
    assert log.learner.tolist() == [i for i, rows in enumerate(learners) for _ in rows]


@examples
@given(logs, st.data())
def test_select_takes_learners_in_the_order_given(learners, data):
    log = full(learners)
    chosen = data.draw(st.lists(st.integers(0, len(learners) - 1), min_size=1, max_size=10))
    picked = log.select(chosen)
    assert rows_of(picked) == [learners[i] for i in chosen]
    assert picked.group.tolist() == chosen
    assert picked.item.tolist() == picked.time.astype(int).tolist()
    assert picked.item.tolist() == [r for i in chosen for r in range(log.offsets[i], log.offsets[i + 1])]
    assert picked.actions == log.actions


@examples
@given(logs, st.data())
def test_select_by_flags(learners, data):
    flags = data.draw(st.lists(st.booleans(), min_size=len(learners), max_size=len(learners)))
    picked = made(learners).select(np.array(flags, dtype=bool))
    assert rows_of(picked) == [rows for rows, flag in zip(learners, flags, strict=True) if flag]


@examples
@given(logs, st.data())
def test_keep_rows_drops_learners_without_any(learners, data):
    log = full(learners)
    keep = data.draw(st.lists(st.booleans(), min_size=log.n_rows, max_size=log.n_rows))
    kept = log.keep_rows(np.array(keep, dtype=bool))
    flags = iter(keep)
    wanted = {i: [row for row in rows if next(flags)] for i, rows in enumerate(learners)}
    wanted = {i: rows for i, rows in wanted.items() if rows}
    assert rows_of(kept) == list(wanted.values())
    assert kept.group.tolist() == list(wanted)
    assert kept.item.tolist() == np.flatnonzero(keep).tolist() == kept.time.astype(int).tolist()


@examples
@given(logs, st.permutations([*VOCABULARY, "e", "f"]))
def test_recode_changes_codes_and_nothing_else(learners, names):
    log = made(learners)
    coded = log.recode(names)
    assert coded.actions == tuple(names)
    assert [names[j] for j in coded.action] == [VOCABULARY[j] for j in log.action]
    assert coded.outcome.tolist() == log.outcome.tolist()
    assert rows_of(coded.recode(VOCABULARY)) == learners


def test_recode_refuses_to_lose_an_action():
    log = Interactions.from_sequences([[0, 2]], actions=list("abc"))
    assert log.recode(["c", "a"]).action.tolist() == [1, 0]  # b does not occur
    with pytest.raises(DataError, match="vocabulary lacks"):
        log.recode(["a", "b"])


@examples
@given(logs)
def test_actions_that_always_or_never_succeed_are_known(learners):
    results = {j: {o for rows in learners for a, o in rows if a == j} for j in range(4)}
    wanted = [len(results[j]) == 1 for j in range(4)]
    assert made(learners).constant_actions().tolist() == wanted


@examples
@given(logs)
def test_to_frame_and_back(learners):
    log = made(learners)
    again = Interactions.from_frame(log.to_polars(), single_rows=True).recode(VOCABULARY)
    assert rows_of(again) == learners
    from_pandas = Interactions.from_frame(log.to_pandas(), single_rows=True).recode(VOCABULARY)
    assert rows_of(from_pandas) == learners


def test_invented_names_say_what_they_are():
    log = made([[(0, 1), (1, 0)]] * 11)
    assert log.to_polars()["learner"].unique(maintain_order=True).to_list()[:2] == [
        "learner-01",
        "learner-02",
    ]
    synthetic = replace(log, guarantee=Guarantee.none("a test"))
    assert synthetic.to_polars()["learner"].unique(maintain_order=True).to_list()[:2] == [
        "synthetic-01",
        "synthetic-02",
    ]
    simulated = Interactions(log.action, log.outcome, log.offsets, log.actions, simulated=True)
    assert simulated.to_polars()["learner"][0] == "simulated-01"
    assert not Interactions.from_frame(simulated.to_polars()).simulated
    assert full([[(0, 1), (1, 0)]]).to_polars(prefix="x-").columns == ["learner", "action", "outcome"]


def test_columns_cannot_be_changed():
    log = full([[(0, 1), (1, 0)], [(2, 1)]])
    for name in ("action", "outcome", "offsets", "item", "time", "group"):
        column = getattr(log, name)
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[-1]
        with pytest.raises(AttributeError):
            setattr(log, name, column)
        for other in (log.select([1, 0]), log.keep_rows(np.array([True, False, True]))):
            assert not getattr(other, name).flags.writeable


def test_what_is_shown_of_a_log_holds_no_value():
    frame = made([[(0, 1), (1, 0)], [(2, 1)]]).to_polars(prefix="canary-")
    log = Interactions.from_frame(frame.with_columns(action=frame["action"] + "-secret"))
    assert repr(log) == str(log) == "<Interactions: 3 rows, 2 learners, 3 actions>"
    assert "canary" not in str(vars(log))  # what learners were called is forgotten


def test_nobody_can_be_selected():
    assert made([[(0, 1)]]).select([]).n_learners == 0


def test_two_logs_are_not_compared_by_value():
    assert made([[(0, 1)]]) != made([[(0, 1)]])
    assert hash(made([[(0, 1)]])) is not None


@pytest.mark.parametrize(
    ("action", "outcome", "offsets"),
    [([0, 1], [1], [0, 2]), ([0, 1], [1, 0], [0, 1]), ([0, 1], [1, 0], [1, 2])],
)
def test_columns_of_different_length_are_refused(action, outcome, offsets):
    with pytest.raises(DataError, match=r"a log needs 2 entries|do not divide its rows"):
        Interactions(np.array(action), np.array(outcome), np.array(offsets), ("a", "b"))


@pytest.mark.parametrize("code", [-1, 2])
def test_codes_outside_the_vocabulary_are_refused(code):
    with pytest.raises(DataError, match="outside the vocabulary"):
        Interactions(np.array([0, code]), np.array([1, 0]), np.array([0, 2]), ("a", "b"))


def test_vocabularies_are_united():
    first = Interactions.from_sequences([[0, 1]], actions=["10", "2"])
    second = Interactions.from_sequences([[0]], [[1]], actions=["3"])
    a, b = common_vocabulary(first, second)
    assert a.actions == b.actions == ("2", "3", "10")
    assert (a.action.tolist(), b.action.tolist()) == ([2, 0], [1])
    assert common_vocabulary(first, first) == (first, first)
    both = joined(first, second)
    assert rows_of(both) == [[(2, 0), (0, 0)], [(1, 1)]]


def test_natural_order():
    assert natural_order({"10", "9", "-1"}) == ("-1", "9", "10")
    assert natural_order(["b", "a", "10"]) == ("10", "a", "b")
    assert natural_order([]) == ()


@examples
@given(logs)
def test_a_description_is_what_table_2_says(learners):
    found = describe(made(learners))
    counts = [[sum(a == j for a, _ in rows) for j in {a for a, _ in rows}] for rows in learners]
    assert found.repeats_median == np.median([np.median(c) for c in counts])
    assert found.repeats_max == max(map(max, counts))
    lengths = [len(rows) for rows in learners]
    assert (found.length_min, found.length_median, found.length_max) == (
        min(lengths),
        np.median(lengths),
        max(lengths),
    )
    outcomes = {j: [o for rows in learners for a, o in rows if a == j] for j in range(4)}
    assert found.n_actions == sum(bool(o) for o in outcomes.values())
    assert found.n_always_right == sum(bool(o) and all(o) for o in outcomes.values())
    assert found.n_always_wrong == sum(bool(o) and not any(o) for o in outcomes.values())
    assert found.success_rate == pytest.approx(np.mean([o for rows in learners for _, o in rows]))


def test_a_notebook_shows_no_rows_of_real_learners():
    log = made([[(0, 1), (1, 0)], [(2, 1)]])
    assert "<td>" not in log._repr_html_()
    assert "<td>" in replace(log, simulated=True)._repr_html_()
    assert "<td>" not in replace(log, guarantee=Guarantee.none("real rows are released"))._repr_html_()
    assert "not charged to a ledger" in replace(log, guarantee=Guarantee(1.0))._repr_html_()
