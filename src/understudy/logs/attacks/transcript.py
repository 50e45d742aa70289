"""`transcript` on logs: the noisy sums of a private generator, in place of the log that is made of them."""

from __future__ import annotations

from understudy.core.attacks import transcript
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.generators.generator import Generator


def white_box(knowledge: Knowledge, fitted: Generator) -> transcript.WhiteBox | None:
    """What the noisy sums of a fit say about each learner; None where the fit rests on no such sums."""
    sums = fitted.learner_sums(knowledge.population)
    return None if sums is None else transcript.white_box(sums, knowledge.training_share)
