"""Answers a request: on the synthetic data for its author, on the real data for reviewers, checked and priced.

The same request on the same data gives the same answer: the analysis is seeded by its own code, the shadows and
whatever else is drawn by the data set's secret seed and that code. Only the order of runs is new every time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.disclosure.code_review import read_code
from understudy.desk.disclosure.examination import Earlier, Examination, examine
from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.probing import Probes, probe
from understudy.desk.disclosure.rounding import units_of
from understudy.desk.domain.analysis import Analysis, Answer, Failure, RunsJobs, of_a_trial
from understudy.desk.domain.analysis import Progress as Counted
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.domain.people import WORKER
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.desk.risk.game import Price
from understudy.desk.risk.pricing import (
    Prices,
    ShadowAnswers,
    bank_for,
    bank_name,
    price_of,
    reach,
    shadow_answers,
)
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadow_consistency import likeness
from understudy.desk.risk.shadows import ShadowBank
from understudy.desk.service import data_sets
from understudy.desk.service.answers import Held, Measured, Origin, Work, code_hash
from understudy.desk.service.data_sets import RealTable
from understudy.desk.service.desk import Desk
from understudy.desk.service.releases import released
from understudy.desk.service.requests import find
from understudy.desk.store.runs import latest_run
from understudy.desk.store.tables import MeasurementRow, ReleaseRow, RunRow
from understudy.errors import DataError


@dataclass(frozen=True)
class Remains:
    """Names of a released answer's numbers, and the unit that each was rounded to (0: not rounded)."""

    units: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """In the order of the answer."""
        return tuple(self.units)

    def to_bytes(self) -> bytes:
        """For the store, in place of the probes."""
        return json.dumps({"units": dict(self.units)}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Remains:
        """As `to_bytes` wrote it."""
        try:
            units = json.loads(content)["units"]
            return cls({str(name): float(unit) for name, unit in units.items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"what was kept of an earlier answer cannot be read ({type(error).__name__}).",
                hint="restore the desk's database from a backup.",
            ) from None


Progress = Callable[[str, int, int], None]
"""Hears a stage in words, and how many of how many steps of it are done; what it raises ends the work."""

# What can change an answer, by the names that packages are installed under.
_LIBRARIES = ("numpy", "pandas", "scipy", "statsmodels", "scikit-learn", "lingam", "understudy")
CHECKING, PRICING, EARLIER, GAME = (
    "running without single learners",
    "running on shadows",
    "running earlier requests again",
    "playing the membership game",
)


@dataclass(frozen=True, eq=False, repr=False)
class _Measurement:
    """What the probes and shadows of a release gave, and on which data."""

    data_hash: str
    probes: Probes
    shadows: ShadowAnswers


@dataclass(frozen=True, repr=False)
class _Released:
    """An earlier release of the same data set."""

    request: str
    code: str
    data_hash: str
    """Of the data that it left from."""
    n_learners: int
    results: Results
    remains: Remains
    measured: tuple[_Measurement, ...]
    """By its own run, or on other learners since, if somebody left."""
    together: Price
    """What everything released by then cost."""


@dataclass(frozen=True, repr=False)
class _Question:
    """What an answer is judged by: read once, at the beginning."""

    policy: Policy
    trial: Results
    reading: dict[str, Any] | None
    summary: Path | None
    earlier: tuple[_Released, ...]


def trial(desk: Desk, work: Work, sandbox: RunsJobs) -> tuple[Origin, Answer, dict[str, Any]]:
    """The code on the synthetic data, and what the static review aid saw in it. No real data is touched."""
    table = data_sets.synthetic_table(desk, work.data_set)
    with desk.database.reading() as session:
        policy = data_sets.policy_of(data_sets.find(session, work.data_set))
    reading = read_code(work.code, table.columns, policy).to_json()
    given = of_a_trial(analysis_of(work.code).answer(sandbox, table.whole()))
    return trial_origin(desk, work), given, reading


def trial_origin(desk: Desk, work: Work) -> Origin:
    """What a trial is computed from."""
    with desk.database.reading() as session:
        row = data_sets.find(session, work.data_set)
        path, at_version = Path(row.synthetic), row.version
    content = path.read_bytes() if path.is_file() else b""
    return Origin(
        code_hash(work.code), desk.settings.keyed("synthetic data", content), at_version, environment()
    )


def real_origin(work: Work, real: RealTable) -> Origin:
    """What an answer on the real data is computed from."""
    return Origin(code_hash(work.code), real.hash, real.version, environment())


def unanswered(desk: Desk, work: Work) -> Held:
    """A request whose runs seem to end their workers: held without results, for a reviewer to close.

    The real data is not read: it may be what cannot be read.
    """
    with desk.database.reading() as session:
        at_version = data_sets.find(session, work.data_set).version
    return Held(Origin(code_hash(work.code), "", at_version, environment()), None, Failure("killed"))


def answer(desk: Desk, work: Work, sandbox: RunsJobs, progress: Progress) -> Held:
    """The code on the real data, with its checks and its price; an error is its type and line, for reviewers."""
    # The table and its version first: rules that change after that make the answer old, not wrong.
    real = data_sets.real_table(desk, work.data_set)
    question = _question(desk, work)
    origin = real_origin(work, real)
    analysis = analysis_of(work.code)
    given, probes = probe(
        analysis, real.table, sandbox, _chance(real, work.code, "pairs"), _stage(progress, CHECKING)
    )
    if isinstance(given, Failure) or probes is None:
        failure = given if isinstance(given, Failure) else Failure("killed")
        return Held(origin, None, failure, question.reading)
    bank = bank_for(real.table, real.seed, question.policy.n_shadows)
    earlier = [_as_of_now(one, real, bank, sandbox, progress) for one in question.earlier]
    found = examine(
        given,
        probes,
        question.trial,
        work.code,
        question.policy,
        n_learners=real.table.n_learners,
        earlier=[
            Earlier(one.request, one.results, measured.probes, one.data_hash == real.hash, one.n_learners)
            for one, measured in zip(question.earlier, earlier, strict=True)
        ],
        n_released_numbers=sum(len(one.results.numbers) for one in question.earlier),
        declared_texts=declared_texts(data_sets.synthetic_table(desk, work.data_set)),
    )
    checks = found.checks
    shadows = prices = None
    if not _too_large(found, question.policy):
        shadows = shadow_answers(
            analysis, real.table, bank, given, found.units, sandbox, _stage(progress, PRICING)
        )
        checks = (*checks, likeness(Influences(probes), shadows, bank, given), *reach(question.policy))
        prices = _prices(shadows, earlier, bank, real, work, question, progress)
    return Held(
        origin,
        found.released,
        None,
        question.reading,
        checks,
        dict(found.support),
        None if prices is None else prices.to_json(),
        tuple(one.request for one in question.earlier),
        probes.to_bytes(),
        None if shadows is None else shadows.to_bytes(),
        tuple(
            Measured(
                one.request,
                new.data_hash,
                new.probes.to_bytes(),
                new.shadows.to_bytes(),
                one.remains.to_bytes(),
            )
            for one, new in zip(question.earlier, earlier, strict=True)
            if new not in one.measured
        ),
    )


@cache
def _environment() -> tuple[tuple[str, str], ...]:
    found = {"python": python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return tuple(found.items())


def environment() -> dict[str, str]:
    """Versions of what an answer is computed with."""
    return dict(_environment())


def analysis_of(code: str) -> Analysis:
    """Submitted code with the seed that the desk gives it: the same for the same code, here and at home."""
    # 52 bits of the code's hash: as JSON, every reader takes it for the same number.
    return Analysis(code, seed=int(code_hash(code)[:13], 16))


def _chance(real: RealTable, code: str, purpose: str) -> np.random.Generator:
    return np.random.default_rng([real.seed, int(code_hash(code + purpose), 16)])


def _stage(progress: Progress, stage: str) -> Counted:
    return lambda done, total: progress(stage, done, total)


def _too_large(found: Examination, policy: Policy) -> bool:
    """Whether nobody could release it for its size: an answer of thousands of numbers takes hours to price."""
    return found.check("size").verdict == "fail" and "size" not in policy.may_override


def _prices(
    new: ShadowAnswers,
    earlier: Sequence[_Measurement],
    bank: ShadowBank,
    real: RealTable,
    work: Work,
    question: _Question,
    progress: Progress,
) -> Prices:
    stage_one = None if question.summary is None else StageOne.of(question.summary, real.table)
    rng = _chance(real, work.code, "price")
    # An attacker may leave the new answer aside: everything together is never said to cost less than before.
    before = max((one.together for one in question.earlier), key=lambda one: one.mu.high, default=None)
    told = _stage(progress, GAME)
    return price_of(new, [one.shadows for one in earlier], bank, rng, stage_one, told, before)


def _as_of_now(
    earlier: _Released, real: RealTable, bank: ShadowBank, sandbox: RunsJobs, progress: Progress
) -> _Measurement:
    """An earlier release on the learners who are in now, with the digits that it was released with."""
    for one in earlier.measured:
        if one.data_hash == real.hash and one.shadows.bank == bank_name(bank):
            return one
    analysis, told = analysis_of(earlier.code), _stage(progress, EARLIER)
    kept = earlier.remains
    _, probes = probe(analysis, real.table, sandbox, _chance(real, earlier.code, "pairs"), told)
    shadows = shadow_answers(analysis, real.table, bank, earlier.results, kept.units, sandbox, told)
    # If it gives no answer without those who left, there is nothing to compare: the checks then say so.
    return _Measurement(real.hash, probes or Probes.of_nobody(kept.names), shadows)


def _question(desk: Desk, work: Work) -> _Question:
    with desk.database.reading() as session:
        row = find(session, WORKER, work.request)
        tried = latest_run(session, row, trial=True)
        earlier = []
        for release in released(session, row.data_set):
            run = release.run
            if release.request.name == work.request:
                continue
            if run.results is None or run.prices is None:
                raise _gone()
            its_trial = latest_run(session, release.request, trial=True)
            earlier.append(
                _Released(
                    release.request.name,
                    release.request.code,
                    run.data_hash,
                    Prices.from_json(run.prices).own.n_learners,
                    Results.from_json(run.results),
                    _remains(run, _results(None if its_trial is None else its_trial.results)),
                    _measured(session, release),
                    Prices.from_json(run.prices).together,
                )
            )
        return _Question(
            data_sets.policy_of(row.data_set),
            _results(None if tried is None else tried.results),
            None if tried is None else tried.reading,
            None if row.data_set.summary is None else Path(row.data_set.summary),
            tuple(earlier),
        )


def _measured(session: Session, release: ReleaseRow) -> tuple[_Measurement, ...]:
    run = release.run
    since = session.scalars(select(MeasurementRow).where(MeasurementRow.release_id == release.id))
    kept = [] if run.probes is None or run.shadows is None else [(run.data_hash, run.probes, run.shadows)]
    kept += [(one.data_hash, one.probes, one.shadows) for one in since]
    return tuple(
        _Measurement(data_hash, Probes.from_bytes(probes), ShadowAnswers.from_bytes(shadows))
        for data_hash, probes, shadows in kept
    )


def _remains(run: RunRow, trial: Results) -> Remains:
    if run.probes is None:
        raise _gone()
    if run.shadows is None:
        return Remains.from_bytes(run.probes)
    return Remains(units_of(Influences(Probes.from_bytes(run.probes)), trial))


def _gone() -> DataError:
    return DataError(
        "what was measured for an earlier release is gone.",
        hint="restore the desk's database from a backup.",
    )


def _results(content: dict[str, Any] | None) -> Results:
    return Results() if content is None else Results.from_json(content)


def declared_texts(table: LearnerTable) -> list[str]:
    """Words that may stand in an answer: columns and labels of the synthetic table, which everybody has."""
    import polars as pl

    labels = [
        label
        for name in table.rows.columns
        if table.rows[name].dtype in (pl.String, pl.Categorical, pl.Enum)
        for label in table.rows[name].cast(pl.String).unique().drop_nulls().sort().to_list()
    ]
    return [*table.columns, *labels]
