"""The generators that run in our own interpreter: ours by their words, and PrivTrace's rule."""

from __future__ import annotations

from reproductions.head_to_head.privtrace import PrivTrace
from understudy.logs.generators.foreign import Adapted
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import parse_generator


def generator_of(method: str) -> Generator:
    """The generator of a method: `privtrace:EPSILON`, or the words of one of ours."""
    name, _, epsilon = method.partition(":")
    if name != PrivTrace.name:
        return parse_generator(method)
    adapted = Adapted(PrivTrace(float(epsilon)))
    adapted.text = method
    return adapted
