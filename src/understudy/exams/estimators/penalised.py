"""The three fits of equation 6 (joint, objective, statistics) with a penalty that is given or chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.noise import Noise
from understudy.exams.estimators.choice import Fit, choose_penalty, penalty_on_public
from understudy.exams.estimators.joint import PENALTY, PRINTED_PENALTY, fit_joint
from understudy.exams.estimators.published import objective, statistics
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]

_SOURCES = {PENALTY: "as in the published program", PRINTED_PENALTY: "as printed in the paper"}


@dataclass(frozen=True)
class Penalty:
    """Lambda of equation 6, and where it is from."""

    value: float
    source: str

    @property
    def ability_sd(self) -> float:
        """The penalty lambda/2 ability^2 is a normal prior with this standard deviation."""
        return float(self.value**-0.5)


def settle_penalty(
    fit: Fit,
    responses: Responses,
    given: float | str | None,
    public: Responses | None,
    choice_epsilon: float,
    noise: Noise,
    rng: np.random.Generator,
) -> Penalty:
    """The penalty as it was given, chosen on public responses, or (`choose`) privately on these for `choice_epsilon`.

    `fit` is the method as the choice tries it.
    """
    if public is not None:
        return Penalty(
            penalty_on_public(fit, public, responses.n_learners, rng), "chosen on public responses"
        )
    if given == "choose":
        value = choose_penalty(fit, responses, choice_epsilon, noise, rng)
        return Penalty(value, "chosen among a few on parts of the learners, no formal guarantee")
    value = PENALTY if given is None else float(given)
    return Penalty(value, _SOURCES.get(value, "given"))


def penalised_fit(method: str, epsilon: float | None) -> Fit:
    """The difficulties of a method by responses and penalty; without an epsilon for `joint`."""
    if method == "joint":
        return _joint
    assert epsilon is not None
    published, spent = {"objective": objective, "statistics": statistics}[method], epsilon

    def fit(responses: Responses, penalty: float, rng: np.random.Generator) -> Floats:
        return published(responses, spent, rng, penalty=penalty).difficulty

    return fit


def _joint(responses: Responses, penalty: float, _: np.random.Generator) -> Floats:
    answered, right = responses.correct >= 0, responses.correct > 0
    mask = None if answered.all() else answered
    return fit_joint(right.sum(axis=1), right.sum(axis=0), penalty=penalty, mask=mask).difficulty
