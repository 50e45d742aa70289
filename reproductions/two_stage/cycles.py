"""The gain of cycles: three simulated years, one-shot against multi-shot, paired on the same schools.

Each year has new learners. One-shot: every year by itself. Multi-shot: the summary of the year is
combined with last year's (`prior`), and validation feedback moves the split of the budget and counts
validated effects (`feedback`); `cycles` is both, as in the product. Feedback is what researchers would
give: they find effects on the synthetic cohort, have some of the analyses run on the real one, and
report both. Schools are simulated, so nobody pays for that validation; with real learners it has a
price of its own that no epsilon covers (findings, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.comparison import finite
from understudy.cohorts.feedback import Feedback, FeedbackFile, ValidatedFinding, Verdict, suggest
from understudy.cohorts.findings import Finding, Replication
from understudy.cohorts.methods import CohortMetrics, pooled, seeded_summary
from understudy.cohorts.panel.panel import N_EACH
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.previous_year import with_previous
from understudy.cohorts.summary.suggestions import Suggestions, with_budget, with_effects
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.attacks.intervals import SeedInterval, over_seeds
from understudy.core.engine import progress
from understudy.core.pages.charts import Look, Point, dots
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure
from understudy.errors import UsageError

ONE_SHOT = "one-shot"
ARMS = (ONE_SHOT, "prior", "feedback", "cycles")
MEASURES = ("ajs", "precision", "recall", "n_synthetic", "outcome_precision", "outcome_recall")
Row = dict[str, Any]


@dataclass(frozen=True)
class CyclesPlan:
    """How many schools, and how many analyses researchers validate in a year (the seed: 5 to 11)."""

    n_schools: int = 30
    epsilon: float = 3.0
    delta: float = 1e-3
    n_years: int = 3
    n_requests: int = 10
    n_learners: int = 120
    n_each: int = N_EACH
    seed: int = 1

    def __post_init__(self) -> None:
        if self.n_schools < 1 or self.n_years < 2 or self.n_requests < 0:
            raise UsageError("cycles need a school and two years at least.", hint="give more.")


@dataclass(frozen=True)
class Gain:
    """What an arm gains over one-shot in a year, paired over schools; for AJS below 0 is better."""

    year: int
    arm: str
    measure: str
    interval: SeedInterval

    def row(self) -> Row:
        """The gain for a table."""
        return {"year": self.year, "arm": self.arm, "measure": self.measure, **asdict(self.interval)}


def run_cycles(plan: CyclesPlan) -> list[Row]:
    """A row for each school, year and arm."""
    schools = progress.each(range(plan.n_schools), "Schools")
    return [row for school in schools for row in _school(plan, school)]


def _school(plan: CyclesPlan, school: int) -> list[Row]:
    # The same learners, noise and draws for every arm: what differs is what the arm does.
    chance = partial(_chance, plan.seed, school)
    years = School(n_learners=plan.n_learners).years(chance(0), plan.n_years)
    last: dict[str, tuple[PrivateSummary, Suggestions]] = {}
    rows = []
    for year, cohort in enumerate(years):
        first: Row = {}
        for arm in ARMS:
            if year == 0 and arm != ONE_SHOT:
                last[arm] = last[ONE_SHOT]
                rows.append({**first, "arm": arm})
                continue
            summary, used = _summary(plan, cohort, arm, last.get(arm), chance(1, year))
            measured = CohortMetrics.of(cohort, pooled(used, chance(2, year), n_each=plan.n_each))
            told = as_feedback(measured.findings, cohort.n_learners, plan.n_requests, chance(3, year))
            last[arm] = summary, suggest(told, cohort.schema)
            first = {"school": school, "year": year + 1, "arm": arm, **measured.row()}
            rows.append(first)
    return rows


def _chance(seed: int, school: int, *place: int) -> np.random.Generator:
    return np.random.default_rng([seed, school, *place])


def _summary(
    plan: CyclesPlan,
    cohort: Cohort,
    arm: str,
    last: tuple[PrivateSummary, Suggestions] | None,
    rng: np.random.Generator,
) -> tuple[PrivateSummary, PrivateSummary]:
    """The summary that the next year builds on, and the one that panelists get."""
    split = propose(cohort.schema, cohort.n_learners, plan.epsilon, plan.delta)
    if last is None or arm == ONE_SHOT:
        summary = seeded_summary(cohort, plan.epsilon, plan.delta, rng, split)
        return summary, summary
    before, suggestions = last
    if arm != "prior":
        split = with_budget(split, suggestions)
    summary = seeded_summary(cohort, plan.epsilon, plan.delta, rng, split)
    if arm != "feedback":
        summary = with_previous(summary, before)
    # Feedback is about last year: it is used once, and is not handed on as if it were measured.
    return summary, summary if arm == "prior" else with_effects(summary, suggestions)


def as_feedback(
    found: Replication, n_learners: int, n_requests: int, rng: np.random.Generator
) -> FeedbackFile:
    """What researchers report: some analyses with a finding on the synthetic cohort, and both results."""
    analyses: dict[str, list[ValidatedFinding]] = {}
    for pair in found.details:
        analyses.setdefault(pair.analysis, []).append(
            ValidatedFinding(pair.real.name, _verdict(pair.synthetic), _verdict(pair.real), pair.kind)
        )
    asked = [
        name for name, findings in analyses.items() if any(one.synthetic.significant for one in findings)
    ]
    chosen = [asked[place] for place in rng.permutation(len(asked))[:n_requests]]
    return FeedbackFile(
        tuple(Feedback(name.replace("_", " "), findings=tuple(analyses[name])) for name in chosen), n_learners
    )


def _verdict(finding: Finding) -> Verdict:
    return Verdict(finding.direction, bool(finding.significant))


def gains(rows: Sequence[Row], rng: np.random.Generator) -> list[Gain]:
    """What each arm gains over one-shot, year by year and over all later years, paired over schools."""
    schools = sorted({row["school"] for row in rows})
    years = sorted({row["year"] for row in rows if row["year"] > 1})
    value = {(row["school"], row["year"], row["arm"]): row for row in rows}
    found = []
    for arm in ARMS[1:]:
        for measure in MEASURES:
            differences = {
                year: [
                    float(value[school, year, arm][measure] - value[school, year, ONE_SHOT][measure])
                    for school in schools
                ]
                for year in years
            }
            found += [
                Gain(year, arm, measure, over_seeds(finite(each), rng)) for year, each in differences.items()
            ]
            # A school's years depend on each other: their mean is one observation.
            together = [float(np.nanmean(each)) for each in zip(*differences.values(), strict=True)]
            found.append(Gain(0, arm, measure, over_seeds(finite(together), rng)))
    return found


def levels(rows: Sequence[Row], rng: np.random.Generator) -> list[Gain]:
    """The mean of each arm in each year, with its interval over schools."""
    found = []
    for year in sorted({row["year"] for row in rows}):
        for arm in ARMS:
            mine = [row for row in rows if row["year"] == year and row["arm"] == arm]
            found += [
                Gain(year, arm, name, over_seeds(finite([row[name] for row in mine]), rng))
                for name in MEASURES
            ]
    return found


ARM_LABELS = {
    "prior": "last year's summary",
    "feedback": "feedback",
    "cycles": "both: the product's cycle",
    "deep replay": "deep baseline, replay",
}


def gains_figure(found: Sequence[Gain], measure: str, title: str) -> Figure:
    """Figure 4 of the paper: what multi-shot gains over one-shot, year by year, paired, with intervals."""
    shown = [gain for gain in found if gain.measure == measure and gain.year > 0]
    points = [
        Point(
            f"year {gain.year:g}",
            gain.interval.mean,
            gain.interval.low,
            gain.interval.high,
            ARM_LABELS.get(gain.arm, gain.arm),
        )
        for gain in sorted(shown, key=lambda gain: gain.year)
    ]
    colours = (MUTED, WARNING, ACCENT, INK)
    looks = {label: Look(colour) for label, colour in zip(ARM_LABELS.values(), colours, strict=True)}
    drawing = dots(points, title, looks=looks, number="+.3f", reference=0.0, row=75)
    return drawing.figure(f"{title}, paired over schools", "The dashed line at 0 is no gain.")
