"""All checks of an answer, and what of it would leave: the numbers rounded to what the sample supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.desk.disclosure.differencing import InfluenceColumns, differencing, reconstruction
from understudy.desk.disclosure.form_checks import known_texts, shape, shown_names, size
from understudy.desk.disclosure.individual_values import extremes, individuals
from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.one_learner import replacement
from understudy.desk.disclosure.people_checks import dominance, freedom, learners
from understudy.desk.disclosure.probing import Probes
from understudy.desk.disclosure.recognition import consistency
from understudy.desk.disclosure.repeated_release import EarlierAnswer, repeated
from understudy.desk.disclosure.rounding import predicted, rounded, units_of
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, CheckVerdict, Results, worst


@dataclass(frozen=True)
class Examination:
    """The results of all checks. For reviewers, except `released`, which leaves if they release it."""

    checks: tuple[Check, ...]
    released: Results
    """The answer with its numbers as answers without one and two learners predict them, rounded."""
    units: Mapping[str, float]
    """What each number was rounded to; 0 for constants of the code, which stay as they are."""
    support: Mapping[str, int]
    """How many learners move each number: measured, and at least so many when they were left out in blocks."""

    @property
    def verdict(self) -> CheckVerdict:
        """Of all checks together."""
        return worst(self.checks)

    def check(self, name: str) -> Check:
        """One check by its name."""
        return next(check for check in self.checks if check.name == name)

    def to_json(self) -> dict[str, Any]:
        """For the store and pages of reviewers."""
        return {
            "checks": [check.to_json() for check in self.checks],
            "released": self.released.to_json(),
            "units": dict(self.units),
            "support": dict(self.support),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Examination:
        """As `to_json` wrote it."""
        return cls(
            tuple(Check.from_json(check) for check in content["checks"]),
            Results.from_json(content["released"]),
            dict(content["units"]),
            dict(content["support"]),
        )


@dataclass(frozen=True)
class Earlier:
    """An earlier release on this data."""

    request: str
    released: Results
    probes: Probes
    same_learners: bool = True
    """Whether it left when the data held the learners of today. `probes` are about those of today, if they can be."""
    n_learners: int | None = None
    """How many there were when it left."""


def examine(
    answer: Results,
    probes: Probes,
    trial: Results,
    code: str,
    policy: Policy,
    *,
    n_learners: int,
    earlier: Sequence[Earlier] = (),
    n_released_numbers: int = 0,
    declared_texts: Sequence[str] = (),
) -> Examination:
    """Every check of an answer on the real data, given what re-runs showed and the trial on synthetic data."""
    known = known_texts(trial, code, declared_texts)
    influences = Influences(probes, shown_names(probes.names, answer, known))
    units = units_of(influences, trial)
    columns = InfluenceColumns.of(influences, [units[name] for name in probes.names])
    comparable = [one for one in earlier if one.probes.without_one.shape[0] == probes.n_blocks]
    comparable = [one for one in comparable if one.probes.n_learners == probes.n_learners]
    for one in comparable:
        columns = columns + _released(one)
    on_others = [
        EarlierAnswer(one.request, one.released, Influences(one.probes), one.n_learners)
        for one in comparable
        if not one.same_learners
    ]
    n_on_others = len(earlier) - len(comparable) + len(on_others)
    checks = (
        learners(influences, trial, policy),
        dominance(influences, policy),
        freedom(influences, policy),
        extremes(influences, policy),
        individuals(influences, answer, policy),
        shape(influences, answer, trial, known, policy),
        _digits(influences, answer, units),
        size(answer, policy),
        consistency(influences, units, policy),
        repeated(influences, on_others, policy.minimum_learners)
        or differencing(columns, policy, n_on_others, trial),
        reconstruction(
            columns,
            policy,
            n_learners=n_learners,
            n_new=int(np.count_nonzero(influences.moved.any(axis=0))),
            n_released_numbers=n_released_numbers,
        ),
        *([] if probes.replaced is None else [replacement(influences, probes.replaced, policy)]),
    )
    support = dict(zip(probes.names, influences.support.tolist(), strict=True))
    return Examination(
        checks, rounded(predicted(influences, answer), units).ordered_like(trial), units, support
    )


def _released(earlier: Earlier) -> InfluenceColumns:
    """The columns of what left before, with the units that it was rounded to then."""
    influences = Influences(earlier.probes)
    # The trial of that request is not kept; it decides only about numbers that no learner moves, which are left out.
    units = units_of(influences, Results())
    return InfluenceColumns.of(influences, [units[name] for name in influences.names], earlier.request)


def _digits(influences: Influences, answer: Results, units: Mapping[str, float]) -> Check:
    """Rounding is always done: the check reports it, and fails for numbers that could not be rounded."""
    check = Check.about("digits", influences.shown)
    unmeasured = [name for name in answer.numbers if name not in units]
    if unmeasured:
        return check.fails(
            f"{len(unmeasured)} numbers are more than the desk measures, so that the digits they support are unknown."
        )
    yes_or_no = _yes_or_no(answer)
    unrounded = [j for j, name in enumerate(influences.names) if name in yes_or_no and units[name] > 1]
    if unrounded:
        shown = influences.shown[unrounded[0]]
        return check.fails(
            f"'{shown}' is a yes or no that changes with many single learners: it cannot be rounded.",
            unrounded,
        )
    after = rounded(answer, units).numbers
    changed = [
        j
        for j, name in enumerate(influences.names)
        if after[name] != answer.numbers[name] and not np.isnan(after[name])
    ]
    if not changed:
        return check.passes("No number had more digits than the sample supports.")
    return check.passes(
        f"{'One number was' if len(changed) == 1 else f'{len(changed)} numbers were'} rounded to what the sample "
        "supports: to a power of ten that is at most a quarter of the standard error.",
        changed,
    )


def _yes_or_no(answer: Results) -> set[str]:
    """Names of what is true or false, which `Results.changed` leaves as it is."""
    seen: set[str] = set()

    def see(name: str, value: float) -> float:
        seen.add(name)
        return value

    answer.changed(see)
    return {name for name, value in answer.numbers.items() if name not in seen and value in (0.0, 1.0)}
