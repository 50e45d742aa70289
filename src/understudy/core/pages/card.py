"""What every data card says: uses and misuses, and a guarantee with its worst case in plain words."""

from __future__ import annotations

from typing import Any

from understudy.core.pages.words import sentence
from understudy.core.privacy.guarantee import Caveat, Guarantee
from understudy.core.privacy.risk import worst_case

NOT_COVERED = "These figures were computed from the real data, and no guarantee covers them."

# Parts of the guarantee itself, so that they are in a card's headline and in the ledger, not in a footnote.
FIGURES_PUBLISHED = Caveat(
    "figures-published",
    "figures that were measured on the real learners are published with it, and no guarantee covers them",
    "figures measured on the real learners are published here without a guarantee",
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


def protection_verdict(guarantee: Guarantee) -> str:
    """What is proved about the file, as a clause of a card's first sentence."""
    away = "what it gives away about any one learner behind it"
    if not guarantee.formal:
        return f"nothing is proved about {away}"
    auc = worst_case(guarantee)["auc"]
    if auc > _WEAK:
        return f"what is proved about it rules out little of {away}"
    if auc > _MODERATE:
        return f"a proof limits {away}, though not tightly"
    return f"a proof limits {away}" if auc > _STRONG else f"a proof limits tightly {away}"


def with_caveats(verdict: str, guarantee: Guarantee) -> str:
    """A verdict with what the guarantee does not cover: who reads one sentence reads that too."""
    return sentence("; ".join((verdict, *(caveat.headline or str(caveat) for caveat in guarantee.caveats))))


def guarantee_in_words(guarantee: Guarantee) -> dict[str, Any]:
    """The card's headline and explanation of a guarantee, and the most that any attack can reach under it.

    Of the `limits` only those are there that limit something; `unlimited` names the others.
    """
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
            "limits": [],
            "unlimited": [],
        }
    bound = worst_case(guarantee)
    delta = f", delta {guarantee.delta:.2e}" if guarantee.delta else ""
    return {
        "headline": _headline(f"Formal guarantee: epsilon {guarantee.epsilon:g}{delta}", guarantee),
        "explanation": [
            "It is proved that any one learner could change this data only within limits. This holds for "
            f"{guarantee.unit}, whatever a reader of the data knows already or finds out later.",
            _epsilon_in_words(guarantee),
            _strength_in_words(bound["auc"]),
            *beside,
        ],
        "worst_case": bound,
        "limits": [
            {"attempt": f"{name}: {story}", "at_most": bound[key], "guessing": guessing}
            for key, name, story, guessing in _ATTEMPTS
            if bound[key] < NO_LIMIT
        ],
        "unlimited": [f"{name}: {story}" for key, name, story, _ in _ATTEMPTS if bound[key] >= NO_LIMIT],
    }


# A bound from here on leaves an attacker's success open: it is not printed as if it were a limit.
NO_LIMIT = 0.99
# The largest AUC of a strong, a moderate and a weak promise.
_STRONG, _MODERATE, _WEAK = 0.60, 0.80, 0.95

# What an attacker tries, by the name of its bound, and what guessing reaches.
_ATTEMPTS = (
    (
        "auc",
        "Distinguished",
        "shown data made with a learner and data made without, the attacker picks the right one",
        0.5,
    ),
    (
        "tpr_at_1pct",
        "Found",
        "the attacker is right about a learner whose record was used, and accuses one other in 100",
        0.01,
    ),
    (
        "guessed_from_half",
        "Guessed",
        "a fact about a learner that would be a coin flip without the data",
        0.5,
    ),
    (
        "singled_out_from_1_in_1000",
        "Singled out",
        "a description that fits one person in 1,000 fits the learner",
        0.001,
    ),
)


def _headline(claim: str, guarantee: Guarantee) -> str:
    """The claim with what it does not cover."""
    return "; ".join((claim, *(caveat.headline or str(caveat) for caveat in guarantee.caveats)))


def _epsilon_in_words(guarantee: Guarantee) -> str:
    words = f"Epsilon {guarantee.epsilon:g} is how wide these limits are; smaller is stronger."
    if guarantee.delta:
        words += (
            f" Delta {guarantee.delta:.2e} is the small chance, about 1 in {1 / guarantee.delta:,.0f}, "
            "that they do not cover."
        )
    return words


def _strength_in_words(auc: float) -> str:
    strength = next(
        words
        for limit, words in (
            (_STRONG, "That is close to guessing."),
            (_MODERATE, "That is better than guessing and far from certain."),
            (_WEAK, "Such an attacker may do far better than guessing; a smaller epsilon promises more."),
            (1.00, "Against such an attacker this guarantee alone promises little."),
        )
        if auc <= limit
    )
    return (
        "Below is the most that any attacker can reach, even one who knows the method, all other learners, and all "
        f"about one learner except whether the record was used. {strength}"
    )
