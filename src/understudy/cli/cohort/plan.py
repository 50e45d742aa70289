"""What `understudy cohort summarize` shows of a plan, and with --explain of the budget, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.cohorts.summary.budget import Plan
    from understudy.cohorts.summary.summary_file import PrivateSummary
    from understudy.core.privacy.balance import Balance
    from understudy.core.privacy.guarantee import Guarantee
    from understudy.core.privacy.ledger import Ledger

OTHER_EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0)


def plan_rows(plan: Plan) -> list[list[str]]:
    """A row for each statistic: name, plain words, share of the budget, error."""
    return [
        [one.statistic, one.what, f"{one.share:.0%}", f"± {one.off_by:.2f}" + (" !" if one.useless else "")]
        for one in plan.predictions()
    ]


def show_plan(plan: Plan) -> None:
    """The table, narrow enough for 80 columns, and how to read it."""
    from understudy.cli.terminal import print_table

    print_table(
        f"Private summary of {plan.n_learners} learners, epsilon {plan.epsilon:g}, delta {plan.delta:.1e}",
        ["statistic", "says", "budget", "off by"],
        plan_rows(plan),
    )
    typer.echo(
        "Off by: one standard deviation of the noise in a share (of learners, weeks, windows; for `spread` of its "
        "usual size) or a correlation. 0.01 is little; ! is as much as there is to learn."
    )


def useless_words(plan: Plan) -> str:
    """A warning where noise hides what the summary is for; nothing where it does not."""
    hidden = [one for one in plan.predictions() if one.useless]
    if not hidden:
        return ""
    listed = ", ".join(f"{one.statistic} (± {one.off_by:.2f})" for one in hidden)
    return (
        f"Warning: with {plan.n_learners} learners and epsilon {plan.epsilon:g} the noise is as large as what there is "
        f"to learn in {listed}. What helps: more learners in one cohort (several classes), a larger --epsilon, fewer "
        "--analyses, or last year's summary with --previous; --explain shows what each epsilon gives and costs nothing."
    )


def explain(
    plan: Plan,
    book: Ledger,
    people: str,
    stated: Guarantee,
    file: Path | None,
    data_sets: list[str],
    before: PrivateSummary | None,
    as_json: bool,
) -> None:
    """The plan, the budget that is left, other epsilons, and whether an earlier summary helps."""
    from dataclasses import replace

    from understudy.cohorts.summary.budget import ANALYSES
    from understudy.cohorts.summary.previous_year import best_gain
    from understudy.cohorts.summary.statistics import MEASURES

    balance, refused = (None, "") if file is None else _tried(book, people, stated, file, data_sets)
    others = [replace(plan, epsilon=epsilon) for epsilon in sorted({*OTHER_EPSILONS, plan.epsilon})]
    noise = {one.statistic: one.noise_sd for one in plan.predictions()}
    gain = {} if before is None else best_gain(noise, plan.n_learners, before)
    if as_json:
        echo_json(
            {
                "spent": 0,
                "epsilon": plan.epsilon,
                "delta": plan.delta,
                "rho": plan.rho,
                "analyses": list(plan.analyses),
                "predictions": [vars(one) for one in plan.predictions()],
                "population": people,
                "remaining": None if balance is None else balance.remaining,
                "limit": None if balance is None else balance.limit,
                "refused": refused or None,
                "other_epsilons": {f"{one.epsilon:g}": _errors(one) for one in others},
                "noise_left_with_previous_at_best": gain or None,
            }
        )
        return
    from understudy.cli.terminal import print_table

    show_plan(plan)
    print_table(
        "Off by at other epsilons",
        ["epsilon", *noise],
        [
            [f"{one.epsilon:g}" + ("*" if one.epsilon == plan.epsilon else "")]
            + [f"{value:.2f}" for value in _errors(one).values()]
            for one in others
        ],
    )
    for sentence in (
        _budget_words(plan, people, balance, refused),
        _previous_words(gain),
        useless_words(plan),
    ):
        if sentence:
            typer.echo(sentence)
    typer.echo("Nothing was spent.")
    typer.echo("Analyses: " + "; ".join(ANALYSES) + ".")
    typer.echo("Statistics: " + ", ".join(MEASURES) + ".")


def _errors(plan: Plan) -> dict[str, float]:
    return {one.statistic: round(one.off_by, 4) for one in plan.predictions()}


def _tried(
    book: Ledger, people: str, stated: Guarantee, file: Path, data_sets: list[str]
) -> tuple[Balance, str]:
    """The balance before, and why the charge would be refused."""
    from understudy.errors import RefusedError

    try:
        return book.check(people, stated, files=[file], data_sets=data_sets), ""
    except RefusedError as error:
        return book.balance(people), error.message


def _budget_words(plan: Plan, people: str, balance: Balance | None, refused: str) -> str:
    if balance is None:
        return "These learners are simulated: no budget is kept for them."
    left = f"Budget of '{people}': epsilon {balance.remaining:g} of {balance.limit:g} is left"
    if refused:
        return f"{left}. This summary WOULD BE REFUSED: {refused}"
    return f"{left}; after this summary {max(balance.remaining - plan.epsilon, 0.0):g} would be."


def _previous_words(gain: dict[str, Any]) -> str:
    if not gain:
        return ""
    listed = ", ".join(f"{name} {left:.0%}" for name, left in gain.items())
    best = min(gain.values())
    helps = "It can help" if best < 0.9 else "It hardly helps: it is much noisier than this summary"
    return (
        f"With --previous at best this much of the noise is left: {listed}. {helps}; how far habits changed since is "
        "estimated when it is weighed in, and takes away from it."
    )
