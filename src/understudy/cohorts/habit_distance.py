"""AJS: how far the habits of a synthetic cohort lie from those of the real one (0 best, 1 worst).

Ito, Hsu and Ogata (2026, section IV-D, equations 13 to 15) describe each learner's series in
a window by six numbers: median, mean, standard deviation, variance, maximum and root mean square
over the weeks. For each label, window and number, the Jensen-Shannon divergence in bits between
the learners of both cohorts is taken, and all are averaged. The formulas are lost in our text;
these choices are ours:

- Distributions are histograms with 20 equal bins over declared bounds, never over bounds found in
  the data. With minutes from 0 to H, median, mean, maximum and root mean square lie in [0, H], the
  standard deviation (over all weeks, not T - 1) in [0, H / 2] and the variance in [0, (H / 2)^2].
- Every label counts the same, whatever its number of learners. A label that has real learners and
  no synthetic ones counts 1; one without real learners does not count.

Two samples of one population do not reach 0: with 40 learners per label and 20 bins the histograms
differ by chance, so compare with the AJS of a second real cohort where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.errors import DataError

Floats = NDArray[np.float64]

N_BINS = 20
DIMENSIONS = ("median", "mean", "sd", "variance", "maximum", "rms")


@dataclass(frozen=True)
class Divergences:
    """Jensen-Shannon divergences in bits: `values` is labels x windows x dimensions.

    `labels`, `windows` and `DIMENSIONS` name the axes.
    """

    values: Floats
    labels: tuple[str, ...]
    windows: tuple[str, ...]

    @property
    def ajs(self) -> float:
        """The average of all."""
        return float(self.values.mean())

    def to_json(self) -> dict[str, Any]:
        """The averages for a machine, over all and by each axis."""
        axes = {"by_label": self.labels, "by_window": self.windows, "by_dimension": DIMENSIONS}
        result: dict[str, Any] = {"ajs": self.ajs}
        for axis, (key, names) in enumerate(axes.items()):
            others = tuple(other for other in range(3) if other != axis)
            means = self.values.mean(axis=others)
            result[key] = {name: float(mean) for name, mean in zip(names, means, strict=True)}
        return result


def ajs(real: Cohort, synthetic: Cohort, n_bins: int = N_BINS) -> float:
    """Average Jensen-Shannon divergence of a synthetic cohort from the real one."""
    return divergences(real, synthetic, n_bins).ajs


def divergences(real: Cohort, synthetic: Cohort, n_bins: int = N_BINS) -> Divergences:
    """The divergence of each label, window and dimension."""
    if real.schema.features != synthetic.schema.features or real.schema.labels != synthetic.schema.labels:
        raise DataError(
            "the cohorts have different features or labels.", hint="compare cohorts of the same cohort.toml."
        )
    if not real.n_learners:
        raise DataError("the real cohort has no learners.", hint="compare with a cohort that has some.")
    upper = _upper_bounds(real)
    numbers_real, numbers_synthetic = descriptions(real), descriptions(synthetic)
    labels = [label for label in range(real.schema.n_labels) if (real.label == label).any()]
    values = np.ones((len(labels), *upper.shape))
    for row, label in enumerate(labels):
        counts = _histograms(numbers_real[real.label == label], upper, n_bins)
        if (synthetic.label == label).any():
            others = _histograms(numbers_synthetic[synthetic.label == label], upper, n_bins)
            values[row] = jensen_shannon(counts, others)
    return Divergences(
        values,
        tuple(real.schema.labels[label] for label in labels),
        tuple(feature.name for feature in real.schema.features),
    )


def descriptions(cohort: Cohort) -> Floats:
    """The six numbers of each learner and window: learners x windows x `DIMENSIONS`."""
    series = cohort.values
    return np.stack(
        [
            np.median(series, axis=2),
            series.mean(axis=2),
            series.std(axis=2),
            series.var(axis=2),
            series.max(axis=2),
            np.sqrt((series**2).mean(axis=2)),
        ],
        axis=2,
    )


def jensen_shannon(first: Floats, second: Floats) -> Floats:
    """Jensen-Shannon divergence in bits between histograms along the last axis."""
    p = first / first.sum(axis=-1, keepdims=True)
    q = second / second.sum(axis=-1, keepdims=True)
    middle = (p + q) / 2

    def bits(law: Floats) -> Floats:
        ratio = np.divide(law, middle, out=np.ones_like(law), where=law > 0)
        total: Floats = (law * np.log2(ratio)).sum(axis=-1)
        return total

    return np.clip((bits(p) + bits(q)) / 2, 0.0, 1.0)


def _upper_bounds(cohort: Cohort) -> Floats:
    """Windows x dimensions: a series in [0, H] has a variance of at most (H / 2)^2 (Popoviciu 1935)."""
    high = cohort.schema.highs
    return np.stack([high, high, high / 2, (high / 2) ** 2, high, high], axis=1)


def _histograms(numbers: Floats, upper: Floats, n_bins: int) -> Floats:
    """Counts of learners per bin: windows x dimensions x bins; the last bin holds its upper edge."""
    place = np.minimum((numbers / upper * n_bins).astype(np.int64), n_bins - 1)
    counts: Floats = (place[..., None] == np.arange(n_bins)).sum(axis=0).astype(np.float64)
    return counts
