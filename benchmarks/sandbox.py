"""Runs a second of a small analysis in the sandbox: `python benchmarks/sandbox.py`."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import numpy as np
import polars as pl

from understudy.sandbox import Job, Sandbox

N_LEARNERS, N_RUNS, N_WORKERS = 120, 300, 2
CODE = """
import time
def analyse(habits):
    means = habits.groupby("school", as_index=False)["minutes"].mean()
    return {"means": means, "cpu_seconds": time.process_time()}
"""


def table() -> bytes:
    rng = np.random.default_rng(0)
    habits = pl.DataFrame(
        {
            "learner": [f"simulated-{place}" for place in range(N_LEARNERS)],
            "school": rng.choice(["north", "south", "west"], N_LEARNERS),
            "minutes": rng.gamma(2.0, 20.0, N_LEARNERS),
        }
    )
    stream = io.BytesIO()
    habits.write_ipc_stream(stream, compat_level=pl.CompatLevel.oldest())
    return stream.getvalue()


def cpu_seconds(process: int) -> float:
    counters = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(counters[11]) + int(counters[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    job = Job(CODE, "analyse", tables={"habits": table()})
    began = time.perf_counter()
    with Sandbox(workers=N_WORKERS) as sandbox:
        started = time.perf_counter() - began
        sandbox.run_many([job] * 10)
        warm = [worker._warm for worker in sandbox._workers]
        forking = -sum(cpu_seconds(process) for process in warm)
        outside = -time.process_time()
        load = os.getloadavg()[0]
        began = time.perf_counter()
        outcomes = sandbox.run_many([job] * N_RUNS)
        seconds = time.perf_counter() - began
        forking += sum(cpu_seconds(process) for process in warm)
        outside += time.process_time()
    assert all(outcome.status == "done" for outcome in outcomes)
    inside = sum(outcome.values["cpu_seconds"] for outcome in outcomes)
    print(
        f"Sandbox: {N_RUNS / seconds:.0f} runs a second of {N_LEARNERS} learners with {N_WORKERS} workers "
        f"(load {load:.1f} on {os.cpu_count()} cores); open after {started:.1f} s"
    )
    parts = {"fork": forking, "run up to its result": inside, "outside": outside}
    told = ", ".join(f"{name} {1e3 * part / N_RUNS:.1f} ms" for name, part in parts.items())
    print(f"Processor time for a run: {told}")


if __name__ == "__main__":
    main()
