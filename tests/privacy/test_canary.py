"""A planted learner: the canary's name and secrets must be in nothing that any command writes or prints.

False-alarm rate: zero, the canaries are strings that occur nowhere else.
"""

import tempfile

import numpy as np
import polars as pl
import pytest

from tests.support.command import run, run_in_process
from understudy.logs.simulated.classroom import Classroom

NAME = "canary-kestrel-7731"
MAIL = "kestrel@birds.example"
OTHER = "Zugvogel"


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """A log in which one learner is the canary, with columns nobody asked for."""
    folder = tmp_path_factory.mktemp("canary")
    log = Classroom(n_learners=80, n_actions=10).simulate(np.random.default_rng(3))
    frame = log.to_polars("pupil-")
    canary = frame["learner"] == frame["learner"][0]
    frame = frame.with_columns(
        learner=pl.when(canary).then(pl.lit(NAME)).otherwise("learner"),
        email=pl.when(canary).then(pl.lit(MAIL)).otherwise(pl.lit("nobody@example.org")),
        surname=pl.when(canary).then(pl.lit(OTHER)).otherwise(pl.lit("Nemo")),
        mentor=pl.when(canary).then(pl.lit("Mentor of " + OTHER)).otherwise(pl.lit("Mentor of others")),
        form=pl.col("learner").str.slice(-1),
        report=pl.when(canary).then(pl.lit("report on " + OTHER)).otherwise("action"),
    )
    frame.write_csv(folder / "log.csv")
    (folder / "withdrawn.txt").write_text(NAME + "\n")
    others = Classroom(n_learners=80, n_actions=10).simulate(np.random.default_rng(4))
    others.to_polars("stranger-").write_csv(folder / "others.csv")
    return folder / "log.csv"


# Each command with the exit code it must have: a command that failed early would prove nothing.
COMMANDS = {
    "inspect": (0, ["inspect", "FILE", "--html", "page.html"]),
    "inspect json": (0, ["inspect", "FILE", "--json"]),
    "synthesize": (0, ["synthesize", "FILE", "-o", "s.csv", "-m", "markov"]),
    "drop": (0, ["synthesize", "FILE", "-o", "s.parquet", "-m", "drop:0"]),
    "study": (0, ["study", "FILE", "-m", "drop:0", "--seeds", "1", "--shadows", "8", "-o", "study"]),
    "release": (0, ["release", "FILE", "-o", "bundle", "-m", "markov", "--accept-risk", "test"]),
    "group": (0, ["release", "FILE", "-o", "b4", "-m", "markov", "--accept-risk", "t", "--group", "mentor"]),
    "refused": (4, ["release", "FILE", "-o", "bundle", "-m", "drop:0"]),
    "audit": (0, ["audit", "--members", "FILE", "--outsiders", "OTHERS", "--synthetic", "FILE"]),
    "audit of one": (3, ["audit", "--members", "FILE", "--outsiders", "FILE", "--synthetic", "FILE"]),
    "exclude": (0, ["synthesize", "FILE", "-o", "s3.csv", "-m", "markov", "--exclude", "LIST"]),
    "wrong outcome": (3, ["inspect", "FILE", "--outcome", "surname"]),
    "mail as action": (3, ["synthesize", "FILE", "-o", "s2.csv", "-m", "markov", "--action", "email"]),
    "name as action": (
        3,
        ["synthesize", "FILE", "-o", "b2.csv", "-m", "markov", "--action", "learner", "--learner", "form"],
    ),
    "name in actions": (3, ["synthesize", "FILE", "-o", "b5.csv", "-m", "markov", "--action", "report"]),
    "wrong time": (3, ["inspect", "FILE", "--time", "surname"]),
    "wrong group": (3, ["release", "FILE", "-o", "b3", "--group", "report", "--accept-risk", "test"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_canary_is_nowhere(log_file, tmp_path, monkeypatch, capfd, command):
    code, words = COMMANDS[command]
    places = {"FILE": str(log_file), "LIST": str(log_file.with_name("withdrawn.txt"))}
    places["OTHERS"] = str(log_file.with_name("others.csv"))
    arguments = [places.get(word, word) for word in words]
    if arguments[0] in ("synthesize", "release"):
        arguments += ["--ledger", "the.ledger"]
    # What goes to the temporary and home folders is looked at too.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # The command that does most in a process of its own; what the others write past Python's streams is seen as well.
    done = (run_in_process if command == "release" else run)(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    said = [text.encode() for text in (done.stdout, done.stderr, *capfd.readouterr())]
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    parquet = [pl.read_parquet(path).write_csv().encode() for path in tmp_path.rglob("*.parquet")]
    for content in [*said, *written, *parquet]:
        for secret in (NAME, MAIL, OTHER):
            assert secret.encode() not in content
