"""The desk's study: what 25 analyses of the seed's case study cost on three simulated years, and why.

The seed (two-stage-sharing, section V-B) finds that the method of an analysis and not the size of its output
drives the risk: a researcher who asked for causes with DirectLiNGAM had small answers and high prices. Here the
learners are simulated, so that everything can be shown: what the desk would do with each request in its order,
from the trial on synthetic data to the price of everything together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.cohorts.methods import pooled, seeded_summary
from understudy.cohorts.panel.panel import N_EACH
from understudy.cohorts.simulate import School
from understudy.core.files.writing import write_bytes, write_json
from understudy.desk.disclosure.examination import examine
from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.probing import Probes, probe
from understudy.desk.disclosure.rounding import round_vector
from understudy.desk.domain.analysis import Analysis, RunsJobs
from understudy.desk.domain.learners import LearnerTable, learner_table
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.precision import Precision, precision_of
from understudy.desk.domain.results import N_ROWS, Results
from understudy.desk.researcher.examples import FIRST, ExampleRequest
from understudy.desk.risk.game import IntervalEstimate, Price
from understudy.desk.risk.pricing import (
    BESIDE,
    Prices,
    ShadowAnswers,
    bank_for,
    bank_name,
    price_of,
    shadow_answers,
)
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadows import N_SHADOWS, ShadowBank
from understudy.desk.service.views import Interval, PricedRequest
from understudy.desk.web.price_figures import rank_correlation
from understudy.errors import DataError

N_YEARS = 3
# The rounds of the study: requests as they were first written, and as they are after the checks sent some back.
ROUNDS = (FIRST, "mended")
Say = Callable[[str], None]


@dataclass(frozen=True)
class StudyPlan:
    """The simulated school, the price of stage one, and how many shadows an answer is priced on."""

    n_learners: int = 120
    epsilon: float = 3.0
    delta: float = 1e-3
    n_shadows: int = N_SHADOWS
    seed: int = 2026
    n_each: int = N_EACH


@dataclass(frozen=True, eq=False)
class Year:
    """A year's learners, the synthetic ones that researchers have, stage one, and the shadows."""

    real: LearnerTable
    synthetic: LearnerTable
    stage_one: StageOne
    bank: ShadowBank


def year_of(plan: StudyPlan, year: int) -> Year:
    """A year of the simulated school, 1 being the first, with stage one as a custodian would do it offline."""
    cohort = School(plan.n_learners).years(np.random.default_rng(plan.seed), N_YEARS)[year - 1]
    rng = np.random.default_rng([plan.seed, year])
    summary = seeded_summary(cohort, plan.epsilon, plan.delta, rng)
    synthetic = pooled(summary, rng, n_each=plan.n_each)
    real = learner_table(cohort.to_polars(), rng)
    return Year(
        real,
        learner_table(synthetic.to_polars(), rng),
        StageOne.of(summary, real),
        bank_for(real, plan.seed, plan.n_shadows),
    )


# Starting a run costs more than these analyses do, so one run on a shadow answers all requests of a year. Each sees
# a copy of the table and nothing of the others.
_ALL_IN_ONE = """
def analyze(data):
    answers = {}
    for name, code in CODES.items():
        space = {"__name__": name}
        exec(code, space)
        try:
            found = space["analyze"](data.copy())
        except Exception:
            continue
        answers.update({name + MARK + key: value for key, value in found.items()})
    return answers
"""
_MARK = ": "
# Shadows that are run before what they gave is kept.
BLOCK = 400


@dataclass(frozen=True, eq=False)
class Answered:
    """A request after its runs: how much of the synthetic findings held, and its answers on the shadows."""

    n_outputs: int
    precision: Precision
    failed: tuple[str, ...]
    """Names of the disclosure checks that do not let the answer leave, looked at by itself."""
    influence: float
    """The most that leaving out one learner moves a number, in standard errors of that number."""
    answers: ShadowAnswers


def answer_all(
    codes: Mapping[str, str],
    year: Year,
    sandbox: RunsJobs,
    seed: int,
    kept: Path,
    say: Say = lambda _: None,
) -> dict[str, Answered]:
    """What the desk does with requests, by name: trial, run without each learner, checks, run on every shadow.

    What runs gave is kept in the folder `kept`, that on shadows block by block, and is not run again.
    """
    analysis = Analysis(f"CODES = {dict(codes)!r}\nMARK = {_MARK!r}\n{_ALL_IN_ONE}", seed)
    trial, real, probes = _tried_once(analysis, year, sandbox, kept)
    names = tuple(real.numbers)
    values = []
    for start in range(0, year.bank.n_shadows, BLOCK):
        part = year.bank.part(np.arange(start, min(start + BLOCK, year.bank.n_shadows)))
        path = kept / f"{_digest('shadows', bank_name(part), analysis)[:24]}.npz"
        if not path.exists():
            say(f"shadows {start} to {start + part.n_shadows}")
            # Kept with all digits: the desk's rounding may change.
            found = shadow_answers(analysis, year.real, part, real, {}, sandbox)
            write_bytes(path, found.to_bytes())
        given = ShadowAnswers.from_bytes(path.read_bytes())
        if BESIDE in given.names or given.names[: len(names)] != names:
            raise DataError(
                "an analysis names other numbers on shadows.", hint="let it name all it may give."
            )
        # That a row is missing is told by its numbers; the study's analyses give no other texts that change.
        values.append(given.values[:, : len(names)])
    answers = ShadowAnswers(names, np.vstack(values), bank_name(year.bank))
    return {name: _of_one(name, code, trial, real, probes, answers) for name, code in codes.items()}


def _tried_once(
    analysis: Analysis, year: Year, sandbox: RunsJobs, kept: Path
) -> tuple[Results, Results, Probes]:
    """The answers on the synthetic and on the real learners, and without each of these."""
    path = kept / f"{_digest('without one', bank_name(year.bank), analysis)[:24]}.json"
    beside = path.with_suffix(".npz")
    if path.exists() and beside.exists():
        trial, real = map(Results.from_json, json.loads(path.read_text(encoding="utf-8")))
        return trial, real, Probes.from_bytes(beside.read_bytes())
    tried = analysis.answer(sandbox, year.synthetic.whole())
    full, probes = probe(analysis, year.real, sandbox, np.random.default_rng(analysis.seed))
    if not isinstance(tried, Results) or not isinstance(full, Results) or probes is None:
        raise DataError("the analyses do not return dicts of numbers and tables.", hint="mend them.")
    write_bytes(beside, probes.to_bytes())
    write_json(path, [tried.to_json(), full.to_json()])
    return tried, full, probes


def _of_one(
    name: str, code: str, trial: Results, real: Results, probes: Probes, answers: ShadowAnswers
) -> Answered:
    """One request's part of what all answered together."""
    start = name + _MARK
    mine = [place for place, full in enumerate(answers.names) if full.startswith(start)]
    names = tuple(answers.names[place].removeprefix(start) for place in mine)
    synthetic, full = _part(trial, start), _part(real, start)
    if not names or not synthetic.numbers:
        raise DataError(f"{name}.py gives no number on the real or the synthetic data.", hint="mend it.")
    entries = [place for place, entry in enumerate(probes.entries) if entry.startswith(start)]
    own = replace(
        probes,
        entries=tuple(probes.entries[place].removeprefix(start) for place in entries),
        differs=probes.differs[:, entries],
        names=names,
        full=probes.full[mine],
        without_one=probes.without_one[:, mine],
        without_two=probes.without_two[:, mine],
        without_three=probes.without_three[:, mine],
    )
    examined = examine(full, own, synthetic, code, Policy(), n_learners=probes.n_learners)
    influences = Influences(own)
    units = np.array([examined.units[one] for one in names])
    errors = dict(zip(names, influences.standard_error.tolist(), strict=True))
    return Answered(
        sum(not one.endswith(N_ROWS) for one in names),
        precision_of(synthetic, examined.released, errors),
        tuple(check.name for check in examined.checks if check.verdict == "fail"),
        _largest(influences),
        ShadowAnswers(names, round_vector(answers.values[:, mine], units), answers.bank),
    )


def _largest(influences: Influences) -> float:
    errors = influences.standard_error
    moved = errors > 0
    return float((np.abs(influences.steps[:, moved]) / errors[moved]).max(initial=0.0))


def _part(results: Results, start: str) -> Results:
    values: dict[str, Any] = results.values or {}
    return Results(
        {name.removeprefix(start): part for name, part in values.items() if name.startswith(start)},
        {name.removeprefix(start): part for name, part in results.tables.items() if name.startswith(start)},
    )


@dataclass(frozen=True)
class Studied:
    """A request with its price, which checks would not let it leave, and the largest influence of one learner."""

    request: PricedRequest
    failed: tuple[str, ...]
    influence: float


Found = dict[str, dict[int, list[Studied]]]
"""By round and year, in the order of release."""


def run_study(
    plan: StudyPlan, asked: Sequence[ExampleRequest], sandbox: RunsJobs, kept: Path, say: Say = lambda _: None
) -> Found:
    """Every request answered and priced in its order, in both rounds, as if all were released.

    What is done is kept in the folder `kept`, by the code and the plan, and not done again: the study takes
    half an hour. Everything there is about simulated learners.
    """
    kept.mkdir(parents=True, exist_ok=True)
    found: Found = {name: {} for name in ROUNDS}
    for number in sorted({one.year for one in asked}):
        say(f"year {number}")
        year = year_of(plan, number)
        mine = [one for one in asked if one.year == number]
        codes = {one.name: one.code for one in mine}
        codes |= {f"{one.name} ({FIRST})": one.first for one in mine if one.first}
        done = answer_all(codes, year, sandbox, plan.seed, kept, say)
        for name in ROUNDS:
            released: list[ShadowAnswers] = []
            before: Price | None = None
            for one in mine:
                say(f"year {number}, {name}: {one.label}")
                first = name == FIRST and one.first
                answered = done[f"{one.name} ({FIRST})" if first else one.name]
                prices = _priced_once(answered, released, before, year, plan, kept)
                before = prices.together
                released.append(answered.answers)
                studied = Studied(_priced(one, answered, prices), answered.failed, answered.influence)
                found[name].setdefault(number, []).append(studied)
    return found


def _priced_once(
    done: Answered,
    released: Sequence[ShadowAnswers],
    before: Price | None,
    year: Year,
    plan: StudyPlan,
    kept: Path,
) -> Prices:
    game = hashlib.sha256(repr((plan, before)).encode())
    for one in (*released, done.answers):
        game.update(one.values.tobytes())
    path = kept / f"{game.hexdigest()[:24]}.json"
    if path.exists():
        return Prices.from_json(json.loads(path.read_text(encoding="utf-8")))
    rng = np.random.default_rng([plan.seed, len(released)])
    prices = price_of(done.answers, released, year.bank, rng, year.stage_one, before=before)
    write_json(path, prices.to_json())
    return prices


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def _priced(one: ExampleRequest, done: Answered, prices: Prices) -> PricedRequest:
    return PricedRequest(
        one.label,
        one.researcher,
        one.kind,
        done.n_outputs,
        done.precision.score,
        _interval(prices.own.mu),
        _interval(prices.own.advantage),
        _interval(prices.together.mu),
        _interval(prices.together.advantage),
        prices.published.corollary_mu,
        simulated=True,
    )


def _interval(measured: IntervalEstimate) -> Interval:
    return measured.value, measured.low, measured.high


# --- tables --------------------------------------------------------------------------------------


def rows_of(found: Found) -> list[dict[str, Any]]:
    """A row for each request in each round, for a table in a file."""
    return [
        {
            "round": name,
            "year": year,
            "label": one.request.label,
            "researcher": one.request.researcher,
            "kind": one.request.kind,
            "n_outputs": one.request.n_outputs,
            "precision": one.request.precision,
            **{
                f"{measure}{end}": value
                for measure in _MEASURES
                for end, value in zip(_ENDS, getattr(one.request, measure), strict=True)
            },
            "published_mu": one.request.published_mu,
            "failed": " ".join(one.failed),
            "influence": one.influence,
        }
        for name, years in found.items()
        for year, requests in years.items()
        for one in requests
    ]


def from_rows(rows: Sequence[Mapping[str, str]]) -> Found:
    """What a table's rows say, as texts."""
    found: Found = {}
    for row in rows:
        intervals = {measure: _read_interval(row, measure) for measure in _MEASURES}
        request = PricedRequest(
            label=row["label"],
            researcher=row["researcher"],
            kind=row["kind"],
            n_outputs=int(row["n_outputs"]),
            precision=float(row["precision"]) if row["precision"] else None,
            published_mu=float(row["published_mu"]),
            simulated=True,
            **intervals,
        )
        years = found.setdefault(row["round"], {})
        studied = Studied(request, tuple(row["failed"].split()), float(row["influence"]))
        years.setdefault(int(row["year"]), []).append(studied)
    return found


_MEASURES = ("mu", "advantage", "together_mu", "together_advantage")
_ENDS = ("", "_low", "_high")


def _read_interval(row: Mapping[str, str], measure: str) -> Interval:
    value, low, high = (float(row[measure + end]) for end in _ENDS)
    return value, low, high


CAUSAL = "causal"
N_RESAMPLED = 10_000


@dataclass(frozen=True)
class Drivers:
    """Size and method against the advantage of each request alone; intervals are over requests, 95 %.

    `by_size` is the rank correlation of output size with advantage, `by_size_of_others` the same without causal
    analyses, `by_influence` that of the largest influence of one learner. `chance` is how often requests dealt
    out at random differ as much as causal ones and others do (either way).
    """

    by_size: Interval
    by_size_of_others: Interval
    by_influence: Interval
    causal: Interval
    others: Interval
    difference: Interval
    chance: float
    n_causal: int
    n_others: int

    @property
    def method_drives(self) -> bool:
        """Whether the published finding is seen: causal analyses cost more, and larger answers do not."""
        return self.difference[1] > 0 and self.by_size[1] <= 0


def drivers(
    requests: Sequence[PricedRequest], influences: Sequence[float], rng: np.random.Generator
) -> Drivers:
    """What the requests of a study say about method, size, and the largest influence of one learner on each."""
    causal = np.array([one.advantage[0] for one in requests if one.kind == CAUSAL])
    others = np.array([one.advantage[0] for one in requests if one.kind != CAUSAL])
    if len(causal) < 2 or len(others) < 3:
        raise DataError("two causal requests and three others are needed to compare them.", hint="add some.")
    again = [rng.choice(side, (N_RESAMPLED, len(side))).mean(axis=1) for side in (causal, others)]
    gap = float(causal.mean() - others.mean())
    dealt = rng.permuted(np.tile(np.concatenate([causal, others]), (N_RESAMPLED, 1)), axis=1)
    gaps = dealt[:, : len(causal)].mean(axis=1) - dealt[:, len(causal) :].mean(axis=1)
    sizes = [(float(one.n_outputs), one.advantage[0]) for one in requests]
    influenced = [(most, one.advantage[0]) for most, one in zip(influences, requests, strict=True)]
    other_sizes = [(float(one.n_outputs), one.advantage[0]) for one in requests if one.kind != CAUSAL]
    return Drivers(
        _correlation(sizes, rng),
        _correlation(other_sizes, rng),
        _correlation(influenced, rng),
        _around(float(causal.mean()), again[0]),
        _around(float(others.mean()), again[1]),
        _around(gap, again[0] - again[1]),
        float((1 + np.sum(np.abs(gaps) >= abs(gap) - 1e-12)) / (1 + N_RESAMPLED)),
        len(causal),
        len(others),
    )


def _around(value: float, resampled: Any) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return value, float(low), float(high)


def _correlation(points: Sequence[tuple[float, float]], rng: np.random.Generator, n: int = 1000) -> Interval:
    found = [
        rank_correlation([points[place] for place in rng.integers(len(points), size=len(points))])
        for _ in range(n)
    ]
    value = rank_correlation(points)
    return _around(0.0 if value is None else value, [one for one in found if one is not None] or [0.0])
