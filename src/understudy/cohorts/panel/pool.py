"""Draws a cohort from the panel's pool, label by label, with the shares of the private summary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort, Schema
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.errors import UsageError

Floats = NDArray[np.float64]

# Rows of each label by each panelist, as in the seed (section IV-B2).
N_EACH = 1000


def label_shares(summary: PrivateSummary) -> Floats:
    """The share of each label by the summary's noisy counts; equal ones when it has no counts.

    The number of learners is public, so the counts are moved to add up to it. What the noise could have
    made is shrunk towards equal shares: the excesses have the variance sd^2 + tau^2 in n_labels - 1
    dimensions, and tau^2 / (sd^2 + tau^2) of them is kept (empirical Bayes by moments).
    """
    n_labels = summary.schema.n_labels
    equal = np.full(n_labels, 1.0 / n_labels)
    found = summary.statistics.get("labels")
    if found is None or found.values.shape != equal.shape:
        return equal
    excess = found.values - found.values.mean()
    noise = float(np.mean(np.square(found.noise_sd))) * (n_labels - 1)
    size = float((excess**2).sum())
    kept = max(0.0, 1.0 - noise / size) if size > 0 else 0.0
    counts = np.maximum(summary.n_learners / n_labels + kept * excess, 0.0)
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def counts_of(shares: Floats, n_learners: int) -> list[int]:
    """Whole numbers that add up to `n_learners` and are nearest to the shares (largest remainders)."""
    exact = shares * n_learners
    counts = np.floor(exact).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n_learners - int(counts.sum())]] += 1
    return [int(count) for count in counts]


def rows_needed(counts: Sequence[int], n_each: int) -> int:
    """How many rows of each label every panelist has to give: `n_each`, or as many as are drawn of a label.

    The shares are noisy, so nobody can tell beforehand how many of a label are drawn; all panelists but
    one may be dropped. Up to the usual number of rows more are made without asking; beyond it the
    scripts' time limits, which are for 1,000 rows, are the user's to stretch.
    """
    most = max(counts)
    if most > max(n_each, N_EACH):
        raise UsageError(
            f"{most:,} learners of one label would be drawn; each panelist gives {n_each:,} of each label.",
            hint=f"ask for --per-panelist {sum(counts)}, which is enough whatever the labels' shares are, "
            "or for fewer --learners.",
        )
    return max(n_each, most)


def draw_cohort(
    pools: Sequence[Sequence[Floats]], counts: Sequence[int], schema: Schema, rng: np.random.Generator
) -> Cohort:
    """`counts` learners of each label without replacement from `pools[panelist][label]`, in random order."""
    rows, labels = [], []
    for label, count in enumerate(counts):
        pool = np.concatenate([tables[label] for tables in pools])
        rows.append(pool[rng.choice(len(pool), count, replace=False)])
        labels.append(np.full(count, label, dtype=np.int8))
    order = rng.permutation(sum(counts))
    values = np.concatenate(rows)[order].reshape(-1, schema.n_features, schema.n_weeks)
    return Cohort(values, np.concatenate(labels)[order], schema)
