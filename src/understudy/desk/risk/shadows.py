"""Shadow data sets: the real learners drawn again with replacement, one bank for all of them.

In the game of Definition 5 (Ito et al. 2026) the attacker knows everything about one learner and
nothing about the others, who are drawn from the population; the real learners stand in for it. Of a shadow
that holds a learner exactly once and one that does not hold them, the others are drawn alike: that is the
game. Shadows that hold them twice or more measure something else (findings, section 5) and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.desk.disclosure.replacement import takes_few_values
from understudy.desk.domain.learners import LearnerTable

# A learner is in a shadow exactly once, and not at all, with chance 0.37 each: 1,000 of either.
N_SHADOWS = 2800
# Shadows that are run again with blurred copies of learners, where that matters, and by what share numbers are blurred.
N_BLURRED = 40
BLUR = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class ShadowBank:
    """How often each learner (column) is in each shadow (row); every row adds up to the number of learners."""

    counts: NDArray[np.int16]

    @property
    def n_shadows(self) -> int:
        """Number of shadows."""
        return int(self.counts.shape[0])

    @property
    def n_learners(self) -> int:
        """Number of learners, of the data and of every shadow."""
        return int(self.counts.shape[1])

    @property
    def once(self) -> NDArray[np.bool_]:
        """Which shadows hold a learner exactly once."""
        return np.asarray(self.counts == 1)

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Which shadows do not hold a learner."""
        return np.asarray(self.counts == 0)

    def learners(self, shadow: int) -> NDArray[np.int64]:
        """The positions of a shadow's learners, repeated as often as it holds them."""
        return np.repeat(np.arange(self.n_learners), self.counts[shadow])

    def blurred_copies(self, shadow: int, table: LearnerTable, rng: np.random.Generator) -> bytes:
        """A shadow in which every further copy of a learner has slightly other numbers than the first.

        Columns with few values and zeros stay as they are: they are alike for many learners anyway.
        """
        import polars as pl

        learners = self.learners(shadow)
        drawn = table.drawn(learners)
        copies = np.ones(len(learners), dtype=bool)
        copies[np.unique(learners, return_index=True)[1]] = False
        is_copy = pl.Series(np.repeat(copies, np.diff(drawn.starts)))
        rows = drawn.rows
        for name in columns_to_blur(table):
            blur = (rows[name].cast(pl.Float64).abs() * BLUR).to_numpy() * rng.normal(size=rows.height)
            dtype = rows[name].dtype
            if dtype.is_integer():
                blur = np.copysign(np.ceil(np.abs(blur)), blur)
            changed = (rows[name] + pl.Series(blur)).cast(dtype, strict=False)
            rows = rows.with_columns(pl.when(is_copy).then(changed).otherwise(pl.col(name)).alias(name))
        return LearnerTable(rows, drawn.starts).whole()

    def part(self, shadows: NDArray[np.integer]) -> ShadowBank:
        """Some of the shadows."""
        return ShadowBank(self.counts[shadows])


def columns_to_blur(table: LearnerTable) -> list[str]:
    """Columns of numbers that are not a few values each."""
    return [
        name
        for name, dtype in table.rows.schema.items()
        if (dtype.is_float() or dtype.is_integer()) and not takes_few_values(table.rows[name])
    ]


def draw_shadows(n_learners: int, rng: np.random.Generator, n_shadows: int = N_SHADOWS) -> ShadowBank:
    """A bank for a data set of so many learners."""
    counts = rng.multinomial(n_learners, np.full(n_learners, 1 / n_learners), size=n_shadows)
    return ShadowBank(counts.astype(np.int16))
