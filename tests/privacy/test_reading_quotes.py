"""A quotation mark that a learner's row leaves open, and lists of those who withdrew: other learners are read alike.

Or nothing is charged: where a learner's row decides about others, that is a guess, which no guarantee rests on.
"""

import random
from datetime import date
from itertools import cycle

import polars as pl
import pytest

from tests.privacy.support.neighbours import N_LEARNERS, check_others
from understudy.cohorts.building.activity import read_activity
from understudy.cohorts.building.join import join
from understudy.cohorts.building.scores import read_scores
from understudy.cohorts.building.sessions import Term
from understudy.cohorts.schema import Schema
from understudy.core.files.people.withdrawals import read_withdrawn
from understudy.core.files.source import refuse_guesses
from understudy.errors import UnderstudyError, UsageError
from understudy.exams.formats.reading import read_responses
from understudy.keystrokes.formats.reading import read_keystrokes
from understudy.logs.reading import read_log

TERM = Term(date(2024, 9, 2), 2)
LOG = (
    "learner,action,outcome,remark",
    lambda rng, turn: [f"a{rng.randrange(3)}", str(rng.randrange(2)), "x"],
)
ITEMS = ("learner,item,outcome,remark", lambda rng, turn: [f"q{turn}", str(rng.randrange(2)), "x"])
EVENTS = ("user,time,remark", lambda rng, turn: [f"2024-09-0{rng.randrange(2, 9)} 10:0{turn}:00", "x"])
KEYS = (
    "learner,time_ms,key,remark",
    lambda rng, turn: [str(1000 * turn + rng.randrange(90)), rng.choice("int"), "x"],
)
# The label of a learner stands in the first two of four rows.
LETTER = cycle("ab")
LABELS = ("learner,label,remark", lambda rng, turn: [next(LETTER) if turn < 2 else "", "x"])


def of_log(path, refuse):
    log = read_log(path)
    refuse(log.origin.guesses)
    return [
        tuple(log.action[start:end].tolist())
        for start, end in zip(log.offsets, log.offsets[1:], strict=False)
    ]


def of_exam(path, refuse):
    responses = read_responses(path, items=[f"q{turn}" for turn in range(4)])
    refuse(responses.origin.guesses)
    return list(map(tuple, responses.correct.tolist()))


def of_cohort(path, refuse):
    """The reader refuses by itself: a cohort does not know its log any more."""
    activity = read_activity(path, TERM)
    return [
        tuple(activity.time[activity.learner == learner].tolist()) for learner in range(activity.n_learners)
    ]


def of_typing(path, refuse):
    source = read_keystrokes(path)
    refuse(source.origin.guesses)
    keys = source.keystrokes
    return [
        tuple(keys.time[start:end].tolist())
        for start, end in zip(keys.offsets, keys.offsets[1:], strict=False)
    ]


def of_labels(path, refuse):
    """All learners type the same, each at a time of their own."""
    typing = path.with_name("typing.csv")
    typing.write_text("learner,time_ms,key\n" + "".join(f"u{n},{1000 * n},a\n" for n in range(N_LEARNERS)))
    source = read_keystrokes(typing, unit="ms", labels=path, label="label")
    refuse(source.origin.guesses)
    return list(enumerate(source.labels.tolist()))


READERS = {
    "log": (LOG, of_log),
    "exam": (ITEMS, of_exam),
    "cohort": (EVENTS, of_cohort),
    "keys": (KEYS, of_typing),
    "labels": (LABELS, of_labels),
}
# What a learner writes into the last column of one row, and of a later one.
MARKS = [
    ('"x', 'x"'),
    ('"', '"'),
    ('"x', "x"),
    ("x", 'x"'),
    ('x"', "x"),
    ('"x"', "x"),
    ('""', '""'),
    ("x", "y"),
]


def interleaved(cells):
    """Rows of all learners in turns, and neighbours in which one learner writes quotation marks as they come."""
    rng = random.Random(11)
    rows = [[f"u{n}", *cells(rng, turn)] for turn in range(4) for n in range(N_LEARNERS)]
    yield rows
    for first, second in MARKS:
        place = rng.randrange(N_LEARNERS)
        changed = [list(row) for row in rows]
        changed[place][-1], changed[place + 2 * N_LEARNERS][-1] = first, second
        yield changed


def check_quotes(path, name, refuse):
    (header, cells), read = READERS[name]
    write = lambda rows: "\n".join([header, *map(",".join, rows), ""]).encode()  # noqa: E731
    check_others(path / "file.csv", interleaved(cells), write, lambda file: read(file, refuse))


@pytest.mark.parametrize("name", READERS)
def test_an_open_quotation_mark_takes_in_no_other_learners_row(tmp_path, name):
    check_quotes(tmp_path, name, refuse_guesses)


@pytest.mark.parametrize("name", ["log", "exam", "keys", "labels"])
def test_a_reader_that_lets_cells_go_on_over_lines_is_found(tmp_path, name):
    with pytest.raises(AssertionError):
        check_quotes(tmp_path, name, lambda guesses: None)


def test_line_breaks_in_the_header_are_nobodys(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('learner,action,outcome,"a\nremark"\nu1,a,1,x\nu1,b,0,x\nu2,a,1,"x, y"\n')
    assert read_log(path).origin.guesses == ()
    path.write_text(path.read_text() + 'u2,b,1,"x\ny"\n')
    (guess,) = read_log(path).origin.guesses
    assert "several lines" in guess.what


def test_line_breaks_in_code_states_are_a_guess(tmp_path):
    header = "EventID,SubjectID,AssignmentID,ClientTimestamp,EventType,CodeStateID"
    rows = [f"{n},S1,A1,{1600000000000 + 100 * n},File.Edit,{n}" for n in range(3)]
    (tmp_path / "MainTable.csv").write_text("\n".join([header, *rows, ""]))
    for last, n_guesses in (("abc", 0), ('"ab\n"', 1)):
        (tmp_path / "CodeStates.csv").write_text(f"CodeStateID,Code\n0,a\n1,ab\n2,{last}\n")
        assert len(read_keystrokes(tmp_path, unit="ms").origin.guesses) == n_guesses


# ---- those who withdrew

NAMES = ["ana", "ben", "007", "cleo", "d", "e f"]
OTHERS = ["Ana", "BEN", "7", "ana, ben", "x; y", "ben;cleo", "z", "cleo\tz", "0", "00", "d, x", "e"]
LISTS = [
    "ana\nben\n",
    "ana, ben\n",
    "ana,moved\nben,ill\n",
    '"e f"\n7\n',
    "cleo;d\n",
    "user\nBEN\n",
    "user,why\n7,x\n",
]


def left(names, withdrawn):
    """Who is left, but for the learner in the last place, if that is settled without looking at names."""
    found = withdrawn.leave_out(pl.DataFrame({"learner": names}), "user")
    refuse_guesses(found.guesses)
    return [name for name in found.frame["learner"] if name != names[-1]]


@pytest.mark.parametrize("content", LISTS)
def test_whom_a_list_means_does_not_depend_on_other_learners_names(tmp_path, content):
    path = tmp_path / "gone.txt"
    path.write_text(content)
    withdrawn = read_withdrawn(path)
    before, n_compared = left([*NAMES, "nobody else"], withdrawn), 0
    assert len(before) < len(NAMES)
    for name in OTHERS:
        try:
            after = left([*NAMES, name], withdrawn)
        except UnderstudyError:
            continue
        n_compared += 1
        assert after == before
    assert n_compared > len(OTHERS) / 3


def test_a_list_that_is_split_by_looking_at_names_is_a_guess(tmp_path):
    path = tmp_path / "gone.txt"
    for content, names, what in (
        ("ana\nana, ben\n", ["ana, ben", "ben", "ana"], "how the list"),
        ("ana\n", ["Ana", "ana"], "whom the list"),
        ("7\n", ["007", "7"], "whom the list"),
        ('ana\n"ana, ben"\n', ["ana, ben", "ben", "ana"], ""),
        ("ANA\n", ["ana", "ben"], ""),
        ('user,why\nana,"x\ny"\n', ["ana", "ben"], "that a cell goes on"),
    ):
        path.write_text(content)
        found = read_withdrawn(path).leave_out(pl.DataFrame({"learner": [*names, "z"]}), "user")
        assert [guess.what[: len(what)] for guess in found.guesses] == ([what] if what else [])


def test_every_reader_passes_on_what_a_list_guesses(tmp_path):
    gone, log, sheet = tmp_path / "gone.txt", tmp_path / "log.csv", tmp_path / "sheet.csv"
    gone.write_text("ana\n")
    log.write_text("learner,action,outcome\nana,a,1\nAna,a,0\nAna,b,1\nben,a,1\n")
    sheet.write_text("student,Q1,Q2\nana,1,0\nAna,0,1\nben,1,1\n")
    for origin in (
        read_log(log, exclude=gone).origin,
        read_responses(log, exclude=gone, items=["a", "b"]).origin,
        read_responses(sheet, exclude=gone).origin,
    ):
        assert [guess.what for guess in origin.guesses] == ["whom the list of those who withdrew means"]
    activity = read_activity_of(
        "user,time\nana,2024-09-03 10:00\nAna,2024-09-03 10:00\n", tmp_path / "events.csv"
    )
    scores = tmp_path / "scores.csv"
    scores.write_text("user,score\nana,50\nAna,60\n")
    with pytest.raises(UsageError, match="whom the list"):
        join(
            activity,
            read_scores(scores),
            Schema(n_weeks=2, cuts=(1.0, 2.0)),
            TERM,
            withdrawn=read_withdrawn(gone),
        )


def read_activity_of(text, path):
    path.write_text(text)
    return read_activity(path, TERM)
