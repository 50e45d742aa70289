"""The battery: every escape and every excess we know, tried on this machine's sandbox."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.sandbox.jobs import MEBIBYTE, Job, Limits, Outcome
from understudy.sandbox.pool import Sandbox

DENIED = "denied"
LIMITS = Limits(
    wall_seconds=8.0,
    cpu_seconds=2,
    memory_bytes=512 * MEBIBYTE,
    output_bytes=MEBIBYTE,
    scratch_bytes=4 * MEBIBYTE,
    scratch_files=2_000,
)
_CODE = (Path(__file__).parent / "attempts.py").read_text(encoding="utf-8")
# Numbers of Linux, which this module can be imported without.
_FAMILIES = {"inet": 2, "inet6": 10, "unix": 1, "netlink": 16, "packet": 17, "vsock": 40, "alg": 38}
_CALLS: dict[str, list[int]] = {
    "unshare": [0x10000000],
    "setns": [0, 0],
    "mount": [0, 0, 0, 0, 0],
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
class _Attempt:
    name: str
    entry: str
    arguments: dict[str, Any] = field(default_factory=dict)
    expected: str = DENIED


def check(progress: Callable[[int, int], None] | None = None) -> list[Probe]:
    """Try everything and say what was found; MissingError when there is no sandbox to try."""
    secret = f"canary{secrets.token_hex(8)}"
    with ExitStack() as stack:
        planted = stack.enter_context(_planted(secret))
        sandbox = stack.enter_context(Sandbox(LIMITS))
        attempts = [*_escapes(secret, planted), *_excesses()]
        jobs = [Job(_CODE, attempt.entry, attempt.arguments) for attempt in attempts]
        outcomes = sandbox.run_many(jobs, progress)
        probes = [
            Probe(attempt.name, attempt.expected, _found(outcome))
            for attempt, outcome in zip(attempts, outcomes, strict=True)
        ]
        probes.append(_quiet(secret, outcomes))
        probes.append(_left_nothing(sandbox))
        users = sandbox.outside_users()
        probes.append(
            Probe("be root on the machine", DENIED, "runs as root" if 0 in users or not users else DENIED)
        )
        probes.append(Probe("reach a listening server", DENIED, planted.heard()))
    return probes


def _found(outcome: Outcome) -> str:
    if outcome.status == "done":
        return (
            outcome.values if isinstance(outcome.values, str) and len(outcome.values) < 100 else "gave data"
        )
    return outcome.status if outcome.status != "error" else f"error {outcome.error_type}"


def _escapes(secret: str, planted: _Planted) -> Iterator[_Attempt]:
    home = os.path.expanduser("~")
    for path in ("/etc/passwd", "/etc/hostname", "/proc/self/status", planted.file, __file__):
        name = {planted.file: "the data by its path", __file__: "Understudy's own source"}.get(path, path)
        yield _Attempt(f"read {name}", "read", {"path": path})
    for path in dict.fromkeys(("/root", "/home", home, os.getcwd(), sys.prefix, "/proc", "/sys", "/etc/ssl")):
        yield _Attempt(f"list {path}", "look_into", {"path": path})
    for name in ("environ", "mem", "maps", "fd"):
        yield _Attempt(f"read the warm process's {name}", "about_parent", {"name": name})
    yield _Attempt("find a secret of the environment", "environment", {"secret": secret})
    for path in ("/", "/dev", "/dev/shm", "/tmp", "/usr/lib", "/runtime", "/runtime/lib"):
        yield _Attempt(f"write to {path}", "write", {"path": path})
    yield _Attempt("write to the libraries", "write_to_libraries")
    yield _Attempt("become root inside", "user")
    for name, family in _FAMILIES.items():
        for kind, number in (("stream", 1), ("raw", 3)):
            yield _Attempt(f"socket {name} {kind}", "open_socket", {"family": family, "kind": number})
    yield _Attempt("socket pair", "socket_pair")
    yield _Attempt("connect to 127.0.0.1", "connect", {"address": "127.0.0.1", "port": planted.port})
    yield _Attempt("connect to an abstract name", "connect_by_name", {"name": planted.name})
    yield _Attempt("fork", "fork")
    yield _Attempt("start a thread", "start_thread")
    for path in ("/bin/sh", "/usr/bin/env", "/runtime/bin/" + Path(sys.executable).resolve().name):
        yield _Attempt(f"execute {path}", "execute", {"path": path})
    yield from _system_calls()
    for name, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP), ("test", 0)):
        yield _Attempt(f"{name} the warm process", "signal_parent", {"number": int(number)})
    yield _Attempt("signal through a pipe", "signal_by_pipe")
    yield _Attempt("use an inherited descriptor", "descriptors")
    yield _Attempt("see other processes", "other_processes")
    yield _Attempt("change limits", "raise_own_limits")
    yield _Attempt("speak on standard streams", "speak", {"secret": secret})
    yield _Attempt("name an error after a secret", "fail_loudly", {"secret": secret}, "error Exception")


def _system_calls() -> Iterator[_Attempt]:
    from understudy.sandbox.filters import number

    for name, arguments in _CALLS.items():
        if (found := number(name)) >= 0:
            yield _Attempt(f"call {name}", "system_call", {"number": found, "arguments": arguments})
    if os.uname().machine == "x86_64":
        # The second numbering of the same calls on this architecture, which a filter can forget.
        second = 0x40000000 + number("socket")
        told = {"number": second, "arguments": [2, 1, 0]}
        yield _Attempt("call socket by its x32 number", "system_call", told, "denied or killed")


def _excesses() -> Iterator[_Attempt]:
    limits = LIMITS
    each = limits.memory_bytes // 2
    yield _Attempt("sleep past the limit", "sleep", {"seconds": 60}, "time")
    yield _Attempt("compute past the limit", "compute_without_end", {}, "time")
    yield _Attempt("take memory past the limit", "take_memory", {}, "memory or killed")
    yield _Attempt("take memory and catch the error", "take_memory_quietly", {}, "memory or killed")
    children = {"n_children": 8, "each": each}
    yield _Attempt("take memory in children", "take_memory_in_children", children)
    yield _Attempt("fork without end", "bomb")
    yield _Attempt("return too much", "give_much", {"size": 2 * limits.output_bytes}, "output")
    yield _Attempt("write results without end", "write_result_without_end", {}, "output")
    yield _Attempt("fill scratch with bytes", "fill_scratch", {"size": 8 * limits.scratch_bytes})
    names = {"most": limits.scratch_files}
    yield _Attempt("fill scratch with names", "fill_scratch_with_names", names, "killed or error OSError")


def _quiet(secret: str, outcomes: list[Outcome]) -> Probe:
    told = any(secret in repr(outcome) for outcome in outcomes)
    return Probe("hear a secret in an outcome", DENIED, "heard it" if told else DENIED)


def _left_nothing(sandbox: Sandbox) -> Probe:
    # Workers take turns, so each of them gets both.
    for _ in range(sandbox.n_workers):
        sandbox.run(Job(_CODE, "leave"))
    found = {_found(sandbox.run(Job(_CODE, "find_what_was_left"))) for _ in range(sandbox.n_workers)}
    return Probe("find what an earlier run left", DENIED, ", ".join(sorted(found)))


class _Planted:
    """Things on this machine that a run must not reach."""

    def __init__(self, file: str, name: str, servers: list[socket.socket]) -> None:
        self.file = file
        self.name = name
        self.port = servers[0].getsockname()[1]
        self._servers = servers

    def heard(self) -> str:
        for server in self._servers:
            try:
                server.accept()[0].close()
            except OSError:
                continue
            return "a server heard it"
        return DENIED


@contextmanager
def _planted(secret: str) -> Iterator[_Planted]:
    variable = "UNDERSTUDY_PROBE_SECRET"
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        os.chmod(folder, 0o755)
        file = Path(folder) / "learners.csv"
        file.write_text(secret, encoding="utf-8")
        file.chmod(0o644)
        inet = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        abstract.bind(f"\0{secret}")
        abstract.listen()
        for server in (inet, abstract):
            server.setblocking(False)
        os.environ[variable] = secret
        try:
            yield _Planted(str(file), secret, [inet, abstract])
        finally:
            del os.environ[variable]
