"""What follows from a summary's noisy sums: ratios that people read, each with its uncertainty.

All of it is post-processing and costs nothing. The seed's proportion of zeros per window and label
(two-stage-sharing, section IV-B2) is among it: through the matrix of products it has an eighth of the
noise of a table that is measured label by label, since all learners bear on every number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.cohorts.summary.summary_file import Floats, PrivateSummary


def zero_shares(summary: PrivateSummary) -> tuple[Floats, Floats] | None:
    """Share of weeks without activity, labels by features, and its standard deviation; None if not measured.

    A straight line through the labels: 1 - (mean + slope (code - mean code)), from `levels`, `labels` and
    `habits`. Values are not cut to [0, 1] and not shrunk: the noise is what it is.
    """
    if not {"levels", "labels", "habits"} <= set(summary.statistics):
        return None
    n, n_features = float(summary.n_learners), summary.schema.n_features
    counts = np.maximum(summary.statistics["labels"].values, 1.0)
    shares = counts / counts.sum()
    habits, levels = summary.statistics["habits"], summary.statistics["levels"]
    context = habits.context
    codes = np.array(context["label_codes"])
    scale, centre = np.array(context["scale_active"]), np.array(context["centre_active"])
    mean_code = float(shares @ codes)
    variance = max(float(shares @ codes**2) - mean_code**2, 0.05)
    sd = np.asarray(habits.noise_sd)
    rows = slice(1, n_features + 1)
    by_products = centre + scale * habits.values[0, rows] / (n * float(context["constant"]))
    by_products_sd = scale * sd[0, rows] / (n * float(context["constant"]))
    by_levels = float(levels.context["middle"][0]) + levels.values[:, 0] / n
    by_levels_sd = np.broadcast_to(levels.noise_sd, levels.values.shape)[:, 0] / n
    weight = by_levels_sd**2 / (by_levels_sd**2 + by_products_sd**2)
    mean = weight * by_products + (1.0 - weight) * by_levels
    mean_sd = by_levels_sd * by_products_sd / np.sqrt(by_levels_sd**2 + by_products_sd**2)
    factor = n * float(context["label_factor"])
    slope = (habits.values[rows, -1] / factor - (mean - centre) / scale * mean_code) * scale / variance
    slope_sd = sd[rows, -1] / factor * scale / variance
    off = (codes - mean_code)[:, None]
    return 1.0 - (mean + slope * off), np.sqrt(mean_sd**2 + (slope_sd * off) ** 2)


def derived(summary: PrivateSummary) -> dict[str, Any]:
    """For a prompt or a page: the readable numbers, with their uncertainty beside them."""
    found = zero_shares(summary)
    if found is None:
        return {}
    values, sd = found
    return {
        "zero_shares": {
            "meaning": "share of weeks with the value 0, estimated from levels, labels and habits",
            "axes": [summary.schema.label, "feature"],
            "names": [list(summary.schema.labels), [one.name for one in summary.schema.features]],
            "values": np.round(values, 4).tolist(),
            "sd": np.round(sd, 4).tolist(),
        }
    }
