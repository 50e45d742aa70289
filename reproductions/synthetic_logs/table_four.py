"""Measures Table 4 of Vie, Rigaux and Minn (2022) with the recurrent network: on our log, on theirs, on a stand-in.

Each table is written a method at a time, so that what is measured stays when the next method takes long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproductions.pages import DATA, tables_of, write_rows
from reproductions.synthetic_logs.samples import Row, keep, keep_shares, measure_halves, real_half
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.vocabulary import DUOLINGO_SHAPE
from understudy.logs.trial import Split, attacker_knowledge
from understudy.logs.utility import Real

TABLES = tables_of("synthetic_logs")
LOG = DATA / "assistments2009.csv.gz"
# The learners whom the authors trained on; the other half is not to be had.
PUBLISHED_HALF = DATA / "assistments2009_published_half.csv.gz"

RATIOS = ("0", "0.25", "0.5", "0.75", "0.99", "0.999")
BASELINES = (*(f"drop:{ratio}" for ratio in RATIOS), "markov")
PRIVATE = ("runs-dp:epsilon=8", "runs-dp:epsilon=2")
# What the paper does not have.
OURS = ("runs", *PRIVATE)
# The authors go on until a hundred epochs bring no gain, which takes more than an hour; these are four stages of 25.
AS_PUBLISHED = "gru:as=published:epochs=25"
LEARNED = "gru:outcomes=learned"
# A vocabulary of thousands makes an epoch several times as long.
LONG_NETWORK = "gru:epochs=5"

N_HALVES = 3
N_SAMPLES = 10
# A third of the learners: matching all subsequences takes the square of their number.
N_LONG = 400


def measure_published_half() -> None:
    """The errors on the very learners whom the authors trained on."""
    half = real_half(read_log(PUBLISHED_HALF).declare())
    _measure("published-half", [half], (*BASELINES, "gru", AS_PUBLISHED, LEARNED, *OURS), N_SAMPLES)


def measure_samples() -> None:
    """Random halves of our log, several samples of each fit; the network is attacked without refits."""
    log = read_log(LOG).declare()
    knowledge = attacker_knowledge(log)
    halves = [Split(log, seed, knowledge=knowledge) for seed in range(N_HALVES)]
    methods = ("drop:0", "drop:0.5", "markov", "gru", *OURS)
    rows = _measure("samples", halves, methods, N_SAMPLES, attacked=["gru", "runs"])
    shown = [row for row in rows if row["method"] in ("markov", "gru")]
    keep_shares(TABLES / "shares.csv", halves[0].real, shown)


def measure_long() -> None:
    """All eight columns on three simulated logs of Duolingo's shape; errors and two attacks also at its full size."""
    halves = [Split(long_log(seed), seed) for seed in range(1, N_HALVES + 1)]
    _measure("duolingo-shape", halves, (*BASELINES, *PRIVATE), 2, attacked=(*BASELINES, *PRIVATE))
    _measure("duolingo-shape", halves[:1], [LONG_NETWORK], 2, attacked=[LONG_NETWORK])
    whole = [Split(long_log(seed, DUOLINGO_SHAPE.n_learners), seed) for seed in range(1, N_HALVES + 1)]
    _measure("duolingo-full", whole, (*BASELINES, *PRIVATE), 1, attacked=["drop:0.99", "drop:0.999"])


def measure_entropy() -> None:
    """The share of learners whom the published entropy limit sets aside, by the paper's rule and by ours."""
    logs = {"ASSISTments, ours": read_log(LOG), "ASSISTments, their half": read_log(PUBLISHED_HALF)}
    logs["Duolingo's shape, simulated"] = DUOLINGO_SHAPE.simulate(np.random.default_rng(1))
    rows = []
    for name, log in logs.items():
        knowledge = Knowledge(log, log.n_learners // 2)
        by_paper, by_us = 1 - knowledge.enough_entropy.mean(), 1 - knowledge.judged.mean()
        rows.append((name, log.n_learners, f"{by_paper:.4f}", f"{by_us:.4f}"))
    write_rows(TABLES / "entropy.csv", ("log", "n_learners", "by_paper", "by_us"), rows)


def long_log(seed: int, n_learners: int = N_LONG) -> Interactions:
    """A simulated log of Duolingo's shape with a third of its learners, its words declared."""
    return DUOLINGO_SHAPE.simulate(np.random.default_rng(seed)).select(np.arange(n_learners)).declare()


def _measure(
    name: str,
    halves: Sequence[Split | Real],
    methods: Sequence[str],
    n_samples: int,
    attacked: Sequence[str] = (),
) -> list[Row]:
    rows = []
    for method in methods:
        rows += measure_halves(halves, [method], n_samples, attacked=attacked)
        keep(TABLES / f"{name}.csv", rows)
    return rows
