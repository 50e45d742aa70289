"""What every generator has to do, as checks that the author of one can run: `check_generator(Mine())`.

Our own tests put every registered generator through the same checks.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import UsageError
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import as_generator
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

_COLUMNS = ("action", "outcome", "offsets")


class ConformanceError(AssertionError):
    """A generator does not do what every generator has to do."""


def check_generator(generator: Any, log: Interactions | None = None) -> None:
    """Put a generator through all checks; the first one that fails raises an error that says what is wrong."""
    generator = generator() if isinstance(generator, type) else generator
    # A subclass is checked itself, with what it says about its guarantee.
    made = generator if isinstance(generator, Generator) else as_generator(generator)
    log = example_log() if log is None else log
    for check in CHECKS:
        check(
            made if check is constructor_only_stores and not hasattr(made, "guarantee_") else made.fresh(),
            log,
        )


def example_log() -> Interactions:
    """A simulated log with an action that nobody tried, and with columns that must not leave."""
    drawn = Classroom(n_learners=61, n_actions=6, shortest=8).simulate(np.random.default_rng(0))
    return Interactions(
        drawn.action.copy(),
        drawn.success.copy(),
        drawn.offsets.copy(),
        (*drawn.actions, "never tried"),
        time=np.arange(drawn.n_rows).astype("datetime64[us]"),
        group=np.zeros(drawn.n_learners, dtype=np.int32),
        groups=("g",),
        simulated=True,
    )


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise ConformanceError(sentence)


def _fitted(generator: Generator, log: Interactions) -> Generator:
    """Fitted with the same randomness each time; the vocabulary is declared."""
    return generator.fit(log.declare(), np.random.default_rng(1), seeded_noise(np.random.default_rng(1)))


def _same(one: Interactions, other: Interactions) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in _COLUMNS)


def _reachable(value: Any, seen: dict[int, Any] | None = None) -> Collection[Any]:
    """All objects that can be reached from a value through attributes and containers."""
    seen = {} if seen is None else seen
    if id(value) in seen or isinstance(value, str | bytes | int | float | type | type(None)):
        return seen.values()
    seen[id(value)] = value
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    elif isinstance(value, np.ndarray):
        inner = [value.base] if value.base is not None else []
    else:
        inner = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        inner += list(getattr(value, "__dict__", {}).values())
    for part in inner:
        _reachable(part, seen)
    return seen.values()


def describes_itself(generator: Generator, log: Interactions) -> None:
    """A generator has a label, says whether it keeps rows, and states a guarantee or none."""
    _require(bool(generator.label), "it has no label")
    _require(isinstance(generator.keeps_rows, bool), "`keeps_rows` is neither True nor False")
    _require(isinstance(generator.guarantee(100), Guarantee), "`guarantee` does not return a Guarantee")


def constructor_only_stores(generator: Generator, log: Interactions) -> None:
    """What is learned ends in an underscore, and there is nothing of it before `fit`."""
    learned = [name for name in vars(generator) if name.endswith("_")]
    _require(not learned, f"the constructor sets {', '.join(learned)}, which only fit may")


def fit_returns_itself(generator: Generator, log: Interactions) -> None:
    """`fit` returns the generator, and what it learned ends in an underscore."""
    before = set(vars(generator))
    _require(_fitted(generator, log) is generator, "`fit` does not return the generator")
    plain = [name for name in set(vars(generator)) - before if not name.endswith("_")]
    _require(not plain, f"`fit` sets {', '.join(plain)}, which should end in an underscore")


def keeps_no_rows(generator: Generator, log: Interactions) -> None:
    """A fitted generator holds parameters: no rows, no memory of the log, no value per learner."""
    _fitted(generator, log)
    kept = list(_reachable(vars(generator)))
    columns = (log.action, log.outcome, log.offsets, log.time, log.group)
    holds = (
        any(isinstance(value, Interactions) for value in kept)
        or any(hasattr(value, "__len__") and len(value) >= log.n_rows for value in kept)
        or any(
            isinstance(value, np.ndarray)
            and any(column is not None and np.shares_memory(value, column) for column in columns)
            for value in kept
        )
        or any(
            isinstance(value, np.ndarray) and {log.n_learners, log.n_learners + 1} & set(value.shape)
            for value in kept
        )
    )
    _require(
        holds == generator.keeps_rows,
        "a fitted generator holds rows of the log, or a value per learner, and `keeps_rows` does not say so"
        if holds
        else "`keeps_rows` is True, but nothing of the log is kept",
    )


def outlives_the_log(generator: Generator, log: Interactions) -> None:
    """The same sample can be drawn when the log is gone."""
    own = replace(log, **{name: getattr(log, name).copy() for name in _COLUMNS})
    _fitted(generator, own)
    wanted = generator.sample(None, np.random.default_rng(2))
    gone = weakref.ref(own.action)
    del own
    gc.collect()
    _require(generator.keeps_rows or gone() is None, "a fitted generator keeps the log alive")
    _require(
        _same(generator.sample(None, np.random.default_rng(2)), wanted), "the sample changed without the log"
    )


def leaves_the_log(generator: Generator, log: Interactions) -> None:
    """Fitting and sampling change nothing in the log."""
    before = [getattr(log, name).copy() for name in _COLUMNS]
    _fitted(generator, log).sample(None, np.random.default_rng(2))
    after = [getattr(log, name) for name in _COLUMNS]
    _require(all(map(np.array_equal, before, after)), "the log was changed")


def samples_a_valid_log(generator: Generator, log: Interactions) -> None:
    """A sample has the log's vocabulary, outcomes of 0 and 1, and a row for every learner."""
    sample = _fitted(generator, log).sample(None, np.random.default_rng(2))
    _require(sample.actions == log.actions, "the sample has another vocabulary than the declared one")
    _require(sample.n_rows > 0 and bool((sample.lengths > 0).all()), "the sample has learners without rows")
    _require(sample.simulated == log.simulated, "that learners are simulated was lost")
    if not generator.guarantee(
        log.n_learners
    ).formal:  # under a guarantee even the longest sequence is not known
        _require(sample.lengths.max() <= log.lengths.max(), "a sequence is longer than any real one")


def releases_only_what_was_asked(generator: Generator, log: Interactions) -> None:
    """Times, groups and items do not reach a sample."""
    sample = _fitted(generator, log).sample(None, np.random.default_rng(2))
    extra = [name for name in ("time", "group", "item") if getattr(sample, name) is not None]
    _require(not extra, "a column leaves that nobody asked for")
    _require(sample.to_polars().columns == ["learner", "action", "outcome"], "the frame has other columns")


def samples_as_many_as_asked(generator: Generator, log: Interactions) -> None:
    """The number of synthetic learners is the one asked for."""
    _fitted(generator, log)
    for n_learners in (0, 1, 25):
        found = generator.sample(n_learners, np.random.default_rng(2)).n_learners
        _require(found == n_learners, f"asked for {n_learners} learners, it drew {found}")
    try:
        many = generator.sample(1000, np.random.default_rng(2)).n_learners
    except UsageError:
        many = 1000  # a generator that invents nobody may refuse
    _require(many == 1000, "it drew fewer learners than asked without saying so")


def seed_fixes_the_sample(generator: Generator, log: Interactions) -> None:
    """The same seed gives the same sample, another one another."""
    _fitted(generator, log)
    first, again, other = (generator.sample(None, np.random.default_rng(seed)) for seed in (2, 2, 3))
    _require(_same(first, again), "the same seed gives another sample")
    _require(not _same(first, other), "another seed gives the same sample")


def fitting_again_forgets(generator: Generator, log: Interactions) -> None:
    """Nothing of an earlier log is left after another fit."""
    other = log.select(np.arange(20))
    fresh = _fitted(generator.fresh(), other)
    again = _fitted(_fitted(generator, log), other)
    samples = [made.sample(None, np.random.default_rng(2)) for made in (fresh, again)]
    _require(_same(*samples), "a second fit remembers the first")


CHECKS = (
    describes_itself,
    constructor_only_stores,
    fit_returns_itself,
    keeps_no_rows,
    outlives_the_log,
    leaves_the_log,
    samples_a_valid_log,
    releases_only_what_was_asked,
    samples_as_many_as_asked,
    seed_fixes_the_sample,
    fitting_again_forgets,
)
