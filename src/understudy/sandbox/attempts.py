"""What the battery submits to the sandbox: attempts to get out of it, past its limits or at another run.

This file is read as text and runs inside. Every function returns "denied", or says what it got.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import random
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module

DENIED = "denied"
_REFUSALS = (OSError, ValueError, RuntimeError)


def _tried(action: Callable[[], object]) -> str:
    try:
        action()
    except _REFUSALS:
        return DENIED
    return "got through"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def read(path: str) -> str:
    """Read a file of the machine."""
    return _tried(lambda: _read(path))


def look_into(path: str) -> str:
    """List a directory of the machine."""
    return _tried(lambda: os.listdir(path))


def write(path: str) -> str:
    """Make a file outside of scratch."""
    return _tried(lambda: os.close(os.open(f"{path}/attempt", os.O_CREAT | os.O_WRONLY, 0o600)))


def write_to_libraries() -> str:
    """Change what a later run imports."""
    import numpy as np

    module = os.path.dirname(np.__file__)
    opened = _tried(lambda: os.close(os.open(f"{module}/__init__.py", os.O_WRONLY)))
    return DENIED if (write(module), opened) == (DENIED, DENIED) else "got through"


def about_parent(name: str) -> str:
    """Read the warm process's environment, memory or descriptors, by both its numbers."""
    found = []
    for process in ("1", str(os.getppid())):
        path = f"/proc/{process}/{name}"
        found.append(look_into(path) if name == "fd" else read(path))
    return DENIED if set(found) == {DENIED} else "got through"


def environment(secret: str) -> str:
    """Find a secret of the launcher's environment."""
    known = [*os.environ.values(), *os.environ]
    for process in ("1", "self", str(os.getppid())):
        with contextlib.suppress(OSError):
            known.append(_read(f"/proc/{process}/environ").decode(errors="replace"))
    return "found the secret" if any(secret in text for text in known) else DENIED


def user() -> str:
    """Be root, or become it."""
    if 0 in (*os.getresuid(), *os.getresgid()):
        return "is root"
    return _tried(lambda: os.setuid(0))


def open_socket(family: int, kind: int) -> str:
    """Make a socket of any family."""
    return _tried(lambda: socket.socket(family, kind).close())


def connect(address: str, port: int) -> str:
    """Reach a server on this machine."""
    return _tried(lambda: socket.create_connection((address, port), timeout=2).close())


def connect_by_name(name: str) -> str:
    """Reach a server through an abstract name, which no mount hides."""

    def attempt() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mine:
            mine.connect(f"\0{name}")

    return _tried(attempt)


def socket_pair() -> str:
    """Make a pair of sockets, which could carry descriptors."""
    return _tried(socket.socketpair)


def fork() -> str:
    """Make another process."""

    def attempt() -> None:
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)

    return _tried(attempt)


def start_thread() -> str:
    """Make another thread."""
    return _tried(threading.Thread(target=time.sleep, args=(0,)).start)


def execute(path: str) -> str:
    """Become another program: a shell, or the interpreter again, without the fork's filter."""
    found = _tried(lambda: os.execv(path, [path]))
    return found if found != DENIED else _tried(lambda: subprocess.run([path], timeout=2))


def system_call(number: int, arguments: list[int]) -> str:
    """Ask the kernel directly, past everything that Python checks; -1 stands for the parent's number."""
    library = ctypes.CDLL(None, use_errno=True)
    told = [ctypes.c_long(os.getppid() if value == -1 else value) for value in arguments]
    result = library.syscall(ctypes.c_long(number), *told)
    if result == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        return DENIED
    return f"answered {result}, error {ctypes.get_errno() if result == -1 else 0}"


def signal_parent(number: int) -> str:
    """Stop or end the warm process, and every process in reach."""
    found = [_tried(lambda: os.kill(os.getppid(), number)), _tried(lambda: os.kill(-1, number))]
    return DENIED if set(found) == {DENIED} else "got through"


def signal_by_pipe() -> str:
    """Have the kernel send a signal to the warm process when a pipe has something to read."""
    pipes = [number for number in range(3, 256) if _is_pipe(number)]
    return _tried(lambda: [fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid()) for number in pipes])


def _is_pipe(number: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(number).st_mode)
    except OSError:
        return False


def descriptors() -> str:
    """Find a descriptor that leads anywhere but to the result."""
    pipes = 0
    null = os.stat("/dev/null").st_rdev
    for number in range(4096):
        try:
            kind = os.fstat(number)
        except OSError:
            continue
        if stat.S_ISFIFO(kind.st_mode):
            pipes += 1
        elif not (stat.S_ISCHR(kind.st_mode) and kind.st_rdev == null):
            return f"descriptor {number} is open"
    return DENIED if pipes == 1 else f"{pipes} pipes"


def other_processes() -> str:
    """Count the processes in sight."""
    found = []
    for number in range(2, 200):
        if number != os.getpid():
            with contextlib.suppress(OSError):
                os.getpgid(number)
                found.append(number)
    return f"{len(found)} in sight" if found else DENIED


def capabilities() -> str:
    """Hold any of root's powers, even inside."""
    library = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(24)
    if library.capget(struct.pack("<Ii", 0x20080522, 0), held) and ctypes.get_errno() == errno.EPERM:
        return DENIED if _tried(lambda: os.chroot("/")) == DENIED else "got through"
    effective, permitted, _, more, more_permitted, _ = struct.unpack("<6I", held.raw)
    return "holds some" if effective or permitted or more or more_permitted else DENIED


def lock() -> str:
    """Lock a file that later runs can lock too: whoever finds it locked has a message."""
    import numpy as np

    with open(np.__file__, "rb") as file:
        found = [
            _tried(lambda: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)),
            _tried(lambda: fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)),
            _tried(lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)),
        ]
    return DENIED if set(found) == {DENIED} else "got through"


def wait_for_a_call(number: int, seconds: float) -> str:
    """Sleep on a lock that lies on a page of a library, until a run in another sandbox wakes this one."""
    library, word = _shared_page()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        known, most = ctypes.c_uint32.from_address(word), struct.pack("@ll", 0, 200_000_000)
        wait = (ctypes.c_void_p(word), ctypes.c_int(0), known, most, None, ctypes.c_int(0))
        if library.syscall(ctypes.c_long(number), *wait) == 0:
            return "woken"
        if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
            return DENIED
    return "slept"


def call_others(number: int, seconds: float) -> str:
    """Wake whoever sleeps there."""
    library, word = _shared_page()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wake = (ctypes.c_void_p(word), ctypes.c_int(1), ctypes.c_int(1), None, None, ctypes.c_int(0))
        woken = library.syscall(ctypes.c_long(number), *wake)
        if woken > 0:
            return "woke another"
        if woken == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
            return DENIED
        time.sleep(0.01)
    return "called"


def _shared_page() -> tuple[ctypes.CDLL, int]:
    import numpy as np

    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    library.mmap.restype = ctypes.c_void_p
    size, readable, shared = ctypes.c_size_t(4096), 1, 1
    with open(np.__file__, "rb") as file:
        return library, library.mmap(None, size, readable, shared, file.fileno(), ctypes.c_long(0))


def raise_own_limits() -> str:
    """Lift a limit, or lower one of the warm process."""
    import resource

    most = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    found = [
        _tried(lambda: resource.setrlimit(resource.RLIMIT_CPU, most)),
        _tried(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))),
    ]
    return DENIED if set(found) == {DENIED} else "got through"


def take_memory() -> str:
    """Take memory without end."""
    kept = []
    while True:
        kept.append(bytearray(b"x") * (16 << 20))


def take_memory_quietly() -> str:
    """Take memory and catch the error, again and again; the sum stays taken."""
    kept = []
    while True:
        with contextlib.suppress(MemoryError):
            while True:
                kept.append(bytearray(b"x") * (1 << 20))
        if len(kept) > 8192:
            return "got 8 GiB"
        raise MemoryError


def take_memory_in_children(n_children: int, each: int) -> str:
    """Take memory in children, each below the limit."""
    made = 0
    for _ in range(n_children):
        try:
            child = os.fork()
        except OSError:
            continue
        made += 1
        if child == 0:
            kept = bytearray(b"x") * each
            time.sleep(60)
            os._exit(len(kept) & 1)
    if made:
        time.sleep(60)
    return f"{made} children" if made else DENIED


def bomb() -> str:
    """Fork without end."""
    made = 0
    for _ in range(2000):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
        except OSError:
            break
    return f"{made} children" if made else DENIED


def compute_without_end() -> str:
    """Use the processor without end, deaf to every signal that can be ignored."""
    for number in (signal.SIGXCPU, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        sum(range(10_000))


def sleep(seconds: float) -> str:
    """Stay without using anything."""
    time.sleep(seconds)
    return "slept on"


def give_much(size: int) -> str:
    """Return more than may come out."""
    return "x" * size


def write_result_without_end() -> str:
    """Write to the result's descriptor directly, without end."""
    for number in filter(_is_pipe, range(3, 256)):
        with contextlib.suppress(OSError):
            while True:
                os.write(number, b"x" * 65536)
    return DENIED


def fill_scratch(size: int) -> str:
    """Write more files and bytes into scratch than it has room for."""

    def attempt() -> None:
        for number in range(64):
            with open(f"/scratch/{number}", "wb") as file:
                file.write(b"x" * (size // 16))

    return _tried(attempt)


def fill_scratch_with_names(most: int) -> str:
    """Make empty files without end: they take no room in scratch and much in the kernel."""
    for number in range(40 * most):
        os.close(os.open(f"/scratch/{number}", os.O_CREAT | os.O_WRONLY))
    return f"{40 * most} files"


def leave() -> str:
    """Leave files, changed flags and libraries, a variable and a directory that resists, for the next run."""
    import pandas as pd

    pd.DataFrame.mean = None  # type: ignore[assignment, method-assign]
    os.environ["LEFT"] = "1"
    sys.modules["left"] = sys
    for stream in (0, 1, 2):
        with contextlib.suppress(OSError):
            fcntl.fcntl(stream, fcntl.F_SETFL, fcntl.fcntl(stream, fcntl.F_GETFL) | os.O_NONBLOCK)
    for name in ("left", "unlinked"):
        with open(f"/scratch/{name}", "w") as file:
            file.write("left")
    os.unlink("/scratch/unlinked")
    os.makedirs("/scratch/a/b")
    os.chmod("/scratch/a", 0)
    return DENIED


def find_what_was_left() -> str:
    """Look for it."""
    import pandas as pd

    found = [
        pd.DataFrame.mean is None,
        "LEFT" in os.environ,
        "left" in sys.modules,
        bool(os.listdir("/scratch")),
    ]
    return "found something" if any(found) else DENIED


def marks() -> dict[str, object]:
    """Everything we know that could count runs, or that one run could set for the next."""
    with open("/scratch/new", "w") as file:
        number = os.fstat(file.fileno()).st_ino
    os.unlink("/scratch/new")
    room = os.statvfs("/scratch")
    streams = (0, 1, 2)
    return {
        "process numbers": [
            os.getpid(),
            os.getppid(),
            threading.get_native_id(),
            os.getpgid(0),
            os.getsid(0),
        ],
        "numbers of files": [os.stat("/scratch").st_ino, number],
        "room in scratch": [room.f_bfree, room.f_ffree],
        "flags of streams": [fcntl.fcntl(stream, fcntl.F_GETFL) for stream in streams],
        "places in streams": [os.lseek(stream, 0, os.SEEK_CUR) for stream in streams],
        "places in memory": _addresses(),
        "random numbers": [random.random(), _drawn()],
    }


def _addresses() -> list[int]:
    # What earlier runs made the warm process keep or move would shift what is made now. Python's own places
    # for things below 512 bytes also depend on what is drawn at random when a run starts.
    kept = [bytearray(size) for size in (600, 1_000, 2_000, 10_000, 100_000, 1_000_000)]
    return [ctypes.addressof(ctypes.c_char.from_buffer(part)) - id(None) for part in kept]


def _drawn() -> float:
    import numpy as np

    return float(np.random.random())  # noqa: NPY002  # the generator that runs share by name


def speak(secret: str) -> str:
    """Say a secret on every stream there is."""
    print(secret)  # noqa: T201  # the attempt
    print(secret, file=sys.stderr)  # noqa: T201
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.write(number, secret.encode())
    return DENIED


def hide(way: str, secret: str) -> None:
    """Write the result by hand, with a secret beside its values: in a type, or where no table shows it."""
    pa = import_module("pyarrow")

    column, told = pa.array([0]), {"told": secret}
    if way == "a time zone":
        column = pa.array([0], pa.timestamp("s", secret))
    elif way == "a field of a struct":
        column = pa.array([{secret: 0}])
    elif way == "a category":
        column = pa.DictionaryArray.from_arrays([0], [secret])
    schema = pa.schema([pa.field("n", column.type, metadata=told)], metadata=told)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.table([column], schema=schema))
    table = bytes(sink.getvalue())
    header = json.dumps({"status": "done", "values": None, "tables": [["result", len(table)]]}).encode()
    content = b"".join([b"UNDERSTUDY-RESULT-1\n", struct.pack("<Q", len(header)), header, table])
    for number in filter(_is_pipe, range(3, 256)):
        os.write(number, content)
    os._exit(0)


def fail_loudly(secret: str) -> str:
    """Carry a secret out in an error's name and message."""
    raise type(f"Error{secret}", (Exception,), {})(secret)
