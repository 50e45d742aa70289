"""How a summary's budget is split for the analyses that are expected, and the errors that follow.

Everything here is computed from public numbers, before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from understudy.cohorts.cuts import cuts_guarantee
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.statistics import LABEL_FACTOR, MEASURES, Measure
from understudy.core.pages.charts import Point, dots
from understudy.core.privacy.composition import analytic_rho, from_gaussians
from understudy.core.privacy.confirmation import Doubt
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError

# What the accounting rests on: no more noisy integers than this in all, none with less noise than
# this many lattice steps. Both are checked.
MOST_CELLS = 20_000
LEAST_SIGMA = 2.0**12

MECHANISM = "discrete Gaussian mechanism on sums over learners"

# What each kind of analysis needs, in shares of the budget (rho); several add up. Chosen on simulated
# schools, never on the data at hand.
ANALYSES: dict[str, dict[str, float]] = {
    "habits by time of day against outcome": {"labels": 0.06, "levels": 0.08, "habits": 0.52},
    "weekly rhythm": {"rhythm": 0.20, "levels": 0.02},
    "regularity": {"persistence": 0.12, "spread": 0.04, "habits": 0.06},
    "time-of-day mix": {"levels": 0.12, "habits": 0.08},
    "overall distribution": {"sketch": 0.30, "levels": 0.08, "spread": 0.02},
}


@dataclass(frozen=True)
class Prediction:
    """The error to expect of one statistic: the noise of a value, and the same per learner.

    A mean over learners that is computed from the value is off by `error` (one standard deviation).
    `what` describes what is released, in plain words; `off_by` is the error on the scale of `scale`,
    and `useless` means that it is as large as what could be learned.
    """

    statistic: str
    share: float
    sensitivity: float
    noise_sd: float
    error: float
    n_cells: int
    what: str
    scale: str
    off_by: float
    useless: bool


@dataclass(frozen=True)
class Plan:
    """Which statistics are measured, with which share of the budget, for which guarantee."""

    schema: Schema
    n_learners: int
    epsilon: float
    delta: float
    shares: dict[str, float]
    analyses: tuple[str, ...] = ()
    from_feedback: bool = False

    def __post_init__(self) -> None:
        if not all(share > 0 for share in self.shares.values()) or math.fsum(self.shares.values()) > 1 + 1e-9:
            raise ValueError("the shares of a budget are above 0 and add up to at most 1")

    @property
    def rho(self) -> float:
        """What all statistics may spend together."""
        return rho_of(self.epsilon, self.delta)

    @property
    def charge(self) -> Guarantee:
        """What is proved about the measurement, which is what it costs: see `gaussian` and `analytic_delta`."""
        proved = from_gaussians(
            self.rho, self.epsilon, self.delta, (MECHANISM,), n_cells=MOST_CELLS, sigma=LEAST_SIGMA
        )
        feedback = (caveats.FEEDBACK,) if self.from_feedback else ()
        return proved.with_caveats(*feedback, *self.schema.caveats)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about the summary, which holds the schema and so its cuts: see `with_cuts`."""
        return with_cuts(self.charge, self.schema)

    def rho_of(self, statistic: str) -> float:
        """What one statistic may spend."""
        return self.rho * self.shares[statistic]

    def predictions(self) -> list[Prediction]:
        """The noise of every statistic, which is known beforehand."""
        found = []
        for name in self.shares:
            measure: Measure = MEASURES[name](self.schema, {})
            noise = measure.sensitivity / math.sqrt(2.0 * self.rho_of(name))
            error = noise / max(self.n_learners, 1)
            reading = _READINGS[name]
            off_by = error * reading.factor(self.schema)
            found.append(
                Prediction(
                    name,
                    self.shares[name],
                    measure.sensitivity,
                    noise,
                    error,
                    measure.n_cells,
                    reading.what,
                    reading.scale,
                    off_by,
                    off_by >= reading.learnable(self.schema),
                )
            )
        return found

    def errors(self) -> dict[str, float]:
        """How far each statistic is off, on the scale that `Prediction.scale` names."""
        return {prediction.statistic: round(prediction.off_by, 4) for prediction in self.predictions()}

    def rows(self) -> list[list[str]]:
        """A row for each statistic, narrow enough for a terminal: name, plain words, share of the budget, error."""
        return [
            [
                found.statistic,
                found.what,
                f"{found.share:.0%}",
                f"± {found.off_by:.2f}" + " !" * found.useless,
            ]
            for found in self.predictions()
        ]

    def warning(self) -> Doubt | None:
        """A warning where noise hides what the summary is for; None where it does not."""
        hidden = [
            f"{found.statistic} (± {found.off_by:.2f})" for found in self.predictions() if found.useless
        ]
        if not hidden:
            return None
        return Doubt(
            f"Warning: with {self.n_learners} learners and epsilon {self.epsilon:g} the noise is as large as what "
            f"there is to learn in {', '.join(hidden)}. What helps: more learners in one cohort (several classes), a "
            "larger epsilon, fewer analyses, or last year's summary; the plan shows what each epsilon gives, and "
            "costs nothing.",
            ("epsilon", "analyses", "previous"),
        )

    def to_frame(self) -> pl.DataFrame:
        """A row for each statistic: what it is about, its share of the budget, and its error."""
        names = ("statistic", "what", "share", "off_by", "scale", "useless")
        return pl.DataFrame([{name: getattr(found, name) for name in names} for found in self.predictions()])

    def plot(self) -> Any:
        """How far each statistic is off, as an altair chart."""
        points = [Point(found.statistic, found.off_by) for found in self.predictions()]
        return dots(points, "off by (one standard deviation of the noise)").figure("Errors to expect").chart


def with_cuts(measured: Guarantee, schema: Schema) -> Guarantee:
    """The guarantee of a measurement together with the cuts that it was made with.

    Cuts that were estimated privately are a release about the same learners, and everything that holds
    the schema holds them. Basic composition, which allows that the measurement was chosen by the cuts: the
    epsilons add up, and the cuts have no delta. They were charged when they were estimated.
    """
    if schema.cuts_source != "private":
        return measured
    if schema.cuts_epsilon is None:
        raise DataError(
            "the cuts between the labels were estimated privately, and the schema does not state what they cost.",
            hint="write `cuts_epsilon` in it, the epsilon that `cohort build` was given: `understudy ledger FILE` "
            "shows it.",
        )
    cuts = cuts_guarantee(schema.cuts_epsilon)
    named = (f"{name} for the cuts (epsilon {cuts.epsilon:g} of it)" for name in cuts.mechanisms)
    return Guarantee(
        measured.epsilon + cuts.epsilon,
        measured.delta,
        mechanisms=(*measured.mechanisms, *named),
        caveats=measured.caveats,
    )


@dataclass(frozen=True)
class _Reading:
    """How the error of a statistic reads: on which scale, and how large what it is about usually is.

    A statistic with an error as large as that is of no use. These sizes are public guesses, as are the shares.
    """

    what: str
    scale: str
    usual: float | None = None
    times: float = 1.0
    by_label: bool = False

    def factor(self, schema: Schema) -> float:
        return self.times * (schema.n_labels if self.by_label else 1.0)

    def learnable(self, schema: Schema) -> float:
        return 1.0 / schema.n_labels if self.usual is None else self.usual


_READINGS: dict[str, _Reading] = {
    "labels": _Reading("how many learners have each label", "share of learners"),
    "levels": _Reading("how active learners are in each window", "share of weeks", 0.3),
    "zeros": _Reading("weeks without activity, by label", "share of weeks", 0.3, by_label=True),
    "minutes_by_label": _Reading(
        "minutes per week, by label (logarithm)", "share of the bound's", 0.3, by_label=True
    ),
    "sketch": _Reading("how weekly minutes are distributed", "share of weeks", 0.15),
    "rhythm": _Reading("the rhythm over the weeks of the term", "share of windows", 0.2),
    "rhythm_by_feature": _Reading("the same for each window", "share of learners", 0.3),
    "persistence": _Reading("whether active weeks follow active ones", "correlation", 0.3),
    # 16 times the variance of l is 0.25 where l spreads by 0.125, which is usual.
    "spread": _Reading("how much a learner's weeks differ", "share of the usual", 1.0, times=4.0),
    # A product off the diagonal has 1 / sqrt(2) of the noise; a scaled habit spreads by about 1, and the label from -1
    # to 1 by 0.8 in three even bins.
    "habits": _Reading(
        "what goes with what, and with the label",
        "correlation",
        0.3,
        times=1 / math.sqrt(2.0) / LABEL_FACTOR / 0.8,
    ),
}


def in_words(statistic: str) -> str:
    """What a statistic is about, in plain words."""
    return _READINGS[statistic].what


def propose(
    schema: Schema,
    n_learners: int,
    epsilon: float,
    delta: float,
    *,
    analyses: Sequence[str] = (),
    statistics: Sequence[str] = (),
) -> Plan:
    """The split for the expected analyses (all that are known, unless some are named).

    `statistics` are measured whatever the analyses need: beside the analyses' own, each with a tenth;
    without analyses only these, each with the share that it has by default or an equal one.
    """
    for name in analyses:
        if name not in ANALYSES:
            raise UsageError(f"no analysis is called '{name}'.", hint="known: " + "; ".join(ANALYSES) + ".")
    for name in statistics:
        if name not in MEASURES:
            raise UsageError(f"no statistic is called '{name}'.", hint="known: " + ", ".join(MEASURES) + ".")
    if not (epsilon > 0 and math.isfinite(epsilon)) or not 0 < delta < 1:
        raise UsageError(
            f"a summary needs epsilon above 0 and delta between 0 and 1; got {epsilon:g} and {delta:.3g}.",
            hint="for example 3 and 1e-5.",
            settings=("epsilon", "delta"),
        )
    if delta * n_learners >= 1:
        raise UsageError(
            f"delta {delta:.1e} is not below one over the number of learners ({n_learners}).",
            hint="choose a smaller delta.",
        )
    expected = tuple(analyses) if analyses or statistics else tuple(ANALYSES)
    wanted: dict[str, float] = {}
    for analysis in expected:
        for name, share in ANALYSES[analysis].items():
            wanted[name] = wanted.get(name, 0.0) + share
    defaults = _defaults()
    for name in statistics:
        extra = 0.1 * max(sum(wanted.values()), 1.0) if expected else defaults.get(name, 0.1)
        wanted[name] = wanted.get(name, extra)
    total = sum(wanted.values())
    shares = {name: wanted[name] / total for name in MEASURES if name in wanted}
    plan = Plan(schema, n_learners, epsilon, delta, shares, expected)
    check_accounting(plan)
    # A schema that does not state what its cuts cost is found before anything is spent.
    with_cuts(plan.charge, schema)
    return plan


def _defaults() -> dict[str, float]:
    together: dict[str, float] = {}
    for needs in ANALYSES.values():
        for name, share in needs.items():
            together[name] = together.get(name, 0.0) + share
    return together


def check_accounting(plan: Plan) -> None:
    """Refuse what the accounting does not cover."""
    measures = [MEASURES[name](plan.schema, {}) for name in plan.shares]
    if sum(measure.n_cells for measure in measures) > MOST_CELLS:
        raise UsageError("the cohort has too many features and weeks for this summary.", hint="use fewer.")
    for measure in measures:
        if measure.sensitivity / math.sqrt(2.0 * plan.rho_of(measure.name)) / measure.step < LEAST_SIGMA:
            raise UsageError(
                "the accounting of Gaussian noise does not cover so large an epsilon.",
                hint="choose an epsilon below 100.",
            )


@lru_cache
def rho_of(epsilon: float, delta: float) -> float:
    """What the statistics of a summary with this guarantee may spend together."""
    return analytic_rho(epsilon, delta, n_cells=MOST_CELLS, sigma=LEAST_SIGMA)
