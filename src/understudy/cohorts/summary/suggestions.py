"""Suggestions for the next cycle: sentences for prompts, factors for the budget's shares, validated effects.

They come from feedback, which is output of stage two (validation on the real data) and is treated as public, as by
Ito, Hsu and Ogata (2026, section III-E). It has a price: no epsilon covers stage two, and what both stages reveal
together is measured, not proved (findings, section 5). Nothing here makes that price larger or smaller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import truncnorm

from understudy.cohorts.schema import KINDS, SUGGESTIONS_FORMAT, kind_of_file
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.budget import Plan, check_accounting
from understudy.cohorts.summary.previous_year import own_noise, remade
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.files.documents import ContractError, checked, contract, parse_json, read_text
from understudy.errors import DataError

VERSION = 1
MOST_SUGGESTIONS = 30
LONGEST_SUGGESTION = 500

PRICE = (
    "Feedback comes from validation on the real data, which no epsilon covers: its price is measured by "
    "attacks, and is not in the guarantee of any summary."
)

# The share of active weeks, and the size of values in active weeks.
Habit = Literal["active", "l"]


@dataclass(frozen=True)
class Effect:
    """The relation of a habit to the label that validation found: up, down, or none that it could see.

    `share` is the mean direction of the findings behind it, from -1 to 1.
    """

    __pydantic_config__: ClassVar = contract()

    feature: str
    habit: Habit
    share: float
    n_findings: int

    def __post_init__(self) -> None:
        if abs(self.share) > 1:
            raise ContractError(
                "the share of an effect is from -1 to 1.", hint="`cohort improve` writes it.", key="share"
            )


@dataclass(frozen=True)
class Suggestions:
    """For the next cycle: sentences for prompts, factors for the budget's shares, validated effects."""

    __pydantic_config__: ClassVar = contract(sentences="suggestions", n_learners="validated_on")

    sentences: tuple[str, ...]
    budget: Mapping[str, float] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    n_learners: int = 100
    written_by: str = "rules"

    def __post_init__(self) -> None:
        if not all(name in MEASURES and 0.1 <= factor <= 10 for name, factor in self.budget.items()):
            raise ContractError(
                "the budget holds factors from 0.1 to 10 for statistics of a summary.",
                hint="`cohort improve` writes it.",
                key="budget",
            )
        if self.n_learners < 1:
            raise ContractError(
                "validation was on at least one learner.",
                hint="`cohort improve` writes it.",
                key="validated_on",
            )

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": SUGGESTIONS_FORMAT,
            "version": VERSION,
            "suggestions": list(self.sentences),
            "budget": dict(self.budget),
            "effects": [dict(vars(effect)) for effect in self.effects],
            "validated_on": self.n_learners,
            "written_by": self.written_by,
            "price": PRICE,
        }


def read_suggestions(path: Path) -> Suggestions:
    """What `cohort improve` wrote; or sentences alone: one per line, or JSON (a list, or one in `suggestions`)."""
    hint = "`understudy cohort improve` makes them from feedback."
    refuse_other_kinds(path, "suggestions", hint, "suggestions")
    text = read_text(path, hint=hint)
    if not text.lstrip().startswith(("[", "{")):
        lines = [line.strip().removeprefix("- ") for line in text.splitlines() if not line.startswith("#")]
        return Suggestions(_sentences(lines, path))
    content = parse_json(path)[1]
    if not isinstance(content, dict) or content.get("format") != SUGGESTIONS_FORMAT:
        found = content.get("suggestions") if isinstance(content, dict) else content
        if not isinstance(found, list) or not all(isinstance(sentence, str) for sentence in found):
            raise DataError(f"{path.name} holds no list of sentences.", hint='write ["...", "..."].')
        return Suggestions(_sentences(found, path))
    if content.get("version") != VERSION:
        raise DataError(
            f"{path.name} has a version that is not known.", hint="`cohort improve` writes it anew."
        )
    known = {key: value for key, value in content.items() if key not in ("format", "version", "price")}
    read = checked(known, Suggestions, path.name, text)
    return replace(read, sentences=_sentences(read.sentences, path))


def _sentences(found: Sequence[str], path: Path) -> tuple[str, ...]:
    sentences = tuple(" ".join(sentence.split()) for sentence in found if sentence.strip())
    if len(sentences) > MOST_SUGGESTIONS or any(len(sentence) > LONGEST_SUGGESTION for sentence in sentences):
        raise DataError(
            f"{path.name} holds more than suggestions: {len(sentences)} lines.",
            hint=f"at most {MOST_SUGGESTIONS} sentences of up to {LONGEST_SUGGESTION} characters; "
            "they leave with the prompt, so never put rows of a table there.",
        )
    return sentences


def refuse_other_kinds(path: Path, wanted: str, hint: str, *allowed: str) -> None:
    """Refuse a file that another step of the cycle wrote, by its name."""
    kind = kind_of_file(path)
    if kind is not None and kind not in ("json", *allowed):
        raise DataError(f"{path.name} is {KINDS[kind]}, not {wanted}.", hint=hint)


def with_budget(plan: Plan, suggestions: Suggestions) -> Plan:
    """The plan with more or less for some statistics; what all spend together stays the same."""
    shares = {name: share * suggestions.budget.get(name, 1.0) for name, share in plan.shares.items()}
    total = sum(shares.values())
    moved = replace(
        plan,
        shares={name: share / total for name, share in shares.items()},
        from_feedback=bool(suggestions.budget or suggestions.effects),
    )
    # Before anything is charged: what `propose` found covered may not be with other shares.
    check_accounting(moved)
    return moved


# How large correlations of a habit with a label are before anything is known: a public guess.
_USUAL_CORRELATION = 0.3
_SIGNIFICANT = 1.96


def with_effects(summary: PrivateSummary, suggestions: Suggestions) -> PrivateSummary:
    """The summary in which validated effects of habits on the label count as one more observation.

    That a correlation was significant among n learners, with its direction, bounds it: sqrt(n) r
    is beyond 1.96, or within, and is normal around the truth. With correlations of about 0.3 in
    either direction beforehand this has a mean and a variance (a truncated normal law), to which
    the chance of this year's learners adds 1 / n. The product of habit and label that was
    measured with noise is combined with it by precision. Feedback is public (see the module), so this is
    post-processing; the guarantee states that no epsilon covers the feedback.
    """
    found = summary.statistics.get("habits")
    if found is None or not suggestions.effects:
        return summary
    n, context = summary.n_learners, found.context
    features = [feature.name for feature in summary.schema.features]
    values = np.array(found.values) / n
    sd = np.array(np.broadcast_to(found.noise_sd, values.shape)) / n
    factor, constant = float(context["label_factor"]), float(context["constant"])
    codes = np.array(context["label_codes"])
    mean_code = float(np.clip(values[0, -1] / constant / factor, -0.5, 0.5))
    # The label's spread is known well enough from its bins: near even ones.
    label_sd = float(np.sqrt(max((codes**2).mean() - mean_code**2, 0.1)))
    cells = []
    for effect in suggestions.effects:
        if effect.feature not in features:
            continue
        row = 1 + features.index(effect.feature) + (len(features) if effect.habit == "l" else 0)
        mean_habit = float(values[0, row]) / constant
        habit_sd = math.sqrt(min(max(float(values[row, row]) - mean_habit**2, 0.3), 2.0))
        correlation, spread = correlation_given_significance(effect.share, suggestions.n_learners, n)
        unit = factor * habit_sd * label_sd
        validated, validated_sd = unit * correlation + factor * mean_habit * mean_code, unit * spread
        fresh, known = 1.0 / max(sd[row, -1], 1e-12) ** 2, 1.0 / validated_sd**2
        values[row, -1] = values[-1, row] = (fresh * values[row, -1] + known * validated) / (fresh + known)
        sd[row, -1] = sd[-1, row] = 1.0 / math.sqrt(fresh + known)
        cells.append(f"{effect.habit} {effect.feature}")
    if not cells:
        return summary
    changed = replace(
        found,
        values=values * n,
        noise_sd=sd * n,
        context={**context, "measured_sd": own_noise(found), "validated_cells": cells},
    )
    return remade(
        summary,
        {**summary.statistics, "habits": changed},
        {"feedback": suggestions.written_by},
        caveats.FEEDBACK,
    )


def correlation_given_significance(share: float, n_validated: int, n_now: int) -> tuple[float, float]:
    """Mean and standard deviation of a correlation for which a `share` of the validated findings had a direction."""
    scale = math.sqrt(n_validated * _USUAL_CORRELATION**2 + 1.0)
    cut = _SIGNIFICANT / scale
    beyond, within = truncnorm(cut, math.inf), truncnorm(-cut, cut)
    weight = abs(share)
    mean = weight * float(beyond.mean()) * scale * math.copysign(1.0, share)
    square = scale**2 * (weight * float(beyond.moment(2)) + (1.0 - weight) * float(within.moment(2)))
    # The found correlation is the truth give or take 1 / sqrt(n), and so is this year's.
    variance = (square - mean**2) / n_validated + 1.0 / n_validated + 1.0 / n_now
    return mean / math.sqrt(n_validated), math.sqrt(variance)
