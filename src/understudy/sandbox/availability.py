"""Whether the sandbox can be used here, and one sentence about what is missing if not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from understudy.errors import MissingError

_ELSEWHERE = "use a Linux machine or a virtual machine with Linux; nothing is run outside the sandbox."
_OLDEST = (0, 8)


def require_sandbox() -> None:
    """Return if a sandbox starts here; else say what is missing (exit code 5).

    It starts an empty one, which takes a tenth of a second; `check` tries whether it holds.
    """
    if sys.platform != "linux":
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise MissingError(f"the sandbox needs Linux, and this is {system}.", hint=_ELSEWHERE)
    from understudy.sandbox import bubblewrap, seccomp

    program = bubblewrap.bubblewrap()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, env={}).stdout
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise MissingError(
            f"the sandbox needs bubblewrap 0.8 or newer, and this is {version.strip() or 'unknown'}.",
            hint="install a newer one, or use a machine that has it.",
        )
    seccomp.library()
    bubblewrap.find_runtime()
    uid, gid = bubblewrap.unprivileged()
    order = {
        "program": program,
        # No interpreter: only whether an unprivileged user may make the namespaces.
        "arguments": [
            *(
                "--unshare-all",
                "--unshare-user",
                "--disable-userns",
                "--ro-bind",
                "/",
                "/",
                "--",
                program,
                "--version",
            )
        ],
        "descriptors": [],
        "stage": bubblewrap.stage(),
        "trees": [tree.source for tree in bubblewrap.find_runtime().trees],
        "uid": uid,
        "gid": gid,
    }
    from understudy.sandbox.jobs import sealed
    from understudy.sandbox.process import LAUNCHER

    descriptor = sealed(json.dumps(order).encode(), "order")
    try:
        tried = subprocess.run(
            [sys.executable, "-I", "-S", str(LAUNCHER), str(descriptor)],
            env={},
            pass_fds=[descriptor],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        tried = subprocess.CompletedProcess([], 1, "", "no answer in a minute")
    finally:
        os.close(descriptor)
    if tried.returncode:
        said = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MissingError(
            f"the sandbox needs user namespaces for unprivileged users, refused here ({said[:200]}).",
            hint=f"allow them (sysctl user.max_user_namespaces, AppArmor's restriction), or {_ELSEWHERE}",
        )
