"""Generators by name: ours, those that others install, a class of a module, or any program.

Written `name`, `name:value` or `name:key=value:key=value`; `module:Class` (with the same options behind
it) for a class of your own; `run:COMMAND {train} {out}` for a program in any language.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from understudy.core.privacy.risk import RiskLimit, two_epsilons
from understudy.errors import UsageError
from understudy.logs.generators.baselines import Drop, Markov
from understudy.logs.generators.foreign import Adapted, Program
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.gru import Gru
from understudy.logs.generators.gru_dp import GruDP
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs import Runs
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions

GROUP = "understudy.generators"
GENERATORS: dict[str, type[Generator]] = {
    kind.name: kind for kind in (Drop, Markov, Runs, MarkovDP, RunsDP, Gru, GruDP)
}
# Classes whose guarantee is taken at its word; a subclass may do anything, so it is not one of them.
_OURS = frozenset({*GENERATORS.values(), Adapted, Program})


def generator_names() -> tuple[str, ...]:
    """The names that `parse_generator` knows, those of installed packages included."""
    return (*GENERATORS, *(point.name for point in entry_points(group=GROUP)))


def as_generator(given: Any) -> Generator:
    """A generator from what a user may hand over: one of ours, its words, or an object with fit and sample.

    Whatever is not exactly one of ours has no guarantee, whatever it says about itself.
    """
    if type(given) in _OURS:
        return cast(Generator, given)
    if isinstance(given, str):
        return parse_generator(given)
    if isinstance(given, type):
        return as_generator(given())
    if callable(getattr(given, "fit", None)) and callable(getattr(given, "sample", None)):
        return Adapted(given)
    raise UsageError(
        f"a generator has the methods fit and sample; {type(given).__name__} has not.",
        hint="give a name such as 'markov', or an object with fit(log) and sample().",
        code="not-a-generator",
        settings=("method",),
    )


# The epsilon of `runs-dp` and `markov-dp` where nobody chose one, and where there are more declared names than
# learners: there halving it costs little of what is left of the log, and attacks find much less
# (docs/explanation/attacks.md).
USUAL_EPSILON = 8.0
CROWDED_EPSILON = 4.0


def usual_epsilon(log: Interactions) -> float:
    """The epsilon where nobody chose one; names that were not declared are not public, so they do not count."""
    return CROWDED_EPSILON if log.declared and log.n_actions > log.n_learners else USUAL_EPSILON


def chosen_generator(given: Any, epsilon: float | None, risk: str, log: Interactions) -> Generator:
    """The generator of a release: the one given, else the default; with this epsilon, or with that of this risk."""
    if given is not None and epsilon is not None:
        raise UsageError(
            "an epsilon was given beside a generator.",
            hint="give the epsilon to the generator, as in runs-dp:epsilon=2.",
            code="two-epsilons",
            settings=("epsilon", "method"),
        )
    is_open = epsilon is None and (given is None or _leaves_epsilon_open(given))
    if given is None:
        generator: Generator = RunsDP(USUAL_EPSILON if epsilon is None else epsilon)
    else:
        generator = as_generator(given).fresh()
    if is_open and isinstance(generator, MarkovDP) and usual_epsilon(log) != generator.epsilon:
        generator = generator.at(usual_epsilon(log))
    if not risk:
        return generator
    if not isinstance(generator, MarkovDP):
        raise UsageError(
            f"a risk was stated, but {generator.label} adds no noise that could be set by it.",
            hint="use runs-dp, or leave the risk out: a release measures it.",
            code="no-guarantee",
            settings=("risk", "method"),
        )
    if not is_open:
        raise two_epsilons("method")
    return generator.within(RiskLimit.parse(risk), log)


def _leaves_epsilon_open(given: Any) -> bool:
    """Whether a generator was asked for in words that name no epsilon, which would be its first option."""
    options = given.split(":")[1:] if isinstance(given, str) else ["an object has one"]
    return all("=" in option and not option.startswith("epsilon=") for option in options)


def parse_generator(text: str) -> Generator:
    """The generator that `text` describes, not yet fitted: `drop:0.5`, `markov`, `mine.py:Mine`, `run:...`."""
    name, colon, rest = text.partition(":")
    if name == "run":
        return Program(rest.strip())
    if (kind := GENERATORS.get(name) or _installed(name)) is not None:
        made = _make(kind, name, rest.split(":") if colon else [], text)
    elif "." in name or rest[:1].isupper():
        class_name, _, options = rest.partition(":")
        made = _make(
            _class_of(name, class_name, text), class_name, options.split(":") if options else [], text
        )
    else:
        raise UsageError(
            f"there is no generator '{name}'; there are: {', '.join(generator_names())}.",
            hint="a generator is written name, name:value or name:key=value, for example drop:0.5; one of your own "
            "module:Class or run:COMMAND.",
            code="no-such-generator",
            settings=("method",),
        )
    generator = as_generator(made)
    generator.text = text
    return generator


def _installed(name: str) -> type[Any] | None:
    for point in entry_points(group=GROUP, name=name):
        kind: type[Any] = point.load()
        return kind
    return None


def _class_of(module: str, class_name: str, text: str) -> type[Any]:
    try:
        kind: type[Any] = getattr(import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"'{text}' asks for the class {class_name or '(no name)'} of the module {module}; it cannot be imported "
            f"({type(error).__name__}).",
            hint="run the command where the module can be imported, or install it.",
            code="no-such-generator",
            settings=("method",),
        ) from None
    return kind


def _make(kind: type[Any], name: str, options: list[str], text: str) -> Any:
    written = getattr(kind, "option_names", {})
    parameters = {written.get(p.name, p.name): p for p in inspect.signature(kind).parameters.values()}
    takes = f"it takes: {', '.join(parameters) or 'no option'}."
    given: dict[str, Any] = {}
    for position, option in enumerate(options):
        key, equals, value = option.rpartition("=")
        if not equals:
            if position or not parameters:
                raise UsageError(f"generator '{name}' does not take '{option}' in '{text}'.", hint=takes)
            key = next(iter(parameters))
        if key not in parameters:
            raise UsageError(f"generator '{name}' has no option '{key}'.", hint=takes)
        if parameters[key].name in given:
            raise UsageError(f"option '{key}' is given twice in '{text}'.", hint="give it once.")
        given[parameters[key].name] = _value(value, parameters[key].default, key, name)
    return kind(**given)


def _value(text: str, default: Any, key: str, name: str) -> Any:
    """The value of an option: a text where the usual value is one, else a number."""
    if isinstance(default, str):
        return text
    try:
        return float(text)
    except ValueError:
        example = default if default and isinstance(default, int | float) else 1
        raise UsageError(
            f"option '{key}' of generator '{name}' is a number, not '{text}'.",
            hint=f"for example {name}:{key}={example:g}.",
        ) from None
