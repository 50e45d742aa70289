"""What combined releases guarantee, and whether a ledger knows that some of them share learners."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.population import SIMULATED_POPULATION
from understudy.errors import DataError, RefusedError, UsageError
from understudy.exams.released_file import ONE_SCHOOL_EACH, Difficulties


def combined_guarantee(schools: Sequence[Difficulties], *, may_overlap: bool) -> Guarantee:
    """What holds for a learner of any school.

    One learner replaced changes one release only, if no learner is in two; the others are drawn independently of it,
    or computed from it where it was their prior. So the largest epsilon and the largest delta hold. Otherwise those of
    all releases add up (basic composition).
    """
    given = [school.guarantee for school in schools]
    if (without := next((each for each in given if not each.formal), None)) is not None:
        return Guarantee.none(
            f"one of the combined files has none: {without.reason or 'no reason is given in it'}"
        )
    if len({(each.unit, each.adjacency) for each in given}) > 1:
        raise RefusedError(
            "the guarantees of the files have different units or adjacencies.",
            hint="combine releases that all protect a learner, replaced by another one.",
            code="other-guarantee",
        )
    everywhere = in_all_schools(schools)
    guarantee = Guarantee(
        everywhere["epsilon"] if may_overlap else max(each.epsilon for each in given),
        everywhere["delta"] if may_overlap else max(each.delta for each in given),
        mechanisms=tuple(dict.fromkeys(name for each in given for name in each.mechanisms)),
        unit=given[0].unit,
        adjacency=given[0].adjacency,
    )
    caveats = [caveat for each in given for caveat in each.caveats if caveat != ONE_SCHOOL_EACH]
    if not may_overlap:
        caveats.append(ONE_SCHOOL_EACH)
    return guarantee.with_caveats(*caveats)


def in_all_schools(schools: Sequence[Difficulties]) -> dict[str, float]:
    """What a learner bears who is in every file, and in every part of those that are combined themselves: the sum."""
    borne = [_in_every_part(school) for school in schools]
    return {"epsilon": sum(epsilon for epsilon, _ in borne), "delta": sum(delta for _, delta in borne)}


def _in_every_part(school: Difficulties) -> tuple[float, float]:
    stated = school.guarantee
    if ONE_SCHOOL_EACH not in stated.caveats:
        return stated.epsilon, stated.delta
    # It states the largest of its parts.
    given = school.provenance.get("in_all_schools")
    numbers = [given.get(name) for name in ("epsilon", "delta")] if isinstance(given, dict) else []
    epsilon, delta = (
        float(number) if isinstance(number, int | float) else math.nan
        for number in numbers or [math.nan, math.nan]
    )
    if not (epsilon >= stated.epsilon and delta >= stated.delta):
        raise DataError(
            "a combined file does not say what a learner bears who is in all of its parts.",
            hint="combine its parts again.",
            code="damaged-file",
        )
    return epsilon, delta


def refuse_shared_learners(schools: Mapping[str, Difficulties], path: Path) -> list[str]:
    """Refuse releases that the ledger charged to learners who count together; notes on those that it does not know."""
    if not path.is_file():
        raise UsageError(
            f"there is no ledger {path}.",
            hint="name the file that the releases were charged in, or leave it out.",
            settings=("ledger",),
        )
    ledger = Ledger(path)
    charged = {
        entry.card: entry.population for entry in ledger.entries() if entry.population != SIMULATED_POPULATION
    }
    for (one, cards), (two, others) in permutations(_apart(schools), 2):
        for card in sorted(cards & charged.keys()):
            # A release that is in both, as the prior of one of them, was charged once.
            if (same := ledger.same_learners(charged[card], (), sorted(others - cards))) is not None:
                where = f"{one} and {two} hold" if one != two else f"{one} holds"
                raise RefusedError(
                    f"{where} releases about the same learners, according to the ledger: they were charged to "
                    f"'{charged[card]}' and to '{same}'. The joint file would state the epsilon of one of them and "
                    "count these learners twice.",
                    hint="leave one of the releases out, or declare that learners may be in several files.",
                    code="same-population",
                    settings=("may_overlap",),
                )
    unknown = [
        name for name, school in schools.items() if not school.cards or not ledger.has_cards(school.cards)
    ]
    return (
        [f"The ledger does not know all releases in these, nor whose they are: {', '.join(unknown)}."]
        if unknown
        else []
    )


def _apart(schools: Mapping[str, Difficulties]) -> list[tuple[str, set[str]]]:
    """The cards of which a learner is said to be in one: those of each file, and of each part of a combined one."""
    groups: list[tuple[str, set[str]]] = []
    for name, school in schools.items():
        parts = (
            [{card} for card in school.cards]
            if ONE_SCHOOL_EACH in school.guarantee.caveats
            else [set(school.cards)]
        )
        groups += [(name, cards) for cards in parts]
    return groups
