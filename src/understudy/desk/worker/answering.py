"""Answers a request: on the synthetic data for its author, on the real data for reviewers, checked and priced.

The same request on the same data gives the same answer: the analysis is seeded by its own code, the shadows and
whatever else is drawn by the data set's secret seed and that code. Only the order of runs is new every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from understudy.desk.disclosure.code_review import read_code
from understudy.desk.disclosure.examination import Earlier, Examination, examine
from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.probing import Probes, probe
from understudy.desk.disclosure.replacement import plan_replacements
from understudy.desk.domain.analysis import (
    Analysis,
    Answer,
    Failure,
    RunsJobs,
    code_hash,
    environment,
    of_a_trial,
)
from understudy.desk.domain.analysis import Progress as Counted
from understudy.desk.domain.policy import Policy
from understudy.desk.private import Answers, Plan
from understudy.desk.private.recording import answer_trial, not_taken, record
from understudy.desk.risk.pricing import (
    Prices,
    ShadowAnswers,
    answers_on_blurred,
    bank_for,
    bank_name,
    price_of,
    reach,
    shadow_answers,
)
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadow_consistency import shadow_consistency
from understudy.desk.risk.shadows import ShadowBank
from understudy.desk.service import Desk, answers, data_sets, private_answers
from understudy.desk.service.answers import (
    AnswerOrigin,
    EarlierMeasurement,
    EarlierRelease,
    HeldAnswer,
    Measurement,
    Question,
    RequestToAnswer,
)
from understudy.desk.service.data_sets import RealTable
from understudy.errors import RefusedError, UsageError

Progress = Callable[[str, int, int], None]
"""Hears a stage in words, and how many of how many steps of it are done; what it raises ends the work."""

CHECKING, PRICING, EARLIER, GAME = (
    "running without single learners",
    "running on shadows",
    "running earlier requests again",
    "playing the membership game",
)


def trial(
    desk: Desk, work: RequestToAnswer, sandbox: RunsJobs
) -> tuple[AnswerOrigin, Answer, dict[str, Any]]:
    """The code on the synthetic data, and what the static review aid saw in it. No real data is touched."""
    table = data_sets.synthetic_table(desk, work.data_set)
    reading = read_code(work.code, table.columns, work.policy).to_json()
    given = of_a_trial(Analysis.seeded(work.code).answer(sandbox, table.whole()))
    return answers.trial_origin(desk, work), given, reading


def private_trial(desk: Desk, work: RequestToAnswer, sandbox: RunsJobs) -> tuple[Plan, Answers] | Failure:
    """What the code asks for, by a run without any data, answered from the synthetic table."""
    asked = record(work.code, sandbox)
    if isinstance(asked, Failure):
        return asked
    try:
        plan = private_answers.planned(desk, work.data_set, asked)
    except (UsageError, RefusedError) as error:
        return not_taken(error)
    return plan, answer_trial(plan, work.code, data_sets.synthetic_table(desk, work.data_set))


def answer(desk: Desk, work: RequestToAnswer, sandbox: RunsJobs, progress: Progress) -> HeldAnswer:
    """The code on the real data, with its checks and its price; an error is its type and line, for reviewers."""
    # The table and its version first: rules that change after that make the answer old, not wrong.
    real = data_sets.real_table(desk, work.data_set)
    question = answers.question_of(desk, work)
    origin = AnswerOrigin(code_hash(work.code), real.hash, real.version, environment())
    analysis = Analysis.seeded(work.code)
    synthetic = data_sets.synthetic_table(desk, work.data_set)
    plan = plan_replacements(
        work.code, real.table, synthetic, question.policy, _chance(real, work.code, "replacements")
    )
    given, probes = probe(
        analysis, real.table, sandbox, _chance(real, work.code, "pairs"), _stage(progress, CHECKING), plan
    )
    if isinstance(given, Failure) or probes is None:
        failure = given if isinstance(given, Failure) else Failure("killed")
        return HeldAnswer(origin, None, failure, question.reading)
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
        declared_texts=synthetic.texts,
    )
    checks = found.checks
    shadows = prices = None
    if not _too_large(found, question.policy):
        shadows = shadow_answers(
            analysis, real.table, bank, given, found.units, sandbox, _stage(progress, PRICING)
        )
        consistency = shadow_consistency(
            Influences(probes),
            shadows,
            bank,
            given,
            lambda: answers_on_blurred(
                analysis, real.table, bank, given, found.units, sandbox, _chance(real, work.code, "blur")
            ),
        )
        checks = (*checks, consistency, *reach(question.policy))
        prices = _prices(shadows, earlier, bank, real, work, question, progress)
    return HeldAnswer(
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
            EarlierMeasurement(
                one.request,
                new.data_hash,
                new.probes.to_bytes(),
                new.shadows.to_bytes(),
                one.units,
            )
            for one, new in zip(question.earlier, earlier, strict=True)
            if new not in one.measured
        ),
    )


def _chance(real: RealTable, code: str, purpose: str) -> np.random.Generator:
    return np.random.default_rng([real.seed, int(code_hash(code + purpose), 16)])


def _stage(progress: Progress, stage: str) -> Counted:
    return lambda done, total: progress(stage, done, total)


def _too_large(found: Examination, policy: Policy) -> bool:
    """Whether it is too large to be released: an answer of thousands of numbers takes hours to price."""
    return found.check("size").verdict == "fail" and "size" not in policy.may_override


def _prices(
    new: ShadowAnswers,
    earlier: Sequence[Measurement],
    bank: ShadowBank,
    real: RealTable,
    work: RequestToAnswer,
    question: Question,
    progress: Progress,
) -> Prices:
    stage_one = None if question.summary is None else StageOne.of(question.summary, real.table)
    rng = _chance(real, work.code, "price")
    # An attacker may leave the new answer aside: everything together is never said to cost less than before.
    before = max((one.together for one in question.earlier), key=lambda one: one.mu.high, default=None)
    counted = _stage(progress, GAME)
    return price_of(
        new, [one.shadows for one in earlier], bank, rng, stage_one, counted, before, question.private_mu
    )


def _as_of_now(
    earlier: EarlierRelease, real: RealTable, bank: ShadowBank, sandbox: RunsJobs, progress: Progress
) -> Measurement:
    """An earlier release on the learners who are in now, with the digits that it was released with."""
    for one in earlier.measured:
        if one.data_hash == real.hash and one.shadows.bank == bank_name(bank):
            return one
    analysis, counted = Analysis.seeded(earlier.code), _stage(progress, EARLIER)
    _, probes = probe(analysis, real.table, sandbox, _chance(real, earlier.code, "pairs"), counted)
    shadows = shadow_answers(analysis, real.table, bank, earlier.results, earlier.units, sandbox, counted)
    # If it gives no answer without those who left, there is nothing to compare: the checks then say so.
    return Measurement(real.hash, probes or Probes.unmoved(tuple(earlier.units)), shadows)
