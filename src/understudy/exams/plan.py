"""DifficultiesPlan: what difficulties() will do and what it costs, settled before a learner's answers are used."""

from __future__ import annotations

from dataclasses import dataclass, replace

from understudy.core.files.words import counted
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError
from understudy.exams.estimation import NOT_PRIVATE, PRIVATE, PUBLISHED, WITH_POINTS, Estimation
from understudy.exams.estimators.choice import PENALTIES, SPREADS, check_choice
from understudy.exams.estimators.published import CHOICE_REASON, REASONS
from understudy.exams.mechanisms.discrimination import (
    MOST_ERROR,
    DiscriminationMeasurement,
    discrimination_measurement,
)
from understudy.exams.mechanisms.points import PointsMeasurement, choose_points_measurement
from understudy.exams.mechanisms.totals import (
    Measurement,
    Missing,
    choose_measurement,
)
from understudy.exams.responses import Points, Responses

NO_EPSILON = "no epsilon was given: the difficulties are fitted without any noise"

MOST_ITEMS = 20_000

# The published choice of the spread of abilities: its share of epsilon, and its mechanism.
CHOICE_SHARE = 0.2
CHOICE_MECHANISM = "exponential mechanism on a choice of the spread of abilities"


@dataclass(frozen=True)
class DifficultiesPlan:
    """Options with all that follows from public numbers: what will be done, and what it costs."""

    options: Estimation
    method: str
    missing: Missing
    guarantee: Guarantee
    measurement: Measurement | None = None
    choice_epsilon: float = 0.0
    points_measurement: PointsMeasurement | None = None
    discriminations: DiscriminationMeasurement | None = None

    @property
    def measured(self) -> Measurement | PointsMeasurement | DiscriminationMeasurement | None:
        """The mechanism that touches the learners, if noise is added."""
        return self.measurement or self.points_measurement or self.discriminations


def plan(
    options: Estimation,
    n_items: int,
    n_learners: int,
    layout: str = "wide",
    points: tuple[Points, ...] | None = None,
) -> DifficultiesPlan:
    """Settle the mechanism and its guarantee before a learner's answers are used."""
    # Checked again: what is chosen by the layout must go together with the rest.
    options = replace(options, missing=options.missing_in(layout))
    method, missing = str(options.method), options.missing_in(layout)
    if method in NOT_PRIVATE or options.epsilon is None:
        return DifficultiesPlan(options, method, missing, Guarantee.none(NO_EPSILON))
    if method in PUBLISHED:
        if options.penalty != "choose":
            return DifficultiesPlan(options, method, missing, Guarantee.none(REASONS[method]))
        check_choice(n_learners, "penalty", PENALTIES)
        guarantee = Guarantee.none(REASONS[method] + CHOICE_REASON)
        return DifficultiesPlan(
            options, method, missing, guarantee, choice_epsilon=options.epsilon * CHOICE_SHARE
        )
    if n_items > MOST_ITEMS:
        raise UsageError(
            f"private difficulties of {n_items} items were asked for; {MOST_ITEMS} are possible.",
            hint="release them in parts; their epsilons add up.",
            code="too-many-items",
        )
    delta = options.delta if options.delta is not None else default_delta(n_learners)
    if points is not None:
        _refuse_with_points(options, missing)
        of_points = choose_points_measurement(
            method,
            points,
            epsilon=options.epsilon,
            delta=delta,
            agreement=options.ability_sd == "estimate",
        )
        return DifficultiesPlan(options, method, missing, of_points.guarantee, points_measurement=of_points)
    if options.discriminations and n_items > 1:
        pairs = discrimination_measurement(method, n_items, epsilon=options.epsilon, delta=delta)
        # Where the exam is too small to estimate them, the whole budget goes to the difficulties.
        if pairs.expected_error(n_learners) <= MOST_ERROR:
            return DifficultiesPlan(options, method, missing, pairs.guarantee, discriminations=pairs)
    if options.ability_sd == "choose":
        check_choice(n_learners, "ability_sd", SPREADS)
    share = CHOICE_SHARE if options.ability_sd == "choose" else 0.0
    measurement = choose_measurement(
        method,
        n_items=n_items,
        missing=missing,
        at_most=options.at_most,
        epsilon=options.epsilon * (1.0 - share),
        delta=delta,
        agreement=options.ability_sd == "estimate",
    )
    guarantee = measurement.guarantee
    if options.ability_sd == "choose":
        # Basic composition: epsilons add up, and only the totals have a delta.
        mechanisms = (*guarantee.mechanisms, CHOICE_MECHANISM)
        guarantee = Guarantee(options.epsilon, guarantee.delta, mechanisms=mechanisms)
    return DifficultiesPlan(options, method, missing, guarantee, measurement, options.epsilon * share)


def _refuse_with_points(options: Estimation, missing: Missing) -> None:
    """Refuse the settings that private difficulties of items with points cannot follow."""
    unknown = {
        "missing": missing == "skipped",
        "at_most": options.at_most is not None,
        "ability_sd": options.ability_sd == "choose",
        "guess": bool(options.guess),
        "discrimination_spread": bool(options.discrimination_spread),
        "discriminations": options.discriminations,
    }
    if any(unknown.values()):
        raise UsageError(
            "private difficulties of items with points count missing answers as no points, and allow for neither "
            "guessing, nor discriminations that differ, nor a choice of the spread.",
            hint="leave these settings out, or the points: items then are right or wrong.",
            code="no-points",
            settings=(*(name for name, asked in unknown.items() if asked), "points"),
        )


def plan_for(responses: Responses, options: Estimation) -> DifficultiesPlan:
    """The plan for these responses, after refusing what must not be released; no answer decides about either."""
    responses.origin.refuse_people("the difficulties", responses.items, "item")
    if responses.points is not None and options.method not in WITH_POINTS:
        raise UsageError(
            f"answers have points, but the method {options.method} is for right and wrong answers.",
            hint="the methods with points are " + ", ".join(WITH_POINTS) + "; or leave the points out.",
            code="no-points",
            settings=("method", "points"),
        )
    size = responses.n_items, responses.n_learners, responses.origin.layout, responses.points
    planned = plan(options.by_risk(lambda tried: plan(tried, *size).guarantee), *size)
    if not responses.origin.named:
        raise DataError(
            "no column of the sheet names the learners, so it may be that its columns are learners, or that it has no "
            "header.",
            hint="name the column of the learners, or declare that each row is one.",
            code="unnamed-learners",
            settings=("learner", "rows_are_learners"),
        )
    if responses.origin.dropped:
        # What is in the cells must not decide which items are released.
        names = [name.removeprefix("column ") for name in responses.origin.dropped[:5]]
        raise DataError(
            f"columns without answers: {', '.join(names)}.",
            hint="remove what is not an item from the sheet, or give the list of items.",
            code="columns-without-answers",
            settings=("items",),
        )
    if planned.guarantee.formal and not responses.declared:
        raise DataError(
            "which items occur depends on the learners' answers, and item names are released.",
            hint="give the list of items, or declare that it is public.",
            code="undeclared-items",
            settings=("items", "public_items"),
        )
    refuse_one_learner(responses)
    options.refuse_own_public(responses)
    _check_choices(responses, options)
    return planned


def _check_choices(responses: Responses, options: Estimation) -> None:
    if responses.guesses is None or not any(responses.guesses):
        return
    if options.guess:
        raise UsageError(
            f"a chance of guessing of {options.guess:g} was given for all items, and the list of items has choices.",
            hint="leave one of them out.",
            settings=("guess", "items"),
        )
    if options.method not in PRIVATE:
        raise UsageError(
            f"the list of items has choices, but the method {options.method} fits items that are not guessed.",
            hint="choose the method knorm or gaussian with an epsilon, or leave the choices out.",
            settings=("items", "method"),
        )
    if options.discriminations:
        raise UsageError(
            "the list of items has choices, but private discriminations are those of answers that are not guessed.",
            hint="leave the choices out, or the discriminations.",
            settings=("items", "discriminations"),
        )
    if responses.points is not None:
        raise UsageError(
            "the list of items has choices, but difficulties of items with points know no guessing.",
            hint="leave the choices out, or the points: items then are right or wrong.",
            code="no-points",
            settings=("items", "points"),
        )


def refuse_one_learner(responses: Responses) -> None:
    """Refuse a class of one: its difficulties would be one learner's answers."""
    if responses.n_learners < 2:
        raise DataError(
            f"difficulties describe a class; here is {counted(responses.n_learners, 'learner')}.",
            hint="one student's own answers give an ability, not difficulties.",
            code="one-learner",
        )
