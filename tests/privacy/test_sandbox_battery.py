"""The battery of escapes and limits: the sandbox holds against all of it, and a weakened one does not.

No chance is involved, so there is no false-alarm rate to state.
"""

import json
import struct

import pytest

from tests.support.command import run
from understudy.errors import MissingError
from understudy.sandbox import (
    Job,
    Sandbox,
    battery,
    bubblewrap,
    check,
    expectations,
    outcome,
    process,
    require_sandbox,
    seccomp,
)
from understudy.sandbox.battery import LIMITS, Untried, between_runs, side_by_side

pytestmark = pytest.mark.sandbox
ALLOW_ALL = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)


@pytest.fixture(autouse=True)
def _usable(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)


def through(monkeypatch):
    """The ways out that the battery finds. Those past the limits, which take long, do not depend on a wall."""
    monkeypatch.setattr(battery, "excesses", lambda limits: [])
    return {probe.name for probe in check() if not probe.holds}


def test_the_sandbox_holds_and_the_command_says_so(tmp_path, capfd):
    """The whole battery, once."""
    done = run("sandbox", "check", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    probes = content["probes"]
    assert all(set(probe) == {"name", "expected", "found", "holds"} for probe in probes)
    assert [probe for probe in probes if not probe["holds"]] == []
    assert all(probe["found"] in probe["expected"].split(" or ") for probe in probes)
    assert len({probe["name"] for probe in probes}) == len(probes) > 100
    assert content["holds"] is True
    assert battery.got_through() == []
    # Whatever an attempt said, none of it is heard here.
    assert capfd.readouterr() == ("", "")


def test_more_mounts_are_noticed(monkeypatch):
    arguments = bubblewrap.bubblewrap_arguments

    def weakened(*given, **named):
        told = arguments(*given, **named)
        place = told.index("--remount-ro")
        more = ["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dir", "/home", "--tmpfs", "/tmp"]
        return [*told[:place], *more, *told[place:]]

    monkeypatch.setattr(bubblewrap, "bubblewrap_arguments", weakened)
    assert through(monkeypatch) >= {
        "read /etc/passwd",
        "read /proc/self/status",
        "list /proc",
        "list /home",
        "write to /tmp",
    }


def test_missing_filters_and_a_shared_network_are_noticed(monkeypatch):
    arguments = bubblewrap.bubblewrap_arguments
    monkeypatch.setattr(
        bubblewrap,
        "bubblewrap_arguments",
        lambda *given, **named: [
            part for part in arguments(*given, **named) if part not in ("--unshare-net", "--disable-userns")
        ],
    )
    for name in ("outer", "warm", "run"):
        monkeypatch.setattr(seccomp, name, lambda: ALLOW_ALL)
    found = through(monkeypatch)
    assert found >= {"socket inet stream", "socket unix stream", "socket pair", "connect to 127.0.0.1"}
    assert found >= {"reach a listening server", "connect to an abstract name"}
    assert found >= {
        "call unshare",
        "call memfd_create",
        "signal through a pipe",
        "lock a file of the libraries",
        *("call flock", "call utimensat", "call mincore", "call preadv2", "call pipe2", "call sysinfo"),
        *("call futex", "call getrusage", "call madvise", "call membarrier", "wake a run in another sandbox"),
    }


def test_locks_shared_between_sandboxes_are_noticed(monkeypatch):
    allowing = seccomp.allowing

    def weakened(names):
        rules = allowing(names)
        seccomp.add_rule(rules, seccomp.library().ALLOW, "futex")
        return rules

    # That it is refused otherwise, the whole battery shows above.
    monkeypatch.setattr(seccomp, "allowing", weakened)
    for name in ("warm", "run"):
        monkeypatch.setattr(seccomp, name, getattr(seccomp, name).__wrapped__)
    with Untried(LIMITS, workers=2) as weak:
        found = side_by_side(weak)
        assert (found.holds, found.found) == (False, "woke another, woken")
        core = {attempt.name: attempt for attempt in expectations.core()}
        tried = core["call futex"]
        assert (
            expectations.found(weak.run(Job(expectations.CODE, tried.entry, tried.arguments)))
            != tried.expected
        )


def test_text_in_a_type_is_noticed(monkeypatch):
    import pyarrow as pa

    def tried(sandbox):
        ways = [one for one in expectations.escapes("canary", __file__, 1) if one.entry == "hide"]
        outcomes = sandbox.run_many([Job(expectations.CODE, one.entry, one.arguments) for one in ways])
        return {
            one.name
            for one, outcome in zip(ways, outcomes, strict=True)
            if expectations.found(outcome) != one.expected or "canary" in repr(outcome)
        }

    with Untried(LIMITS, workers=1) as sandbox:
        assert tried(sandbox) == set()
        known = outcome.plain_types()
        monkeypatch.setattr(outcome, "plain_types", lambda: (*known, pa.timestamp("s", "canary")))
        assert tried(sandbox) == {"hide a secret in a time zone"}
        monkeypatch.setattr(outcome, "plain_types", lambda: known)
        monkeypatch.setattr(outcome, "_plain_schema", lambda schema: schema)
        assert tried(sandbox) >= {"hide a secret in a time zone", "hide a secret in metadata"}


def weakened_inside(monkeypatch, folder, *changes):
    text = process.INSIDE.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "inside.py"
    file.write_text(text)
    monkeypatch.setattr(process, "INSIDE", file)
    for name in ("outer", "warm", "run"):
        monkeypatch.setattr(seccomp, name, lambda: ALLOW_ALL)
    with Untried(LIMITS, workers=1) as weak:
        return {probe.name for probe in between_runs(weak) if not probe.holds}


def test_runs_that_share_numbers_and_scratch_are_noticed(monkeypatch, tmp_path):
    found = weakened_inside(
        monkeypatch,
        tmp_path,
        ("_APART = 0x20020000", "_APART = 0"),
        ('_own_scratch(limits["scratch_bytes"], limits["scratch_files"])', "pass"),
        ("_own_scratch(4096, 16)", "pass"),
    )
    assert found == {
        "find what an earlier run left",
        *(
            f"tell earlier runs by {name}"
            for name in ("process numbers", "numbers of files", "room in scratch")
        ),
    }


def test_shared_streams_and_a_memory_that_drifts_are_noticed(monkeypatch, tmp_path):
    found = weakened_inside(
        monkeypatch,
        tmp_path,
        ("    _own_streams()\n    _no_capabilities()\n", "    _no_capabilities()\n"),
        ('    control.send(b"ended")\n', '    control.send(b"ended")\n    sys.path += [bytes(4000)]\n'),
    )
    assert found == {f"tell earlier runs by {name}" for name in ("flags of streams", "places in memory")}


def test_a_run_that_keeps_capabilities_is_noticed(monkeypatch, tmp_path):
    text = process.INSIDE.read_text()
    call = "    _no_capabilities()\n"
    assert call in text
    file = tmp_path / "inside.py"
    file.write_text(text.replace(call, ""))
    monkeypatch.setattr(process, "INSIDE", file)
    for name in ("outer", "warm", "run"):
        monkeypatch.setattr(seccomp, name, lambda: ALLOW_ALL)
    with pytest.raises(MissingError, match="hold a capability"), Sandbox(workers=1):
        pass


def test_root_outside_is_noticed(monkeypatch):
    import os

    if os.geteuid():
        pytest.skip("only root could forget to step down")
    monkeypatch.setattr(bubblewrap, "unprivileged", lambda: (0, 0))
    # The launcher looks again after stepping down, and starts nothing.
    with pytest.raises(MissingError, match="still root"):
        check()
