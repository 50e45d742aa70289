"""Names that a private generator has to find, of actions and of categories: which would be released, before the charge.

The threshold is computed from public numbers. What share of rows would keep its name is not: it is for the custodian
alone, who decides by it whether to spend at all. `docs/explanation/guarantee.md` says what such a decision tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from scipy.special import ndtr

from understudy.core.privacy.confirmation import Doubt
from understudy.errors import RefusedError
from understudy.logs.declared.columns import OTHER
from understudy.logs.generators.budget import VOCABULARY_SHARE, vocabulary_threshold
from understudy.logs.generators.found_columns import FOUND, Unknown, shared_values, values_threshold
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.markov_dp import MOST_OWN_ACTIONS, MarkovDP, n_thresholds
from understudy.logs.generators.private_columns import statistic_of
from understudy.logs.generators.private_sums import WalkStatistics, first_rows
from understudy.logs.interactions import Interactions

# A release in which fewer rows than this keep their name is not worth its price, unless the custodian says so.
LEAST_KEPT = 0.5


@dataclass(frozen=True)
class FoundNames:
    """What finding names privately would give."""

    threshold: float
    """Learners who share a name that is released, if each did that action alone. Public."""
    sigma: float
    """The noise of that number. Public."""
    kept: float
    """The share of rows that would keep its name. It stays inside."""
    n_released: float
    """How many names would be released. It stays inside."""

    @classmethod
    def expected(cls, log: Interactions, generator: Generator) -> FoundNames | None:
        """What to expect of a log; None where names are declared or the generator finds none privately."""
        guarantee = generator.guarantee_for(log)
        if log.declared or not isinstance(generator, MarkovDP) or guarantee.rho is None:
            return None
        log = first_rows(log, generator.longest)
        total = WalkStatistics(log).shared_actions(MOST_OWN_ACTIONS)
        sigma = float(np.max(total.step)) * (total.sensitivity / sqrt(2.0 * guarantee.rho * VOCABULARY_SHARE))
        threshold = vocabulary_threshold(sigma, guarantee.extra_delta / n_thresholds(log), MOST_OWN_ACTIONS)
        released = ndtr((total.values * total.step - threshold) / sigma)
        rows = np.bincount(log.action, minlength=log.n_actions)
        return cls(threshold, sigma, float(rows @ released) / max(log.n_rows, 1), float(released.sum()))

    def sentence(self) -> str:
        """The public part: how many learners have to share a name."""
        alone, many = ceil(self.threshold), ceil(sqrt(10.0) * self.threshold)
        return (
            f"The names of actions are found privately: one is released if about {many} learners share it. (That many "
            f"with ten different actions each; of learners who did nothing else {alone} are enough.)"
        )

    def kept_sentence(self) -> str:
        """The part that is for the custodian alone."""
        return f"Stays inside: about {100 * self.kept:.0f} % of the rows would keep the name of their action."

    def doubt(self) -> Doubt:
        """Both, for the custodian who decides."""
        return Doubt(f"{self.sentence()} {self.kept_sentence()}", ("public_actions", "actions_file"))

    def refuse(self) -> None:
        """Refuse a release in which most rows would lose the name of their action."""
        if self.kept >= LEAST_KEPT:
            return
        raise RefusedError(
            f"{self.sentence()} {self.kept_sentence()} Nothing was spent.",
            hint="declare the names public if they are, as those of a course are; give a list of them; or group them "
            "in the file, chapters in place of single tasks. Or go on all the same.",
            code="names-lost",
            settings=("public_actions", "actions_file", "anyway"),
            internal=True,
        )


def categories_doubts(log: Interactions, generator: Generator) -> tuple[Doubt, ...]:
    """For each column whose categories are found: how many learners one needs, and how many cells would keep theirs."""
    guarantee = generator.guarantee_for(log)
    unknown = {declared.name: declared for declared in Unknown.of(log).values}
    if not unknown or not isinstance(generator, MarkovDP) or guarantee.rho is None:
        return ()
    shares = generator.divided(log)
    left = guarantee.rho * (1.0 if log.declared else 1.0 - VOCABULARY_SHARE) / (1.0 + sum(shares.values()))
    log = first_rows(log, generator.longest)
    doubts = []
    for column in log.columns:
        if (declared := unknown.get(column.declared.name)) is None:
            continue
        total = shared_values(log, column)
        rho = left * shares[statistic_of(declared, FOUND)]
        sigma = float(np.max(total.step)) * (total.sensitivity / sqrt(2.0 * rho))
        least = values_threshold(declared, sigma, guarantee.extra_delta / n_thresholds(log))
        released = ndtr((total.values * total.step - least) / sigma)
        cells = np.bincount(column.cells[~column.missing], minlength=len(declared.names))[: len(released)]
        kept = float(cells @ released) / max(int(cells.sum()), 1)
        alone = " and no other" if declared.of == "row" else ""
        doubts.append(
            Doubt(
                f"The categories of column '{declared.name}' are found privately: one is released if about "
                f"{ceil(least)} learners have it{alone}. Stays inside: about {100 * kept:.0f} % of its cells would "
                f"keep theirs, the others become '{OTHER}'. If the categories are public, list them in the plan."
            )
        )
    return tuple(doubts)


def check_names(log: Interactions, generator: Generator, *, anyway: bool) -> tuple[Doubt, ...]:
    """Refuse what would lose most names, unless `anyway`; what the custodian should know before the charge."""
    of_columns = categories_doubts(log, generator)
    found = FoundNames.expected(log, generator)
    if found is None:
        return of_columns
    if not anyway:
        found.refuse()
    return (found.doubt(), *of_columns)
