"""How much of what the synthetic data showed holds on the real data: epistemic precision, counted by the desk.

Researchers report 0 (nothing was validated), 0.5 (some) or 1 (most) for a request (Ito et al. 2026,
section IV-D). The desk counts the same from the two answers, as far as numbers can say what was claimed:

- Where an answer has p-values, a finding is what is next to a p below 0.05 on the synthetic data: in the same
  row of a table, or in the same dict. It holds if p is below 0.05 on the real data too and every number beside it
  has the same sign.
- An answer without p-values claims its numbers. One that is not 0 on the synthetic data holds if it has the same
  sign on the real data and is not further away than two estimates from different learners would be, 95 times of
  100: 1.96 times the square root of 2 standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from understudy.desk.domain.results import N_ROWS, STEP, Results

ALPHA = 0.05
# "Most of the findings" of Ito et al. (2026).
MOST = 0.75
_P = ("p", "p value", "p-value", "p_value", "pvalue")
_APART = 1.96 * math.sqrt(2.0)


@dataclass(frozen=True)
class Precision:
    """How many findings the synthetic data claimed, and how many of them held."""

    n_claimed: int
    n_held: int

    @property
    def share(self) -> float | None:
        """Of the claimed findings; None if nothing was claimed."""
        return self.n_held / self.n_claimed if self.n_claimed else None

    @property
    def score(self) -> float | None:
        """As researchers report it: 0 none, 1 most (three quarters), 0.5 between; None if nothing was claimed."""
        if self.share is None:
            return None
        return 0.0 if self.n_held == 0 else 1.0 if self.share >= MOST else 0.5


def precision_of(synthetic: Results, real: Results, errors: Mapping[str, float]) -> Precision:
    """Both answers compared; `errors` are the standard errors of the real one's numbers.

    It is a function of the real answer: take the one that was released, rounded as it was.
    """
    tested = {name: beside for name in synthetic.numbers if (beside := _beside(name, synthetic)) is not None}
    if tested:
        claimed = [name for name in tested if synthetic.numbers[name] < ALPHA]
        held = [
            name
            for name in claimed
            if real.numbers.get(name, math.nan) < ALPHA
            and all(_sign(synthetic, other) == _sign(real, other) for other in tested[name])
        ]
        return Precision(len(claimed), len(held))
    # What no learner's absence moves is a constant of the code and claims nothing.
    claimed = [
        name
        for name, value in synthetic.numbers.items()
        if value and math.isfinite(value) and not name.endswith(N_ROWS) and errors.get(name, math.nan) != 0
    ]
    held = [
        name
        for name in claimed
        if _sign(synthetic, name) == _sign(real, name)
        and abs(synthetic.numbers[name] - real.numbers[name]) <= _APART * errors.get(name, 0.0)
    ]
    return Precision(len(claimed), len(held))


def _beside(name: str, results: Results) -> list[str] | None:
    """The numbers that a p-value belongs to; None if it is not a p-value."""
    parts = name.split(STEP)
    for place, part in enumerate(parts):
        if part.lower() in _P:
            rest = [*parts[:place], *parts[place + 1 :]]
            others = {other: other.split(STEP) for other in results.numbers if other != name}
            return [
                other
                for other, steps in others.items()
                if len(steps) == len(parts) and [*steps[:place], *steps[place + 1 :]] == rest
            ]
    return None


def _sign(results: Results, name: str) -> float:
    value = results.numbers.get(name, math.nan)
    return value if math.isnan(value) else float((value > 0) - (value < 0))
