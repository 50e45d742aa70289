"""`make bench`: jobs, comparisons with peers, and instructions of the kernels.

It says what became slower since the last accepted run (`accepted.json`; `make bench ACCEPT=1` accepts this one), writes
`results.json`, and renders docs/explanation/benchmarks.md from it. Processor time is counted, so other programs may
run, but a busy machine makes everything slower, the unit less than the rest. A part that is left out, or that cannot be
measured here, keeps what was measured before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.accepted import UNITS, Accepted, compare
from benchmarks.instructions import count_kernels
from benchmarks.jobs import JOBS
from benchmarks.measuring import unit_seconds
from benchmarks.page import write_page
from benchmarks.peers import COMPARISONS
from benchmarks.results import Part, Ratio, Results
from understudy.errors import UnderstudyError

INSTRUCTIONS = "instructions"
PARTS = [*JOBS, INSTRUCTIONS, *COMPARISONS]


def measure(name: str, folder: Path) -> dict[str, Any]:
    """The figures of a part, as `results.json` keeps them."""
    if name in JOBS:
        # Again for every job: a machine gets warm, and others come and go.
        unit = unit_seconds()
        print(f"  the unit ({UNITS['times']}) takes {unit:.3f} s")
        return {"times": dict(show_figure(*figure) for figure in JOBS[name](unit, folder))}
    if name == INSTRUCTIONS:
        return {"instructions": dict(show_figure(*figure) for figure in count_kernels().items())}
    found: dict[str, Any] = {}
    for figure in COMPARISONS[name](folder):
        print(f"  {figure}", flush=True)
        found.setdefault("ratios" if isinstance(figure, Ratio) else "rates", []).append(vars(figure))
    return found


def show_figure(name: str, figure: float) -> tuple[str, float]:
    print(f"  {figure:10.4g}  {name}", flush=True)
    return name, figure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="accept the figures of this run")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure these parts only")
    chosen = parser.parse_args()
    results = Results.read()
    measured: dict[str, dict[str, float]] = {"times": {}, "instructions": {}}
    for name in chosen.only:
        print(f"{name}:", flush=True)
        part = Part.begin()
        try:
            with tempfile.TemporaryDirectory() as folder:
                found = measure(name, Path(folder))
        except UnderstudyError as error:
            print(f"  skipped: {error.message} {error.hint}")
            results.skip(name, error.message)
        else:
            results.keep(name, part, found)
            for kind in measured:
                measured[kind] |= found.get(kind, {})
        # After each part, so that a run that is stopped is not lost.
        results.write()
        write_page(results)
    ok = True
    for kind, figures in measured.items():
        if figures:
            accepted = Accepted.read(kind)
            found = compare(accepted, figures)
            print("\n".join(found.lines()))
            ok = ok and found.ok
            if chosen.accept:
                accepted.updated(figures).write(kind)
    if chosen.accept:
        print("Accepted.")
    return 0 if ok or chosen.accept else 1


if __name__ == "__main__":
    sys.exit(main())
