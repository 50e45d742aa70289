"""Estimation: the settings of difficulties(); wrong ones are refused before a file is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated

from understudy.core.privacy.risk import ByRisk
from understudy.core.privacy.rosters import MIN_SHARED, Roster, shared_share
from understudy.errors import RefusedError, UsageError
from understudy.exams.estimators.choice import check_public
from understudy.exams.estimators.joint import PENALTY, PRINTED_PENALTY
from understudy.exams.estimators.noisy_totals import Prior
from understudy.exams.formats.reading import read_responses
from understudy.exams.mechanisms.totals import Missing
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Responses

PRIVATE = ("knorm", "gaussian")
PUBLISHED = ("objective", "statistics")
NOT_PRIVATE = ("marginal", "two-parameter", "conditional", "joint")
# Methods that know what to do with points; others take right and wrong.
WITH_POINTS = (*PRIVATE, "marginal", "two-parameter")
METHODS = (*PRIVATE, *NOT_PRIVATE, *PUBLISHED)
# Those that minimise equation 6 of the paper, with its penalty lambda.
PENALISED = ("joint", *PUBLISHED)

# Below, the result is nothing but noise; above, it has hardly any. Both leave the range of the samplers.
LEAST_EPSILON, MOST_EPSILON = 0.001, 100.0


class _Default(str):
    """A method that was chosen by default: it is chosen again when epsilon changes."""


@dataclass(frozen=True)
class Estimation(ByRisk):
    """How difficulties are estimated; wrong choices are refused before a file is read.

    Texts are taken as people type them: `ability_sd` may be "1.5", `prior` "0,2" or the name of a file.
    """

    method: Annotated[
        str | None,
        "knorm (pure epsilon, the default) or gaussian (with delta, better beyond some 50 items); without epsilon "
        "marginal, two-parameter (each item has a discrimination of its own), conditional or joint; as published, "
        "without a guarantee: objective, statistics.",
    ] = None
    epsilon: Annotated[
        float | None, "The privacy loss allowed, for example 1. Without it the fit is not private."
    ] = None
    delta: Annotated[
        float | None, "For gaussian (default: 1e-6, or one over the squared number of learners)."
    ] = None
    missing: Annotated[
        Missing | None,
        "A missing answer is wrong (default for sheets) or was skipped (default for long files and logs).",
    ] = None
    at_most: Annotated[
        int | None,
        "Count at most so many answers of a learner, chosen at random. Choose it by what is plausible, not from the "
        "data. Only matters with skipped answers.",
    ] = None
    ability_sd: Annotated[
        float | str | None,
        "How much abilities differ: `estimate` to find it privately along with the items (the default), a standard "
        "deviation that is known, or `choose` to find it as published for a fifth of epsilon (weak, for comparison).",
    ] = None
    guess: Annotated[
        float | str,
        "The chance of a right answer without knowing it, such as 0.25 or 1/4 for four choices.",
    ] = 0.0
    discrimination_spread: Annotated[
        float,
        "How much items differ in how well they distinguish learners, as the standard deviation of log "
        "discriminations; 0.3 is common (default: not at all).",
    ] = 0.0
    discriminations: Annotated[
        bool,
        "Measure how well each item distinguishes learners along with the difficulties. It takes many learners: where "
        "the exam is too small for this epsilon, it is not measured.",
    ] = False
    prior: Annotated[
        Prior | Difficulties | Path | str | None,
        "What difficulties to expect: MEAN,SD or the difficulties file of an earlier exam, private or public; never "
        "from these learners' data (default: found from the noisy totals, at no cost).",
    ] = None
    penalty: Annotated[
        float | str | None,
        f"For joint, objective and statistics, lambda of the paper's equation 6: {PENALTY:g} as in its program "
        f"(the default), {PRINTED_PENALTY:g} as printed in the paper, any other number, or `choose` to find it as "
        "published for a fifth of epsilon (no formal guarantee, like these methods).",
    ] = None
    penalty_from: Annotated[
        Responses | Path | str | None,
        "Responses of other learners that are public: the penalty is chosen on them, at no cost.",
    ] = None
    public_prior: Annotated[bool, "The earlier exam's difficulties are public though not private."] = False
    title: Annotated[str, "What the students see as the exam's name."] = ""

    def __post_init__(self) -> None:
        if self.method is None or isinstance(self.method, _Default):
            object.__setattr__(self, "method", _Default("knorm" if self._private else "marginal"))
        self._check_method()
        if self.ability_sd is None and self.method in PRIVATE:
            object.__setattr__(self, "ability_sd", "estimate")
        object.__setattr__(self, "ability_sd", _spread_of(self.ability_sd))
        object.__setattr__(self, "guess", _guess_of(self.guess))
        self._check_answering()
        self._check_penalty()
        if self.delta is not None and not 0 < self.delta < 1:
            raise UsageError(
                f"delta {self.delta:.3g} was asked for; it lies between 0 and 1.",
                hint="1e-6 is usual.",
                settings=("delta",),
            )
        if self.at_most is not None and self.at_most < 1:
            raise UsageError(
                f"at most {self.at_most} answers of a learner leave nothing to count.",
                hint="give at least 1.",
                settings=("at_most",),
            )
        if isinstance(self.ability_sd, str) and self.method not in PRIVATE:
            raise UsageError(
                f"the method {self.method} does not spend epsilon on the spread of abilities.",
                hint="leave it out.",
                settings=("ability_sd",),
            )
        # Refuses an earlier exam that must not be used.
        self.expected  # noqa: B018

    @property
    def _private(self) -> bool:
        return self.epsilon is not None or bool(self.risk)

    def _check_method(self) -> None:
        method = self.method
        if method not in METHODS:
            raise UsageError(
                f"there is no method '{method}'.",
                hint="the methods are " + ", ".join(METHODS) + ".",
                code="no-such-method",
                settings=("method",),
            )
        if self.epsilon is not None and not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise UsageError(
                f"epsilon {self.epsilon:g} was asked for; it lies between {LEAST_EPSILON:g} and {MOST_EPSILON:g}.",
                hint="1 is a good start.",
                settings=("epsilon",),
            )
        if method in NOT_PRIVATE and self._private:
            raise UsageError(
                f"epsilon was given, but the method {method} adds no noise.",
                hint="leave epsilon out, or choose the method knorm or gaussian.",
                settings=("epsilon", "method"),
            )
        if method not in NOT_PRIVATE and not self._private:
            raise UsageError(
                f"the method {method} needs an epsilon.",
                hint="1 is a good start.",
                settings=("epsilon",),
            )
        if self.delta is not None and method != "gaussian":
            raise UsageError(
                f"delta was given, but the method {method} has none.",
                hint="delta is for the method gaussian.",
                settings=("delta", "method"),
            )

    def _check_answering(self) -> None:
        if not 0 <= self.discrimination_spread <= 1:
            raise UsageError(
                f"discriminations that spread by {self.discrimination_spread:g} were asked for.",
                hint="the standard deviation of their logarithms lies between 0 and 1; 0.3 is common.",
                settings=("discrimination_spread",),
            )
        if self.discriminations:
            self._check_discriminations()
        if (self.guess or self.discrimination_spread) and self.method not in PRIVATE:
            raise UsageError(
                f"the method {self.method} fits items that are not guessed and distinguish learners alike.",
                hint="leave these settings out, or choose the method knorm or gaussian with an epsilon.",
                settings=("guess", "discrimination_spread"),
            )

    def _check_penalty(self) -> None:
        object.__setattr__(self, "penalty", _penalty_of(self.penalty))
        if self.penalty is None and self.penalty_from is None:
            return
        if self.method not in PENALISED:
            raise UsageError(
                f"a penalty was given, but the method {self.method} has none.",
                hint="it is for the methods " + ", ".join(PENALISED) + ".",
                settings=("penalty", "penalty_from", "method"),
            )
        if self.penalty is not None and self.penalty_from is not None:
            raise UsageError(
                "a penalty was given, and public responses to choose it on.",
                hint="give one of the two.",
                settings=("penalty", "penalty_from"),
            )
        if self.penalty == "choose" and self.method not in PUBLISHED:
            raise UsageError(
                f"a private choice of the penalty was asked for, but the method {self.method} has no epsilon.",
                hint="give a number or public responses.",
                settings=("penalty", "penalty_from"),
            )
        if isinstance(self.penalty_from, Path | str):
            # Read once, and before those of the exam: options are made anew as they are settled.
            object.__setattr__(self, "penalty_from", read_responses(self.penalty_from))
        if self.public is not None:
            check_public(self.public)

    @property
    def public(self) -> Responses | None:
        """The public responses that the penalty is chosen on."""
        return self.penalty_from if isinstance(self.penalty_from, Responses) else None

    def refuse_own_public(self, responses: Responses) -> None:
        """Refuse to choose the penalty on the learners of the exam itself: their answers would decide about it."""
        if self.public is None:
            return
        origin, other = responses.origin, self.public.origin
        same = self.public.correct is responses.correct
        if origin.path is not None and other.path is not None:
            same = same or origin.path.resolve() == other.path.resolve()
        roster, others = Roster.of(origin.digests, origin.path), Roster.of(other.digests, other.path)
        if roster is not None and others is not None:
            sketches = roster.sketch(roster.new_key), others.sketch(roster.new_key)
            same = same or shared_share(*sketches) >= MIN_SHARED
        if same:
            raise RefusedError(
                "the public responses that the penalty would be chosen on are of learners of this exam.",
                hint="give public responses of other learners, or the penalty as a number.",
                code="own-learners",
                settings=("penalty_from", "penalty"),
            )

    def _check_discriminations(self) -> None:
        if self.method not in PRIVATE:
            raise UsageError(
                f"discriminations were asked for, but the method {self.method} does not measure them.",
                hint="choose the method two-parameter, or knorm or gaussian with an epsilon.",
                settings=("discriminations", "method"),
            )
        unknown = {
            "guess": bool(self.guess),
            "discrimination_spread": bool(self.discrimination_spread),
            "ability_sd": self.ability_sd != "estimate",
            "missing": self.missing == "skipped",
        }
        if any(unknown.values()):
            raise UsageError(
                "private discriminations are those of abilities that spread by 1, of answers that are not guessed, and "
                "missing answers are wrong.",
                hint="leave these settings out, or the discriminations.",
                settings=("discriminations", *(name for name, asked in unknown.items() if asked)),
            )

    @cached_property
    def earlier(self) -> Difficulties | None:
        """The earlier exam whose difficulties are the prior."""
        given = self.prior
        numbers = isinstance(given, str) and not given.endswith(".json")
        return None if given is None or isinstance(given, Prior) or numbers else Difficulties.of(given)

    @cached_property
    def expected(self) -> Prior | None:
        """The prior of the difficulties; an earlier exam without a guarantee must not reach a private release."""
        if (given := self.earlier) is None:
            return self.prior if isinstance(self.prior, Prior | None) else Prior.parse(str(self.prior))
        private = given.guarantee.formal or given.provenance.get("simulated") is True
        if self.epsilon is not None and not private and not self.public_prior:
            # What it shows of its learners would leave with a guarantee that does not cover it.
            raise RefusedError(
                "the earlier exam carries no formal guarantee, so it cannot be the prior of a private release.",
                hint="take a private one; or declare that it was published and is about other learners.",
                code="prior-not-private",
                settings=("public_prior",),
            )
        return given.as_prior()

    def missing_in(self, layout: str) -> Missing:
        """What a missing answer means: as it was given, or as it goes with a file's layout."""
        return self.missing or ("wrong" if layout == "wide" else "skipped")


def _spread_of(given: float | str | None) -> float | str | None:
    if given in (None, "estimate", "choose"):
        return given
    try:
        spread = float(str(given).replace(",", "."))
    except ValueError:
        spread = math.nan
    if not 0.05 <= spread <= 10:
        raise UsageError(
            f"abilities that spread by '{given}' were asked for.",
            hint="the standard deviation of abilities is a number from 0.05 to 10, `estimate` or `choose`; 1 is usual.",
            settings=("ability_sd",),
        )
    return spread


def _penalty_of(given: float | str | None) -> float | str | None:
    if given in (None, "choose"):
        return given
    try:
        penalty = float(str(given).replace(",", "."))
    except ValueError:
        penalty = math.nan
    if not 1e-4 <= penalty <= 100:
        raise UsageError(
            f"a penalty of '{given}' was asked for.",
            hint=f"it is a number from 0.0001 to 100, or `choose`; {PENALTY:g} is the published program's.",
            settings=("penalty",),
        )
    return penalty


def _guess_of(given: float | str) -> float:
    """A chance as people write it: 0.25, or 1/4 for one of four choices."""
    try:
        guess = float(Fraction(given)) if isinstance(given, str) else float(given)
    except (ValueError, ZeroDivisionError):
        guess = math.nan
    if not 0 <= guess <= 0.9:
        raise UsageError(
            f"a chance of guessing of '{given}' was asked for.",
            hint="it lies between 0 and 0.9: 1/4 for four choices, 0 where answers are written.",
            settings=("guess",),
        )
    return guess
