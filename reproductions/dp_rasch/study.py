"""The study of private difficulties: the seed's experiments 1 to 4 with its methods, ours and later ones.

Seed dp-rasch, section 4. Experiments 1 and 2 simulate classes; 3 and 4 (and further ones) draw
students of real classes with replacement. Every repetition has a seed of its own, made from the
study's seed and the repetition's place, so results depend neither on the order of the work nor on
the number of threads.

Intervals: over simulated classes the t-interval of the mean (95 %), over bootstrap samples the 2.5 %
and 97.5 % points (percentile bootstrap, as wide as one sample varies). The seed's are 1.96 standard errors
of the mean in both (`Result.published_half`).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

import understudy
from reproductions.dp_rasch.trials import METHODS, Floats, Measures, Outcome, real_trial, simulated_trial
from understudy.core.engine import progress
from understudy.core.engine.tasks import run_tasks
from understudy.core.files.writing import new_folder, results_csv, write_json, write_text
from understudy.errors import DataError, UsageError
from understudy.exams.responses import Responses

# Section 4 of the seed.
SIZES = (40, 80, 120, 160, 200)
EPSILONS = (1.0, 5.0, 10.0)
REAL_EPSILON = 5.0
N_ITEMS = 20
SIMULATED_METHODS = (
    "knorm",
    "knorm:ability-sd=1",
    "gaussian",
    "objective",
    "statistics",
    "objective:printed",
    "statistics:printed",
    "gradients",
    "spectral",
)
# On real data: the seed's two and ours. The later methods were tuned on simulated classes of 20 items.
# Real abilities may differ more than the simulation's: knorm finds their spread, and is also told the simulation's.
REAL_METHODS = ("knorm", "knorm:ability-sd=1", "objective", "statistics")

SIMULATED_DATA = "simulated"
# Pairs whose difference is reported, the first minus the second.
PAIRS = (
    ("knorm", "objective"),
    ("knorm", "statistics"),
    ("objective", "statistics"),
    ("knorm", "objective:printed"),
    ("objective:printed", "statistics:printed"),
    ("objective", "objective:printed"),
    ("statistics", "statistics:printed"),
    ("knorm", "knorm:ability-sd=1"),
    ("re-estimated", "global"),
)
GUARANTEE = "no formal guarantee (test)"

# Thirds of a class smaller than this are no classes.
SMALLEST = 6


@dataclass(frozen=True)
class DifficultyPlan:
    """What the study tries; the defaults are the seed's."""

    repetitions: int = 50
    bootstrap: int = 1000
    slow_bootstrap: int = 100
    seed: int = 1
    sizes: tuple[int, ...] = SIZES
    epsilons: tuple[float, ...] = EPSILONS
    methods: tuple[str, ...] = SIMULATED_METHODS
    n_items: int = N_ITEMS

    def __post_init__(self) -> None:
        if self.repetitions < 2 or self.bootstrap < 2 or self.slow_bootstrap < 2:
            raise UsageError(
                f"asked for {self.repetitions} repetitions and {self.bootstrap} bootstrap samples; "
                "an interval takes 2 at least.",
                hint="the seed used --repetitions 50 --bootstrap 1000.",
            )
        if self.seed < 0:
            raise UsageError(f"asked for the seed {self.seed}; a seed is 0 or more.", hint="1 is usual.")
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise UsageError(
                f"there is no method '{unknown[0]}' in this study.",
                hint="the methods are " + ", ".join(METHODS) + ".",
            )

    def methods_of(self, sample: int) -> tuple[str, ...]:
        """The methods for a bootstrap sample: the slow ones only for the first samples."""
        return tuple(name for name in REAL_METHODS if sample < self.slow_bootstrap or not METHODS[name].slow)


@dataclass(frozen=True)
class Result:
    """A row of results.csv: one measure of one method, over all repetitions."""

    experiment: int
    data: str
    method: str
    epsilon: float | None
    n_learners: int
    measure: str
    mean: float
    low: float
    high: float
    repetitions: int
    sd: float

    @property
    def published_half(self) -> float:
        """Half of the seed's interval: 1.96 standard errors of the mean, over bootstrap samples too."""
        return 1.96 * self.sd / math.sqrt(self.repetitions)


COLUMNS = tuple(column.name for column in fields(Result))


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often a probability with and without noise fell into each cell, over all samples.

    `share` is by private (rows) and noiseless probability (columns) and adds up to 1. It is summed over
    students, items and samples: no student's row is in it.
    """

    data: str
    method: str
    n_learners: int
    share: Floats


@dataclass(frozen=True)
class Findings:
    """All rows of a study, with the histograms of its real data."""

    results: tuple[Result, ...]
    histograms: tuple[Histogram, ...] = field(default=())

    def of(self, **wanted: object) -> list[Result]:
        """The results with these values, in their order."""
        return [row for row in self.results if all(getattr(row, k) == v for k, v in wanted.items())]

    def one(self, **wanted: object) -> Result | None:
        """The first result with these values, if there is one."""
        return next(iter(self.of(**wanted)), None)


def sizes_of(responses: Responses) -> tuple[int, ...]:
    """A third, two thirds and all of a class (seed, Figure 6: 21, 42 and 62 students)."""
    n = responses.n_learners
    return tuple(math.ceil(n * third / 3) for third in (1, 2, 3))


def run_experiments(plan: DifficultyPlan, data: Mapping[str, Responses] | None = None) -> Findings:
    """All experiments."""
    data = data or {}
    for name, responses in data.items():
        check_size(name, responses)
    epsilons = np.array(plan.epsilons)
    simulated = [(n, r) for n in plan.sizes for r in range(plan.repetitions)]
    real = [
        (3 + place, name, responses, n, r)
        for place, (name, responses) in enumerate(data.items())
        for n in sizes_of(responses)
        for r in range(plan.bootstrap)
    ]
    with progress.task("Trying classes", len(simulated) + len(real)) as step:
        trials = run_tasks(
            [
                partial(simulated_trial, plan.seed, n, plan.n_items, r, plan.methods, epsilons)
                for n, r in simulated
            ],
            step.advance,
        )
        found = run_tasks(
            [
                partial(real_trial, plan.seed, experiment, responses, n, r, plan.methods_of(r), REAL_EPSILON)
                for experiment, _, responses, n, r in real
            ],
            step.advance,
        )
    results: list[Result] = []
    for n in plan.sizes:
        mine = [trial for (size, _), trial in zip(simulated, trials, strict=True) if size == n]
        results += _summaries(mine, SIMULATED_DATA, n, t_interval)
    histograms: list[Histogram] = []
    for experiment, name, n in dict.fromkeys((case[0], case[1], case[3]) for case in real):
        mine = [
            trial
            for case, trial in zip(real, found, strict=True)
            if (case[0], case[1], case[3]) == (experiment, name, n)
        ]
        results += _summaries(mine, name, n, _percentiles, experiment)
        histograms += _histograms(mine, name, n)
    results.sort(key=lambda row: row.experiment)
    return Findings(tuple(results), tuple(histograms))


def check_size(name: str, responses: Responses) -> None:
    """Refuse a class of which a third is nothing."""
    if responses.n_learners < SMALLEST or responses.n_items < 2:
        raise DataError(
            f"{name}: thirds of a class are compared, which takes {SMALLEST} learners and 2 items at least"
            f"; found {responses.n_learners} and {responses.n_items}.",
            hint="give a larger exam with --data, or leave it out: the simulated experiments need no data.",
        )


def write_study(
    plan: DifficultyPlan,
    folder: Path,
    data: Mapping[str, Responses] | None = None,
) -> Findings:
    """Run the experiments and write results.csv, figures and report.html into a new folder."""
    from reproductions.dp_rasch.figures import write_report

    with new_folder(folder) as temporary:
        findings = run_experiments(plan, data)
        write_text(temporary / "results.csv", table_of(findings.results))
        write_json(
            temporary / "study.json",
            {
                "internal": "computed from learners' records; no guarantee covers these files",
                "guarantee": GUARANTEE,
                "version": understudy.__version__,
                "seed": plan.seed,
                "repetitions": plan.repetitions,
                "bootstrap": plan.bootstrap if data else None,
                "data": {
                    name: {"n_learners": r.n_learners, "n_items": r.n_items}
                    for name, r in (data or {}).items()
                },
            },
        )
        write_report(temporary, findings, plan, data or {})
    # Results of real learners, whom no epsilon covers: for the custodian's eyes.
    folder.chmod(0o700)
    return findings


def table_of(results: Sequence[Result]) -> str:
    """Results as CSV text; epsilon is left empty where nothing was noised."""
    return results_csv(map(asdict, results), COLUMNS)


def read_table(text: str) -> Findings:
    """The results of a table that `table_of` wrote."""
    rows = [
        Result(
            int(row["experiment"]),
            row["data"],
            row["method"],
            float(row["epsilon"]) if row["epsilon"] else None,
            int(row["n_learners"]),
            row["measure"],
            float(row["mean"]),
            float(row["low"]),
            float(row["high"]),
            int(row["repetitions"]),
            float(row["sd"]),
        )
        for row in csv.DictReader(io.StringIO(text))
    ]
    return Findings(tuple(rows))


# Summaries

_EXPERIMENT_1 = ("global", "re-estimated", "true model", "re-estimated - global")
_Key = tuple[str, float | None]


def _summaries(
    trials: Sequence[Sequence[Outcome]],
    data: str,
    n_learners: int,
    interval: Callable[[Floats], tuple[float, float, float]],
    experiment: int | None = None,
) -> list[Result]:
    results = []
    for (method, epsilon), repeated in _with_differences(_by_method(trials)).items():
        number = experiment or (1 if method in _EXPERIMENT_1 else 2)
        for measure in repeated[0]:
            values = np.array([measures[measure] for measures in repeated])
            shown = (*interval(values), len(values), float(values.std(ddof=1)))
            results.append(Result(number, data, method, epsilon, n_learners, measure, *shown))
    return results


def _by_method(trials: Sequence[Sequence[Outcome]]) -> dict[_Key, list[Measures]]:
    found: dict[_Key, list[Measures]] = {}
    for outcomes in trials:
        for outcome in outcomes:
            found.setdefault((outcome.method, outcome.epsilon), []).append(outcome.measures)
    return found


def _with_differences(found: dict[_Key, list[Measures]]) -> dict[_Key, list[Measures]]:
    """The same, and the paired differences of `PAIRS` in everything that both were measured by."""
    result = dict(found)
    for first, second in PAIRS:
        for (method, epsilon), mine in found.items():
            theirs = found.get((second, epsilon))
            if method == first and theirs:
                result[f"{first} - {second}", epsilon] = [
                    # A slow method was tried on the first samples only.
                    _difference(a, b, first, second)
                    for a, b in zip(mine, theirs, strict=False)
                ]
    return result


def _difference(a: Measures, b: Measures, first: str, second: str) -> Measures:
    """Each in its own way; and both in the same way, where each was also tried in the other's."""
    own = {name: a[name] - b[name] for name in a if name in b}
    if first not in METHODS:
        return own
    ways = METHODS[first].way, METHODS[second].way
    same = {}
    for name in own:
        for way in ways:
            mine, theirs = (name if way == one else f"{name}_{way}" for one in ways)
            if name != "difficulties_true" and mine in a and theirs in b:
                same[f"{name}_{way}"] = a[mine] - b[theirs]
    return own | same


def t_interval(values: Floats) -> tuple[float, float, float]:
    """The mean and its 95 % t-interval."""
    mean = float(values.mean())
    half = float(student_t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def _percentiles(values: Floats) -> tuple[float, float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def _histograms(trials: Sequence[Sequence[Outcome]], data: str, n_learners: int) -> list[Histogram]:
    sums: dict[str, NDArray[np.int64]] = {}
    for outcomes in trials:
        for outcome in outcomes:
            if outcome.pairs is not None:
                sums[outcome.method] = sums.get(outcome.method, np.zeros_like(outcome.pairs)) + outcome.pairs
    return [Histogram(data, method, n_learners, counts / counts.sum()) for method, counts in sums.items()]
