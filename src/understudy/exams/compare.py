"""compare_groups(): which items are harder for one declared group than for another, privately, or whether this cannot
be decided at this size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from scipy.special import expit, ndtri

import understudy
from understudy.core.files.words import counted
from understudy.core.files.writing import check_new_json, write_json
from understudy.core.options import settled
from understudy.core.pages.charts import Point, dots
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.spending import Account, Charge, Spending
from understudy.errors import UsageError
from understudy.exams.estimation import LEAST_EPSILON, MOST_EPSILON, PRIVATE, Estimation
from understudy.exams.estimators.group_differences import LEVEL, Differences, group_differences
from understudy.exams.mechanisms.group import GroupMeasurement, NoisyGroups, choose_group_measurement
from understudy.exams.plan import MOST_ITEMS, plan_for
from understudy.exams.responses import Responses

FORMAT = "understudy comparison of groups"
VERSION = 1

# The other items make the scale on which one is compared.
FEWEST_ITEMS = 4

Verdict = Literal["differs", "alike", "undecided"]
UNDECIDED = "cannot be decided at this size"

# What `foresee` asks: a difference is found in four of five exams.
_POWER = 0.8
_EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class CompareOptions(Spending):
    """How groups are compared and charged."""

    epsilon: Annotated[float | None, "The privacy loss allowed, for example 1."] = None
    method: Annotated[
        str | None,
        "knorm (pure epsilon) or gaussian (with delta); by default the one with less noise at this number of items "
        "and groups.",
    ] = None
    delta: Annotated[
        float | None, "For gaussian (default: 1e-6, or one over the squared number of learners)."
    ] = None
    alike: Annotated[
        float, "Items are alike if they differ by less than this, in log-odds; choose it before looking."
    ] = 0.5
    ability_sd: Annotated[
        float | None,
        "How much abilities differ within a group, where it is known (default: found privately along with the items).",
    ] = None

    def __post_init__(self) -> None:
        wrong = {
            "epsilon": self.epsilon is not None and not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON,
            "delta": self.delta is not None and not 0 < self.delta < 1,
            "alike": not 0.01 <= self.alike <= 10,
            "ability_sd": self.ability_sd is not None and not 0.1 <= self.ability_sd <= 10,
        }
        ranges = {
            "epsilon": f"{LEAST_EPSILON:g} and {MOST_EPSILON:g}",
            "delta": "0 and 1",
            "alike": "0.01 and 10",
            "ability_sd": "0.1 and 10",
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise UsageError(
                    f"{name.replace('_', ' ')} {getattr(self, name):g} was asked for; it lies between {ranges[name]}.",
                    hint="change it, or leave it out.",
                    settings=(name,),
                )
        if self.method is not None and self.method not in PRIVATE:
            raise UsageError(
                f"groups are compared by the methods {' and '.join(PRIVATE)}, not by '{self.method}'.",
                hint="leave the method out to have the one with less noise.",
                code="no-such-method",
                settings=("method",),
            )

    def measurement(self, n_groups: int, n_items: int, n_learners: int, epsilon: float) -> GroupMeasurement:
        """The mechanism, from public numbers."""
        delta = self.delta if self.delta is not None else default_delta(n_learners)
        return choose_group_measurement(
            self.method, n_groups, n_items, epsilon=epsilon, delta=delta, agreement=self.ability_sd is None
        )


@dataclass(frozen=True)
class ItemDifference:
    """How much harder an item is for a group than for the first one beside ability, in log-odds, and what follows."""

    item: str
    group: str
    difference: float
    standard_error: float
    low: float
    high: float
    p_value: float
    verdict: Verdict

    def in_words(self, alike: float) -> str:
        """The verdict as a sentence."""
        if self.verdict == "alike":
            return f"alike within ±{alike:g}"
        return (
            UNDECIDED
            if self.verdict == "undecided"
            else f"differs: {'harder' if self.difference > 0 else 'easier'}"
        )


@dataclass(frozen=True)
class ComparedGroup:
    """A group, with its estimated size and how much abler it is than the first one (None for that one)."""

    name: str
    learners: float
    ability: float | None = None
    standard_error: float | None = None


@dataclass(frozen=True)
class GroupComparison:
    """Every item in every group but the first, compared with the first one."""

    items: tuple[ItemDifference, ...]
    groups: tuple[ComparedGroup, ...]
    alike: float
    ability_sd: float
    guarantee: Guarantee
    provenance: dict[str, Any] = field(default_factory=dict)
    charge: Charge | None = field(default=None, repr=False, compare=False)
    out: Path | None = field(default=None, repr=False, compare=False)

    def count(self, verdict: Verdict) -> int:
        """How many items have this verdict."""
        return sum(item.verdict == verdict for item in self.items)

    def content(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "groups": [asdict(group) for group in self.groups],
            "alike": self.alike,
            "items": [asdict(item) for item in self.items],
            "ability_sd": self.ability_sd,
            "guarantee": self.guarantee.to_json(),
            "provenance": self.provenance,
        }

    def to_json(self) -> dict[str, Any]:
        """The comparison for machines: the content of the file, and what was charged."""
        out = None if self.out is None else str(self.out)
        return {"out": out, **({} if self.charge is None else self.charge.to_json()), **self.content()}

    def lines(self) -> list[str]:
        """What was found, for people."""
        first = self.groups[0].name
        found = [
            f"'{item.item}' is {'harder' if item.difference > 0 else 'easier'} for {item.group} than for {first} "
            f"beside ability, by {abs(item.difference):.2f} ({item.low:+.2f} to {item.high:+.2f})."
            for item in self.items
            if item.verdict == "differs"
        ]
        return [
            *found,
            f"Differ: {self.count('differs')}; alike within ±{self.alike:g}: {self.count('alike')}; "
            f"cannot be decided at this size: {self.count('undecided')}.",
            f"Guarantee: {self.guarantee}.",
            *([] if self.charge is None else [self.charge.sentence()]),
        ]

    def warnings(self) -> list[str]:
        """What must be known before a conclusion is drawn, for people."""
        if 2 * self.count("undecided") <= len(self.items):
            return []
        return [
            "Most items cannot be decided at this size: that nothing was found does not mean that nothing differs."
        ]

    def to_frame(self) -> pl.DataFrame:
        """A row per item and group."""
        return pl.DataFrame([asdict(item) for item in self.items])

    def plot(self) -> Any:
        """The differences with their 95 % intervals, as an altair chart."""
        several = len(self.groups) > 2
        points = [
            Point(
                f"{item.item}, {item.group}" if several else item.item, item.difference, item.low, item.high
            )
            for item in self.items
        ]
        return dots(points, "harder than in the first group, in log-odds").figure("Items in groups").chart

    def _repr_html_(self) -> str:
        return notebook_table(" ".join((*self.lines(), *self.warnings())), self.to_frame())


def compare_groups(
    responses: Responses,
    options: CompareOptions = CompareOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    noise: Noise | None = None,
    **settings: Any,
) -> GroupComparison:
    """Charge the ledger, compare all items between the groups of the responses, and write a file if `out` is given.

    Groups come with the responses: `read_responses(path, group="track", groups="A,B")`, or
    `responses.with_groups(labels, groups)`. The settings of `CompareOptions` may be given as keywords.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        check_new_json(out)
    measurement = plan_comparison(responses, options)
    account = Account.open(options, responses.origin, simulated=responses.simulated)
    responses = replace(responses, simulated=bool(account.simulated))
    account.check(measurement.guarantee)
    with account.charge(
        "difficulties compare", _method(measurement), measurement.guarantee, out=out, noise=noise
    ) as charge:
        found = fit_comparison(responses, measurement, options, charge.noise, card=charge.card)
        if out is not None:
            write_json(out, found.content())
    return replace(found, charge=charge, out=out)


def plan_comparison(responses: Responses, options: CompareOptions) -> GroupMeasurement:
    """The mechanism for these responses, after refusing what must not be released; no answer decides about either."""
    if options.epsilon is None:
        raise UsageError(
            "no epsilon was given: groups are compared privately only.",
            hint="1 is a good start; what can be decided with it can be foreseen without spending anything.",
            code="no-epsilon",
            settings=("epsilon", "explain"),
        )
    _refuse(responses)
    # Refuses whatever no difficulties may be released of.
    plan_for(responses, Estimation(epsilon=options.epsilon, missing="wrong"))
    return options.measurement(
        len(responses.groups), responses.n_items, responses.n_learners, options.epsilon
    )


def _refuse(responses: Responses) -> None:
    if len(responses.groups) < 2:
        raise UsageError(
            "no groups were declared: the values of a column that are compared have to be.",
            hint="give the column and two values or more.",
            code="no-groups",
            settings=("group", "groups"),
        )
    if responses.origin.layout != "wide":
        raise UsageError(
            "groups are compared on a sheet with one row per learner, where a missing answer is wrong.",
            hint="make such a sheet; skipped answers cannot be compared yet.",
            code="groups-need-a-sheet",
        )
    if responses.points is not None or any(responses.guesses or ()):
        raise UsageError(
            "groups are compared by right and wrong answers that are not guessed; points or choices were declared.",
            hint="leave them out.",
            code="no-points",
            settings=("points", "items"),
        )
    if not FEWEST_ITEMS <= responses.n_items <= MOST_ITEMS:
        raise UsageError(
            f"an item is compared on the scale of the others: that takes {FEWEST_ITEMS} to {MOST_ITEMS} items; here "
            f"are {responses.n_items}.",
            hint="compare groups on a longer exam."
            if responses.n_items < FEWEST_ITEMS
            else "compare them in parts; their epsilons add up.",
            code="few-items" if responses.n_items < FEWEST_ITEMS else "too-many-items",
        )


def fit_comparison(
    responses: Responses,
    measurement: GroupMeasurement,
    options: CompareOptions,
    noise: Noise,
    *,
    card: str | None = None,
) -> GroupComparison:
    """The comparison, as it may be released with the mechanism's guarantee."""
    noisy = measurement.release(responses, noise)
    found = group_differences(noisy, options.ability_sd)
    guarantee = measurement.guarantee if noise.secret else Guarantee.seeded(measurement.guarantee)
    first, *others = responses.groups
    groups = [ComparedGroup(first, round(float(found.sizes[0]), 1))]
    for row, name in enumerate(others):
        groups.append(
            ComparedGroup(
                name,
                round(float(found.sizes[row + 1]), 1),
                round(float(found.ability[row]), 4),
                round(float(found.ability_error[row]), 4),
            )
        )
    items = tuple(
        _item(found, row, column, group, item, options.alike)
        for row, group in enumerate(others)
        for column, item in enumerate(responses.items)
    )
    provenance = _provenance(responses, measurement, options, noisy, card)
    return GroupComparison(
        items, tuple(groups), options.alike, round(found.ability_sd, 4), guarantee, provenance
    )


def _item(found: Differences, row: int, column: int, group: str, item: str, alike: float) -> ItemDifference:
    low, high = float(found.low[row, column]), float(found.high[row, column])
    verdict: Verdict = "undecided"
    if found.differs[row, column]:
        verdict = "differs"
    elif -alike < low and high < alike:
        verdict = "alike"
    return ItemDifference(
        item,
        group,
        round(float(found.difference[row, column]), 4),
        round(float(found.standard_error[row, column]), 4),
        round(low, 4),
        round(high, 4),
        float(f"{found.p_value[row, column]:.3g}"),
        verdict,
    )


def _method(measurement: GroupMeasurement) -> str:
    return "gaussian" if measurement.guarantee.delta else "knorm"


def _provenance(
    responses: Responses,
    measurement: GroupMeasurement,
    options: CompareOptions,
    noisy: NoisyGroups,
    card: str | None,
) -> dict[str, Any]:
    return {
        "method": _method(measurement),
        "mechanism": measurement.name,
        "epsilon": options.epsilon,
        "learners": responses.n_learners,
        "items": responses.n_items,
        "missing": "counted as wrong",
        "level": LEVEL,
        "ability_sd": "declared" if options.ability_sd else "estimated privately, along with the items",
        "totals": {
            "right": [[round(float(cell), 4) for cell in row] for row in noisy.right],
            "sizes": [round(float(size), 4) for size in noisy.sizes],
            "agreement": None if noisy.agreement is None else round(noisy.agreement, 4),
            "noise_sd": round(math.sqrt(noisy.variance), 4),
        },
        "simulated": responses.simulated,
        "card": card,
        "made": datetime.now(UTC).date().isoformat(),
        "understudy": understudy.__version__,
    }


@dataclass(frozen=True)
class Foreseen:
    """What an epsilon could decide about an item that `solved` of the learners have right.

    `differs` is the difference that is found in four of five exams; `alike` the width within which an item without a
    difference is then called alike.
    """

    epsilon: float
    method: str
    noise: float
    solved: float
    standard_error: float
    differs: float
    alike: float

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def foresee(
    responses: Responses, options: CompareOptions, sizes: str | Sequence[float] | None = None
) -> list[Foreseen]:
    """What could be decided, from public numbers: learners, items, groups, epsilon, and sizes if they are declared.

    Groups are taken as equally large unless `sizes` are declared. No answer is used and nothing is spent.
    """
    _refuse(responses)
    expected = _sizes(sizes, len(responses.groups), responses.n_learners)
    epsilons = sorted({*_EPSILONS, *([] if options.epsilon is None else [options.epsilon])})
    return [
        _foreseen(responses, options, expected, epsilon, solved)
        for epsilon in epsilons
        for solved in (0.5, 0.8)
    ]


def _foreseen(
    responses: Responses, options: CompareOptions, sizes: list[float], epsilon: float, solved: float
) -> Foreseen:
    n_items, n_groups = responses.n_items, len(sizes)
    measurement = options.measurement(n_groups, n_items, responses.n_learners, epsilon)
    sd = options.ability_sd or 1.0
    grid = np.linspace(-8.0, 8.0, 801)
    chances = expit(sd * _NODES - grid[:, None]) @ _WEIGHTS
    own = expit(sd * _NODES - np.interp(-solved, -chances, grid))
    scatter = float((own * (1.0 - own)) @ _WEIGHTS)
    # The size is noisy, too, and moves what is expected of a total by the chance of a right answer.
    errors = [(n * scatter + measurement.variance * (1.0 + solved**2)) / (n * scatter) ** 2 for n in sizes]
    error = math.sqrt((errors[0] + max(errors[1:])) * (1.0 + 1.0 / (n_items - 1)))
    strict = -float(ndtri(LEVEL / (2 * n_items * (n_groups - 1))))
    return Foreseen(
        epsilon,
        _method(measurement),
        math.sqrt(measurement.variance),
        solved,
        error,
        (strict + float(ndtri(_POWER))) * error,
        (1.96 + float(ndtri(0.5 + _POWER / 2))) * error,
    )


def _sizes(given: str | Sequence[float] | None, n_groups: int, n_learners: int) -> list[float]:
    if given is None:
        return [max(n_learners / n_groups, 1.0)] * n_groups
    try:
        sizes = [float(size) for size in (given.split(",") if isinstance(given, str) else given)]
    except ValueError:
        sizes = []
    if (
        len(sizes) != n_groups
        or not all(1 <= size <= n_learners for size in sizes)
        or sum(sizes) > n_learners
    ):
        raise UsageError(
            f"{n_groups} groups of {counted(n_learners, 'learner')} in all have as many sizes, each 1 or more; "
            f"'{given}' was declared.",
            hint="declare a size for each group, in their order, as in '300,200'; never by counting them in the data.",
            settings=("sizes",),
        )
    return sizes
