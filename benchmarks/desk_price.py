"""Seconds of a request's checks and price, part by part, for 120 learners: `python benchmarks/desk_price.py`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.privacy.noise import os_noise
from understudy.desk.disclosure.examination import examine
from understudy.desk.disclosure.probing import probe
from understudy.desk.domain.analysis import Analysis
from understudy.desk.domain.learners import learner_table
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.desk.risk.pricing import ShadowAnswers, bank_for, price_of, shadow_answers
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadows import N_SHADOWS
from understudy.sandbox import Sandbox

N_LEARNERS, N_WORKERS, N_RELEASED = 120, 2, 3
CODE = """
def analyze(data):
    windows = ["morning", "afternoon", "evening", "overnight"]
    minutes = {w: data.filter(like=w + "_").sum(axis=1) for w in windows}
    return {
        "by achievement": {w: minutes[w].groupby(data["achievement"]).mean().to_dict() for w in windows},
        "all": {w: float(minutes[w].mean()) for w in windows},
    }
"""


@contextmanager
def timed(part: str, seconds: dict[str, tuple[float, float]]) -> Iterator[None]:
    """Seconds by the clock, and of this process, which other work on the machine does not lengthen."""
    began, spent = time.perf_counter(), time.process_time()
    yield
    seconds[part] = time.perf_counter() - began, time.process_time() - spent


def main() -> None:
    cohort = School(n_learners=N_LEARNERS).simulate(0, np.random.default_rng(0))
    summary = noisy_summary(cohort, propose(cohort.schema, N_LEARNERS, 3.0, 1e-4), os_noise())
    table = learner_table(cohort.to_frame(), np.random.default_rng(1))
    analysis, seconds = Analysis(CODE), dict[str, tuple[float, float]]()
    load = os.getloadavg()[0]
    with timed("open the sandbox", seconds):
        sandbox = Sandbox(workers=N_WORKERS).__enter__()
    try:
        with timed("runs without single learners, pairs and triples", seconds):
            answer, probes = probe(analysis, table, sandbox, np.random.default_rng(3))
        assert isinstance(answer, Results)
        assert probes is not None
        with timed("checks", seconds):
            found = examine(answer, probes, answer, CODE, Policy(), n_learners=N_LEARNERS)
        with timed("draw the shadows", seconds):
            bank = bank_for(table, 1, N_SHADOWS)
        with timed(f"{N_SHADOWS} runs", seconds):
            new = shadow_answers(analysis, table, bank, answer, found.units, sandbox)
    finally:
        sandbox.close()
    assert np.isfinite(new.values).mean() > 0.99
    with timed("stage one's sums", seconds):
        stage_one = StageOne.of(summary, table)
    released = [
        ShadowAnswers(new.names, new.values + np.random.default_rng(place).normal(size=new.values.shape))
        for place in range(N_RELEASED)
    ]
    with timed("game alone", seconds):
        price_of(new, [], bank, np.random.default_rng(2))
    with timed(f"games alone and with stage one and {N_RELEASED} released requests", seconds):
        prices = price_of(new, released, bank, np.random.default_rng(2), stage_one)
    print(
        f"Checks and price of {len(new.names)} numbers about {N_LEARNERS} learners, {N_WORKERS} workers "
        f"(load {load:.1f} before, {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores)"
    )
    for part, (took, spent) in seconds.items():
        print(f"  {took:6.2f} s  {part} ({spent:.2f} s of this process)")
    total = sum(took for took, _ in seconds.values()) - seconds["game alone"][0]
    print(f"  {total:6.2f} s  in all, with the games played once")
    for name, found in (("alone", prices.own), ("together", prices.together)):
        mu = found.mu
        print(f"  mu {mu.value:.2f} ({mu.low:.2f} to {mu.high:.2f}) {name}, by the {found.attacker} attacker")


if __name__ == "__main__":
    main()
