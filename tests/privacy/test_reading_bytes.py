"""Two files that say the same in other words give the same release, byte by byte, if the noise is the same."""

import csv
import re
import shutil

import numpy as np
import pytest

from tests.support.charging import VERBS
from understudy.core.privacy.noise import seeded_noise

pytestmark = pytest.mark.functional


def word(cell):
    return {"1": "correct", "0": "false"}.get(cell, cell)


def in_other_words(verb, row):
    """A row that means the same."""
    if verb == "cohort build":
        return {**row, "time": f"{int(row['time'][8:10])} September 2024, {row['time'][11:]}"}
    if verb == "cohort summarize":
        return {name: f"{cell}000" if "." in cell else cell for name, cell in row.items()}
    if verb == "keystrokes statistics":
        return {name: f"{cell}.0" if name.startswith("time_") else cell for name, cell in row.items()}
    return {name: word(cell) if name != "action" else cell for name, cell in row.items()}


# Cells of a row that is left out.
LEFT_OUT = {"cohort build": {"time": ""}, "keystrokes statistics": {"key": ""}}


def rewrite(path, verb):
    """Write the rows of the file's first learner in other words, and one more that is left out."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    learner = next(iter(rows[0]))
    theirs = [row for row in rows if row[learner] == rows[0][learner]]
    others = [row for row in rows if row[learner] != rows[0][learner]]
    changed = [in_other_words(verb, row) for row in theirs]
    if verb in LEFT_OUT:
        changed.append({**theirs[-1], **LEFT_OUT[verb]})
    assert changed != theirs
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*changed, *others])


def released(place):
    """All that leaves, without the day: a file, or the files of `share`."""
    files = sorted((place / "share").rglob("*")) if place.is_dir() else [place]
    if place.name == "cohort.parquet":
        files = [place.with_suffix(".toml")]  # the table stays inside
    return {
        file.name: re.sub(rb"20\d\d-\d\d-\d\d", b"", file.read_bytes()) for file in files if file.is_file()
    }


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.epsilon], ids=lambda verb: verb.name)
def test_the_same_in_other_words_gives_the_same_bytes(verb, tmp_path, monkeypatch):
    """The sums are equal, so nothing that leaves may show how the file was written, or what was left out of it."""
    noise = "understudy.core.privacy.spending.os_noise"
    monkeypatch.setattr(noise, lambda: seeded_noise(np.random.default_rng(5)))
    monkeypatch.setattr("secrets.randbits", lambda bits: 7)
    monkeypatch.setattr("secrets.token_hex", lambda n_bytes: "5a" * n_bytes)
    (tmp_path / "first").mkdir()
    first = verb.make(tmp_path / "first")
    shutil.copytree(first.parent, tmp_path / "second")
    second = tmp_path / "second" / first.name
    rewrite(second, verb.name)
    for data in (first, second):
        verb.python(data, data.parent / verb.out)
    assert released(first.parent / verb.out) == released(second.parent / verb.out) != {}
