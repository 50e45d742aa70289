"""What every data card says: uses and misuses, and a guarantee with its worst case in plain words."""

from __future__ import annotations

import math
from typing import Any

from understudy.core.pages.words import in_100, sentence
from understudy.core.privacy.guarantee import Caveat, Guarantee
from understudy.core.privacy.risk import worst_case

NOT_COVERED = "These figures were computed from the real data, and no guarantee covers them."

# Parts of the guarantee itself, so that they are in a card's headline and in the ledger, not in a footnote.
FIGURES_PUBLISHED = Caveat(
    "figures-published",
    "figures that were measured on the real learners are published with it, and no guarantee covers them",
    "figures measured on the real learners are published here without one",
)
RISK_ACCEPTED = Caveat(
    "risk-accepted",
    "the custodian accepted the risk and gave a reason, which is printed with the data",
    "the custodian accepted the risk",
)

NOT_PUBLISHED = "Figures measured on the real data are with the custodian and are not on this card."

USES = (
    "To see what such data looks like, to write and test analyses, to teach, to plan a study.",
    "To find questions worth asking. Check every finding on the real data before you rely on it: "
    "the custodian can tell you how.",
    "Cite it with the card's number, so that others can tell which data you used.",
)

MISUSES = (
    "Do not try to find out who the learners behind it are, and do not link it with other data about people.",
    "Do not decide anything about a person with it.",
    "Do not report a result from it as a result about real learners.",
    "Do not pass the data on without this card.",
)


def guarantee_in_words(guarantee: Guarantee) -> dict[str, Any]:
    """The card's headline and explanation of a guarantee, and the most that any attack can reach under it."""
    beside = [f"To be stated with it: {caveat}." for caveat in guarantee.caveats]
    if not guarantee.formal:
        return {
            "headline": _headline("No formal guarantee", guarantee),
            "explanation": [
                sentence(
                    f"Why: {guarantee.reason}" if guarantee.reason else "Why: none was claimed by the method"
                ),
                "This means that nothing is proved about how well this data hides the learners behind it. "
                "They could partly be recognised: somebody who knows much of what a learner did may find out "
                "whether that learner's record was used, and perhaps more.",
                *beside,
            ],
            "worst_case": None,
        }
    bound = worst_case(guarantee)
    delta = f", delta {guarantee.delta:.2e}" if guarantee.delta else ""
    return {
        "headline": _headline(f"Formal guarantee: epsilon {guarantee.epsilon:g}{delta}", guarantee),
        "explanation": [
            "It is proved that any one learner could change this data only within limits. This holds for "
            f"{guarantee.unit}, whatever a reader of the data knows already or finds out later.",
            _epsilon_in_words(guarantee),
            _worst_case_in_words(bound),
            *beside,
        ],
        "worst_case": bound,
    }


def _headline(claim: str, guarantee: Guarantee) -> str:
    """The claim with what it does not cover: who reads one line reads that too."""
    return "; ".join((claim, *(caveat.headline or str(caveat) for caveat in guarantee.caveats)))


def _epsilon_in_words(guarantee: Guarantee) -> str:
    factor = math.exp(guarantee.epsilon)
    times = f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"
    words = (
        f"Epsilon {guarantee.epsilon:g} sets the limit: whatever the data shows is at most {times} times as likely "
        "with a learner as with somebody else in that learner's place. Smaller is stronger."
    )
    if guarantee.delta:
        words += (
            f" Delta {guarantee.delta:.2e} is the small chance, about 1 in {1 / guarantee.delta:,.0f}, "
            "that is not covered by this."
        )
    return words


def _worst_case_in_words(bound: dict[str, float]) -> str:
    auc, found = bound["auc"], round(100 * bound["tpr_at_1pct"])
    strength = next(
        words
        for limit, words in (
            (0.60, "That is close to guessing."),
            (0.80, "That is better than guessing and far from certain."),
            (0.95, "Such an attacker may do far better than guessing; a smaller epsilon promises more."),
            (1.00, "Against such an attacker this guarantee alone promises little."),
        )
        if auc <= limit
    )
    return (
        "In the worst case an attacker knows the method, all other learners, and all about one learner except "
        "whether the record was used. Shown data made with the learner and data made without, this attacker picks "
        f"the right one at most {in_100(auc)}; guessing gives 50. Allowed one false alarm in 100, the attacker "
        f"is right about at most {found} of 100 learners; guessing gives one. A fact about that learner that would be "
        f"a coin flip without the data is guessed right at most {in_100(bound['guessed_from_half'])}. A description "
        "that fits one in 1,000 people fits that learner at most "
        f"{in_100(bound['singled_out_from_1_in_1000'])}. {strength}"
    )
