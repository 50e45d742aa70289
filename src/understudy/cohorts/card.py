"""The data card of a synthetic cohort: what travels with it, for a board and for machines.

Everything on it follows from the private summary and from the synthetic cohort, so it costs nothing and
may leave: no figure here was measured on the real learners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import LEARNER, Schema
from understudy.cohorts.summary.summary_file import PrivateSummary, zero_shares
from understudy.core.pages.card import (
    MISUSES,
    NOT_PUBLISHED,
    USES,
    guarantee_in_words,
    protection_verdict,
    with_caveats,
)
from understudy.core.pages.render import render
from understudy.core.privacy.guarantee import Guarantee

N_EXAMPLE_ROWS = 6
COMPARED = (
    "Beside the limit that is proved above, the custodian can measure inside how often an attacker picks the learners "
    "behind such data: one who sees the noisy summary itself, and the strongest on synthetic cohorts."
)
_Z = 1.96


def synthetic_schema(summary: PrivateSummary, guarantee: Guarantee | None = None) -> Schema:
    """The schema of a cohort that was made from a summary: it states that its learners do not exist.

    `guarantee` is the cohort's, where more went in than the summary; the ledger's name of the real learners
    is not the synthetic ones'.
    """
    declared = summary.schema
    title = f"Synthetic: {declared.title}" if declared.title else "Synthetic cohort"
    statement = (
        "SYNTHETIC DATA: these learners do not exist. They were made from a private summary of "
        f"{'simulated' if summary.provenance.get('simulated') else 'real'} learners, whose guarantee they keep: "
        f"{guarantee or summary.guarantee}."
    )
    context = f"{statement} About the original cohort: {declared.context}" if declared.context else statement
    return replace(declared, title=title, context=context, data_set="")


def cohort_card(
    summary: PrivateSummary,
    cohort: Cohort,
    *,
    authors: Sequence[str],
    files: Sequence[str],
    made: str,
    version: str,
    guarantee: Guarantee | None = None,
) -> dict[str, Any]:
    """Everything on the card; `authors` wrote the scripts, `files` are what is to be shared with it.

    `guarantee` is the cohort's, where more went in than the summary.
    """
    guarantee = guarantee or summary.guarantee
    schema = summary.schema
    simulated = summary.provenance.get("simulated") is True
    source = "simulated learners" if simulated else "real learners"
    return {
        "title": synthetic_schema(summary).title,
        "verdict": with_caveats(
            f"The learners in this file are invented{';' if guarantee.formal else ', and'} "
            f"{protection_verdict(guarantee)}",
            guarantee,
        ),
        "what": (
            f"A synthetic cohort of {cohort.n_learners:,} learners who do not exist. Programs invented them from a "
            f"noisy summary of {summary.n_learners:,} {source}; none of these programs saw a record."
        ),
        "provenance": {
            "summary_card": summary.provenance.get("card"),
            "scripts_by": list(authors),
            "made": made,
            "version": version,
            "simulated": simulated,
        },
        "files": list(files),
        "n_learners": cohort.n_learners,
        "n_features": schema.n_features,
        "n_weeks": schema.n_weeks,
        "guarantee": guarantee.to_json(),
        "protection": _protection(guarantee),
        "uses": list(USES[:2]),
        "misuses": list(MISUSES),
        "expected": expected_errors(summary, cohort),
        "columns": _columns(schema),
        "examples": _examples(cohort),
        "measured_note": f"{NOT_PUBLISHED} {COMPARED}",
    }


def _protection(guarantee: Guarantee) -> dict[str, Any]:
    """The words of every card about a guarantee, and those of cohorts."""
    words = guarantee_in_words(guarantee)
    if not guarantee.formal:
        protects = ["The learners were drawn by programs that read sums over all learners, and no record."]
        lacks = [
            "Learners with rare habits. Nothing limits what the sums reveal about them.",
            "Against an attacker who knows more. Nothing limits what can be worked out, today or later.",
        ]
    else:
        protects = [
            "Each learner, up to the limits above: whether they were in the original cohort, when they worked, and "
            "how they did.",
            "This stays true for everything that is computed from this data.",
        ]
        lacks = [
            "What is true of learners in general. If most of them rest in one week, the data shows it, and that is "
            "information about every learner.",
            "Against other releases about the same learners. Their epsilons add up; the custodian keeps count.",
            "What was declared and is taken as public: the number of learners, the features with their bounds, the "
            "labels, and the custodian's own description.",
        ]
    return {**words, "protects": protects, "does_not_protect": lacks}


def expected_errors(summary: PrivateSummary, cohort: Cohort) -> list[dict[str, Any]]:
    """How far shares may be off: by the noise of the summary, and by the size of this cohort.

    Half of a 95 % interval each. The first is known from the summary alone, the second from the synthetic
    learners alone; the error of the programs is added to both and is not predicted.
    """
    schema = summary.schema
    rows = []
    counts = summary.statistics.get("labels")
    if counts is not None:
        largest = float(np.bincount(cohort.label, minlength=schema.n_labels).max()) / cohort.n_learners
        rows.append(
            {
                "of": f"share of one value of {schema.label}",
                "noise": _Z * float(np.max(counts.noise_sd)) / summary.n_learners,
                "size": _Z * float(np.sqrt(largest * (1 - largest) / cohort.n_learners)),
            }
        )
    idle = zero_shares(summary)
    if idle is not None:
        own = (cohort.values == 0).mean(axis=2)
        for place, feature in enumerate(schema.features):
            groups = [own[cohort.label == label, place] for label in range(schema.n_labels)]
            errors = [float(group.std(ddof=1) / np.sqrt(len(group))) for group in groups if len(group) > 1]
            rows.append(
                {
                    "of": f"{feature.name}: share of weeks at 0, for one value of {schema.label}",
                    "noise": _Z * float(idle[1][:, place].max()),
                    "size": _Z * max(errors) if errors else None,
                }
            )
    return rows


def _columns(schema: Schema) -> list[dict[str, str]]:
    names = schema.columns()
    found = [{"column": LEARNER, "meaning": "a number; the learner does not exist"}]
    for place, feature in enumerate(schema.features):
        weeks = names[place * schema.n_weeks : (place + 1) * schema.n_weeks]
        found.append(
            {
                "column": f"{weeks[0]} to {weeks[-1]}",
                "meaning": f"{feature.unit} in each week, from 0 to {feature.high:g}",
            }
        )
    found.append({"column": schema.label, "meaning": ", ".join(schema.labels)})
    return found


def _examples(cohort: Cohort) -> list[dict[str, Any]]:
    """The first rows, with the first week of every feature."""
    weeks = cohort.schema.columns()[:: cohort.schema.n_weeks]
    shown = cohort.to_polars().select([LEARNER, *weeks, cohort.schema.label])
    found: list[dict[str, Any]] = shown.head(N_EXAMPLE_ROWS).to_dicts()
    return found


def cohort_card_page(content: dict[str, Any]) -> str:
    """The card as a page."""
    return render("cohorts/card.html", card=content)
