"""Instructions of the kernels, counted by valgrind's callgrind: they hardly differ, however busy a machine is.

Times of short kernels differ by a tenth from run to run, instructions by less than a thousandth, so a small loss is
seen, too. All kernels are compiled for one level of processor (x86-64-v3), so that counts hardly depend on the machine;
they do on the versions of numba and numpy, which `constraints.txt` fixes. The tolerance (`accepted.json`) is for what
numpy and the C library do with a few calls, which differs between machines.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.kernels import KERNELS
from reproductions.pages import ROOT
from understudy.errors import MissingError


def count_kernels() -> dict[str, float]:
    """The instructions of every kernel."""
    counts = count([f"{name}=1" for name in KERNELS])
    return {name.removesuffix("=1"): count for name, count in counts.items()}


def count(kernels: Iterable[str]) -> dict[str, float]:
    """The instructions of kernels by name and size, such as `walks=2`."""
    if shutil.which("valgrind") is None:
        raise MissingError(
            "instructions are not counted: valgrind is not installed.",
            hint="sudo apt-get install valgrind",
            code="no-valgrind",
        )
    if platform.machine() != "x86_64":
        raise MissingError(
            f"instructions are not counted: this is {platform.machine()}, and they are those of x86_64.",
            hint="count them on another machine.",
            code="no-valgrind",
        )
    kernels = list(kernels)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "NUMBA_CPU_NAME": "x86-64-v3",
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": folder,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        }
        program = [sys.executable, "-m", "benchmarks.kernels", *kernels]
        out = Path(folder, "callgrind")
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        # Once without valgrind, under which compiling takes minutes: it finds what was compiled in the cache.
        for words in (program, [*valgrind, *program]):
            subprocess.run(words, env=environment, cwd=ROOT, check=True, capture_output=True)
        found = dict(_count_of(path.read_text("utf-8")) for path in Path(folder).glob("callgrind.*"))
    assert set(found) == set(kernels), f"callgrind counted {sorted(found)}"
    return {name: found[name] for name in kernels}


def _count_of(dump: str) -> tuple[str, float]:
    """The name and the count of a dump."""
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", dump, re.MULTILINE)
    total = re.search(r"^totals: (\d+)$", dump, re.MULTILINE)
    assert name is not None
    assert total is not None
    return name[1], float(total[1])
