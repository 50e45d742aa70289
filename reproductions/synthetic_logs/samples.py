"""Several synthetic logs from each fit of a generator, measured as in Table 4 of Vie, Rigaux and Minn (2022).

A single log scatters, in its unweighted error most of all, so every fit is sampled more than once. The first log of a
fit is attacked with every attack that needs no refits: a network takes too long for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from reproductions.pages import rows_of, write_rows
from understudy.core.engine import progress
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.audit import judged_risk, membership_scores
from understudy.logs.description import describe
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.trial import Split
from understudy.logs.utility import METRICS, Comparison, Real

MEASURED = ("rmse", "wrmse", "wrmse_centred", "action_tv", "transition_tv", "length_ks", "repeats_ks")
DESCRIBED = ("repeats_median", "repeats_max", "length_min", "length_median", "length_max")
ATTACKED = ("auc_lcs", "auc_lcs_published", "auc_worst", "auc_worst_low", "auc_worst_high", "tpr_at_1pct")
COLUMNS = (
    *("method", "n_fits", "n_samples", "strongest", "rmse_low", "rmse_high"),
    *(*MEASURED, *DESCRIBED, *ATTACKED),
)
Row = dict[str, Any]


def measure_halves(
    halves: Sequence[Split | Real], methods: Iterable[str], n_samples: int, *, attacked: Iterable[str] = ()
) -> list[Row]:
    """A row per method: means over fits to each half and samples of each fit."""
    methods, attacked = list(methods), set(attacked)
    rows = []
    with progress.task("Fitting and sampling", len(halves) * len(methods)) as task:
        for method in methods:
            fits = []
            for number, half in enumerate(halves):
                fits.append(_measure_fit(half, method, number, n_samples, attack=method in attacked))
                task.advance()
            rows.append(_summarised(method, fits))
    return rows


def keep(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, in place of those that the table has of the same methods."""
    kept: dict[str, Row] = {row["method"]: {**row} for row in rows_of(path)} if path.exists() else {}
    kept |= {row["method"]: row for row in rows}
    write_rows(path, COLUMNS, [[_written(row.get(name, "")) for name in COLUMNS] for row in kept.values()])


def keep_shares(path: Path, training: Real, rows: Iterable[Row]) -> None:
    """Write the shares of actions, most frequent first: in the training half, and in one log of each method."""
    order = np.argsort(-training.shares, kind="stable")
    columns = {row["method"]: row["shares"][order] for row in rows}
    table = np.column_stack([training.shares[order], *columns.values()])
    written = [(rank, *(f"{share:.5f}" for share in shares)) for rank, shares in enumerate(table, 1)]
    write_rows(path, ("rank", "training", *map(str, columns)), written)


def real_half(log: Interactions) -> Real:
    """A training half whose other half nobody has: constant actions are judged on it alone, as the authors do."""
    return Real(log, log.select(np.empty(0, dtype=np.int64)))


def rng_of_fit(method: str, number: int) -> np.random.Generator:
    """Randomness of a method's fit to a half of this number, whatever else is measured."""
    return np.random.default_rng([number, *method.encode()])


def sampled(
    training: Interactions, method: str, n_samples: int, rng: np.random.Generator
) -> Iterator[Interactions]:
    """Synthetic logs of one fit of a method."""
    fitted = parse_generator(method).fit(training, rng, seeded_noise(rng))
    for _ in range(n_samples):
        yield fitted.sample(None, rng).recode(training.actions)


def _measure_fit(half: Split | Real, method: str, number: int, n_samples: int, *, attack: bool) -> list[Row]:
    real = half.real if isinstance(half, Split) else half
    rng = rng_of_fit(method, number)
    rows: list[Row] = []
    for sample, synthetic in enumerate(sampled(real.training, method, n_samples, rng)):
        comparison, facts = Comparison(real, synthetic), describe(synthetic)
        row: Row = {metric.name: metric.compute(comparison) for metric in METRICS if metric.name in MEASURED}
        row |= {name: getattr(facts, name) for name in DESCRIBED}
        row["shares"] = np.bincount(synthetic.action, minlength=synthetic.n_actions) / synthetic.n_rows
        if attack and isinstance(half, Split) and sample == 0:
            row |= _attacked(half, synthetic, rng)
        rows.append(row)
    return rows


def _attacked(half: Split, synthetic: Interactions, rng: np.random.Generator) -> Row:
    scores = membership_scores(half.knowledge, synthetic, None)
    risk = judged_risk(half.knowledge, half.member, scores, rng)
    found = {estimate.attack: estimate.auc for estimate in risk.estimates}
    return {
        "auc_lcs": found["lcs"],
        "auc_lcs_published": found["lcs-published"],
        "auc_worst": risk.worst.auc,
        "auc_worst_low": risk.low,
        "auc_worst_high": risk.high,
        "tpr_at_1pct": risk.most_found.tpr_at_1pct,
        "strongest": risk.worst.attack,
    }


def _summarised(method: str, fits: list[list[Row]]) -> Row:
    rows = [row for fit in fits for row in fit]
    attacks = sorted({str(row["strongest"]) for row in rows if "strongest" in row})
    errors = [row["rmse"] for row in rows]
    summary: Row = {
        "method": method,
        "n_fits": len(fits),
        "n_samples": len(rows),
        "strongest": " and ".join(attacks),
        "rmse_low": min(errors),
        "rmse_high": max(errors),
        "shares": fits[0][0]["shares"],
    }
    for name in (*MEASURED, *DESCRIBED, *ATTACKED):
        values = [row[name] for row in rows if name in row]
        if values:
            summary[name] = fmean(values)
    return summary


def _written(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value
