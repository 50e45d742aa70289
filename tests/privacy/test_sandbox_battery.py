"""The battery of escapes and limits: the sandbox holds against all of it, and a weakened one does not.

No chance is involved, so there is no false-alarm rate to state.
"""

import struct

import pytest

from understudy.errors import MissingError
from understudy.sandbox import check, filters, require_sandbox, runtime

pytestmark = pytest.mark.sandbox
ALLOW_ALL = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)


@pytest.fixture(autouse=True)
def _usable():
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)


def through():
    return {probe.name for probe in check() if not probe.holds}


def test_the_sandbox_holds(capfd):
    probes = check()
    assert [probe for probe in probes if not probe.holds] == []
    assert len({probe.name for probe in probes}) == len(probes) > 100
    # Whatever an attempt said, none of it is heard here.
    assert capfd.readouterr() == ("", "")


def test_more_mounts_are_noticed(monkeypatch):
    arguments = runtime.bubblewrap_arguments

    def weakened(*given, **named):
        told = arguments(*given, **named)
        place = told.index("--remount-ro")
        more = ["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dir", "/home", "--tmpfs", "/tmp"]
        return [*told[:place], *more, *told[place:]]

    monkeypatch.setattr(runtime, "bubblewrap_arguments", weakened)
    assert through() >= {
        "read /etc/passwd",
        "read /proc/self/status",
        "list /proc",
        "list /home",
        "write to /tmp",
    }


def test_missing_filters_and_a_shared_network_are_noticed(monkeypatch):
    arguments = runtime.bubblewrap_arguments
    monkeypatch.setattr(
        runtime,
        "bubblewrap_arguments",
        lambda *given, **named: [
            part for part in arguments(*given, **named) if part not in ("--unshare-net", "--disable-userns")
        ],
    )
    for name in ("outer", "warm", "run"):
        monkeypatch.setattr(filters, name, lambda: ALLOW_ALL)
    found = through()
    assert found >= {"socket inet stream", "socket unix stream", "socket pair", "connect to 127.0.0.1"}
    assert found >= {"reach a listening server", "connect to an abstract name"}
    assert found >= {
        "call unshare",
        "call memfd_create",
        "signal through a pipe",
    }


def test_root_outside_is_noticed(monkeypatch):
    import os

    if os.geteuid():
        pytest.skip("only root could forget to step down")
    monkeypatch.setattr(runtime, "unprivileged", lambda: (0, 0))
    # The launcher looks again after stepping down, and starts nothing.
    with pytest.raises(MissingError, match="still root"):
        check()
