"""The ledger: every release about a population, what it cost, and what may still be spent.

An SQLite file kept with the data, keyed by population (`population.py`) and not by a file's hash: a
re-export is the same people, and everything about the same learners adds up. What is released about
"learners of this folder" counts for every population, and the other way round.

Rows are only ever appended (triggers refuse changes; they guard against accidents, not against the owner
of the file), and spending happens inside one write transaction, so that two processes cannot spend the
same budget. A charge that is taken back, because nothing was released for it, is another row. Learners are
known again under other names (`rosters.py`), but a copy of the data in another folder has a ledger of its own:
declare one place for both.

Commands and Python functions do not write here themselves: `spending.py` is the one place that charges.
"""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from understudy.core.files.words import counted
from understudy.core.privacy.balance import (
    DEFAULT_LIMIT,
    REFUSED,
    TAKEN_BACK,
    Balance,
    balance_of,
    checked_balance,
    counted_with,
)
from understudy.core.privacy.composition import Cost
from understudy.core.privacy.declarations import DECLARED, declare, declare_others, names_of, unlinked
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger_file import (
    connected,
    damaged,
    dry_run,
    now,
    refuse_unwritable,
    user,
    writing,
)
from understudy.core.privacy.population import (
    FOLDER_POPULATION,
    SIMULATED_POPULATION,
    data_set_population,
    file_population,
    normalised,
)
from understudy.core.privacy.rosters import Roster, keep_roster, known_as
from understudy.errors import RefusedError, UsageError

FILE_NAME = "understudy.ledger"


@dataclass(frozen=True)
class Entry:
    """One release. `epsilon` is None where nothing is proved; `risk` is what was measured.

    `rho`, `slack` and `extra_delta` are kept where they compose better than epsilon: see `Cost`.
    """

    at: str
    who: str
    population: str
    card: str
    kind: str
    method: str
    epsilon: float | None
    delta: float | None
    mu: float | None
    statement: str
    risk: dict[str, Any]
    rho: float | None = None
    slack: float | None = None
    extra_delta: float | None = None


def ledger_path(data: Path | None, given: Path | None = None) -> Path:
    """Where the ledger of a file is: where the user says, or beside the data; that of a folder is inside it.

    So a folder and a single file of it have the same one.
    """
    if given is not None:
        return given
    if data is None:
        raise UsageError(
            "there is no place for the ledger: the data is not in a file.",
            hint="say where it is kept, always the same place for the same learners.",
            code="no-ledger",
            settings=("ledger",),
        )
    place = data.resolve()
    return (place if place.is_dir() else place.parent) / FILE_NAME


def new_card_id() -> str:
    """A random name for a release: it says nothing about the data, the ledger resolves it."""
    return secrets.token_hex(8)


class Ledger:
    """An open ledger file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self, population: str | None = None) -> list[Entry]:
        """All entries, oldest first; if a population is given, those that count for its learners."""
        if not self.path.exists():
            return []
        with connected(self.path) as connection:
            rows = connection.execute(
                "SELECT at, who, population, card, kind, method, epsilon, delta, mu, statement, risk, rho, slack, "
                "extra_delta FROM entries LEFT JOIN gaussian_costs ON gaussian_costs.entry = entries.id "
                "ORDER BY entries.id"
            ).fetchall()
            if population is not None:
                names = counted_with(connection, normalised(population))
                rows = [row for row in rows if row["population"] in names]
        try:
            return [Entry(**{**dict(row), "risk": json.loads(row["risk"])}) for row in rows]
        except (TypeError, ValueError, RecursionError):
            raise damaged(self.path, "an entry cannot be read") from None

    def populations(self) -> list[str]:
        """The populations that the ledger knows."""
        return list(dict.fromkeys(entry.population for entry in self.entries() if entry.kind != TAKEN_BACK))

    def balance(self, population: str = FOLDER_POPULATION) -> Balance:
        """What has been spent on a population so far."""
        population = normalised(population)
        if not self.path.exists():
            return Balance(population, DEFAULT_LIMIT, 0.0, 0.0, 0, 0)
        with connected(self.path) as connection:
            return balance_of(connection, population)

    def set_delta_limit(self, population: str, delta: float, reason: str = "") -> None:
        """Declare what the deltas of a population may add up to; as with `set_limit`."""
        if not 0 <= delta < 1:
            raise UsageError(f"a limit of delta lies in [0, 1), not {delta}.", hint="for example 1e-4.")
        self._declare_limit("delta", population, delta, reason)

    def set_limit(self, population: str, epsilon: float, reason: str = "") -> None:
        """Declare how much may be spent on a population; the newest declaration holds.

        A higher limit than the one that holds needs a reason, which the ledger keeps.
        """
        if not math.isfinite(epsilon) or epsilon < 0:
            raise UsageError(f"a limit is a number of at least 0, not {epsilon}.", hint="for example 10.")
        self._declare_limit("epsilon", population, epsilon, reason)

    def _declare_limit(
        self, what: Literal["epsilon", "delta"], population: str, limit: float, reason: str
    ) -> None:
        population, reason = normalised(population), reason.strip()
        with connected(self.path) as connection, writing(connection):
            balance = balance_of(connection, population)
            held = balance.limit if what == "epsilon" else balance.delta_limit
            if limit > held and not reason:
                raise UsageError(
                    f"a limit of {what} {limit:g} was declared for '{population}' without a reason, and the one that "
                    f"holds is {held:g}.",
                    hint="say why more may be spent: the ledger keeps it, with who said so and when.",
                    code="no-reason",
                    settings=("reason",),
                )
            table = "limits" if what == "epsilon" else "delta_limits"
            connection.execute(
                f"INSERT INTO {table} (at, who, population, {what}) VALUES (?, ?, ?, ?)",
                (now(), user(), population, limit),
            )
            if reason:
                declare(connection, population, f"allowed {what} {limit:g}", reason)

    def check(
        self,
        population: str,
        guarantee: Guarantee,
        *,
        files: Sequence[Path] = (),
        data_sets: Sequence[str] = (),
        simulated: str = "",
        roster: Roster | None = None,
        others: Sequence[str] = (),
        reason: str = "",
    ) -> Balance:
        """What the balance is now, or a refusal: what `record` would do, without doing it.

        Nothing is written, and a ledger that does not exist yet is not made; that it could be is checked.
        """
        if not self.path.exists():
            refuse_unwritable(self.path)
        with connected(self.path, memory=not self.path.exists()) as connection, dry_run(connection):
            return _prepared(
                connection, population, guarantee, files, data_sets, simulated, roster, others, reason
            )

    def record(
        self,
        *,
        population: str,
        card: str,
        kind: str,
        method: str,
        guarantee: Guarantee,
        risk: dict[str, Any] | None = None,
        files: Sequence[Path] = (),
        data_sets: Sequence[str] = (),
        simulated: str = "",
        roster: Roster | None = None,
        others: Sequence[str] = (),
        reason: str = "",
        at_most: Mapping[str, float] | None = None,
        once: bool = False,
        alone: bool = False,
    ) -> None:
        """Append an entry, or refuse it when it would pass the limit.

        `at_most` limits figures of `risk`, such as the measured mu of everything released together. With
        `once`, a card that is in the ledger already is not charged again: what was interrupted may call it again.
        With `alone` it is refused if a release without a guarantee counts for the same learners.

        `files` hold the data of this population, and so do `data_sets`, by their names: whatever was or will
        be charged to the learners of those is charged to it as well. Of simulated learners, who have no
        limit, `simulated` says how that is known. `roster` are the learners themselves: if they are known under
        another population, what was released would not add up, so that is refused, but for `others`, populations
        of which a person said that they hold other learners, with the `reason` for it: that starts a new count, as a
        higher limit would.

        Call it before anything is released: what is computed from a charge that failed must not
        exist.
        """
        population = normalised(population)
        with connected(self.path) as connection, writing(connection):
            if once and _known_card(connection, card):
                return
            balance = _prepared(
                connection, population, guarantee, files, data_sets, simulated, roster, others, reason
            )
            if alone and balance.n_without_guarantee:
                raise _not_alone(balance.n_without_guarantee)
            _refuse_measured(risk or {}, at_most or {})
            entry = connection.execute(
                "INSERT INTO entries (at, who, population, card, kind, method, epsilon, delta, mu, "
                "statement, risk) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    now(),
                    user(),
                    population,
                    card,
                    kind,
                    method,
                    guarantee.epsilon if guarantee.formal else None,
                    guarantee.delta if guarantee.formal else None,
                    guarantee.mu,
                    str(guarantee),
                    json.dumps(risk or {}),
                ),
            )
            cost = Cost.of(guarantee)
            if guarantee.formal and cost.rho is not None:
                connection.execute(
                    "INSERT INTO gaussian_costs (entry, rho, slack, extra_delta) VALUES (?, ?, ?, ?)",
                    (entry.lastrowid, cost.rho, cost.slack, cost.extra_delta),
                )

    def take_back(self, card: str, reason: str) -> None:
        """Take back the charge of a release of which nothing was shown; both entries stay."""
        with connected(self.path) as connection, writing(connection):
            connection.execute(
                "INSERT INTO entries (at, who, population, card, kind, method, epsilon, delta, mu, statement, risk) "
                "SELECT ?, ?, population, card, ?, method, NULL, NULL, NULL, ?, '{}' FROM entries WHERE card = ?",
                (now(), user(), TAKEN_BACK, reason, card),
            )

    def link(
        self,
        population: str,
        files: Sequence[Path],
        data_sets: Sequence[str] = (),
        roster: Roster | None = None,
    ) -> None:
        """Note that files or data sets hold the data of a population; nothing is spent, and all add up from now on."""
        with connected(self.path) as connection, writing(connection):
            _link_all(connection, normalised(population), files, data_sets)
            keep_roster(connection, normalised(population), roster, now(), user())

    def known_as(
        self,
        population: str,
        roster: Roster | None,
        files: Sequence[Path] = (),
        data_sets: Sequence[str] = (),
        *,
        apart: bool = False,
    ) -> tuple[str, ...]:
        """Other populations with releases about learners of this roster, which no file links to it.

        With `apart`, or if that was declared before, also those of its files and data sets themselves.
        """
        if not self.path.exists():
            return ()
        population = normalised(population)
        with connected(self.path) as connection, dry_run(connection):
            known = unlinked(connection, population, files, data_sets, apart=apart)
            _link_all(connection, population, files, data_sets, known)
            return tuple(dict.fromkeys((*known, *known_as(connection, population, roster))))

    def related(self, population: str, files: Sequence[Path] = (), data_sets: Sequence[str] = ()) -> set[str]:
        """Every name whose entries count for a population, for its files or for its data sets."""
        names = (population, *map(file_population, files), *map(data_set_population, data_sets))
        if not self.path.exists():
            return set(map(normalised, names))
        with connected(self.path) as connection:
            return set().union(*(counted_with(connection, normalised(name)) for name in names))

    def unrelated_populations(
        self, population: str, files: Sequence[Path] = (), data_sets: Sequence[str] = ()
    ) -> list[str]:
        """Populations with releases that share no learners with this one and its data, as far as is known."""
        related = self.related(population, files, data_sets)
        return [name for name in self.populations() if name not in {*related, SIMULATED_POPULATION}]

    def same_learners(
        self, population: str, files: Sequence[Path], cards: Sequence[str], data_sets: Sequence[str] = ()
    ) -> str | None:
        """The population of a release with one of these cards, if it shares learners with this one or its data.

        None also when the ledger does not know the cards: see `has_cards`.
        """
        related = self.related(population, files, data_sets)
        return next(
            (entry.population for entry in self._released(cards) if entry.population in related), None
        )

    def knows_as_real(self, files: Sequence[Path], roster: Roster | None = None) -> bool:
        """Whether something was released about the learners of these files, or of the roster, as real ones."""
        with connected(self.path) as connection:
            named = any(_known_as_real(connection, file) for file in files)
            return named or bool(known_as(connection, SIMULATED_POPULATION, roster))

    def declarations(self) -> list[dict[str, str]]:
        """What was declared about files: when, by whom, about whose learners, which fact, and how it is known."""
        if not self.path.exists():
            return []
        with connected(self.path) as connection:
            rows = connection.execute("SELECT at, who, population, fact, how FROM declarations ORDER BY id")
            return [dict(row) for row in rows.fetchall()]

    def has_cards(self, cards: Sequence[str]) -> bool:
        """Whether all these releases were charged here."""
        return set(cards) <= {entry.card for entry in self._released(cards)}

    def _released(self, cards: Sequence[str]) -> list[Entry]:
        gone = {entry.card for entry in self.entries() if entry.kind == TAKEN_BACK}
        return [
            entry
            for entry in self.entries()
            if entry.card in cards and entry.card not in gone and entry.kind != REFUSED
        ]


def _known_card(connection: sqlite3.Connection, card: str) -> bool:
    return connection.execute("SELECT 1 FROM entries WHERE card = ?", (card,)).fetchone() is not None


def _not_alone(n_others: int) -> RefusedError:
    return RefusedError(
        f"{counted(n_others, 'release')} without a guarantee about these learners exist, and their risks add up "
        "unmeasured.",
        hint="use a generator with a guarantee, or accept the risk with a reason.",
        code="risk",
        settings=("method", "accept_risk"),
    )


def _refuse_measured(risk: Mapping[str, Any], at_most: Mapping[str, float]) -> None:
    for name, limit in at_most.items():
        if not risk[name] <= limit:  # NaN is refused as well
            raise RefusedError(
                f"{name.replace('_', ' ')} would be {risk[name]:.2f}, and the limit is {limit:.2f}.",
                hint="nothing was released; a smaller or more robust analysis may cost less.",
            )


def _prepared(
    connection: sqlite3.Connection,
    population: str,
    guarantee: Guarantee,
    files: Sequence[Path],
    data_sets: Sequence[str],
    simulated: str,
    roster: Roster | None,
    others: Sequence[str],
    reason: str,
) -> Balance:
    """Note whose data this is, and check that the release can be charged; the same for a dry run."""
    population = normalised(population)
    if population == SIMULATED_POPULATION:
        # A mark is bound to the file's content, so it is believed; a person may be mistaken.
        doubtful = simulated == DECLARED
        known = known_as(connection, population, roster) if doubtful else ()
        if set(known) - set(others) or any(_known_as_real(connection, file) for file in files if doubtful):
            raise _known_as_real_error()
        for name in map(normalised, map(file_population, files)):
            declare(connection, name, "simulated", simulated)
    else:
        foreign = unlinked(connection, population, files, data_sets, apart=True)
        before = unlinked(connection, population, files, data_sets, apart=False)
        apart = [name for name in foreign if name in others or name in before]
        _link_all(connection, population, files, data_sets, apart)
        known = (*apart, *known_as(connection, population, roster))
        if unsettled := [name for name in dict.fromkeys(known) if name not in others]:
            raise _known_learners(population, unsettled)
        keep_roster(connection, population, roster, now(), user())
    declare_others(connection, population, tuple(dict.fromkeys(known)), reason)
    return checked_balance(connection, population, guarantee)


def _known_as_real_error() -> RefusedError:
    return RefusedError(
        "these learners were declared to be simulated, but the ledger knows releases about them as real learners.",
        hint="leave the declaration out; simulated learners belong in a file of their own, under names of their own.",
        code="known-as-real",
        settings=("simulated",),
    )


def _known_learners(population: str, names: Sequence[str]) -> RefusedError:
    known = " and ".join(f"'{name}'" for name in names)
    return RefusedError(
        f"the ledger knows these learners, or many of them, as {known}, and this would be charged to '{population}': "
        "what is released about them would not add up.",
        hint="charge it to the population that they are known as; if they are other learners of the same names, "
        "declare that, with a reason.",
        code="known-learners",
        settings=("population", "other_learners", "reason"),
        populations=list(names),
    )


def _known_as_real(connection: sqlite3.Connection, file: Path) -> bool:
    spent = balance_of(connection, normalised(file_population(file)))
    return spent.n_entries > 0


def _link_all(
    connection: sqlite3.Connection,
    population: str,
    files: Sequence[Path],
    data_sets: Sequence[str],
    apart: Sequence[str] = (),
) -> None:
    """Link a population with its files and data sets, but for those in which it was declared to be other people."""
    for name in names_of(files, data_sets):
        if name not in apart:
            _link(connection, population, name)


def _link(connection: sqlite3.Connection, population: str, file: str) -> None:
    if population in (file, FOLDER_POPULATION):
        return  # everybody's releases count for every file already
    known = connection.execute(
        "SELECT 1 FROM links WHERE population = ? AND file = ?", (population, file)
    ).fetchone()
    if known is None:
        connection.execute(
            "INSERT INTO links (at, who, population, file) VALUES (?, ?, ?, ?)",
            (now(), user(), population, file),
        )
