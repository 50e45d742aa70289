"""Laws of times out of noisy counts: post-processing, which costs no privacy.

Everything here sees noisy sums over learners and the standard deviation of their noise, never a learner.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm as normal

from understudy.logs.interactions import IntArray
from understudy.logs.models.denoising import averaged_counts, shrunk_shares, to_simplex
from understudy.logs.models.sessions import Calendar
from understudy.logs.models.times import N_OCTAVES, N_PERSISTENCES, N_SESSION_CLASSES, SESSION_SHARES

Floats = NDArray[np.float64]

# Spans in bins: 0, 1, 2, 3 to 4, 5 to 8, ...
N_SPANS = 8
# Hours of the day, and days of the week behind them.
DAYS_AND_HOURS = 24 + 7
# Gaps are usually about half a minute, give or take a factor of four.
USUAL_GAP, USUAL_GAP_SPREAD = 30e6, 1.4
# Noise of so little of the total is none; an hour has at least this share of an even one before anything is seen.
NO_NOISE, LEAST_GUESS = 1e-4, 1e-3
# Steps of a kind pause as often as others, unless so many standard deviations of the noise say otherwise.
ODDS_DOUBT, MOST_ODDS = 4.0, 8.0
# Rounds of fitting the margins of starts, stops and spans.
N_FITS = 100


def span_class(n_bins: IntArray) -> IntArray:
    """0, 1, 2, 3 to 4, 5 to 8, ... bins."""
    place: IntArray = np.where(n_bins < 1, 0, 1 + np.ceil(np.log2(np.maximum(n_bins, 1)))).astype(np.int64)
    return np.minimum(place, N_SPANS - 1)


def session_laws(noisy: Floats, sigma: float) -> Floats:
    """Per octave of rows: how many sessions learners have, as expected around two guesses.

    One is a normal law of the logarithm of sessions as a share of that of rows, whose mean follows a line through the
    octaves; the other is what learners of neighbouring octaves have.
    """
    table = noisy.reshape(N_OCTAVES, N_SESSION_CLASSES)
    learners = table.sum(axis=1)
    if sigma * table.size < NO_NOISE * max(float(learners.sum()), 1.0):
        return _normed(np.maximum(table, 1e-12))
    guess = _normal_session_laws(table, learners, sigma)
    near = np.empty(table.shape)
    for each in range(N_OCTAVES):
        around = table[max(each - 1, 1) : each + 2].sum(axis=0)
        law, _ = shrunk_shares(around, sigma * sqrt(3.0), float(around.sum()), guess[each])
        near[each] = np.maximum(law, guess[each] / 10.0)
    # All octaves at once: a few counts of one could hardly tell how far real ones depart from a guess.
    total = np.maximum(learners, 1.0)[:, None]
    laws = averaged_counts(noisy, sigma, [(total * guess).ravel(), (total * near).ravel()]).reshape(
        table.shape
    )
    # A learner with one row has one session.
    laws[0] = np.eye(N_SESSION_CLASSES)[0]
    return _normed(laws)


def _normal_session_laws(table: Floats, learners: Floats, sigma: float) -> Floats:
    """The first guess: a line by least squares, each noisy count a weight; sums of them have no bias.

    One session is a share of up to half of the first class.
    """
    upper = np.concatenate([[SESSION_SHARES[0] / 2.0], SESSION_SHARES, [1.0]])
    middle = np.concatenate([[0.0], (upper[:-1] + upper[1:]) / 2.0])
    # Octaves with few learners are noise; one row says nothing.
    noise = 2.0 * sigma * sqrt(N_SESSION_CLASSES)
    believed = np.maximum(learners, 0.0) ** 2 / (learners**2 + noise**2)
    believed[0] = 0.0
    counts, place = believed[:, None] * table, np.arange(N_OCTAVES, dtype=np.float64)[:, None]
    total = max(float(counts.sum()), 1.0)
    centre = float((counts * place).sum()) / total
    level = float((counts * middle).sum()) / total
    width = max(float((counts * (place - centre) ** 2).sum()), total / 4.0)
    line = level + float((counts * (place - centre) * (middle - level)).sum()) / width * (place - centre)
    line = np.clip(line, 0.0, 1.0)
    variance = float((counts * (middle - line) ** 2).sum()) / total
    below = normal.cdf(upper[None, :-1], line, sqrt(min(max(variance, 0.003), 0.1)))
    return _normed(np.diff(below, prepend=0.0, append=1.0, axis=1) + 1e-6)


def span_laws(
    starts: tuple[Floats, float],
    stops: tuple[Floats, float],
    spans: tuple[Floats, float],
    calendar: Calendar,
    n_learners: int,
) -> Floats:
    """Per persistence: the chance of each bin to start in and to stop in, by noisy numbers of starts, stops and spans.

    Each is given with the standard deviation of its noise. The table is the one with these margins that is closest to
    an even one among starts that are not after their stops.
    """
    n = calendar.n_bins
    place = np.arange(n)
    days = calendar.bin_lengths
    start, _ = shrunk_shares(*starts, n_learners, days / days.sum())
    stop = _by_persistence(*stops, days / days.sum())
    span = _by_persistence(*spans, np.full(N_SPANS, 1.0 / N_SPANS))
    apart = place[None, :] - place[:, None]
    table = np.repeat(np.outer(days, days)[None] * (apart >= 0), N_PERSISTENCES, axis=0)
    # One session begins and ends in one bin, but for those that go on past midnight.
    table[0] *= apart == 0
    of = span_class(np.maximum(apart, 0))
    for _ in range(N_FITS):
        for each in range(1, N_PERSISTENCES):
            found = np.bincount(of.ravel(), table[each].ravel(), N_SPANS)
            table[each] *= np.where(found > 1e-12, span[each] / np.maximum(found, 1e-12), 0.0)[of]
        table *= (start / np.maximum(table.sum(axis=(0, 2)), 1e-12))[None, :, None]
        table *= (stop / np.maximum(table.sum(axis=1), 1e-12))[:, None, :]
    table += 1e-9 * (apart >= 0)
    table[0] *= apart == 0
    laws: Floats = table / table.sum(axis=(1, 2), keepdims=True)
    return laws


def _by_persistence(noisy: Floats, sigma: float, prior: Floats) -> Floats:
    """A noisy table of learners by persistence and something else, each row drawn to that of all; it sums to 1."""
    table = noisy.reshape(N_PERSISTENCES, len(prior))
    together = table.sum(axis=0)
    pooled, _ = shrunk_shares(together, sigma * sqrt(N_PERSISTENCES), float(together.sum()), prior)
    weight = np.maximum(to_simplex(table.sum(axis=1), max(float(together.sum()), 1.0)), 1e-6)
    laws = np.array([shrunk_shares(row, sigma, max(float(row.sum()), 1.0), pooled)[0] for row in table])
    shares: Floats = laws * (weight / weight.sum())[:, None] + 1e-9
    return shares


def gap_laws(noisy: Floats, sigma: float, calendar: Calendar, n_kinds: int) -> tuple[Floats, Floats]:
    """The law of gaps of each kind of step, and how much likelier than others each is to come after a pause.

    A kind's law is drawn to that of all kinds, and this one to a normal law of logarithms, as far as they are noise.
    """
    n_classes = len(calendar.gap_edges) - 1
    table = noisy.reshape(n_kinds, n_classes + 1)
    within = table[:, :n_classes]
    together = within.sum(axis=0)
    guess = _lognormal(to_simplex(together, max(float(together.sum()), 1.0)), calendar)
    pooled, _ = shrunk_shares(together, sigma * sqrt(n_kinds), float(together.sum()), guess)
    laws = np.array([shrunk_shares(row, sigma, float(row.sum()), pooled)[0] for row in within])
    steps, pauses = np.maximum(table.sum(axis=1), 0.0), np.maximum(table[:, n_classes], 0.0)
    rate = max(float(pauses.sum()), 1e-9) / max(float(steps.sum()), 1.0)
    doubt = ODDS_DOUBT * sigma / max(rate, 1e-3)
    odds = (pauses + doubt * rate) / (steps + doubt) / rate
    return laws, np.clip(odds, 1.0 / MOST_ODDS, MOST_ODDS)


def _lognormal(counts: Floats, calendar: Calendar) -> Floats:
    """A law of gaps whose logarithm is normal, with the mean and spread of these counts, or the usual ones."""
    edges = np.maximum(calendar.gap_edges.astype(np.float64), 0.5)
    middle = np.log(np.sqrt(edges[:-1] * edges[1:]))
    shares = counts / max(counts.sum(), 1e-9)
    usual = log(max(USUAL_GAP / calendar.resolution, 0.5))
    known = counts.sum() > len(counts)
    mean = float(shares @ middle) if known else usual
    variance = float(shares @ (middle - mean) ** 2) if known else USUAL_GAP_SPREAD**2
    upper = normal.cdf(np.log(edges[1:]), mean, max(sqrt(variance), 0.3))
    return _normed(np.diff(upper, prepend=0.0) + 1e-6)


def hour_law(noisy: Floats, sigma: float) -> Floats:
    """Shares of hours of the week, as expected around days times hours of the day.

    One guess has one law of hours for all days, another has one for working days and one for weekends. Where hours of
    the day and days were counted apart, since all hours of the week would be noise, nothing is expected but their
    product.
    """
    if len(noisy) == DAYS_AND_HOURS:
        day, hour = (
            shrunk_shares(apart, sigma, float(apart.sum()), np.full(len(apart), 1.0 / len(apart)))[0]
            for apart in (noisy[24:], noisy[:24])
        )
        return _normed(np.outer(day, hour).ravel() + LEAST_GUESS / (7 * 24))
    table = noisy.reshape(7, 24)
    total = max(float(table.sum()), 1.0)
    if sigma * table.size < NO_NOISE * total:
        return _normed(np.maximum(noisy, 0.0) + 1e-12)
    guesses = []
    for parts in (((0, 7),), ((0, 5), (5, 7))):
        guess = np.full(table.shape, LEAST_GUESS * total / table.size)
        for first, last in parts:
            days = table[first:last]
            rows = max(float(days.sum()), 1.0)
            hour, _ = shrunk_shares(days.sum(axis=0), sigma * sqrt(last - first), rows, np.full(24, 1.0 / 24))
            even = np.full(last - first, 1.0 / (last - first))
            day, _ = shrunk_shares(days.sum(axis=1), sigma * sqrt(24.0), rows, even)
            guess[first:last] += rows * np.outer(day, hour)
        guesses.append(guess.ravel())
    return _normed(averaged_counts(noisy, sigma, guesses))


def _normed(counts: Floats) -> Floats:
    """Shares along the last axis."""
    shares: Floats = counts / counts.sum(axis=-1, keepdims=True)
    return shares
