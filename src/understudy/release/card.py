"""The data card: what travels with the data, in words for a board and in JSON for machines.

The card holds what is proved and what can be computed from the synthetic data alone. Measured
figures are functions of the real data: they stay in the report unless the custodian publishes
them, rounded, with the sentence that no guarantee covers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.pages import render
from understudy.records import Interactions
from understudy.release.assessment import Assessment
from understudy.synthesis import Synthesizer

NOT_COVERED = "These figures were computed from the real data, and no guarantee covers them."

N_EXAMPLE_ROWS = 8


def card_content(
    synthetic: Interactions,
    synthesizer: Synthesizer,
    assessment: Assessment,
    options: Any,
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Everything on the card."""
    kind = "a simulated classroom" if synthetic.simulated else "real learners"
    title = options.title or f"Synthetic log of learners' actions {provenance['card'][:6]}"
    return {
        "title": title,
        "what": (
            f"A synthetic log of {synthetic.n_learners:,} learners who do not exist: {synthetic.n_rows:,} attempts "
            f"at {synthetic.n_actions:,} actions with their outcomes, made to resemble a log of {kind}."
        ),
        "provenance": provenance,
        "n_learners": synthetic.n_learners,
        "n_rows": synthetic.n_rows,
        "n_actions": synthetic.n_actions,
        "guarantee": synthesizer.guarantee.to_json(),
        "accepted_risk": options.accept_risk,
        "accuracy": sampling_accuracy(synthetic),
        "examples": synthetic.to_frame("synthetic-").head(N_EXAMPLE_ROWS).to_dicts(),
        "measured": published(assessment) if options.publish_figures else None,
    }


def sampling_accuracy(synthetic: Interactions) -> list[dict[str, Any]]:
    """How exact the synthetic log can be by its size alone, computed from nothing but itself.

    A share estimated from n synthetic rows is uncertain by up to 1 / sqrt(n) (95 %, whatever
    the share); an action in the middle of the list by popularity stands for a typical one.
    """
    rows = np.sort(np.bincount(synthetic.action, minlength=synthetic.n_actions))[::-1]
    rows = rows[rows > 0]
    picks = (("the most frequent action", rows[0]), ("a typical action", rows[len(rows) // 2]))
    return [
        {"of": f"success rate of {name}", "rows": int(n), "plus_minus": float(min(0.5, 1.0 / np.sqrt(n)))}
        for name, n in picks
    ]


def published(assessment: Assessment) -> dict[str, Any]:
    """Measured figures, rounded to two digits, for a card."""
    return {
        "statement": NOT_COVERED,
        "strongest_attack": assessment.worst.attack,
        "auc": round(assessment.worst.auc, 2),
        "auc_low": round(assessment.low, 2),
        "auc_high": round(assessment.high, 2),
        "tpr_at_1pct": round(assessment.worst.tpr_at_1pct, 2),
        "utility": {name: round(value, 2) for name, value in assessment.utility.items()},
    }


def card_page(content: dict[str, Any]) -> str:
    """The card as a page."""
    return render("release/card.html", card=content)
