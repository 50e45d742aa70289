"""Reading keystrokes is part of the guarantee: no learner's typing decides how that of other learners is read."""

import json

import numpy as np
import pytest

from tests.privacy.support.neighbours import NUMBERS, check_others, delimited, latin, neighbours, parquet
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.spending import Account, Spending
from understudy.errors import UsageError
from understudy.keystrokes.digraph_statistics import Declaration, contributions
from understudy.keystrokes.formats.reading import read_keystrokes

DECLARED = Declaration(("i → n", "n → t", "n → n"), ("all",), least=1)
START = 1_700_000_000_000


def typing(*columns, start=START, written=str):
    """Makes the rows of a learner: learner, time, and what the columns say, for words of two keys."""

    def rows(rng, name):
        clock, text, made = start + rng.randrange(10**6), "", []
        for key in rng.choices(["i", "n", "t", "nn"], k=6):
            # A key that is held: the keyboard repeats it.
            for press in key:
                clock += rng.choice([90, 120, 150, 400])
                text += press
                cells = {"key": press, "type": "keydown", "session": rng.choice("AB"), "text": text}
                made.append([name, written(clock), *(cells[column] for column in columns)])
        if rng.random() < 0.2:
            made.reverse()
        return made

    return rows


def released(rng, name):
    """Presses and releases."""
    rows = typing("key", "type")(rng, name)
    return [row for press in rows for row in (press, [name, str(int(press[1]) + 60), press[2], "keyup"])]


def lines(rows):
    names = ("user", "timestamp", "key")
    return "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows).encode()


def progsnap(rows):
    table = [[user, "File.Edit", time, key, ""] for user, time, key in rows]
    header = ["SubjectID", "EventType", "ClientTimestamp", "InsertText", "DeleteText"]
    return delimited(",", header)(table)


def dates(clock):
    minutes, rest = divmod(clock, 60_000)
    return f"2023-11-14T10:{minutes % 60:02}:{rest // 1000:02}.{rest % 1000:03}Z"


EVENTS = ["learner", "time", "key"]
FILES = {
    "events": (typing("key"), delimited(",", EVENTS), {}),
    "events in latin": (typing("key"), latin(EVENTS), {}),
    "events in tsv": (typing("key"), delimited("\t", EVENTS), {}),
    "events in parquet": (typing("key"), parquet(EVENTS), {}),
    "events with dates": (typing("key", written=dates), delimited(",", EVENTS), {}),
    "events in nanoseconds": (
        typing("key", written=lambda clock: str(clock * 10**6 + 1)),
        delimited(",", EVENTS),
        {},
    ),
    "events from a start": (typing("key", start=0), delimited(",", ["learner", "time_ms", "key"]), {}),
    "events from a start, declared": (typing("key", start=0), delimited(",", EVENTS), {"unit": "ms"}),
    "presses": (typing("key", "type"), delimited(",", [*EVENTS, "type"]), {}),
    "presses and releases": (released, delimited(",", [*EVENTS, "type"]), {}),
    "sessions": (typing("key", "session"), delimited(",", [*EVENTS, "session"]), {}),
    "sessions from a start": (
        typing("key", "session", start=0),
        delimited(",", ["learner", "time_ms", "key", "session"]),
        {},
    ),
    "lines": (typing("key"), lines, {}),
    "snapshots": (typing("text"), delimited(",", ["user", "timestamp", "snapshot"]), {}),
    "progsnap2": (typing("key"), progsnap, {}),
}


def refuse_guesses(origin):
    Account.open(Spending(), origin, simulated=False).check(Guarantee(1.0))


def read(path, **options):
    """What the mechanism adds up of each learner; those without a keystroke add nothing."""
    source = read_keystrokes(path, **options)
    refuse_guesses(source.origin)
    added = contributions(source.keystrokes, DECLARED).reshape(source.keystrokes.n_learners, -1)
    silent = np.zeros((source.n_learners - len(added), added.shape[1]), dtype=np.int64)
    return [tuple(row) for row in np.concatenate([added, silent]).tolist()]


@pytest.mark.parametrize("cells", ["numbers", "nasty"])
@pytest.mark.parametrize("name", FILES)
def test_other_learners_are_read_alike(tmp_path, name, cells):
    rows, write, options = FILES[name]
    files = neighbours(rows, NUMBERS, n_files=10) if cells == "numbers" else neighbours(rows, n_files=37)
    check_others(tmp_path / "keys", files, write, lambda path: read(path, **options))


@pytest.mark.parametrize(
    "name", ["events in parquet", "events from a start", "presses and releases", "sessions"]
)
def test_other_learners_are_read_alike_in_pieces(tmp_path, everything_is_large, name):
    everything_is_large(partition_rows=20)
    test_other_learners_are_read_alike(tmp_path, name, "numbers")


def test_a_reader_that_breaks_the_rule_is_found(tmp_path, monkeypatch):
    """The steps back of all learners together decide here whether the rows of any are sorted."""
    together = "understudy.keystrokes.formats.chain.is_unordered"
    monkeypatch.setattr(together, lambda back, steps: np.full(len(back), back.sum() % 2 == 0))
    with pytest.raises(AssertionError):
        test_other_learners_are_read_alike(tmp_path, "events", "nasty")


@pytest.mark.parametrize(
    ("header", "first", "second", "settings"),
    [
        ("learner,time,key", "a,0,i", "a,150,n", ("unit",)),
        ("learner,time_ms,key", "a,0,73", "a,150,78", ()),
        ("learner,time_ms,key,type", "a,0,i,keypress", "a,150,n,keypress", ()),
        ("learner,time_ms,key,type", "a,0,i,first", "a,150,n,second", ()),
        ("learner,time_ms,key,hold", "a,0,i,60", "a,150,n,70", ()),
        ("learner,time_ms,key,hold_ms", "a,0,i,60", "a,150,n,70", None),
        ("learner,time_ms,keycode", "a,0,73", "a,150,78", None),
        ("learner,time_ms,key,type", "a,0,i,keydown", "a,150,n,keydown", None),
    ],
)
def test_what_is_guessed_is_refused_with_a_guarantee_and_only_then(tmp_path, header, first, second, settings):
    path = tmp_path / "typing.csv"
    path.write_text("\n".join([header, first, second, ""]))
    source = read_keystrokes(path)
    assert source.keystrokes.n_rows == 2
    if settings is None:
        refuse_guesses(source.origin)
    else:
        with pytest.raises(UsageError, match="it was guessed") as refused:
            refuse_guesses(source.origin)
        assert refused.value.settings == settings


def test_fields_that_only_some_objects_have_are_a_guess(tmp_path):
    path = tmp_path / "typing.jsonl"
    path.write_text(json.dumps({"user": "a", "time_ms": 0, "key": "i"}) + "\n")
    refuse_guesses(read_keystrokes(path).origin)
    with path.open("a") as file:
        file.write(json.dumps({"user": "a", "time_ms": 90, "key": "n", "hold_ms": 3}) + "\n")
    with pytest.raises(UsageError, match="which fields there are"):
        refuse_guesses(read_keystrokes(path).origin)
