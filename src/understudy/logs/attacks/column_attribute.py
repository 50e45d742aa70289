"""`attribute` of declared columns: does the synthetic log reveal a member's cell that the attacker did not see?

The attacker's story: Bob knows all that Ada did and all that the table of learners says about her, except one cell: her
final score, say. He looks for the synthetic learners most like her on everything else and guesses from theirs. The same
guess with data of other real learners is the baseline; only the difference is a leak. Of columns of rows one cell is
hidden, at an action that she met, as for outcomes.

What is guessed has two answers: yes or no, the most common category or another, above the middle number or not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from understudy.logs.attacks.attribute import (
    BLOCK_CELLS,
    MOST_TARGETS,
    AttributeEstimate,
    choose_targets,
    guess_from_nearest,
    guess_outcomes,
    judged_guesses,
)
from understudy.logs.column_codes import ColumnCodes, column_named, shared_columns
from understudy.logs.declared.columns import Column, Kind
from understudy.logs.interactions import IntArray, Interactions

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def column_attribute_attacks(
    members: Interactions, outsiders: Interactions, synthetic: Interactions, rng: np.random.Generator
) -> list[AttributeEstimate]:
    """An estimate for each declared column of all three logs; their intervals hold together."""
    if any(log.outcome is None for log in (members, outsiders, synthetic)):
        members, outsiders, synthetic = (log.without_outcomes() for log in (members, outsiders, synthetic))
    columns = [
        column
        for column, _ in shared_columns(members, synthetic)
        if column_named(outsiders, column) is not None
    ]
    n_other = min(synthetic.n_learners, outsiders.n_learners)
    others = outsiders.select(rng.permutation(outsiders.n_learners)[:n_other])
    attacks = {"learner": _learner_guesses, "row": _row_guesses}
    estimates = []
    for column in columns:
        question = Question(column)
        guess, baseline, truth = attacks[column.declared.of](question, members, others, synthetic, rng)
        of = column.declared.name
        estimates.append(judged_guesses(guess, baseline, truth, rng, of=of, n_looks=len(columns)))
    return estimates


class Question:
    """What is asked about a cell, fixed by a column of the members."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self._codes = ColumnCodes(column)
        if column.declared.coded:
            counts = np.bincount(self._codes.of(column)[~column.missing], minlength=1)
            self._answer = 1 if column.declared.kind is Kind.flag else int(counts.argmax())
        else:
            present = column.cells[~column.missing]
            self._middle = float(np.median(present)) if len(present) else 0.0

    def answers(self, log: Interactions) -> tuple[Flags, Flags]:
        """The answer of each cell of the same column of a log, and whether the cell is there."""
        column = column_named(log, self.column)
        assert column is not None
        coded = self.column.declared.coded
        answer = self._codes.of(column) == self._answer if coded else column.cells > self._middle
        return answer, ~column.missing


def _row_guesses(
    question: Question,
    members: Interactions,
    others: Interactions,
    synthetic: Interactions,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Flags]:
    """The attack on outcomes, with the answers of the rows in their place."""
    asked = [
        replace(log, outcome=question.answers(log)[0].astype(np.int8)) for log in (members, others, synthetic)
    ]
    target, action, truth = choose_targets(asked[0], rng)
    return (
        guess_outcomes(asked[0], target, action, asked[2]),
        guess_outcomes(asked[0], target, action, asked[1]),
        truth,
    )


def _learner_guesses(
    question: Question,
    members: Interactions,
    others: Interactions,
    synthetic: Interactions,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Flags]:
    answer, there = question.answers(members)
    target = np.flatnonzero(there)
    if len(target) > MOST_TARGETS:
        target = np.sort(rng.choice(target, MOST_TARGETS, replace=False))
    return (
        guess_cells(question, members, target, synthetic),
        guess_cells(question, members, target, others),
        answer[target],
    )


def guess_cells(question: Question, members: Interactions, target: IntArray, source: Interactions) -> Floats:
    """Chance of the answer, from the learners of `source` who are most like each target in all but the column."""
    answer, there = question.answers(source)
    prior = (answer[there].sum() + 1.0) / (there.sum() + 2.0)
    hidden = question.column.declared.name
    tables = [column for column, _ in shared_columns(members, source) if column.declared.of == "learner"]
    codes = [ColumnCodes(column) for column in tables if column.declared.name != hidden]
    known, wanted = _profiles(source, codes), _profiles(members, codes)[target]
    seen = np.asarray((known > 0).sum(axis=0)).ravel()
    weight = np.log((1.0 + source.n_learners) / (1.0 + seen)) + 0.1
    known, wanted = (csr_array(each.multiply(weight[None, :])) for each in (known, wanted))
    norms = np.sqrt(np.asarray(known.multiply(known).sum(axis=1)).ravel()) + 1e-9
    guesses = np.full(len(target), prior)
    size = max(1, BLOCK_CELLS // max(source.n_learners, 1))
    for begin in range(0, len(target), size):
        block = slice(begin, begin + size)
        likeness = np.where(there, (wanted[block] @ known.T).toarray() / norms, -1.0)
        rate = np.broadcast_to(answer.astype(np.float64), likeness.shape)
        guesses[block] = guess_from_nearest(likeness, rate, np.full(len(likeness), prior))
    return guesses


def _profiles(log: Interactions, codes: list[ColumnCodes]) -> csr_array:
    """Learners x (action and outcome, cells of the table): roots of counts."""
    width = log.n_actions * (1 if log.outcome is None else 2)
    counts = csr_array((np.ones(log.n_rows), (log.learner, log.code)), shape=(log.n_learners, width))
    counts.sum_duplicates()
    counts.data = np.sqrt(counts.data)
    everybody, ones = np.arange(log.n_learners), np.ones(log.n_learners)
    cells = []
    for code in codes:
        own = next(column for column in log.learner_columns if column.declared.name == code.declared.name)
        cells.append(csr_array((ones, (everybody, code.of(own))), shape=(log.n_learners, code.n_codes)))
    return csr_array(hstack([counts, *cells]))


def strongest_attribute(estimates: list[AttributeEstimate]) -> AttributeEstimate | None:
    """The estimate with the largest advantage; None where there is none."""
    return max(estimates, key=lambda estimate: estimate.advantage, default=None)
