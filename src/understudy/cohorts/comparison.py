"""compare(): panelists, their pool, the deep baseline and references side by side on one cohort.

Internal: everything is measured against the real learners and with seeded noise. Nothing is charged,
and nothing here may leave.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from understudy.cohorts.attacks.membership import (
    N_SHADOWS,
    check_outsiders,
    membership_risks,
    risk_of_given,
)
from understudy.cohorts.cohort import Cohort, read_cohort
from understudy.cohorts.comparison_report import (
    FEWEST_FOR_INTERVAL,
    LABELS,
    MEASURES,
    ajs_figure,
    floor_sentences,
    write_comparison,
)
from understudy.cohorts.findings import Analysis, bank, read_analyses, run_bank
from understudy.cohorts.methods import GUARANTEE, GUARANTEES, CohortMetrics, Deep, methods, require_deep
from understudy.cohorts.panel.panel import N_EACH, check_rows
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import refuse_cuts_from_data
from understudy.core.attacks.estimate import RiskEstimate
from understudy.core.attacks.intervals import SeedInterval, over_seeds
from understudy.core.attacks.transcript import EXPOSED
from understudy.core.engine import progress
from understudy.core.files.writing import check_new
from understudy.core.options import settled
from understudy.core.pages.levels import RiskLevel, risk_levels
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError


def finite(values: Sequence[float]) -> list[float]:
    """What can be averaged: a share without findings behind it is none."""
    return [value for value in values if not math.isnan(value)]


Row = dict[str, Any]
# Measures that have an interval over learners of their own.
AREAS = ("auc_worst", "control_auc_worst", "auc_transcript")
SMALLEST = 20
GIVEN = "not known here: see its data card"


@dataclass(frozen=True)
class CompareOptions:
    """How often each method is tried, and the epsilon and delta of the private ones."""

    epsilon: Annotated[float, "Of the private methods."] = 3.0
    delta: Annotated[
        float | None,
        "Of the private methods (default: as of `cohort summarize`, 1e-6, or one over the squared number of learners).",
    ] = None
    n_seeds: Annotated[int, "Synthetic cohorts of each method."] = 5
    deep: Annotated[bool, "Train the deep baseline too (minutes; needs the extra `deep`)."] = False
    n_shadows: Annotated[
        int, "Training runs of the membership attack, 8 or more; 0 leaves that attack out."
    ] = N_SHADOWS
    per_panelist: Annotated[int, "Rows that each panelist gives for each label."] = N_EACH
    seed: Annotated[int, "Seed of the noise and of everything else."] = 1

    def __post_init__(self) -> None:
        if self.n_seeds < 1 or self.n_shadows < 0:
            raise UsageError(
                f"a comparison needs a seed at least; asked for {self.n_seeds} seeds and {self.n_shadows} shadows.",
                hint="for example 5 seeds.",
                settings=("n_seeds", "n_shadows"),
            )
        check_rows(self.per_panelist)


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
    """A row per method and seed; `given` are the files that were judged next to the methods.

    `proved` is what would be proved about the private methods if their noise were secret.
    """

    plan: CompareOptions
    rows: tuple[Row, ...]
    n_learners: int
    simulated: bool
    given: tuple[str, ...] = ()
    n_outsiders: int = 0
    analyses: tuple[str, ...] = ()
    own_analyses: tuple[str, ...] = ()
    folder: Path | None = None
    proved: Guarantee | None = None

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
        if measure in AREAS:
            return self._risk(method, measure, interval)
        if interval.n_seeds < FEWEST_FOR_INTERVAL:
            return Shown(interval.mean, None, None, interval.n_seeds)
        return Shown(interval.mean, interval.low, interval.high, interval.n_seeds)

    def _risk(self, method: str, measure: str, over_seeds: SeedInterval) -> Shown:
        """An AUC with its own interval over learners in it.

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

    def levels(self) -> list[RiskLevel]:
        """The pool's three numbers: proved, found by whoever sees the summary, found in the synthetic cohort.

        Empty where an attack was not tried.
        """
        strongest = self._reached("auc_worst", ", ".join(self.strongest_attacks("pool")))
        white_box = self._reached("auc_transcript", "transcript")
        if self.proved is None or strongest is None or white_box is None:
            return []
        return risk_levels(self.proved, strongest, white_box, made="synthetic cohort")

    def strongest_attacks(self, method: str) -> list[str]:
        """The attacks that were the strongest on some seed."""
        return sorted({str(row["worst_attack"]) for row in self.of(method) if "worst_attack" in row})

    def _reached(self, measure: str, attack: str) -> RiskEstimate | None:
        """What an attack reached on the pool, in the mean over seeds."""
        shown = self.shown("pool", measure)
        if shown is None or shown.low is None or shown.high is None:
            return None
        found = self.interval("pool", "tpr_at_1pct")
        tpr = math.nan if found is None else found.mean
        n_members = self.n_learners // 2
        return RiskEstimate(
            attack, shown.mean, shown.low, shown.high, tpr, n_members, self.n_learners - n_members
        )

    def exposed_share(self) -> float | None:
        """The share of learners whom the noisy sums could give away; see `WhiteBox`."""
        found = self.interval("pool", "exposed_share")
        return None if found is None else found.mean

    def guarantee(self, method: str) -> str:
        """The guarantee of a method, in words."""
        return str(self.of(method)[0]["guarantee"])

    @property
    def references(self) -> list[str]:
        """The methods that are not private."""
        return [method for method in self.methods if self.guarantee(method) == GUARANTEES["reference"]]

    def by_method(self) -> dict[str, Any]:
        """Means and intervals of every method."""
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

    def to_json(self) -> dict[str, Any]:
        """The comparison for machines."""
        return {
            "out": None if self.folder is None else str(self.folder),
            "internal": True,
            "guarantee": GUARANTEE,
            "epsilon": self.plan.epsilon,
            "delta": self.plan.delta,
            "seed": self.plan.seed,
            "learners": self.n_learners,
            "seeds": self.plan.n_seeds,
            "outsiders": self.n_outsiders,
            "own_analyses": list(self.own_analyses),
            "methods": self.by_method(),
            "levels": [dict(vars(level)) for level in self.levels()],
            "exposed": {"share": self.exposed_share(), "above_auc": EXPOSED},
        }

    def lines(self) -> list[str]:
        """How to read the comparison, and what is remarkable in it."""
        lines = [
            f"Not private, for reference: {'; '.join(LABELS.get(name, name) for name in self.references)}.",
            *_READING,
            *(f"Pool: {level.sentence}" for level in self.levels()),
            *floor_sentences(self),
        ]
        if self.given and not self.n_outsiders:
            lines.append(
                f"The risk of {', '.join(self.given)} was not measured: all learners may have made it, and members "
                "cannot be distinguished from others where there are no others. Name outsiders to have it measured."
            )
        if self.own_analyses:
            lines.append(
                f"With {len(self.own_analyses)} of your own, {len(self.analyses)} analyses were run."
            )
        if not self.plan.deep:
            lines.append("The deep baseline was left out; it takes minutes, and needs the extra `deep`.")
        lines.append(
            f"Guarantee: {GUARANTEE}. Internal: computed from the learners' records; nothing was charged."
        )
        return lines if self.folder is None else [*lines, f"Report: {self.folder / 'report.html'}"]

    def to_frame(self) -> pl.DataFrame:
        """A row per method and seed, as in `results.csv`."""
        return pl.DataFrame(list(self.rows), infer_schema_length=None)

    def plot(self) -> Any:
        """How far the habits of each method are from the real ones, as an altair chart."""
        return ajs_figure(self).chart

    def _repr_html_(self) -> str:
        shown = [
            {"method": LABELS.get(method, method)}
            | {name: None if (mean := self.shown(method, name)) is None else mean.mean for name in MEASURES}
            for method in self.methods
        ]
        return notebook_table("Means over seeds. Internal: computed from real learners.", pl.DataFrame(shown))


_READING = (
    "AJS: how far habits are apart, 0 (alike) to 1. Precision: share of synthetic findings that hold on the real",
    "learners; recall: share of real findings that are found; outcome: the same for findings about the label.",
    "AUC: chance that an attack ranks a learner who made the cohort above one who did not, with its 95 % interval;",
    "0.5 is guessing. Luck alone: the strongest of the same attacks where there is nothing to find.",
)


def compare(
    cohort: Cohort,
    options: CompareOptions = CompareOptions(),  # noqa: B008 (frozen)
    *,
    synthetic: Mapping[str, Cohort] | None = None,
    outsiders: Cohort | None = None,
    analyses: Sequence[Analysis] | Path | str = (),
    out: Path | str | None = None,
    **settings: Any,
) -> Comparison:
    """Try every method on every seed, and judge the `synthetic` cohorts, which are given by name.

    `outsiders` did not make the given cohorts, and all learners of `cohort` may have: only then is their
    risk measured. `analyses` are run in addition to the bank; those of a file run in this process, with all its
    rights. With `out`, table, figures and report are written to that new folder. The settings of
    `CompareOptions` may be given as keywords.
    """
    options = settled(options, settings)
    folder = None if out is None else Path(out)
    # What may be wrong is found before minutes of work, not after.
    if folder is not None:
        check_new(folder, folder=True)
    check_cohort(cohort)
    given = synthetic or {}
    check_given(cohort, given, outsiders)
    own = read_analyses(Path(analyses)) if isinstance(analyses, Path | str) else tuple(analyses)
    if own:
        run_bank(cohort, own)
    delta = default_delta(cohort.n_learners) if options.delta is None else options.delta
    found = _compared(cohort, replace(options, delta=delta), delta, given, outsiders, own)
    if folder is not None:
        found = replace(found, folder=folder)
        write_comparison(found, folder)
    return found


def read_synthetic(paths: Sequence[Path], cohort: Cohort) -> dict[str, Cohort]:
    """Synthetic cohorts of files, by their names; read by the real one's schema, so that bounds and labels agree."""
    found = {path.name: read_cohort(path, cohort.schema) for path in paths}
    if len(found) < len(paths):
        raise UsageError("two synthetic cohorts have the same file name.", hint="rename one of them.")
    return found


def _compared(
    cohort: Cohort,
    plan: CompareOptions,
    delta: float,
    given: Mapping[str, Cohort],
    outsiders: Cohort | None,
    own: Sequence[Analysis],
) -> Comparison:
    analyses = (*bank(), *own)
    if plan.deep:
        require_deep()
    n_methods = len(methods(plan.epsilon, delta, plan.per_panelist)) + plan.deep
    steps = n_methods * plan.n_seeds + (n_methods - plan.deep) * plan.n_shadows + plan.deep + len(given)
    with progress.task("Comparing", steps) as step:
        deep, pretraining = None, 0.0
        if plan.deep:
            begun = time.perf_counter()
            deep = Deep(plan.epsilon, delta, cohort.schema, seed=plan.seed)
            pretraining = time.perf_counter() - begun
            step.advance()
        rows = []
        for place, (name, method) in enumerate(methods(plan.epsilon, delta, plan.per_panelist, deep).items()):
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
                        "delta": delta if is_private else math.nan,
                        "guarantee": method.guarantee,
                        **CohortMetrics.of(cohort, synthetic, analyses).row(),
                        "seconds": seconds,
                    }
                )
                step.advance()
            rng = np.random.default_rng([plan.seed, place, plan.n_seeds])
            # A network that is trained for each shadow would take an hour.
            n_shadows = 0 if name == "deep" else plan.n_shadows
            risks = membership_risks(
                *(cohort, method.generate, plan.n_seeds, n_shadows, rng, step.advance),
                summarize=method.summarize,
            )
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
        tuple(analysis.name for analysis in own),
        proved=propose(cohort.schema, cohort.n_learners, plan.epsilon, delta).guarantee,
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
