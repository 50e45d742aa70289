"""`understudy difficulties`: how hard each item of an exam is, released privately."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.charging import paid_output
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Exclude, Format, Learner, LedgerPath, Outcome
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.exams.difficulties import DifficultiesOptions
    from understudy.exams.difficulties_file import Difficulties
    from understudy.exams.responses import Responses

app = command_group()


_SHOWN = 40


class Missing(Enum):
    """What a missing answer means."""

    wrong = "wrong"
    skipped = "skipped"


class Attempts(Enum):
    """Which of several attempts counts."""

    first = "first"
    last = "last"
    best = "best"


@app.command()
def difficulties(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses: a row per learner and a column per item, or rows of learner, item, correct; or a log.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The privacy loss allowed, for example 1. Without it the fit is not private."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            help="knorm (pure epsilon, the default) or gaussian (with delta, better beyond some 50 items); "
            "without epsilon marginal, conditional or joint; as published, without a guarantee: "
            "objective, statistics.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="For gaussian (default: 1e-6, or one over the squared number of learners)."),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(
            help="A missing answer is wrong (default for sheets) or was skipped (default for long files and logs)."
        ),
    ] = None,
    answers_at_most: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Count at most so many answers of a learner, chosen at random. Choose it by what "
            "is plausible, not from the data. Only matters with skipped answers.",
        ),
    ] = None,
    ability_sd: Annotated[
        str,
        typer.Option(
            help="How much abilities differ: a standard deviation; or `estimate` to find it privately for a fifth "
            "of epsilon, or `choose` to do so as published (weak, for comparison)."
        ),
    ] = "1",
    prior: Annotated[
        str | None,
        typer.Option(
            help="What difficulties to expect: MEAN,SD or the difficulties file of an earlier exam, private or "
            "public; never from these learners' data (default: found from the noisy totals, at no cost)."
        ),
    ] = None,
    public_prior: Annotated[
        bool,
        typer.Option("--public-prior", help="The earlier exam's difficulties are public though not private."),
    ] = False,
    passing: Annotated[
        float, typer.Option("--pass", help="Share of an item's points from which on it counts as correct.")
    ] = 0.5,
    attempts: Annotated[
        Attempts | None, typer.Option(help="Which of several attempts at an item counts.")
    ] = None,
    public_items: Annotated[
        bool, typer.Option("--public-items", help="The items of a long file or a log are public.")
    ] = False,
    items: Annotated[
        Path | None,
        typer.Option(help="File with the public list of items, one a line; answers to others are left out."),
    ] = None,
    rows_are_learners: Annotated[
        bool,
        typer.Option(
            "--rows-are-learners", help="No column of the sheet names the learners: each row is one of them."
        ),
    ] = False,
    learner: Learner = None,
    item: Annotated[str | None, typer.Option(help="Column that names the item of a long file.")] = None,
    outcome: Outcome = None,
    format: Format = None,
    exclude: Exclude = None,
    title: Annotated[str, typer.Option(help="What the students see as the exam's name.")] = "",
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show what precision each epsilon buys; spend and write nothing."),
    ] = False,
    ledger: LedgerPath = None,
    population: Annotated[
        str | None,
        typer.Option(
            help="Whose data this is (default: the learners of this file). If the same learners are in "
            "another file, give both the same population: it all adds up."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Release how hard each item of an exam is, with a guarantee.

    Example: understudy difficulties responses.csv --epsilon 1 -o difficulties.json
    """
    import secrets

    import numpy as np

    from understudy.core.files.columns import Columns
    from understudy.core.files.writing import write_json
    from understudy.core.privacy.spending import Account, Spending
    from understudy.exams.difficulties import DifficultiesOptions, fit_difficulties, plan_for
    from understudy.exams.formats.reading import read_responses

    out = paid_output(out, "difficulties.json", explain=explain)
    # Wrong options are found before a large file is read.
    options = DifficultiesOptions(
        method=method,
        epsilon=epsilon,
        delta=delta,
        missing=None if missing is None else missing.value,
        at_most=answers_at_most,
        ability_sd=ability_sd,
        prior=prior,
        public_prior=public_prior,
        title=title,
    )
    responses = read_responses(
        file,
        format=format,
        columns=Columns(learner=learner, item=item, outcome=outcome),
        pass_share=passing,
        attempt=None if attempts is None else attempts.value,
        exclude=exclude,
        items=items,
        public_items=public_items,
        rows_are_learners=rows_are_learners,
    )
    if not as_json:
        for note in responses.origin.notes:
            typer.echo(note, err=True)
    settled = plan_for(responses, options)
    if explain:
        _explain(settled.options, responses, as_json)
        return
    if responses.n_missing and not as_json:
        _say_missing(settled.options, responses)
    account = Account.open(Spending(population, ledger), path=file, simulated=responses.simulated)
    account.check(settled.guarantee)
    with account.charge("difficulties", settled.method, settled.guarantee, out=out) as charge:
        rng = np.random.default_rng(secrets.randbits(128))
        found = fit_difficulties(responses, settled, charge.noise, rng, card=charge.card)
        write_json(out, found.to_json())
    if as_json:
        echo_json(
            {
                "out": str(out),
                **charge.to_json(),
                **found.to_json(),
            }
        )
        return
    _show(found)
    typer.echo(f"Guarantee: {found.guarantee}.")
    if found.guarantee.formal:
        typer.echo(charge.sentence())
        _say_small(found)
        typer.echo(f"Written: {out}. For the students: understudy page {out} -o page.html")
    else:
        private = "--epsilon 1" if epsilon is None else "-m knorm"
        typer.echo(f"Written: {out}. NOT PRIVATE: keep it inside; {private} makes it private.", err=True)


def _say_missing(options: DifficultiesOptions, responses: Responses) -> None:
    share = responses.n_missing / responses.correct.size
    if options.missing == "wrong":
        typer.echo(
            f"{responses.n_missing} answers ({share:.0%}) are missing and count as wrong; if these learners "
            "were not asked, say --missing skipped.",
            err=True,
        )
    else:
        typer.echo(
            f"{responses.n_missing} answers ({share:.0%}) are missing and count as not asked.", err=True
        )


def _say_small(found: Difficulties) -> None:
    errors = [item.standard_error for item in found.items if item.standard_error is not None]
    if errors and sorted(errors)[len(errors) // 2] > 1.0:
        typer.echo(
            "With so few learners and this epsilon nearly everything is noise: half of the items have a standard "
            "error above 1.",
            err=True,
        )


def _show(found: Difficulties) -> None:
    from understudy.cli.terminal import print_table

    place = {
        name: (step, found.steps[step].index(name))
        for step in range(len(found.steps))
        for name in found.steps[step]
    }
    ordered = sorted(found.items, key=lambda item: place[item.name])
    print_table(
        f"{len(ordered)} items from easy to hard"
        + (f", the first {_SHOWN}" if len(ordered) > _SHOWN else ""),
        ["item", "difficulty", "standard error", "reading", "place"],
        [
            [
                item.name,
                "unbounded" if item.difficulty is None else f"{item.difficulty:.2f}",
                "" if item.standard_error is None else f"{item.standard_error:.2f}",
                item.reading,
                str(item.rank_from)
                if item.rank_from == item.rank_to
                else f"{item.rank_from} to {item.rank_to}",
            ]
            for item in ordered[:_SHOWN]
        ],
    )
    n_ties = sum(len(step) for step in found.steps if len(step) > 1)
    typer.echo(
        f"{n_ties} items are ties: their order cannot be told at this precision (see the places)."
        if n_ties
        else "No two neighbours are ties."
    )


def _explain(options: DifficultiesOptions, responses: Responses, as_json: bool) -> None:
    from understudy.cli.terminal import print_table
    from understudy.exams.forecast import forecast

    rows = forecast(options, responses.n_items, responses.n_learners)
    if as_json:
        echo_json({"spent": 0, "predictions": [vars(row) for row in rows]})
        return
    print_table(
        f"Expected precision for {responses.n_learners:,} learners and {responses.n_items:,} items; nothing was spent",
        ["epsilon", "method", "noise", "error, medium item", "error, hard item", "told apart from"],
        [
            [
                f"{row.epsilon:g}",
                row.method,
                f"{row.total_noise:.1f} learners",
                f"{row.even:.2f}",
                f"{row.hard:.2f}",
                f"{row.apart:.2f} (50 % and {row.other:.0%})",
            ]
            for row in rows
        ],
    )
    typer.echo(
        "Errors are standard errors of difficulties, in log-odds. A medium item is solved by half of the learners, a "
        "hard one by a tenth. Told apart from: how far two items must differ (solved by how many) to be put in order."
    )
    typer.echo("Items: " + ", ".join(responses.items[:30]) + (", …" if responses.n_items > 30 else "."))
