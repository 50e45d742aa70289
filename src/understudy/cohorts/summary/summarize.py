"""summarize(): a private summary of a cohort, charged to its learners; plan(): what it would cost and be worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from understudy.cohorts.cohort import Cohort, schema_path
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.budget import ANALYSES, Plan, propose
from understudy.cohorts.summary.mechanism import noisy_summary, refuse_cuts_from_data
from understudy.cohorts.summary.previous_year import (
    best_gain,
    cards,
    check_previous,
    previous_caveats,
    with_previous,
)
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.suggestions import Suggestions, read_suggestions, with_budget, with_effects
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.files.writing import check_new_json, write_json
from understudy.core.options import settled
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.confirmation import Doubt
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.risk import ByRisk, StatedRisk, explained_epsilons
from understudy.core.privacy.spending import Account, Charge, Spending
from understudy.errors import DataError, RefusedError, UsageError

OTHER_EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class SummarizeOptions(ByRisk, Spending):
    """What a summary measures, at which price."""

    usual_epsilon: ClassVar[float | None] = 3.0
    epsilon: Annotated[float | None, "The privacy loss allowed (default: 3, or what a risk allows)."] = None
    delta: Annotated[
        float | None,
        "The small chance beyond it (default: 1e-6, or one over the squared number of learners).",
    ] = None
    analyses: Annotated[
        list[str] | None,
        "What the summary should serve, may be repeated: habits by time of day against outcome, weekly rhythm, "
        "regularity, time-of-day mix, overall distribution (default: all of these).",
    ] = None
    statistics: Annotated[
        list[str] | None, "Statistics to measure as well, may be repeated; the plan names them."
    ] = None
    suggestions: Annotated[
        Path | None, "From `cohort improve`: moves the split of the budget, counts validated effects."
    ] = None
    previous: Annotated[
        Path | None,
        "Last year's private summary, of other learners: weighed in by precision, for less noise.",
    ] = None

    def __post_init__(self) -> None:
        delta, epsilon = self.delta, SummarizeOptions.usual_epsilon if self.epsilon is None else self.epsilon
        assert epsilon is not None
        if not (epsilon > 0 and math.isfinite(epsilon)) or not (delta is None or 0 < delta < 1):
            asked = f"{epsilon:g}" + ("" if delta is None else f" and {delta:.3g}")
            raise UsageError(
                f"a summary needs epsilon above 0 and delta between 0 and 1; got {asked}.",
                hint="for example 3 and 1e-5.",
                settings=("epsilon", "delta"),
            )


@dataclass(frozen=True)
class Forecast:
    """What a summary would cost and how far its numbers would be off; nothing is spent."""

    plan: Plan
    account: Account
    cost: Guarantee
    previous: PrivateSummary | None
    doubts: tuple[Doubt, ...]
    notes: tuple[str, ...]
    remaining: float | None
    """What can be asked for before this summary; None for simulated learners."""
    limit: float | None
    refused: str
    """Why the charge would be refused; empty if it would not be."""
    left: float | None = None
    """What could be asked for after it."""

    def others(self) -> list[Plan]:
        """The same plan at other epsilons, and at those of usual risks."""
        epsilons = explained_epsilons(
            lambda epsilon: replace(self.plan, epsilon=epsilon).guarantee,
            {*OTHER_EPSILONS, self.plan.epsilon},
        )
        return [replace(self.plan, epsilon=epsilon) for epsilon in epsilons]

    def noise_left(self) -> dict[str, float]:
        """What is left of each statistic's noise with last year's summary, at best."""
        if self.previous is None:
            return {}
        noise = {prediction.statistic: prediction.noise_sd for prediction in self.plan.predictions()}
        return best_gain(noise, self.plan.n_learners, self.previous)

    def to_json(self) -> dict[str, Any]:
        """The forecast for machines."""
        plan = self.plan
        return {
            "spent": 0,
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "rho": plan.rho,
            "analyses": list(plan.analyses),
            "predictions": [vars(prediction) for prediction in plan.predictions()],
            "population": self.account.population,
            "remaining": self.remaining,
            "remaining_after": self.left,
            "limit": self.limit,
            "refused": self.refused or None,
            "risks": [vars(StatedRisk.of(other.guarantee)) for other in self.others()],
            "other_epsilons": {f"{other.epsilon:g}": other.errors() for other in self.others()},
            "noise_left_with_previous_at_best": self.noise_left() or None,
        }

    def lines(self) -> list[str]:
        """The forecast for people."""
        warning = self.plan.warning()
        return [
            self._budget(),
            *self._about_previous(),
            *([warning.sentence] if warning else []),
            "Nothing was spent.",
            "Analyses: " + "; ".join(ANALYSES) + ".",
            "Statistics: " + ", ".join(MEASURES) + ".",
        ]

    def to_frame(self) -> pl.DataFrame:
        """How far each statistic would be off at each epsilon."""
        return pl.DataFrame([{"epsilon": other.epsilon, **other.errors()} for other in self.others()])

    def plot(self) -> Any:
        """How far each statistic would be off, as an altair chart."""
        return self.plan.plot()

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()[:-2]), self.to_frame())

    def _budget(self) -> str:
        if self.remaining is None or self.limit is None:
            return "These learners are simulated: no budget is kept for them."
        left = f"Budget of '{self.account.population}': of {self.limit:g} {self.remaining:g} can still be asked for"
        if self.refused:
            return f"{left}. This summary WOULD BE REFUSED: {self.refused}"
        return f"{left}, and {self.left:g} after this summary."

    def _about_previous(self) -> list[str]:
        gain = self.noise_left()
        if not gain:
            return []
        listed = ", ".join(f"{name} {left:.0%}" for name, left in gain.items())
        helps = (
            "It can help"
            if min(gain.values()) < 0.9
            else "It hardly helps: it is much noisier than this summary"
        )
        return [
            f"With last year's summary at best this much of the noise is left: {listed}. {helps}; how far habits "
            "changed since is estimated when it is weighed in, and takes away from it."
        ]


@dataclass(frozen=True)
class Summarized:
    """A private summary that was charged: `summary` may be given away, with its guarantee."""

    summary: PrivateSummary
    plan: Plan
    charge: Charge
    out: Path | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            "out": None if self.out is None else str(self.out),
            **self.charge.to_json(),
            "predictions": [vars(prediction) for prediction in self.plan.predictions()],
            "guarantee": self.summary.guarantee.to_json(),
        }

    def lines(self) -> list[str]:
        """The result for people."""
        guarantee = self.summary.guarantee
        return [
            *self._combined(),
            f"Guarantee: {replace(guarantee, caveats=())}.",
            *(f"  Stated with it: {caveat}." for caveat in guarantee.caveats),
            self.charge.sentence(),
            *([] if self.out is None else [f"Written: {self.out}."]),
        ]

    def to_frame(self) -> pl.DataFrame:
        """Each statistic with its share of the budget and its error."""
        return self.plan.to_frame()

    def plot(self) -> Any:
        """How far each statistic is off, as an altair chart."""
        return self.plan.plot()

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()), self.to_frame())

    def _combined(self) -> list[str]:
        """What an earlier year or validated effects did to the noise that the table shows."""
        statistics = self.summary.statistics
        # The diagonal of a matrix of products: the other cells are means of two draws anyway.
        ratios = [
            float(np.mean(np.diagonal(statistic.noise_sd) if name == "habits" else statistic.noise_sd))
            / statistic.context["measured_sd"]
            for name, statistic in statistics.items()
            if "years" in statistic.context
        ]
        n_effects = (
            len(statistics["habits"].context.get("validated_cells", ())) if "habits" in statistics else 0
        )
        lines = []
        if ratios:
            lines.append(
                f"With the earlier summary weighed in, the numbers of the file have {min(ratios):.0%} to "
                f"{max(ratios):.0%} of the noise of this measurement alone: it is given with each of them."
            )
        if n_effects:
            lines.append(f"Validated effects on the label that were weighed in: {n_effects}.")
        return lines


def plan(
    cohort: Cohort,
    options: SummarizeOptions = SummarizeOptions(),  # noqa: B008 (frozen)
    **settings: Any,
) -> Forecast:
    """What a summary would cost, how far its numbers would be off, and what other epsilons would give.

    Nothing is charged and nothing is written. The settings of `SummarizeOptions` may be given as keywords.
    """
    job = _prepared(cohort, settled(options, settings))
    account = job.account
    doubts = (*account.doubts(), *job.doubts)
    found = Forecast(job.plan, account, job.cost, job.previous, doubts, job.notes, None, None, "")
    if account.simulated:
        return found
    try:
        balance = account.check(job.cost)
    except RefusedError as error:
        if error.code != "budget":
            balance = account.balance()
            remaining = balance.remaining(job.cost)
            return replace(found, remaining=remaining, limit=balance.limit, refused=error.message)
        # What was spent on these learners under any name: the refusal knows it.
        limit, largest = error.fields["limit"], error.fields["largest"]
        return replace(found, remaining=largest, limit=limit, refused=error.message)
    left = balance.after(job.cost).remaining(job.cost)
    return replace(found, remaining=balance.remaining(job.cost), limit=balance.limit, left=left)


def summarize(
    cohort: Cohort,
    options: SummarizeOptions = SummarizeOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    noise: Noise | None = None,
    **settings: Any,
) -> Summarized:
    """Charge the ledger, measure noisy sums about the cohort, and write them as json if `out` is given.

    The settings of `SummarizeOptions` may be given as keywords.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        check_new_json(out)
    job = _prepared(cohort, options)
    account = job.account
    account.check(job.cost)
    cohort = replace(cohort, simulated=bool(account.simulated))
    warning = job.plan.warning()
    doubts = (*job.doubts, *([warning] if warning else []))
    with account.charge(
        "cohort summarize", "discrete Gaussian", job.cost, out=out, noise=noise, doubts=doubts
    ) as charge:
        found = noisy_summary(cohort, job.plan, charge.noise, {"card": charge.card})
        if job.previous is not None:
            found = with_previous(found, job.previous, charged=job.previous_charged)
        if job.advice is not None:
            found = with_effects(found, job.advice)
        if out is not None:
            write_json(out, found.to_json())
    # No one is asked about simulated learners, who cost nothing; the warning is worth reading all the same.
    unasked = (warning.sentence,) if warning and account.simulated else ()
    return Summarized(found, job.plan, charge, out, (*job.notes, *unasked))


@dataclass(frozen=True)
class _Job:
    """Everything that is settled before anything is spent."""

    plan: Plan
    account: Account
    cost: Guarantee
    advice: Suggestions | None
    previous: PrivateSummary | None
    previous_charged: bool
    doubts: tuple[Doubt, ...]
    notes: tuple[str, ...]


def _prepared(cohort: Cohort, options: SummarizeOptions) -> _Job:
    refuse_cuts_from_data(cohort)
    beside = _schemas_beside(cohort)
    if any(schema.cuts_source == "data" for schema in beside):
        # Another schema does not undo that the table was cut at the data's own quantiles.
        raise DataError(
            "the schema beside the table says that the cuts between the labels come from the data.",
            hint="build the cohort again with declared cuts, or with cuts estimated privately.",
        )
    if cohort.n_learners < 2:
        raise DataError(
            f"a summary describes a cohort; this one has {cohort.n_learners} learners.",
            hint="give the table that `understudy cohort build` made.",
            code="too-few-learners",
        )
    advice = None if options.suggestions is None else read_suggestions(Path(options.suggestions))

    def planned(options: SummarizeOptions) -> Plan:
        assert options.epsilon is not None  # settled by `by_risk`
        plan = propose(
            cohort.schema,
            cohort.n_learners,
            options.epsilon,
            default_delta(cohort.n_learners) if options.delta is None else options.delta,
            analyses=options.analyses or (),
            statistics=options.statistics or (),
        )
        return plan if advice is None else with_budget(plan, advice)

    options = options.by_risk(lambda tried: planned(tried).guarantee)
    plan = planned(options)
    declared = [cohort.schema.data_set, *cohort.data_sets, *(schema.data_set for schema in beside)]
    data_sets = [] if cohort.simulated else declared
    account = Account.open(
        options,
        replace(cohort.origin, digests=cohort.digests()),
        simulated=cohort.simulated,
        files=cohort.files,
        data_sets=[name for name in dict.fromkeys(data_sets) if name],
    )
    # Privately estimated cuts were charged when they were estimated; the file that holds them states the sum.
    job = _Job(plan, account, plan.charge, advice, None, False, _doubts(cohort, account, options), ())
    return job if options.previous is None else _with_previous(job, cohort, Path(options.previous))


def _with_previous(job: _Job, cohort: Cohort, path: Path) -> _Job:
    """The job with last year's summary; that it fits is found before anything is spent."""
    before = PrivateSummary.read(path)
    check_previous(cohort.schema, before)
    if not before.guarantee.formal:
        # What it says of last year's learners would go on under a claim that does not hold for them.
        raise RefusedError(
            f"{path} carries no formal guarantee, so it cannot be the prior of a private summary.",
            hint="give last year's private summary, or none.",
            settings=("previous",),
        )
    account, paid = job.account, cards(before)
    charged = bool(paid) and account.has_cards(paid)
    notes = job.notes
    if not account.simulated:
        same = account.same_learners(paid)
        if same is not None:
            raise RefusedError(
                f"{path} is about the same learners, according to the ledger: it was charged to '{same}', and this "
                f"would be charged to '{account.population}'. A summary of both would state the epsilon of one.",
                hint="leave the earlier summary out, and spend more at once with a larger epsilon; if they are other "
                "learners, give each year's files names of their own, and each year its own population if any.",
                code="same-learners",
                settings=("previous", "epsilon", "population"),
            )
        if not charged and account.ledger is not None:
            notes = (
                *notes,
                f"{path} was not charged in the ledger {account.ledger.path}: that it is about other learners than "
                "this year's is your word.",
            )
    cost = job.cost.with_caveats(*previous_caveats(before, charged=charged))
    return replace(job, cost=cost, previous=before, previous_charged=charged, notes=notes)


def _schemas_beside(cohort: Cohort) -> list[Schema]:
    """The declarations beside the files that a cohort was read from; another one may be in use."""
    paths = [path for path in (cohort.origin.path, *cohort.files) if path is not None]
    return [Schema.read(place) for place in map(schema_path, paths) if place.is_file()]


def _doubts(cohort: Cohort, account: Account, options: SummarizeOptions) -> tuple[Doubt, ...]:
    """What the ledger cannot know: whether this is a copy, and whether the cuts were paid for."""
    if account.simulated or account.ledger is None:
        return ()
    doubts = []
    if options.population is None and not account.data_sets and account.doubts():
        doubts.append(
            Doubt(
                "The schema has no `data_set`, the name that `understudy cohort build` gives to learners, so the "
                "same learners in a table of other weeks or features are taken for others.",
                ("population",),
            )
        )
    price = cohort.schema.cuts_epsilon
    built = [entry.epsilon or 0.0 for entry in account.entries() if entry.kind == "cohort build"]
    if price is not None and price > max(built, default=0.0):
        doubts.append(
            Doubt(
                f"The cuts between the labels cost epsilon {price:g}, and the ledger {account.ledger.path} did not "
                f"charge that to '{account.population}'. If they were estimated from these learners, name the ledger "
                "that did.",
                ("ledger",),
            )
        )
    return tuple(doubts)
