"""The audit of three files: members, outsiders, and what some generator made of the members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.attacks import Risk, attack
from understudy.attacks.attribute import AttributeEstimate, attribute_attack
from understudy.attacks.knowledge import Knowledge
from understudy.engine import n_cores
from understudy.errors import DataError
from understudy.records import Interactions
from understudy.records.interactions import common_vocabulary, joined
from understudy.utility import Real, measure


@dataclass(frozen=True)
class FileAudit:
    """What an audit of files found."""

    risk: Risk
    attribute: AttributeEstimate
    utility: dict[str, float]
    n_constant: int

    def to_json(self) -> dict[str, Any]:
        """The audit for a machine."""
        return {
            "risk": self.risk.to_json(),
            "attribute": self.attribute.to_json(),
            "utility": self.utility,
            "actions_set_aside": self.n_constant,
        }


def audit_files(
    members: Interactions, outsiders: Interactions, synthetic: Interactions, rng: np.random.Generator
) -> FileAudit:
    """Every attack and metric that needs no generator."""
    if not set(synthetic.actions) & {*members.actions, *outsiders.actions}:
        raise DataError(
            "the synthetic log shares no action with the real ones.",
            hint="the three files need the same names of actions.",
        )
    coded = common_vocabulary(members, outsiders, synthetic)
    constant = joined(*coded[:2]).constant_actions()
    members, outsiders, synthetic = (log.without_actions(constant) for log in coded)
    population = joined(members, outsiders)
    member = np.arange(population.n_learners) < members.n_learners
    knowledge = Knowledge(population, members.n_learners)
    return FileAudit(
        risk=attack(knowledge, member, synthetic, None, rng, workers=n_cores()),
        attribute=attribute_attack(members, outsiders, synthetic, rng),
        utility=measure(Real(members, outsiders), synthetic),
        n_constant=int(constant.sum()),
    )
