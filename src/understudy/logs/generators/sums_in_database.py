"""The bounded sums of `markov-dp` as SQL, for a log whose rows stay in a database.

Each is the sum of the same function of the same method of `WalkStatistics`, with the same sensitivity and step: a test
compares them on the same log. What is released of them, and what it costs, is the generator's business as ever.

The proof of each sum is that of its kernel. It rests on what a single learner adds, which is what the subqueries by
learner compute, and on four facts that hold here by construction:

- A learner is one group: `understudy_walks` has one number for each id, and every subquery that clips groups by it.
- What a learner adds follows from their own rows, to the last bit: floats of a learner are added up in the order of
  their actions (`_in_order`). A database adds in any order otherwise, which other learners' rows and the threads
  decide; with an order it gathers a group's rows, sorts them, and adds one after the other. That holds for DuckDB
  and PostgreSQL, neither of which splits such a sum between threads or workers.
- A learner's vector is scaled down to the norm before anything is added up over learners: `_clipped`.
- What is added up are whole numbers, rounded towards zero, so neither the order of rows nor the database's arithmetic
  can carry a learner past the norm; and sums of whole numbers are exact.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.logs.generators.private_sums import LESS, RESOLUTION, Floats, Total, WalkStatistics
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.log_in_database import DatabaseWalks, LogInDatabase, literal
from understudy.logs.models.rasch import MOST_NEWTON_STEPS, NEWTON_STEP, SMALLEST_STEP


class ChainStatistics(Protocol):
    """What `markov-dp` asks of a log: sums over learners, in this process or in a database."""

    log: Interactions

    def lengths(self, edges: IntArray) -> Total: ...  # noqa: D102 (see `WalkStatistics`)
    def length_moments(self, longest: int) -> Total: ...  # noqa: D102
    def starts(self) -> Total: ...  # noqa: D102
    def row_norms(self, longest: int) -> Total: ...  # noqa: D102
    def run_norms(self, longest: int) -> Total: ...  # noqa: D102
    def totals(self, longest: float) -> Total: ...  # noqa: D102
    def rows(self, norm: float) -> Total: ...  # noqa: D102
    def runs(self, norm: float) -> Total: ...  # noqa: D102
    def jumps(self, norm: float, actions: IntArray) -> Total: ...  # noqa: D102
    def slopes(self, easiness: Floats, weight: Floats, norm: float) -> Total: ...  # noqa: D102
    def curvature(self, easiness: Floats, weight: Floats, norm: float, most: float) -> Total: ...  # noqa: D102
    def abilities(self, easiness: Floats, most: float) -> Total: ...  # noqa: D102


def chain_statistics(log: Interactions) -> ChainStatistics:
    """The statistics of a log, where its rows are."""
    return DatabaseStatistics(log) if isinstance(log, LogInDatabase) else WalkStatistics(log)


_SUM = "CAST(sum(CAST(trunc({}) AS bigint)) AS bigint)"


class DatabaseStatistics:
    """See `WalkStatistics`; those that `markov-dp` asks for."""

    def __init__(self, log: LogInDatabase) -> None:
        assert log.walks is not None
        self.log: Interactions = log
        self._walks: DatabaseWalks = log.walks
        self._abilities: _Abilities | None = None

    def lengths(self, edges: IntArray) -> Total:
        """See `WalkStatistics.lengths`: how many learners have how many rows is counted in the database."""
        return WalkStatistics(self.log).lengths(edges)

    def length_moments(self, longest: int) -> Total:
        """See `WalkStatistics.length_moments`."""
        return WalkStatistics(self.log).length_moments(longest)

    def starts(self) -> Total:
        """See `WalkStatistics.starts`: a learner has one first row, and adds 1 to one action."""
        counted = f"SELECT action, count(*) FROM {self._walks.rows} WHERE place = 0 GROUP BY action"
        values = RESOLUTION * self._vector(counted, self.log.n_actions)
        return Total(values, sqrt(2.0) * RESOLUTION, 1.0 / RESOLUTION)

    def row_norms(self, longest: int) -> Total:
        """See `WalkStatistics.row_norms`."""
        return self._log_norms(self._pairs, "attempts", longest)

    def run_norms(self, longest: int) -> Total:
        """See `WalkStatistics.run_norms`."""
        return self._log_norms(self._runs, "runs", longest)

    def totals(self, longest: float) -> Total:
        """See `WalkStatistics.totals`: a learner's three numbers are scaled down where they have more rows."""
        rows = "CAST(greatest(n, 1) AS float8)"
        factor = f"(least({literal(1.0)}, {literal(longest)} / {rows}) / {literal(longest)})"
        sums = ", ".join(
            _SUM.format(f"CAST({what} AS float8) * {factor} * {literal(float(RESOLUTION))} * {literal(LESS)}")
            for what in ("runs", "successes", "failures")
        )
        per_learner = (
            "SELECT learner, sum(attempts) AS n, sum(successes) AS successes, sum(attempts - successes) AS failures "
            f"FROM {self._pairs} GROUP BY learner"
        )
        runs = f"SELECT learner, sum(runs) AS runs FROM {self._runs} GROUP BY learner"
        found = self._walks.database.rows(
            f"SELECT {sums} FROM ({per_learner}) AS rows_of JOIN ({runs}) AS runs_of USING (learner)"
        )
        values = np.array([number or 0 for number in found[0]], dtype=np.int64)
        return Total(values, sqrt(3.0) * RESOLUTION, longest / RESOLUTION)

    def rows(self, norm: float) -> Total:
        """See `WalkStatistics.rows`."""
        entries = f"SELECT learner, action AS place, attempts AS entry FROM {self._pairs}"
        return self._counts(entries, self.log.n_actions, norm)

    def runs(self, norm: float) -> Total:
        """See `WalkStatistics.runs`."""
        entries = f"SELECT learner, action AS place, runs AS entry FROM {self._runs}"
        return self._counts(entries, self.log.n_actions, norm)

    def jumps(self, norm: float, actions: IntArray) -> Total:
        """See `WalkStatistics.jumps`."""
        n = len(actions)
        known = self._walks.numbers(
            "understudy_jumping",
            "action bigint, place bigint",
            [(code, at) for at, code in enumerate(actions.tolist())],
        )
        entries = (
            f"SELECT learner, source.place * {n} + target.place AS place, count(*) AS entry FROM "
            f"(SELECT learner, action, lead(action) OVER (PARTITION BY learner ORDER BY place) AS following "
            f"FROM {self._run_starts}) AS jumps "
            f"JOIN {known} AS source ON source.action = jumps.action "
            f"JOIN {known} AS target ON target.action = jumps.following "
            f"GROUP BY learner, source.place * {n} + target.place"
        )
        return self._counts(entries, n * n, norm)

    def slopes(self, easiness: Floats, weight: Floats, norm: float) -> Total:
        """See `WalkStatistics.slopes`."""
        values = self._vector(_clipped(self._residuals(easiness, weight), norm), self.log.n_actions)
        return Total(values, 2.0 * RESOLUTION, norm / RESOLUTION / weight)

    def curvature(self, easiness: Floats, weight: Floats, norm: float, most: float) -> Total:
        """See `WalkStatistics.curvature`: a learner's is scaled down like their slopes, then cut at `most`."""
        per_learner = (
            f"SELECT learner, {_in_order('curvature', 'place')} * {_factor(norm)} AS part "
            f"FROM ({self._residuals(easiness, weight)}) AS residuals GROUP BY learner"
        )
        part = f"greatest({literal(0.0)}, least({literal(most)}, part)) * {literal(RESOLUTION / most)}"
        found = self._walks.database.rows(f"SELECT {_SUM.format(part)} FROM ({per_learner}) AS parts")
        return Total(np.array([found[0][0] or 0], dtype=np.int64), float(RESOLUTION), most / RESOLUTION)

    def abilities(self, easiness: Floats, most: float) -> Total:
        """See `WalkStatistics.abilities`."""
        state = self._unexplained(easiness).state
        bounded = f"greatest({literal(-most)}, least({literal(most)}, ability))"
        cut = f"SELECT {bounded} / {literal(most)} AS cut FROM {state}"
        moments = ", ".join(
            _SUM.format(f"{part} * {literal(float(RESOLUTION))}") for part in ("cut", "(cut * cut)")
        )
        found = self._walks.database.rows(f"SELECT {moments} FROM ({cut}) AS cuts")
        values = np.array([number or 0 for number in found[0]], dtype=np.int64)
        step = np.array([most, most**2]) / RESOLUTION
        return Total(values, 2.0 * RESOLUTION + sqrt(2.0), step)

    def _vector(self, query: str, n: int) -> NDArray[np.int64]:
        values = np.zeros(n, dtype=np.int64)
        if found := self._walks.database.rows(query):
            place, number = np.array(found, dtype=np.int64).T
            values[place] = number
        return values

    def _counts(self, entries: str, n_columns: int, norm: float) -> Total:
        values = self._vector(_clipped(entries, norm), n_columns)
        return Total(values, sqrt(2.0) * RESOLUTION, norm / RESOLUTION)

    def _log_norms(self, table: str, count: str, longest: int) -> Total:
        """A learner adds the logarithm of a norm, from 0 to 1."""
        size = f"SELECT sqrt(CAST(sum({count} * {count}) AS float8)) AS size FROM {table} GROUP BY learner"
        share = f"ln(greatest(size, {literal(1.0)})) / {literal(float(np.log(longest)))} * {literal(LESS)}"
        part = f"least({literal(1.0)}, {share}) * {literal(float(RESOLUTION))}"
        found = self._walks.database.rows(f"SELECT {_SUM.format(part)} FROM ({size}) AS sizes")
        return Total(np.array([found[0][0] or 0], dtype=np.int64), float(RESOLUTION), 1.0 / RESOLUTION)

    def _residuals(self, easiness: Floats, weight: Floats) -> str:
        """Per learner and action: successes beyond expectation, weighted, and the curvature left to the action."""
        found = self._unexplained(easiness)
        weights = self._walks.numbers(
            "understudy_weights", "action bigint, weight float8", list(enumerate(weight.tolist()))
        )
        return (
            "SELECT learner, action AS place, (successes - attempts * chance) * weight AS entry, "
            "own * (1 - own / bend) AS curvature FROM (SELECT *, attempts * chance * (1 - chance) AS own FROM "
            f"(SELECT pairs.*, bend, weight, {_CHANCE} AS chance FROM {self._pairs} AS pairs "
            f"JOIN {found.state} AS state USING (learner) JOIN {found.easy} AS easy USING (action) "
            f"JOIN {weights} AS weights USING (action)) AS chances) AS owned"
        )

    def _unexplained(self, easiness: Floats) -> _Abilities:
        """Every learner's ability at this easiness, by Newton's steps that follow from a learner's own rows alone."""
        if self._abilities is not None and self._abilities.easiness is easiness:
            return self._abilities
        walks, found = self._walks, _Abilities(easiness, next(_NUMBERS))
        walks.numbers(found.easy, "action bigint, easiness float8", list(enumerate(easiness.tolist())))
        walks.make(
            found.state,
            f"SELECT learner, {literal(0.0)} AS ability, {literal(1.0)} AS bend, "
            "CASE WHEN n = 0 THEN 0 ELSE 1 END AS going FROM understudy_lengths",
        )
        bend = _in_order("attempts * chance * (1 - chance)", "action")
        step = (
            f"SELECT learner, ability, ({_in_order('successes - attempts * chance', 'action')} - ability) / "
            f"(1 + {bend}) AS step, 1 + {bend} AS bend FROM (SELECT pairs.*, ability, {_CHANCE} AS chance "
            f"FROM {self._pairs} AS pairs JOIN {found.state} AS state USING (learner) "
            f"JOIN {found.easy} AS easy USING (action) WHERE going = 1) AS chances GROUP BY learner, ability"
        )
        most, small = literal(NEWTON_STEP), literal(SMALLEST_STEP)
        for _ in range(MOST_NEWTON_STEPS):
            walks.make(
                "understudy_next",
                f"SELECT learner, ability + greatest(-{most}, least({most}, step)) AS ability, bend, "
                f"CASE WHEN abs(step) < {small} THEN 0 ELSE 1 END AS going FROM ({step}) AS steps "
                f"UNION ALL SELECT learner, ability, bend, going FROM {found.state} WHERE going = 0",
            )
            walks.database.run(f"DROP TABLE {found.state}")
            walks.database.run(f"ALTER TABLE understudy_next RENAME TO {found.state}")
            if not walks.database.rows(f"SELECT 1 FROM {found.state} WHERE going = 1 LIMIT 1"):
                break
        self._abilities = found
        return found

    @property
    def _pairs(self) -> str:
        """Learners' attempts and successes at each action."""
        return self._walks.once(
            "understudy_pairs",
            "SELECT learner, action, count(*) AS attempts, CAST(sum(outcome) AS bigint) AS successes "
            f"FROM {self._walks.rows} GROUP BY learner, action",
        )

    @property
    def _run_starts(self) -> str:
        """The first row of each run."""
        return self._walks.once(
            "understudy_run_starts",
            "SELECT learner, place, action FROM (SELECT learner, place, action, "
            "lag(action) OVER (PARTITION BY learner ORDER BY place) AS before "
            f"FROM {self._walks.rows}) AS steps WHERE before IS NULL OR before <> action",
        )

    @property
    def _runs(self) -> str:
        """Learners' runs at each action."""
        return self._walks.once(
            "understudy_runs",
            f"SELECT learner, action, count(*) AS runs FROM {self._run_starts} GROUP BY learner, action",
        )


@dataclass(frozen=True, eq=False)
class _Abilities:
    """The tables that belong to an easiness: itself, and every learner's ability there."""

    easiness: Floats
    number: int

    @property
    def easy(self) -> str:
        return f"understudy_easiness_{self.number}"

    @property
    def state(self) -> str:
        return f"understudy_state_{self.number}"


_NUMBERS = itertools.count()
_CHANCE = "1 / (1 + exp(-(easiness + ability)))"


def _in_order(number: str, order: str) -> str:
    """A learner's sum of floats, whose last bits would else depend on how threads share out everybody's rows."""
    return f"sum({number} ORDER BY {order})"


def _factor(norm: float) -> str:
    """By how much a learner's vector, the entries of a group, is scaled down to reach the norm."""
    square = f"CAST({_in_order('entry * entry', 'place')} AS float8)"
    return f"least({literal(1.0)}, {literal(norm)} / greatest(sqrt({square}), {literal(1e-12)}))"


def _clipped(entries: str, norm: float) -> str:
    """Sums by place of learners' vectors (learner, place, entry), each scaled down to L2 norm `norm`.

    (learner, place) occurs once. With f = min(1, norm / |v|) a learner adds trunc(v f R / norm (1 - 1e-9)), whose
    L2 norm is at most R: rounding towards zero only shortens it, and a billionth is more than what floats lose.
    """
    factors = f"SELECT learner, {_factor(norm)} AS factor FROM entries GROUP BY learner"
    part = f"CAST(entry AS float8) * factor * {literal(RESOLUTION / norm)} * {literal(LESS)}"
    return (
        f"WITH entries AS ({entries}), factors AS ({factors}) "
        f"SELECT place, {_SUM.format(part)} FROM entries JOIN factors USING (learner) GROUP BY place"
    )
