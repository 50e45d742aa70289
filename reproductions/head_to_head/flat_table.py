"""A log as a flat table of steps, for generators of tables, and the walk that makes a log of a synthetic one.

A row is a step: the action before (`START` for the first), where in the sequence it is, the action (`END` after the
last) and its outcome. The walk starts at `START` and draws one row after the other among those with its current action
as the action before, at its place in the sequence where there are such rows; it ends with `END`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray, Interactions

START, END = "(start)", "(end)"
COLUMNS = ("previous", "position", "action", "outcome")
# The first position of each bucket; they count from 0 and grow by a factor of 2. Names are no numbers, since readers of
# csv files would take them for such.
BUCKETS = 2 ** np.arange(11) // 2
BUCKET_NAMES = tuple(f"from {first}" for first in BUCKETS)
OUTCOMES = ("0", "1", END)


def domain(actions: tuple[str, ...]) -> dict[str, list[str]]:
    """What each column may hold: public, as the names of the actions are."""
    return {
        "previous": [START, *actions],
        "position": list(BUCKET_NAMES),
        "action": [*actions, END],
        "outcome": list(OUTCOMES),
    }


def flatten(log: Interactions, most_steps: int | None = None) -> pl.DataFrame:
    """The steps of all learners, those into `END` included; at most the first `most_steps` of each."""
    names = np.array([*log.actions, START, END], dtype=object)
    start, end = log.n_actions, log.n_actions + 1
    action = np.insert(log.action.astype(np.int64), log.offsets[1:], end)
    previous = np.insert(log.action.astype(np.int64), log.offsets[:-1], start)
    outcome = np.insert(log.success.astype(np.int64), log.offsets[1:], 2)
    first = log.offsets + np.arange(len(log.offsets))
    position = np.arange(len(action)) - np.repeat(first[:-1], np.diff(first))
    table = pl.DataFrame(
        {
            "previous": names[previous].astype(str),
            "position": np.array(BUCKET_NAMES, dtype=object)[_bucket(position)].astype(str),
            "action": names[action].astype(str),
            "outcome": np.array(OUTCOMES, dtype=object)[outcome].astype(str),
        }
    )
    return table if most_steps is None else table.filter(position < most_steps)


def walk(
    table: pl.DataFrame, n_learners: int, actions: tuple[str, ...], longest: int, rng: np.random.Generator
) -> Interactions:
    """Sequences from a synthetic table of steps; `longest` bounds those that no row ends."""
    values = domain(actions)
    code = {column: _codes(table[column], values[column]) for column in COLUMNS}
    n, outcome = len(actions), code["outcome"]
    # Rows that no sequence has: an outcome without an action, an action without one, and from the start to the end.
    sound = ((outcome < 2) == (code["action"] < n)) & ((code["previous"] > 0) | (code["action"] < n))
    place = code["previous"] * len(BUCKETS) + code["position"]
    action, outcome, place = code["action"][sound], outcome[sound], place[sound]
    here = _Groups(place, (n + 1) * len(BUCKETS))
    anywhere = _Groups(place // len(BUCKETS), n + 1)
    inner = np.flatnonzero(action < n)
    walks: list[list[int]] = []
    for _ in range(n_learners):
        walked: list[int] = []
        state = 0
        while len(walked) < longest:
            bucket = int(_bucket(np.array(len(walked))))
            choice = here.rows(state * len(BUCKETS) + bucket)
            if not len(choice):
                choice = anywhere.rows(state)
            if not len(choice):
                choice = inner
            row = int(choice[rng.integers(len(choice))])
            if action[row] == n:
                break
            walked.append(row)
            state = int(action[row]) + 1
        walks.append(walked)
    return Interactions.from_sequences(
        [action[rows] for rows in walks], [outcome[rows] for rows in walks], actions=list(actions)
    )


class _Groups:
    """Rows by a code."""

    def __init__(self, code: IntArray, n_codes: int) -> None:
        self._order = np.argsort(code, kind="stable")
        self._begin = np.searchsorted(code[self._order], np.arange(n_codes + 1))

    def rows(self, code: int) -> NDArray[np.int64]:
        return self._order[self._begin[code] : self._begin[code + 1]]


def _bucket(position: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of a position that counts from 0."""
    return np.searchsorted(BUCKETS, position, side="right") - 1


def _codes(column: pl.Series, values: list[str]) -> NDArray[np.int64]:
    place = {value: code for code, value in enumerate(values)}
    return column.cast(pl.Utf8).replace_strict(place, return_dtype=pl.Int64).to_numpy()
