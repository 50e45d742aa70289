"""Risk: what an attacker can reach at most under a guarantee, and the epsilon that keeps to a stated limit.

An attacker who tests one learner against another in their place is right about `power(guarantee, alpha)`
of the members at most, when a share alpha of outsiders is accused too. Everything here is read off that
curve: learners found, the AUC, how often one learner's value is guessed.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from understudy.core.privacy.composition import mu_from_pure, rounded_down
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import UsageError

FloatArray = npt.NDArray[np.float64]

FALSE_ALARMS = 0.01
_STEPS = 10_000


def power(guarantee: Guarantee, alpha: npt.ArrayLike) -> FloatArray:
    """The largest share of members that a test finds at false-alarm rate `alpha`.

    (epsilon, delta) allows 1 - f(alpha) with f(alpha) = max(0, 1 - delta - e^epsilon alpha,
    e^-epsilon (1 - delta - alpha)) (Wasserman and Zhou 2010; Kairouz et al. 2015), and mu allows
    Phi(Phi^-1(alpha) + mu) (Dong et al. 2022). Where a mechanism is Gaussian up to a factor e^slack, it is
    at most e^slack Phi(Phi^-1(e^slack alpha / (1 - d)) + mu) + delta with mu = sqrt(2 rho), d being `extra_delta`:
    this holds on events of probability 1 - d on either side, and a probability given one is at most 1 / (1 - d) of
    what it was. The proof's far tail is part of delta, since the curve is concave. All that is known holds, so the
    smallest does.
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    if not guarantee.formal:
        return np.ones_like(alpha)
    # In terms of e^-epsilon, which a large epsilon does not overflow.
    found = 1.0 - np.exp(-guarantee.epsilon) * (1.0 - guarantee.delta - alpha)
    if guarantee.epsilon < 50:
        found = np.minimum(found, math.exp(guarantee.epsilon) * alpha + guarantee.delta)
    if guarantee.mu is not None:
        found = np.minimum(found, ndtr(ndtri(alpha) + guarantee.mu))
    if guarantee.rho is not None and guarantee.slack is not None:
        mu, factor = math.sqrt(2.0 * guarantee.rho), math.exp(guarantee.slack)
        accused = np.minimum(1.0, factor * alpha / (1.0 - guarantee.extra_delta))
        found = np.minimum(found, factor * ndtr(ndtri(accused) + mu) + guarantee.delta)
    bounded: FloatArray = np.clip(found, 0.0, 1.0)
    return bounded


def area(guarantee: Guarantee) -> float:
    """The largest AUC that a test of one learner reaches."""
    # Right ends of ten thousand steps: the power grows with alpha, so the sum is above the area.
    steps = float(power(guarantee, np.arange(1, _STEPS + 1) / _STEPS).mean())
    if not guarantee.formal:
        return steps
    shrink = math.exp(-guarantee.epsilon)
    exact = 1.0 - (1.0 - guarantee.delta) ** 2 * shrink / (1.0 + shrink)
    if guarantee.mu is not None:
        exact = min(exact, float(ndtr(guarantee.mu / math.sqrt(2))))
    return min(steps, exact)


def guessed(guarantee: Guarantee, baseline: float) -> float:
    """How often a value of one learner is guessed at most, that is guessed with chance `baseline` without the data.

    It bounds singling somebody out as well: `baseline` is then the share of people who fit the
    description. A guess that is right with the learner's record, made without it, is a test with that
    false-alarm rate, so its success is at most the power there (Kulynych et al. 2025, "Unifying
    re-identification, attribute inference, and data reconstruction risks").
    """
    return float(power(guarantee, baseline))


def worst_case(guarantee: Guarantee) -> dict[str, float]:
    """The most that any attack on one learner can reach under a guarantee, rounded up to percents."""
    return {
        "auc": _rounded_up(area(guarantee)),
        "tpr_at_1pct": _rounded_up(float(power(guarantee, FALSE_ALARMS))),
        "guessed_from_half": _rounded_up(guessed(guarantee, 0.5)),
        "singled_out_from_1_in_1000": _rounded_up(guessed(guarantee, 0.001)),
    }


# What explanations show the accuracy for.
RISKS = ("2 in 100", "5 in 100", "10 in 100", "20 in 100")
RISK_COLUMNS = ("members found", "guessed", "singled out", "epsilon", "delta", "mu")
RISK_LEGEND = (
    "At most, by an attacker who knows everything else. Members found: of 100, if one outsider in 100 is accused too; "
    "guessing finds 1. Guessed: how often the attacker is right about a yes-or-no fact that would otherwise be a coin "
    "flip. Singled out: how often a description that fits one in 1,000 people fits the learner."
)


@dataclass(frozen=True)
class StatedRisk:
    """What a guarantee lets an attacker reach at most, with epsilon, delta and mu beside it."""

    found: float
    """Members found by whoever accuses one outsider in 100."""
    auc: float
    guessed: float
    """How often a fact is guessed that would be a coin flip without the data."""
    singled_out: float
    """How often a description fits a learner that fits one in 1,000 people."""
    epsilon: float
    delta: float
    mu: float | None
    """Of Gaussian differential privacy; None where only zCDP is proved."""

    @classmethod
    def of(cls, guarantee: Guarantee) -> StatedRisk:
        """The risk of a formal guarantee."""
        most, mu = worst_case(guarantee), guarantee.mu
        if mu is None and guarantee.rho is not None and guarantee.slack is not None:
            mu = math.sqrt(2.0 * guarantee.rho)  # up to a factor e^slack of probabilities
        elif mu is None and guarantee.rho is None and not guarantee.delta:
            mu = mu_from_pure(guarantee.epsilon)
        return cls(
            most["tpr_at_1pct"],
            most["auc"],
            most["guessed_from_half"],
            most["singled_out_from_1_in_1000"],
            guarantee.epsilon,
            guarantee.delta,
            mu,
        )

    def cells(self) -> list[str]:
        """The risk for a table with `RISK_COLUMNS`."""
        shares = [f"{100 * share:.0f} in 100" for share in (self.found, self.guessed, self.singled_out)]
        numbers = [f"{self.epsilon:g}", f"{self.delta:.1e}" if self.delta else "0"]
        return [*shares, *numbers, "" if self.mu is None else f"{self.mu:.2f}"]


def explained_epsilons(guarantee_of: Callable[[float], Guarantee], epsilons: Iterable[float]) -> list[float]:
    """The epsilons that an explanation shows: usual ones, and those of `RISKS` that the method can keep to."""
    found = set(epsilons)
    for risk in RISKS:
        with contextlib.suppress(UsageError):  # a large delta alone may pass a small risk
            found.add(RiskLimit.parse(risk).epsilon(guarantee_of))
    return sorted(found)


def _rounded_up(share: float) -> float:
    # A bound may not shrink by rounding; the allowance is for 0.57 * 100 = 56.99999999999999 and its like.
    return min(1.0, math.ceil(100 * share - 1e-9) / 100)


@dataclass(frozen=True, kw_only=True)
class ByRisk:
    """A release's noise by what an attacker may reach, in place of an epsilon."""

    risk: Annotated[
        str,
        "In place of epsilon, what an attacker may reach at most: '5 in 100' (members found by whoever accuses one "
        "outsider in 100) or 'auc 0.55'.",
    ] = ""

    usual_epsilon: ClassVar[float | None] = None
    """The epsilon of options with neither; an option of that value could not be told from one that was not given."""

    def asked(self, guarantee: Guarantee) -> list[str]:
        """What risk was asked for, if one was, and the epsilon of the guarantee that keeps to it."""
        return [RiskLimit.parse(self.risk).kept(guarantee)] if self.risk else []

    def by_risk(self, guarantee_of: Callable[[Any], Guarantee]) -> Self:
        """These options with the epsilon that keeps to their risk; `guarantee_of(options)` is what they give."""
        given = getattr(self, "epsilon", None)

        def at(epsilon: float) -> Any:
            # In one step: options with neither may make no sense.
            changed: dict[str, Any] = {"epsilon": epsilon, "risk": ""}
            return replace(self, **changed)

        if not self.risk:
            usual = self.usual_epsilon
            settled: Self = self if given is not None or usual is None else at(usual)
            return settled
        if given is not None:
            raise two_epsilons("epsilon")
        limit = RiskLimit.parse(self.risk)

        found: Self = at(limit.epsilon(lambda epsilon: guarantee_of(at(epsilon))))
        return found


def two_epsilons(setting: str) -> UsageError:
    """The error of an epsilon beside a risk; `setting` is where the epsilon was given."""
    return UsageError(
        "an epsilon and a risk were given.",
        hint="give one of them: the risk decides the epsilon.",
        code="two-epsilons",
        settings=("risk", setting),
    )


_MEANING = (
    "'5 in 100': whoever accuses one outsider in 100 finds at most 5 of 100 members; guessing finds 1. "
    "'auc 0.55': shown a member and an outsider, at most 55 of 100 guesses are right; blind ones are 50."
)


@dataclass(frozen=True)
class RiskLimit:
    """What an attacker may reach at most: members found at one false alarm in a hundred, or an AUC."""

    most: float
    auc: bool = False

    @classmethod
    def parse(cls, text: str) -> RiskLimit:
        """The limit in words: `5 in 100`, or `auc 0.55`."""
        counted = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s+in\s+(\d+)\s*", text)
        area = re.fullmatch(r"\s*auc\s+(\d*\.?\d+)\s*", text, flags=re.IGNORECASE)
        if area:
            limit, guessing = cls(float(area[1]), auc=True), 0.5
        elif counted and int(counted[2]):
            limit, guessing = cls(float(counted[1]) / int(counted[2])), FALSE_ALARMS
        else:
            raise UsageError(
                f"a risk is written like '5 in 100' or 'auc 0.55', not '{text}'.",
                hint=_MEANING,
                code="not-a-risk",
                settings=("risk",),
            )
        if not guessing < limit.most < 1:
            which = "is not more than guessing reaches" if limit.most <= guessing else "rules nothing out"
            least, most = ("auc 0.5", "auc 1") if limit.auc else ("1 in 100", "100 in 100")
            raise UsageError(
                f"a risk of '{text.strip()}' {which}: a risk lies above '{least}' and below '{most}'.",
                hint=_MEANING,
                code="risk-out-of-range",
                settings=("risk",),
            )
        return limit

    def __str__(self) -> str:
        return f"an AUC of {self.most:g}" if self.auc else f"{100 * self.most:g} in 100 members found"

    def kept(self, guarantee: Guarantee) -> str:
        """What was asked for, and the epsilon that keeps to it, as cards and results repeat it."""
        return f"Asked for: at most {self}. Epsilon {guarantee.epsilon:g} keeps to it."

    def reached(self, guarantee: Guarantee) -> float:
        """What an attacker can reach under a guarantee, in the limit's own measure."""
        return area(guarantee) if self.auc else float(power(guarantee, FALSE_ALARMS))

    def floored(self, guarantee: Guarantee) -> str:
        """What is reached under a guarantee, in the words of `parse` and rounded down; empty if that is guessing."""
        percent = math.floor(100 * self.reached(guarantee) + 1e-9)
        if self.auc:
            return f"auc {percent / 100:g}" if percent > 50 else ""
        return f"{percent} in 100" if percent > 100 * FALSE_ALARMS else ""

    def epsilon(self, guarantee_of: Callable[[float], Guarantee]) -> float:
        """The largest epsilon, rounded down to three digits, whose guarantee keeps to the limit.

        The limit is compared with the mechanism's own trade-off curve, which allows more than its epsilon
        and delta alone would.
        """
        low, high = 1e-3, 50.0
        if self.reached(guarantee_of(low)) > self.most:
            raise UsageError(
                f"no noise of this method keeps to {self}.",
                hint="state a larger risk, or a smaller delta.",
                code="risk-too-small",
                settings=("risk",),
            )
        while high / low > 1 + 1e-4:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.reached(guarantee_of(middle)) <= self.most else (low, middle)
        return rounded_down(low)
