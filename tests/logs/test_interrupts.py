"""Ctrl-C in the training of a network: what is asked, what is written, what is charged, what the card says."""

import contextlib
import fcntl
import json
import os
import pty
import subprocess
import sys
import termios

import numpy as np
import pytest

from tests.support.interrupting import Interrupting
from understudy.core.engine import progress
from understudy.core.privacy.confirmation import Interrupted, asked_by
from understudy.core.privacy.ledger import TAKEN_BACK, Ledger
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.release import bundle
from understudy.logs.release.assessment import assess
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.synthesize import synthesize

pytest.importorskip("torch")

METHOD = "gru:units=4:epochs=20"
WHERE = "The training was interrupted after 3 epochs of at most 20."


@pytest.fixture
def log():
    """Learners who are not declared to be simulated."""
    made = Classroom(n_learners=40, n_actions=5).simulate(np.random.default_rng(0))
    return Interactions(made.action, made.outcome, made.offsets, made.actions)


@pytest.fixture
def account(tmp_path):
    return {"population": "a class", "ledger": tmp_path / "ledger"}


@pytest.fixture
def verbs(log, account, tmp_path, monkeypatch):
    """Both verbs that write synthetic logs; the risk of a release is measured with a method that takes no time."""
    quick = parse_generator("markov")
    monkeypatch.setattr(bundle, "assess", lambda log, *_, **__: assess(log, quick, n_halves=1, n_shadows=4))
    return {
        "synthesize": lambda: synthesize(log, METHOD, out=tmp_path / "out.csv", **account),
        "release": lambda: bundle.release(log, tmp_path / "out.csv", METHOD, accept_risk="a test", **account),
    }


@contextlib.contextmanager
def person(answer):
    """Somebody at the terminal, and what they were asked after an interrupt."""
    asked = []

    def ask(question):
        if isinstance(question, Interrupted):
            asked.append(question.sentence)
            return answer
        return True

    with asked_by(ask):
        yield asked


@pytest.mark.parametrize("verb", ["synthesize", "release"])
@pytest.mark.parametrize("who", ["nobody", "somebody who says no"])
def test_an_interrupted_training_ends_like_everything_else(verbs, verb, who, account, tmp_path):
    there = person(False) if who != "nobody" else contextlib.nullcontext([])
    with there as asked, progress.reported_by(Interrupting(3)), pytest.raises(KeyboardInterrupt) as stop:
        verbs[verb]()
    assert stop.value.__notes__ == [WHERE, "Nothing was written, and the charge was taken back."]
    assert [sentence.startswith(WHERE) for sentence in asked] == ([True] if who != "nobody" else [])
    assert [entry.kind for entry in Ledger(account["ledger"]).entries()] == [verb, TAKEN_BACK]
    assert not (tmp_path / "out.csv").exists()


def test_half_a_training_is_written_if_somebody_says_so_and_every_result_says_it(verbs, tmp_path):
    with person(True), progress.reported_by(Interrupting(3)):
        made = verbs["release"]()
    assert WHERE in made.lines()
    share, keep = tmp_path / "out.csv" / "share", tmp_path / "out.csv" / "keep"
    assert json.loads((share / "card.json").read_text())["provenance"]["cut_short"] == WHERE
    assert json.loads((keep / "report.json").read_text())["cut_short"] == WHERE
    for page in (share / "card.html", keep / "report.html"):
        assert WHERE in page.read_text()
    assert type(made.generator).load(keep / "model.npz").cut_short_ == WHERE


def test_a_synthetic_log_of_half_a_training_says_so(verbs):
    with person(True), progress.reported_by(Interrupting(3)):
        made = verbs["synthesize"]()
    assert WHERE in made.lines()
    assert made.to_json()["cut_short"] == WHERE
    # The same generator, trained to the end, has nothing to say any more.
    whole = made.generator.fit(made.log)
    assert whole.cut_short_ == ""


def test_a_whole_training_has_nothing_to_say(verbs, tmp_path):
    made = verbs["release"]()
    assert made.generator.cut_short_ == ""
    assert "interrupted" not in (tmp_path / "out.csv" / "share" / "card.html").read_text()


@pytest.mark.functional
def test_ctrl_c_is_answered_and_a_second_one_stops_without_writing(tmp_path):
    # Large enough that the training is still under way when it is interrupted.
    log = Classroom(n_learners=300, n_actions=40).simulate(np.random.default_rng(0))
    log.to_polars().write_csv(tmp_path / "log.csv")
    ours, theirs = pty.openpty()
    code = "from understudy.cli import main; main()"
    arguments = ("synthesize", "log.csv", "-o", "out.csv", "-m", "gru:epochs=300")

    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C goes to whom the terminal belongs

    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=take_terminal,
    ) as process:
        os.close(theirs)
        said = b""
        # The bar shows a loss once there are weights to keep. A key that comes before the question waits for an
        # answer is seen when the next one comes: hence the Enter.
        for shown, keys in ((b"loss ", b"\x03"), (b"[y/N]", b"\x03\n")):
            while shown not in said:
                said += os.read(ours, 1024)
            os.write(ours, keys)
        with contextlib.suppress(OSError):
            while part := os.read(ours, 1024):
                said += part
        os.close(ours)
        assert process.wait() == 130
    assert b"Ctrl-C stops without writing" in said
    assert b"Nothing was written, and the charge was taken back." in said
    assert not (tmp_path / "out.csv").exists()
