"""What each module of tests costs in processor time, and the order that keeps every worker busy to the end.

The table is measured with `python -m pytest -n 2 --dist loadfile -p tests.support.processor_time`, which rewrites
the lines of the modules that ran. A line that is out of date costs a little time and breaks nothing.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/processor_times.txt"

_TICKS = os.sysconf("SC_CLK_TCK")
_spent: Counter[str] = Counter()


def known_times() -> dict[str, float]:
    """Seconds by module."""
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    return {path: float(seconds) for seconds, path in map(str.split, lines)}


def longest_first(items: list[pytest.Item]) -> None:
    """Sort by module, the longest first and a new one in the middle; the order inside a module stays."""
    times = known_times()
    usual = mean(times.values()) if times else 0.0

    def cost(item: pytest.Item) -> tuple[float, str]:
        module = item.nodeid.split("::")[0]
        return -times.get(module, usual), module

    items.sort(key=cost)


def _children(pid: str) -> Iterator[str]:
    for path in Path("/proc", pid, "task").glob("*/children"):
        for child in path.read_text().split():
            yield child
            yield from _children(child)


def _so_far() -> float:
    """Seconds of this process, of those it waited for and of those that still run: browsers, servers, sandboxes."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + ended.ru_utime + ended.ru_stime
    try:
        for child in _children("self"):
            fields = Path("/proc", child, "stat").read_text().rsplit(")", 1)[1].split()
            total += sum(map(int, fields[11:15])) / _TICKS
    except OSError:  # one ended meanwhile: it is counted next time
        pass
    return total


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Charge the module with what a test took, fixtures included."""
    before = _so_far()
    result = yield
    _spent[item.nodeid.split("::")[0]] += max(_so_far() - before, 0.0)
    return result


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its times over; whoever has them all writes the table."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["processor_times"] = dict(_spent)
    elif _spent:
        times = {**known_times(), **_spent}
        lines = sorted(
            ((seconds, path) for path, seconds in times.items() if (ROOT / path).exists()), reverse=True
        )
        TABLE.write_text("".join(f"{seconds:.1f} {path}\n" for seconds, path in lines), encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what a worker measured."""
    _spent.update(getattr(node, "workeroutput", {}).get("processor_times", {}))
