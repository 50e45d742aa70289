"""What a sweep of coarsenings measured: rows, and the advice that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

STRONGEST = "strongest"
PUBLISHED = "euclidean"  # the attack of Leinonen (2016)

MATCHED = "-matched"  # ends the name of an attack that names everybody at once, each person once

IDENTIFICATION, INFERENCE, PRESERVED, GROUPS = "identification", "inference", "preserved", "equal profiles"

# What was typed, without any time: next to the attacks on latencies, never among them. Its size is in digraphs.
BY_TEXT = "text"

AVERAGES, EVENTS = "averages", "events"


@dataclass(frozen=True)
class Row:
    """A row of results.csv: one figure about one coarsening.

    `level` says what was made coarse: a profile's `averages`, as in Leinonen (2016), or the `events`, which is
    what a release holds. `baseline` is k/n for an attack, the majority for an inference.
    """

    level: str
    way: str
    size: float
    measure: str
    name: str
    k: int
    value: float
    low: float
    high: float
    baseline: float
    n_learners: int


# Twice what guessing gives must be a small share for "at chance" to mean anything.
MAX_CHANCE = 0.5

COLUMNS = tuple(column.name for column in fields(Row))


@dataclass(frozen=True)
class Advice:
    """The smallest size that may be advised for one way and level, or none; and why."""

    level: str
    way: str
    k: int
    size: float | None
    because: str
    dip: str | None

    def to_json(self) -> dict[str, Any]:
        """The advice for a machine."""
        return asdict(self)


def at_chance(row: Row) -> bool:
    """Whether the attack's upper bound is at most twice what guessing gives."""
    return row.high <= 2 * row.baseline


def select(rows: Sequence[Row], **wanted: object) -> list[Row]:
    """The rows with these values, by size."""
    return sorted(
        (row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())),
        key=lambda row: row.size,
    )


def advise(rows: Sequence[Row], level: str, way: str, k: int) -> Advice:
    """The smallest size from which on every attack stays at chance.

    A size counts only if it and everything coarser that was tried is at chance, by all attacks that ran there, so
    a dip is never advised. Fewer guesses must not do better than twice chance for certain either; that they may is
    not asked, since with few learners nothing excludes it.
    """
    line = select(rows, level=level, way=way, k=k, measure=IDENTIFICATION, name=STRONGEST)
    every = select(rows, level=level, way=way, measure=IDENTIFICATION)
    found = [row.size for row in every if (row.k == k and not at_chance(row)) or row.low > 2 * row.baseline]
    size = next((row.size for row in line if row.size > max(found, default=-1.0)), None)
    dip = describe_dip(rows, level, way, k)
    if not line:
        return Advice(level, way, k, None, "No coarsening was tried.", dip)
    if 2 * line[0].baseline > MAX_CHANCE:
        because = (
            f"With {line[0].n_learners} learners, guessing alone names {_percent(line[0].baseline)} with "
            f"{_guesses(k)}: too few learners to tell an attack from chance. Ask for fewer guesses."
        )
        return Advice(level, way, k, None, because, dip)
    if size is None:
        last = line[-1]
        because = (
            f"Even at {last.size:g} ms the strongest attack finds {_percent(last.value)} "
            f"(up to {_percent(last.high)}) of the people with {_guesses(k)}; "
            f"guessing finds {_percent(last.baseline)}."
        )
        if last.low <= last.baseline:
            because += f" That may be luck: {last.n_learners} learners are too few to tell."
        return Advice(level, way, k, None, because, dip)
    chosen = next(row for row in line if row.size == size)
    because = (
        f"From {size:g} ms on, the strongest attack we ran finds at most {_percent(chosen.high)} of the people "
        f"with {_guesses(k)} (upper 95 % bound); guessing finds {_percent(chosen.baseline)}."
    )
    return Advice(level, way, k, size, because, dip)


def describe_dip(rows: Sequence[Row], level: str, way: str, k: int) -> str | None:
    """Where the published attack sinks and rises again with the size, if it does by more than its error."""
    line = select(rows, level=level, way=way, k=k, measure=IDENTIFICATION, name=PUBLISHED)
    if len(line) < 3:
        return None
    # The deepest point after which the attack recovers most.
    gains = [(max(later.value for later in line[i + 1 :]) - line[i].value, i) for i in range(len(line) - 1)]
    gain, place = max(gains)
    low = line[place]
    peak = max(line[place + 1 :], key=lambda row: row.value)
    if gain <= 0.05 or peak.low <= low.high:
        return None
    crowd = {row.size: row for row in select(rows, level=level, way=way, measure=GROUPS, name="fullest cell")}
    words = (
        f"The published attack sinks to {_percent(low.value)} at {low.size:g} ms and comes back to "
        f"{_percent(peak.value)} at {peak.size:g} ms."
    )
    if low.size in crowd and peak.size in crowd:
        words += (
            f" At {low.size:g} ms one cell of the grid holds {_percent(crowd[low.size].value)} of all averages, "
            f"at {peak.size:g} ms only {_percent(crowd[peak.size].value)}: a border cuts through the middle of "
            "them again. A coarser grid is not always a better one."
        )
    return words


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _guesses(k: int) -> str:
    return "one guess" if k == 1 else f"{k} guesses"
