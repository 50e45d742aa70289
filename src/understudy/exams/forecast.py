"""forecast(): the precision of private difficulties at each risk and epsilon, from public numbers only."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from understudy.core.privacy.risk import RISKS, RiskLimit, StatedRisk
from understudy.errors import UsageError
from understudy.exams.difficulties import PRIVATE, Estimation, plan
from understudy.exams.estimators.chances import chance_curve
from understudy.exams.ranking import MIN_STANDARD_ERRORS
from understudy.exams.totals_mechanism import noise_variance

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Precision:
    """Expected standard errors of difficulties on the scale of log-odds, sampling included.

    `total_noise` is the standard deviation of the noise in learners; `even` and `hard` are the
    errors of items that half and a tenth of the learners solve; two items of medium difficulty
    can be distinguished when they differ by `apart`: one solved by half of the learners and one solved
    by a share of `other`. `better` is another private method whose error, `better_even`, would be smaller.
    """

    risk: StatedRisk
    method: str
    total_noise: float
    even: float
    hard: float
    apart: float
    other: float
    better: str = ""
    better_even: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The precision for machines."""
        return {**vars(self.risk), **{name: value for name, value in vars(self).items() if name != "risk"}}


def forecast(options: Estimation, n_items: int, n_learners: int) -> list[Precision]:
    """The precision that each risk and each epsilon buys by the method that would be used; nothing is spent.

    Where another private method would be more precise at the same risk or epsilon, the row says so.
    """
    used = str(options.method) if options.method in PRIVATE else PRIVATE[0]

    def asked(method: str, epsilon: float) -> Estimation:
        delta = options.delta if method == "gaussian" else None
        return replace(options, epsilon=epsilon, method=method, delta=delta, risk="")

    def row(epsilons: dict[str, float]) -> list[Precision]:
        tried = {
            method: _precision(asked(method, epsilon), n_items, n_learners)
            for method, epsilon in epsilons.items()
        }
        if used not in tried:
            return []
        best = min(tried.values(), key=lambda each: each.even)
        if best.even >= tried[used].even:
            return [tried[used]]
        return [replace(tried[used], better=best.method, better_even=best.even)]

    def within(limit: RiskLimit) -> dict[str, float]:
        """The epsilon of each method that can keep to a risk: each kind of noise has another one."""

        def epsilon_of(method: str) -> float:
            return limit.epsilon(lambda epsilon: plan(asked(method, epsilon), n_items, n_learners).guarantee)

        epsilons = {}
        for method in PRIVATE:
            with contextlib.suppress(UsageError):  # a large delta alone may pass a small risk
                epsilons[method] = epsilon_of(method)
        return epsilons

    rows = [each for epsilon in EPSILONS for each in row(dict.fromkeys(PRIVATE, epsilon))]
    rows += [each for risk in RISKS for each in row(within(RiskLimit.parse(risk)))]
    return sorted(rows, key=lambda each: -each.even)


def _precision(options: Estimation, n_items: int, n_learners: int) -> Precision:
    """The delta method: noise and sampling of a share, divided by the slope of the chance."""
    planned = plan(options, n_items, n_learners)
    measurement = planned.measurement
    assert measurement is not None
    sd = options.ability_sd if isinstance(options.ability_sd, float) else 1.0
    curve = chance_curve(sd)
    # Bounded answers thin out the counts; how many answers a learner gives is not public.
    answered = n_learners * (1.0 if measurement.at_most is None else measurement.at_most / n_items)

    def error(chance: float) -> float:
        places = np.linspace(-10.0, 10.0, 4001)
        difficulty = places[int(np.argmin(np.abs(np.asarray(curve(places)) - chance)))]
        noise = float(noise_variance(measurement.covariance, np.array([chance]))[0])
        deviation = math.sqrt(noise + answered * chance * (1.0 - chance)) / answered
        return deviation / abs(float(curve(difficulty, 1)))

    even = error(0.5)
    return Precision(
        StatedRisk.of(planned.guarantee),
        planned.method,
        math.sqrt(float(noise_variance(measurement.covariance, np.array([0.5]))[0])),
        even,
        error(0.1),
        MIN_STANDARD_ERRORS * math.sqrt(2.0) * even,
        float(curve(max(-15.0, -MIN_STANDARD_ERRORS * math.sqrt(2.0) * even))),
    )
