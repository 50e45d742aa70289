"""`understudy sandbox check` as whoever sets up a desk meets it; that the battery holds is shown in tests/privacy."""

import pytest
from typer.testing import CliRunner

from understudy import sandbox
from understudy.cli.app import app
from understudy.errors import MissingError
from understudy.sandbox import Probe, battery

pytestmark = pytest.mark.functional


def test_one_attempt_that_gets_through_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(battery, "conditions", lambda: {"machine": "this"})
    monkeypatch.setattr(sandbox, "require_sandbox", lambda: None)
    probes = [Probe("fork", "denied", "denied"), Probe("read /etc/passwd", "denied", "got through")]
    monkeypatch.setattr(sandbox, "check", lambda: probes)
    for options in ([], ["--json"]):
        done = CliRunner().invoke(app, ["sandbox", "check", *options])
        assert isinstance(done.exception, MissingError)
        assert done.exception.exit_code == 5
        assert "read /etc/passwd" in done.exception.message
        assert "fork" not in done.exception.message
        assert battery.got_through() == ["read /etc/passwd"]


def test_a_finding_that_cannot_be_kept_is_said(monkeypatch, tmp_path):
    (tmp_path / "understudy").write_text("a file where a directory should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(battery, "conditions", lambda: {"machine": "this"})
    monkeypatch.setattr(sandbox, "require_sandbox", lambda: None)
    monkeypatch.setattr(sandbox, "check", lambda: [Probe("fork", "denied", "denied")])
    done = CliRunner().invoke(app, ["sandbox", "check"])
    assert done.exit_code == 0
    assert "could not be kept" in done.output


def test_without_a_sandbox_a_sentence_and_exit_code_5(tmp_path):
    import os
    import subprocess
    import sys

    code = (
        "import sys, types, understudy.cli; from understudy.sandbox import availability; "
        "availability.sys = types.SimpleNamespace(platform='darwin'); "
        "sys.argv[1:] = ['sandbox', 'check']; understudy.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, cwd=tmp_path
    )
    assert done.returncode == 5
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "Error: the sandbox needs Linux, and this is macOS."
    assert "virtual machine" in done.stderr
