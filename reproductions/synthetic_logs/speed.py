"""How long it takes to read a log, to fit a generator, to draw a log and to write it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from reproductions.pages import DATA, tables_of, write_rows
from understudy.core.files.writing import write_table
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.vocabulary import DUOLINGO_SHAPE

STEPS = ("read", "fit", "sample", "write")
COLUMNS = ("log", "method", "n_rows", "n_sampled", *STEPS, "waited", "load")


def measure_speed() -> None:
    """The chain on a log of Duolingo's size, the network on half of ASSISTments; seconds of one core."""
    half = read_log(DATA / "assistments2009_published_half.csv.gz")
    long_log = DUOLINGO_SHAPE.simulate(np.random.default_rng(1))
    warm_up = ["markov", "markov-dp:epsilon=8"]
    list(timed("", half, warm_up))  # what is compiled at first use is compiled here
    rows = [
        *timed("Duolingo's shape", long_log, warm_up),
        *timed("ASSISTments, their half", half, [*warm_up, "gru"]),
    ]
    write_rows(tables_of("synthetic_logs") / "speed.csv", COLUMNS, rows)


def timed(name: str, log: Interactions, methods: Iterable[str]) -> Iterable[tuple[object, ...]]:
    """Seconds of processor time of each step from file to file, and what passed on the clock, with the load."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "log.csv"
        write_table(log.to_polars(), source, kind="a copy for the measurement of time")
        for method in methods:
            rng = np.random.default_rng(1)
            load, clock, laps = os.getloadavg()[0], time.perf_counter(), [time.process_time()]
            again = read_log(source).declare()
            laps.append(time.process_time())
            fitted = parse_generator(method).fit(again, rng, seeded_noise(rng))
            laps.append(time.process_time())
            synthetic = fitted.sample(None, rng)
            laps.append(time.process_time())
            write_table(synthetic.to_polars(), Path(folder) / "synthetic.csv", kind="synthetic")
            laps.append(time.process_time())
            waited = time.perf_counter() - clock
            figures = [f"{seconds:.2f}" for seconds in (*np.diff(laps), waited, load)]
            yield (name, method, log.n_rows, synthetic.n_rows, *figures)
