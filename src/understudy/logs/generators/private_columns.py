"""The bounded sums behind declared columns, and the models that are made of them once they have their noise.

A column of rows: how often each of its codes occurs by outcome, then by action and outcome. A column of learners: how
many learners have each code, which relations to walks and to earlier columns stand out from the noise, then codes by
the one or two that do. Bins, groups and norms follow from what is declared and from noisy sums that were paid for. The
proof, statistic by statistic, is in docs/explanation/guarantee.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.logs.declared.columns import Column, Declared
from understudy.logs.generators.budget import LONG_STANDS_OUT, Noisy, Spending, choose_norm
from understudy.logs.generators.private_sums import Total, clip_factors, clipped_counts, one_of
from understudy.logs.interactions import IntArray, Interactions, counted_pairs
from understudy.logs.models.declared_columns import (
    N_RATE_CLASSES,
    N_ROW_CLASSES,
    USUAL_INTERACTION,
    Axis,
    Coding,
    Groups,
    LearnerColumn,
    Predictor,
    RowColumn,
    backed_off,
    combined,
    contexts,
    margin,
    raked,
    row_classes,
    shaped,
    smoothed,
    success_classes,
)
from understudy.logs.models.denoising import to_simplex

Floats = NDArray[np.float64]

# What one column takes of the budget, where all else takes 1 together, and all columns at the most; `detail_split`
# weighs it.
COLUMN_SHARE, MOST_SHARE = 0.06, 0.25
# What an outcome takes that rows may lack: more than another column, as outcomes do that all rows have. On simulated
# courses (120 and 960 learners, 30 and 60 actions, epsilon 8) outcomes by action were far closer than with 0.06, and
# hardly closer with 0.8.
OUTCOME_SHARE = 0.4
# How the part of a column is divided.
ROW_PARTS = {"sizes": 0.1, "shares": 0.25, "sizes by action": 0.1, "by action": 0.55}
LEARNER_PARTS = {"shares": 0.2, "given": 0.5, "together": 0.1}
# What columns of learners share, of the part of each.
WALKS_PART, RELATIONS_PART = 0.05, 0.15
# Bins of the norm of a learner's counts: powers of two.
N_SIZES = 16
# A learner's entries add up to about so many norms: by outcome and code, and by action as well.
ENTRIES_BY_OUTCOME, ENTRIES_BY_ACTION = 2.0, 4.0
# A table by action has no more cells than this; with more, a column of rows depends on outcomes alone.
MOST_TABLE = 100_000
# Groups of codes: by action, in tables that look for relations, and at the most.
ROW_GROUPS, RELATION_GROUPS, MOST_GROUPS = 8, 3, 12
# A column is looked at beside so many columns before it.
MOST_EARLIER = 4
# A relation is taken for one where its squares exceed those of noise and chance by so many standard deviations.
RELATION_STANDS_OUT = 3.0
# A cell of a table of learners has at least so many learners in the mean.
CELL_LEARNERS = 2.0
ROWS, SUCCESS = "number of rows", "success rate"


@dataclass(frozen=True)
class ColumnModels:
    """Every declared column of a log, ready to be drawn."""

    rows: tuple[RowColumn, ...] = ()
    learners: tuple[LearnerColumn, ...] = ()
    order: tuple[str, ...] = ()
    """Names as declared."""

    @property
    def given(self) -> dict[str, tuple[str, ...]]:
        """What each column was found to go with, in words for a card: it follows from noisy sums alone."""
        given = {model.coding.declared.name: model.given for model in self.rows}
        for model in self.learners:
            given[model.coding.declared.name] = tuple(_words(each.name) for each in model.given)
        return {name: given[name] for name in self.order}

    def draw(self, walks: Interactions, rng: np.random.Generator) -> tuple[Column, ...]:
        """Columns for synthetic walks."""
        columns = {model.coding.declared.name: model.draw(walks, rng) for model in self.rows}
        known = walk_classes(walks)
        for model in self.learners:
            declared = model.coding.declared
            codes = known[_key(declared.name)] = model.draw(known, rng)
            columns[declared.name] = model.coding.cells(codes, rng)
        return tuple(columns[name] for name in self.order)


def column_shares(log: Interactions, weight: float = 1.0) -> dict[str, float]:
    """What columns take of the budget, where all else takes 1 together; by how many are declared of which kind.

    An outcome is no detail: what it takes is not weighed.
    """
    n = sum(not column.declared.is_outcome for column in log.columns)
    each = weight * min(COLUMN_SHARE, MOST_SHARE / max(n, 1))
    shares = {
        statistic_of(column.declared, part): (OUTCOME_SHARE if column.declared.is_outcome else each) * share
        for column in log.columns
        for part, share in (ROW_PARTS if column.declared.of == "row" else LEARNER_PARTS).items()
    }
    if log.learner_columns:
        shares["columns walks"] = len(log.learner_columns) * each * WALKS_PART
        shares["columns relations"] = len(log.learner_columns) * each * RELATIONS_PART
    return shares


def statistic_of(declared: Declared, part: str) -> str:
    """What a statistic of a column is called: no two columns share one, whatever they are called."""
    return f"columns '{declared.name}' {part}"


def fit_columns(log: Interactions, spending: Spending, n_learners: int) -> ColumnModels:
    """Learn all columns of a log whose categories and bounds are known, from sums that `spending` releases."""
    rows = [_fit_row_column(log, column, spending, n_learners) for column in log.row_columns]
    learners = _fit_learner_columns(log, spending, n_learners) if log.learner_columns else []
    return ColumnModels(tuple(rows), tuple(learners), tuple(column.declared.name for column in log.columns))


def walk_classes(log: Interactions) -> dict[str, IntArray]:
    """What is known of every learner without a column: classes of rows, and of success where there are outcomes."""
    classes = {ROWS: row_classes(log)}
    return classes if log.outcome is None else classes | {SUCCESS: success_classes(log)}


# ---- the sums


def sizes(log: Interactions, cell: IntArray, n_cells: int) -> Total:
    """Learners by the norm of their counts of rows by cell, in powers of two."""
    learner, _, count = counted_pairs(log.learner, cell, n_cells)
    # The factor to reach norm 1 is one over the norm.
    norm = 1.0 / clip_factors(learner, count, log.n_learners, 1.0)
    power = np.floor(np.log2(norm) + 1e-9).astype(np.int64)
    return one_of(np.clip(power, 0, N_SIZES - 1), N_SIZES)


def cells(log: Interactions, cell: IntArray, n_cells: int, norm: float) -> Total:
    """Rows by cell, those of each learner scaled down to a norm."""
    return clipped_counts(*counted_pairs(log.learner, cell, n_cells), (log.n_learners, n_cells), norm)


def _norm(found: Noisy, n_cells: int, entries: float, n_learners: int, rho: float) -> float:
    """Where to clip, by noisy numbers of learners of each size."""
    sigma = found.largest_sigma
    beyond = np.cumsum(found.values[::-1])[::-1]
    noise = sigma * np.sqrt(np.arange(N_SIZES, 0, -1))
    # Sizes past the last that stands out would be learners whom the noise invented, with more rows than all others.
    seen = np.flatnonzero(beyond > LONG_STANDS_OUT * noise)
    last = int(seen[-1]) if len(seen) else 0
    learners = to_simplex(found.values[: last + 1], n_learners)
    largest = np.exp2(np.arange(1.0, last + 2.0))
    mass = entries * float(learners @ largest) / sqrt(2.0)
    return choose_norm(largest, learners, mass, n_cells, rho)


# ---- columns of rows


def _fit_row_column(log: Interactions, column: Column, spending: Spending, n_learners: int) -> RowColumn:
    declared = column.declared
    if declared.at is not None:
        # What is public is not asked for.
        keep = declared.has_values(log.actions)[log.action]
        log, column = log.keep_rows(keep, all_learners=True), column.take(keep)
    coding = Coding(declared)
    code, n_codes = coding.codes(column), coding.n_codes
    n_outcomes = 1 if log.outcome is None else 2
    outcome = np.zeros(log.n_rows, dtype=np.int64) if log.outcome is None else log.outcome.astype(np.int64)

    counts = _released_cells(
        log,
        outcome * n_codes + code,
        n_outcomes * n_codes,
        spending,
        (statistic_of(declared, "sizes"), statistic_of(declared, "shares")),
        n_learners,
        ENTRIES_BY_OUTCOME,
    )
    sigma = counts.largest_sigma
    by_outcome = counts.values.reshape(n_outcomes, n_codes)
    all_rows = margin(by_outcome.sum(axis=0), sigma * sqrt(n_outcomes), coding)
    groups = Groups.of(all_rows, ROW_GROUPS, ordered=coding.ordered)
    n_groups, overall = groups.n, groups.summed(all_rows)
    # The noise of a group is that of all its codes.
    outcomes = backed_off(groups.summed(by_outcome), sigma * np.sqrt(groups.sizes), overall)

    by_action = n_outcomes * log.n_actions * n_groups <= MOST_TABLE
    context = contexts(log) if by_action else outcome
    n_contexts = n_outcomes * (log.n_actions if by_action else 1)
    table = _released_cells(
        log,
        context * n_groups + groups.of_code[code],
        n_contexts * n_groups,
        spending,
        (statistic_of(declared, "sizes by action"), statistic_of(declared, "by action")),
        n_learners,
        ENTRIES_BY_ACTION,
    )
    noise = table.largest_sigma
    found = table.values.reshape(-1, n_outcomes, n_groups)
    if by_action:
        shares = by_action_and_outcome(found, noise, outcomes, overall)
    else:
        # The same table once more, where there are too many actions for one of their own.
        shares = np.tile(backed_off(found[0], noise, outcomes), (log.n_actions, 1))
    given = (*(("action",) if by_action else ()), *(() if log.outcome is None else ("outcome",)))
    return RowColumn(coding, shares, groups.within(all_rows), given)


def _released_cells(
    log: Interactions,
    cell: IntArray,
    n_cells: int,
    spending: Spending,
    names: tuple[str, str],
    n_learners: int,
    entries: float,
) -> Noisy:
    """Noisy rows by cell, clipped where noisy sizes say."""
    of_sizes, of_cells = names
    (found,) = spending.spend(of_sizes, sizes(log, cell, n_cells))
    norm = _norm(found, n_cells, entries, n_learners, spending.rho_of(of_cells))
    (counts,) = spending.spend(of_cells, cells(log, cell, n_cells, norm))
    return counts


def by_action_and_outcome(table: Floats, sigma: float, outcomes: Floats, overall: Floats) -> Floats:
    """Shares of groups by action and outcome (rows of the result) out of noisy counts (actions, outcomes, groups).

    An action is drawn to what its outcomes let expect, and an action with an outcome to what both together do: each
    departs from all rows by a factor of its own.
    """
    _, n_outcomes, n_groups = table.shape
    rows = np.maximum(table.sum(axis=2), 0.0)
    mix = (rows + 1e-9) / (rows + 1e-9).sum(axis=1, keepdims=True)
    actions = backed_off(table.sum(axis=1), sigma * sqrt(n_outcomes), mix @ outcomes)
    if n_outcomes == 1:
        return actions
    factor = outcomes / np.where(overall > 0.0, overall, 1.0)
    both = actions[:, None, :] * factor
    both /= np.maximum(both.sum(axis=2, keepdims=True), 1e-12)
    shares: Floats = backed_off(table.reshape(-1, n_groups), sigma, both.reshape(-1, n_groups))
    return shares


# ---- columns of learners


@dataclass(frozen=True)
class _Known:
    """What is known of learners beside the column at hand: codes, which stay inside, and their noisy shares."""

    codes: IntArray
    shares: Floats
    ordered: bool

    def groups(self, n_groups: int) -> Groups:
        return Groups.of(self.shares, n_groups, ordered=self.ordered)


def _fit_learner_columns(log: Interactions, spending: Spending, n_learners: int) -> list[LearnerColumn]:
    walks = walk_classes(log)
    n_classes = {ROWS: N_ROW_CLASSES, SUCCESS: N_RATE_CLASSES}
    noisy = spending.spend("columns walks", *(one_of(code, n_classes[name]) for name, code in walks.items()))
    known = {
        name: _Known(code, _class_shares(each), ordered=True)
        for (name, code), each in zip(walks.items(), noisy, strict=True)
    }
    codings = {_key(column.declared.name): Coding(column.declared) for column in log.learner_columns}
    counts: dict[str, Noisy] = {}
    for (key, coding), column in zip(codings.items(), log.learner_columns, strict=True):
        codes = coding.codes(column)
        (count,) = spending.spend(statistic_of(column.declared, "shares"), one_of(codes, coding.n_codes))
        counts[key] = count
        known[key] = _Known(codes, margin(count.values, count.largest_sigma, coding), coding.ordered)
    best = _best_predictors(known, list(walks), list(codings), spending)
    return [
        _given(key, best[key], known, coding, spending, counts[key], n_learners)
        for key, coding in codings.items()
    ]


def _best_predictors(
    known: dict[str, _Known], walks: list[str], keys: list[str], spending: Spending
) -> dict[str, list[str]]:
    """What each column goes with, of walks and of columns before it: the strongest relation that stands out, and the
    strongest of those that the first one does not explain.
    """
    earlier = {key: [*walks, *keys[max(place - MOST_EARLIER, 0) : place]] for place, key in enumerate(keys)}
    pairs = [*combinations(walks, 2), *((key, other) for key in keys for other in earlier[key])]
    groups = {name: each.groups(RELATION_GROUPS) for name, each in known.items()}

    def cells(pair: tuple[str, str]) -> Total:
        own, other = (groups[name].of_code[known[name].codes] for name in pair)
        return one_of(own * groups[pair[1]].n + other, groups[pair[0]].n * groups[pair[1]].n)

    noisy = spending.spend("columns relations", *map(cells, pairs))
    tables = {}
    for (one, other), table in zip(pairs, noisy, strict=True):
        tables[one, other] = table.values.reshape(groups[one].n, groups[other].n)
        tables[other, one] = tables[one, other].T
    sigma = noisy[0].largest_sigma
    best: dict[str, list[str]] = {}
    for key in keys:
        strength = {other: relation(tables[key, other], sigma) for other in earlier[key]}
        first = max(earlier[key], key=lambda other: strength[other])
        if not strength[first]:
            best[key] = []
            continue
        left = {
            other: relation(tables[key, other], sigma, tables[key, first], tables[other, first])
            for other in earlier[key]
            if other != first and (other, first) in tables
        }
        best[key] = [
            first,
            *sorted((other for other in left if left[other]), key=lambda other: -left[other])[:1],
        ]
    return best


def _given(
    key: str,
    best: list[str],
    known: dict[str, _Known],
    coding: Coding,
    spending: Spending,
    count: Noisy,
    n_learners: int,
) -> LearnerColumn:
    """A column by what predicts it best: two, one, or nothing."""
    n_groups = _resolution(n_learners, len(best))
    own = known[key].groups(n_groups) if best else Groups.alone(coding.n_codes)
    given = tuple(Predictor(other, known[other].groups(n_groups)) for other in best)
    codes = {other: each.codes for other, each in known.items()}
    own_group = own.of_code[known[key].codes]

    def cells(*predictors: Predictor) -> Total:
        n_cells = own.n * int(np.prod([predictor.groups.n for predictor in predictors]))
        return one_of(combined(predictors, codes) * own.n + own_group, n_cells)

    # Two predictors have a table each, in which a relation has less noise than in the one that they share.
    separate: list[tuple[Predictor, ...]] = [(predictor,) for predictor in given] or [()]
    tables = spending.spend(
        statistic_of(coding.declared, "given"), *(cells(*predictors) for predictors in separate)
    )
    (together,) = spending.spend(statistic_of(coding.declared, "together"), cells(*given))
    if len(given) < 2:
        # The same table once more.
        tables = [_mean(tables[0], together)]
    overall = own.summed(known[key].shares)
    if given:
        axes = [predictor.groups.axis for predictor in given]
        shares = by_predictors([*tables, together][: 2 * len(given) - 1], overall, axes, own.axis)
    else:
        both = _mean(count, tables[0])
        shares = margin(both.values, both.largest_sigma, coding)[None, :]
    return LearnerColumn(coding, given, shares, own.within(known[key].shares))


def _key(name: str) -> str:
    """How a column is called among predictors: no class of walks is called so."""
    return f"column {name}"


def _words(predictor: str) -> str:
    return predictor if predictor in (ROWS, SUCCESS) else f"'{predictor.removeprefix('column ')}'"


def _class_shares(noisy: Noisy) -> Floats:
    """Shares of classes of walks, and of a last code for what is missing, which none is."""
    counts = smoothed(noisy.values, noisy.largest_sigma, np.ones(len(noisy.values)))
    return np.append(counts / max(float(counts.sum()), 1e-9), 0.0)


def relation(
    table: Floats, sigma: float, one_by: Floats | None = None, other_by: Floats | None = None
) -> float:
    """By how much squares of departures from independence exceed those of noise and of chance; 0 where they do not.

    Of a noisy table of learners. Its margins are its own, which leaves (rows - 1) (columns - 1) free; chance moves a
    cell by n p (1 - p) q (1 - q), squared and in the mean. With noisy tables of both sides by a third, independence
    is that within each of its classes: what the third explains is no departure. The noise of these tables is counted
    as if it were that of the table once more.
    """
    free = (table.shape[0] - 1) * (table.shape[1] - 1)
    n = max(float(table.sum()), 1e-9)
    one, other = (_shares(table.sum(axis=axis)) for axis in (1, 0))
    chance = n * float((one * (1.0 - one)).sum() * (other * (1.0 - other)).sum())
    expected = free * sigma**2 * (1.0 if one_by is None else 2.0) + chance
    independent = np.outer(one, other)
    if one_by is not None and other_by is not None:
        third = _shares(one_by.sum(axis=0))
        independent = np.einsum("ik,jk,k->ij", _shares(one_by, 0), _shares(other_by, 0), third)
    beyond = float(((table - n * independent) ** 2).sum()) - expected
    return beyond if free and beyond > RELATION_STANDS_OUT * sqrt(2.0 / free) * expected else 0.0


def _shares(noisy: Floats, axis: int | None = None) -> Floats:
    """Noisy counts as shares of all, or of those along an axis."""
    counts = np.maximum(noisy, 0.0) + 1e-9
    shares: Floats = counts / counts.sum(axis=axis, keepdims=True)
    return shares


def _resolution(n_learners: int, n_given: int) -> int:
    """How many groups a column and what it is given have: the more the more learners there are."""
    return int(np.clip(round((n_learners / CELL_LEARNERS) ** (1.0 / (n_given + 1))), 2, MOST_GROUPS))


def by_predictors(tables: Sequence[Noisy], overall: Floats, given: Sequence[Axis], own: Axis) -> Floats:
    """Shares of groups for each combination of predictors (rows of the result) out of noisy counts.

    One predictor departs from all learners. Two have a table each and one together: each departs from all learners, and
    the two together from what each of them lets expect.
    """
    shares = [
        shaped(table.values.reshape(axis.n, own.n), table.largest_sigma, overall, (axis, own))
        for table, axis in zip(tables, given, strict=False)
    ]
    if len(given) == 1:
        return shares[0]
    together = tables[2].values.reshape(given[0].n, given[1].n, own.n)
    learners = [
        np.maximum(table.values.reshape(axis.n, own.n).sum(axis=1), 0.0) + 1e-9
        for table, axis in zip(tables, given, strict=False)
    ]
    # How many have which classes of both: the noise of it is that of all groups of the column.
    counts, noise = together.sum(axis=2), tables[2].largest_sigma * sqrt(own.n)
    beside = shaped(counts, noise, learners[1] / learners[1].sum(), tuple(given), USUAL_INTERACTION)
    weight = (learners[0] / learners[0].sum())[:, None] * beside
    guess = raked(weight, shares[0], shares[1], overall)
    return shaped(together, tables[2].largest_sigma, guess, (*given, own), USUAL_INTERACTION).reshape(
        -1, own.n
    )


def _mean(one: Noisy, other: Noisy) -> Noisy:
    """Two noisy counts of the same, by how much noise each has."""
    weight, more = (each.largest_sigma**-2.0 for each in (one, other))
    return Noisy((weight * one.values + more * other.values) / (weight + more), (weight + more) ** -0.5)
