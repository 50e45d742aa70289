"""Whether something became slower: `make bench`, and `make bench ACCEPT=1` to accept what it says.

Every figure is a multiple of the same unit on the same machine, a share of a peer's time or a peak of memory, and is
compared with the one that was accepted last (`accepted.json`). It takes a few minutes; other programs may run, since
processor time is counted, but a machine that is busy makes everything slower, the unit less than the rest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.jobs import JOBS
from benchmarks.measuring import unit_seconds
from benchmarks.ratios import UNIT, Accepted, compare


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="accept the figures of this run")
    parser.add_argument("--only", choices=JOBS, nargs="+", default=list(JOBS), help="run these jobs only")
    chosen = parser.parse_args()
    measured = {}
    for job in chosen.only:
        # Again for every job: a machine gets warm, and others come and go.
        unit = unit_seconds()
        print(f"{job}: the unit ({UNIT}) takes {unit:.3f} s")
        with tempfile.TemporaryDirectory() as folder:
            for name, figure in JOBS[job](unit, Path(folder)):
                measured[name] = figure
                print(f"  {figure:10.3g}  {name}", flush=True)
    accepted = Accepted.read()
    found = compare(accepted, measured)
    print("\n".join(found.lines()))
    if chosen.accept:
        accepted.updated(measured).write()
        print("Accepted.")
        return 0
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
