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
    members, outsiders, synthetic = common_vocabulary(members, outsiders, synthetic)
    everybody = joined(members, outsiders)
    population, n_constant = everybody.without_constant_actions()
    if population.n_learners != everybody.n_learners or population.n_actions < 2:
        # Learners would change sides: leave all actions in rather than lose people.
        population, n_constant = everybody, 0
    else:
        known = set(population.actions)
        wanted = np.array([name in known or name not in everybody.actions for name in synthetic.actions])
        synthetic = synthetic.keep_rows(wanted[synthetic.action])
    population, synthetic = common_vocabulary(population, synthetic)
    if not synthetic.n_rows:
        raise DataError(
            "the synthetic log shares no action with the real ones.",
            hint="the three files need the same names of actions.",
        )
    member = np.arange(population.n_learners) < members.n_learners
    knowledge = Knowledge(population, members.n_learners)
    training, held_out = population.select(member), population.select(~member)
    return FileAudit(
        risk=attack(knowledge, member, synthetic, None, rng, workers=n_cores()),
        attribute=attribute_attack(training, held_out, synthetic, rng),
        utility=measure(Real(training, held_out), synthetic),
        n_constant=n_constant,
    )
