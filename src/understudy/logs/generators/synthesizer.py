"""The protocol every method follows: fit, sample, and say what is guaranteed."""

from __future__ import annotations

from typing import ClassVar, Protocol, Self

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.logs.interactions import Interactions


class Synthesizer(Protocol):
    """A method that learns from one log and writes another.

    The constructor only stores options. After `fit`, learned attributes end in an underscore
    and hold parameters, not rows: a fitted method may be kept where the log may not. Methods
    for which this is not true say so with `keeps_rows`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    keeps_rows: ClassVar[bool]

    def guarantee(self, n_learners: int) -> Guarantee:
        """What is proved about everything this method gives out; the number of learners is public."""
        ...

    def fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> Self:
        """Learn from a log; noise that a guarantee needs comes from `noise` alone."""
        ...

    def sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """A synthetic log; by default with as many learners as the method finds natural."""
        ...
