"""What the sandbox is made of on this machine: the trees it sees, and bubblewrap's arguments."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from understudy.core.extras import install_hint
from understudy.errors import MissingError

LIBRARIES = ("numpy", "pandas", "scipy", "statsmodels", "sklearn", "lingam", "pyarrow")
RUNTIME = "/runtime"
_SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32")
_SYSTEM_LINKS = ("/lib", "/lib32", "/lib64", "/libx32")
_SMALL_FILES = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_IMPORT_BYTES = 16 << 20
# Above every range that distributions and containers hand out, below the largest signed number.
_UNUSED_USERS = range(2_000_000_000, 2_100_000_000)
_MAPS = ("/proc/self/uid_map", "/proc/self/gid_map")
_STAGES = ("/mnt", "/srv", "/media", "/run")


@dataclass(frozen=True)
class Tree:
    """A file or directory of this machine and where it is inside."""

    source: str
    inside: str


@dataclass(frozen=True)
class Runtime:
    """The interpreter and its libraries, as they lie here and inside."""

    trees: tuple[Tree, ...]
    interpreter: str
    sites: tuple[str, ...]


def find_runtime() -> Runtime:
    """The running interpreter with its standard library, and the directories with the libraries of a run."""
    interpreter = Path(sys.executable).resolve()
    inside = f"{RUNTIME}/bin/{interpreter.name}"
    trees = [Tree(str(interpreter), inside)]
    base = Path(sys.base_prefix).resolve()
    bound: dict[Path, str] = {}
    for name in dict.fromkeys(("lib", sys.platlibdir)):
        if (base / name).is_dir():
            bound[base / name] = f"{RUNTIME}/{name}"
    sites: list[str] = []
    for library in LIBRARIES:
        spec = importlib.util.find_spec(library)
        if spec is None or not spec.submodule_search_locations:
            raise MissingError(
                f"the sandbox needs {library}, which is not installed.",
                hint=install_hint("sandbox"),
            )
        site = Path(spec.submodule_search_locations[0]).resolve().parent
        above = next((tree for tree in bound if site.is_relative_to(tree)), None)
        if above is None:
            bound[site] = f"{RUNTIME}/site-{len(bound)}"
            sites.append(bound[site])
        elif (place := str(Path(bound[above]) / site.relative_to(above))) not in sites:
            sites.append(place)
    trees += [Tree(str(source), place) for source, place in bound.items()]
    return Runtime(tuple(trees), inside, tuple(sites))


def bubblewrap() -> str:
    """Where bubblewrap is."""
    found = shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin")
    if found is None:
        raise MissingError(
            "the sandbox needs bubblewrap, which is not installed here.",
            hint="install it (Debian, Ubuntu, Fedora: the package bubblewrap), or use a machine that has it.",
        )
    return found


def stage() -> str:
    """Where root makes the interpreter reachable, in a mount namespace of its own."""
    return next((place for place in _STAGES if os.path.isdir(place)), "/tmp")


def unprivileged() -> tuple[int, int]:
    """The user that root becomes before anything is started: one that no account and no other sandbox has.

    Where few users exist (in a container of an unprivileged user) it is `nobody`, as other services may be.
    """
    fresh = _UNUSED_USERS.start + secrets.randbelow(len(_UNUSED_USERS))
    if all(_exists(fresh, mapping) for mapping in _MAPS):
        return fresh, fresh
    return 65534, 65534


def _exists(number: int, mapping: str) -> bool:
    """Whether this user namespace knows the user or group."""
    try:
        ranges = [line.split() for line in Path(mapping).read_text().splitlines()]
    except OSError:
        return False
    return any(int(start) <= number < int(start) + int(length) for start, _, length in ranges)


def bubblewrap_arguments(
    runtime: Runtime, *, program: int, outer_filter: int, status: int, as_root: bool
) -> list[str]:
    """All arguments of bubblewrap; the numbers are descriptors."""
    arguments = [
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--disable-userns", "--new-session", "--as-pid-1", "--clearenv"),
        *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
        # For the namespaces of each run; the run gives it up before it looks at its job.
        *("--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"),
    ]
    for path in _SYSTEM:
        if os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    for path in _SYSTEM_LINKS:
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    for path in _SMALL_FILES:
        arguments += ["--ro-bind-try", path, path]
    for path in _DEVICES:
        arguments += ["--dev-bind", path, path]
    for place, tree in enumerate(runtime.trees):
        arguments += ["--ro-bind", f"{stage()}/{place}" if as_root else tree.source, tree.inside]
    # No /proc and no /dev/shm: what is not there cannot be read or filled.
    arguments += [
        *("--perms", "0444", "--ro-bind-data", str(program), f"{RUNTIME}/inside.py"),
        # For imports only; every run mounts its own over it.
        *("--perms", "0700", "--size", str(_IMPORT_BYTES), "--tmpfs", "/scratch"),
        *("--remount-ro", "/", "--chdir", "/scratch"),
        *("--seccomp", str(outer_filter), "--json-status-fd", str(status)),
    ]
    for name, value in _environment().items():
        arguments += ["--setenv", name, value]
    return arguments


def _environment() -> dict[str, str]:
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS", "ARROW")
    return {
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "HOME": "/scratch",
        "TMPDIR": "/scratch",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "LD_LIBRARY_PATH": f"{RUNTIME}/lib",
        # The order of a set of texts would differ from one warm process to the next.
        "PYTHONHASHSEED": "0",
    }
