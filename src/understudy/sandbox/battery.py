"""The battery: every escape and every excess we know, tried on this machine's sandbox."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from understudy.errors import MissingError
from understudy.sandbox import bubblewrap, seccomp
from understudy.sandbox.expectations import CODE, DENIED, Probe, escapes, excesses, found
from understudy.sandbox.jobs import MEBIBYTE, Job, Limits
from understudy.sandbox.pool import Sandbox

LIMITS = Limits(
    wall_seconds=8.0,
    cpu_seconds=2,
    memory_bytes=512 * MEBIBYTE,
    output_bytes=MEBIBYTE,
    scratch_bytes=4 * MEBIBYTE,
    scratch_files=2_000,
)


class Untried(Sandbox):
    """A sandbox for the battery itself, which opens whatever was found on this machine before."""

    def _refuse_if_it_does_not_hold(self) -> None:
        pass

    def _try_the_core(self) -> None:
        pass


def check(progress: Callable[[int, int], None] | None = None) -> list[Probe]:
    """Try everything and say what was found; MissingError when there is no sandbox to try."""
    secret = f"canary{secrets.token_hex(8)}"
    with ExitStack() as stack:
        planted = stack.enter_context(_planted(secret))
        # Two, so that one can try to reach the other.
        sandbox = stack.enter_context(Untried(LIMITS, workers=2))
        attempts = [*escapes(secret, planted.file, planted.port), *excesses(LIMITS)]
        jobs = [Job(CODE, attempt.entry, attempt.arguments) for attempt in attempts]
        outcomes = sandbox.run_many(jobs, progress)
        probes = [
            Probe(
                attempt.name,
                attempt.expected,
                "revealed a secret" if secret in repr(outcome) else found(outcome),
            )
            for attempt, outcome in zip(attempts, outcomes, strict=True)
        ]
        probes += between_runs(sandbox)
        probes.append(side_by_side(sandbox))
        users = sandbox.outside_users()
        probes.append(
            Probe("be root on the machine", DENIED, "runs as root" if 0 in users or not users else DENIED)
        )
        probes.append(Probe("reach a listening server", DENIED, planted.heard()))
    return probes


def side_by_side(sandbox: Sandbox) -> Probe:
    """Whether a run can wake one that runs at the same time in another sandbox."""
    call = {"number": seccomp.number("futex"), "seconds": 4.0}
    outcomes = sandbox.run_many([Job(CODE, "wait_for_a_call", call), Job(CODE, "call_others", call)])
    answers = ", ".join(sorted({found(outcome) for outcome in outcomes}))
    return Probe("wake a run in another sandbox", DENIED, answers)


def between_runs(sandbox: Sandbox) -> list[Probe]:
    """Whether a run can find out what ran before it: by what was left, or by anything that counts."""
    # Workers take turns, so each of them gets every job.
    turns = range(sandbox.n_workers)
    look = Job(CODE, "marks")
    seen = [sandbox.run(look).values for _ in turns]
    for _ in turns:
        sandbox.run(Job(CODE, "leave"))
    left = {found(sandbox.run(Job(CODE, "find_what_was_left"))) for _ in turns}
    seen += [sandbox.run(look).values for _ in turns]
    probes = [Probe("find what an earlier run left", DENIED, ", ".join(sorted(left)))]
    if not all(isinstance(marks, dict) and marks for marks in seen):
        return [*probes, Probe("tell earlier runs", DENIED, "no answer")]
    # Compared within each warm process: between them, what lies where in memory differs from the start.
    pairs = list(zip(seen, seen[len(turns) :], strict=False))
    return probes + [
        Probe(
            f"tell earlier runs by {name}",
            DENIED,
            DENIED if all(before[name] == after[name] for before, after in pairs) else "got through",
        )
        for name in seen[0]
    ]


class _Planted:
    """Things on this machine that a run must not reach."""

    def __init__(self, file: str, servers: list[socket.socket]) -> None:
        self.file = file
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
            yield _Planted(str(file), [inet, abstract])
        finally:
            del os.environ[variable]


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
    version = subprocess.run([program, "--version"], capture_output=True, text=True, env={}).stdout.strip()
    sources = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(file.read_bytes())
    return {
        "boot": _BOOT.read_text().strip() if _BOOT.exists() else "",
        "kernel": platform.release(),
        "user": str(os.geteuid()),
        "bubblewrap": f"{program} {version} {hashlib.sha256(Path(program).read_bytes()).hexdigest()}",
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

    A way out stays one whatever has changed since: another kernel may close it, and only a battery can show it.
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
