"""Do the findings on a synthetic cohort hold on the real one?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Analysis, Finding, run_bank
from understudy.cohorts.findings.bank import bank as whole_bank
from understudy.errors import DataError


@dataclass(frozen=True)
class Pair:
    """One finding on both cohorts."""

    analysis: str
    kind: str
    about_outcome: bool
    real: Finding
    synthetic: Finding

    @property
    def holds(self) -> bool:
        """Significant on both cohorts with the same direction."""
        return (
            self.real.significant
            and self.synthetic.significant
            and self.real.direction == self.synthetic.direction
        )

    def to_json(self) -> dict[str, Any]:
        """The pair for a machine."""
        return {
            "analysis": self.analysis,
            "kind": self.kind,
            "about_outcome": self.about_outcome,
            "finding": self.real.name,
            "holds": self.holds,
            "real": self.real.to_json(),
            "synthetic": self.synthetic.to_json(),
        }


@dataclass(frozen=True)
class Shares:
    """Epistemic precision and recall of some findings, with the counts behind them.

    `precision`: of the `n_synthetic` significant findings on the synthetic cohort, the share that
    hold on the real one. `recall`: of the `n_real` significant findings on the real cohort, the
    share that are found on the synthetic one. Not a number where there are no such findings.
    """

    precision: float
    recall: float
    n_synthetic: int
    n_real: int
    n_holding: int

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Shares:
        """The shares of some pairs."""
        n_synthetic = sum(pair.synthetic.significant for pair in pairs)
        n_real = sum(pair.real.significant for pair in pairs)
        n_holding = sum(pair.holds for pair in pairs)
        return cls(_share(n_holding, n_synthetic), _share(n_holding, n_real), n_synthetic, n_real, n_holding)

    def to_json(self) -> dict[str, Any]:
        """The shares for a machine; null where there is nothing to divide by."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in vars(self).items()
        }


@dataclass(frozen=True)
class Replication:
    """How far a synthetic cohort leads to the findings of the real one (Ito, Hsu and Ogata 2026).

    Findings about habits alone (a rhythm, persistent learners) are easier to keep than those about the
    outcome: a cohort with shuffled labels loses most findings and still has a high precision. So
    `about_outcome` has the shares of the findings that relate habits to the outcome.

    The counts behind the shares are correlated, since many analyses look at the same effects: an
    interval comes from several synthetic cohorts (`over_seeds`), not from the counts.
    """

    precision: float
    recall: float
    n_synthetic: int
    n_real: int
    about_outcome: Shares
    by_kind: Mapping[str, Shares]
    details: tuple[Pair, ...]

    @property
    def n_holding(self) -> int:
        """Number of findings that hold on both."""
        return sum(pair.holds for pair in self.details)

    def to_json(self) -> dict[str, Any]:
        """The replication for a machine."""
        return {
            **Shares.of(self.details).to_json(),
            "about_outcome": self.about_outcome.to_json(),
            "by_kind": {kind: shares.to_json() for kind, shares in self.by_kind.items()},
            "findings": [pair.to_json() for pair in self.details],
        }


def compare_findings(real: Cohort, synthetic: Cohort, bank: Sequence[Analysis] | None = None) -> Replication:
    """Run all analyses on both cohorts and see which findings hold.

    `bank` is the whole bank unless it is given. The result is a function of the real data that no
    epsilon covers.
    """
    analyses = whole_bank() if bank is None else tuple(bank)
    if real.schema.features != synthetic.schema.features or real.schema.labels != synthetic.schema.labels:
        raise DataError(
            "the cohorts have different features or labels.", hint="compare cohorts of the same cohort.toml."
        )
    pairs = []
    for analysis in analyses:
        on_real, on_synthetic = run_bank(real, [analysis]), run_bank(synthetic, [analysis])
        if on_real.keys() != on_synthetic.keys():
            raise DataError(
                f"the analysis '{analysis.name}' names its findings differently on the two cohorts.",
                hint="let it return the same names whatever the data, with a p-value of 1 for nothing.",
            )
        for name, finding in on_real.items():
            pairs.append(
                Pair(analysis.name, analysis.kind, analysis.about_outcome, finding, on_synthetic[name])
            )
    overall = Shares.of(pairs)
    kinds = dict.fromkeys(pair.kind for pair in pairs)
    return Replication(
        overall.precision,
        overall.recall,
        overall.n_synthetic,
        overall.n_real,
        Shares.of([pair for pair in pairs if pair.about_outcome]),
        {kind: Shares.of([pair for pair in pairs if pair.kind == kind]) for kind in kinds},
        tuple(pairs),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
