"""Events for release: coarse grid, order, what is dropped; small cases written out by hand."""

import random
import re

import numpy as np
import pytest

from understudy.core.files.simulated import mark_simulated
from understudy.errors import UsageError
from understudy.keystrokes.coarsening import EXAMPLES, parse_coarsening, rebuild_times
from understudy.keystrokes.formats.reading import read_keystrokes
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import count_latencies
from understudy.keystrokes.released_events import (
    Keys,
    ReleasedColumns,
    coarsen_events,
    key_class,
    pseudonyms,
    released_table,
)

KINDS = [one for one in EXAMPLES if not one.startswith("micro")]
MS = 1_000_000


def typed(*learners, keys=("a", "b", "c"), hold=None):
    """Keystrokes from rows (key, ms, session, follows), a list per learner."""
    rows = [row for learner in learners for row in learner]
    return Keystrokes(
        key=np.array([keys.index(row[0]) for row in rows], dtype=np.int32),
        time=np.array([row[1] for row in rows], dtype=np.int64) * MS,
        follows=np.array([row[3] for row in rows], dtype=bool),
        offsets=np.concatenate([[0], np.cumsum([len(one) for one in learners])]),
        keys=keys,
        session=np.array([row[2] for row in rows], dtype=np.int32),
        week=np.array([row[2] + 3 for row in rows], dtype=np.int32),
        hold=None if hold is None else np.array(hold, dtype=np.int64) * MS,
    )


FIRST = [
    ("a", 1_700_000_000_000, 0, False),
    ("b", 1_700_000_000_120, 0, True),
    ("a", 1_700_000_000_480, 0, True),
    ("c", 1_700_000_000_490, 0, False),  # after a paste
    ("a", 1_700_000_090_490, 0, True),  # a minute and a half of thought
    ("b", 1_700_086_400_000, 1, False),
    ("b", 1_700_086_400_301, 1, True),
]
SECOND = [("c", 5, 0, False), ("c", 6, 0, True)]


def rng():
    return np.random.default_rng(4)


def test_a_small_case_by_hand():
    coarse = rebuild_times(typed(FIRST, SECOND), parse_coarsening("bucket:300"), rng())
    # 120 → 300, 360 → 600, a paste and a long pause → 5000 → 5100; the next session starts at 0; 301 → 600.
    assert (coarse.time // MS).tolist() == [0, 300, 900, 6000, 11100, 0, 600, 0, 300]
    assert coarse.follows.tolist() == [False, True, True, False, True, False, True, False, True]
    assert coarse.session.tolist() == [0, 0, 0, 0, 0, 1, 1, 0, 0]


def test_without_sessions_times_run_on():
    keystrokes = typed(FIRST, SECOND)
    kept = ReleasedColumns(fewest=1, longest_pause=1000.0)
    coarse = coarsen_events(keystrokes, parse_coarsening("round:100"), kept, rng())
    mine = coarse.lengths.argmax()
    assert (coarse.time[coarse.offsets[mine] : coarse.offsets[mine + 1]] // MS).tolist() == [
        *(0, 100, 500, 1500, 2500),
        *(3500, 3800),  # the next session, the longest pause later
    ]
    assert set(coarse.session.tolist()) == {0}
    assert set(coarse.week.tolist()) == {-1}
    assert coarse.hold is None


def test_interleaved_sessions_are_put_one_after_the_other():
    rows = [
        ("a", 0, 0, False),
        ("b", 100, 1, False),
        ("c", 200, 0, False),
        ("a", 310, 0, True),
        ("b", 400, 1, False),
    ]
    coarse = rebuild_times(typed(rows), parse_coarsening("round:10"), rng())
    assert [coarse.keys[code] for code in coarse.key] == ["a", "c", "a", "b", "b"]
    assert (coarse.time // MS).tolist() == [0, 5000, 5110, 0, 5000]
    assert coarse.follows.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("session", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_order_holds_and_every_stretch_starts_at_0(kind, session, course):
    keystrokes, _ = course
    coarse = coarsen_events(
        keystrokes, parse_coarsening(kind), ReleasedColumns(session=session, hold=True), rng()
    )
    starts = coarse.offsets[:-1]
    if session:
        starts = np.flatnonzero(
            (np.diff(coarse.learner, prepend=-1) != 0) | (np.diff(coarse.session, prepend=-1) != 0)
        )
        assert len(starts) == len(set(zip(coarse.learner.tolist(), coarse.session.tolist(), strict=True)))
    assert (coarse.time[starts] == 0).all()
    later = np.ones(coarse.n_rows, bool)
    later[starts] = False
    assert (coarse.latencies[later] >= 0).all()
    assert coarse.n_rows == keystrokes.n_rows
    assert sorted(coarse.lengths) == sorted(keystrokes.lengths)
    assert coarse.hold.min() >= 0
    # No pause tells more than that it was long: 5 s, and what a bucket or two delays add.
    assert coarse.latencies[later].max() / MS <= 5500


@pytest.mark.parametrize("kind", ["round:300", "bucket:300"])
def test_everything_falls_on_the_grid(kind, course):
    keystrokes, _ = course
    coarse = coarsen_events(
        keystrokes, parse_coarsening(kind), ReleasedColumns(session=True, hold=True), rng()
    )
    assert not np.any(coarse.time % (300 * MS))
    assert not np.any(coarse.hold % (300 * MS))
    ends = keystrokes.latencies[keystrokes.follows] / MS
    expected = parse_coarsening(kind).averages(np.minimum(ends, 5000.0)[:, None])[:, 0]
    assert sorted(coarse.latencies[coarse.follows] / MS) == sorted(expected)


def test_events_are_made_coarse_not_their_averages(course):
    """The thesis coarsens averages; an average of coarse latencies is another number, and mostly not on the grid."""
    keystrokes, _ = course
    coarsening = parse_coarsening("bucket:300")
    coarse = coarsening.events(keystrokes, rng())
    low, high = coarsening.typing_range()
    before, after = (
        count_latencies(one, one.learner, one.n_learners, shortest=least, longest=most)
        for one, least, most in ((keystrokes, 10.0, 750.0), (coarse, low, high))
    )
    averages = coarsening.averages(before.speed[:, None])[:, 0]
    assert set(averages) == {300.0}
    assert len(set(after.speed)) == 12
    assert (after.speed_count >= before.speed_count).all()  # pauses just above 750 ms share its bucket


def test_the_table_has_the_columns_that_were_asked_for_and_new_names(course):
    keystrokes, _ = course
    for text, columns in (
        ("", ["learner", "time_ms", "key"]),
        ("session", ["learner", "session", "time_ms", "key"]),
        ("hold,week,session", ["learner", "session", "week", "time_ms", "key", "hold_ms"]),
    ):
        kept = ReleasedColumns.parse(text)
        coarse = coarsen_events(keystrokes, parse_coarsening("shift:300"), kept, rng())
        table = released_table(coarse, kept)
        assert table.columns == columns
        assert table["learner"].n_unique() == 12
        assert table["learner"].str.contains(r"^simulated-[0-9a-f]{8}$").all()


@pytest.mark.parametrize(
    "kept",
    [
        ReleasedColumns.parse("", keys=Keys.all),
        ReleasedColumns.parse(""),
        ReleasedColumns.parse("week,session,hold", keys=Keys.all),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_can_be_read_and_is_the_same(kind, kept, course, tmp_path):
    keystrokes, _ = course
    coarse = coarsen_events(keystrokes, parse_coarsening(kind), kept, rng())
    path = tmp_path / "events.csv"
    released_table(coarse, kept).write_csv(path)
    mark_simulated(path)
    source = read_keystrokes(path)
    again = source.keystrokes
    low, high = parse_coarsening(kind).typing_range()
    assert again.simulated
    assert again.n_rows == coarse.n_rows, source.left_out
    one, other = (
        count_latencies(k, k.learner, k.n_learners, shortest=low, longest=high) for k in (coarse, again)
    )
    # The reader calls two of the classes as it calls these keys.
    called = [re.sub(r"\b(back)?space\b", lambda found: found[0].capitalize(), name) for name in one.features]
    place = [other.features.index(name) for name in called]
    assert (np.sort(one.count, axis=0) == np.sort(other.count[:, place], axis=0)).all()


def test_learners_come_in_another_order_each_time(course):
    keystrokes, _ = course
    orders = {
        tuple(
            coarsen_events(
                keystrokes, parse_coarsening("round:100"), ReleasedColumns(), rng(), random.Random(s)
            ).lengths
        )
        for s in range(4)
    }
    assert len(orders) == 4


def test_weeks_count_from_0_and_only_if_asked():
    coarse = coarsen_events(
        typed(FIRST), parse_coarsening("round:100"), ReleasedColumns.parse("week, session", fewest=1), rng()
    )
    assert coarse.week.tolist() == [0, 0, 0, 0, 0, 1, 1]


def test_hold_times_that_are_unknown_stay_so():
    hold = [80, -1, 90, 100, 400, 80, 80]
    keystrokes = typed(FIRST, hold=[max(one, 0) for one in hold])
    unknown = np.array([one < 0 for one in hold])
    held = np.where(unknown, -1, keystrokes.hold)
    keystrokes = Keystrokes(**{**vars(keystrokes), "hold": held})
    coarse = rebuild_times(keystrokes, parse_coarsening("bucket:100"), rng())
    assert np.where(coarse.hold < 0, -1, coarse.hold // MS).tolist() == [100, -1, 100, 200, 500, 100, 100]


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_was_held_for_hours_counts_as_held_for_750_ms(kind):
    keystrokes = typed(FIRST, hold=[80, 90, 90, 100, 7_654_321, 80, 80])
    coarse = rebuild_times(keystrokes, parse_coarsening(kind), rng())
    assert coarse.hold.max() / MS <= 750 + 500
    if kind == "bucket:300":
        assert coarse.hold.max() / MS == 900


def test_hold_times_of_rare_keys_share_their_classes():
    learners = [[("a", 0, 0, False)] for _ in range(6)]
    learners[0] += [("b", 100, 0, True)]
    learners[1] += [("c", 100, 0, True)]
    # In the order of rows: a b, a c, a, a, a, a.
    keystrokes = typed(*learners, hold=[50, 333, 60, 444, 70, 80, 90, 100])
    found = rebuild_times(keystrokes, parse_coarsening("classes:1"), rng(), fewest=5).hold // MS
    assert found.tolist() == [70, 333, 70, 333, 70, 70, 70, 70]
    alone = rebuild_times(keystrokes, parse_coarsening("classes:1"), rng(), fewest=1).hold // MS
    assert alone.tolist() == [70, 333, 70, 444, 70, 70, 70, 70]


def test_unknown_hold_times_are_in_no_class():
    keystrokes = typed(*[[("a", 0, 0, False)] for _ in range(5)], hold=[50, 60, 70, 80, 90])
    keystrokes = Keystrokes(**{**vars(keystrokes), "hold": np.array([-1, -1, -1, 80 * MS, 90 * MS])})
    found = rebuild_times(keystrokes, parse_coarsening("classes:1"), rng()).hold
    assert found.tolist() == [-1, -1, -1, 80 * MS, 80 * MS]


def test_digraphs_of_few_learners_share_their_classes():
    """How few is what the user said."""
    learners = [[("a", 0, 0, False), ("b" if i < 3 else "c", 100 + 10 * i, 0, True)] for i in range(6)]
    keystrokes = typed(*learners)
    for fewest, expected in ((3, [110, 110, 110, 140, 140, 140]), (4, [120] * 6)):
        coarse = rebuild_times(keystrokes, parse_coarsening("classes:1"), rng(), fewest=fewest)
        assert (coarse.time[1::2] // MS).tolist() == expected
        released = coarsen_events(
            keystrokes, parse_coarsening("classes:1"), ReleasedColumns(keys=Keys.all, fewest=fewest), rng()
        )
        assert sorted(released.time[1::2] // MS) == expected


def test_order_and_names_do_not_come_from_the_stream_of_draws(course):
    keystrokes, _ = course
    drawn = [
        coarsen_events(keystrokes, parse_coarsening("shift:300"), ReleasedColumns(), rng()) for _ in range(2)
    ]
    # The same draws, yet another order of learners and other names.
    assert drawn[0].lengths.tolist() != drawn[1].lengths.tolist()
    names = [set(released_table(drawn[0], ReleasedColumns())["learner"]) for _ in range(2)]
    assert not names[0] & names[1]
    stream = rng()
    coarsen_events(keystrokes, parse_coarsening("round:300"), ReleasedColumns(), stream)
    assert stream.bit_generator.state == rng().bit_generator.state


def test_hold_times_that_are_not_there():
    with pytest.raises(UsageError, match="does not have"):
        coarsen_events(typed(FIRST), parse_coarsening("round:100"), ReleasedColumns(hold=True), rng())


def test_a_key_of_few_learners_is_named_by_its_class():
    texts = "Matti Meikäläinen"
    learners = [[("a", 0, 0, False), ("ä" if i < 2 else "b", 90, 0, True)] for i in range(7)]
    learners[3].append((texts, 200, 0, True))
    keystrokes = typed(*learners, keys=("a", "b", "ä", texts))
    # Letters that are given by their class are of two learners, which would point at them.
    coarse = coarsen_events(keystrokes, parse_coarsening("round:10"), ReleasedColumns(keys=Keys.all), rng())
    assert coarse.keys == ("a", "b", "other")
    assert np.bincount(coarse.key).tolist() == [7, 5, 3]
    two = coarsen_events(
        keystrokes, parse_coarsening("round:10"), ReleasedColumns(keys=Keys.all, fewest=2), rng()
    )
    assert two.keys == ("a", "b", "other", "ä")
    only = coarsen_events(keystrokes, parse_coarsening("round:10"), ReleasedColumns(), rng())
    assert only.keys == ("letter", "other")


def test_a_class_of_one_learner_is_pooled():
    learners = [[("a", 0, 0, False), ("b", 90, 0, True)] for _ in range(7)]
    learners[2].append(("7", 200, 0, True))
    learners[5].append(("Shift", 200, 0, True))
    keystrokes = typed(*learners, keys=("a", "b", "7", "Shift"))
    for keys, expected in ((Keys.classes, ("letter", "other")), (Keys.all, ("a", "b", "other"))):
        coarse = coarsen_events(keystrokes, parse_coarsening("round:10"), ReleasedColumns(keys=keys), rng())
        assert coarse.keys == expected
        assert np.bincount(coarse.key)[-1] == 2


def test_a_class_of_all_learners_of_a_small_file_stays():
    coarse = coarsen_events(
        typed(FIRST, SECOND, keys=("a", "b", "c")), parse_coarsening("round:10"), ReleasedColumns(), rng()
    )
    assert coarse.keys == ("letter",)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *((key, "letter") for key in ("a", "Z", "ä", "KeyQ")),
        *((key, "digit") for key in ("7", "Digit3", "Numpad0")),
        *((key, "space") for key in (" ", "Enter", "\n", "Tab", "Space")),
        *((key, "symbol") for key in ("{", ";", "+", "Semicolon", "€")),
        *((key, "backspace") for key in ("Backspace", "Delete")),
        *((key, key) for key in ("letter", "digit", "space", "symbol", "backspace", "other")),
        *((key, "other") for key in ("Shift", "ArrowLeft", "", "hello", "\x01")),
    ],
)
def test_classes_of_keys(key, expected):
    assert key_class(key) == expected


def test_pseudonyms_are_fresh_and_different():
    first, second = pseudonyms(500), pseudonyms(500)
    assert len(set(first)) == 500
    assert not set(first) & set(second)


@pytest.mark.parametrize(("text", "words"), [("name", "'name'"), ("week;session", "week, session, hold")])
def test_what_cannot_be_kept(text, words):
    with pytest.raises(UsageError) as error:
        ReleasedColumns.parse(text)
    assert words in str(error.value)


def test_a_longest_pause_is_a_length():
    with pytest.raises(UsageError, match="at most"):
        ReleasedColumns(longest_pause=749)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_and_nothing(kind):
    coarse = coarsen_events(typed([], []), parse_coarsening(kind), ReleasedColumns(session=True), rng())
    assert coarse.n_rows == 0
    assert coarse.n_learners == 2
