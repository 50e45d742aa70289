"""`cohort compare`: panelists, their pool, the deep baseline and references side by side on one cohort.

Internal: everything is measured against the real learners and with seeded noise. Nothing is charged,
and nothing here may leave.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.cohorts.attacks import N_SHADOWS, check_outsiders, membership_risks, risk_of_given
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings import Analysis, bank
from understudy.cohorts.methods import GUARANTEES, CohortMetrics, Deep, methods, require_deep
from understudy.cohorts.panel.panel import N_EACH
from understudy.cohorts.summary.mechanism import refuse_cuts_from_data
from understudy.core.attacks.intervals import SeedInterval, over_seeds
from understudy.core.engine import progress
from understudy.errors import DataError, UsageError


def finite(values: Sequence[float]) -> list[float]:
    """What can be averaged: a share without findings behind it is none."""
    return [value for value in values if not math.isnan(value)]


Row = dict[str, Any]
SMALLEST = 20
# With fewer seeds their spread is not shown: two or three numbers do not make a distribution.
FEWEST_FOR_INTERVAL = 3
GIVEN = "not known here: see its data card"

MEASURES = (
    "ajs",
    "precision",
    "recall",
    "n_synthetic",
    "auc_worst",
    "control_auc_worst",
    "seconds",
    "outcome_precision",
    "outcome_recall",
)


@dataclass(frozen=True)
class ComparePlan:
    """What is compared, how often, and the epsilon and delta of the private methods."""

    epsilon: float = 3.0
    delta: float = 1e-3
    n_seeds: int = 5
    deep: bool = False
    n_each: int = N_EACH
    n_shadows: int = N_SHADOWS
    seed: int = 1
    deep_rows: int | None = None

    def __post_init__(self) -> None:
        if self.n_seeds < 1 or self.n_shadows < 0:
            raise UsageError(
                f"a comparison needs a seed at least; asked for {self.n_seeds} seeds and {self.n_shadows} shadows.",
                hint="for example 5 seeds.",
                settings=("n_seeds", "n_shadows"),
            )


@dataclass(frozen=True)
class Shown:
    """A mean over seeds with its interval; without one if there are too few seeds."""

    mean: float
    low: float | None
    high: float | None
    n_seeds: int

    def to_json(self) -> dict[str, Any]:
        """For a machine."""
        return dict(vars(self))


@dataclass(frozen=True)
class Comparison:
    """A row per method and seed; `given` are the files that were judged next to the methods."""

    plan: ComparePlan
    rows: tuple[Row, ...]
    n_learners: int
    simulated: bool
    given: tuple[str, ...] = ()
    n_outsiders: int = 0
    analyses: tuple[str, ...] = ()

    @property
    def methods(self) -> list[str]:
        """Methods in the order in which they were tried."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def of(self, method: str) -> list[Row]:
        """The rows of one method."""
        return [row for row in self.rows if row["method"] == method]

    def kinds(self) -> list[str]:
        """Kinds of analyses, as in the columns."""
        return [key.removeprefix("precision_") for key in self.rows[0] if key.startswith("precision_")]

    def interval(self, method: str, measure: str) -> SeedInterval | None:
        """Mean over seeds with a bootstrap interval; None where it was not measured."""
        values = finite([float(row[measure]) for row in self.of(method) if measure in row])
        return over_seeds(values, np.random.default_rng(0)) if values else None

    def shown(self, method: str, measure: str) -> Shown | None:
        """What may be shown: for a risk the interval is over learners and seeds, else over seeds."""
        interval = self.interval(method, measure)
        if interval is None:
            return None
        if measure.endswith("auc_worst"):
            return self._risk(method, measure, interval)
        if interval.n_seeds < FEWEST_FOR_INTERVAL:
            return Shown(interval.mean, None, None, interval.n_seeds)
        return Shown(interval.mean, interval.low, interval.high, interval.n_seeds)

    def _risk(self, method: str, measure: str, over_seeds: SeedInterval) -> Shown:
        """An AUC with the attack's own interval over learners in it.

        The learners are the same in every seed, so their part does not shrink with the number of seeds:
        the mean distance of each seed's bound from its AUC, and the distance of the bound over seeds, add up
        as squares do. With too few seeds the widest of the seeds' own intervals is taken.
        """
        rows = [row for row in self.of(method) if measure in row and math.isfinite(row[measure])]
        aucs, lows, highs = (
            np.array([float(row.get(f"{measure}{end}", math.nan)) for row in rows])
            for end in ("", "_low", "_high")
        )
        mean, n = over_seeds.mean, over_seeds.n_seeds
        if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
            return Shown(mean, None, None, n)
        if n < FEWEST_FOR_INTERVAL:
            return Shown(mean, float(lows.min()), float(highs.max()), n)
        below = math.hypot(float(np.mean(aucs - lows)), mean - over_seeds.low)
        above = math.hypot(float(np.mean(highs - aucs)), over_seeds.high - mean)
        return Shown(mean, max(mean - below, 0.0), min(mean + above, 1.0), n)

    def of_kind(self, method: str, kind: str) -> dict[str, Shown | None]:
        """Precision, recall and number of findings of a kind; no precision where there is hardly a finding."""
        found = {
            name: self.shown(method, f"{name}_{kind}") for name in ("precision", "recall", "n_synthetic")
        }
        n = found["n_synthetic"]
        if n is None or n.mean < 0.5:
            found["precision"] = None
        return found

    def beside_the_floor(self, method: str) -> str:
        """Where a method does not do better than the guess that looked at no learner; empty if nowhere."""
        names = (("ajs", "AJS", 3), ("precision", "precision", 2), ("recall", "recall", 2))
        worse: list[str] = []
        better: list[str] = []
        for measure, name, digits in names:
            found, floor = self.interval(method, measure), self.interval("nobody", measure)
            if found is None or floor is None:
                continue
            is_worse = found.mean >= floor.mean if measure == "ajs" else found.mean <= floor.mean
            figures = f"{name} {found.mean:.{digits}f} against {floor.mean:.{digits}f}"
            (worse if is_worse else better).append(figures)
        if not worse:
            return ""
        rest = f" It does better in {', '.join(better)}." if better else ""
        return (
            f"does not do better than a guess that looked at no learner in {', '.join(worse)}: there nothing was "
            f"learned from the learners.{rest}"
        )

    def guarantee(self, method: str) -> str:
        """The guarantee of a method, in words."""
        return str(self.of(method)[0]["guarantee"])

    @property
    def references(self) -> list[str]:
        """The methods that are not private."""
        return [method for method in self.methods if self.guarantee(method) == GUARANTEES["reference"]]

    def to_json(self) -> dict[str, Any]:
        """Means and intervals for a machine."""
        found: dict[str, Any] = {}
        for method in self.methods:
            intervals = {name: self.shown(method, name) for name in MEASURES}
            found[method] = {
                "guarantee": self.guarantee(method),
                **{name: None if shown is None else shown.to_json() for name, shown in intervals.items()},
                "beside_the_floor": self.beside_the_floor(method) if method != "nobody" else "",
                "by_kind": {
                    kind: {
                        name: None if shown is None else shown.mean
                        for name, shown in self.of_kind(method, kind).items()
                    }
                    for kind in self.kinds()
                },
            }
        return found


def compare(
    cohort: Cohort,
    plan: ComparePlan,
    given: Mapping[str, Cohort] | None = None,
    outsiders: Cohort | None = None,
    analyses: Sequence[Analysis] = (),
) -> Comparison:
    """Try every method on every seed, and judge the synthetic cohorts that are `given` by name.

    `outsiders` did not make the given cohorts, and all learners of `cohort` may have: only then is their
    risk measured. `analyses` are run in addition to the bank.
    """
    check_cohort(cohort)
    analyses = (*bank(), *analyses)
    given = given or {}
    check_given(cohort, given, outsiders)
    if plan.deep:
        require_deep()
    n_methods = len(methods(plan.epsilon, plan.delta, plan.n_each)) + plan.deep
    steps = n_methods * plan.n_seeds + (n_methods - plan.deep) * plan.n_shadows + plan.deep + len(given)
    with progress.task("Comparing", steps) as step:
        deep, pretraining = None, 0.0
        if plan.deep:
            begun = time.perf_counter()
            deep = Deep(plan.epsilon, plan.delta, cohort.schema, plan.deep_rows, plan.seed)
            pretraining = time.perf_counter() - begun
            step.advance()
        rows = []
        for place, (name, method) in enumerate(methods(plan.epsilon, plan.delta, plan.n_each, deep).items()):
            is_private = method.kind == "private"
            measured = []
            for seed in range(plan.n_seeds):
                rng = np.random.default_rng([plan.seed, place, seed])
                begun = time.perf_counter()
                synthetic = method.generate(cohort, rng)
                seconds = time.perf_counter() - begun + (pretraining if name == "deep" else 0.0)
                measured.append(
                    {
                        "method": name,
                        "seed": seed,
                        "n_learners": cohort.n_learners,
                        "epsilon": plan.epsilon if is_private else math.nan,
                        "delta": plan.delta if is_private else math.nan,
                        "guarantee": method.guarantee,
                        **CohortMetrics.of(cohort, synthetic, analyses).row(),
                        "seconds": seconds,
                    }
                )
                step.advance()
            rng = np.random.default_rng([plan.seed, place, plan.n_seeds])
            # A network that is trained for each shadow would take an hour.
            n_shadows = 0 if name == "deep" else plan.n_shadows
            risks = membership_risks(cohort, method.generate, plan.n_seeds, n_shadows, rng, step.advance)
            rows += [{**row, **risk} for row, risk in zip(measured, risks, strict=True)]
        for place, (name, synthetic) in enumerate(given.items()):
            rng = np.random.default_rng([plan.seed, 1000 + place])
            rows.append(
                {
                    "method": name,
                    "seed": 0,
                    "n_learners": cohort.n_learners,
                    "guarantee": GIVEN,
                    **CohortMetrics.of(cohort, synthetic, analyses).row(),
                    **risk_of_given(cohort, outsiders, synthetic, rng),
                }
            )
            step.advance()
    return Comparison(
        plan,
        tuple(rows),
        cohort.n_learners,
        cohort.simulated,
        tuple(given),
        0 if outsiders is None else outsiders.n_learners,
        tuple(analysis.name for analysis in analyses),
    )


def check_given(cohort: Cohort, given: Mapping[str, Cohort], outsiders: Cohort | None) -> None:
    """Refuse files that cannot be judged, before minutes of work."""
    if outsiders is not None:
        if not given:
            raise UsageError(
                "outsiders were named, but no synthetic cohort to judge.",
                hint="name one.",
                settings=("synthetic",),
            )
        check_outsiders(cohort, outsiders)
    for name, synthetic in given.items():
        if not synthetic.n_learners:
            raise DataError(f"{name} holds no learner.", hint="name a synthetic cohort that has some.")


def check_cohort(cohort: Cohort) -> None:
    """Refuse cohorts on which a comparison means nothing."""
    refuse_cuts_from_data(cohort)
    if cohort.n_learners < SMALLEST or len(set(cohort.label.tolist())) < 2:
        raise DataError(
            f"a comparison needs {SMALLEST} learners and two labels at least; found {cohort.n_learners} and "
            f"{len(set(cohort.label.tolist()))}.",
            hint="use a larger cohort.",
        )
