"""What the entries of a ledger add up to for a population, and what may still be spent."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from understudy.core.privacy.composition import LEAST_EPSILON, Cost, counted_epsilon, largest_epsilon
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.population import FOLDER_POPULATION, SIMULATED_POPULATION
from understudy.errors import RefusedError

DEFAULT_LIMIT = 10.0

# Deltas add up too; beyond this the small chance that is not covered is no longer small.
DELTA_LIMIT = 1e-4

# Kinds of entries that are not releases: one that was refused, and a charge that was taken back.
REFUSED = "refused"

TAKEN_BACK = "taken back"

# What a custodian can do whose budget is spent, beside asking for less.
WAYS_OUT = (
    "If these are other people than those of the earlier releases, declare a population of their own, and that they "
    "are others, with a reason. Or declare a higher limit in the ledger, with a reason. It keeps both."
)
# Earlier releases that a refusal names.
MOST_NAMED = 3


@dataclass(frozen=True)
class Spent:
    """An earlier release that counts: what it was, when, about whom and for how much."""

    card: str
    kind: str
    at: str
    population: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.kind} of {self.at[:10]} about '{self.population}' (epsilon {self.epsilon:g}, card {self.card})"


@dataclass(frozen=True)
class Balance:
    """What has been spent on a population, and by which releases; those without a guarantee are counted apart.

    `epsilon` is the sum of epsilons. `counted` is what the limit is about: the epsilon of everything together,
    composed as tightly as is proved (`counted_epsilon`), which is never more than the sum.
    """

    population: str
    limit: float
    epsilon: float
    delta: float
    n_entries: int
    n_without_guarantee: int
    delta_limit: float = DELTA_LIMIT
    releases: tuple[Spent, ...] = ()
    costs: tuple[Cost, ...] = ()

    @cached_property
    def counted(self) -> float:
        """The epsilon of everything together, at the sum of all deltas."""
        return counted_epsilon(self.costs)

    def remaining(self, like: Guarantee | None = None) -> float:
        """What remains: the largest epsilon that can still be asked for by a release like this one, or by any.

        Everything that states what remains states this. This is not the limit minus what is counted: what is
        composed costs less than its sum, and how much less depends on the noise.
        """
        if math.isinf(self.limit):
            return math.inf
        formal = like is not None and like.formal
        wanted = Cost.of(like) if like is not None and formal else Cost(self.limit)
        if self.limit <= 0 or self.delta + wanted.delta > self.delta_limit * (1 + 1e-9):
            return 0.0
        return largest_epsilon(self.costs, wanted.at(self.limit), self.limit)

    def after(self, guarantee: Guarantee) -> Balance:
        """The balance once a release with this guarantee is charged."""
        return replace(
            self,
            epsilon=self.epsilon + guarantee.epsilon,
            delta=self.delta + guarantee.delta,
            costs=(*self.costs, Cost.of(guarantee)),
        )

    @property
    def gaussian(self) -> Guarantee | None:
        """The last release with Gaussian noise, as far as its cost goes: what composes best."""
        cost = next((cost for cost in reversed(self.costs) if cost.rho is not None), None)
        if cost is None:
            return None
        return Guarantee(
            cost.epsilon, cost.delta, rho=cost.rho, slack=cost.slack, extra_delta=cost.extra_delta
        )

    def price(self, guarantee: Guarantee) -> str:
        """What a release would cost and leave."""
        spent = f", of which {self.counted:.4g} is spent" if self.costs else ""
        return (
            f"This costs epsilon {guarantee.epsilon:g} of {self.limit:.4g} for '{self.population}'{spent}; "
            f"{self.after(guarantee).remaining(guarantee):.4g} will remain for a release of this kind."
        )

    @property
    def spent(self) -> str:
        """What is spent, of how much."""
        composed = self.counted < self.epsilon * (1 - 1e-6)
        total = f" (the epsilons add up to {self.epsilon:.4g})" if composed else ""
        return f"{self.counted:.4g} of {self.limit:.4g} is spent{total}"

    def state(self, like: Guarantee) -> str:
        """What is spent, and what can still be asked for by a release like this one."""
        return f"{self.spent}, and {self.remaining(like):.4g} can still be asked for in the same way"

    def __str__(self) -> str:
        return f"{self.spent}, and {self.remaining():.4g} can still be asked for"


def _refuse_overspending(balance: Balance, guarantee: Guarantee) -> None:
    if not guarantee.formal:
        return
    # Delta first: where it does not fit, no smaller epsilon would.
    if balance.delta + guarantee.delta > balance.delta_limit * (1 + 1e-9):
        raise RefusedError(
            f"delta {guarantee.delta:.2e} was asked for '{balance.population}'; "
            f"{balance.delta:.2e} of {balance.delta_limit:.0e} is spent.",
            hint="ask for a smaller delta, far below one over the number of learners, or declare another limit of "
            "delta in the ledger.",
            code="delta-budget",
            settings=("delta",),
            population=balance.population,
            requested=guarantee.delta,
            spent=balance.delta,
            limit=balance.delta_limit,
            cards=[release.card for release in balance.releases],
        )
    together = counted_epsilon((*balance.costs, Cost.of(guarantee)))
    if together > balance.limit * (1 + 1e-9):
        largest = largest_epsilon(balance.costs, Cost.of(guarantee), balance.limit)
        fits = f"the largest epsilon that fits is {largest:g}"
        if not largest:
            fits = f"no epsilon above {LEAST_EPSILON:g} fits"
        raise RefusedError(
            f"epsilon {guarantee.epsilon:g} was asked for '{balance.population}'; {balance.spent}. "
            f"Together they would count {together:.4g}; {fits}.{_in_the_way(balance.releases)}",
            hint=f"ask for epsilon {largest:g}. {WAYS_OUT}" if largest else WAYS_OUT,
            code="budget",
            settings=("epsilon", "population", "other_learners", "reason"),
            population=balance.population,
            requested=guarantee.epsilon,
            spent=balance.counted,
            sum=balance.epsilon,
            limit=balance.limit,
            largest=largest,
            together=together,
            cards=[release.card for release in balance.releases],
            releases=[asdict(release) for release in balance.releases],
        )


def _in_the_way(releases: tuple[Spent, ...]) -> str:
    """The earlier releases that leave no room, the costliest first."""
    costly = sorted(releases, key=lambda release: -release.epsilon)
    if not costly:
        return ""
    more = f"; and {len(costly) - MOST_NAMED} more" if len(costly) > MOST_NAMED else ""
    return f" In the way: {'; '.join(map(str, costly[:MOST_NAMED]))}{more}."


def checked_balance(connection: sqlite3.Connection, population: str, guarantee: Guarantee) -> Balance:
    """The balance, if no learner whom the release is about would pass a limit."""
    balance = balance_of(connection, population)
    if population == SIMULATED_POPULATION:
        return balance  # no privacy is spent
    _refuse_overspending(balance, guarantee)
    if population == FOLDER_POPULATION:
        for names in _groups(connection):
            for name in names:
                _refuse_overspending(balance_of(connection, name), guarantee)
    return balance


def balance_of(connection: sqlite3.Connection, population: str) -> Balance:
    """What counts for a population: epsilons and deltas add up, and `Balance.counted` composes them.

    What was released about everybody is about each population as well. Populations hold different
    learners unless a file links them, so everybody bears at most what the group of linked
    populations with the largest sum bears.
    """
    everybody = spent_on(connection, {FOLDER_POPULATION})
    if population == FOLDER_POPULATION:
        groups = [spent_on(connection, names) for names in _groups(connection)]
    elif population == SIMULATED_POPULATION:
        everybody = spent_on(connection, set())
        groups = [spent_on(connection, {population})]
    else:
        groups = [spent_on(connection, linked_with(connection, population))]
    # Of linked populations the strictest declaration holds for all: they share learners.
    linked = linked_with(connection, population)
    limit = _strictest(_limit(connection, name) for name in linked)
    delta_limit = _strictest(_limit(connection, name, "delta_limits", "delta") for name in linked)
    if population != SIMULATED_POPULATION:
        limit = _limit(connection, FOLDER_POPULATION) if limit is None else limit
        if delta_limit is None:
            delta_limit = _limit(connection, FOLDER_POPULATION, "delta_limits", "delta")
    together = [everybody.costs + group.costs for group in groups] or [everybody.costs]
    return Balance(
        population=population,
        limit=DEFAULT_LIMIT if limit is None else limit,
        epsilon=everybody.epsilon + max((group.epsilon for group in groups), default=0.0),
        delta=everybody.delta + max((group.delta for group in groups), default=0.0),
        n_entries=everybody.n_entries + sum(group.n_entries for group in groups),
        n_without_guarantee=everybody.n_without_guarantee
        + sum(group.n_without_guarantee for group in groups),
        delta_limit=DELTA_LIMIT if delta_limit is None else delta_limit,
        releases=everybody.releases + tuple(release for group in groups for release in group.releases),
        costs=max(together, key=counted_epsilon),
    )


def _groups(connection: sqlite3.Connection) -> list[set[str]]:
    """The populations of the ledger, those together that share learners through a file."""
    rows = connection.execute(
        "SELECT DISTINCT population FROM entries UNION SELECT population FROM links UNION SELECT file FROM links "
        "UNION SELECT population FROM limits UNION SELECT population FROM delta_limits"
    )
    groups = [{name} for (name,) in rows if name not in (FOLDER_POPULATION, SIMULATED_POPULATION)]
    for population, file in connection.execute("SELECT population, file FROM links").fetchall():
        linked = [group for group in groups if population in group or file in group]
        groups = [group for group in groups if group not in linked] + [set().union(*linked)]
    return groups


def linked_with(connection: sqlite3.Connection, population: str) -> set[str]:
    """The population and those that share learners with it through files."""
    return next((names for names in _groups(connection) if population in names), {population})


def counted_with(connection: sqlite3.Connection, population: str) -> set[str]:
    """The names whose entries count for a population."""
    if population == SIMULATED_POPULATION:
        return {population}
    if population == FOLDER_POPULATION:
        return {population}.union(*_groups(connection))
    return {FOLDER_POPULATION} | linked_with(connection, population)


def spent_on(connection: sqlite3.Connection, names: set[str]) -> Balance:
    """What the entries of some names add up to, without those that were refused or taken back."""
    rows = connection.execute(
        "SELECT population, card, kind, at, epsilon, delta, rho, slack, extra_delta FROM entries "
        "LEFT JOIN gaussian_costs ON gaussian_costs.entry = entries.id WHERE kind NOT IN (?, ?) "
        "AND card NOT IN (SELECT card FROM entries WHERE kind = ?)",
        (REFUSED, TAKEN_BACK, TAKEN_BACK),
    ).fetchall()
    counted = [row for row in rows if row["population"] in names]
    costs = tuple(
        Cost(row["epsilon"], row["delta"] or 0.0, row["rho"], row["slack"] or 0.0, row["extra_delta"] or 0.0)
        for row in counted
        if row["epsilon"] is not None
    )
    return Balance(
        population="",
        limit=0.0,
        epsilon=math.fsum(cost.epsilon for cost in costs),
        delta=math.fsum(cost.delta for cost in costs),
        n_entries=len(counted),
        n_without_guarantee=len(counted) - len(costs),
        releases=tuple(
            Spent(row["card"], row["kind"], row["at"], row["population"], row["epsilon"])
            for row in counted
            if row["epsilon"] is not None
        ),
        costs=costs,
    )


def _strictest(limits: Iterable[float | None]) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(
    connection: sqlite3.Connection, population: str, table: str = "limits", column: str = "epsilon"
) -> float | None:
    """The newest declared limit; table and column are names of the schema, never a user's."""
    row = connection.execute(
        f"SELECT {column} FROM {table} WHERE population = ? ORDER BY id DESC LIMIT 1", (population,)
    ).fetchone()
    return None if row is None else float(row[0])
