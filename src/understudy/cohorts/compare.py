"""`cohort compare`: panelists, their pool, the deep baseline and references side by side on one cohort.

Internal: everything is measured against the real learners and with seeded noise. Nothing is charged,
and nothing here may leave.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.attacks import N_SHADOWS, check_outsiders, membership_risks, risk_of_given
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings import Replication, bank, compare_findings
from understudy.cohorts.habit_distance import ajs
from understudy.cohorts.offline import PANELISTS, run_trusted
from understudy.cohorts.panel.panel import N_EACH, counts_of, draw_cohort, label_shares, rows_needed
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.budget import Plan, propose
from understudy.cohorts.summary.previous_year import remade
from understudy.cohorts.summary.summarize import refuse_cuts_from_data, summarize
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.attacks.intervals import SeedInterval, over_seeds
from understudy.core.files.writing import new_folder, write_json, write_text
from understudy.core.privacy.noise import Noise, seeded_noise
from understudy.errors import DataError, MissingError, UsageError

Floats = NDArray[np.float64]

GUARANTEE = "no formal guarantee (test: the noise was seeded)"
NOT_PRIVATE = "no formal guarantee (not private: a reference)"

# Of the noise that a plan would have; the panelists' shrinkage needs a scale above 0.
_NEXT_TO_NONE = 1e-3


@dataclass(frozen=True)
class Measured:
    """What one synthetic cohort is worth, measured against the real one."""

    ajs: float
    findings: Replication

    @classmethod
    def of(cls, real: Cohort, synthetic: Cohort) -> Measured:
        """Both measures."""
        return cls(ajs(real, synthetic), compare_findings(real, synthetic))

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
    """The summary as a custodian would have it, with seeded noise."""
    chosen = plan or propose(cohort.schema, cohort.n_learners, epsilon, delta)
    return summarize(cohort, chosen, seeded_noise(rng))


class _Silence:
    """No noise at all, for the reference that shows what the noise costs."""

    secret = False

    def discrete_gaussian(self, values: Any, sigma: float) -> Any:
        return np.asarray(values, dtype=np.int64)


def exact_summary(cohort: Cohort, epsilon: float, delta: float) -> PrivateSummary:
    """The same statistics without noise: not private."""
    silence: Noise = _Silence()  # type: ignore[assignment]
    exact = summarize(cohort, propose(cohort.schema, cohort.n_learners, epsilon, delta), silence)
    statistics = {
        name: replace(one, noise_sd=np.asarray(one.noise_sd) * _NEXT_TO_NONE)
        for name, one in exact.statistics.items()
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
    return draw_cohort(tables, counts, schema, rng)


def _table(name: str, n: int, label: str, summary: PrivateSummary, rng: np.random.Generator) -> Floats:
    frame = run_trusted(name, n, label, summary, rng)
    values: Floats = frame[summary.schema.columns()].to_numpy(dtype=np.float64)
    return values


def resample(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """The real learners drawn with replacement: the ceiling of usefulness, and no privacy at all."""
    return cohort.select(rng.integers(cohort.n_learners, size=cohort.n_learners))


def nobodys_habits(schema: Schema, n: int, rng: np.random.Generator) -> Cohort:
    """Round numbers that anybody could have guessed: the floor, which looks at no learner."""
    from understudy.cohorts.deep.baseline import RoughHabits, surrogates

    return surrogates(RoughHabits(schema), schema, rng, n)


# --- the deep baseline ---------------------------------------------------------------------------


def require_deep() -> None:
    """Say how to install what the deep baseline needs."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingError(
            "the deep baseline needs more libraries: pip install 'understudy[deep]'",
            hint="leave --deep out to compare the rest.",
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


def generators(
    epsilon: float, delta: float, n_each: int, deep: Deep | None = None
) -> dict[str, tuple[Generator, str]]:
    """Every method by name: from a cohort and chance to a synthetic cohort, and what may be said of it."""

    def of_panel(panelists: Sequence[str]) -> Generator:
        def generate(cohort: Cohort, rng: np.random.Generator) -> Cohort:
            summary = seeded_summary(cohort, epsilon, delta, rng)
            return pooled(summary, rng, panelists=panelists, n_each=n_each)

        return generate

    def without_noise(cohort: Cohort, rng: np.random.Generator) -> Cohort:
        return pooled(exact_summary(cohort, epsilon, delta), rng, n_each=n_each)

    methods: dict[str, tuple[Generator, str]] = {"pool": (of_panel(PANELISTS), GUARANTEE)}
    methods |= {name.replace("_", "-"): (of_panel((name,)), GUARANTEE) for name in PANELISTS}
    if deep is not None:
        methods["deep"] = (deep.sample, GUARANTEE)
    methods["nobody"] = (
        lambda cohort, rng: nobodys_habits(cohort.schema, cohort.n_learners, rng),
        "looks at no learner",
    )
    methods["pool-no-noise"] = (without_noise, NOT_PRIVATE)
    methods["resample"] = (resample, NOT_PRIVATE)
    return methods


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
    """What is compared, how often, and at which price the private methods work."""

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
                hint="for example --seeds 5.",
            )


@dataclass(frozen=True)
class Shown:
    """A mean over seeds with an interval, or without one where the seeds are too few to say."""

    mean: float
    low: float | None
    high: float | None
    n_seeds: int

    def to_json(self) -> dict[str, Any]:
        """For a machine."""
        return dict(vars(self))


@dataclass(frozen=True)
class Comparison:
    """A row per method and seed; `given` are the files that were judged beside the methods."""

    plan: ComparePlan
    rows: tuple[Row, ...]
    n_learners: int
    simulated: bool
    given: tuple[str, ...] = ()
    n_outsiders: int = 0

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
        one = self.interval(method, measure)
        if one is None:
            return None
        if measure.endswith("auc_worst"):
            return self._risk(method, measure, one)
        if one.n_seeds < FEWEST_FOR_INTERVAL:
            return Shown(one.mean, None, None, one.n_seeds)
        return Shown(one.mean, one.low, one.high, one.n_seeds)

    def _risk(self, method: str, measure: str, over_seeds: SeedInterval) -> Shown:
        """An AUC with the attack's own interval over learners in it.

        The learners are the same in every seed, so their part does not shrink with the number of seeds:
        the mean distance of each seed's bound from its AUC, and the distance of the bound over seeds, add up
        as squares do. With too few seeds the widest of the seeds' own intervals is taken.
        """
        mine = [row for row in self.of(method) if measure in row and math.isfinite(row[measure])]
        aucs, lows, highs = (
            np.array([float(row.get(f"{measure}{end}", math.nan)) for row in mine])
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
            mine, floor = self.interval(method, measure), self.interval("nobody", measure)
            if mine is None or floor is None:
                continue
            is_worse = mine.mean >= floor.mean if measure == "ajs" else mine.mean <= floor.mean
            said = f"{name} {mine.mean:.{digits}f} against {floor.mean:.{digits}f}"
            (worse if is_worse else better).append(said)
        if not worse:
            return ""
        rest = f" It does better in {', '.join(better)}." if better else ""
        return (
            f"does not do better than a guess that looked at no learner in {', '.join(worse)}: there nothing was "
            f"learned from the learners.{rest}"
        )

    def guarantee(self, method: str) -> str:
        """What may be said of a method."""
        return str(self.of(method)[0]["guarantee"])

    def to_json(self) -> dict[str, Any]:
        """Means and intervals for a machine."""
        found: dict[str, Any] = {}
        for method in self.methods:
            intervals = {name: self.shown(method, name) for name in MEASURES}
            found[method] = {
                "guarantee": self.guarantee(method),
                **{name: None if one is None else one.to_json() for name, one in intervals.items()},
                "beside_the_floor": self.beside_the_floor(method) if method != "nobody" else "",
                "by_kind": {
                    kind: {
                        name: None if one is None else one.mean
                        for name, one in self.of_kind(method, kind).items()
                    }
                    for kind in self.kinds()
                },
            }
        return found


def compare(
    cohort: Cohort,
    plan: ComparePlan,
    progress: Callable[[int], Callable[[], None]] | None = None,
    given: Mapping[str, Cohort] | None = None,
    outsiders: Cohort | None = None,
) -> Comparison:
    """Try every method on every seed, and judge the synthetic cohorts that are `given` by name.

    `outsiders` did not make the given cohorts, and all learners of `cohort` may have: only then is their
    risk measured.
    """
    check_cohort(cohort)
    given = given or {}
    check_given(cohort, given, outsiders)
    if plan.deep:
        require_deep()
    n_methods = len(generators(plan.epsilon, plan.delta, plan.n_each)) + plan.deep
    steps = n_methods * plan.n_seeds + (n_methods - plan.deep) * plan.n_shadows + plan.deep + len(given)
    tick = progress(steps) if progress else lambda: None
    deep, pretraining = None, 0.0
    if plan.deep:
        begun = time.perf_counter()
        deep = Deep(plan.epsilon, plan.delta, cohort.schema, plan.deep_rows, plan.seed)
        pretraining = time.perf_counter() - begun
        tick()
    rows = []
    for place, (method, (generate, guarantee)) in enumerate(
        generators(plan.epsilon, plan.delta, plan.n_each, deep).items()
    ):
        mine = []
        for seed in range(plan.n_seeds):
            rng = np.random.default_rng([plan.seed, place, seed])
            begun = time.perf_counter()
            synthetic = generate(cohort, rng)
            seconds = time.perf_counter() - begun + (pretraining if method == "deep" else 0.0)
            mine.append(
                {
                    "method": method,
                    "seed": seed,
                    "n_learners": cohort.n_learners,
                    "epsilon": plan.epsilon if "test" in guarantee else math.nan,
                    "delta": plan.delta if "test" in guarantee else math.nan,
                    "guarantee": guarantee,
                    **Measured.of(cohort, synthetic).row(),
                    "seconds": seconds,
                }
            )
            tick()
        rng = np.random.default_rng([plan.seed, place, plan.n_seeds])
        # A network that is trained for each shadow would take an hour.
        n_shadows = 0 if method == "deep" else plan.n_shadows
        risks = membership_risks(cohort, generate, plan.n_seeds, n_shadows, rng, tick)
        mine = [{**row, **risk} for row, risk in zip(mine, risks, strict=True)]
        rows += mine
    for place, (name, synthetic) in enumerate(given.items()):
        rng = np.random.default_rng([plan.seed, 1000 + place])
        rows.append(
            {
                "method": name,
                "seed": 0,
                "n_learners": cohort.n_learners,
                "guarantee": GIVEN,
                **Measured.of(cohort, synthetic).row(),
                **risk_of_given(cohort, outsiders, synthetic, rng),
            }
        )
        tick()
    return Comparison(
        plan,
        tuple(rows),
        cohort.n_learners,
        cohort.simulated,
        tuple(given),
        0 if outsiders is None else outsiders.n_learners,
    )


def check_given(cohort: Cohort, given: Mapping[str, Cohort], outsiders: Cohort | None) -> None:
    """Refuse files that cannot be judged, before minutes of work."""
    if outsiders is not None:
        if not given:
            raise UsageError(
                "outsiders were named, but no synthetic cohort to judge.", hint="add --synthetic FILE."
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


def write_comparison(found: Comparison, folder: Path) -> None:
    """Write `results.csv`, figures, `report.html` and what was done, whole or not at all."""
    from understudy.cohorts.compare_report import write_report

    with new_folder(folder) as temporary:
        write_text(temporary / "results.csv", table_of(found.rows))
        write_json(
            temporary / "study.json",
            {
                "internal": "computed from the learners' records; no guarantee covers these files",
                "plan": vars(found.plan),
                "given": list(found.given),
                "outsiders": found.n_outsiders,
                "learners": found.n_learners,
                "analyses": [analysis.name for analysis in bank()],
                "methods": _plain_json(found.to_json()),
            },
        )
        write_report(temporary, found)
        # Functions of the learners' records, like the cohort itself: for whoever made them alone.
        for path in temporary.iterdir():
            path.chmod(0o600)


def table_of(rows: Sequence[Row]) -> str:
    """Rows as CSV text; what was not measured is left empty."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def read_table(text: str) -> list[Row]:
    """The rows of `table_of`, with numbers as numbers."""
    words = ("method", "guarantee", "worst_attack", "arm", "measure", "control_worst_attack", "data")
    return [
        {name: value if name in words else float(value or "nan") for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return value


def _plain_json(content: Any) -> Any:
    """The content without what JSON does not know."""
    if isinstance(content, dict):
        return {key: _plain_json(value) for key, value in content.items()}
    return None if isinstance(content, float) and not math.isfinite(content) else content
