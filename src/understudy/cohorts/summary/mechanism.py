"""The mechanism of a private summary: the one place that looks at learners and draws its noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.summary.budget import LEAST_SIGMA, MOST_CELLS, Plan
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.summary_file import PrivateSummary, Statistic, _mechanism_token
from understudy.core.engine import progress
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import gaussian
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError


def noisy_summary(
    cohort: Cohort,
    plan: Plan,
    noise: Noise,
    provenance: dict[str, Any] | None = None,
) -> PrivateSummary:
    """The summary that was planned.

    All statistics are one adaptive composition of discrete Gaussians with total rho: a later one may
    be centred by an earlier one's noisy values, never by the data. The guarantee is that of all the file
    holds, privately estimated cuts included. With seeded noise nothing is guaranteed.
    """
    refuse_cuts_from_data(cohort)
    if plan.schema != cohort.schema or plan.n_learners != cohort.n_learners:
        raise DataError("the plan was made for another cohort.", hint="propose one for this cohort.")
    released: dict[str, Statistic] = {}
    n_cells = 0
    with progress.task("Drawing noise", len(plan.shares)) as step:
        for name in plan.shares:
            measure = MEASURES[name](plan.schema, released)
            rho = plan.rho_of(name)
            sensitivity = measure.sensitivity / measure.step
            n_cells += measure.n_cells
            if n_cells > MOST_CELLS or sensitivity / math.sqrt(2.0 * rho) < LEAST_SIGMA:
                raise ValueError("the accounting does not cover so many cells or so fine a noise")
            noisy = gaussian(measure.lattice(cohort), sensitivity=sensitivity, rho=rho, noise=noise)
            statistic = measure.statistic(noisy, measure.sensitivity / math.sqrt(2.0 * rho))
            released[name] = replace(
                statistic, context={**statistic.context, "n_learners": cohort.n_learners}
            )
            step.advance()
    guarantee = plan.guarantee if noise.secret else Guarantee.seeded(plan.guarantee)
    return PrivateSummary._made(
        _mechanism_token(),
        cohort.schema,
        guarantee,
        cohort.n_learners,
        released,
        {
            "source": "mechanism",
            "simulated": cohort.simulated,
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "analyses": list(plan.analyses),
            "shares": {name: round(share, 6) for name, share in plan.shares.items()},
            **(provenance or {}),
        },
    )


def refuse_cuts_from_data(cohort: Cohort) -> None:
    """Refuse labels that are cut at the data's own quantiles: one replaced score moves other learners."""
    if cohort.schema.cuts_source == "data":
        raise DataError(
            "the cuts between the labels come from the data, so a replaced learner can change the labels of others.",
            hint="declare `cuts` in cohort.toml, or build the cohort with cuts estimated privately.",
        )
