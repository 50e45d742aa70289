"""Who typed this? Attacks on single latencies instead of averages, and on what was typed.

Here the release holds events, coarse or not. Their averages hide what their distribution shows: how often a
person's latency falls into each class is as telling as its average was, however few classes there are.

Histograms are arrays of counts: person x digraph x class of latency, classes in order of time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Counts = NDArray[np.integer[Any]]

# These three were chosen on simulated courses (seeds 10 and 11): they decide how strong the attack is, not how
# it is judged.
N_CLASSES = 8  # as many as the log-likelihood looks at, per digraph; coarse data may have fewer
# Latencies of the population that the attacker believes in before seeing a person's own.
PRIOR = 20.0
# Latencies of a digraph after which more of them say little more: habits drift from week to week.
SATURATION = 60.0
MIN_OCCURRENCES = 5  # occurrences on both sides for a digraph's distributions to be compared


def histogram_likelihood(known: Counts, unknown: Counts) -> Floats:
    """An attacker who asks: under whose histograms are these latencies most probable?

    Per digraph, the known person's shares of each class of latency are drawn towards the population's
    (`PRIOR` imaginary latencies); the unnamed person's latencies get their log-probability, and digraphs are added.
    Many latencies of one digraph count less than their number (`SATURATION`). The distance is the negative
    log-likelihood per latency. Coarse events lose little here: two classes and hundreds of events
    still show a share to a few percent, and every further digraph adds to it.

    Count every latency of the coarse data: bounds that drop those rounded to 0 leave counts which reveal the
    person's speed.
    """
    seen, released = _merged(known, unknown, N_CLASSES)
    population = seen.sum(axis=0) + 1.0
    population = population / population.sum(axis=1, keepdims=True)
    share = (seen + PRIOR * population) / (seen.sum(axis=2, keepdims=True) + PRIOR)
    typed = released.sum(axis=2, keepdims=True)
    weighed = released / (1.0 + typed / SATURATION)
    total = np.maximum(weighed.sum(axis=(1, 2)), 1.0)
    flat = np.log(share).reshape(len(share), -1)
    return np.asarray(-(weighed.reshape(len(weighed), -1) @ flat.T) / total[:, None])


def wasserstein(known: Counts, unknown: Counts) -> Floats:
    """An attacker who asks how far latencies must be moved to turn one person's distribution into another's.

    Per digraph the area between the two cumulative distributions (Wasserstein's distance in units of classes),
    in relation to its mean over all pairs, so that slow digraphs do not outweigh; then the mean of the digraphs
    that both typed often enough.
    """
    return _per_digraph(known, unknown, "cityblock")


def kolmogorov(known: Counts, unknown: Counts) -> Floats:
    """An attacker who asks where two distributions differ most: Kolmogorov and Smirnov's statistic, per digraph.

    Scaled and averaged as in `wasserstein`.
    """
    return _per_digraph(known, unknown, "chebyshev")


def text(known: Counts, unknown: Counts) -> Floats:
    """An attacker without a clock: who types these digraphs this often?

    Counts of digraphs only (person x digraph), no time: names of variables, language, style, and which exercises
    were done. They must be counted without bounds on the latency, or they depend on speed. It measures what
    the text gives away, which no coarsening of times changes, so it is shown beside the attacks on
    latencies and never counted among them. The distance is the negative log-likelihood per digraph, under
    the known person's shares drawn towards the population's.
    """
    population = known.sum(axis=0) + 1.0
    population = population / population.sum()
    share = (known + 10 * PRIOR * population) / (known.sum(axis=1, keepdims=True) + 10 * PRIOR)
    total = np.maximum(unknown.sum(axis=1), 1)
    return np.asarray(-(unknown @ np.log(share).T) / total[:, None])


def _per_digraph(known: Counts, unknown: Counts, metric: Any) -> Floats:
    total = np.zeros((len(unknown), len(known)))
    n_compared = np.zeros_like(total)
    for j in range(known.shape[1]):
        n_known, n_unknown = known[:, j].sum(axis=1), unknown[:, j].sum(axis=1)
        both = (n_unknown >= MIN_OCCURRENCES)[:, None] & (n_known >= MIN_OCCURRENCES)
        distance = cdist(_cumulative(unknown[:, j]), _cumulative(known[:, j]), metric)
        usual = distance[both].mean() if both.any() else 0.0
        if usual > 0:
            total += np.where(both, distance / usual, 0.0)
        n_compared += both
    # Learners who share no digraph are as far apart as pairs are on average.
    return np.asarray(np.where(n_compared > 0, total / np.maximum(n_compared, 1), 1.0))


def _cumulative(counts: Counts) -> Floats:
    return np.asarray(np.cumsum(counts, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _merged(known: Counts, unknown: Counts, n_classes: int) -> tuple[Floats, Floats]:
    """Neighbouring classes put together, per digraph, so that about as many latencies fall into each."""
    pooled = known.sum(axis=0) + unknown.sum(axis=0)
    middle = np.cumsum(pooled, axis=1) - pooled / 2
    into = np.minimum(n_classes * middle / np.maximum(pooled.sum(axis=1, keepdims=True), 1), n_classes - 1)
    onehot = (into.astype(np.int64)[:, :, None] == np.arange(n_classes)).astype(np.float64)
    # person x digraph x class times digraph x class x merged class
    result = [
        np.matmul(part.transpose(1, 0, 2).astype(np.float64), onehot).transpose(1, 0, 2)
        for part in (known, unknown)
    ]
    return result[0], result[1]


EVENT_ATTACKS: dict[str, Callable[[Counts, Counts], Floats]] = {
    "histogram": histogram_likelihood,
    "wasserstein": wasserstein,
    "kolmogorov": kolmogorov,
}
