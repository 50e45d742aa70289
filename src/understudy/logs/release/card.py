"""The data card: what travels with the data, in words for a board and in JSON for machines.

The card holds what is proved and what can be computed from the synthetic data alone. Measured
figures are functions of the real data: they stay in the report unless the custodian publishes
them, rounded, with the sentence that no guarantee covers them.
"""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from typing import Any

import numpy as np
from polars import selectors

from understudy.core.files.words import counted, listed
from understudy.core.files.writing import TIMES_AS_TEXT
from understudy.core.names import SYNTHETIC_PREFIX
from understudy.core.pages.card import (
    FIGURES_PUBLISHED,
    MISUSES,
    NOT_COVERED,
    NOT_PUBLISHED,
    RISK_ACCEPTED,
    USES,
    guarantee_in_words,
)
from understudy.core.pages.levels import levels_figure, risk_levels
from understudy.core.pages.render import render
from understudy.core.pages.words import certainty, verdict
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.generators.expected_error import NOISE
from understudy.logs.generators.forecast import USES as FORESEEN_USES
from understudy.logs.generators.forecast import forecast
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.histograms import MOST_NAMED, portrait
from understudy.logs.interactions import POOLED, Interactions
from understudy.logs.release.accuracy import uses_of, verdict_of
from understudy.logs.release.assessment import Assessment
from understudy.logs.release.codebook import codebook, n_occurring
from understudy.logs.utility import METRICS

N_EXAMPLE_ROWS = 8
# From this share of attempts on, the card's first sentence says that names were not released.
MUCH_POOLED = 0.05
# What is pooled is where learners' rows are the most, so clipping takes more of it: the share that is believed was 0.75
# to 0.9 of the real one on simulated classrooms of 100 and 300 learners with 40 actions.
CLIPPED_MORE = 1.2


def card_content(
    synthetic: Interactions,
    generator: Generator,
    assessment: Assessment,
    provenance: dict[str, Any],
    *,
    title: str,
    accepted_risk: str,
    declared: str,
    publish_figures: bool,
    asked: str = "",
) -> dict[str, Any]:
    """Everything on the card; `asked` says what risk the custodian asked for."""
    guarantee = with_decisions(generator.guarantee_, accepted_risk, publish_figures)
    expected = expected_errors(synthetic, generator, guarantee)
    uses = uses_of(expected, synthetic.n_rows, synthetic.n_learners)
    return {
        "title": title or f"Synthetic log of learners' actions {provenance['card'][:6]}",
        "verdict": verdict_of(guarantee, uses, keeps_rows=generator.keeps_rows),
        "what": what_it_is(synthetic, generator.keeps_rows),
        "provenance": provenance,
        "n_learners": synthetic.n_learners,
        "n_rows": synthetic.n_rows,
        "n_actions": n_occurring(synthetic),
        "guarantee": guarantee.to_json(),
        "protection": protection(guarantee, synthetic, generator.keeps_rows),
        "asked": asked,
        "declared_guarantee": declared,
        "accepted_risk": accepted_risk,
        "uses": list(USES),
        "misuses": list(MISUSES),
        "expected": expected,
        "accuracy": [dict(vars(use)) for use in uses],
        # Of a method without a guarantee they would say what only its exact sums say.
        "notes": list(generator.details_.notes) if guarantee.formal else [],
        "limits": limits(synthetic, generator.keeps_rows),
        "columns": list(csv.DictReader(io.StringIO(codebook(synthetic, generator.keeps_rows)))),
        "examples": _examples(synthetic),
        "measured": published(assessment, guarantee) if publish_figures else None,
        "measured_note": NOT_COVERED if publish_figures else NOT_PUBLISHED,
    }


def _examples(synthetic: Interactions) -> list[dict[str, Any]]:
    """The first rows, with times as text."""
    rows = synthetic.to_polars(SYNTHETIC_PREFIX).head(N_EXAMPLE_ROWS)
    return rows.with_columns(selectors.temporal().dt.to_string(TIMES_AS_TEXT)).to_dicts()


def with_decisions(guarantee: Guarantee, accepted_risk: str, publish_figures: bool) -> Guarantee:
    """The guarantee with what the custodian decided beside it; a proved one needs no risk accepted."""
    decided = (
        (RISK_ACCEPTED, bool(accepted_risk) and not guarantee.formal),
        (FIGURES_PUBLISHED, publish_figures),
    )
    return guarantee.with_caveats(*(caveat for caveat, holds in decided if holds))


def what_it_is(synthetic: Interactions, keeps_rows: bool) -> str:
    """The first sentence of the card. Rows that were kept belong to learners who do exist."""
    source = "a simulated classroom" if synthetic.simulated else "real learners"
    more = [
        *(["their outcomes"] if synthetic.outcome is not None else []),
        *(["their times"] if synthetic.has_times else []),
        *([counted(len(synthetic.columns), "declared column")] if synthetic.columns else []),
    ]
    size = (
        f"{synthetic.n_rows:,} attempts at {n_occurring(synthetic):,} actions"
        f"{f' with {listed(more)}' if more else ''}, by {synthetic.n_learners:,} learners"
    )
    if keeps_rows:
        return f"What is left of a log of {source}: {size} under new numbers. No row was invented."
    what = f"A synthetic log, made to resemble a log of {source}: {size} who do not exist."
    if (pooled := pooled_share(synthetic)) > MUCH_POOLED:
        what += (
            f" For {100 * pooled:.0f} % of the attempts the data does not tell at which action: too few learners share "
            f"these actions, which are pooled as '{POOLED}'."
        )
    return what


def limits(synthetic: Interactions, keeps_rows: bool) -> list[str]:
    """What does not go together in the data, however many learners there are: relations that no method here learns."""
    if keeps_rows:
        return []
    sentences = []
    if synthetic.row_columns:
        outcome = "" if synthetic.outcome is None else " and outcome"
        sentences.append(
            f"A column of attempts follows their action{outcome}, and not the learner: that one learner has the same "
            "value again and again does not show."
        )
    if synthetic.learner_columns:
        sentences.append(
            "A column of learners follows how much they did"
            + (", " if synthetic.outcome is None else ", how often they succeeded, ")
            + "and other columns of learners, where such a relation stands out from the noise"
            + (
                "; it follows neither times nor single actions."
                if synthetic.has_times
                else ", not single actions."
            )
        )
    if synthetic.has_times:
        sentences.append(
            "Times follow the order of actions and a learner's own pace; a learner's favourite hours do not show."
        )
    return sentences


def protection(guarantee: Guarantee, synthetic: Interactions, keeps_rows: bool) -> dict[str, Any]:
    """What the data protects and what it does not, in plain words."""
    outcomes, times = synthetic.outcome is not None, synthetic.has_times
    if guarantee.formal:
        about = [
            "whether they were in the original log",
            "what they did",
            *(["when they did it"] if times else []),
            *(["how it went"] if outcomes else []),
            *(["what the declared columns say about them"] if synthetic.columns else []),
        ]
        public = [
            *(
                ["the resolution of its times and, where they were declared, the days of its term"]
                if times
                else []
            ),
            *(["the categories and bounds that were declared of its columns"] if synthetic.columns else []),
        ]
        protects = [
            f"Each learner, up to the limits above: {listed(about)}.",
            "This stays true for everything that is computed from this data.",
        ]
        lacks = [
            "What is true of learners in general. "
            + (
                "If most fail at an action, the data shows it, and that says something about every learner who tried "
                "it."
                if outcomes
                else "If most do one thing after another, the data shows it, and that says something about every "
                "learner who did the first."
            ),
            "Against other releases about the same learners. Their epsilons add up; the custodian keeps count.",
            "The number of learners, which is taken as public, and the names of actions, which were declared "
            "to be public or are shared by many learners.",
            *([f"What was declared about the original log: {listed(public)}."] if public else []),
        ]
    else:
        made = "The learners were drawn from a model and not copied from records."
        kept = "The rows are rows of learners in the original log; only the learners were renumbered."
        protects = [
            "It has no columns for names or addresses, only those listed below."
            if times
            else "It has no columns for names, addresses or times, only those listed below.",
            "The labels of the learners are new. They were counted, not taken from the original log.",
            *([] if keeps_rows else [made]),
        ]
        lacks = [
            *([kept] if keeps_rows else []),
            "Learners with a rare record. What only one or two of them ever did may show"
            + (", and few learners share their times." if times else "."),
            "Against an attacker who knows more. Nothing limits what can be worked out, today or later.",
            "The names of the actions. They are as in the original log, and one that a single learner "
            "attempted may be among them.",
            "The size of the original log. Unless the custodian chose otherwise, it had as many learners, "
            "and no sequence here is longer than its longest.",
        ]
    return {**guarantee_in_words(guarantee), "protects": protects, "does_not_protect": lacks}


def pooled_share(synthetic: Interactions) -> float:
    """The share of attempts at actions whose names were not released."""
    if POOLED not in synthetic.actions or not synthetic.n_rows:
        return 0.0
    return float(np.mean(synthetic.action == synthetic.actions.index(POOLED)))


def _unnamed(generator: MarkovDP) -> float:
    """The share of attempts whose actions have no name, by the noisy sums; none if it may be noise alone."""
    believed = float(generator.popularity_[generator.actions_.index(POOLED)])
    return 0.0 if believed < 2.0 * generator.share_noise_ else min(1.0, CLIPPED_MORE * believed)


def expected_errors(
    synthetic: Interactions, generator: Generator, guarantee: Guarantee
) -> dict[str, Any] | None:
    """Errors foreseen from the guarantee and the synthetic log alone; None where there is no forecast for a method.

    How much of a fit is signal is computed from noisy sums only, so it may be shown.
    """
    if not guarantee.formal or not isinstance(generator, MarkovDP):
        return None
    rows, names = synthetic.n_rows / max(synthetic.n_learners, 1), synthetic.actions
    expect = partial(
        forecast,
        # The fit is as exact as its learners make it, however many synthetic ones are drawn.
        generator.n_learners_,
        len(names),
        epsilon=guarantee.epsilon,
        pooled=_unnamed(generator) if generator.found_names_ else None,
        drawn=synthetic.n_learners,
        delta=generator.delta,
        in_order=getattr(generator, "in_order_", False),
        outcomes=generator.has_outcomes_,
        details=generator.detail_shares_,
        columns=[column.declared for column in synthetic.columns],
    )
    foreseen = expect(rows)
    # The original may have had fewer rows, by so much: what would be noise then is not called anything better.
    noisy = expect(rows / generator.rows_factor_).mostly_noise_for
    errors: dict[str, Any] = {
        use: foreseen.of(use).to_json(mostly_noise=use in noisy) if use in foreseen.foreseen else None
        for use in FORESEEN_USES
    }
    return {
        **errors,
        "success_rate": generator.success_error_ if generator.has_outcomes_ else None,
        "rows_factor": generator.rows_factor_,
        "longest": generator.longest_,
        "unseen": generator.unseen_,
        "signal": {name: round(share, 2) for name, share in generator.signal_.items()},
        "times": {use: error.to_json() for use, error in foreseen.times.items()},
        "columns": {
            name: {"most": most, "given": list(generator.details_.columns.given[name])}
            for name, most in foreseen.columns.items()
        },
    }


def published(assessment: Assessment, guarantee: Guarantee) -> dict[str, Any]:
    """Measured figures, rounded to two digits, for a card."""
    worst, most_found = assessment.worst, assessment.most_found
    auc, low, high = (round(figure, 2) for figure in (worst.auc, assessment.low, assessment.high))
    return {
        "statement": NOT_COVERED,
        "verdict": verdict(worst.attack, auc, low, high),
        "certainty": certainty(assessment, assessment.chance),
        "levels": [
            dict(vars(level)) for level in risk_levels(guarantee, assessment.strongest, assessment.white_box)
        ],
        "strongest_attack": worst.attack,
        "auc": auc,
        "auc_low": low,
        "auc_high": high,
        "tpr_attack": most_found.attack,
        "tpr_at_1pct": round(most_found.tpr_at_1pct, 2),
        "tpr_at_1pct_low": round(assessment.found_low, 2),
        "tpr_at_1pct_high": round(assessment.found_high, 2),
        "utility": {name: round(value, 2) for name, value in assessment.utility.items()},
        "metrics": [
            {"name": m.name, "meaning": m.meaning, "best": m.best, "direction": m.direction}
            for m in METRICS
            if m.name in assessment.utility
        ],
    }


def card_page(content: dict[str, Any], synthetic: Interactions) -> str:
    """The card as a page, with a picture of the data that it goes with."""
    measured = content["measured"]
    figure = None if measured is None else levels_figure(measured["levels"])
    return render(
        "logs/release/card.html",
        card=content,
        levels_figure=figure,
        portrait=portrait(synthetic),
        n_named=min(MOST_NAMED, content["n_actions"]),
        noisy=bool(content["accuracy"]) and content["accuracy"][0]["grade"] == NOISE,
    )


def citation(card: dict[str, Any]) -> str:
    """A CITATION.cff for the data set; its values are JSON strings, which YAML reads too."""
    author = card["provenance"]["custodian"] or "The data's custodian"
    lines = [
        "cff-version: 1.2.0",
        "type: dataset",
        "message: " + json.dumps("Please cite this synthetic data set with its card.", ensure_ascii=False),
        "title: " + json.dumps(card["title"], ensure_ascii=False),
        "authors:",
        "  - name: " + json.dumps(author, ensure_ascii=False),
        "date-released: " + json.dumps(card["provenance"]["made"]),
        "version: " + json.dumps(card["provenance"]["card"]),
        "abstract: " + json.dumps(card["what"], ensure_ascii=False),
    ]
    return "\n".join(lines) + "\n"
