"""difficulties(): how hard each item of an exam is, charged to its learners if it carries a guarantee."""

from __future__ import annotations

import math
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import understudy
from understudy.core.files.writing import check_new_json, write_json
from understudy.core.options import settled
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.spending import Account, Spending
from understudy.exams.estimation import Estimation
from understudy.exams.estimators.chances import chance_curve
from understudy.exams.estimators.credits import share_of_random_learner
from understudy.exams.fits import METHODS, Fit
from understudy.exams.plan import DifficultiesPlan, plan_for, refuse_one_learner
from understudy.exams.ranking import in_words, points_in_words, rank_items
from understudy.exams.released_file import Difficulties, Item
from understudy.exams.responses import Points, Responses
from understudy.exams.totals_in_file import TotalsInFile


@dataclass(frozen=True)
class DifficultiesOptions(Spending, Estimation):
    """How difficulties are estimated and charged."""


def difficulties(
    responses: Responses,
    options: DifficultiesOptions = DifficultiesOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    noise: Noise | None = None,
    **settings: Any,
) -> Difficulties:
    """Charge the ledger, find the difficulties of all items, and write a file if `out` is given.

    The settings of `DifficultiesOptions` may be given as keywords. What can be refused is refused before
    anything is computed or charged.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        check_new_json(out)
    planned = plan_for(responses, options)
    account = Account.open(options, responses.origin, simulated=responses.simulated)
    responses = replace(responses, simulated=bool(account.simulated))
    if options.earlier is not None and planned.guarantee.formal:
        guarantee = planned.guarantee.with_caveats(*options.earlier.caveats_as_prior(account))
        planned = replace(planned, guarantee=guarantee)
    account.check(planned.guarantee)
    rng = np.random.default_rng(secrets.randbits(128))
    with account.charge("difficulties", planned.method, planned.guarantee, out=out, noise=noise) as charge:
        found = fit_difficulties(responses, planned, charge.noise, rng, card=charge.card)
        if out is not None:
            write_json(out, found.content())
    return replace(found, charge=charge, out=out)


def fit_difficulties(
    responses: Responses,
    plan: DifficultiesPlan,
    noise: Noise,
    rng: np.random.Generator,
    *,
    card: str | None = None,
) -> Difficulties:
    """The difficulties of all items, as they may be released with the plan's guarantee."""
    refuse_one_learner(responses)
    fit = METHODS[plan.method](responses, plan, noise, rng)
    private = plan.measured is not None
    guarantee = plan.guarantee if noise.secret or not private else Guarantee.seeded(plan.guarantee)
    order = rank_items(fit.difficulty, fit.standard_error if fit.order_error is None else fit.order_error)
    items = tuple(
        _item(name, points, fit, place, int(order.rank_from[place]), int(order.rank_to[place]))
        for place, (name, points) in enumerate(
            zip(responses.items, responses.points or [None] * responses.n_items, strict=True)
        )
    )
    return Difficulties(
        items,
        tuple(tuple(responses.items[place] for place in step) for step in order.steps),
        fit.ability,
        guarantee,
        _provenance(responses, plan, fit, card),
        plan.options.title,
    )


def _item(name: str, points: Points | None, fit: Fit, place: int, rank_from: int, rank_to: int) -> Item:
    difficulty, error = float(fit.difficulty[place]), float(fit.standard_error[place])
    credits: tuple[float, ...] = () if points is None else (0.0,) * (points.steps + 1)
    unit = 1.0 if points is None else points.unit
    if math.isnan(difficulty):
        # No learner answered it, or all had as many points, half of them: anything is possible.
        words = (
            "answered by no student" if points is None else "the same points for all students, or no answer"
        )
        return Item(name, None, None, 0.5, words, 1, len(fit.difficulty), credits=credits, unit=unit)
    if math.isinf(difficulty):
        hard = difficulty > 0
        words = "solved by no student" if hard else "solved by all students"
        if points is not None:
            words = f"no student had {'more' if hard else 'less'} than half of the points"
        return Item(
            name,
            None,
            None,
            0.0 if hard else 1.0,
            words,
            rank_from,
            rank_to,
            "hard" if hard else "easy",
            credits=credits,
            unit=unit,
        )
    slope = 1.0 if fit.discrimination is None else min(max(float(fit.discrimination[place]), 0.01), 20.0)
    stated = None if math.isnan(error) else round(error, 6)
    if points is not None:
        credits = tuple(round(float(credit), 6) + 0.0 for credit in fit.credits[place])
        share = share_of_random_learner(difficulty, credits, fit.ability.mean, fit.ability.sd, slope)
        return Item(
            name,
            round(difficulty, 6),
            stated,
            round(share, 6),
            points_in_words(share, points.maximum),
            rank_from,
            rank_to,
            discrimination=round(slope, 6),
            credits=credits,
            unit=unit,
        )
    if fit.chance is not None:
        know = float(fit.chance[place])
    else:
        beyond = min(max(difficulty - fit.ability.mean, -15.0), 15.0)
        know = min(max(float(chance_curve(slope * fit.ability.sd)(slope * beyond)), 0.0), 1.0)
    guess = 0.0 if fit.guess is None else round(float(fit.guess[place]), 6)
    chance = guess + (1.0 - guess) * know
    return Item(
        name,
        round(difficulty, 6),
        stated,
        round(chance, 6),
        in_words(chance),
        rank_from,
        rank_to,
        guess=guess,
        discrimination=round(slope, 6),
    )


def _provenance(responses: Responses, plan: DifficultiesPlan, fit: Fit, card: str | None) -> dict[str, Any]:
    options, measured = plan.options, plan.measured
    return {
        "method": plan.method,
        "mechanism": None if measured is None else measured.name,
        "epsilon": options.epsilon,
        "learners": responses.n_learners,
        "items": responses.n_items,
        "missing": "counted as wrong" if plan.missing == "wrong" else "not asked",
        "answers_at_most": None if plan.measurement is None else plan.measurement.at_most,
        "difficulties_prior": None
        if fit.prior is None
        else {
            "mean": round(fit.prior.mean, 4),
            "sd": round(fit.prior.spread, 4),
            "source": "given" if options.expected is not None else "estimated from the noisy totals",
        },
        "earlier_cards": [] if options.earlier is None else options.earlier.cards,
        "penalty": None if fit.penalty is None else asdict(fit.penalty),
        "reused_items": None
        if fit.reused is None
        else {"count": fit.reused.n_items, "same": round(fit.reused.same, 3)},
        "totals": None if fit.totals is None else TotalsInFile.of(fit.totals, fit.log_sd_error).content(),
        "simulated": responses.simulated,
        "pass_share": responses.origin.pass_share,
        "discrimination_spread": options.discrimination_spread,
        "discriminations": None
        if not options.discriminations
        else "measured"
        if plan.discriminations is not None
        else "taken as alike: they cannot be estimated at this size and epsilon",
        "items_below_guess": fit.below_guess,
        "card": card,
        "made": datetime.now(UTC).date().isoformat(),
        "understudy": understudy.__version__,
    }
