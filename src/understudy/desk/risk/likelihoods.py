"""Membership by the likelihood ratio of an answer with and without a learner, from shadows.

Scores are cross-fitted: the shadows that are judged are not those that the Gaussians were fitted to.
Fitting and judging on the same shadows finds leaks where there are none (findings, section 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.desk.risk.shadows import ShadowBank

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Smallest variance in units of the overall one: an answer that is constant without a learner and moves with
# them is known for certain, and its likelihood ratio stays finite.
FLOOR = 1e-6
# Of a covariance matrix, towards its diagonal; as if so many more shadows had shown independent answers.
PRIOR_SHADOWS = 20
# A number's farthest value from its middle, in widths of its middle half: a Gaussian has about 3 among 2,800.
FEW = 100.0
# Up to so many numbers an attacker fits whole covariances; with more they are noise and hide leaks.
MOST_WHOLE = 16
# Of the regression of answers on who is in, for each learner: as if a tenth of an answer were not linear.
RIDGE = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class NoisySums:
    """Another release about the same learners, as the attacker sees it: sums over learners with Gaussian noise.

    On a shadow with counts c the values are (c - 1) @ loadings plus noise of variance 1. Loadings are known and their
    columns orthogonal: an attacker who draws shadows knows what each learner adds.
    """

    values: Floats
    loadings: Floats

    def part(self, shadows: Flags) -> NoisySums:
        """Those of some shadows."""
        return NoisySums(self.values[shadows], self.loadings)

    @cached_property
    def guesses(self) -> Floats:
        """The best linear guess of how often each learner (column) is in, less 1: the matched filter."""
        strength = np.sum(self.loadings**2, axis=0)
        return np.asarray(self.values @ (self.loadings / (strength + 1.0)).T)


@dataclass(frozen=True, eq=False, repr=False)
class Seen:
    """What an attacker sees of some shadows, and who is in them; `outputs` are standardised, a row for each."""

    outputs: Floats
    bank: ShadowBank
    sums: NoisySums | None = None

    def part(self, shadows: Flags) -> Seen:
        """Some of the shadows."""
        sums = None if self.sums is None else self.sums.part(shadows)
        return Seen(self.outputs[shadows], self.bank.part(np.flatnonzero(shadows)), sums)

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """Weights of shadows (rows) for the mean with each learner (column) exactly once, and without."""
        once, absent = (flags.astype(np.float64) for flags in (self.bank.once, self.bank.absent))
        return once / np.maximum(once.sum(axis=0), 1.0), absent / np.maximum(absent.sum(axis=0), 1.0)

    @cached_property
    def effects(self) -> Floats:
        """What each learner (row) adds to each number, by regression on how often they are in."""
        counts = self.bank.counts - 1.0
        gram = counts.T @ counts + RIDGE * self.bank.n_learners * np.eye(self.bank.n_learners)
        return np.asarray(np.linalg.solve(gram, counts.T @ self.outputs), dtype=np.float64)


def standardised(outputs: Floats) -> Floats:
    """Every column with mean 0 and variance 1 over the shadows; what never moves is left out.

    A value that some shadows do not give (the code failed, a group was empty) becomes the mean, and its absence a
    column of its own, since that also reveals who is in; values that are missing together share one.
    """
    missing = ~np.isfinite(outputs)
    present = np.maximum((~missing).sum(axis=0), 1)
    filled = _ranked_where_few_decide(np.where(missing, 0.0, outputs), missing)
    size = np.abs(filled).max(axis=0, initial=0.0)
    filled = filled / np.where(size > 0, size, 1.0)
    filled = np.where(missing, filled.sum(axis=0) / present, filled)
    columns = np.hstack([filled, _distinct(missing[:, missing.any(axis=0)])])
    columns = columns - columns.mean(axis=0)
    # What rounding of floats leaves of a constant is no signal.
    columns = columns[:, columns.std(axis=0) > 1e-12]
    return np.asarray(columns / columns.std(axis=0))


def _ranked_where_few_decide(values: Floats, missing: Flags) -> Floats:
    """Ranks in place of a number whose spread comes from few shadows.

    A few enormous values would hide all that the other shadows say.
    """
    values = values.copy()
    for place in range(values.shape[1]):
        there = ~missing[:, place]
        given = values[there, place]
        if not len(given):
            continue
        # Halves, because the difference of two of the largest floats is none.
        low, middle, high = np.quantile(given / 2, (0.25, 0.5, 0.75))
        farthest = np.abs(given / 2 - middle).max()
        # Not what rounding of floats leaves of a constant.
        if farthest > max(FEW * (high - low), 1e-12 * np.abs(given / 2).max()):
            values[there, place] = np.unique(given, return_inverse=True)[1]
    return values


def _distinct(flags: Flags) -> Floats:
    _, first = np.unique(np.packbits(flags, axis=0), axis=1, return_index=True)
    return flags[:, np.sort(first)].astype(np.float64)


def independent(fitted: Seen, judged: Seen) -> Floats:
    """Equation 16 of Ito et al. (2026): a Gaussian for every number of the answer, as if they were independent.

    Gives a score for every judged shadow (row) and learner (column).
    """
    scores = np.zeros((judged.bank.n_shadows, judged.bank.n_learners))
    for weights, sign in zip(fitted.sides, (1.0, -1.0), strict=True):
        mean = weights.T @ fitted.outputs
        variance = np.maximum(weights.T @ fitted.outputs**2 - mean**2, FLOOR)
        quadratic = judged.outputs**2 @ (1 / variance).T - 2 * judged.outputs @ (mean / variance).T
        quadratic += np.sum(mean**2 / variance + np.log(variance), axis=1)
        scores -= sign * 0.5 * quadratic
        if fitted.sums is not None and judged.sums is not None:
            scores += sign * _along(fitted.sums.guesses, weights, judged.sums.guesses)
    return scores


def _along(fitted: Floats, weights: Floats, judged: Floats) -> Floats:
    """The log density of one number for each learner, by a Gaussian fitted to one side."""
    mean = np.sum(weights * fitted, axis=0)
    variance = np.maximum(np.sum(weights * fitted**2, axis=0) - mean**2, FLOOR)
    return np.asarray(-0.5 * ((judged - mean) ** 2 / variance + np.log(variance)))


def linear(fitted: Seen, judged: Seen) -> Floats:
    """The one direction in which a learner moves all that was released (Fisher's), with a variance for each side.

    What learners add is found for all of them at once, by regression: what the others do to an answer is then no
    noise in what one learner does. The covariance is that of a sum of learners plus what is left, so it stays good
    with as many numbers as learners. Two means that differ by one learner have a direction that no other learner moves.
    """
    effects, seen, looked_at = fitted.effects, fitted.outputs, judged.outputs
    rest = seen - seen.mean(axis=0) - (fitted.bank.counts - 1.0) @ effects
    n = len(seen)
    left = rest.T @ rest / max(n - fitted.bank.n_learners, n / 4, 1.0)
    if fitted.sums is not None and judged.sums is not None:
        seen, looked_at = (np.hstack([one.outputs, one.sums.values]) for one in (fitted, judged) if one.sums)
        effects = np.hstack([effects, fitted.sums.loadings])
        n_sums = fitted.sums.loadings.shape[1]
        left = np.block(
            [[left, np.zeros((len(left), n_sums))], [np.zeros((n_sums, len(left))), np.eye(n_sums)]]
        )
    if not seen.shape[1]:
        return np.zeros((judged.bank.n_shadows, judged.bank.n_learners))
    direction = effects @ _inverse(effects.T @ effects + left)
    seen, looked_at = seen @ direction.T, looked_at @ direction.T
    spread = seen.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    seen, looked_at = seen / spread, looked_at / spread
    with_learner, without = fitted.sides
    return _along(seen, with_learner, looked_at) - _along(seen, without, looked_at)


def _inverse(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    # Directions below this are rounding of floats: answers are rounded more coarsely than that.
    kept = values > 1e-12 * values.max(initial=0.0)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def correlated(fitted: Seen, judged: Seen) -> Floats:
    """Gaussians for the whole answer, with and without the learner; covariances are shrunk to their diagonals.

    The numbers of an answer are first turned so that they do not correlate over all shadows. What another release
    says of the others shows how much of an answer is theirs: its best linear prediction is a number too, beside
    the guess about the learner. More than `MOST_WHOLE` numbers are left to `linear`.
    """
    shared, judged_shared = fitted.outputs, judged.outputs
    if fitted.sums is not None and judged.sums is not None:
        shared = np.hstack([shared, fitted.sums.guesses @ fitted.effects])
        judged_shared = np.hstack([judged_shared, judged.sums.guesses @ fitted.effects])
    if shared.shape[1] > MOST_WHOLE:
        return linear(fitted, judged)
    shared, judged_shared = _uncorrelated(shared, judged_shared)
    once, absent = fitted.bank.once, fitted.bank.absent
    scores = np.zeros((len(judged_shared), once.shape[1]))
    for learner in range(once.shape[1]):
        seen, looked_at = shared, judged_shared
        if fitted.sums is not None and judged.sums is not None:
            # In units of its spread, as the shared ones are: the smallest variance is meant in them.
            guess, judged_guess = fitted.sums.guesses[:, learner], judged.sums.guesses[:, learner]
            spread = max(float(guess.std()), 1e-300)
            seen = np.column_stack([shared, guess / spread])
            looked_at = np.column_stack([judged_shared, judged_guess / spread])
        for flags, sign in ((once[:, learner], 1.0), (absent[:, learner], -1.0)):
            scores[:, learner] += sign * _log_density(seen[flags], looked_at)
    return scores


def _uncorrelated(outputs: Floats, judged: Floats) -> tuple[Floats, Floats]:
    if not outputs.shape[1]:
        return outputs, judged
    centre = outputs.mean(axis=0)
    covariance = np.atleast_2d(np.cov(outputs, rowvar=False))
    values, vectors = np.linalg.eigh(covariance)
    # Directions below this are rounding of floats: answers are rounded more coarsely than that.
    kept = values > 1e-12 * values.max(initial=0.0)
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return (outputs - centre) @ turn, (judged - centre) @ turn


def _log_density(sample: Floats, judged: Floats) -> Floats:
    n, d = sample.shape
    if n < 2 or d == 0:
        return np.zeros(len(judged))
    mean = sample.mean(axis=0)
    away = sample - mean
    covariance = away.T @ away / n
    diagonal = np.maximum(np.diag(covariance), FLOOR)
    covariance *= n / (n + PRIOR_SHADOWS)
    covariance[np.diag_indices(d)] = diagonal + FLOOR
    factor = np.linalg.cholesky(covariance)
    whitened = (judged - mean) @ np.linalg.inv(factor).T
    return np.asarray(
        -0.5 * np.einsum("ij,ij->i", whitened, whitened) - np.sum(np.log(np.diag(factor))), dtype=np.float64
    )


Attacker = Callable[[Seen, Seen], Floats]
ATTACKERS: dict[str, Attacker] = {"independent": independent, "correlated": correlated, "linear": linear}


def cross_fitted(
    outputs: Floats, bank: ShadowBank, attacker: Attacker, sums: NoisySums | None = None, n_folds: int = 2
) -> Floats:
    """The score of every shadow (row) for every learner (column), fitted to the other folds."""
    seen = Seen(standardised(outputs), bank, sums)
    scores = np.empty((bank.n_shadows, bank.n_learners))
    fold = np.arange(bank.n_shadows) % n_folds
    for one in range(n_folds):
        scores[fold == one] = attacker(seen.part(fold != one), seen.part(fold == one))
    return scores
