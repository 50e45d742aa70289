"""Methods by name: `name`, `name:value` or `name:key=value:key=value`."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import UsageError
from understudy.logs.generators.baselines import Drop, Markov
from understudy.logs.generators.markov_dp import MarkovDP
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


METHODS: dict[str, type[Any]] = {method.name: method for method in (Drop, Markov, MarkovDP)}


def method_names() -> tuple[str, ...]:
    """The names that `make_method` knows."""
    return tuple(METHODS)


def make_method(text: str) -> Synthesizer:
    """The method that `text` describes, not yet fitted: `drop:0.5`, `markov`."""
    name, *options = text.split(":")
    if name not in METHODS:
        raise UsageError(
            f"there is no method '{name}'; there are: {', '.join(METHODS)}.",
            hint="a method is written name, name:value or name:key=value, for example drop:0.5.",
        )
    method = METHODS[name]
    parameters = list(inspect.signature(method).parameters.values())
    given: dict[str, float] = {}
    for position, option in enumerate(options):
        key, equals, value = option.rpartition("=")
        if not equals:
            if position or not parameters:
                raise UsageError(
                    f"method '{name}' does not take '{option}' in '{text}'.",
                    hint=f"it takes: {', '.join(p.name for p in parameters) or 'no option'}.",
                )
            key = parameters[0].name
        if key not in {p.name for p in parameters}:
            raise UsageError(
                f"method '{name}' has no option '{key}'.",
                hint=f"it takes: {', '.join(p.name for p in parameters) or 'no option'}.",
            )
        if key in given:
            raise UsageError(f"option '{key}' is given twice in '{text}'.", hint="give it once.")
        try:
            given[key] = float(value)
        except ValueError:
            raise UsageError(
                f"option '{key}' of method '{name}' is a number, not '{value}'.", hint="for example drop:0.5."
            ) from None
    made: Synthesizer = method(**given)
    return made


def kind_of(synthesizer: Synthesizer) -> str:
    """What to call the rows that a method gives out."""
    if synthesizer.keeps_rows:
        return "rows of real learners under new numbers; no learner was invented"
    return "synthetic data: these learners do not exist"
