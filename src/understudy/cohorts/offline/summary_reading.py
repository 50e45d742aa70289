"""What a private summary says about learners, with what its noise could have made shrunk towards none.

Part of every offline panelist's script; needs numpy and scipy only, and nothing but the summary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit, logit, ndtr
from scipy.stats import binom

Floats = NDArray[np.float64]


def shrunk(found: Floats, sd: Floats, towards: float | Floats = 0.0) -> Floats:
    """Empirical Bayes: what the noise could have made is pulled towards `towards`.

    The spread of the true values is what is left of the spread found when that of the noise is taken
    away; where nothing is left, everything becomes `towards`.
    """
    sd = np.maximum(sd, 1e-12)
    off = found - towards
    weight = 1.0 / sd**2
    true = max(0.0, float((weight * (off**2 - sd**2)).sum() / weight.sum()))
    return np.asarray(towards + off * true / (true + sd**2), dtype=np.float64)


def weighted_mean(found: Floats, sd: Floats) -> float:
    """The mean with weights of one over the variance of the noise."""
    weight = 1.0 / np.maximum(sd, 1e-12) ** 2
    return float((weight * found).sum() / weight.sum())


def sure_mean(found: Floats, sd: Floats, belief: float = 0.0) -> float:
    """The weighted mean, pulled towards `belief` as far as the noise could have made it differ."""
    sd_of_mean = np.array([1.0 / np.sqrt((np.maximum(sd, 1e-12) ** -2.0).sum())])
    return float(shrunk(np.array([weighted_mean(found, sd)]), sd_of_mean, belief)[0])


def combined(*estimates: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Several estimates (value, standard deviation) of the same, weighted by their precision."""
    weight = sum(1.0 / np.maximum(sd, 1e-12) ** 2 for _, sd in estimates)
    value = sum(found / np.maximum(sd, 1e-12) ** 2 for found, sd in estimates)
    return np.asarray(value / weight), np.asarray(1.0 / np.sqrt(weight))


def statistic(summary: dict[str, Any], name: str) -> tuple[Floats, Floats] | None:
    """Values and noise of a statistic per learner, or None where it was not released."""
    if name not in summary["statistics"]:
        return None
    one = summary["statistics"][name]
    n_learners = float(summary["n_learners"])
    values = np.array(one["values"], dtype=np.float64) / n_learners
    sd = np.broadcast_to(np.array(one["noise_sd"], dtype=np.float64), values.shape) / n_learners
    return values, sd


def context(summary: dict[str, Any], name: str) -> dict[str, Any]:
    """The public numbers that belong to a statistic."""
    return dict(summary["statistics"][name]["context"])


def read_summary(summary: dict[str, Any], label: str) -> dict[str, Any]:
    """What is believed about the learners of a cohort; what was not measured gets a plain default.

    F features, T weeks, 2 F habits of a learner: the share of active weeks of each feature, then the mean
    of l of its active weeks, where l = log(1 + value) / log(1 + bound). `between` is how much learners
    differ in them (standard deviation of the habit itself, not of its estimate from T weeks), `effect`
    how much a habit rises with the label, per unit of its code from -1 to 1, `standing` the label's code
    less its mean, and `correlation` is that of the habits among learners of the same label.
    """
    schema = summary["schema"]
    highs = np.array([feature["high"] for feature in schema["feature"]], dtype=np.float64)
    n_features, n_weeks, n_labels = len(highs), int(schema["weeks"]), len(schema["labels"])
    codes = 2.0 * np.arange(n_labels) / (n_labels - 1) - 1.0
    shares = _label_shares(summary, n_labels)
    moments = _moments(summary, n_features, codes, shares)
    bins, sketch, active, size, total = _sizes(summary, moments, n_features)
    week = _week(summary, n_weeks)
    stays = _stays(summary, active, week, n_features, n_weeks)
    within, size_stays = _within(summary, active, total, n_weeks)
    between, effect, correlation = _habits(moments, active, within, stays, total, n_weeks)
    # What was measured is the mean over weeks, in which learners with many active weeks count more.
    rest = between**2 - effect**2 * moments["label_variance"]
    both = np.sqrt(np.maximum(rest[:n_features] * rest[n_features:], 0.0)) * np.diag(correlation, n_features)
    both = both + effect[:n_features] * effect[n_features:] * moments["label_variance"]
    size = size - np.clip(both / active, -0.1, 0.1)
    return {
        "columns": list(schema["columns"]),
        "highs": highs,
        "n_features": n_features,
        "n_weeks": n_weeks,
        "standing": float(codes[list(schema["labels"]).index(label)] - shares @ codes),
        "label_variance": moments["label_variance"],
        "active": active,
        "size": size,
        "within": within,
        "between": between,
        "effect": effect,
        "correlation": correlation,
        "week": _week_logits(week, active),
        "stays": stays,
        "size_stays": size_stays,
        "bins": bins,
        "sketch": sketch,
    }


def _label_shares(summary: dict[str, Any], n_labels: int) -> Floats:
    found = statistic(summary, "labels")
    if found is None:
        return np.full(n_labels, 1.0 / n_labels)
    shares = shrunk(found[0], found[1], 1.0 / n_labels)
    shares = np.maximum(shares, 0.3 / n_labels)
    return np.asarray(shares / shares.sum())


def _moments(summary: dict[str, Any], n_features: int, codes: Floats, shares: Floats) -> dict[str, Any]:
    """Second moments of learners' habits from the matrix of products, in units of its scaled habits."""
    n = 2 * n_features
    mean_code = float(shares @ codes)
    label_variance = max(float(shares @ codes**2) - mean_code**2, 0.05)
    found = statistic(summary, "habits")
    if found is None:
        return {"known": False, "label_variance": label_variance}
    numbers = context(summary, "habits")
    values, sd = found
    factor, constant = float(numbers["label_factor"]), float(numbers["constant"])
    mean, mean_sd = values[0, 1 : n + 1] / constant, sd[0, 1 : n + 1] / constant
    # A mean that is mostly noise must not enter as its square.
    sure = shrunk(mean, mean_sd)
    return {
        "known": True,
        "label_variance": label_variance,
        "prior_weeks": float(numbers["prior_weeks"]),
        "centre": np.array(numbers["centre_active"] + numbers["centre_l"]),
        "scale": np.array(numbers["scale_active"] + numbers["scale_l"]),
        "mean": mean,
        "mean_sd": mean_sd,
        "covariance": values[1 : n + 1, 1 : n + 1] - np.outer(sure, sure),
        "sd": sd[1 : n + 1, 1 : n + 1],
        "slope": (values[1 : n + 1, n + 1] / factor - sure * mean_code) / label_variance,
        "slope_sd": sd[1 : n + 1, n + 1] / factor / label_variance,
    }


def _sizes(
    summary: dict[str, Any], moments: dict[str, Any], n_features: int
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Bins and smoothed sketch of positive l, share of active weeks, mean and spread of l of active weeks."""
    found = statistic(summary, "sketch")
    edges = (
        np.array(context(summary, "sketch")["edges_l"]) if found is not None else np.linspace(0.0, 1.0, 11)
    )
    levels = statistic(summary, "levels")
    middle = context(summary, "levels")["middle"] if levels is not None else [0.5, 0.3]
    zeros = statistic(summary, "zeros")
    active, size, spread = np.zeros(n_features), np.zeros(n_features), np.zeros(n_features)
    sketch = np.zeros((n_features, len(edges) - 1))
    for f in range(n_features):

        def residuals(parameters: Floats, f: int = f) -> Floats:
            share, mean, log_spread = expit(parameters[0]), parameters[1], parameters[2]
            # Weak beliefs that only matter where next to nothing was measured.
            rest = [parameters[0] / 3.0, (mean - 0.45) / 0.12, (log_spread - np.log(0.14)) / 0.35]
            if found is not None:
                rest.extend(
                    (share * _normal_bins(mean, np.exp(log_spread), edges) - found[0][f]) / found[1][f]
                )
            if levels is not None:
                rest.append((share - middle[0] - levels[0][f, 0]) / levels[1][f, 0])
                inside, _ = _truncated(float(mean), float(np.exp(log_spread)))
                rest.append((share * inside - middle[1] - levels[0][f, 1]) / levels[1][f, 1])
            if zeros is not None:
                rest.append((1.0 - share - zeros[0][:, f].sum()) / np.sqrt((zeros[1][:, f] ** 2).sum()))
            if moments["known"]:
                mean_z = (share - moments["centre"][f]) / moments["scale"][f]
                rest.append((mean_z - moments["mean"][f]) / moments["mean_sd"][f])
            return np.array(rest)

        fitted = least_squares(residuals, np.array([0.0, 0.45, np.log(0.14)])).x
        active[f] = expit(fitted[0])
        size[f], spread[f] = _truncated(float(fitted[1]), float(np.exp(fitted[2])))
        smooth = _normal_bins(float(fitted[1]), float(np.exp(fitted[2])), edges)
        if found is not None:
            # Where the noisy bins differ from the smooth curve by more than their noise, they are followed.
            smooth = shrunk(found[0][f] / active[f], found[1][f] / active[f], smooth)
        smooth = np.maximum(smooth, 1e-6)
        sketch[f] = smooth / smooth.sum()
    return edges, sketch, active, np.clip(size, 0.05, 0.95), spread


def _truncated(mean: float, spread: float) -> tuple[float, float]:
    """Mean and spread of a normal variable between 0 and 1."""
    low, high = -mean / spread, (1.0 - mean) / spread
    inside = max(float(ndtr(high) - ndtr(low)), 1e-9)
    first, last = (float(np.exp(-(at**2) / 2.0) / np.sqrt(2.0 * np.pi)) / inside for at in (low, high))
    shift = first - last
    variance = 1.0 + low * first - high * last - shift**2
    return mean + spread * shift, spread * float(np.sqrt(max(variance, 0.01)))


def _normal_bins(mean: float, spread: float, edges: Floats) -> Floats:
    chances = np.diff(ndtr((edges - mean) / spread))
    return np.asarray(chances / max(chances.sum(), 1e-9))


def _week(summary: dict[str, Any], n_weeks: int) -> Floats:
    """How much more than on average features are active in each week."""
    found = statistic(summary, "rhythm")
    if found is None:
        return np.zeros(n_weeks)
    week = shrunk(found[0], found[1])
    return np.asarray(week - week.mean())


def _week_logits(week: Floats, active: Floats) -> Floats:
    """The shift of the log-odds of all features that makes the average share move by `week`."""
    shifts = np.zeros(len(week))
    for _ in range(30):
        chance = expit(logit(active)[None, :] + shifts[:, None])
        slope = (chance * (1.0 - chance)).mean(axis=1)
        shifts = np.clip(shifts + (active.mean() + week - chance.mean(axis=1)) / slope, -4.0, 4.0)
    return shifts


def _stays(summary: dict[str, Any], active: Floats, week: Floats, n_features: int, n_weeks: int) -> Floats:
    """Correlation of a learner's activity in neighbouring weeks, beyond the learner's own mean."""
    found = statistic(summary, "persistence")
    if found is None:
        return np.full(n_features, 0.1)
    own = 4.0 * 0.75 * active * (1.0 - active)
    rhythm = 4.0 * float((week[1:] * week[:-1]).mean())
    ratio, sd = (found[0][:, 0] - rhythm) / own, found[1][:, 0] / own
    # Where nothing stays, products with deviations from a mean of T weeks are 1 / T too low.
    ratio = shrunk(ratio, sd, sure_mean(ratio, sd, -1.0 / n_weeks))
    stays = np.clip(ratio, -0.3, 0.8)
    for _ in range(30):
        # Deviations from a mean of few weeks lie on both sides of it: their products are too low.
        stays = np.clip(ratio + (1.0 + stays) / (1.0 - stays) / n_weeks, -0.3, 0.8)
    return np.asarray(stays)


def _within(summary: dict[str, Any], active: Floats, total: Floats, n_weeks: int) -> tuple[Floats, Floats]:
    """Spread of a learner's own l, and the correlation of neighbouring weeks' l."""
    guess, guess_sd = 0.8 * total**2, 0.15 * total**2
    found = statistic(summary, "spread")
    variance = guess
    if found is not None:
        per_week = 16.0 * np.maximum(active - (1.0 - (1.0 - active) ** n_weeks) / n_weeks, 0.01)
        variance, _ = combined((guess, guess_sd), (found[0] / per_week, found[1] / per_week))
    variance = np.clip(variance, 0.1 * total**2, 0.98 * total**2)
    products = statistic(summary, "persistence")
    stays = np.zeros(len(active))
    if products is not None:
        pairs = 16.0 * np.maximum(active**2, 0.02) * variance
        ratio, sd = products[0][:, 1] / pairs, products[1][:, 1] / pairs
        ratio = shrunk(ratio, sd, sure_mean(ratio, sd, -1.0 / n_weeks))
        stays = np.clip(ratio + 1.0 / n_weeks, 0.0, 0.6)
    return np.sqrt(variance), stays


def _habits(
    moments: dict[str, Any], active: Floats, within: Floats, stays: Floats, total: Floats, n_weeks: int
) -> tuple[Floats, Floats, Floats]:
    """How much learners differ in their habits, what goes with the label, and how habits go together."""
    n_features = len(active)
    own = active * (1.0 - active)
    default = np.concatenate([0.3 * np.sqrt(own), 0.4 * total])
    if not moments["known"]:
        return default, np.zeros(2 * n_features), np.eye(2 * n_features)
    scale, found, sd = moments["scale"], np.diag(moments["covariance"]), np.diag(moments["sd"])
    # Shares of active weeks: the variance of a share of T weeks holds that of drawing the weeks.
    inflation = np.minimum((1.0 + stays) / (1.0 - stays) / n_weeks, 0.6)
    first, last = slice(0, n_features), slice(n_features, None)
    ratio = (found[first] * scale[first] ** 2 / own - inflation) / (1.0 - inflation)
    ratio_sd = sd[first] * scale[first] ** 2 / own / (1.0 - inflation)
    ratio = shrunk(ratio, ratio_sd, _believed(ratio, ratio_sd, 0.25, 0.2))
    between_active = np.sqrt(np.clip(ratio, 0.02, 0.6) * own)
    # Means of l: shrunk by two weeks, and over few weeks.
    weeks = np.arange(n_weeks + 1)
    chance = binom.pmf(weeks[None, :], n_weeks, active[:, None])
    kept = weeks / (weeks + moments["prior_weeks"])
    drawn = (chance * (kept**2 / np.maximum(weeks, 1))[None, :]).sum(axis=1) * within**2
    kept_square = np.maximum((chance * kept[None, :] ** 2).sum(axis=1), 0.02)
    variance = (found[last] * scale[last] ** 2 - drawn) / kept_square / within**2
    variance_sd = sd[last] * scale[last] ** 2 / kept_square / within**2
    variance = shrunk(variance, variance_sd, _believed(variance, variance_sd, 0.3, 0.3))
    between_size = np.sqrt(np.clip(variance, 0.02, 1.5)) * within
    between = np.concatenate([between_active, between_size])
    # What of a habit reaches its scaled estimate.
    reach = np.concatenate([np.ones(n_features), (chance * kept[None, :]).sum(axis=1)])
    # Activity and size have a spread of effects each: what the label does to one says little of the other.
    slope = np.concatenate(
        [shrunk(moments["slope"][part], moments["slope_sd"][part]) for part in (first, last)]
    )
    effect = slope * scale / np.maximum(reach, 0.2)
    # No label explains more than half of how learners differ.
    most = np.sqrt(0.5 / moments["label_variance"]) * between
    effect = np.clip(effect, -most, most)
    rest = np.sqrt(np.maximum(between**2 - effect**2 * moments["label_variance"], 0.25 * between**2))
    unit = np.outer(rest * reach / scale, rest * reach / scale)
    common = moments["covariance"] - moments["label_variance"] * np.outer(slope, slope)
    correlation = _correlation(common / unit, moments["sd"] / unit, n_features)
    return between, effect, correlation


def _believed(found: Floats, sd: Floats, belief: float, belief_sd: float) -> float:
    """The weighted mean together with a weak belief, which decides where nearly all is noise."""
    return weighted_mean(np.append(found, belief), np.append(sd, belief_sd))


def _correlation(found: Floats, sd: Floats, n_features: int) -> Floats:
    """Correlations of habits: pairs of one kind are pulled together, kinds towards none; no negative eigenvalue."""
    n = 2 * n_features
    row, column = np.triu_indices(n, 1)
    kind = np.where(
        column < n_features,
        0,
        np.where(row >= n_features, 1, np.where(column - row == n_features, 2, 3)),
    )
    values, noise = found[row, column], sd[row, column]
    kinds = np.unique(kind)
    means = np.array([weighted_mean(values[kind == k], noise[kind == k]) for k in kinds])
    means_sd = np.array([1.0 / np.sqrt((noise[kind == k] ** -2.0).sum()) for k in kinds])
    means = shrunk(means, means_sd)
    towards = np.zeros(len(values))
    for place, k in enumerate(kinds):
        towards[kind == k] = means[place]
    values = np.clip(shrunk(values, noise, towards), -0.9, 0.9)
    matrix = np.eye(n)
    matrix[row, column] = matrix[column, row] = values
    eigenvalues, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(eigenvalues, 0.02)) @ vectors.T
    scale = np.sqrt(np.diag(matrix))
    return np.asarray(matrix / np.outer(scale, scale))


def table(picture: dict[str, Any], size: Floats, active: Floats) -> Any:
    """The table of values from l and activity, within bounds, to a hundredth."""
    values = np.expm1(np.clip(size, 0.0, 1.0) * np.log1p(picture["highs"])[None, :, None])
    values = np.minimum(np.maximum(np.round(values, 2), 0.01), picture["highs"][None, :, None])
    values = np.where(active, values, 0.0)
    return pd.DataFrame(values.reshape(len(values), -1), columns=picture["columns"])
