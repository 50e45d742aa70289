"""After a release: how much of what the synthetic data showed held, as researchers report and as the desk counts.

What is exported for the next cycle (`understudy cohort improve`) is made from released results alone, and from what
researchers wrote about them: nothing that stayed inside goes into it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.domain.people import Person, Role, require_role
from understudy.desk.domain.precision import ALPHA, precision_of
from understudy.desk.domain.results import STEP, Results
from understudy.desk.service import Desk, data_sets
from understudy.desk.service.releases import released
from understudy.desk.service.requests import find, move
from understudy.desk.store import audit_log
from understudy.desk.store.tables import FeedbackRow, MeasurementRow, ReleaseRow, RequestRow, latest_run
from understudy.errors import DataError, UsageError

PRECISIONS = (0.0, 0.5, 1.0)
"""None, some or most of the synthetic findings held on the real data (Ito et al. 2026, section IV-D)."""
MOST_WORDS = 4000

_P = ("p", "p value", "p-value", "p_value", "pvalue")
# Names of numbers that give the direction of an effect, where several numbers are next to a p-value.
_EFFECTS = (
    *("rho", "r", "tau", "correlation", "coefficient", "coef", "beta", "slope", "effect", "difference", "estimate"),
    *("d", "t", "z", "direction"),
)  # fmt: skip
_CLOSE = 0.85


def report(desk: Desk, who: Person, name: str, precision: float, words: str = "") -> None:
    """The owner of a released request says how much held (0, 0.5 or 1) and how the results differ."""
    if precision not in PRECISIONS:
        raise UsageError(
            f"a precision of {precision:g} was reported.",
            hint="0: none of the findings held, 0.5: some, 1: most.",
        )
    if len(words) > MOST_WORDS:
        raise UsageError(
            f"the text on how results differ is too long ({len(words)} characters).",
            hint=f"{MOST_WORDS} are the most.",
        )
    with desk.database.writing() as session:
        row = find(session, who, name)
        move(session, who, row, "report", {"precision": precision})
        session.add(
            FeedbackRow(
                request_id=row.id,
                precision=float(precision),
                own_precision=_own_precision(session, row),
                words=words.strip(),
            )
        )


def own_precision(desk: Desk, who: Person, name: str) -> float | None:
    """The desk's own count for a released request, for reviewers; None where numbers cannot say."""
    require_role(who, Role.REVIEWER, Role.CUSTODIAN)
    with desk.database.reading() as session:
        return _own_precision(session, find(session, who, name))


def export(desk: Desk, who: Person, data_set: str) -> dict[str, Any]:
    """What `understudy cohort improve` reads: each released request with what both data sets showed.

    A request is in it if its researcher wrote what both showed, or if its answer has p-values: then each test is a
    finding with its direction and whether p is below 0.05, on both sides, from the trial and the released result.
    """
    require_role(who, Role.CUSTODIAN)
    with desk.database.writing() as session:
        data = data_sets.find(session, data_set)
        entries = [
            entry
            for one in released(session, data)
            if one.released_at is not None and (entry := _entry(session, one)) is not None
        ]
        if not entries:
            raise UsageError(
                "no released request of this data set has anything to compare yet.",
                hint="researchers report how results differ on the page of a released request.",
            )
        audit_log.append(
            session, who, "export feedback", detail={"data set": data_set, "requests": len(entries)}
        )
        return {"learners": data.n_learners, "feedback": entries}


def findings_of(synthetic: Results, real: Results) -> list[dict[str, Any]]:
    """Every test that both answers hold, as a finding: which way it goes, and whether p is below 0.05.

    A test is a p-value with the numbers in the same row of a table, or in the same dict. It is left out if they do not
    say which way it goes: if there are several, and none of them or more than one has the name of an effect.
    """
    return [
        {"name": name, "synthetic": _verdict(synthetic, p, effect), "real": _verdict(real, p, effect)}
        for p in synthetic.numbers
        if p in real.numbers and not (math.isnan(synthetic.numbers[p]) or math.isnan(real.numbers[p]))
        for name, effect in [_test(p, synthetic)]
        if effect is not None and effect in real.numbers
    ]


def _own_precision(session: Session, row: RequestRow) -> float | None:
    release = session.scalar(select(ReleaseRow).where(ReleaseRow.request_id == row.id))
    both = None if release is None else _both(session, row, release)
    if release is None or both is None:
        return None
    errors = _errors(session, release)
    # Without errors nothing says how far apart two answers may be; tests say for themselves whether they held.
    if not errors and not any(_test(name, both[0])[0] for name in both[0].numbers):
        return None
    return precision_of(*both, errors).score


def _both(session: Session, row: RequestRow, release: ReleaseRow) -> tuple[Results, Results] | None:
    trial = latest_run(session, row, trial=True)
    if trial is None or trial.results is None or release.run.results is None:
        return None
    return Results.from_json(trial.results), Results.from_json(release.run.results)


def _errors(session: Session, release: ReleaseRow) -> Mapping[str, float]:
    """Standard errors of the answer's numbers, from the runs without each learner: of then, or of those still in."""
    from understudy.desk.disclosure.influences import Influences
    from understudy.desk.disclosure.probing import Probes

    since = select(MeasurementRow.probes).where(MeasurementRow.release_id == release.id)
    kept = session.scalar(since) if release.run.probes is None else release.run.probes
    if kept is None:
        return {}
    try:
        influences = Influences(Probes.from_bytes(kept))
    except DataError:
        return {}
    return dict(zip(influences.names, influences.standard_error.tolist(), strict=True))


def _entry(session: Session, release: ReleaseRow) -> dict[str, Any] | None:
    row = release.request
    reported = session.scalar(select(FeedbackRow).where(FeedbackRow.request_id == row.id))
    both = _both(session, row, release)
    findings = [] if both is None else findings_of(*both)
    words = {"synthetic": row.shown, "real": "" if reported is None else reported.words}
    if not findings and not all(words.values()):
        return None
    entry: dict[str, Any] = {
        "question": _cut(row.question),
        **{key: _cut(text) for key, text in words.items()},
    }
    if len(row.code) <= MOST_WORDS:
        entry["code"] = row.code
    return {**entry, "findings": findings} if findings else entry


def _cut(text: str) -> str:
    return text if len(text) <= MOST_WORDS else text[: MOST_WORDS - 1] + "…"


def _test(name: str, results: Results) -> tuple[str, str | None]:
    """The finding of a p-value and the number that says which way it goes; None if it is not a p-value, or unclear."""
    parts = name.split(STEP)
    place = next((at for at, part in enumerate(parts) if part.lower() in _P), None)
    if place is None:
        return "", None
    rest = [*parts[:place], *parts[place + 1 :]]
    beside = {
        other: steps[place].lower()
        for other in results.numbers
        if other != name
        and len(steps := other.split(STEP)) == len(parts)
        and [*steps[:place], *steps[place + 1 :]] == rest
    }
    effects = [other for other, column in beside.items() if column in _EFFECTS]
    chosen = effects if effects else list(beside)
    return _finding_name(rest), chosen[0] if len(chosen) == 1 else None


def _finding_name(parts: list[str]) -> str:
    """`analysis: what`, as in the bank of findings; names that only look like one of the bank's are set apart."""
    from understudy.cohorts.findings import bank

    names = [analysis.name for analysis in bank()]
    analysis, _, what = ": ".join(parts or ["result"]).partition(":")
    analysis, what = analysis.strip(), what.strip()
    if analysis not in names and difflib.get_close_matches(analysis, names, 1, _CLOSE):
        analysis = f"a researcher's own {analysis}"
    return (f"{analysis}: {what}" if what else analysis)[:200]


def _verdict(results: Results, p: str, effect: str) -> dict[str, Any]:
    value = results.numbers[effect]
    direction = 0 if math.isnan(value) else (value > 0) - (value < 0)
    return {"direction": int(direction), "significant": bool(results.numbers[p] < ALPHA)}
