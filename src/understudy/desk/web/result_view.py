"""Results as a page shows them: numbers by name, tables, and plots that were given as numbers.

Next to a number that may leave is what the trial on synthetic data gave, and how many learners are behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from understudy.desk.domain.results import STEP, Results, Table

_ACROSS, _UP = "x", "y"
_LEAST_POINTS = 3
_SINGLE = ("name", "value")


@dataclass(frozen=True)
class Cell:
    """One value of a result; `trial` and `learners` only where they are known."""

    value: Any
    trial: Any = None
    learners: int | None = None
    few: bool = False
    """Fewer learners than the policy asks for."""
    name: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it is a number, which is aligned on the right."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)


@dataclass(frozen=True)
class Plot:
    """A line through points in a box of 100 by 50, with the ends of its axes."""

    points: tuple[tuple[float, float], ...]
    across: tuple[float, float]
    up: tuple[float, float]


@dataclass(frozen=True)
class Group:
    """A part of a result with a title: a table, or single values with their names in the first column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    plot: Plot | None = None
    single: bool = False
    """Values by name, not a table that was returned as one."""

    @property
    def n_numbers(self) -> int:
        """How many cells are numbers."""
        return sum(cell.is_number for row in self.rows for cell in row)


def result_groups(
    results: Results,
    *,
    trial: Results | None = None,
    support: Mapping[str, int] | None = None,
    minimum: int = 0,
) -> list[Group]:
    """The parts of a result in order, values first."""
    names: list[str] = []

    def note(name: str, _: float) -> float:
        names.append(name)
        return float(len(names) - 1)

    # The same results with every number replaced by its place in the list of names.
    places = _all_numbers(results).changed(note)

    def cell(value: Any, place: Any) -> Cell:
        if isinstance(value, str):
            return Cell(value)
        name = names[int(place)]
        learners = None if support is None else support.get(name)
        given: float | bool | None = None if trial is None else trial.numbers.get(name)
        if isinstance(value, bool) and given in (0, 1):
            given = bool(given)
        if value is None and learners is None and (given is None or isnan(given)):
            return Cell(None)
        few = learners is not None and 0 < learners < minimum
        return Cell(value, given, learners, few, name)

    return [
        *_of_values(results.values, places.values, cell),
        *(_of_table(name, table, places.tables[name], cell) for name, table in results.tables.items()),
    ]


def _all_numbers(results: Results) -> Results:
    """With numbers for what is missing and for yes and no, which count as numbers too."""

    def counted(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: counted(part) for name, part in value.items()}
        if isinstance(value, list):
            return [counted(part) for part in value]
        return 0 if value is None or isinstance(value, bool) else value

    return Results(
        counted(results.values),
        {
            name: Table(table.columns, tuple(tuple(counted(one) for one in row) for row in table.rows))
            for name, table in results.tables.items()
        },
    )


def _of_values(values: Any, places: Any, cell: Any) -> list[Group]:
    if values is None:
        return []
    if not isinstance(values, dict):
        values, places = {"result": values}, {"result": places}
    groups: list[Group] = []
    single: list[tuple[Cell, ...]] = []
    for name, value in values.items():
        if isinstance(value, dict | list):
            rows = tuple(
                (Cell(key), cell(one, place)) for key, one, place in _leaves(value, places[name]) or ()
            )
            if rows:
                groups.append(Group(str(name), _SINGLE, rows, _plot(value), single=True))
        else:
            single.append((Cell(str(name)), cell(value, places[name])))
    return ([Group("Values", _SINGLE, tuple(single), single=True)] if single else []) + groups


def _leaves(value: Any, places: Any, way: str = "") -> list[tuple[str, Any, Any]]:
    if isinstance(value, dict):
        parts = [(str(key), one, places[key]) for key, one in value.items()]
    elif isinstance(value, list):
        parts = [(str(at), one, places[at - 1]) for at, one in enumerate(value, 1)]
    else:
        return [(way, value, places)]
    return [
        leaf for key, one, place in parts for leaf in _leaves(one, place, f"{way}{STEP}{key}" if way else key)
    ]


def _of_table(name: str, table: Table, places: Table, cell: Any) -> Group:
    rows = tuple(
        tuple(cell(value, place) for value, place in zip(row, where, strict=True))
        for row, where in zip(table.rows, places.rows, strict=True)
    )
    return Group(name, table.columns, rows, _plot(_columns(table)))


def _columns(table: Table) -> dict[str, list[Any]]:
    return {name: [row[at] for row in table.rows] for at, name in enumerate(table.columns)}


def _plot(value: Any) -> Plot | None:
    """What has numbers `x` and `y` of one length, and nothing else, is drawn."""
    if not isinstance(value, dict) or set(value) != {_ACROSS, _UP}:
        return None
    across, up = value[_ACROSS], value[_UP]
    if not isinstance(across, list) or not isinstance(up, list) or len(across) != len(up):
        return None
    points = [(x, y) for x, y in zip(across, up, strict=True) if _number(x) and _number(y)]
    if len(points) < _LEAST_POINTS:
        return None
    ends = [(min(side), max(side)) for side in zip(*points, strict=True)]
    (left, right), (low, high) = ends
    scaled = tuple(
        (
            round(100 * (x - left) / ((right - left) or 1), 2),
            round(50 - 50 * (y - low) / ((high - low) or 1), 2),
        )
        for x, y in points
    )
    return Plot(scaled, (left, right), (low, high))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
