"""The step between Understudy and bubblewrap: an empty environment and no privileges.

A program of its own, started with an empty environment. When root starts it, it makes the interpreter and its
libraries reachable in a mount namespace of its own (root's home is closed to others), and becomes an
unprivileged user before bubblewrap starts; nothing of the sandbox ever has uid 0 outside.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import stat
import sys
from typing import Any, NoReturn

_NEW_MOUNTS = 0x20000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_NO_SUID, _NO_DEVICES = 0x2, 0x4
_NO_NEW_PRIVILEGES = 38


def main() -> NoReturn:
    """Read what to start from a descriptor, step down, and become bubblewrap."""
    with open(int(sys.argv[1]), "rb") as file:
        order = json.load(file)
    os.chdir("/")
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0:
        _stage(order["stage"], order["trees"])
        _step_down(order["uid"], order["gid"])
    library = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_ulong
    _ok(library.prctl(_NO_NEW_PRIVILEGES, number(1), number(0), number(0), number(0)), "refuse privileges")
    for descriptor in order["descriptors"]:
        os.set_inheritable(descriptor, True)
    os.execve(order["program"], [order["program"], *order["arguments"]], {})


def _stage(stage: str, trees: list[str]) -> None:
    """Bind the trees to `stage/0`, `stage/1`, ... where every user can reach them, for this process only."""
    library = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
        texts: list[Any] = [None if text is None else text.encode() for text in (source, target, kind)]
        done = library.mount(*texts, ctypes.c_ulong(flags), None if options is None else options.encode())
        _ok(done, "mount")

    _ok(library.unshare(_NEW_MOUNTS), "make a mount namespace")
    mount("none", "/", None, _RECURSIVE | _PRIVATE)
    sources = [os.open(tree, os.O_PATH) for tree in trees]
    mount("tmpfs", stage, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=64k")
    os.umask(0o022)
    for place, source in enumerate(sources):
        target = f"{stage}/{place}"
        if stat.S_ISDIR(os.fstat(source).st_mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(f"/proc/self/fd/{source}", target, None, _BIND)
        os.close(source)


def _step_down(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if 0 in (*os.getresuid(), *os.getresgid()):
        raise SystemExit("still root after stepping down")


def _ok(result: int, what: str) -> None:
    if result:
        raise SystemExit(f"cannot {what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
