"""What suggestions do to the next cycle's summary: the split of its budget, and validated effects."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.stats import truncnorm

from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.budget import Plan, check_accounting
from understudy.cohorts.summary.feedback import Suggestions
from understudy.cohorts.summary.previous_year import own_noise, remade
from understudy.cohorts.summary.summary_file import PrivateSummary


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

    That a correlation was significant among n learners, with its direction, says where it lies: sqrt(n) r
    is beyond 1.96, or within, and is normal around the truth. With correlations of about 0.3 in
    either direction beforehand this has a mean and a variance (a truncated normal law), to which
    the chance of this year's learners adds 1 / n. The product of habit and label that was
    measured with noise is combined with it by precision. Feedback is public (see the module), so this is
    post-processing; the guarantee says that no epsilon covers the feedback.
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
        correlation, spread = _said_about_correlation(effect.share, suggestions.n_learners, n)
        unit = factor * habit_sd * label_sd
        said, said_sd = unit * correlation + factor * mean_habit * mean_code, unit * spread
        fresh, known = 1.0 / max(sd[row, -1], 1e-12) ** 2, 1.0 / said_sd**2
        values[row, -1] = values[-1, row] = (fresh * values[row, -1] + known * said) / (fresh + known)
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


def _said_about_correlation(share: float, n_validated: int, n_now: int) -> tuple[float, float]:
    """Mean and standard deviation of a correlation of which validation said `share` of the way it has a direction."""
    scale = math.sqrt(n_validated * _USUAL_CORRELATION**2 + 1.0)
    cut = _SIGNIFICANT / scale
    beyond, within = truncnorm(cut, math.inf), truncnorm(-cut, cut)
    weight = abs(share)
    mean = weight * float(beyond.mean()) * scale * math.copysign(1.0, share)
    square = scale**2 * (weight * float(beyond.moment(2)) + (1.0 - weight) * float(within.moment(2)))
    # The found correlation is the truth give or take 1 / sqrt(n), and so is this year's.
    variance = (square - mean**2) / n_validated + 1.0 / n_validated + 1.0 / n_now
    return mean / math.sqrt(n_validated), math.sqrt(variance)
