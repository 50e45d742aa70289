"""The inside of the sandbox: a warm process that imports once and forks for every run.

A program of its own: it is handed into the sandbox by descriptor and imports nothing of Understudy. The warm
process never reads a job and never learns how a run ended, so that a run finds nothing of an earlier one in
the memory it inherits; the job goes from a sealed descriptor to the child, the result through a pipe to the
outside, past the warm process.
Every child has a process namespace and a scratch directory of its own: its number, its files' numbers and the
room it finds are the same in every run, so that no run can count the runs before it or leave them a message.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import traceback
import warnings
from base64 import b64decode
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

SCRATCH = "/scratch"
SUBMITTED = "<submitted>"
MAGIC = b"UNDERSTUDY-RESULT-1\n"
_SET_DUMPABLE, _SET_SECCOMP, _NO_NEW_PRIVILEGES, _AMBIENT = 4, 22, 38, 47
_FILTER_MODE, _CLEAR_AMBIENT, _CAPABILITIES_VERSION = 2, 4, 0x20080522
# CLONE_PIDFD and CLONE_CHILD_SETTID, which tell parent and child who they are.
_TOLD = 0x01001000
# CLONE_NEWPID and CLONE_NEWNS; nosuid, nodev and noexec. The filter of the warm process allows only these.
_APART = 0x20020000
_SCRATCH_FLAGS = 2 | 4 | 8
IMPORTED = (
    *("scipy.optimize", "scipy.stats", "statsmodels.api", "statsmodels.formula.api"),
    *("sklearn.cluster", "sklearn.decomposition", "sklearn.ensemble", "sklearn.linear_model"),
    *("sklearn.metrics", "sklearn.mixture", "sklearn.model_selection", "sklearn.preprocessing"),
    "lingam",
)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class _Hindrance(MetaPathFinder):
    """Hides polars: a library of formulas would import it, and it starts threads, which no fork survives.

    Puts off semopy, with the algebra system below it a quarter of all imports: one function of lingam uses it.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname == "polars":
            raise ModuleNotFoundError("polars is not in the sandbox", name=fullname)
        if fullname != "semopy":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


class _TooMuch(Exception):
    """The result is larger than it may be."""


def main() -> None:
    """Serve runs until the outside closes the control socket."""
    control = _only_descriptor(int(sys.argv[1]))
    _process_control(_SET_DUMPABLE, 0)
    _process_control(_NO_NEW_PRIVILEGES, 1)
    # Process 1 gets only the signals that it handles; python would handle this one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = json.loads(control.recv(1 << 17))
    sys.path.extend(settings["sites"])
    _import_everything()
    run_filter = b64decode(settings["run_filter"])
    _put_on(b64decode(settings["warm_filter"]))
    gc.collect()
    gc.freeze()
    gc.disable()
    control.send(json.dumps({"apart": _can_part(settings["clone"])}).encode())
    # The kernel buries the children; this process does not see what became of them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    clone = settings["clone"]
    del settings
    while True:
        _serve(control, clone, run_filter)
        # What was frozen is not looked at: this takes no time, and memory does not drift from run to run.
        gc.collect()


def _serve(control: socket.socket, clone: int, run_filter: bytes) -> None:
    """One run. All that is made here is gone at the end, and the next child finds the memory as this one did."""
    message, descriptors, *_ = socket.recv_fds(control, 4096, 2)
    if not message:
        os._exit(0)
    job, result = descriptors
    child = _forked(clone)
    if child is None:
        try:
            control.close()
            # Counts from zero, whatever the warm process has made and dropped.
            gc.freeze()
            gc.enable()
            _run(job, result, json.loads(message), run_filter)
        finally:
            os._exit(70)
    os.close(job)
    os.close(result)
    _wait(child, control)
    control.send(b"ended")


def _forked(clone: int) -> int | None:
    """Fork into new namespaces of processes and mounts: None for the child, for the parent its descriptor.

    The child is process 1, as its parent is. What the C library notes at a fork is that number, and locks of
    other threads, of which there are none; what Python notes is done here. The child's number in the parent's
    namespace counts the runs, and is not looked at: it would lie in the memory that later runs inherit.
    """
    python = ctypes.pythonapi
    python.syscall.restype = None
    child, own_number = ctypes.c_int(-1), ctypes.c_int(0)
    python.PyOS_BeforeFork()
    python.syscall(
        ctypes.c_long(clone),
        ctypes.c_ulong(_APART | _TOLD | signal.SIGCHLD),
        ctypes.c_ulong(0),
        *(ctypes.byref(child), ctypes.byref(own_number)),
        ctypes.c_ulong(0),
    )
    if own_number.value:
        python.PyOS_AfterFork_Child()
        return None
    python.PyOS_AfterFork_Parent()
    if child.value < 0:
        raise OSError("the kernel refused namespaces for a run")
    return child.value


def _can_part(clone: int) -> bool:
    """Whether a child gets its namespaces and its scratch here."""
    try:
        child = _forked(clone)
    except OSError:
        return False
    if child is None:
        try:
            _own_scratch(4096, 16)
            os._exit(0)
        finally:
            os._exit(70)
    ended = os.waitid(os.P_PIDFD, child, os.WEXITED)
    os.close(child)
    return ended is not None and ended.si_status == 0


def _only_descriptor(number: int) -> socket.socket:
    """The control socket; everything else that was inherited is closed, standard streams go nowhere."""
    _own_streams()
    os.closerange(3, number)
    os.closerange(number + 1, 4096)
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=number)


def _import_everything() -> None:
    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, _Hindrance())
    import numpy as np
    import pandas as pd

    for name in IMPORTED:
        import_module(name)
    pa = import_module("pyarrow")
    pa.set_cpu_count(1)
    # First use imports and compiles more; once here is cheaper than in every run.
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    frame.groupby("b")["a"].mean()
    frame_from(_table_bytes(frame))
    np.random.default_rng(0).normal(size=3)
    warnings.resetwarnings()


def _wait(child: int, control: socket.socket) -> None:
    """Until the run has ended. The kernel ends its namespaces with it; the outside ends it at its limits."""
    poll = select.poll()
    poll.register(child, select.POLLIN)
    poll.register(control.fileno(), select.POLLIN)
    for ready, _ in poll.poll():
        if ready != child:
            os._exit(0)  # nothing is sent during a run: the outside is gone
    os.close(child)


def _own_scratch(size: int, files: int) -> None:
    """An empty scratch that ends with this process."""
    options = f"size={size},nr_inodes={files},mode=0700".encode()
    library = ctypes.CDLL(None, use_errno=True)
    flags = ctypes.c_ulong(_SCRATCH_FLAGS)
    if library.mount(b"scratch", SCRATCH.encode(), b"tmpfs", flags, options):
        raise OSError(ctypes.get_errno(), "the kernel refused a scratch directory")


def _no_capabilities() -> None:
    """Give up what the namespaces needed. Nothing gives it back: no program can be started any more."""
    _process_control(_AMBIENT, _CLEAR_AMBIENT)
    header, none = struct.pack("<Ii", _CAPABILITIES_VERSION, 0), bytes(24)
    if ctypes.CDLL(None, use_errno=True).capset(header, none):
        raise OSError(ctypes.get_errno(), "the kernel refused to give up capabilities")


def _own_streams() -> None:
    """Standard streams opened again: the flags of an inherited one would be seen by the next run."""
    nowhere = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _run(job: int, result: int, limits: dict[str, Any], run_filter: bytes) -> None:
    """The child: narrow first, then look at the job."""
    _own_scratch(limits["scratch_bytes"], limits["scratch_files"])
    _own_streams()
    _no_capabilities()
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, 128),
        (resource.RLIMIT_FSIZE, limits["scratch_bytes"]),
        (resource.RLIMIT_NPROC, limits["processes"] + 1),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_AS, limits["address_bytes"]),
    ):
        resource.setrlimit(kind, (value, value))
    # Writing past the limit is an error in the submitted code, not the end of its process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.chdir(SCRATCH)
    _put_on(run_filter)
    try:
        content = run_job(job, limits["output_bytes"])
    except _TooMuch:
        content = packed({"status": "output"}, [], limits["output_bytes"])
    except BaseException as error:
        content = packed(described(error), [], limits["output_bytes"])
    view = memoryview(content)
    while view:
        view = view[os.write(result, view) :]
    os._exit(0)


def run_job(job: int, most: int) -> bytes:
    """Call the function that the job asks for; its result as bytes."""
    import inspect
    import random

    import numpy as np
    import pandas as pd

    content = _whole(job)
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    start = 8 + size
    keywords = dict(header["arguments"])
    for name, length in header["tables"]:
        keywords[name] = frame_from(content[start : start + length])
        start += length
    random.seed(header["seed"])
    np.random.seed(header["seed"] % 2**32)  # noqa: NPY002  # for code that uses numpy's old global generator
    # Submitted code expects to be a module, and some libraries look it up by name.
    space: dict[str, Any] = {"__name__": "submitted", "__builtins__": __builtins__}
    exec(compile(header["code"], SUBMITTED, "exec"), space)  # noqa: S102  # what the sandbox is for
    entry = space[header["entry"]]
    if "rng" in inspect.signature(entry).parameters:
        keywords["rng"] = np.random.default_rng(header["seed"])
    answer = entry(**keywords)
    if isinstance(answer, pd.DataFrame):
        answer = {"result": answer}
    frames: dict[str, Any] = {}
    if isinstance(answer, dict):
        frames = {str(name): part for name, part in answer.items() if isinstance(part, pd.DataFrame)}
        answer = {name: part for name, part in answer.items() if not isinstance(part, pd.DataFrame)}
    tables = {name: _table_bytes(frame) for name, frame in frames.items()}
    listed = [[name, len(table)] for name, table in tables.items()]
    return packed({"status": "done", "values": _plain(answer), "tables": listed}, list(tables.values()), most)


def packed(header: dict[str, Any], tables: list[bytes], most: int) -> bytes:
    """A result as bytes, or that it is too large."""
    text = json.dumps(header).encode()
    content = b"".join([MAGIC, struct.pack("<Q", len(text)), text, *tables])
    if len(content) > most:
        raise _TooMuch
    return content


def described(error: BaseException) -> dict[str, Any]:
    """The error's type and line. Its message may quote data and stays here."""
    if isinstance(error, MemoryError):
        return {"status": "memory"}
    known = [kind.__name__ for kind in type(error).__mro__]
    line = None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == SUBMITTED:
            line = frame.lineno
    if line is None and isinstance(error, SyntaxError):
        line = error.lineno
    return {"status": "error", "error_types": known, "error_line": line}


def _plain(value: Any) -> Any:
    """The value with numpy's and pandas' numbers and arrays as Python's."""
    import numpy as np
    import pandas as pd

    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, pd.Series | pd.Index):
        return _plain(value.to_list())
    if isinstance(value, np.generic):
        return value.item()
    if value is pd.NA or value is pd.NaT:
        return None
    return value


def frame_from(content: bytes) -> Any:
    """A data frame from the bytes of an Arrow file."""
    pa = import_module("pyarrow")

    if content[:6] == b"ARROW1":
        table = pa.ipc.open_file(content, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
    else:
        table = pa.ipc.open_stream(content, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
    return table.to_pandas(use_threads=False)


def _table_bytes(frame: Any) -> bytes:
    pa = import_module("pyarrow")

    # What a table is grouped by is its index with a name: a column for whoever reads it.
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    table = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1)
    for place, column in enumerate(table.columns):
        kind = column.type
        if pa.types.is_dictionary(kind):
            table = table.set_column(place, table.field(place).name, column.cast(kind.value_type))
        elif pa.types.is_null(kind):
            table = table.set_column(place, table.field(place).name, column.cast(pa.string()))
        elif pa.types.is_timestamp(kind) and kind.tz not in (None, "UTC"):
            # The same moments. A zone's name is free text, and the outside takes no other.
            table = table.set_column(
                place, table.field(place).name, column.cast(pa.timestamp(kind.unit, "UTC"))
            )
    table = table.replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(use_threads=False)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _whole(descriptor: int) -> bytes:
    parts = []
    place = 0
    while part := os.pread(descriptor, 1 << 24, place):
        parts.append(part)
        place += len(part)
    os.close(descriptor)
    return b"".join(parts)


def _process_control(option: int, value: int, more: Any = None) -> None:
    number = ctypes.c_ulong
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, number(value), number(0) if more is None else more, number(0), number(0)):
        raise OSError(ctypes.get_errno(), "the kernel refused to narrow this process")


def _put_on(instructions: bytes) -> None:
    program = _Program(len(instructions) // 8, instructions)
    _process_control(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program))


if __name__ == "__main__":
    main()
