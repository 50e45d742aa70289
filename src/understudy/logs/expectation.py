"""What a release of a log at hand is worth, before it is paid for: forecasts, what a goal needs, and the gate.

All of it uses the log's own number of rows, so it stays inside with the custodian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.files.words import counted, listed
from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure
from understudy.core.privacy.balance import Balance
from understudy.core.privacy.confirmation import Doubt
from understudy.core.privacy.risk import explained_epsilons
from understudy.errors import RefusedError, UsageError
from understudy.logs.generators.forecast import (
    USES,
    WORDS,
    Forecast,
    Use,
    forecast,
    needed_epsilon,
    needed_learners,
    success_points,
)
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_sums import USUAL_LONGEST
from understudy.logs.generators.private_times import TERM_SHARES, time_shares
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions
from understudy.logs.names import FoundNames, check_names

# Epsilons for which errors are shown, and the largest that is looked at for a goal.
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
MOST_EPSILON = 50.0
_ALIASES: dict[str, Use] = {"actions": "shares", "transitions": "steps"}


def expected_of(
    log: Interactions,
    epsilon: float,
    n_learners: int | None = None,
    *,
    like: Generator | None = None,
    drawn: int | None = None,
) -> Forecast:
    """The forecast for a log like this one, of as many learners or of others, by a method `like` this one.

    The card's is made of the same numbers of the synthetic log, so the two differ only as these do.
    """
    method = like if isinstance(like, MarkovDP) else RunsDP()
    names = FoundNames.expected(log, method.at(epsilon))
    # As many rows are read as learners have, but for very few: at least the usual number, at most `longest`.
    longest = min(method.longest, max(USUAL_LONGEST, int(log.lengths.max(initial=0))))
    lengths = np.minimum(log.lengths, longest)
    return forecast(
        n_learners or log.n_learners,
        log.n_actions if names is None else round(names.n_released) + 1,
        float(lengths.mean()),
        epsilon,
        pooled=None if names is None else 1.0 - names.kept,
        drawn=drawn,
        delta=method.delta,
        lengths=np.bincount(lengths, minlength=longest + 1)[1:] / len(lengths),
        in_order=log.declared and log.chapters is not None,
        outcomes=log.outcome is not None,
        details=method.at(epsilon).divided(log, n_learners),
        columns=[column.declared for column in log.columns],
    )


def budget_split(log: Interactions, generator: MarkovDP) -> dict[str, float]:
    """What actions and outcomes, times, their term and columns take of the budget, as shares; empty without details.

    Of what is left of it where names of actions are found.
    """
    parts = generator.divided(log)
    if not parts:
        return {}
    split = {"actions and outcomes": 1.0}
    for name, share in parts.items():
        about = "finding the term" if name in TERM_SHARES else name.split()[0]
        split[about] = split.get(about, 0.0) + share
    return {about: share / sum(split.values()) for about, share in split.items()}


def time_split(log: Interactions) -> dict[str, float]:
    """What each part of the times takes of what all of them have."""
    shares = {
        name.removeprefix("times "): share
        for name, share in time_shares(log).items()
        if name not in TERM_SHARES
    }
    return {name: share / sum(shares.values()) for name, share in shares.items()}


def expectations(log: Interactions, generator: Generator, drawn: int | None = None) -> list[Forecast]:
    """The errors at several risks and epsilons; what was asked for is among them, if it has an epsilon."""
    asked = generator.guarantee(log.n_learners).epsilon
    wanted = {*EPSILONS, asked} if math.isfinite(asked) else EPSILONS
    method = generator if isinstance(generator, MarkovDP) else RunsDP()
    epsilons = explained_epsilons(lambda epsilon: method.at(epsilon).guarantee_for(log), wanted)
    return [expected_of(log, epsilon, like=method, drawn=drawn) for epsilon in epsilons]


def without_jumps(forecasts: Sequence[Forecast]) -> str:
    """At which epsilons `runs-dp` will not ask which action follows which, in a sentence; nothing if it always does."""
    few = [each.risk.epsilon for each in forecasts if not each.jumps_asked]
    if not few:
        return ""
    instead = "the declared order" if forecasts[0].in_order else "how often actions are attempted"
    return (
        f"Up to epsilon {max(few):g} there are too few learners to estimate which action follows which: it is not "
        f"measured, steps follow {instead}, and its budget goes to all the rest."
    )


def expectation_figure(forecasts: Sequence[Forecast]) -> Figure:
    """Expected errors against epsilon, all of them in percentage points."""
    looks = {
        "shares of actions": Look(ACCENT),
        "success rate of an action": Look(WARNING, "diamond"),
        "steps between actions": Look(MUTED, "square"),
    }
    points = [
        Point(each.risk.epsilon, points(error.expected), points(error.low), points(error.high), series)
        for each in forecasts
        for series, use, points in zip(looks, USES, (_points, _success_points, _points), strict=True)
        if use in each.foreseen or use == "steps"
        for error in (each.of(use),)
    ]
    drawing = curves(
        points,
        "epsilon: smaller is more private",
        ["expected error", "(percentage points)"],
        looks=looks,
        domain=[0.0, 100.0],
        number=".0f",
        bands=True,
        logarithmic=True,
        ticks=EPSILONS,
        height=260,
    )
    return drawing.figure("Expected errors in percentage points, by epsilon")


def _points(share: float) -> float:
    return 100.0 * min(share, 1.0)


def _success_points(difficulty: float) -> float:
    return _points(success_points(difficulty))


@dataclass(frozen=True)
class Goal:
    """An error that should not be passed: `difficulties 0.3`, `steps 0.2` or `shares 0.1`."""

    use: Use
    within: float

    @classmethod
    def parse(cls, text: str) -> Goal:
        """From a word and a number."""
        name, _, number = text.strip().partition(" ")
        use = _ALIASES.get(name, name)
        try:
            within = float(number.removeprefix("within ").replace(",", "."))
        except ValueError:
            within = math.nan
        if use not in USES or not 0 < within < 10:
            raise UsageError(
                f"'{text}' is not a goal.",
                hint="name a use and the largest error: 'difficulties 0.3' (log-odds), 'steps 0.2' or 'shares 0.1' "
                "(of attempts).",
                code="bad-goal",
                settings=("within",),
            )
        return cls(use, within)


@dataclass(frozen=True)
class Reach:
    """What it takes to reach a goal with a log: an epsilon, or more learners."""

    goal: Goal
    epsilon: float
    """Infinite where no epsilon does."""
    learners: float
    """How many would do at epsilon 8 with as many rows each."""
    n_learners: int
    remaining: float
    """What can still be asked for these learners."""
    left: float = math.inf
    """What could be asked for after it."""

    def __str__(self) -> str:
        goal = f"{self.goal.use} within {self.goal.within:g}"
        if math.isfinite(self.epsilon) and self.epsilon <= self.remaining:
            left = "" if math.isinf(self.remaining) else f"; {self.left:.3g} could be asked for after it"
            return f"{goal}: epsilon {self.epsilon:.2g} is needed{left}."
        more = (
            f"about {float(f'{self.learners:.2g}'):,.0f} learners would do at epsilon 8"
            if math.isfinite(self.learners)
            else "more learners would not do either"
        )
        if math.isfinite(self.epsilon):
            return f"{goal}: epsilon {self.epsilon:.2g} is needed, and {self.remaining:.3g} can still be asked for."
        return f"{goal}: not reachable with {counted(self.n_learners, 'learner')}; {more}."

    def to_json(self) -> dict[str, Any]:
        """For machines; what cannot be reached is null."""
        return {
            "use": self.goal.use,
            "within": self.goal.within,
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "learners": math.ceil(self.learners) if math.isfinite(self.learners) else None,
            "remaining": self.remaining if math.isfinite(self.remaining) else None,
            "remaining_after": self.left if math.isfinite(self.left) else None,
        }


def reach(
    log: Interactions, goal: Goal, balance: Balance | None = None, like: Generator | None = None
) -> Reach:
    """What a goal needs by a method `like` this one, and what the balance of these learners leaves to ask for."""
    if goal.use == "difficulties":
        _refuse_difficulties(log, "within")
    method = like if isinstance(like, MarkovDP) else RunsDP()
    needed = needed_epsilon(
        goal.use, goal.within, lambda epsilon: expected_of(log, epsilon, like=method), MOST_EPSILON
    )
    remaining, left = math.inf, math.inf
    if balance is not None:
        remaining = balance.remaining(method.guarantee_for(log))
        if needed <= remaining:
            release = method.at(needed).guarantee_for(log)
            left = balance.after(release).remaining(release)
    return Reach(
        goal,
        needed,
        needed_learners(goal.use, goal.within, lambda n: expected_of(log, 8.0, n, like=method)),
        log.n_learners,
        remaining,
        left,
    )


def check_worth(
    log: Interactions, generator: Generator, meant_for: str = "", *, anyway: bool
) -> tuple[Doubt, ...]:
    """Refuse to pay for what would be noise for what it is meant for, unless `anyway`; what else should be known first.

    Without a purpose, shares and difficulties count: where steps are hidden, the rest may be worth having.
    """
    meant = _uses(meant_for, log)
    doubts = check_names(log, generator, anyway=anyway)
    if not isinstance(generator, MarkovDP) or log.simulated:
        return doubts
    epsilon = generator.guarantee(log.n_learners).epsilon
    foreseen = expected_of(log, epsilon, like=generator)
    noisy = foreseen.mostly_noise_for
    about = listed([*(WORDS[use] for use in noisy), *foreseen.noisy_details])
    if not about:
        return doubts
    sentence = f"Stays inside: at epsilon {epsilon:g} little but noise is to be expected about {about}."
    if anyway or not meant & set(noisy):
        return (*doubts, Doubt(sentence))
    raise RefusedError(
        f"{sentence} Nothing was spent.",
        hint="group actions (chapters in place of single tasks), wait for more learners"
        + ("" if log.outcome is None else ", or release difficulties alone, which cost less")
        + ("" if log.declared else "; declare the names of actions if they are public, as a curriculum is")
        + ". Or say what the data is meant for, or go on all the same.",
        code="mostly-noise",
        settings=("meant_for", "anyway") if log.declared else ("public_actions", "meant_for", "anyway"),
        internal=True,
        noise=noisy,
        epsilon=epsilon,
    )


def _refuse_difficulties(log: Interactions, setting: str) -> None:
    """A log without outcomes has no difficulties, at no epsilon."""
    if log.outcome is None:
        raise UsageError(
            "difficulties were asked for, and the log has no outcomes.",
            hint="ask for shares or steps; or name the column with the outcomes, if there is one.",
            code="no-outcomes",
            settings=(setting, "outcome"),
        )


def _uses(meant_for: str, log: Interactions) -> set[Use]:
    """The uses that a custodian names, with commas between them."""
    found: set[Use] = set()
    for name in meant_for.replace(",", " ").split():
        use = _ALIASES.get(name, name)
        if use not in USES:
            raise UsageError(
                f"there is no use '{name}'.",
                hint="it may be meant for " + ", ".join(USES) + ", or several of them.",
                code="bad-use",
                settings=("meant_for",),
            )
        found.add(use)
    if "difficulties" in found:
        _refuse_difficulties(log, "meant_for")
    return found or ({"shares"} if log.outcome is None else {"shares", "difficulties"})
