"""plan_page(): a release that was not made yet, as a page that a data-protection officer can sign."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from understudy.core.files.writing import check_new
from understudy.core.pages.render import render
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.risk import RiskLimit, worst_case
from understudy.core.privacy.spending import Account
from understudy.errors import RefusedError
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import chosen_generator
from understudy.logs.interactions import Interactions
from understudy.logs.names import FoundNames
from understudy.logs.release.bundle import ReleaseOptions
from understudy.logs.release.card import with_decisions


def plan_page(
    log: Interactions,
    out: Path,
    generator: Any = None,
    options: ReleaseOptions = ReleaseOptions(),  # noqa: B008 (frozen)
) -> str:
    """What would be released about whom, with which promise and at what price; nothing is charged or fitted.

    It is for the custodian and those who sign, and may leave the house with the signatures: it tells whether the budget
    allows it, and names no release and no population but the one that it is about.
    """
    check_new(out, folder=True)
    chosen = chosen_generator(generator, None, options.risk, log)
    guarantee = with_decisions(
        chosen.guarantee_for(log), options.accept_risk.strip(), options.publish_figures
    )
    account = Account.open(options, log.origin, simulated=log.simulated)
    price, refused = _price(account, guarantee)
    origin = log.origin
    return render(
        "logs/release/plan.html",
        title=options.title or f"Release of {origin.name or 'a log'}",
        simulated=bool(account.simulated),
        formal=guarantee.formal,
        facts_of=[
            ("learners", f"{log.n_learners:,}"),
            ("method", chosen.label.partition(":")[0]),
            ("epsilon", f"{guarantee.epsilon:g}" if guarantee.formal else "none"),
            ("planned on", datetime.now(UTC).date().isoformat()),
        ],
        what=[
            ("File", origin.name or "a frame in memory"),
            ("Whose data", account.population),
            *((("Other learners", _OTHERS.format(account.reason)),) if account.others else ()),
            (
                "Columns that are read",
                ", ".join(f"{role}: {name}" for role, name in origin.columns.items()) or "–",
            ),
            ("Method in full", chosen.label),
            (
                "Learners who withdrew",
                "none" if not origin.n_withdrawn else "left out, as listed",
            ),
            ("Names of actions", _names(log, chosen)),
            ("Where it is written", str(out)),
            ("Custodian", options.custodian or "not named"),
        ],
        statement=str(guarantee),
        asked=str(RiskLimit.parse(options.risk)) if options.risk else "",
        kind=chosen.kind,
        worst=worst_case(guarantee) if guarantee.formal else None,
        price=price,
        refused=refused,
        ledger="" if account.ledger is None else str(account.ledger.path),
        accepted=options.accept_risk.strip(),
        figures=options.publish_figures,
    )


def _price(account: Account, guarantee: Guarantee) -> tuple[str, str]:
    """What it would cost, or why it would be refused."""
    if account.simulated:
        return "Simulated learners: no budget is spent.", ""
    try:
        balance = account.check(guarantee)
    except RefusedError as error:
        return "", _refusal(error)
    if not guarantee.formal:
        return "It is noted in the ledger; without a guarantee there is no epsilon to add.", ""
    return balance.price(guarantee), ""


# Of learners whom the ledger knows by the same names or the same file.
_OTHERS = (
    "declared to be other people than those of earlier releases with the same names or the same file: {}"
)


def _refusal(error: RefusedError) -> str:
    """Why it would be refused, without the names of other releases and populations, which the error has."""
    if error.code == "budget":
        largest = error.fields["largest"]
        fits = f"epsilon {largest:g} would fit" if largest else "no smaller epsilon would fit"
        return (
            f"The budget of these learners does not allow epsilon {error.fields['requested']:g}: "
            f"{error.fields['spent']:.4g} of {error.fields['limit']:.4g} is spent; {fits}."
        )
    if error.code == "delta-budget":
        return "The budget of these learners does not allow its delta."
    if error.code == "known-learners":
        return (
            "The ledger knows these learners, or many of them, under another name, so that what is released about them "
            "would not add up."
        )
    return "The ledger does not allow it. Its custodian can see why."


def _names(log: Interactions, generator: Generator) -> str:
    if log.declared:
        return "declared to be public"
    found = FoundNames.expected(log, generator)
    return "as they are in the log" if found is None else found.sentence()
