"""What is tried on a sandbox: the attempts, what has to come of each, and what came of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.sandbox import seccomp
from understudy.sandbox.jobs import Limits, Outcome

DENIED = "denied"
CODE = (Path(__file__).parent / "attempts.py").read_text(encoding="utf-8")
# Numbers of Linux, which this module can be imported without.
_FAMILIES = {"inet": 2, "inet6": 10, "unix": 1, "netlink": 16, "packet": 17, "vsock": 40, "alg": 38}
_CALLS: dict[str, list[int]] = {
    "unshare": [0x10000000],
    "setns": [0, 0],
    "mount": [0, 0, 0, 14, 0],
    "umount2": [0, 0],
    "pivot_root": [0, 0],
    "chroot": [0],
    "open_tree": [0, 0, 0],
    "fsopen": [0, 0],
    "ptrace": [16, -1, 0, 0],  # attach to the warm process
    "process_vm_readv": [-1, 0, 0, 0, 0, 0],
    "process_vm_writev": [-1, 0, 0, 0, 0, 0],
    "pidfd_open": [-1, 0],
    "pidfd_getfd": [0, 0, 0],
    "pidfd_send_signal": [0, 9, 0, 0],
    "kcmp": [-1, -1, 0, 0, 0],
    "io_uring_setup": [8, 0],
    "bpf": [0, 0, 0],
    "keyctl": [0, -3, 0],
    "add_key": [0, 0, 0, 0, 0],
    "perf_event_open": [0, 0, -1, -1, 0],
    "userfaultfd": [0],
    "memfd_create": [0, 0],
    "shmget": [0, 4096, 0x3B6],
    "mq_open": [0, 0],
    "kill": [-1, 0],
    "tkill": [-1, 0],
    "tgkill": [-1, -1, 0],
    "rt_sigqueueinfo": [-1, 9, 0],
    "clone": [0x10000000 | 17, 0, 0, 0, 0],
    "clone3": [0, 0],
    "vfork": [],
    "execveat": [0, 0, 0, 0, 0],
    "seccomp": [1, 0, 0],
    "prctl": [4, 1, 0, 0, 0],  # be open to others again
    "setpriority": [0, -1, 5],
    "sched_setaffinity": [-1, 0, 0],
    "personality": [0],
    "init_module": [0, 0, 0],
    "open_by_handle_at": [0, 0, 0],
    "name_to_handle_at": [0, 0, 0, 0, 0],
    "capset": [0, 0],
    # What another run could see.
    "futex": [0, 1, 1, 0, 0, 0],  # a shared one
    "futex_waitv": [0, 0, 0, 0, 0],
    "futex_wake": [0, 1, 1, 2],
    "futex_wait": [0, 0, 1, 2, 0, 0],
    "futex_requeue": [0, 0, 0, 0],
    "getrusage": [0, 0],
    "madvise": [0, 0, 3],
    "membarrier": [0, 0, 0],
    "flock": [0, 5],
    "utimensat": [0, 0, 0, 0],
    "pipe2": [0, 0],
    "mincore": [0, 0, 0],
    "preadv2": [0, 0, 0, 0, 0, 8],
    "sysinfo": [0],
    "inotify_init1": [0],
    "timer_create": [0, 0, 0],
}
# Calls that an older libseccomp has no name for; the numbers are the same on every architecture.
_NEWER = {"futex_waitv": 449, "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456}
_HIDDEN = {
    "a time zone": "error FalseResult",
    "a field of a struct": "error FalseResult",
    "a category": "error FalseResult",
    "metadata": "gave data",  # the table without it
}


@dataclass(frozen=True)
class Probe:
    """One attempt: what has to come of it and what came of it."""

    name: str
    expected: str
    found: str

    @property
    def holds(self) -> bool:
        """Whether the sandbox held; several outcomes may be as good."""
        return self.found in self.expected.split(" or ")


@dataclass(frozen=True)
class Attempt:
    """One attempt: the function of `attempts.py` to submit, and what has to come of it."""

    name: str
    entry: str
    arguments: dict[str, Any] = field(default_factory=dict)
    expected: str = DENIED


def found(outcome: Outcome) -> str:
    """What came of an attempt, in a word or two."""
    if outcome.status == "done":
        return (
            outcome.values if isinstance(outcome.values, str) and len(outcome.values) < 100 else "gave data"
        )
    return outcome.status if outcome.status != "error" else f"error {outcome.error_type}"


def escapes(secret: str, file: str, port: int) -> Iterator[Attempt]:
    """Ways out. `secret` is in the environment, in `file` and the name of a server; another hears `port`."""
    home = os.path.expanduser("~")
    for path in ("/etc/passwd", "/etc/hostname", "/proc/self/status", file, __file__):
        name = {file: "the data by its path", __file__: "Understudy's own source"}.get(path, path)
        yield Attempt(f"read {name}", "read", {"path": path})
    for path in dict.fromkeys(("/root", "/home", home, os.getcwd(), sys.prefix, "/proc", "/sys", "/etc/ssl")):
        yield Attempt(f"list {path}", "look_into", {"path": path})
    for name in ("environ", "mem", "maps", "fd"):
        yield Attempt(f"read the warm process's {name}", "about_parent", {"name": name})
    yield Attempt("find a secret of the environment", "environment", {"secret": secret})
    for path in ("/", "/dev", "/dev/shm", "/tmp", "/usr/lib", "/runtime", "/runtime/lib"):
        yield Attempt(f"write to {path}", "write", {"path": path})
    yield Attempt("write to the libraries", "write_to_libraries")
    yield Attempt("become root inside", "user")
    for name, family in _FAMILIES.items():
        for kind, number in (("stream", 1), ("raw", 3)):
            yield Attempt(f"socket {name} {kind}", "open_socket", {"family": family, "kind": number})
    yield Attempt("socket pair", "socket_pair")
    yield Attempt("connect to 127.0.0.1", "connect", {"address": "127.0.0.1", "port": port})
    yield Attempt("connect to an abstract name", "connect_by_name", {"name": secret})
    yield Attempt("fork", "fork")
    yield Attempt("start a thread", "start_thread")
    for path in ("/bin/sh", "/usr/bin/env", "/runtime/bin/" + Path(sys.executable).resolve().name):
        yield Attempt(f"execute {path}", "execute", {"path": path})
    yield from _system_calls()
    for name, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP), ("test", 0)):
        yield Attempt(f"{name} the warm process", "signal_parent", {"number": int(number)})
    yield Attempt("signal through a pipe", "signal_by_pipe")
    yield Attempt("use an inherited descriptor", "descriptors")
    yield Attempt("see other processes", "other_processes")
    yield Attempt("hold a capability", "capabilities")
    yield Attempt("lock a file of the libraries", "lock")
    yield Attempt("change limits", "raise_own_limits")
    yield Attempt("speak on standard streams", "speak", {"secret": secret})
    yield Attempt("name an error after a secret", "fail_loudly", {"secret": secret}, "error Exception")
    for way, expected in _HIDDEN.items():
        yield Attempt(f"hide a secret in {way}", "hide", {"way": way, "secret": secret}, expected)


def _system_calls() -> Iterator[Attempt]:
    number = seccomp.number
    for name, arguments in _CALLS.items():
        if (found := max(number(name), _NEWER.get(name, -1))) >= 0:
            yield Attempt(f"call {name}", "system_call", {"number": found, "arguments": arguments})
    if os.uname().machine == "x86_64":
        # The second numbering of the same calls on this architecture, which a filter can forget.
        second = 0x40000000 + number("socket")
        call = {"number": second, "arguments": [2, 1, 0]}
        yield Attempt("call socket by its x32 number", "system_call", call, "denied or killed")


def excesses(limits: Limits) -> Iterator[Attempt]:
    """Ways past the limits."""
    each = limits.memory_bytes // 2
    yield Attempt("sleep past the limit", "sleep", {"seconds": 60}, "time")
    yield Attempt("compute past the limit", "compute_without_end", {}, "time")
    yield Attempt("take memory past the limit", "take_memory", {}, "memory or killed")
    yield Attempt("take memory and catch the error", "take_memory_quietly", {}, "memory or killed")
    children = {"n_children": 8, "each": each}
    yield Attempt("take memory in children", "take_memory_in_children", children)
    yield Attempt("fork without end", "bomb")
    yield Attempt("return too much", "give_much", {"size": 2 * limits.output_bytes}, "output")
    yield Attempt("write results without end", "write_result_without_end", {}, "output")
    yield Attempt("fill scratch with bytes", "fill_scratch", {"size": 8 * limits.scratch_bytes})
    names = {"most": limits.scratch_files}
    yield Attempt("fill scratch with names", "fill_scratch_with_names", names, "error OSError")


def core() -> list[Attempt]:
    """A few of them that need nothing planted, for every start on a machine where not all were tried."""
    number = seccomp.number
    calls = ("unshare", "ptrace", "memfd_create", "kill", "futex", "getrusage")
    return [
        Attempt("read /etc/passwd", "read", {"path": "/etc/passwd"}),
        Attempt("list the home directory", "look_into", {"path": os.path.expanduser("~")}),
        Attempt("list the current directory", "look_into", {"path": os.getcwd()}),
        Attempt("write to /", "write", {"path": "/"}),
        Attempt("write to the libraries", "write_to_libraries"),
        Attempt("become root inside", "user"),
        Attempt("socket inet stream", "open_socket", {"family": _FAMILIES["inet"], "kind": 1}),
        Attempt("socket unix stream", "open_socket", {"family": _FAMILIES["unix"], "kind": 1}),
        Attempt("fork", "fork"),
        Attempt("execute /bin/sh", "execute", {"path": "/bin/sh"}),
        Attempt("use an inherited descriptor", "descriptors"),
        Attempt("hold a capability", "capabilities"),
        Attempt("change limits", "raise_own_limits"),
        *(
            Attempt(f"call {name}", "system_call", {"number": number(name), "arguments": _CALLS[name]})
            for name in calls
        ),
    ]
