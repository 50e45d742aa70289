"""What was found on this machine, remembered: that the sandbox held, until the machine, its kernel or the
sandbox changes; that it did not, until a whole battery finds nothing."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from understudy.errors import MissingError
from understudy.sandbox import bubblewrap, seccomp
from understudy.sandbox.expectations import Probe

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def place() -> Path:
    """The file that remembers."""
    state = os.environ.get("XDG_STATE_HOME", "")
    # The specification ignores a path that is not absolute.
    folder = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return folder / "understudy" / "sandbox.json"


def conditions() -> dict[str, str]:
    """What a sandbox that held was made of: with any of it changed, nothing is known."""
    program = bubblewrap.bubblewrap()
    told = subprocess.run([program, "--version"], capture_output=True, text=True, env={}).stdout.strip()
    sources = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(file.read_bytes())
    return {
        "boot": _BOOT.read_text().strip() if _BOOT.exists() else "",
        "kernel": platform.release(),
        "user": str(os.geteuid()),
        "bubblewrap": f"{program} {told} {hashlib.sha256(Path(program).read_bytes()).hexdigest()}",
        "seccomp": seccomp.version(),
        "python": f"{sys.executable} {platform.python_version()}",
        "sandbox": sources.hexdigest(),
    }


def remember(probes: Sequence[Probe]) -> None:
    """Keep what the battery found, or one attempt that got through; OSError when it cannot be kept."""
    content = {
        "conditions": conditions(),
        "attempts": len(probes),
        "got_through": [probe.name for probe in probes if not probe.holds],
    }
    file = place()
    file.parent.mkdir(parents=True, exist_ok=True)
    # Replaced as a whole, so that whoever reads it meanwhile does not find half of it.
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(content, indent=1), encoding="utf-8")
    fresh.replace(file)


def got_through() -> list[str] | None:
    """The attempts that got through on this machine, none if it held; None where the battery was not run.

    A way out stays one whatever has changed since: another kernel may close it, and only a battery can tell.
    """
    try:
        content = json.loads(place().read_text(encoding="utf-8"))
        names = [str(name) for name in content["got_through"]]
        return names if names or content["conditions"] == conditions() else None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def refuse(names: Sequence[str]) -> None:
    """MissingError (exit code 5) if an attempt got through."""
    if names:
        raise MissingError(
            f"the sandbox does not hold on this machine: {', '.join(names[:5])}.",
            hint="nothing is run in it; use another Linux machine, and report what "
            "'understudy sandbox check' shows. A check that finds nothing opens it again.",
        )
