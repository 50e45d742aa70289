"""`understudy cohort summarize`: the private summary of a cohort, charged to the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.charging import ask_before_charge, paid_output
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, LedgerPath
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.cohorts.cohort import Cohort
    from understudy.cohorts.summary.budget import Plan
    from understudy.cohorts.summary.summary_file import PrivateSummary
    from understudy.core.privacy.ledger import Ledger


app = command_group()


@app.command()
def summarize(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The cohort, csv or parquet; its schema lies beside it, as toml."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy loss allowed.")] = 3.0,
    delta: Annotated[
        float | None,
        typer.Option(
            help="The small chance beyond it (default: 1e-6, or one over the squared number of learners)."
        ),
    ] = None,
    analyses: Annotated[
        list[str] | None,
        typer.Option(
            "--analyses",
            help="What the summary should serve, may be repeated: habits by time of day against outcome, weekly "
            "rhythm, regularity, time-of-day mix, overall distribution (default: all of these).",
        ),
    ] = None,
    statistics: Annotated[
        list[str] | None,
        typer.Option(
            "--statistics", help="Statistics to measure as well, may be repeated; --explain names them."
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="Declaration of the cohort, if not beside the file.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show the errors, the budget that is left and other epsilons; spend and write nothing.",
        ),
    ] = False,
    ledger: LedgerPath = None,
    population: Annotated[
        str | None,
        typer.Option(
            help="Whose data this is (default: the learners of this file). If the same learners are in "
            "another file, or in another year's, give both the same population: it all adds up."
        ),
    ] = None,
    suggestions: Annotated[
        Path | None,
        typer.Option(help="From `cohort improve`: moves the split of the budget, counts validated effects."),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(
            help="Last year's private summary, of other learners: weighed in by precision, for less noise."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Release noisy sums about a cohort, each with the scale of its noise.

    With --explain: the errors to expect, the budget that is left, and what other epsilons would give.

    Example: understudy cohort summarize cohort.parquet --epsilon 3 --delta 1e-5 -o summary.json
    """

    # What may be wrong with the options is found before anything slow is loaded.
    _check_loss(epsilon, delta)
    out = paid_output(out, "summary.json", explain=explain)
    _check_files(file, schema, suggestions, previous)
    _summarize(
        file, out, epsilon, delta, analyses, statistics, schema, explain, ledger, population, suggestions,
        previous, as_json,
    )  # fmt: skip


def _summarize(
    file: Path,
    out: Path,
    epsilon: float,
    delta: float | None,
    analyses: list[str] | None,
    statistics: list[str] | None,
    schema: Path | None,
    explain: bool,
    ledger: Path | None,
    population: str | None,
    suggestions: Path | None,
    previous: Path | None,
    as_json: bool,
) -> None:
    from understudy.cli.progress import progress_bar

    with progress_bar("Reading the cohort") as begin:
        step = begin(2)
        from dataclasses import replace

        from understudy.cli.cohort.plan import explain as explained
        from understudy.cli.cohort.plan import show_plan
        from understudy.cohorts.cohort import read_cohort
        from understudy.cohorts.summary import summarize
        from understudy.cohorts.summary.budget import propose
        from understudy.core.files.writing import write_json
        from understudy.core.privacy.composition import default_delta
        from understudy.core.privacy.spending import Account, Spending
        from understudy.errors import DataError

        step()
        cohort = read_cohort(file, schema)
        summarize.refuse_cuts_from_data(cohort)
        step()
    if cohort.n_learners < 2:
        raise DataError(
            f"a summary describes a cohort; this file has {cohort.n_learners} learners.",
            hint="give the table that `understudy cohort build` made.",
        )
    plan = propose(
        cohort.schema,
        cohort.n_learners,
        epsilon,
        default_delta(cohort.n_learners) if delta is None else delta,
        analyses=analyses or (),
        statistics=statistics or (),
    )
    advice = None
    if suggestions is not None:
        from understudy.cohorts.summary.suggestions import read_suggestions, with_budget

        advice = read_suggestions(suggestions)
        plan = with_budget(plan, advice)
    # Read before anything is spent.
    _refuse_cuts_beside(file, schema)
    before = None if previous is None else _previous(previous, cohort)
    data_sets = [] if cohort.simulated else _data_sets(file, cohort)
    account = Account.open(
        Spending(population, ledger), path=file, simulated=cohort.simulated, data_sets=data_sets
    )
    book, people = account.ledger, account.population
    assert book is not None  # there is a file
    # Privately estimated cuts were charged when they were; the file that holds them states the sum.
    cost = plan.charge
    charged_before = False
    if before is not None and previous is not None:
        from understudy.cohorts.summary.previous_year import cards, previous_caveats

        paid = cards(before)
        charged_before = bool(paid) and book.has_cards(paid)
        if not cohort.simulated:
            _refuse_same_learners(book, people, file, data_sets, paid, previous)
        cost = cost.with_caveats(*previous_caveats(before, charged=charged_before))
    doubtful = not cohort.simulated and _say_unknown(book, people, file, data_sets, population, cohort)
    if explain:
        explained(plan, book, people, cost, None if cohort.simulated else file, data_sets, before, as_json)
        return
    if doubtful and not as_json:
        ask_before_charge()
    _warn(plan, as_json, asks=not cohort.simulated)
    account.check(cost)
    with account.charge("cohort summarize", "discrete Gaussian", cost, out=out) as charge:
        found = summarize.summarize(cohort, plan, charge.noise, {"card": charge.card})
        if before is not None:
            from understudy.cohorts.summary.previous_year import with_previous

            found = with_previous(found, before, charged=charged_before)
        if advice is not None:
            from understudy.cohorts.summary.suggestions import with_effects

            found = with_effects(found, advice)
        write_json(out, found.to_json())
    if as_json:
        echo_json(
            {
                "out": str(out),
                **charge.to_json(),
                "predictions": [vars(one) for one in plan.predictions()],
                "guarantee": found.guarantee.to_json(),
            }
        )
        return
    show_plan(plan)
    if before is not None or advice is not None:
        typer.echo(_say_combined(found))
    typer.echo(f"Guarantee: {replace(found.guarantee, caveats=())}.")
    for sentence in found.guarantee.caveats:
        typer.echo(f"  Beside it: {sentence}.")
    typer.echo(charge.sentence())
    typer.echo(f"Written: {out}. Next: {_next_command(out)}")


def _next_command(out: Path) -> str:
    """The next step, as it can be pasted."""
    import shlex

    return shlex.join(
        [
            "understudy",
            "cohort",
            "synthesize",
            str(out),
            "-o",
            str(out.with_name(f"{out.stem}-synthetic.parquet")),
        ]
    )


def _check_loss(epsilon: float, delta: float | None) -> None:
    import math

    from understudy.errors import UsageError

    if not (epsilon > 0 and math.isfinite(epsilon)) or not (delta is None or 0 < delta < 1):
        asked = f"{epsilon:g}" + ("" if delta is None else f" and {delta:.3g}")
        raise UsageError(
            f"a summary needs epsilon above 0 and delta between 0 and 1; got {asked}.",
            hint="for example --epsilon 3 --delta 1e-5.",
        )


def _check_files(*files: Path | None) -> None:
    from understudy.errors import UsageError

    for path in files:
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file {path}.", hint="check the path.")


def _warn(plan: Plan, quiet: bool, *, asks: bool) -> None:
    """Say that the noise hides everything before it is paid for; a person at a terminal may still stop it."""
    from understudy.cli.cohort.plan import useless_words

    words = useless_words(plan)
    if not words or quiet:
        return
    typer.echo(words, err=True)
    if asks:
        ask_before_charge()


def _refuse_cuts_beside(file: Path, schema: Path | None) -> None:
    """Another schema does not undo that the table was cut at the data's own quantiles."""
    from understudy.cohorts.schema import Schema
    from understudy.errors import DataError

    beside = file.with_suffix(".toml")
    if schema is not None and beside.is_file() and Schema.read(beside).cuts_source == "data":
        raise DataError(
            f"{beside.name} says that the cuts between the labels come from the data.",
            hint="build the cohort again with declared cuts, or with cuts estimated privately.",
        )


def _previous(path: Path, cohort: Cohort) -> PrivateSummary:
    """Last year's summary; found to fit before anything is spent."""
    from understudy.cohorts.summary.previous_year import check_previous
    from understudy.cohorts.summary.summary_file import PrivateSummary
    from understudy.errors import RefusedError

    before = PrivateSummary.read(path)
    check_previous(cohort.schema, before)
    if not before.guarantee.formal:
        # What it says of last year's learners would go on under a claim that does not hold for them.
        raise RefusedError(
            f"{path} carries no formal guarantee, so it cannot be the prior of a private summary.",
            hint="give last year's private summary, or leave --previous out.",
        )
    return before


def _data_sets(file: Path, cohort: Cohort) -> list[str]:
    """By which random names the ledger knows these learners: of the schema in use, and of the one beside the table."""
    from understudy.cohorts.schema import Schema

    beside = file.with_suffix(".toml")
    names = [cohort.schema.data_set, Schema.read(beside).data_set if beside.is_file() else ""]
    return [name for name in dict.fromkeys(names) if name]


def _say_unknown(
    book: Ledger, people: str, file: Path, data_sets: list[str], population: str | None, cohort: Cohort
) -> bool:
    """What the ledger cannot know, before it charges: whether this is a copy, and whether the cuts were paid for."""
    from understudy.core.privacy.population import data_set_population

    others = [] if population is not None or data_sets else book.unrelated_populations(people, [file])
    if others:
        typer.echo(
            f"{file.with_suffix('.toml').name} has no `data_set`, the name that `understudy cohort build` gives to "
            f"learners, so the ledger {book.path} takes those of {file.name} for others than: {', '.join(others)}. If "
            "this is a copy or another table of any of them, stop here and give their name with --population.",
            err=True,
        )
    price = cohort.schema.cuts_epsilon
    known = [people, *map(data_set_population, data_sets)]
    built = [one for name in known for one in book.entries(name) if one.kind == "cohort build"]
    unpaid = price is not None and not any(one.epsilon and one.epsilon >= price for one in built)
    if unpaid:
        typer.echo(
            f"The cuts between the labels cost epsilon {price:g}, and the ledger {book.path} did not charge that to "
            f"'{people}'. If they were estimated from these learners, name the ledger that did with --ledger.",
            err=True,
        )
    return bool(others) or unpaid


def _refuse_same_learners(
    book: Ledger, people: str, file: Path, data_sets: list[str], paid: list[str], path: Path
) -> None:
    """Of the same learners the summary would hold two measurements and state the epsilon of one."""
    from understudy.errors import RefusedError

    same = book.same_learners(people, [file], paid, data_sets)
    if same is not None:
        raise RefusedError(
            f"{path} is about the same learners, says the ledger: it was charged to '{same}', and this would be "
            f"charged to '{people}'. A summary that holds both would state the epsilon of one.",
            hint="leave --previous out, and spend more at once with a larger --epsilon; if they are other learners, "
            "give each year's files names of their own, and each year its own --population if any.",
        )
    if not paid or not book.has_cards(paid):
        typer.echo(
            f"{path} was not charged in the ledger {book.path}: that it is about other learners than this year's is "
            "your word.",
            err=True,
        )


def _say_combined(found: PrivateSummary) -> str:
    """What an earlier year or validated effects did to the noise that the table shows."""
    import numpy as np

    # Of a matrix of products the diagonal: beside it two draws were averaged anyway.
    ratios = [
        float(np.mean(np.diagonal(one.noise_sd) if name == "habits" else one.noise_sd))
        / one.context["measured_sd"]
        for name, one in found.statistics.items()
        if "years" in one.context
    ]
    habits = found.statistics.get("habits")
    n_effects = 0 if habits is None else len(habits.context.get("validated_cells", ()))
    said = "The table shows the noise of this measurement alone."
    if ratios:
        said += (
            f" With the earlier summary weighed in, the numbers of the file have {min(ratios):.0%} to {max(ratios):.0%}"
            " of it: it stands beside each of them."
        )
    if n_effects:
        said += f" Validated effects on the label that were weighed in: {n_effects}."
    return said
