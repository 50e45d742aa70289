"""Methods by name: `name`, `name:value` or `name:key=value:key=value`."""

from __future__ import annotations

import inspect
from typing import Any

from understudy.errors import UsageError
from understudy.logs.generators.baselines import Drop
from understudy.logs.generators.markov import Markov
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.synthesizer import Synthesizer

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
