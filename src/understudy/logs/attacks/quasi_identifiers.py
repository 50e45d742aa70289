"""`columns` and `columns-likelihood`: does the table of learners, or do columns of rows, give the learner away?

The attacker's story: Bob knows Ada's school, her grade, her language at home and perhaps her final score. None of them
names her; together they may describe nobody else (quasi-identifiers). He knows, too, what she did.

`columns` looks for Ada's row of the table among the synthetic learners: the whole row, every pair of its cells, and
the row with where she began and how much she did; and of columns of rows, her cells together with an action, its
outcome and the action before. What hardly any other learner has is counted, less what is found by chance.

`columns-likelihood` asks how much more probable her cells are in the synthetic log than among all other learners: in
pairs, with her number of rows and her success, and by action.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.fingerprints import FingerprintTables, Occurrences, mixed
from understudy.logs.column_codes import ColumnCodes, column_named, length_classes, success_classes
from understudy.logs.declared.columns import Column
from understudy.logs.interactions import IntArray, Interactions

Floats = NDArray[np.float64]


class QuasiIdentifiers:
    """What the declared columns say about the learners of a population."""

    def __init__(self, population: Interactions) -> None:
        self._population = population
        self._codes = [ColumnCodes(column) for column in population.columns]
        self._tables: dict[tuple[str, ...], tuple[FingerprintTables, FingerprintTables]] = {}

    def rare_learners(self, most: int) -> NDArray[np.bool_]:
        """Learners whose row of the table, or one of whose rows of the log, at most so many have."""
        rare = np.zeros(self._population.n_learners, dtype=bool)
        for table in self._of(self._population.columns)[0].tables[:1]:
            rare |= table.rare_learners(most)
        return rare

    def scores(self, synthetic: Interactions) -> dict[str, Floats]:
        """The scores of each learner by the columns that the synthetic log has; none where it has none."""
        there = [column for column in self._population.columns if column_named(synthetic, column) is not None]
        if not there:
            return {}
        exact, laws = self._of(tuple(there))
        names = {column.declared.name for column in there}
        return {
            "columns": exact.matches(self._exact(synthetic, names)),
            "columns-likelihood": laws.log_ratios(self._laws(synthetic, names)),
        }

    def _of(self, columns: tuple[Column, ...]) -> tuple[FingerprintTables, FingerprintTables]:
        """The fingerprints of some of the columns, made when they are first needed."""
        names = tuple(column.declared.name for column in columns)
        if names not in self._tables:
            log, n = self._population, self._population.n_learners
            self._tables[names] = (
                FingerprintTables(self._exact(log, {*names}), n),
                FingerprintTables(self._laws(log, {*names}), n),
            )
        return self._tables[names]

    def _cells(self, log: Interactions, names: set[str], of: str, *, exact: bool) -> list[IntArray]:
        """The cells of a log's columns as numbers: of categories their codes, of numbers themselves or their class."""
        cells = []
        for codes in self._codes:
            if codes.declared.of == of and codes.declared.name in names:
                column = next(each for each in log.columns if each.declared.name == codes.declared.name)
                plain = exact and not codes.declared.coded
                # Adding 0 makes one number of the two zeros, and one of all that is missing.
                cells.append(np.nan_to_num(column.cells, nan=np.inf) + 0.0 if plain else codes.of(column))
        return cells

    def _exact(self, log: Interactions, names: set[str]) -> list[Occurrences]:
        everybody = np.arange(log.n_learners)
        kinds: list[Occurrences] = []
        table = self._cells(log, names, "learner", exact=True)
        if table:
            active = np.flatnonzero(log.lengths)
            first = log.action[log.offsets[:-1][active]]
            own = [cells[active] for cells in table]
            kinds += [
                (everybody, mixed(*table)),
                *((everybody, mixed(*pair)) for pair in combinations(table, 2)),
                (active, mixed(*own, first, log.lengths[active])),
            ]
        rows = self._cells(log, names, "row", exact=True)
        if rows:
            before = np.full(log.n_rows, -1, dtype=np.int64)
            before[1:] = np.where(log.learner[1:] == log.learner[:-1], log.action[:-1], -1)
            kinds.append((log.learner, mixed(*rows, log.code, before)))
        return kinds

    def _laws(self, log: Interactions, names: set[str]) -> list[Occurrences]:
        everybody = np.arange(log.n_learners)
        kinds: list[Occurrences] = []
        table = self._cells(log, names, "learner", exact=False)
        known = [length_classes(log), *([] if log.outcome is None else [success_classes(log)])]
        for place, cells in enumerate(table):
            kinds += [(everybody, mixed(cells, other)) for other in (*table[place + 1 :], *known)]
        kinds += [
            (log.learner, mixed(cells, log.code)) for cells in self._cells(log, names, "row", exact=False)
        ]
        return kinds
