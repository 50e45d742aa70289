"""Attacks of others: functions from (Knowledge, synthetic log) to one score per learner, found by entry point.

A package that declares an entry point in the group `understudy.attacks` joins every audit, study and release.
`check_attack` is what its author can run first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DataError
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

Floats = NDArray[np.float64]
Attack = Callable[[Knowledge, Interactions], Any]

GROUP = "understudy.attacks"


@cache
def plugged_attacks() -> dict[str, Attack]:
    """The attacks that installed packages bring, by name."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}


def scores_of(name: str, attack: Attack, knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """The scores of an attack of others; anything but a finite number per learner is an error."""
    scores = np.asarray(attack(knowledge, synthetic), dtype=np.float64)
    if scores.shape != (knowledge.population.n_learners,) or not np.isfinite(scores).all():
        raise DataError(
            f"the attack '{name}' did not give a finite score for each of {knowledge.population.n_learners} learners.",
            hint="its author can run understudy.check_attack.",
            code="bad-attack",
        )
    return scores


def check_attack(attack: Attack) -> None:
    """Raise an error unless an attack does what every attack has to do.

    It gives a finite score per learner, the same each time, leaves the logs as they are, does not look at the
    order of the learners, and scores members of a log that is released whole above others.
    """
    rng = np.random.default_rng(0)
    log = Classroom(n_learners=60, n_actions=8, shortest=10).simulate(rng)
    member = np.arange(60) < 30
    released = log.select(member)
    before = log.action.copy()
    scores = scores_of("yours", attack, Knowledge(log, 30), released)
    if not np.array_equal(scores, scores_of("yours", attack, Knowledge(log, 30), released)):
        raise AssertionError("the same logs give other scores the second time")
    if not np.array_equal(before, log.action):
        raise AssertionError("the attack changed the log")
    order = rng.permutation(60)
    if not np.allclose(
        scores_of("yours", attack, Knowledge(log.select(order), 30), released), scores[order], atol=1e-9
    ):
        raise AssertionError("the scores depend on the order of the learners")
    if not scores[member].mean() > scores[~member].mean():
        raise AssertionError("members of a log that is released whole do not score above others")
