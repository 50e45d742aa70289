"""Private questions at the desk: decided by a reviewer or by the policy, charged once, answered, and released.

The submitted code was given a recorder and no table, and the questions that came out of it were read against the
public schema. From here on only they count: no code of a researcher runs on the real data. The charge comes before any
noise. Results, release and certificate are one transaction, so that of answers that were drawn twice, because a worker
was killed, one is seen and the other by nobody.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from time import monotonic, sleep
from typing import Any

from sqlalchemy.orm import Session

from understudy.core.privacy.composition import Cost, counted_epsilon
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import WatchedNoise
from understudy.desk.domain import certificate
from understudy.desk.domain.analysis import asks_privately, code_hash, environment
from understudy.desk.domain.people import WORKER, Person
from understudy.desk.domain.results import Results, Table
from understudy.desk.private import (
    Answer,
    Answers,
    Plan,
    Records,
    propose,
    read_questions,
)
from understudy.desk.private.mechanism import answer_privately
from understudy.desk.private.public_schema import CAVEATS, PublicSchema, records_of
from understudy.desk.private.recording import Asked, in_sentences
from understudy.desk.private.words import in_words
from understudy.desk.service import Desk, data_sets
from understudy.desk.service.answers import AnswerOrigin
from understudy.desk.service.releases import PRIVATE_KIND, facts_of, release_of, released
from understudy.desk.service.requests import find, move, require
from understudy.desk.store import jobs
from understudy.desk.store.jobs import Lease
from understudy.desk.store.tables import (
    DataSetRow,
    ReleaseRow,
    RequestRow,
    RunRow,
    forget_runs,
    latest_run,
    now,
)
from understudy.errors import RefusedError, safe_location

log = logging.getLogger(__name__)

# Answers leave at whole multiples of so many seconds: how long one takes to compute may depend on the data a little.
PACE = 2.0
BUDGET_SPENT = (
    "The budget of these learners does not allow these questions with this epsilon. Ask for less, or write to the "
    "custodian."
)
LOST = "The noise left nothing that could be computed. The charge stays, since that is known now."
_OVER_LIMIT = "private-epsilon"
_COLUMNS = ("of", "value", "low", "high")


def planned(desk: Desk, data_set: str, asked: Asked) -> Plan:
    """The plan of questions about the real learners; raises if they do not fit the schema, or are over a limit."""
    with desk.database.reading() as session:
        row = data_sets.find(session, data_set)
        public = _public(row)
        plan = propose(asked.questions, public.schema, row.n_learners, asked.epsilon)
        _refuse_over_limits(session, row, _guarantee(plan, public))
        return plan


def pass_trial(desk: Desk, lease: Lease, origin: AnswerOrigin, plan: Plan, tried: Answers) -> None:
    """The questions were answered from the synthetic data: on to a reviewer, or to the answer if the policy says so.

    `plan` is the one for the real data, which says how wide intervals will be there.
    """
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        public = _public(row.data_set)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=True)
        stated = {
            **_asked(plan, public),
            "answers": _in_json(tried),
            "expected": [round(answer.width, 3) for answer in plan.predictions()],
            "n_learners": tried.n_learners,
        }
        _add_run(session, row, origin, stated, trial=True, results=results_of(tried))
        if data_sets.policy_of(row.data_set).private_without_review:
            _decide(session, WORKER, row, plan)
        else:
            move(session, WORKER, row, "pass trial")


def approve(desk: Desk, who: Person, name: str) -> None:
    """A reviewer lets the questions be answered: the ledger is charged, and the answers leave."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        require(who, row, "answer")
        tried = latest_run(session, row, trial=True)
        if tried is None or tried.private is None or not asks_privately(row.code):
            raise RefusedError(
                "this request asks no private questions.", hint="approve its code to run.", code="not-private"
            )
        plan = _plan(tried.private, _public(row.data_set), row.data_set.n_learners)
        _decide(session, who, row, plan)


def _decide(session: Session, who: Person, row: RequestRow, plan: Plan) -> None:
    """Let the questions of a plan be answered; the job that charges and answers is part of the decision."""
    public = _public(row.data_set)
    _refuse_over_limits(session, row.data_set, _guarantee(plan, public))
    origin = AnswerOrigin(code_hash(row.code), "", row.data_set.version, environment())
    run = _add_run(session, row, origin, _asked(plan, public), trial=False)
    move(session, who, row, "answer")
    session.add(
        ReleaseRow(
            request_id=row.id,
            run_id=run.id,
            certificate=secrets.token_hex(8),
            # Where the policy decides, it does so about what the owner asked.
            decided_by=row.owner_id if who == WORKER else who.id,
            reason="",
        )
    )
    jobs.add(session, "release", row)


def hand_out(desk: Desk, lease: Lease) -> None:
    """Charge the ledger, answer from the real table and release; what may not be charged goes back to its owner."""
    begun = monotonic()
    with desk.database.reading() as session:
        row = find(session, WORKER, lease.request)
        release = release_of(session, row)
        card, stated, data_set = release.certificate, release.run.private or {}, row.data_set.name
        # The schema that was public when it was decided.
        public = PublicSchema.from_json(stated["public"])
        account = data_sets.account_of(row.data_set)
    real = data_sets.real_table(desk, data_set)
    records = records_of(real.table, public.schema)
    plan = _plan(stated, public, records.n_learners)
    guarantee = _guarantee(plan, public)
    # The reviewer, or the custodian's policy, has agreed: no person is asked here.
    account = replace(account, agreed=((guarantee, ()),))
    with ExitStack() as charged:
        try:
            # What was charged is answered, whatever the limits are by now.
            if not account.has_charged(card):
                with desk.database.reading() as session:
                    row = find(session, WORKER, lease.request)
                    _refuse_over_limits(session, row.data_set, guarantee, but=row)
            charge = charged.enter_context(
                account.charge(PRIVATE_KIND, f"desk request {lease.request}", guarantee, card=card, once=True)
            )
        except RefusedError as error:
            _decline(desk, lease, error)
            return
        answers = _answered(plan, records, charge.noise)
        sleep(-(monotonic() - begun) % PACE)
        with desk.database.writing() as session:
            row = find(session, WORKER, lease.request)
            release = release_of(session, row)
            jobs.finish(session, lease)
            release.released_at = now()
            release.run.results = results_of(answers).to_json()
            release.run.private = {
                **_asked(plan, public),
                "answers": _in_json(answers),
                "n_learners": plan.n_learners,
            }
            release.run.data_hash, release.run.data_version = real.hash, real.version
            release.document = certificate.document(facts_of(desk, release), desk.settings.secret)
            move(session, WORKER, row, "hand out", {"certificate": release.certificate})


def _answered(plan: Plan, records: Records, noise: WatchedNoise) -> Sequence[Answer]:
    """The answers; none if the noise made them impossible to compute.

    That is a result as well, and leaves: another draw in its place would be chosen by what the first one showed. A
    fault of the machine depends on no noise, and the next worker draws anew.
    """
    try:
        return answer_privately(plan, records, noise).answers
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if not noise.drawn:
            raise
        log.error("%s after the noise of a private answer was drawn", safe_location(error))
        return ()


def results_of(answers: Iterable[Answer]) -> Results:
    """Answers as results of a request: a table of estimates for each question, and the test of it if there is one."""
    tables: dict[str, Table] = {}
    tests: dict[str, Any] = {}
    answers = tuple(answers)
    for place, (answer, stated) in enumerate(zip(answers, _in_json(answers), strict=True), 1):
        name = f"{place}. {answer.question}"
        rows = (tuple(estimate[key] for key in _COLUMNS) for estimate in stated["estimates"])
        tables[name] = Table(_COLUMNS, tuple(rows))
        if (test := stated["test"]) is not None:
            tests[name] = {test["name"]: {"statistic": test["statistic"], "p": test["p_value"]}}
    if not tables:
        return Results({"no answer": LOST})
    return Results(tests or None, tables)


def _in_json(answers: Iterable[Answer]) -> list[dict[str, Any]]:
    """Answers for the store: a number that is none is null, which every database takes."""
    return [_finite(answer.to_json()) for answer in answers]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse_over_limits(
    session: Session, data: DataSetRow, guarantee: Guarantee, but: RequestRow | None = None
) -> None:
    """Raise if the policy of the data set does not allow it; that depends on what was asked, and on no learner."""
    policy = data_sets.policy_of(data)
    if guarantee.epsilon > policy.private_epsilon:
        raise RefusedError(
            f"epsilon {guarantee.epsilon:g} was asked for; {policy.private_epsilon:g} is the most of one request.",
            hint="ask with a smaller EPSILON.",
            code=_OVER_LIMIT,
        )
    together = counted_epsilon([*_costs(session, data, but), Cost.of(guarantee)])
    if together > policy.private_epsilon_total * (1 + 1e-9):
        raise RefusedError(
            f"with epsilon {guarantee.epsilon:g} the private answers on this data set would count {together:.3g} "
            f"together; {policy.private_epsilon_total:g} is the most.",
            hint="ask with a smaller EPSILON, or write to the custodian.",
            code=_OVER_LIMIT,
        )


def spent(desk: Desk, data_set: str) -> float:
    """What private answers on a data set count together, those being released included. That is public."""
    with desk.database.reading() as session:
        return counted_epsilon(_costs(session, data_sets.find(session, data_set)))


def _costs(session: Session, data: DataSetRow, but: RequestRow | None = None) -> list[Cost]:
    return [
        Cost.of(Guarantee.from_json(one.run.private["guarantee"], caveats=CAVEATS))
        for one in released(session, data)
        if one.run.private is not None and (but is None or one.request_id != but.id)
    ]


def _decline(desk: Desk, lease: Lease, error: RefusedError) -> None:
    """Send it back. Of the ledger's own refusal its owner reads no more than that there is one: it names releases."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease, "refused")
        release = release_of(session, row)
        run = release.run
        session.delete(release)
        run.forget()
        row.note = in_sentences(error) if error.code == _OVER_LIMIT else BUDGET_SPENT
        move(session, WORKER, row, "decline", {"why": error.message})


def _public(data: DataSetRow) -> PublicSchema:
    public = data_sets.public_of(data)
    if public is None:
        raise RefusedError(
            "this data set has no public schema, which private questions need.", hint="ask its custodian."
        )
    return public


def _guarantee(plan: Plan, public: PublicSchema) -> Guarantee:
    """What is proved about the answers of a plan, with what it leaves out of a table that was made as this one."""
    return plan.guarantee.with_caveats(*public.caveats)


def _asked(plan: Plan, public: PublicSchema) -> dict[str, Any]:
    """A plan as it is stored and certified."""
    return {
        "questions": [question.to_json() for question in plan.questions],
        "sentences": [in_words(question, plan.schema) for question in plan.questions],
        "public": public.to_json(),
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "guarantee": _guarantee(plan, public).to_json(),
    }


def _plan(stated: dict[str, Any], public: PublicSchema, n_learners: int) -> Plan:
    """The plan of stored questions, with the epsilon and delta that were stated, whoever withdrew since."""
    questions = read_questions(stated["questions"])
    return propose(questions, public.schema, n_learners, stated["epsilon"], stated["delta"])


def _add_run(
    session: Session,
    row: RequestRow,
    origin: AnswerOrigin,
    private: dict[str, Any],
    *,
    trial: bool,
    results: Results | None = None,
) -> RunRow:
    run = RunRow(
        request_id=row.id,
        trial=trial,
        **vars(origin),
        results=None if results is None else results.to_json(),
        private=private,
    )
    session.add(run)
    session.flush()
    return run
