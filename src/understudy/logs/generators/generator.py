"""Generator: what learns from one log and writes another."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.transcript import LearnerSums
from understudy.core.files.words import counted
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise, os_noise
from understudy.core.privacy.spending import SpentError
from understudy.errors import UsageError
from understudy.logs.generators.details import Details, exact_details
from understudy.logs.interactions import Interactions, as_log, joined
from understudy.logs.where import Where

DetailsBy = Literal["exact", "own", "none"]

# Until there are enough who fulfil conditions, so many learners are drawn at most for each that is wanted, but at least
# so many in all.
MOST_DRAWN_PER_LEARNER, LEAST_DRAWN = 200, 20_000


class Generator(ABC):
    """A generator of synthetic logs: subclasses say how they learn (`_fit`) and how they draw (`_sample`).

    The constructor only stores options. After `fit`, learned attributes end in an underscore and hold
    parameters, not rows: a fitted generator may be kept where the log may not. Generators for which this is
    not true say so with `keeps_rows`.

    Fitting charges nothing: what is given out of it, is given out by `synthesize` and `release`.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    keeps_rows: bool = False
    needs_names: bool = False
    """Whether it learns only from a log whose names of actions are public."""
    needs_outcomes: bool = True
    """Whether it learns from outcomes: of a log without any it is given failures, and those it draws are left out."""
    details: ClassVar[DetailsBy] = "exact"
    """Times and columns of the log: added to the walks by exact sums, by the generator itself (with noise, or as rows
    have them), or left out."""
    option_names: ClassVar[dict[str, str]] = {}
    """How an option is written where its parameter cannot be called so, `as` for one."""
    text: str = ""
    """How the generator was asked for, if it was asked for in words."""

    guarantee_: Guarantee
    n_learners_: int
    simulated_: bool
    has_outcomes_: bool
    details_: Details = Details()
    cut_short_: str = ""
    """After an interrupted `fit` that left something to sample from: where it stopped, in a sentence."""

    @property
    def in_database(self) -> bool:
        """Whether it also learns from a log whose rows stay in a database."""
        return False

    def guarantee(self, n_learners: int) -> Guarantee:
        """What is proved about everything this generator gives out; the number of learners is public."""
        return Guarantee.none(f"nothing is proved about {self.label}")

    def guarantee_for(self, log: Interactions) -> Guarantee:
        """The same for one log: what is declared about it, such as the names of actions, may leave more to spend."""
        return self.guarantee(log.n_learners)

    def fit(
        self, log: Interactions, rng: np.random.Generator | None = None, noise: Noise | None = None
    ) -> Self:
        """Learn from a log.

        Noise that a guarantee needs comes from `noise` alone: from the operating system, unless a test
        gives another; then the guarantee is void.
        """
        log, noise = as_log(log, elsewhere=self.in_database), noise or os_noise()
        self.n_learners_, self.simulated_, self.cut_short_ = log.n_learners, log.simulated, ""
        self.has_outcomes_ = log.outcome is not None
        claim = self.guarantee_for(log)
        self.guarantee_ = claim if noise.secret else Guarantee.seeded(claim)
        self.details_ = Details()
        # Exact sums are for baselines: no promise covers them, whoever wrote the generator.
        if self.details == "exact" and not claim.formal:
            self.details_ = exact_details(log)
        self._fit(log.with_failures() if self.needs_outcomes else log, rng or np.random.default_rng(), noise)
        return self

    def sample(
        self,
        n_learners: int | None = None,
        rng: np.random.Generator | None = None,
        where: str | Where | None = None,
    ) -> Interactions:
        """A synthetic log; by default with as many learners as the generator learned from.

        With `where` (`group=B`, `group=A:100, group=B:50`) learners are drawn until there are enough who fulfil it.
        That is a choice among drawn learners, made after the fit: it costs nothing.
        """
        if not hasattr(self, "guarantee_"):
            raise UsageError(
                f"{self.label} was not fitted yet.", hint="call fit(log) first.", code="not-fitted"
            )
        rng = rng or np.random.default_rng()
        if where is None:
            return self._drawn(n_learners, rng)
        wanted = Where.parse(where) if isinstance(where, str) else where
        return self._drawn_where(wanted, n_learners, rng)

    def _drawn(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        drawn = self._sample(n_learners, rng)
        drawn = self.details_.add_to(drawn if self.has_outcomes_ else drawn.without_outcomes(), rng)
        return replace(drawn, simulated=self.simulated_, guarantee=self.guarantee_)

    def _drawn_where(self, where: Where, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Learners who fulfil conditions, of as many as it takes; those of real rows are drawn once, as there are."""
        drawn = self._drawn(None, rng)
        where.check([column.declared for column in drawn.columns], n_learners)
        wanted = [each.n_learners or n_learners or self.n_learners_ for each in where.wanted]
        found: list[list[Interactions]] = [[] for _ in wanted]
        n_drawn, most = 0, max(MOST_DRAWN_PER_LEARNER * max(wanted), LEAST_DRAWN)
        while True:
            n_drawn += drawn.n_learners
            taken = np.zeros(drawn.n_learners, dtype=bool)
            for place, each in enumerate(where.wanted):
                missing = wanted[place] - sum(part.n_learners for part in found[place])
                # A learner who fulfils two of the wishes counts for the first that still needs one.
                fitting = np.flatnonzero(each.matches(drawn) & ~taken)[:missing]
                taken[fitting] = True
                found[place].append(drawn.select(fitting))
            numbers = [sum(part.n_learners for part in parts) for parts in found]
            if numbers == wanted:
                parts = [part for kind in found for part in kind if part.n_learners]
                whole = joined(*parts)
                return replace(whole, simulated=self.simulated_, guarantee=self.guarantee_)
            if self.keeps_rows or n_drawn >= most:
                break
            drawn = self._drawn(max(self.n_learners_, LEAST_DRAWN // 10), rng)
        short = next(place for place, number in enumerate(numbers) if number < wanted[place])
        raise SpentError(
            f"asked for {counted(wanted[short], 'learner')} with {where.wanted[short]}; of "
            f"{counted(n_drawn, 'learner')} that {self.label} drew, {numbers[short]} are like that.",
            hint="ask for fewer, or for what is less rare; without conditions all learners are drawn, and their table "
            "can be filtered.",
            code="too-few-match",
            settings=("where",),
        )

    def learner_sums(self, log: Interactions) -> LearnerSums | None:
        """Where a fit rests on noisy sums over learners: what each learner of a log would have added to them."""
        return None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fitted generator as plain arrays, for those that can be saved; a release keeps them inside."""
        return {}

    @abstractmethod
    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Learn the parameters."""

    @abstractmethod
    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Draw invented learners."""

    @property
    def label(self) -> str:
        """The generator in words: as it was asked for, or its name with the options that are not usual."""
        if self.text:
            return self.text
        options = [
            f"{self.option_names.get(name, name)}={_short(getattr(self, name, parameter.default))}"
            for name, parameter in inspect.signature(type(self)).parameters.items()
            if getattr(self, name, parameter.default) != parameter.default
        ]
        return ":".join([self.name, *options])

    @property
    def kind(self) -> str:
        """What to call the rows that it gives out."""
        if self.keeps_rows:
            return "rows of real learners under new numbers; no learner was invented"
        return "synthetic data: these learners do not exist"

    def fresh(self) -> Self:
        """The same generator, not fitted; fits of several may run at a time."""
        unfitted = copy.copy(self)
        for name in [name for name in vars(unfitted) if name.endswith("_")]:
            delattr(unfitted, name)
        return unfitted

    def __repr__(self) -> str:
        if not hasattr(self, "guarantee_"):
            return f"<{type(self).__name__} {self.label}, not fitted>"
        return f"<{type(self).__name__} {self.label}, fitted; {self.guarantee_}; not charged to a ledger>"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
