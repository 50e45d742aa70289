"""`understudy cohort build`: a log of events and a list of scores to a cohort table."""

from __future__ import annotations

import shlex
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Exclude, LedgerPath
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.cohorts.building.build import Joined
    from understudy.cohorts.cohort import Cohort
    from understudy.cohorts.schema import Schema
    from understudy.core.privacy.guarantee import Guarantee
    from understudy.core.privacy.spending import Account


app = command_group()


class Cuts(Enum):
    """Where the cuts between the labels come from."""

    declared = "declared"
    private = "private"
    even = "even"


class Dates(Enum):
    """What comes first in a date such as 3/4."""

    day_first = "day-first"
    month_first = "month-first"


class MatchBy(Enum):
    """How learners of the log and of the scores are compared."""

    name = "name"
    number = "number"


class WithoutEvents(Enum):
    """What becomes of learners without an event."""

    keep = "keep"
    drop = "drop"


@app.command()
def build(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS", help="The log: xAPI statements, Moodle's csv, csv, xlsx or parquet."
        ),
    ],
    scores: Annotated[
        Path, typer.Option(help="List of scores: csv, xlsx or parquet, a learner in each row.")
    ],
    schema: Annotated[Path, typer.Option(help="Declaration of the cohort: windows, bounds, weeks, labels.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Cohort to write, csv or parquet; its schema is written beside."),
    ],
    term_start: Annotated[
        datetime, typer.Option(formats=["%Y-%m-%d"], help="First day of the term's first week: 2024-09-02.")
    ],
    time_zone: Annotated[
        str | None, typer.Option(help="Where the learners' clocks were: Europe/Berlin.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="csv, tsv, excel, parquet, moodle or xapi, when the log is not recognised."),
    ] = None,
    learner: Annotated[str | None, typer.Option(help="The log's column that names the learner.")] = None,
    time: Annotated[str | None, typer.Option(help="The log's column with the time.")] = None,
    dates: Annotated[
        Dates | None, typer.Option(help="What comes first in dates such as 3/4, when the log does not tell.")
    ] = None,
    scores_learner: Annotated[
        str | None, typer.Option(help="The scores' column that names the learner.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="The scores' column with the score.")] = None,
    match: Annotated[
        MatchBy,
        typer.Option(help="Compare learners by name, or by the one number in it: 'Student 12' and '12'."),
    ] = MatchBy.name,
    gap: Annotated[
        float, typer.Option(help="Minutes without an event after which a session has ended.")
    ] = 30.0,
    last_event: Annotated[float, typer.Option(help="Minutes counted for the last event of a session.")] = 1.0,
    without_events: Annotated[
        WithoutEvents | None,
        typer.Option(
            help="Learners with a score and no event: keep them with zeros (default, unless the schema says "
            "otherwise), or drop them. The number of learners is public: if they are dropped, it says how many had an "
            "event, and no epsilon covers that."
        ),
    ] = None,
    exclude: Exclude = None,
    cuts: Annotated[
        Cuts | None,
        typer.Option(
            help="Cuts between the labels: declared in the schema, private (estimated, and charged), or even "
            "(computed from the data, for non-private use only)."
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Price of private cuts, shared by all of them.")
    ] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Accept that even cuts carry no guarantee.")
    ] = False,
    ledger: LedgerPath = None,
    population: Annotated[
        str | None, typer.Option(help="Whose data this is: everything about the same learners adds up.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Turn a log of events and a list of scores into a table of minutes per window and week, and a label.

    Example: understudy cohort build log.csv --scores grades.csv --schema cohort.toml --term-start 2024-09-02
    -o cohort.parquet
    """
    _check_price(epsilon)

    from dataclasses import replace

    from understudy.cli.progress import progress_bar
    from understudy.cohorts.building.activity import read_activity
    from understudy.cohorts.building.build import REAL, join, schema_path, write_cohort
    from understudy.cohorts.building.scores import Match, read_scores
    from understudy.cohorts.building.sessions import Rule, Term, check_windows
    from understudy.cohorts.schema import Schema
    from understudy.core.files.simulated import is_simulated, mark_simulated
    from understudy.core.files.times import DateOrder
    from understudy.core.files.withdrawals import read_withdrawn
    from understudy.core.files.writing import check_not_input, check_parent, check_suffix

    # Everything that may be wrong with the options is found before a large file is read.
    check_suffix(out)
    check_parent(out)
    check_not_input(out, events, scores, schema)
    check_not_input(schema_path(out), events, scores)
    declared = Schema.read(schema)
    check_windows(declared)
    chosen = _cuts(declared, cuts, epsilon, not_private)
    if without_events is not None:
        declared = replace(
            declared, without_events="kept" if without_events is WithoutEvents.keep else "dropped"
        )
    declared = _check_overwriting(out, schema, declared, chosen)
    term = Term(term_start.date(), declared.n_weeks, time_zone)
    rule = Rule(gap, last_event)
    withdrawn = None if exclude is None else read_withdrawn(exclude)
    with progress_bar("Reading the log and the scores") as begin:
        step = begin(3)
        listed = read_scores(scores, learner=scores_learner, score=score)
        step()
        activity = read_activity(
            events,
            term,
            format=format,
            learner=learner,
            time=time,
            order=None if dates is None else DateOrder(dates.value),
        )
        step()
        joined = join(
            activity,
            listed,
            declared,
            term,
            rule=rule,
            match=Match(match.value),
            keep_without_events=declared.without_events == "kept",
            withdrawn=withdrawn,
            simulated=is_simulated(events) and is_simulated(scores),
        )
        step()
    if joined.simulated:
        joined = replace(joined, schema=replace(joined.schema, data_set=""))
    account, about_ledger = _account(joined, out, (scores, events), ledger, population)
    notes = (*activity.notes, *listed.notes, *joined.notes, *about_ledger)
    if not as_json:
        for note in notes:
            typer.echo(note, err=True)
    cohort, guarantee = _binned(joined, chosen, epsilon, account, as_json)
    if not cohort.simulated:
        _add_to_declaration(schema_path(out), cohort.schema)
    write_cohort(
        cohort,
        out,
        kind="simulated data: these learners do not exist" if cohort.simulated else REAL,
        real=not cohort.simulated,
    )
    if cohort.simulated:
        mark_simulated(out)
    if as_json:
        echo_json(
            {
                "out": str(out),
                "schema": str(schema_path(out)),
                # Counts, minutes and shares are exact: they are about real learners unless all are simulated.
                "internal": not cohort.simulated,
                **_facts(cohort, joined),
                "gap": gap,
                "last_event": last_event,
                "guarantee": None if guarantee is None else guarantee.to_json(),
                "notes": list(notes),
            }
        )
        return
    _show(cohort, joined, rule.gap, rule.credit)
    typer.echo(_public_number(cohort))
    if guarantee is not None:
        typer.echo(
            f"Cuts: {', '.join(f'{cut:g}' for cut in cohort.schema.cuts or ())}. Guarantee: {guarantee}."
        )
    owner = "" if cohort.simulated else " It holds real learners: keep it inside."
    typer.echo(f"Written: {out} and {schema_path(out)}.{owner}")
    if cohort.schema.cuts_source == "data":
        typer.echo(
            "NOT PRIVATE: the cuts were computed from the scores; no private summary takes them.", err=True
        )


def _check_price(epsilon: float | None) -> None:
    from understudy.errors import UsageError

    if epsilon is not None and not 0 < epsilon <= 100:
        raise UsageError(f"epsilon {epsilon:g} was asked for.", hint="between 0.1 and 2 is usual for cuts.")


def _cuts(schema: Schema, cuts: Cuts | None, epsilon: float | None, not_private: bool) -> Cuts:
    from understudy.errors import UsageError

    if cuts is None and schema.cuts is not None:
        cuts = Cuts.declared
    if cuts is None or (cuts is Cuts.declared and schema.cuts is None):
        raise UsageError(
            "the schema declares no cuts between the labels.",
            hint="write `cuts` in it; or estimate them with --cuts private --epsilon 0.5; "
            "or, for use inside only, --cuts even --not-private.",
        )
    if cuts is not Cuts.declared and schema.cuts is not None:
        raise UsageError(
            f"--cuts {cuts.value} was asked for, and the schema has cuts already.",
            hint="remove `cuts` from the schema, or leave --cuts out.",
        )
    if (epsilon is not None) != (cuts is Cuts.private):
        raise UsageError(
            "private cuts have a price."
            if epsilon is None
            else "--epsilon is the price of private cuts only.",
            hint="say --cuts private --epsilon 0.5.",
        )
    if not_private != (cuts is Cuts.even):
        raise UsageError(
            "--not-private is for even cuts."
            if not_private
            else "even cuts are a function of the scores, and one replaced score moves others across them.",
            hint="say --cuts even --not-private together, or --cuts private --epsilon 0.5.",
        )
    return cuts


def _check_overwriting(out: Path, schema: Path, declared: Schema, cuts: Cuts) -> Schema:
    """What was declared by hand or paid for is not overwritten, nor paid for again; a table built before is.

    Returns the declaration with the random name that the table's learners have already, or with a new one: it is
    the learners' of one table, not that of a declaration which serves for others too.
    """
    from dataclasses import replace

    from understudy.cohorts.building.build import REAL_PREFIX, check_replaceable, schema_path
    from understudy.cohorts.schema import Schema
    from understudy.core.names import SIMULATED_PREFIX
    from understudy.core.privacy.population import new_data_set
    from understudy.errors import UnderstudyError, UsageError

    beside = schema_path(out)
    if beside.exists():
        try:
            there = Schema.read(beside)
        except UnderstudyError:
            there = None
        if cuts is Cuts.declared and there is not None and _same_but_found(there, declared):
            check_replaceable(out, (REAL_PREFIX, SIMULATED_PREFIX))
            # It stays as it is, with its comments, and what it notes goes on holding.
            return replace(there, data_set=there.data_set or new_data_set())
        if there is not None and there.cuts_source == "private":
            raise UsageError(
                f"{beside} holds cuts that were estimated privately and paid for; this would overwrite them.",
                hint=f"to use them, build with --schema {beside} and without --cuts; or choose another name with -o.",
            )
        if cuts is Cuts.declared and schema.exists() and beside.samefile(schema):
            raise UsageError(
                f"{beside} is the schema itself, and does not say what was asked with --without-events.",
                hint=f'write without_events = "{declared.without_events}" in it, or choose another name with -o.',
            )
        raise UsageError(
            f"asked to write {beside}, which is there already and says something else.",
            hint="choose another name with -o.",
        )
    if cuts is not Cuts.declared and out.exists():
        raise UsageError(
            f"asked to write {out}, which is there already.",
            hint="choose another name with -o: the cuts are written into the schema beside it.",
        )
    check_replaceable(out, (REAL_PREFIX, SIMULATED_PREFIX))
    return replace(declared, data_set=new_data_set())


def _same_but_found(one: Schema, other: Schema) -> bool:
    """Whether two declarations say the same, but for what a build finds out and notes."""
    from dataclasses import replace

    return replace(one, without_score=other.without_score) == other


def _add_to_declaration(path: Path, schema: Schema) -> None:
    """Note on top of a declaration that is there already what this build found out; its own lines stay."""
    from understudy.cohorts.schema import Schema
    from understudy.core.files.writing import write_text
    from understudy.errors import UnderstudyError

    try:
        there = Schema.read(path)
    except UnderstudyError:
        return
    notes = []
    if not there.data_set:
        notes.append(f'data_set = "{schema.data_set}"  # by which the ledger knows these learners')
    if schema.without_score != there.without_score == "kept":
        notes.append(f'without_score = "{schema.without_score}"  # some were listed without one')
    if notes and _same_but_found(there, schema):
        mode = path.stat().st_mode
        write_text(path, "\n".join([*notes, path.read_text(encoding="utf-8")]))
        path.chmod(mode)


def _account(
    joined: Joined, out: Path, sources: tuple[Path, ...], ledger: Path | None, population: str | None
) -> tuple[Account, tuple[str, ...]]:
    """The ledger lies with the cohort: from now on that is the data, and what follows adds up there."""
    from understudy.core.privacy.ledger import FILE_NAME, ledger_path
    from understudy.core.privacy.spending import Account, Spending
    from understudy.errors import RefusedError

    account = Account.open(
        Spending(population, ledger),
        path=out,
        simulated=joined.simulated,
        files=sources,
        data_sets=() if joined.simulated else (joined.schema.data_set,),
    )
    if joined.simulated:
        return account, ()
    book = account.ledger
    assert book is not None  # there is a file
    here = book.path.resolve()
    elsewhere = [one for one in sources if one.resolve().parent != here.parent]
    for source in elsewhere if ledger is None else ():
        kept = source.resolve().parent / FILE_NAME
        if kept.exists():
            raise RefusedError(
                f"a ledger lies beside {source.name}, {kept}, and another one would be kept with {out.name}: what is "
                "released about the same learners would not add up.",
                hint=f"give --ledger {shlex.quote(str(kept))}, here and to every command about {out.name}.",
            )
    notes = []
    if elsewhere and ledger is None:
        notes.append(
            f"{' and '.join(one.name for one in elsewhere)}: not in the folder of the ledger {book.path}. If anything "
            "is released about the same learners there, name this ledger with --ledger, or the releases do not add up."
        )
    if ledger is not None and here != ledger_path(out).resolve():
        notes.append(f"The ledger is {book.path}: name it to every command about {out.name}, with --ledger.")
    return account, tuple(notes)


def _binned(
    joined: Joined, cuts: Cuts, epsilon: float | None, account: Account, quiet: bool
) -> tuple[Cohort, Guarantee | None]:
    from understudy.cohorts.building.build import even_cuts

    n_labels = joined.schema.n_labels
    if cuts is not Cuts.private:
        # Nothing is spent; but what is released about the log, the scores or the cohort is about the same learners.
        account.link()
        if cuts is Cuts.declared:
            return joined.binned(), None
        return joined.binned(lambda values: even_cuts(values, n_labels), "data"), None
    from understudy.cohorts.cuts import cuts_guarantee, private_cuts, rank_error

    assert epsilon is not None
    guarantee = cuts_guarantee(epsilon)
    account.check(guarantee)
    with account.charge("cohort build", "cuts by the exponential mechanism", guarantee) as charge:
        cohort = joined.binned(
            lambda values: private_cuts(
                values, joined.schema.score_bounds, n_labels, epsilon=epsilon, noise=charge.noise
            ),
            "private",
            epsilon,
        )
    if not quiet:
        typer.echo(
            f"{charge.sentence()} With 95 % no cut is off by more than {rank_error(n_labels, epsilon):.0f} of "
            f"{joined.n_learners} learners.",
            err=True,
        )
    return cohort, guarantee


def _public_number(cohort: Cohort) -> str:
    """What the size of the cohort gives away, since every summary states it."""
    said = f"The number of learners, {cohort.n_learners}, is public: every summary states it."
    if cohort.schema.without_events == "dropped":
        said += (
            " Learners without an event were dropped, so it says how many had one, and no epsilon covers that; the "
            "schema and every summary say so."
        )
    if cohort.schema.without_score == "dropped":
        said += (
            " Learners listed without a score were left out, so it says how many had one, and no epsilon covers that; "
            "the schema and every summary say so."
        )
    return said


def _facts(cohort: Cohort, joined: Joined) -> dict[str, object]:
    from dataclasses import asdict

    schema = cohort.schema
    labels = {name: int((cohort.label == code).sum()) for code, name in enumerate(schema.labels)}
    return {
        "learners": cohort.n_learners,
        "without_events": schema.without_events,
        "without_score": schema.without_score,
        "weeks": schema.n_weeks,
        "labels": labels,
        "cuts": list(schema.cuts or ()),
        "cuts_source": schema.cuts_source,
        "counts": asdict(joined.counts),
        "windows": [
            {
                "name": feature.name,
                "minutes": round(float(cohort.values[:, place].sum()), 1),
                "share_of_weeks_without": round(float((cohort.values[:, place] == 0).mean()), 4),
            }
            for place, feature in enumerate(schema.features)
        ],
    }


def _show(cohort: Cohort, joined: Joined, gap: float, credit: float) -> None:
    from understudy.cli.terminal import print_table
    from understudy.core.files.words import counted

    print_table(
        f"{cohort.n_learners} learners over {cohort.schema.n_weeks} weeks",
        ["window", "minutes", "weeks without"],
        [
            [
                feature.name,
                f"{cohort.values[:, place].sum():,.0f}",
                f"{(cohort.values[:, place] == 0).mean():.0%}",
            ]
            for place, feature in enumerate(cohort.schema.features)
        ],
    )
    labels = ", ".join(
        f"{name} {int((cohort.label == code).sum())}" for code, name in enumerate(cohort.schema.labels)
    )
    typer.echo(
        f"{counted(joined.counts.sessions, 'session')} of these learners (ended by {gap:g} minutes without an "
        f"event; the last event counts {credit:g}). {cohort.schema.label}: {labels}."
    )
