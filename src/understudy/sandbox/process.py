"""One warm process in its sandbox, seen from outside: start it, give it runs, watch them, end it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.errors import MissingError
from understudy.sandbox import bubblewrap, seccomp
from understudy.sandbox.jobs import Job, Limits, Outcome, Status, packed, sealed
from understudy.sandbox.outcome import FALSE_RESULT, read_result

_HERE = Path(__file__).parent
INSIDE = _HERE / "inside.py"
LAUNCHER = _HERE / "launcher.py"
# For a process that hangs: one that ends is noticed at once, and a busy machine needs minutes to start one.
_START_SECONDS = 600.0
_GRACE_SECONDS = 30.0
# The longest that a run is waited for on a busy machine, as a multiple of its limit.
_MOST_PATIENCE = 10.0
_WATCH_SECONDS = 0.02
_PIPE_BYTES = 1 << 20
_REHEARSALS = 2
_REHEARSAL_LIMITS = Limits(wall_seconds=120.0)


class GoneError(Exception):
    """The warm process ended by itself."""


class Worker:
    """A sandbox with one warm process; one run at a time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._started = 0.0
        self._control: socket.socket
        self._process: subprocess.Popen[bytes]
        self._status: int
        self._warm: int | None = None
        self._address_bytes = 0
        self._start()

    def _start(self) -> None:
        found = bubblewrap.find_runtime()
        program = bubblewrap.bubblewrap()
        as_root = os.geteuid() == 0
        uid, gid = bubblewrap.unprivileged()
        with ExitStack() as stack:

            def closing(descriptor: int) -> int:
                stack.callback(os.close, descriptor)
                return descriptor

            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(theirs.close)
            self._status, status = os.pipe2(os.O_CLOEXEC)
            closing(status)
            source = closing(os.open(INSIDE, os.O_RDONLY | os.O_CLOEXEC))
            outer = closing(sealed(seccomp.outer(), "filter"))
            arguments = bubblewrap.bubblewrap_arguments(
                found, program=source, outer_filter=outer, status=status, as_root=as_root
            )
            passed = closing(sealed(b"\0".join(part.encode() for part in arguments) + b"\0", "arguments"))
            inside = [found.interpreter, "-s", "-S", "-P", "-B", f"{bubblewrap.RUNTIME}/inside.py"]
            descriptors = [theirs.fileno(), status, source, outer, passed]
            order = closing(
                sealed(
                    json.dumps(
                        {
                            "program": program,
                            "arguments": ["--args", str(passed), "--", *inside, str(theirs.fileno())],
                            "descriptors": descriptors,
                            "stage": bubblewrap.stage(),
                            "trees": [tree.source for tree in found.trees],
                            "uid": uid,
                            "gid": gid,
                        }
                    ).encode(),
                    "order",
                )
            )
            self._control = ours
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), str(order)],
                env={},
                cwd="/",
                pass_fds=[*descriptors, order],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        settings = {
            "sites": list(found.sites),
            "warm_filter": b64encode(seccomp.warm()).decode(),
            "run_filter": b64encode(seccomp.run()).decode(),
            "clone": seccomp.number("clone"),
        }
        with suppress(OSError):  # gone already: wait_until_warm says so
            self._control.send(json.dumps(settings).encode())

    def wait_until_warm(self) -> None:
        """Return when it can take a run."""
        self._control.settimeout(_START_SECONDS)
        try:
            answer = self._control.recv(1 << 16)
        except OSError:
            answer = b""
        if not answer:
            self.stop()
            raise _does_not_start()
        if not json.loads(answer)["apart"]:
            self.stop()
            raise MissingError(
                "the sandbox cannot give every run namespaces of its own on this machine.",
                hint="a security module (AppArmor) may refuse it; allow bubblewrap CAP_SYS_ADMIN in its "
                "own user namespace, or use another Linux machine.",
            )
        with suppress(ValueError, KeyError):
            self._warm = int(json.loads(os.read(self._status, 1 << 16).split(b"\n")[0])["child-pid"])
        if self._warm is None or (used := _used(self._warm)) is None:
            self.stop()
            raise MissingError(
                "the sandbox's memory cannot be watched on this machine.",
                hint="/proc has to show your own processes.",
            )
        self._address_bytes = used.address_bytes
        # The first runs leave traces in the warm process, of code that it had never used; later ones do not.
        try:
            for _ in range(_REHEARSALS):
                self._run(Job("def nothing(): pass", "nothing"), _REHEARSAL_LIMITS)
        except GoneError as error:
            raise _does_not_start() from error
        if self.stopped:
            raise _does_not_start()

    def run(self, job: Job) -> Outcome:
        """Run one job; raises GoneError when the warm process has to be replaced and the job was not run."""
        return self._run(job, self.limits)

    def _run(self, job: Job, limits: Limits) -> Outcome:
        order = {
            "cpu_seconds": limits.cpu_seconds,
            "address_bytes": self._address_bytes + limits.memory_bytes,
            "processes": limits.processes,
            "output_bytes": limits.output_bytes,
            "scratch_bytes": limits.scratch_bytes,
            "scratch_files": limits.scratch_files,
        }
        content = sealed(packed(job))
        reading, writing = os.pipe2(os.O_CLOEXEC)
        self._started = time.monotonic()
        try:
            try:
                socket.send_fds(self._control, [json.dumps(order).encode()], [content, writing])
            except OSError as error:
                raise GoneError from error
            finally:
                os.close(content)
                os.close(writing)
            reason, ended, result, cpu_seconds = self._watch(reading, limits)
        finally:
            os.close(reading)
        seconds = time.monotonic() - self._started
        if not ended:
            # It no longer answers: whatever the run did, nothing of this sandbox is used again.
            self.stop()
            return Outcome(reason or "killed", seconds=seconds)
        if reason is not None:
            return Outcome(reason, seconds=seconds)
        outcome = read_result(result, job.code.count("\n") + 1) if result else Outcome("killed")
        # Nobody says how a run ended. The last look at it is up to a few ticks old, more on a busy machine.
        if (not result or outcome.error_type == FALSE_RESULT) and cpu_seconds >= 0.75 * limits.cpu_seconds:
            outcome = Outcome("time")
        return replace(outcome, seconds=seconds)

    def _watch(self, reading: int, limits: Limits) -> tuple[Status | None, bool, bytearray, float]:
        """Collect the result, end the run at its limits: why, whether it has ended, result, processor time.

        One buffer and never more than the limit and a byte: a result in tiny pieces would else take many
        times its size here.
        """
        os.set_blocking(reading, False)
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.register(self._control.fileno(), select.POLLIN)
        deadline = self._started + limits.wall_seconds
        # What the run waited for a processor is the machine's doing, and does not count as the run's time.
        waited = 0.0
        reason: Status | None = None
        result = bytearray()
        most = limits.output_bytes
        cpu_seconds = 0.0
        ended = False
        reads = True
        next_look = self._started + _WATCH_SECONDS
        while not ended or reads:
            for ready, _ in poll.poll(1000 * _WATCH_SECONDS):
                if ready == reading:
                    part = os.read(reading, min(_PIPE_BYTES, most + 1 - len(result)))
                    if not part:
                        poll.unregister(reading)
                        reads = False
                    elif reason is None:
                        result += part
                else:
                    try:
                        message = self._control.recv(1 << 16)
                    except OSError:
                        message = b""
                    if not message:
                        return reason, False, bytearray(), cpu_seconds
                    ended = True
                    poll.unregister(self._control.fileno())
            now = time.monotonic()
            found: Status | None = None
            if len(result) > most:
                found = "output"
            elif now > deadline + waited:
                found = "time"
            elif now > next_look and not ended:
                next_look = now + _WATCH_SECONDS
                used = self._used()
                cpu_seconds = max(cpu_seconds, used.cpu_seconds)
                waited = min(max(waited, used.waited_seconds), (_MOST_PATIENCE - 1) * limits.wall_seconds)
                if used.own_bytes > limits.memory_bytes:
                    found = "memory"
            if found is not None and reason is None:
                reason = found
                result.clear()
                deadline = now + _GRACE_SECONDS
            elif reason is not None and now > deadline:
                return reason, False, bytearray(), cpu_seconds
            if reason is not None and not ended:
                self._kill_run()
        return reason, ended, result, cpu_seconds

    def _used(self) -> _Used:
        """What the run's processes have taken on top of what they share with the warm process."""
        assert self._warm is not None
        warm = _used(self._warm)
        processes = [used for process in _descendants(self._warm) if (used := _used(process)) is not None]
        return _Used(
            own_bytes=sum(max(0, used.own_bytes - warm.own_bytes) for used in processes) if warm else 0,
            cpu_seconds=sum(used.cpu_seconds for used in processes),
            waited_seconds=max((used.waited_seconds for used in processes), default=0.0),
        )

    def _kill_run(self) -> None:
        """End the run from here, so that the warm process does not learn of it."""
        assert self._warm is not None
        for process in _descendants(self._warm):
            with suppress(OSError):
                descriptor = os.pidfd_open(process)
                try:
                    # The number may have gone to another process before the descriptor was open.
                    if process in _descendants(self._warm):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                finally:
                    os.close(descriptor)

    def outside_users(self) -> list[int]:
        """The user ids of its process on this machine: real, effective, saved, for files."""
        text = Path(f"/proc/{self._warm}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith("Uid:"))
        return [int(number) for number in line.split()[1:]]

    @property
    def stopped(self) -> bool:
        """Whether it takes no more runs."""
        return self._control.fileno() < 0

    def stop(self) -> None:
        """End the warm process and everything in its sandbox."""
        if self.stopped:
            return
        # The inside ends at the end of its control socket; the kill is for one that does not.
        self._control.close()
        os.close(self._status)
        try:
            self._process.wait(0.5 if self._warm is not None else 0.0)
        except subprocess.TimeoutExpired:
            if self._warm is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(self._warm, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def _does_not_start() -> MissingError:
    return MissingError(
        "the sandbox does not start on this machine.",
        hint="'understudy sandbox check' says what is missing; nothing is run outside of it.",
    )


@dataclass(frozen=True)
class _Used:
    """What a process uses, as /proc reports it."""

    own_bytes: int = 0
    cpu_seconds: float = 0.0
    waited_seconds: float = 0.0
    """Ready to run, while others had the processors."""
    address_bytes: int = 0


def _used(process: int) -> _Used | None:
    try:
        text = Path(f"/proc/{process}/status").read_text()
        # The name of a program may hold anything, a parenthesis too.
        counters = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    sizes = {
        name: 1024 * int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in text.splitlines())
        if name in ("VmSize", "RssAnon", "RssShmem")
    }
    if "VmSize" not in sizes:  # it has ended and waits to be collected
        return None
    return _Used(
        own_bytes=sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0),
        cpu_seconds=(int(counters[11]) + int(counters[12])) / os.sysconf("SC_CLK_TCK"),
        waited_seconds=_waited(process),
        address_bytes=sizes["VmSize"],
    )


def _waited(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # a kernel that does not count it
        return 0.0


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    for task in _listed(f"/proc/{process}/task"):
        try:
            children = Path(f"/proc/{process}/task/{task}/children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += [int(child), *_descendants(int(child))]
    return found


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
