"""The audit of three files: members, outsiders, and what some generator made of the members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.attacks.estimate import Risk
from understudy.core.engine.tasks import n_cores
from understudy.errors import DataError
from understudy.logs.attacks.attribute import AttributeEstimate, attribute_attack
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.audit import attack
from understudy.logs.interactions import Interactions, common_vocabulary, joined
from understudy.logs.utility import Real, measure

# Share of synthetic rows with unknown actions beyond which an audit would see nothing.
MOST_STRANGE = 0.2


@dataclass(frozen=True)
class FileAudit:
    """What an audit of files found."""

    risk: Risk
    attribute: AttributeEstimate
    utility: dict[str, float]
    strange_share: float

    def to_json(self) -> dict[str, Any]:
        """The audit for a machine."""
        return {
            "risk": self.risk.to_json(),
            "attribute": self.attribute.to_json(),
            "utility": self.utility,
            "rows_with_unknown_actions": self.strange_share,
            "left_out": "shadow (it refits the generator, which files cannot do)",
        }


def audit_files(
    members: Interactions, outsiders: Interactions, synthetic: Interactions, rng: np.random.Generator
) -> FileAudit:
    """Every attack and metric that needs no generator."""
    known = {*members.actions, *outsiders.actions}
    strange = np.array([name not in known for name in synthetic.actions])
    strange_share = float(strange[synthetic.action].mean())
    if strange_share > MOST_STRANGE:
        raise DataError(
            f"{100 * strange_share:.0f} % of the synthetic rows have actions that no real log has, "
            "so hardly anything could be compared.",
            hint="the three files need the same names of actions, spelled alike.",
        )
    members, outsiders, synthetic = common_vocabulary(members, outsiders, synthetic)
    population = joined(members, outsiders)
    member = np.arange(population.n_learners) < members.n_learners
    knowledge = Knowledge(population, members.n_learners)
    return FileAudit(
        risk=attack(knowledge, member, synthetic, None, rng, workers=n_cores()),
        attribute=attribute_attack(members, outsiders, synthetic, rng),
        utility=measure(Real(members, outsiders), synthetic),
        strange_share=strange_share,
    )
