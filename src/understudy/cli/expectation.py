"""What `release --explain` prints: the accuracy that each risk and epsilon would buy, at no cost."""

from __future__ import annotations

import math
from pathlib import Path

import typer

from understudy.cli.terminal import echo_json, finite, print_table
from understudy.core.privacy.balance import Balance
from understudy.core.privacy.risk import RISK_COLUMNS, RISK_LEGEND
from understudy.logs.expectation import (
    Goal,
    budget_split,
    expectation_figure,
    expectations,
    reach,
    time_split,
    without_jumps,
)
from understudy.logs.generators.detail_forecast import TIME_USES, TimeUse, hidden
from understudy.logs.generators.expected_error import ExpectedError
from understudy.logs.generators.forecast import USES, Use, success_points
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions
from understudy.logs.names import categories_doubts

# Why there is no forecast of a use.
_NOT_FORESEEN: dict[Use, str] = {"difficulties": "no outcomes", "steps": "in order"}
_OF_TIMES = (
    "Hours off: the share of attempts at another hour of the week. Gaps, sessions and leaving off: the largest "
    "difference of the shares up to any gap, any number of sessions, any week. "
)


def explain_release(
    log: Interactions,
    generator: Generator,
    drawn: int | None,
    out: Path,
    goals: list[Goal],
    balance: Balance | None,
    as_json: bool,
) -> None:
    """Print what accuracy each risk and epsilon would buy, and write the figure beside where the bundle would go."""
    asked = generator.guarantee(log.n_learners).epsilon
    forecasts = expectations(log, generator, drawn)
    reached = [reach(log, goal, balance, generator) for goal in goals]
    like = generator if isinstance(generator, MarkovDP) else RunsDP()
    remaining = math.inf if balance is None else balance.remaining(like.guarantee_for(log))
    folder = out.resolve().parent
    expectation_figure(forecasts).inside().save(folder, f"{out.name}-explained")
    if as_json:
        echo_json(
            {
                "spent": 0,
                "internal": True,
                "remaining": None if math.isinf(remaining) else remaining,
                "predictions": [
                    {**finite(each.to_json()), "fits": each.risk.epsilon <= remaining} for each in forecasts
                ],
                "goals": [each.to_json() for each in reached],
                "budget": budget_split(log, like),
                "budget_of_times": time_split(log),
            }
        )
        return
    rows = log.n_rows / max(log.n_learners, 1)
    over = [each.risk.epsilon > remaining for each in forecasts]
    print_table(
        f"Expected errors of {like.name} for {log.n_learners:,} learners, {log.n_actions:,} actions and {rows:.1f} "
        "rows per learner; nothing was spent (*: as asked; brackets: nine of ten releases; ~: mostly noise"
        f"{'; !: more than can still be asked for' * any(over)})",
        ["", *RISK_COLUMNS, "shares off", "difficulties off", "steps off", "rows off"],
        [
            [
                "*" * (each.risk.epsilon == asked) + "!" * too_much,
                *each.risk.cells(),
                *(_cell(each.of(use), use) if use in each.foreseen else _NOT_FORESEEN[use] for use in USES),
                f"x {each.rows_factor:.1f}",
            ]
            for each, too_much in zip(forecasts, over, strict=True)
        ],
    )
    if forecasts[0].times:
        print_table(
            "Expected errors of times",
            ["epsilon", "hours of the week off", "gaps off", "sessions off", "leaving off"],
            [
                [f"{each.risk.epsilon:g}", *(_cell(each.times[use], use) for use in TIME_USES)]
                for each in forecasts
            ],
        )
    if any(over):
        assert balance is not None
        typer.echo(f"Of '{balance.population}' {balance.state(like.guarantee_for(log))}.")
    typer.echo(f"{RISK_LEGEND} State a risk with --risk, or an epsilon.")
    typer.echo(
        "Shares off: the share of attempts at another action than it should be. Difficulties off: the success rate of "
        "a typical action, in percentage points (a goal for --within is in log-odds, of which 0.1 is 2.5 points). "
        "Steps off: the share of steps that lead elsewhere. Rows off: the factor by which the number of rows may be "
        "too high or low, as a rule. "
        + _OF_TIMES
        * bool(forecasts[0].times)
        + "The card states the same forecast, from the synthetic log's own numbers of rows "
        "and names: those of this log stay inside."
    )
    now = next((each for each in forecasts if each.risk.epsilon == asked), forecasts[-1])
    parts = [
        f"{use} {_percent(error.noise, use)} % by privacy, {_percent(error.chance, use)} % by chance"
        for use in now.foreseen
        for error in (now.of(use),)
    ]
    typer.echo(f"Of what is off at epsilon {now.risk.epsilon:g}: {'; '.join(parts)}.")
    if now.columns:
        limits = ", ".join(
            f"'{name}' by up to {'~' * hidden(most)}{100 * most:.0f} %" for name, most in now.columns.items()
        )
        typer.echo(f"Columns off at epsilon {now.risk.epsilon:g}, in nineteen of twenty releases: {limits}.")
    if isinstance(like, RunsDP) and (words := without_jumps(forecasts)):
        typer.echo(words)
    for line in (*_split(log, like), *map(str, categories_doubts(log, generator))):
        typer.echo(line)
    for each in reached:
        typer.echo(f"{str(each)[0].upper()}{str(each)[1:]}")
    typer.echo(f"Figure: {folder / (out.name + '-explained.svg')}")
    typer.echo(
        "Keep this inside: it tells how many rows and actions the log has, and no guarantee covers that."
    )


def _split(log: Interactions, generator: MarkovDP) -> list[str]:
    """What times and columns take of the budget, in a line, and how times divide it, in another."""
    found = []
    if split := budget_split(log, generator):
        parts = ", ".join(f"{about} {100 * share:.0f} %" for about, share in split.items())
        found.append(
            f"Of the budget at epsilon {generator.epsilon:g}: {parts}. This division has the least predicted error of "
            "those tried. Without times and columns all of it would be for actions and outcomes."
        )
    if times := time_split(log):
        parts = ", ".join(f"{part} {100 * share:.0f} %" for part, share in times.items())
        found.append(f"Of what times take: {parts}.")
    return found


def _percent(error: float, use: Use | TimeUse) -> str:
    """An error in percentage points, as the figure and the card state it."""
    return f"{100 * min(success_points(error) if use == 'difficulties' else error, 1.0):.0f}"


def _cell(error: ExpectedError, use: Use | TimeUse) -> str:
    """An error with its interval; a wave where it is noise for the most part."""
    expected, low, high = (_percent(each, use) for each in (error.expected, error.low, error.high))
    return f"{'~' * error.mostly_noise}{expected} % ({low}–{high})"
