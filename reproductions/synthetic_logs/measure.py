"""Measures the tables and figures of synthetic logs."""

from __future__ import annotations

import altair as alt
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from reproductions.pages import DATA, tables_of, write_rows
from understudy.core.pages.figures import MUTED, WARNING, Figure, data
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.audit import MEMBERSHIP_ATTACKS
from understudy.logs.description import describe
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.reading import read_log
from understudy.logs.release.report import shares_figure
from understudy.logs.simulate import DUOLINGO_SHAPE, RARE_PATHS, Classroom
from understudy.logs.study import StudyOptions, study
from understudy.logs.study_report import tradeoff

LOG = DATA / "assistments2009.csv.gz"
TABLES = tables_of("synthetic_logs")
RATIOS = ("0", "0.25", "0.5", "0.75", "0.99", "0.999")
METHODS = (*(f"drop:{ratio}" for ratio in RATIOS), "markov")
PRIVATE_METHODS = ("drop:0.5", "markov", *(f"markov-dp:epsilon={e}" for e in (1, 2, 4, 8)))
ATTACKED_METHODS = ("drop:0.5", "markov", "markov-dp:epsilon=8")
N_LONG = 600
LONG_METHODS = ("drop:0", "drop:0.5", "drop:0.75", "drop:0.99", "markov")


def measure_published() -> None:
    """The published methods on ASSISTments and on a log of Duolingo's shape."""
    log = read_log(LOG)
    summaries = study(log, METHODS).summaries
    _keep(summaries, "assistments")
    tradeoff(summaries).save(TABLES, "tradeoff")
    _describe(log)
    # Half of the learners: matching all subsequences takes the square of their number.
    long_log = DUOLINGO_SHAPE.simulate(np.random.default_rng(1)).select(np.arange(N_LONG))
    few = StudyOptions(n_seeds=1, n_shadows=8)
    _keep(study(long_log, LONG_METHODS, few).summaries, "duolingo-shape")


def measure_private() -> None:
    """The private generator beside the baselines, and every attack on three logs, of which one is small and hard."""
    summaries = study(read_log(LOG), PRIVATE_METHODS, seeds=5).summaries
    _keep(summaries, "private")
    tradeoff(summaries).save(TABLES, "private")
    found = {"ASSISTments": [summary for summary in summaries if summary["method"] in ATTACKED_METHODS]}
    for name, shape in (("classroom", Classroom()), ("rare paths", RARE_PATHS)):
        log = shape.simulate(np.random.default_rng(1))
        found[name] = study(log, ATTACKED_METHODS, seeds=5).summaries
    columns = [f"auc_{attack.replace('-', '_')}" for attack in MEMBERSHIP_ATTACKS]
    columns += ["auc_chance", "auc_transcript", "tpr_at_1pct", "tpr_chance_high"]
    rows = [
        (name, summary["method"], *(f"{summary[c]:.3f}" if c in summary else "" for c in columns))
        for name, log_summaries in found.items()
        for summary in log_summaries
    ]
    write_rows(TABLES / "attacks.csv", ("log", "method", *columns), rows)


def _keep(summaries: list[dict[str, object]], name: str) -> None:
    columns = [
        *(
            "rmse",
            "wrmse",
            "wrmse_centred",
            "action_tv",
            "transition_tv",
            "auc_lcs",
            "auc_lcs_published",
            "auc_worst",
        ),
        *("auc_worst_low", "auc_worst_high", "auc_chance", "auc_chance_low", "auc_chance_high"),
        *("auc_transcript", "tpr_at_1pct", "tpr_at_1pct_low", "tpr_at_1pct_high", "tpr_chance_high"),
        *("auc_attribute", "attribute_advantage"),
    ]
    rows = []
    for summary in summaries:
        attacks = " and ".join(summary["worst_attacks"])  # type: ignore[arg-type]
        numbers = [f"{summary[c]:.3f}" if c in summary else "" for c in columns]
        rows.append((summary["method"], attacks, *numbers))
    write_rows(TABLES / f"{name}.csv", ("method", "strongest", *columns), rows)


_DESCRIBED = (
    *("n_rows", "n_learners", "n_actions", "repeats_median", "repeats_max"),
    *("length_min", "length_median", "length_max", "n_always_right", "n_always_wrong"),
)


def _describe(log: Interactions) -> None:
    """The size of the log (the paper's Table 2), its actions and its abilities (Figures 1 and 3)."""
    description = describe(log)
    write_rows(TABLES / "description.csv", _DESCRIBED, [[getattr(description, name) for name in _DESCRIBED]])
    rng = np.random.default_rng(1)
    half = log.select(rng.permutation(log.n_learners)[: log.n_learners // 2])
    synthetic = parse_generator("markov").fit(half, rng, seeded_noise(rng)).sample(None, rng)
    shares_figure(half, synthetic).save(TABLES, "actions")
    _ability_figure(fit_rasch(half).ability).save(TABLES, "abilities")


def _ability_figure(ability: NDArray[np.float64]) -> Figure:
    heights, edges = np.histogram(ability, bins=40, density=True)
    bars = [
        {"from": float(a), "to": float(b), "density": float(h)}
        for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)
    ]
    at = np.linspace(edges[0], edges[-1], 200)
    law = norm.pdf(at, ability.mean(), ability.std())
    curve = [{"ability": float(x), "density": float(y)} for x, y in zip(at, law, strict=True)]
    x = alt.X("from:Q", title="estimated ability (log-odds)")
    histogram = alt.Chart(data(bars)).mark_bar(color=MUTED).encode(x=x, x2="to:Q", y="density:Q")
    normal = alt.Chart(data(curve)).mark_line(color=WARNING).encode(x="ability:Q", y="density:Q")
    words = (
        f"Histogram of abilities with a normal law of mean {ability.mean():.2f}, spread {ability.std():.2f}."
    )
    return Figure.of((histogram + normal).properties(width=520, height=220), words)


PARTS = {"published": measure_published, "private": measure_private}
