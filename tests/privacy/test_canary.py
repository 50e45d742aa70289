"""A planted learner: the canary's name and secrets must be in nothing that any command writes or prints.

False-alarm rate: zero, the canaries are strings that occur nowhere else.
"""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from understudy.records.classroom import Classroom

NAME = "canary-kestrel-7731"
MAIL = "kestrel@birds.example"
OTHER = "Zugvogel"


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """A log in which one learner is the canary, with columns nobody asked for."""
    folder = tmp_path_factory.mktemp("canary")
    log = Classroom(n_learners=80, n_actions=10).simulate(np.random.default_rng(3))
    frame = log.to_frame("pupil-")
    canary = frame["learner"] == frame["learner"][0]
    frame = frame.with_columns(
        learner=pl.when(canary).then(pl.lit(NAME)).otherwise("learner"),
        email=pl.when(canary).then(pl.lit(MAIL)).otherwise(pl.lit("nobody@example.org")),
        surname=pl.when(canary).then(pl.lit(OTHER)).otherwise(pl.lit("Nemo")),
    )
    frame.write_csv(folder / "log.csv")
    return folder / "log.csv"


COMMANDS = {
    "inspect": ["inspect", "FILE", "--html", "page.html"],
    "inspect json": ["inspect", "FILE", "--json"],
    "synthesize": ["synthesize", "FILE", "-o", "s.csv", "-m", "markov"],
    "drop": ["synthesize", "FILE", "-o", "s.parquet", "-m", "drop:0"],
    "study": ["study", "FILE", "-m", "drop:0", "--seeds", "1", "--shadows", "8", "-o", "study"],
    "release": ["release", "FILE", "-o", "bundle", "-m", "markov", "--accept-risk", "test"],
    "audit": ["audit", "--members", "FILE", "--outsiders", "FILE", "--synthetic", "FILE"],
    "wrong outcome": ["inspect", "FILE", "--outcome", "surname"],
    "wrong action": ["synthesize", "FILE", "-o", "s2.csv", "-m", "markov", "--action", "email"],
    "name as action": [
        "release",
        "FILE",
        "-o",
        "b2",
        "-m",
        "markov",
        "--action",
        "learner",
        "--learner",
        "surname",
    ],
    "wrong time": ["inspect", "FILE", "--time", "surname"],
    "wrong group": ["release", "FILE", "-o", "b3", "--group", "action", "--accept-risk", "test"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_canary_is_nowhere(log_file, tmp_path, command):
    arguments = [str(log_file) if word == "FILE" else word for word in COMMANDS[command]]
    if "--ledger" not in arguments and arguments[0] in ("synthesize", "release"):
        arguments += ["--ledger", "the.ledger"]
    done = subprocess.run(
        [sys.executable, "-c", "from understudy.cli import main; main()", *arguments],
        capture_output=True,
        cwd=tmp_path,
    )
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    parquet = [pl.read_parquet(path).write_csv().encode() for path in tmp_path.rglob("*.parquet")]
    for content in [done.stdout, done.stderr, *written, *parquet]:
        for secret in (NAME, MAIL, OTHER):
            assert secret.encode() not in content
