"""`python -m benchmarks.scale`: how time and memory grow from one to ten to a hundred million rows.

It simulates logs (500,000 learners and 1,000 actions at the largest), runs commands on them, and writes
docs/explanation/scale.csv and the table and picture of docs/explanation/scale.md. Half an hour on two free cores and
10 GB of disk; nothing else should run, since seconds are those of the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from reproductions.pages import ROOT, markdown_table, rows_of, write_rows
from understudy.core.pages.figures import MUTED, Figure, data

TABLE = ROOT / "docs/explanation/scale.csv"
PAGE = ROOT / "docs/explanation/scale.md"
FIGURES = ROOT / "docs/explanation/scale"
BEGIN, END = "<!-- sizes -->", "<!-- end of sizes -->"
# Learners by millions of rows: each has 200 rows in the mean.
SIZES = {1: 5_000, 10: 50_000, 100: 500_000}
_SYNTHESIZE = ["synthesize", "{log}", "-o", "{out}.parquet", "-m"]
COMMANDS = {
    "inspect": ["inspect", "{log}"],
    "synthesize -m markov": [*_SYNTHESIZE, "markov", "--seed", "7"],
    "synthesize -m markov-dp:epsilon=8": [*_SYNTHESIZE, "markov-dp:epsilon=8"],
    "synthesize -m runs-dp:epsilon=8": [*_SYNTHESIZE, "runs-dp:epsilon=8"],
    "release": ["release", "{log}", "-o", "{out}"],
}
COLUMNS = ("command", "million_rows", "seconds", "processor_seconds", "gigabytes")


def run(arguments: list[str]) -> dict[str, float]:
    """Seconds, processor seconds and the largest memory of a command."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "understudy", *arguments]
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            messages.seek(0)
            raise SystemExit(messages.read().decode()[-2000:])
    return {
        "seconds": time.perf_counter() - begin,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "gigabytes": used.ru_maxrss * 1024 / 1e9,
    }


def measure(folder: Path, sizes: list[int], commands: list[str]) -> None:
    """Run the commands on logs of these sizes, and write what they took."""
    for size in sizes:
        log = folder / f"{size}m.parquet"
        if not log.exists():
            run(
                ["simulate", str(log), "--learners", str(SIZES[size]), "--actions", "1000", "--length", "195"]
            )
        for name in commands:
            with tempfile.TemporaryDirectory(dir=folder) as out:
                parts = [part.format(log=log, out=f"{out}/fake") for part in COMMANDS[name]]
                found = run([*parts, "--public-actions"])
            print(f"{size} million rows, {name}: {found}", flush=True)
            keep(name, size, found)


def keep(command: str, size: int, found: dict[str, float]) -> None:
    """Put a measurement into the table, in place of an older one."""
    rows = {(row["command"], row["million_rows"]): list(row.values()) for row in rows_of(TABLE)}
    rows[command, str(size)] = [command, str(size), *(f"{value:.2f}" for value in found.values())]
    order = [(name, str(each)) for name in COMMANDS for each in SIZES]
    write_rows(TABLE, COLUMNS, [rows[place] for place in order if place in rows])


def render() -> str:
    """The page with the table as it was measured."""
    by_command: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows_of(TABLE):
        by_command.setdefault(row["command"], {})[row["million_rows"]] = row
    lines = []
    for command, sizes in by_command.items():
        cells = [f"{_rounded(row['seconds'])} s, {float(row['gigabytes']):.1f} GB" for row in sizes.values()]
        seconds = [float(row["seconds"]) for row in sizes.values()]
        growth = ", ".join(f"{later / before:.1f}" for before, later in pairwise(seconds))
        lines.append([f"`{command}`", *cells, *[""] * (len(SIZES) - len(cells)), growth])
    header = ["command", *(f"{size} million rows" for size in SIZES), "ten times the rows, times the seconds"]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{markdown_table(header, lines)}\n{END}{after}"


def _rounded(seconds: str) -> str:
    return f"{float(seconds):.1f}" if float(seconds) < 10 else f"{float(seconds):.0f}"


def picture() -> Figure:
    """Seconds by rows, both logarithmic; what grows with the rows is a line as steep as the dashed one."""
    import altair as alt

    rows = [
        {
            "command": row["command"],
            "rows": 1e6 * float(row["million_rows"]),
            "seconds": float(row["seconds"]),
        }
        for row in rows_of(TABLE)
    ]
    ends = [1e6, 1e8]
    least = min(row["seconds"] for row in rows)
    guide = [{"rows": size, "seconds": least * size / ends[0]} for size in ends]
    x = alt.X(
        "rows:Q",
        scale=alt.Scale(type="log"),
        title="rows",
        axis=alt.Axis(format="~s", values=[1e6, 1e7, 1e8]),
    )
    y = alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds on two cores")
    color = alt.Color(
        "command:N",
        sort=list(COMMANDS),
        legend=alt.Legend(orient="top", columns=1, title=None, labelLimit=400),
    )
    chart = alt.layer(
        alt.Chart(data(guide)).mark_line(color=MUTED, strokeDash=[5, 4]).encode(x=x, y=y),
        alt.Chart(data(rows)).mark_line(point=True).encode(x=x, y=y, color=color),
    )
    return Figure.of(
        chart, "Seconds of each command at 1, 10 and 100 million rows; the table above has the figures."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--folder", type=Path, help="where logs are simulated, and kept (default: a temporary one)"
    )
    parser.add_argument("--sizes", type=int, choices=list(SIZES), nargs="+", default=list(SIZES))
    parser.add_argument("--only", choices=list(COMMANDS), nargs="+", default=list(COMMANDS))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(chosen.folder or Path(temporary), chosen.sizes, chosen.only)
    PAGE.write_text(render(), encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    picture().save(FIGURES, "sizes")


if __name__ == "__main__":
    main()
