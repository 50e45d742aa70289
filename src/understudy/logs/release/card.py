"""The data card: what travels with the data, in words for a board and in JSON for machines.

The card holds what is proved and what can be computed from the synthetic data alone. Measured
figures are functions of the real data: they stay in the report unless the custodian publishes
them, rounded, with the sentence that no guarantee covers them.
"""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np
from scipy.stats import norm

from understudy.core.pages.render import render
from understudy.core.pages.words import certainty, in_100, sentence, verdict
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.generators.budget import predict
from understudy.logs.generators.generator import Synthesizer
from understudy.logs.interactions import Interactions
from understudy.logs.release.assessment import Assessment
from understudy.logs.release.codebook import codebook, n_occurring
from understudy.logs.utility import METRICS

NOT_COVERED = "These figures were computed from the real data, and no guarantee covers them."

NOT_PUBLISHED = "Figures measured on the real data are with the custodian and are not on this card."

N_EXAMPLE_ROWS = 8

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


def card_content(
    synthetic: Interactions,
    synthesizer: Synthesizer,
    guarantee: Guarantee,
    assessment: Assessment,
    options: Any,
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Everything on the card."""
    return {
        "title": options.title or f"Synthetic log of learners' actions {provenance['card'][:6]}",
        "what": what_it_is(synthetic, synthesizer.keeps_rows),
        "provenance": provenance,
        "n_learners": synthetic.n_learners,
        "n_rows": synthetic.n_rows,
        "n_actions": n_occurring(synthetic),
        "guarantee": guarantee.to_json(),
        "protection": protection(guarantee, synthesizer.keeps_rows),
        "accepted_risk": options.accept_risk,
        "uses": list(USES),
        "misuses": list(MISUSES),
        "expected": expected_errors(synthetic, synthesizer, guarantee),
        "accuracy": sampling_accuracy(synthetic),
        "columns": list(csv.DictReader(io.StringIO(codebook(synthetic, synthesizer.keeps_rows)))),
        "examples": synthetic.to_frame("synthetic-").head(N_EXAMPLE_ROWS).to_dicts(),
        "measured": published(assessment) if options.publish_figures else None,
        "measured_note": NOT_COVERED if options.publish_figures else NOT_PUBLISHED,
    }


def what_it_is(synthetic: Interactions, keeps_rows: bool) -> str:
    """The first sentence of the card. Rows that were kept belong to learners who do exist."""
    source = "a simulated classroom" if synthetic.simulated else "real learners"
    size = (
        f"{synthetic.n_rows:,} attempts at {n_occurring(synthetic):,} actions with their outcomes, "
        f"by {synthetic.n_learners:,} learners"
    )
    if keeps_rows:
        return f"What is left of a log of {source}: {size} under new numbers. No row was invented."
    return f"A synthetic log, made to resemble a log of {source}: {size} who do not exist."


def protection(guarantee: Guarantee, keeps_rows: bool) -> dict[str, Any]:
    """What the data protects and what it does not, in plain words."""
    return _proved(guarantee) if guarantee.formal else _unproved(guarantee, keeps_rows)


def _unproved(guarantee: Guarantee, keeps_rows: bool) -> dict[str, Any]:
    made = "The learners were drawn from a model and not copied from records."
    kept = "The rows are rows of learners in the original log; only the learners were renumbered."
    return {
        "headline": "No formal guarantee",
        "explanation": [
            sentence(
                f"Why: {guarantee.reason}" if guarantee.reason else "Why: none was claimed by the method"
            ),
            "This means that nothing is proved about how well this data hides the learners behind it. "
            "They could partly be recognised: somebody who knows much of what a learner did may find out "
            "whether that learner's record was used, and perhaps more.",
        ],
        "worst_case": None,
        "protects": [
            "It has no columns for names, addresses or times, only those listed below.",
            "The labels of the learners are new. They were counted, not taken from the original log.",
            *([] if keeps_rows else [made]),
        ],
        "does_not_protect": [
            *([kept] if keeps_rows else []),
            "Learners with a rare record. What only one or two of them ever did may show.",
            "Against somebody who knows more. Nothing limits what can be worked out, today or later.",
            "The names of the actions. They are as in the original log, and one that a single learner "
            "attempted may be among them.",
            "The size of the original log. Unless the custodian chose otherwise, it had as many learners, "
            "and no sequence here is longer than its longest.",
        ],
    }


def _proved(guarantee: Guarantee) -> dict[str, Any]:
    bound = worst_case(guarantee)
    delta = f", delta {guarantee.delta:.2e}" if guarantee.delta else ""
    return {
        "headline": f"Formal guarantee: epsilon {guarantee.epsilon:g}{delta}",
        "explanation": [
            "It is proved that any one learner could change this data only within limits. This holds for "
            f"{guarantee.unit}, whatever a reader of the data knows already or finds out later.",
            _epsilon_in_words(guarantee),
            _worst_case_in_words(bound),
        ],
        "worst_case": bound,
        "protects": [
            "Each learner, up to the limits above: whether they were in the original log, what they did "
            "and how it went.",
            "This stays true for everything that anybody computes from this data.",
        ],
        "does_not_protect": [
            "What is true of learners in general. If most fail at an action, the data tells, and that says "
            "something about everybody who tried it.",
            "Against other releases about the same learners. Their epsilons add up; the custodian keeps count.",
            "The number of learners, which is taken as public, and the names of actions, which were declared "
            "to be public or are shared by many learners.",
        ],
    }


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
        f"is right about at most {found} of 100 learners; guessing gives one. {strength}"
    )


def worst_case(guarantee: Guarantee) -> dict[str, float]:
    """The most that any attack on one learner can reach under a guarantee, rounded up to percents.

    Testing one learner against another in their place has the power 1 - f(alpha) at false-alarm
    rate alpha, where f(alpha) = max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha))
    (Wasserman and Zhou 2010; Kairouz et al. 2015): the area under it is
    1 - (1 - delta)^2 / (1 + e^epsilon). With mu, f(alpha) = Phi(Phi^-1(1 - alpha) - mu) and the
    area is Phi(mu / sqrt 2) (Dong et al. 2022). Where a mechanism is Gaussian up to a factor
    e^slack, the power is at most e^slack Phi(Phi^-1(e^slack alpha) + mu) + delta (the proof's far tail is
    part of delta, since the curve is concave). All that is known holds, so the smallest does.
    """
    epsilon, delta, alpha = guarantee.epsilon, guarantee.delta, 0.01
    # In terms of e^-epsilon, which a large epsilon does not overflow.
    shrink = math.exp(-epsilon)
    auc = 1.0 - (1.0 - delta) ** 2 * shrink / (1.0 + shrink)
    power = 1.0 - shrink * (1.0 - delta - alpha)
    if epsilon < 50:
        power = min(power, math.exp(epsilon) * alpha + delta)
    if guarantee.mu is not None:
        auc = min(auc, float(norm.cdf(guarantee.mu / math.sqrt(2))))
        power = min(power, float(norm.cdf(norm.ppf(alpha) + guarantee.mu)))
    if guarantee.rho is not None and guarantee.slack is not None:
        mu, factor = math.sqrt(2.0 * guarantee.rho), math.exp(guarantee.slack)
        # Right ends of ten thousand steps: the power grows with alpha, so the sum is above the area.
        steps = np.append(np.arange(1, 10_001) / 10_000, alpha)
        powers = np.minimum(1.0, factor * norm.cdf(norm.ppf(np.minimum(1.0, factor * steps)) + mu) + delta)
        auc, power = min(auc, float(powers[:-1].mean())), min(power, float(powers[-1]))
    return {"auc": _rounded_up(auc), "tpr_at_1pct": _rounded_up(power)}


def _rounded_up(share: float) -> float:
    # A bound may not shrink by rounding; the allowance is for 0.57 * 100 = 56.99999999999999 and its like.
    return min(1.0, math.ceil(100 * share - 1e-9) / 100)


def expected_errors(
    synthetic: Interactions, synthesizer: Synthesizer, guarantee: Guarantee
) -> dict[str, Any] | None:
    """Errors predicted from the guarantee and the synthetic log alone; None without a guarantee.

    How much of a fit is signal is computed from noisy sums only, so it may be told.
    """
    if not guarantee.formal:
        return None
    rows = synthetic.n_rows / max(synthetic.n_learners, 1)
    # The fit is as exact as its learners make it, however many synthetic ones are drawn.
    n_learners: int = getattr(synthesizer, "n_learners_", synthetic.n_learners)
    prediction = predict(n_learners, n_occurring(synthetic), rows, guarantee.epsilon)
    signal: dict[str, float] = getattr(synthesizer, "signal_", {})
    return {
        "action_shares": prediction.action_shares,
        "difficulty": prediction.difficulty,
        "signal": {name: round(share, 2) for name, share in signal.items()},
    }


def sampling_accuracy(synthetic: Interactions) -> list[dict[str, Any]]:
    """How exact the synthetic log can be by its size alone, computed from nothing but itself.

    The method's own error comes on top. A success rate is uncertain by 1.96 standard errors that
    count learners, not rows, since the rows of a learner are alike; an action in the middle of
    the list by popularity stands for a typical one.
    """
    rows = np.bincount(synthetic.action, minlength=synthetic.n_actions)
    popular = np.argsort(-rows)[: int((rows > 0).sum())]
    picks = (("the most frequent action", popular[0]), ("a typical action", popular[len(popular) // 2]))
    return [
        {
            "of": f"success rate of {name}",
            "rows": int(rows[code]),
            "plus_minus": _uncertainty(synthetic, code),
        }
        for name, code in picks
    ]


def _uncertainty(synthetic: Interactions, action: int) -> float:
    """Half the width of a 95 % interval of an action's success rate, learners being the sample."""
    mine = synthetic.action == action
    attempts = np.bincount(synthetic.learner[mine], minlength=synthetic.n_learners)
    successes = np.bincount(synthetic.learner[mine], synthetic.outcome[mine], synthetic.n_learners)
    rate = (successes.sum() + 1.0) / (attempts.sum() + 2.0)
    error = np.sqrt(((successes - rate * attempts) ** 2).sum()) / attempts.sum()
    return float(min(0.5, 1.96 * error))


def published(assessment: Assessment) -> dict[str, Any]:
    """Measured figures, rounded to two digits, for a card."""
    worst = assessment.worst
    auc, low, high, tpr = (
        round(figure, 2) for figure in (worst.auc, assessment.low, assessment.high, worst.tpr_at_1pct)
    )
    return {
        "statement": NOT_COVERED,
        "verdict": verdict(worst.attack, auc, low, high),
        "certainty": certainty(low, high, tpr),
        "strongest_attack": worst.attack,
        "auc": auc,
        "auc_low": low,
        "auc_high": high,
        "tpr_at_1pct": tpr,
        "utility": {name: round(value, 2) for name, value in assessment.utility.items()},
        "metrics": [
            {"name": m.name, "meaning": m.meaning, "best": m.best, "direction": m.direction} for m in METRICS
        ],
    }


def card_page(content: dict[str, Any]) -> str:
    """The card as a page."""
    return render("logs/release/card.html", card=content)
