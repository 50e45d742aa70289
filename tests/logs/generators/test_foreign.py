"""Generators of others: installed ones, classes of a module, and programs in any language."""

import fcntl
import os
import sys
from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.generators import registry
from understudy.logs.generators.registry import generator_names, parse_generator
from understudy.logs.simulated.classroom import Classroom

MINE = """
import numpy as np


class Shuffled:
    '''Draws actions at random; `scale` is there to be given.'''

    def __init__(self, scale=1.0, kind="plain"):
        self.scale, self.kind = scale, kind

    def fit(self, log):
        self.log = log

    def sample(self, n_learners=None, rng=None):
        n = self.log.n_learners if n_learners is None else n_learners
        return self.log.select((rng or np.random.default_rng()).integers(0, self.log.n_learners, n))
"""

PROGRAM = """
import csv, random, sys

train, out = sys.argv[1:]
with open(train, newline="") as file:
    rows = list(csv.DictReader(file))
random.seed(1)
with open(out, "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["learner", "action", "outcome"])
    for learner in range(12):
        for row in random.choices(rows, k=5):
            writer.writerow([f"fake-{learner}", row["action"], row["outcome"]])
"""


@pytest.fixture
def log():
    return Classroom(n_learners=40, n_actions=5).simulate(np.random.default_rng(0))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of somebody's own that can be imported."""
    (tmp_path / "mine_generators.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "mine_generators"
    sys.modules.pop("mine_generators", None)


def test_a_class_of_a_module(mine, log):
    generator = parse_generator(f"{mine}:Shuffled:scale=2:kind=other")
    assert (generator.generator.scale, generator.generator.kind) == (2.0, "other")
    assert generator.label == f"{mine}:Shuffled:scale=2:kind=other"
    assert generator.fit(log).sample(7, np.random.default_rng(0)).n_learners == 7
    assert not generator.guarantee(40).formal


@pytest.mark.parametrize(
    "text", ["no_such_module.generators:Mine", "{mine}:Absent", "{mine}:Shuffled:nosuch=1"]
)
def test_what_cannot_be_imported_is_said(mine, text):
    with pytest.raises(UsageError) as caught:
        parse_generator(text.format(mine=mine))
    assert caught.value.hint


def test_an_installed_generator_is_found_by_its_name(mine, log, monkeypatch):
    point = EntryPoint("shuffled", f"{mine}:Shuffled", registry.GROUP)
    monkeypatch.setattr(
        registry,
        "entry_points",
        lambda group, name=None: EntryPoints([point] if name in (None, "shuffled") else []),
    )
    assert "shuffled" in generator_names()
    assert parse_generator("shuffled:scale=3").generator.scale == 3.0
    with pytest.raises(UsageError, match="shuffled"):
        parse_generator("nosuch")


def test_any_program(tmp_path, log):
    (tmp_path / "gen.py").write_text(PROGRAM)
    generator = parse_generator(f"run:{sys.executable} {tmp_path / 'gen.py'} {{train}} {{out}}")
    sample = generator.fit(log).sample()
    assert sample.n_learners == 12
    assert sample.actions == log.actions
    assert generator.sample(3, np.random.default_rng(0)).n_learners == 3
    with pytest.raises(UsageError, match="the program wrote 12"):
        generator.sample(13)
    assert not generator.guarantee(40).formal


def test_a_program_that_fails_is_said_without_its_words(tmp_path, log):
    (tmp_path / "bad.py").write_text(
        "import sys; print(open(sys.argv[1]).read()); sys.exit('CANARY learner-01')"
    )
    generator = parse_generator(f"run:{sys.executable} {tmp_path / 'bad.py'} {{train}} {{out}}")
    with pytest.raises(DataError, match="exit code 1") as caught:
        generator.fit(log)
    assert "CANARY" not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be started"):
        parse_generator("run:/no/such/program {train} {out}").fit(log)


@pytest.mark.parametrize("text", ["run:", "run:gen.py {train}", "run:gen.py {out}"])
def test_a_command_names_both_files(text):
    with pytest.raises(UsageError, match=r"\{train\} and \{out\}"):
        parse_generator(text)


def test_the_training_file_is_gone_afterwards(tmp_path, log):
    (tmp_path / "gen.py").write_text(
        PROGRAM.replace("train, out = sys.argv[1:]", "train, out = sys.argv[1:3]")
    )
    place = tmp_path / "place.txt"
    (tmp_path / "gen.py").write_text(
        (tmp_path / "gen.py").read_text() + f"\nopen({str(place)!r}, 'w').write(train)\n"
    )
    parse_generator(f"run:{sys.executable} {tmp_path / 'gen.py'} {{train}} {{out}}").fit(log)
    assert not __import__("pathlib").Path(place.read_text()).exists()


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path, log, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "gen.py").write_text(PROGRAM)
    command = f"run:{sys.executable} {tmp_path / 'gen.py'} {{train}} {{out}}"
    folders = {name: tmp_path / f"understudy-run-{name}" for name in ("left", "new", "used")}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "train.csv").write_text("learner")
        if name != "new":
            os.utime(folder, (0, 0))
    place = os.open(folders["used"], os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    parse_generator(command).fit(log)
    os.close(place)
    assert {name for name, folder in folders.items() if folder.exists()} == {"new", "used"}
