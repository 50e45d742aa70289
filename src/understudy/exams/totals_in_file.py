"""The noisy totals in a file of difficulties: what a school measured, for those who combine several.

They are the output of the mechanism itself, so the guarantee is about them, and the difficulties follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.documents import ContractError, checked, contract
from understudy.exams.mechanisms.totals import NoisyTotals

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TotalsInFile:
    """Noisy right answers, and answers, of each item in the file's order; the covariance of their noise.

    `answered` is None where every item counts for every learner. `log_sd_error` is the doubt about the logarithm of
    the spread of abilities.
    """

    __pydantic_config__: ClassVar = contract()

    right: tuple[float, ...]
    answered: tuple[float, ...] | None
    covariance: tuple[tuple[float, float], tuple[float, float]]
    log_sd_error: float

    def __post_init__(self) -> None:
        (own, shared), (same, other) = self.covariance
        if own < 0 or other < 0 or shared != same or shared**2 > own * other * (1 + 1e-9):
            raise ContractError(
                "the covariance of the noise is not a covariance matrix.", hint=_UNEDITED, key="covariance"
            )
        if self.log_sd_error < 0 or (self.answered is not None and len(self.answered) != len(self.right)):
            raise ContractError("the totals do not agree with each other.", hint=_UNEDITED, key="answered")

    @classmethod
    def of(cls, totals: NoisyTotals, log_sd_error: float) -> TotalsInFile:
        """The totals as a file holds them."""
        every = not totals.covariance[1, 1]
        (own, shared), (_, other) = (tuple(_round(value) for value in row) for row in totals.covariance)
        return cls(
            _rounded(totals.correct),
            None if every else _rounded(totals.answered),
            ((own, shared), (shared, other)),
            round(log_sd_error, 6),
        )

    def content(self) -> dict[str, Any]:
        """For the file."""
        return {
            "right": list(self.right),
            "answered": None if self.answered is None else list(self.answered),
            "covariance": [list(row) for row in self.covariance],
            "log_sd_error": self.log_sd_error,
        }

    @classmethod
    def read(cls, content: Any, source: str, n_items: int) -> TotalsInFile:
        """The totals of a file, as they were written."""
        found = checked(content, cls, source)
        if len(found.right) != n_items:
            raise ContractError(
                f"{source}: the number of totals differs from the number of items.",
                hint=_UNEDITED,
                key="right",
            )
        return found

    def arrays(self, n_learners: int) -> tuple[Floats, Floats, Floats]:
        """Right answers, answers, and the covariance of their noise."""
        right = np.array(self.right, dtype=np.float64)
        answered = (
            np.full(len(right), float(n_learners)) if self.answered is None else np.array(self.answered)
        )
        return right, answered, np.array(self.covariance)


_UNEDITED = "get the file again from the school that released it; it must not be edited."


def _round(value: float) -> float:
    return float(f"{value:.9g}")


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)
