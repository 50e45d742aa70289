"""The methods that a comparison tries: panelists, their pool, the deep baseline and references.

Everything here works with seeded noise and on real learners: none of it may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings import Analysis, Replication, compare_findings
from understudy.cohorts.habit_distance import ajs
from understudy.cohorts.offline import PANELISTS, run_trusted
from understudy.cohorts.panel.panel import N_EACH, counts_of, draw_cohort, label_shares, rows_needed
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.budget import Plan, propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.previous_year import remade
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.extras import install_hint
from understudy.core.privacy.noise import Noise, seeded_noise
from understudy.errors import MissingError

Floats = NDArray[np.float64]

GUARANTEE = "no formal guarantee (test: the noise was seeded)"
GUARANTEES = {
    "private": GUARANTEE,
    "reference": "no formal guarantee (not private: a reference)",
    "no learner": "looks at no learner",
}

# Of the noise that a plan would have; the panelists' shrinkage needs a scale above 0.
_NEXT_TO_NONE = 1e-3


@dataclass(frozen=True)
class CohortMetrics:
    """What one synthetic cohort is worth, measured against the real one."""

    ajs: float
    findings: Replication

    @classmethod
    def of(cls, real: Cohort, synthetic: Cohort, analyses: Sequence[Analysis] | None = None) -> CohortMetrics:
        """Both measures, the findings by some analyses or by the whole bank."""
        return cls(ajs(real, synthetic), compare_findings(real, synthetic, analyses))

    def row(self) -> dict[str, Any]:
        """The figures for a table, overall and by kind of analysis."""
        found = self.findings
        return {
            "ajs": self.ajs,
            "precision": found.precision,
            "recall": found.recall,
            "n_synthetic": found.n_synthetic,
            "n_real": found.n_real,
            "n_holding": found.n_holding,
            # A cohort with shuffled labels still has most of the other findings.
            "outcome_precision": found.about_outcome.precision,
            "outcome_recall": found.about_outcome.recall,
            "outcome_n_synthetic": found.about_outcome.n_synthetic,
            **{
                f"{name}_{kind.replace(' ', '_')}": getattr(shares, name)
                for kind, shares in found.by_kind.items()
                for name in ("precision", "recall", "n_synthetic")
            },
        }


def seeded_summary(
    cohort: Cohort, epsilon: float, delta: float, rng: np.random.Generator, plan: Plan | None = None
) -> PrivateSummary:
    """The summary that a custodian would get, with seeded noise."""
    chosen = plan or propose(cohort.schema, cohort.n_learners, epsilon, delta)
    return noisy_summary(cohort, chosen, seeded_noise(rng))


class _Silence:
    """No noise at all, for the reference that shows what the noise costs."""

    secret = False

    def discrete_gaussian(self, values: Any, sigma: float) -> Any:
        return np.asarray(values, dtype=np.int64)


def exact_summary(cohort: Cohort, epsilon: float, delta: float) -> PrivateSummary:
    """The same statistics without noise: not private."""
    silence: Noise = _Silence()  # type: ignore[assignment]
    exact = noisy_summary(cohort, propose(cohort.schema, cohort.n_learners, epsilon, delta), silence)
    statistics = {
        name: replace(statistic, noise_sd=np.asarray(statistic.noise_sd) * _NEXT_TO_NONE)
        for name, statistic in exact.statistics.items()
    }
    return remade(exact, statistics, {"source": "a study: not private"})


def pooled(
    summary: PrivateSummary,
    rng: np.random.Generator,
    *,
    panelists: Sequence[str] = PANELISTS,
    n_each: int = N_EACH,
    n_learners: int | None = None,
) -> Cohort:
    """What the product does with offline panelists, in this process: so many of each label, pooled, drawn."""
    schema = summary.schema
    counts = counts_of(label_shares(summary), n_learners or summary.n_learners)
    n_rows = rows_needed(counts, n_each)
    tables = [[_table(name, n_rows, label, summary, rng) for label in schema.labels] for name in panelists]
    return replace(draw_cohort(tables, counts, schema, rng), guarantee=summary.guarantee)


def _table(name: str, n: int, label: str, summary: PrivateSummary, rng: np.random.Generator) -> Floats:
    frame = run_trusted(name, n, label, summary, rng)
    values: Floats = frame[summary.schema.columns()].to_numpy(dtype=np.float64)
    return values


def resample(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """The real learners drawn with replacement: the ceiling of usefulness, and no privacy at all."""
    return cohort.select(rng.integers(cohort.n_learners, size=cohort.n_learners))


def guessed_habits(schema: Schema, n: int, rng: np.random.Generator) -> Cohort:
    """Learners made from round numbers, as a guess: the floor, which looks at no learner."""
    from understudy.cohorts.deep.baseline import RoughHabits, surrogates

    return surrogates(RoughHabits(schema), schema, rng, n)


def require_deep() -> None:
    """Say how to install what the deep baseline needs."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingError(
            "the deep baseline needs libraries that are not installed (the extra `deep`).",
            hint=f"{install_hint('deep')}; or leave it out to compare the rest.",
            settings=("deep",),
        ) from None


@dataclass
class Deep:
    """The deep baseline with M1 pretrained once; every seed trains its own M2."""

    epsilon: float
    delta: float
    schema: Schema
    rows: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        from understudy.cohorts.deep.baseline import ROWS, DeepBaseline, RoughHabits, surrogates

        rng = np.random.default_rng([self.seed, 7])
        public = surrogates(RoughHabits(self.schema), self.schema, rng, self.rows or ROWS)
        self.baseline = DeepBaseline(self.epsilon, self.delta).pretrain(public, rng)

    def sample(self, cohort: Cohort, rng: np.random.Generator) -> Cohort:
        """Train M2 on the cohort and draw as many learners."""
        return self.baseline.fit(cohort, rng, seeded_noise(rng)).sample(cohort.n_learners, rng)


Generator = Callable[[Cohort, np.random.Generator], Cohort]


class Method(NamedTuple):
    """From a cohort and chance to a synthetic cohort.

    A method is private (here with seeded noise), a reference that is not, or one that looks at no learner.
    `summarize` measures the noisy sums that a method works from, if it works from any.
    """

    generate: Generator
    kind: Literal["private", "reference", "no learner"]
    summarize: Callable[[Cohort, np.random.Generator], PrivateSummary] | None = None

    @property
    def guarantee(self) -> str:
        """The guarantee of the method, in words."""
        return GUARANTEES[self.kind]


def methods(epsilon: float, delta: float, n_each: int, deep: Deep | None = None) -> dict[str, Method]:
    """Every method by name."""

    def summarize(cohort: Cohort, rng: np.random.Generator) -> PrivateSummary:
        return seeded_summary(cohort, epsilon, delta, rng)

    def of_panel(*panelists: str) -> Method:
        def generate(cohort: Cohort, rng: np.random.Generator) -> Cohort:
            return pooled(summarize(cohort, rng), rng, panelists=panelists, n_each=n_each)

        return Method(generate, "private", summarize)

    def without_noise(cohort: Cohort, rng: np.random.Generator) -> Cohort:
        return pooled(exact_summary(cohort, epsilon, delta), rng, n_each=n_each)

    def guessed(cohort: Cohort, rng: np.random.Generator) -> Cohort:
        return guessed_habits(cohort.schema, cohort.n_learners, rng)

    return {
        "pool": of_panel(*PANELISTS),
        **{name.replace("_", "-"): of_panel(name) for name in PANELISTS},
        **({} if deep is None else {"deep": Method(deep.sample, "private")}),
        "nobody": Method(guessed, "no learner"),
        "pool-no-noise": Method(without_noise, "reference"),
        "resample": Method(resample, "reference"),
    }
