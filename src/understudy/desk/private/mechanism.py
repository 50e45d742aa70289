"""The mechanism of private answers: the one place that looks at learners and draws noise.

All measurements of an analysis are one adaptive composition of discrete Gaussian mechanisms. Which of them there are,
and what each may spend, is in the plan, which knows nothing of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import gaussian
from understudy.core.privacy.noise import Noise
from understudy.desk.private.answers import Answer, Answers
from understudy.desk.private.logistic import measure_slopes
from understudy.desk.private.measurements import LatticeSum, Measurement, Slopes
from understudy.desk.private.plan import LEAST_SIGMA, Plan, Released
from understudy.desk.private.schema import Floats, Records
from understudy.errors import DataError


@dataclass(frozen=True)
class _Drawing:
    """Adds noise to sums."""

    noise: Noise

    def __call__(self, sums: LatticeSum, rho: float) -> tuple[Floats, float]:
        """The noisy sums in their own units, and the standard deviation of the noise in them."""
        if sums.sensitivity / math.sqrt(2.0 * rho) < LEAST_SIGMA:
            raise ValueError("the accounting does not cover so fine a noise")
        noisy = gaussian(sums.values, sensitivity=sums.sensitivity, rho=rho, noise=self.noise)
        sd = sums.sensitivity * sums.step / math.sqrt(2.0 * rho)
        return np.asarray(noisy, dtype=np.float64) * sums.step, sd


def answer_privately(plan: Plan, records: Records, noise: Noise) -> Answers:
    """The answers to all questions of a plan. With seeded noise nothing is guaranteed.

    The whole rho of the plan is spent, whatever the answers are; everything after the noise is post-processing.
    """
    if plan.schema != records.schema or plan.n_learners != records.n_learners:
        raise DataError("the plan was made for another table.", hint="propose one for this table.")
    draw = _Drawing(noise)
    released = {need: _measure(need, plan, records, draw) for need in plan.measurements}
    answers = tuple(
        _advised(plan, plan.answer(question, released[need]))
        for question, need in zip(plan.questions, plan.needs, strict=True)
    )
    guarantee = plan.guarantee if noise.secret else Guarantee.seeded(plan.guarantee)
    return Answers(answers, guarantee, plan.n_learners)


def _measure(need: Measurement, plan: Plan, records: Records, draw: _Drawing) -> Released:
    rho = plan.rho_for(need)
    if isinstance(need, Slopes):
        return measure_slopes(need, records, rho, draw)
    values, _ = draw(need.sums(records), rho)
    return need.released(values, plan.schema, plan.n_learners, rho)


def _advised(plan: Plan, answer: Answer) -> Answer:
    return answer.with_enough(plan.enough_for(answer)) if answer.too_wide else answer
