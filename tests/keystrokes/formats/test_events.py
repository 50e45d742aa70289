"""Event tables: presses, releases, hold times, repeats, clocks that step back, sessions and weeks."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from tests.keystrokes.support.files import START, csv, presses
from understudy.errors import DataError, UnderstudyError, UsageError
from understudy.keystrokes.formats.reading import read_courses, read_keystrokes

MINUTE = 60_000


def events(*rows: tuple[object, ...], header: str = "learner,time,key") -> str:
    return csv(header, *(",".join(map(str, row)) for row in rows))


def test_presses_alone(write):
    path = write(
        "events.csv.gz",
        events(
            ("ana", START, "i"), ("ben", START + 5, "x"), ("ana", START + 120, "f"), ("ana", START + 300, " ")
        ),
    )
    source = read_keystrokes(path)
    assert presses(source) == [[("i", 0, False), ("f", 120, True), (" ", 300, True)], [("x", 5, False)]]
    assert source.format == "events"
    assert source.labels is None
    assert source.left_out == {}
    assert source.resolution_ms == 1
    assert source.keystrokes.hold is None
    assert "Times were read as milliseconds since 1970 (from their size)." in source.notes
    assert "ana" not in repr(source) + str(source.notes)


def test_releases_give_hold_times_by_the_place_on_the_keyboard(write):
    header = "user,session,type,key,code,time_ms"
    rows = [
        ("7", 0, "KeyDown", "Shift", "ShiftLeft", START),
        ("7", 0, "KeyDown", "B", "KeyB", START + 100),
        ("7", 0, "KeyUp", "Shift", "ShiftLeft", START + 150),
        ("7", 0, "KeyUp", "b", "KeyB", START + 180),  # Shift was let go first
        ("7", 0, "KeyDown", "a", "KeyA", START + 250),
        ("7", 0, "KeyUp", "z", "KeyZ", START + 260),
    ]
    source = read_keystrokes(write("e.csv", events(*rows, header=header)))
    assert presses(source) == [[("Shift", 0, False), ("B", 100, True), ("a", 250, True)]]
    assert source.keystrokes.hold is not None
    assert source.keystrokes.hold.tolist() == [150_000_000, 80_000_000, -1]
    assert source.left_out == {"released without having been pressed": 1}


def test_a_held_key_repeats_and_a_lost_release_does_not(write):
    header = "learner,type,key,time"
    rows = [
        ("a", "keydown", "Backspace", START),
        ("a", "keydown", "Backspace", START + 500),
        ("a", "keydown", "Backspace", START + 530),
        ("a", "keyup", "Backspace", START + 560),
        ("a", "keydown", "x", START + 700),
        ("a", "keydown", "y", START + 800),  # the release of x is lost
        ("a", "keydown", "x", START + 900),
        ("a", "keyup", "x", START + 950),
        ("a", "mousedown", "", START + 960),
    ]
    source = read_keystrokes(write("e.csv", events(*rows, header=header)))
    assert presses(source) == [
        [("Backspace", 0, False), ("x", 700, False), ("y", 800, True), ("x", 900, True)]
    ]
    assert source.keystrokes.hold is not None
    assert source.keystrokes.hold.tolist() == [560_000_000, -1, -1, 50_000_000]
    assert source.left_out == {
        "repeated by the keyboard while held down": 2,
        "another kind of event": 1,
    }


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("hold_ms", (80, "", 95), [80_000_000, -1, 95_000_000]),
        ("hold", (0.08, 0.1, -1), [80_000_000, 100_000_000, -1]),
        ("release_time", (START + 70, "", START + 90), [70_000_000, -1, -1]),
    ],
)
def test_hold_times_in_a_column(write, column, values, expected):
    rows = [
        ("a", START + 100 * n, key, value) for n, (key, value) in enumerate(zip("abc", values, strict=True))
    ]
    source = read_keystrokes(write("e.csv", events(*rows, header=f"learner,time,key,{column}")))
    assert source.keystrokes.hold is not None
    assert source.keystrokes.hold.tolist() == expected


def test_missing_keys_and_completions_break_the_chain(write):
    rows = [("a", START, "i"), ("a", START + 90, ""), ("a", START + 180, "f"), ("a", START + 200, "System")]
    rows += [("a", START + 300, "("), ("a", START + 350, "Unidentified"), ("a", START + 400, "ArrowLeft")]
    source = read_keystrokes(write("e.csv", events(*rows)))
    assert presses(source) == [
        [("i", 0, False), ("f", 180, False), ("(", 300, False), ("ArrowLeft", 400, False)]
    ]
    assert source.left_out == {
        "no key": 2,
        "several characters at once (paste, completion or replacement)": 1,
    }


def test_rows_without_a_learner_or_a_time(write):
    rows = [
        ("a", START, "i"),
        ("", START + 10, "x"),
        ("a", "", "f"),
        ("a", START + 100, "g"),
        ("a", START + 200, "h"),
    ]
    source = read_keystrokes(write("e.csv", events(*rows)))
    assert presses(source) == [[("i", 0, False), ("g", 100, False), ("h", 200, True)]]
    assert source.left_out == {"no learner": 1, "no time": 1}


def test_keys_have_one_name_each(write):
    names = ["Enter", "Return", "Space", '" "', "Tab", "Key.space", "'q'", '""""', "é", "Key.shift_r"]
    rows = [("a", START + 100 * n, name) for n, name in enumerate(names)]
    record = read_keystrokes(write("e.csv", events(*rows))).keystrokes
    assert [record.keys[code] for code in record.key] == [
        *("Enter", "Enter", " ", " ", "Tab", " ", "q", '"', "é", "shift_r"),
    ]


def test_numbers_as_keys(write):
    source = read_keystrokes(
        write("e.csv", events(("a", START, 65), ("a", START + 100, 8), ("a", START + 200, 65)))
    )
    assert source.keystrokes.keys == ("65", "8")
    assert any("given by numbers" in note for note in source.notes)


def test_exact_repeats_go_wherever_they_stand(write):
    rows = [("a", START + 100 * n, key) for n, key in enumerate("while")]
    source = read_keystrokes(write("e.csv", events(*rows, rows[-1])))
    assert source.left_out == {"exact repeat": 1}
    assert [row[2] for row in presses(source)[0]] == [False, True, True, True, True]
    again = read_keystrokes(write("e.csv", events(*rows, *rows)))
    assert again.left_out == {"exact repeat": 5}
    assert presses(again) == presses(source)


def test_on_a_clock_of_seconds_equal_rows_are_two_presses(write):
    rows = [("a", START // 1000 + n // 3, "l") for n in range(9)]
    source = read_keystrokes(write("e.csv", events(*rows)))
    assert source.keystrokes.n_rows == 9
    assert source.resolution_ms == 1000
    assert any("latencies of typing cannot be taken" in note for note in source.notes)


def test_a_clock_that_steps_back(write):
    rows = [("a", START + 100 * n, "abcdefgh"[n]) for n in range(8)]
    late = [("a", START + 350 + 100 * n, "stuvwxyz"[n]) for n in range(8)]
    source = read_keystrokes(write("e.csv", events(*rows, *late)))
    assert source.left_out == {"clock ran backwards (the key is kept, its latency is not)": 1}
    times = [row[1] for row in presses(source)[0]]
    assert times == sorted(times)
    # Where the two stretches interleave nobody follows; outside of it, all do.
    follows = {row[0]: row[2] for row in presses(source)[0]}
    assert [follows[key] for key in "abcd"] == [False, True, True, True]
    assert not any(follows[key] for key in "sefgh")
    assert [follows[key] for key in "xyz"] == [True, True, True]


def test_rows_in_another_order_are_sorted(write):
    rows = [("a", START + 100 * n, "abcdefgh"[n % 8]) for n in range(40)]
    expected = presses(read_keystrokes(write("e.csv", events(*rows))))
    source = read_keystrokes(write("e.csv", events(*rows[::-1])))
    assert presses(source) == expected
    assert "The rows were not in the order of time and were sorted." in source.notes


def test_sessions_and_weeks_from_the_times(write):
    times = (0, 29 * MINUTE, 60 * MINUTE, 7 * 24 * 60 * MINUTE)
    rows = [("a", START + time, "k") for time in times] + [("b", START + 8 * 24 * 60 * MINUTE, "k")]
    source = read_keystrokes(write("e.csv", events(*rows)))
    assert source.keystrokes.session.tolist() == [0, 0, 1, 2, 0]
    assert source.keystrokes.week.tolist() == [0, 0, 0, 1, 1]
    assert source.keystrokes.follows.tolist() == [False, True, False, False, False]
    assert sum("30 minutes" in note or "seven days" in note for note in source.notes) == 2


def test_sessions_and_weeks_from_columns(write):
    header = "learner,time,key,session,week"
    rows = [("a", START + 50, "x", "s9", 3), ("a", START, "k", "s2", 2), ("a", START + 99, "y", "s9", "")]
    source = read_keystrokes(write("e.csv", events(*rows, header=header)))
    assert source.keystrokes.session.tolist() == [0, 1, 1]
    assert source.keystrokes.week.tolist() == [0, 1, -1]
    assert source.keystrokes.follows.tolist() == [False, False, True]
    with pytest.raises(DataError, match=r"e.csv: a week is not a number \(first on line 3, week column\)"):
        read_keystrokes(write("e.csv", events(rows[0], ("a", START, "k", "s2", "Zq 7 b"), header=header)))


def test_clocks_that_begin_anew_in_every_session(write):
    header = "learner,session,time_ms,key"
    rows = [("a", s, 100 * n, key) for s in (1, 2) for n, key in enumerate("for")]
    source = read_keystrokes(write("e.csv", events(*rows, header=header)))
    assert source.keystrokes.session.tolist() == [0, 0, 0, 1, 1, 1]
    assert source.keystrokes.follows.tolist() == [False, True, True] * 2
    assert (source.keystrokes.week == -1).all()
    assert any("begins anew" in note for note in source.notes)


def test_sessions_at_the_same_time_are_not_mixed(write):
    header = "learner,session,time,key"
    rows = [("a", s, START + 100 * n + s, key) for n, key in enumerate("for") for s in (1, 2)]
    source = read_keystrokes(write("e.csv", events(*rows, header=header)))
    assert source.keystrokes.session.tolist() == [0, 1, 0, 1, 0, 1]
    assert not source.keystrokes.follows.any()


def test_parquet_and_named_columns(write):
    frame = pl.DataFrame(
        {"who": ["a", "a"], "when": [START, START + 80], "what": ["x", "y"], "secret": ["p", "q"]}
    )
    buffer = io.BytesIO()
    frame.with_columns(pl.col("when").cast(pl.Datetime("ms"))).write_parquet(buffer)
    path = write("e.parquet", buffer.getvalue())
    source = read_keystrokes(path, learner="who", time="when", key="what")
    assert presses(source) == [[("x", 0, False), ("y", 80, True)]]
    with pytest.raises(DataError, match="found no column for the learner"):
        read_keystrokes(path)
    with pytest.raises(UsageError, match="one column was named for two roles"):
        read_keystrokes(path, learner="who", time="who", key="what")


def test_columns_not_asked_for_are_never_read(write, monkeypatch):
    from understudy.core.files.delimited import DelimitedTable

    read = []
    original = DelimitedTable._parse

    def noting(self, body, positions):
        read.extend(self.names[at] for at in positions)
        return original(self, body, positions)

    monkeypatch.setattr(DelimitedTable, "_parse", noting)
    rows = [("a", START, "x", "Ana Garcia"), ("a", START + 100, "y", "Ana Garcia")]
    read_keystrokes(write("e.csv", events(*rows, header="learner,time,key,fullname")))
    assert set(read) == {"learner", "time", "key"}


LABELS = "learner,experience,age\na,some,20\nb,none,30\nd,,31\n"


def test_labels(write):
    path = write("e.csv", events(*((who, START + n, "x") for n, who in enumerate("cba"))))
    source = read_keystrokes(path, labels=write("l.csv", LABELS), label="experience")
    assert source.label_names == ("none", "some")
    assert source.labels is not None
    assert source.labels.tolist() == [-1, 0, 1]
    assert "1 learner without a label." in source.notes


@pytest.mark.parametrize(
    ("labels", "label", "message"),
    [
        (LABELS, None, "l.csv: 2 columns could be the label"),
        (LABELS, "sex", "l.csv: asked for column 'sex', which is not there"),
        (LABELS, "learner", "one column was named for two roles, the label and the learner"),
        ("learner,x\nq,1\nr,2\n", None, "none of 2 labelled learners is one of 1 learners"),
        ("learner,x\na,1\na,2\n", None, r"a learner has two labels \(again on line 3, label column\)"),
        ("learner,x\na,1\nb,1\n", None, "holds 1 different values"),
        ("learner,x\n" + "".join(f"{n},{n}\n" for n in range(30)), None, "holds 30 different values"),
    ],
)
def test_labels_that_cannot_be_used(write, labels, label, message):
    path = write("e.csv", events(("a", START, "x")))
    with pytest.raises(UnderstudyError, match=message):
        read_keystrokes(path, labels=write("l.csv", labels), label=label)


def test_wrong_use(write, tmp_path):
    path = write("e.csv", events(("a", START, "x")))
    with pytest.raises(UsageError, match="no file of labels"):
        read_keystrokes(path, label="x")
    with pytest.raises(UsageError, match="there is no format"):
        read_keystrokes(path, format="word")
    with pytest.raises(UsageError, match="there is no unit"):
        read_keystrokes(path, unit="hours")
    with pytest.raises(UsageError, match=r"without a MainTable\.csv"):
        read_keystrokes(tmp_path)
    with pytest.raises(DataError, match="this is not JSON"):
        read_keystrokes(path, format="lines")
    with pytest.raises(DataError, match=r"no keystroke is left to read \(1 row: no key\)"):
        read_keystrokes(write("e.csv", events(("a", START, ""))))
    with pytest.raises(DataError, match="releases of keys, but no presses"):
        read_keystrokes(write("e.csv", events(("a", START, "x", "up"), header="learner,time,key,type")))


def test_two_courses_of_the_same_learners(write):
    first = write("1.csv", events(*((who, START + n, who) for n, who in enumerate("abca"))))
    second = write("2.csv", events(*((who, START + n, who) for n, who in enumerate("dcba"))))
    labels = write("l.csv", "learner,x\na,1\nb,2\n")
    one, other = read_courses(first, second, labels=labels)
    for source in (one, other):
        letters = [
            source.keystrokes.keys[code] for code in source.keystrokes.key[source.keystrokes.offsets[:-1]]
        ]
        assert letters == ["a", "b", "c"]
        assert source.labels is not None
        assert source.labels.tolist() == [0, 1, -1]
    assert one.left_out == {}
    assert other.left_out == {"learner not in the other course": 1}
    assert any("1 learner who typed in one" in note for note in other.notes)
    with pytest.raises(DataError, match=r"none of 3 learners of 1.csv is one of 1 learners of 3.csv"):
        read_courses(first, write("3.csv", events(("z", START, "x"))))


def test_resolution_is_that_of_latencies(write):
    steps = np.cumsum(np.random.default_rng(5).integers(1, 9, 300) * 300)
    source = read_keystrokes(write("e.csv", events(*(("a", START + 7 + step, "x") for step in steps))))
    assert source.resolution_ms == 300
    assert "The clock steps by 300 ms: latencies are multiples of that." in source.notes
