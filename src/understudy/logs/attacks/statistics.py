"""LogStatistics: what a log says in numbers, and what each learner of a population adds to them.

Shares of actions, of practice runs, of first actions, of lengths and of jumps between actions, success rates by
action where there are outcomes, and what `detail_statistics` counts of times and declared columns: what generators
keep, and what therefore moves with who was in. Statistics of a kind are put in three bands by how common they are,
since generators keep common things better.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.special import expit

from understudy.logs.attacks.detail_statistics import (
    COLUMN_KINDS,
    TIME_KINDS,
    ColumnDetails,
    LearnerCells,
    TimeDetails,
    learner_cells,
)
from understudy.logs.interactions import IntArray, Interactions, counted_pairs, pair_codes, totals
from understudy.logs.models.rasch import fit_rasch

Floats = NDArray[np.float64]

KINDS = ("rows", "runs", "starts", "lengths", "jumps", "successes", *TIME_KINDS, *COLUMN_KINDS)
# Jumps that are looked at: rare ones are too many, and each says next to nothing.
MOST_JUMPS = 2000
N_LENGTHS = 24
# Cells of times and columns that fewer learners have are left out.
FEWEST_LEARNERS = 5
N_BANDS = 3
# Learners with longer vectors count no more than these: generators that protect learners bound them too.
CLIPPED_FROM = 0.9


class LogStatistics:
    """The statistics of logs with the vocabulary of a population, of which a share trains generators.

    `contributions` is learners x statistics: by how much a statistic of the training log moves when the learner is
    in. `kind` numbers kinds and bands, `spread` is the variance of each statistic over random choices of members.
    """

    def __init__(self, population: Interactions, share: float) -> None:
        self._population = population
        log = population
        self._edges = np.geomspace(1, max(int(log.lengths.max(initial=0)), 2) + 1, N_LENGTHS + 1)
        self._attempts = np.bincount(log.action, minlength=log.n_actions).astype(np.float64)
        self._jumps = _most_common(_jumps(log)[1], MOST_JUMPS)
        self._details: list[TimeDetails | ColumnDetails] = [
            *([TimeDetails(log)] if log.has_times else []),
            *([ColumnDetails(log)] if log.columns else []),
        ]
        self._kept = {name: _common(part) for name, part in self._details_of(log)}
        parts = self._shares_of(log)
        kinds = [(name, _bands(totals(part.cell, part.value, part.n_cells))) for name, part in parts]
        if log.outcome is not None:
            self._rate = (totals(log.action, log.outcome, log.n_actions) + 1.0) / (self._attempts + 2.0)
            kinds.append(("successes", _bands(self._attempts)))
        self.kind: NDArray[np.int64] = np.concatenate(
            [N_BANDS * KINDS.index(name) + bands for name, bands in kinds]
        )
        self.contributions, squares = self._contributions([part for _, part in parts], max(share, 1e-9))
        # What never varies has a spread of 0, which rounding may leave a little below: its root would not be a number.
        self.spread: Floats = share * (1.0 - share) * np.maximum(squares, 0.0)

    @cached_property
    def real(self) -> Floats:
        """The statistics of the whole population."""
        return self.of(self._population)

    def of(self, log: Interactions) -> Floats:
        """The statistics of a log."""
        found = [
            totals(part.cell, part.value, part.n_cells) / max(float(part.size.sum()), 1.0)
            for _, part in self._shares_of(log)
        ]
        if self._population.outcome is not None:
            attempts = np.bincount(log.action, minlength=log.n_actions)
            above = totals(log.action, log.success - self._rate[log.action], log.n_actions)
            found.append(above / (attempts + 1.0))
        return np.concatenate(found)

    def _shares_of(self, log: Interactions) -> list[tuple[str, LearnerCells]]:
        """Everything but the success rates."""
        n, learner = log.n_actions, log.learner
        new_run = _new_runs(log)
        some = np.flatnonzero(log.lengths)
        jumper, jump = _jumps(log)
        place = np.searchsorted(self._jumps, jump)
        known = (
            self._jumps[np.minimum(place, len(self._jumps) - 1)] == jump
            if len(self._jumps)
            else np.zeros(len(jump), dtype=bool)
        )
        bins = np.clip(np.searchsorted(self._edges, log.lengths, side="right") - 1, 0, N_LENGTHS - 1)
        everybody = np.arange(log.n_learners)
        n_runs = np.bincount(learner[new_run], minlength=log.n_learners)
        n_jumps = np.bincount(jumper, minlength=log.n_learners)
        ones = np.ones(log.n_learners)
        return [
            ("rows", learner_cells(learner, log.action, n, log.lengths)),
            ("runs", learner_cells(learner[new_run], log.action[new_run], n, n_runs)),
            ("starts", learner_cells(some, log.action[log.offsets[:-1][some]], n, ones)),
            ("lengths", learner_cells(everybody, bins, N_LENGTHS, ones)),
            ("jumps", learner_cells(jumper[known], place[known], len(self._jumps), n_jumps)),
            *((name, part.only(self._kept[name])) for name, part in self._details_of(log)),
        ]

    def _details_of(self, log: Interactions) -> list[tuple[str, LearnerCells]]:
        return [part for details in self._details for part in details.of(log)]

    def _contributions(self, parts: list[LearnerCells], share: float) -> tuple[LinearOperator, Floats]:
        """Counts of each learner less their size times the share of the cell, and their sums of squares.

        The counts are sparse, and what is taken from them is a product of narrow matrices.
        """
        n_learners = self._population.n_learners
        counts, sizes, shares, squares = [], [], [], []
        for number, part in enumerate(parts):
            matrix = csr_array((part.value, (part.learner, part.cell)), shape=(n_learners, part.n_cells))
            factor = _clip_factors(matrix)
            total = max(float(part.size @ factor), 1.0)
            matrix, size = _scaled(matrix, factor / (share * total)), part.size * factor / (share * total)
            mean = np.asarray(matrix.sum(axis=0)) * share
            counts.append(matrix)
            sizes.append(size)
            shares.append(np.outer(np.arange(len(parts)) == number, mean))
            squares.append(
                _squared(matrix).sum(axis=0) - 2.0 * mean * (size @ matrix) + mean**2 * (size @ size)
            )
        if self._population.outcome is not None:
            successes = self._success_residuals() / (share * np.maximum(self._attempts, 1.0))
            counts.append(successes)
            shares.append(np.zeros((len(parts), len(self._attempts))))
            squares.append(_squared(successes).sum(axis=0))
        taken = aslinearoperator(np.column_stack(sizes)) @ aslinearoperator(np.hstack(shares))
        return aslinearoperator(csr_array(hstack(counts), dtype=np.float64)) - taken, np.concatenate(squares)

    def _success_residuals(self) -> Any:
        """Learners x actions: successes beyond what ability and action explain; generators model both."""
        log = self._population
        rasch = fit_rasch(log)
        odds = rasch.ability[log.learner] + (rasch.intercept - rasch.difficulty)[log.action]
        residual = log.success - expit(odds)
        matrix = csr_array((residual, (log.learner, log.action)), shape=(log.n_learners, log.n_actions))
        popularity = self._attempts / max(log.n_rows, 1) + 0.5 / max(log.n_actions, 1)
        return _scaled(matrix, _clip_factors(matrix / np.sqrt(popularity)))


def _new_runs(log: Interactions) -> NDArray[np.bool_]:
    """Where a practice run begins."""
    new = np.ones(log.n_rows, dtype=bool)
    new[1:] = (log.action[1:] != log.action[:-1]) | (log.learner[1:] != log.learner[:-1])
    return new


def _jumps(log: Interactions) -> tuple[IntArray, NDArray[np.int64]]:
    """The learner of each jump from one practice run to the next, and the jump as one number."""
    new_run = _new_runs(log)
    action, learner = log.action[new_run], log.learner[new_run]
    same = learner[1:] == learner[:-1]
    return learner[1:][same], pair_codes(action[:-1][same], action[1:][same], log.n_actions)


def _most_common(code: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    codes, count = np.unique(code, return_counts=True)
    common: NDArray[np.int64] = np.sort(codes[np.argsort(-count, kind="stable")[:most]])
    return common


def _common(part: LearnerCells) -> NDArray[np.bool_]:
    """Cells of times and columns that enough learners have: what one learner has alone is another attack's evidence,
    and a cell that never moves in any refit would be taken for one without noise."""
    cell = counted_pairs(part.learner, part.cell, part.n_cells)[1]
    common: NDArray[np.bool_] = np.bincount(cell, minlength=part.n_cells) >= FEWEST_LEARNERS
    return common


def _bands(total: Floats) -> NDArray[np.int64]:
    """0 for the cells that make up the first third of the mass, the most common first; then 1 and 2."""
    order = np.argsort(-total, kind="stable")
    band = np.empty(len(total), dtype=np.int64)
    reached = np.cumsum(total[order]) / max(float(total.sum()), 1e-9)
    band[order] = np.minimum((N_BANDS * reached).astype(np.int64), N_BANDS - 1)
    return band


def _scaled(matrix: Any, rows: Floats) -> Any:
    """The sparse matrix with each row multiplied."""
    return csr_array(matrix.multiply(rows[:, None]))


def _squared(matrix: Any) -> Any:
    return matrix.multiply(matrix)


def _clip_factors(matrix: Any) -> Floats:
    norm = np.sqrt(_squared(matrix).sum(axis=1))
    limit = np.quantile(norm[norm > 0], CLIPPED_FROM) if (norm > 0).any() else 1.0
    factor: Floats = np.minimum(1.0, limit / np.maximum(norm, 1e-12))
    return factor
