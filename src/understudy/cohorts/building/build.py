"""build(): the table of a cohort from a log of events and a list of scores; private cuts are charged."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from understudy.cohorts.building.activity import Activity, read_activity
from understudy.cohorts.building.join import Counts, Joined, even_cuts, join
from understudy.cohorts.building.scores import Match, Scores, read_scores
from understudy.cohorts.building.sessions import Rule, Term, check_windows
from understudy.cohorts.cohort import Cohort, check_replaceable, schema_path, write_cohort
from understudy.cohorts.cuts import cuts_guarantee, private_cuts, rank_error
from understudy.cohorts.schema import Schema
from understudy.core.engine import progress
from understudy.core.events.read_options import CellOptions
from understudy.core.files.origin import Origin
from understudy.core.files.people.learner_ids import Digests, digests_of_names
from understudy.core.files.people.withdrawals import read_withdrawn
from understudy.core.files.simulated import is_simulated, mark_simulated
from understudy.core.files.words import counted
from understudy.core.files.writing import check_not_input, check_parent, check_suffix, write_text
from understudy.core.options import settled
from understudy.core.pages.charts import Point, dots
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import FILE_NAME, ledger_path
from understudy.core.privacy.population import new_data_set
from understudy.core.privacy.spending import Account, Charge, Spending
from understudy.errors import RefusedError, UnderstudyError, UsageError

Cuts = Literal["declared", "private", "even"]


@dataclass(frozen=True)
class BuildOptions(Spending, CellOptions):
    """How events and scores become a cohort, and what its cuts cost."""

    time_zone: Annotated[str | None, "Where the learners' clocks were: Europe/Berlin."] = None
    force: Annotated[bool, "Write over a cohort that was built before."] = False
    format: Annotated[
        str | None, "csv, tsv, excel, parquet, moodle, xapi, caliper or edx, when the log is not recognised."
    ] = None
    platform_voids: Annotated[
        bool,
        "Only the platform voids statements (xapi): those that another actor than their own voided are left out too.",
    ] = False
    learner: Annotated[str | None, "The log's column that names the learner."] = None
    time: Annotated[str | None, "The log's column with the time."] = None
    scores_learner: Annotated[str | None, "The scores' column that names the learner."] = None
    score: Annotated[str | None, "The scores' column with the score."] = None
    match: Annotated[
        Literal["name", "number"],
        "Compare learners by name, or by the one number in it: 'Student 12' and '12'.",
    ] = "name"
    gap: Annotated[float, "Minutes without an event after which a session has ended."] = 30.0
    last_event: Annotated[float, "Minutes counted for the last event of a session."] = 1.0
    without_events: Annotated[
        Literal["keep", "drop"] | None,
        "Learners with a score and no event: keep them with zeros (default, unless the schema says otherwise), or drop "
        "them. The number of learners is public: if they are dropped, it says how many had an event, and no epsilon "
        "covers that.",
    ] = None
    exclude: Annotated[Path | None, "File that lists learners who withdrew; they are left out."] = None
    cuts: Annotated[
        Cuts | None,
        "Cuts between the labels: declared in the schema, private (estimated, and charged), or even (computed from "
        "the data, for non-private use only).",
    ] = None
    epsilon: Annotated[float | None, "Price of private cuts, shared by all of them."] = None
    not_private: Annotated[bool, "Accept that even cuts carry no guarantee."] = False

    def __post_init__(self) -> None:
        if self.epsilon is not None and not 0 < self.epsilon <= 100:
            raise UsageError(
                f"epsilon {self.epsilon:g} was asked for.",
                hint="between 0.1 and 2 is usual for cuts.",
                settings=("epsilon",),
            )

    def cuts_of(self, schema: Schema) -> Cuts:
        """Where the cuts come from; what does not go together is refused."""
        cuts = "declared" if self.cuts is None and schema.cuts is not None else self.cuts
        if cuts is None or (cuts == "declared" and schema.cuts is None):
            raise UsageError(
                "the schema declares no cuts between the labels.",
                hint="write `cuts` in it; or have them estimated privately, at a price; or, for use inside only, take "
                "even ones that are not private.",
                settings=("cuts", "epsilon", "not_private"),
            )
        if cuts != "declared" and schema.cuts is not None:
            raise UsageError(
                f"{cuts} cuts were asked for, and the schema has cuts already.",
                hint="remove `cuts` from the schema, or do not ask for others.",
                settings=("cuts",),
            )
        if (self.epsilon is not None) != (cuts == "private"):
            raise UsageError(
                "private cuts have a price."
                if self.epsilon is None
                else "epsilon is the price of private cuts only.",
                hint="ask for private cuts and state their epsilon, such as 0.5.",
                settings=("cuts", "epsilon"),
            )
        if self.not_private != (cuts == "even"):
            raise UsageError(
                "what is not private was accepted, which is for even cuts."
                if self.not_private
                else "even cuts are a function of the scores, and one replaced score moves others across them.",
                hint="accept even cuts as not private, or ask for private cuts with an epsilon.",
                settings=("cuts", "not_private", "epsilon"),
            )
        return cuts


@dataclass(frozen=True)
class Built:
    """A cohort that was built and written: its counts, minutes and shares are exact, and stay inside."""

    cohort: Cohort
    out: Path
    counts: Counts
    rule: Rule
    charge: Charge | None
    """What private cuts cost; None for other cuts."""

    @property
    def notes(self) -> tuple[str, ...]:
        """How the files were read, and what was left out."""
        return self.cohort.origin.notes

    @property
    def guarantee(self) -> Guarantee | None:
        """What is proved about private cuts."""
        return None if self.charge is None else self.charge.guarantee

    def to_json(self) -> dict[str, Any]:
        """The result for machines."""
        schema = self.cohort.schema
        return {
            "out": str(self.out),
            "schema": str(schema_path(self.out)),
            "internal": not self.cohort.simulated,
            "learners": self.cohort.n_learners,
            "without_events": schema.without_events,
            "without_score": schema.without_score,
            "weeks": schema.n_weeks,
            "labels": self._labels(),
            "cuts": list(schema.cuts or ()),
            "cuts_source": schema.cuts_source,
            "counts": asdict(self.counts),
            "windows": self._windows(),
            "gap": self.rule.gap,
            "last_event": self.rule.credit,
            "guarantee": None if self.guarantee is None else self.guarantee.to_json(),
            "charge": None if self.charge is None else self.charge.to_json(),
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The result for people."""
        cohort, schema = self.cohort, self.cohort.schema
        labels = ", ".join(f"{name} {number}" for name, number in self._labels().items())
        lines = [
            f"{counted(self.counts.sessions, 'session')} of these learners (ended by {self.rule.gap:g} minutes without "
            f"an event; the last event counts {self.rule.credit:g}). {schema.label}: {labels}.",
            _public_number(cohort),
        ]
        if self.charge is not None:
            off = rank_error(schema.n_labels, schema.cuts_epsilon or 0.0)
            lines += [
                f"Cuts: {', '.join(f'{cut:g}' for cut in schema.cuts or ())}. Guarantee: {self.guarantee}.",
                f"{self.charge.sentence()} With 95 % no cut is off by more than {off:.0f} of "
                f"{cohort.n_learners} learners.",
            ]
        owner = " It holds real learners: keep it inside." if cohort.real else ""
        lines.append(f"Written: {self.out} and {schema_path(self.out)}.{owner}")
        if schema.cuts_source == "data":
            lines.append(
                "NOT PRIVATE: the cuts were computed from the scores; no private summary takes them."
            )
        return lines

    def to_frame(self) -> pl.DataFrame:
        """Minutes in each window, and the share of weeks without any."""
        return pl.DataFrame(self._windows())

    def plot(self) -> Any:
        """The share of weeks without activity in each window, as an altair chart."""
        points = [Point(window["name"], window["share_of_weeks_without"]) for window in self._windows()]
        return dots(points, "share of weeks without activity", domain=[0.0, 1.0]).figure("Windows").chart

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()), self.to_frame())

    def _labels(self) -> dict[str, int]:
        cohort = self.cohort
        return {name: int((cohort.label == code).sum()) for code, name in enumerate(cohort.schema.labels)}

    def _windows(self) -> list[dict[str, Any]]:
        values = self.cohort.values
        return [
            {
                "name": feature.name,
                "minutes": round(float(values[:, place].sum()), 1),
                "share_of_weeks_without": round(float((values[:, place] == 0).mean()), 4),
            }
            for place, feature in enumerate(self.cohort.schema.features)
        ]


def build(
    events: Path | str,
    scores: Path | str,
    schema: Path | str | Schema,
    out: Path | str,
    options: BuildOptions = BuildOptions(),  # noqa: B008 (frozen)
    *,
    term_start: date | str,
    **settings: Any,
) -> Built:
    """Turn a log of events and a list of scores into minutes per window and week, and a label.

    The table is written to `out`, and its schema beside it. From then on that is the data: the ledger is kept
    with it, where the log and the scores are linked to the same learners. The settings of `BuildOptions` may be
    given as keywords.
    """
    options = settled(options, settings)
    events, scores, out = Path(events), Path(scores), Path(out)
    # Everything that may be wrong with the options is found before a large file is read.
    check_suffix(out)
    check_parent(out)
    source = None if isinstance(schema, Schema) else Path(schema)
    check_not_input(out, events, scores, *([] if source is None else [source]))
    check_not_input(schema_path(out), events, scores)
    declared = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    check_windows(declared)
    cuts = options.cuts_of(declared)
    if options.without_events is not None:
        kept: Literal["kept", "dropped"] = "kept" if options.without_events == "keep" else "dropped"
        declared = replace(declared, without_events=kept)
    declared = _check_overwriting(out, source, declared, cuts)
    if out.exists() and not options.force:
        raise _there_already(
            out, "which is there already", "choose another name, or allow it to be written over.", "force"
        )
    term = Term(_day(term_start), declared.n_weeks, options.time_zone)
    rule = Rule(options.gap, options.last_event)
    activity, listed, joined = _read(events, scores, declared, term, rule, options)
    learners = digests_of_names(pl.concat([activity.names.cast(pl.String), listed.names.cast(pl.String)]))
    account, about_ledger = _account(joined, learners, out, (scores, events), options)
    origin = Origin(
        out,
        format=activity.format,
        columns={**activity.columns, **listed.columns},
        notes=(*activity.notes, *listed.notes, *joined.notes, *about_ledger),
        n_withdrawn=joined.counts.withdrawn,
    )
    if cuts != "private":
        # Nothing is spent; but what is released about the log, the scores or the cohort is about the same learners.
        account.link()
        n_labels = declared.n_labels
        cohort = (
            joined.binned()
            if cuts == "declared"
            else joined.binned(lambda values: even_cuts(values, n_labels), "data")
        )
        _write(cohort, out)
        return Built(replace(cohort, origin=origin), out, joined.counts, rule, None)
    assert options.epsilon is not None  # private cuts have a price
    guarantee = cuts_guarantee(options.epsilon).with_caveats(*joined.schema.caveats)
    account.check(guarantee)
    # What is paid for are the cuts, and they are in the schema: it is written first.
    with account.charge(
        "cohort build", "cuts by the exponential mechanism", guarantee, out=schema_path(out)
    ) as charge:
        cohort = _with_private_cuts(joined, options.epsilon, charge)
        _write(cohort, out)
    return Built(replace(cohort, origin=origin), out, joined.counts, rule, charge)


def _read(
    events: Path, scores: Path, schema: Schema, term: Term, rule: Rule, options: BuildOptions
) -> tuple[Activity, Scores, Joined]:
    withdrawn = None if options.exclude is None else read_withdrawn(options.exclude)
    with progress.task("Reading the log and the scores", 3) as step:
        listed = read_scores(scores, learner=options.scores_learner, score=options.score)
        step.advance()
        activity = read_activity(
            events,
            term,
            options,
            format=options.format,
            learner=options.learner,
            time=options.time,
            platform_voids=options.platform_voids,
        )
        step.advance()
        joined = join(
            activity,
            listed,
            schema,
            term,
            rule=rule,
            match=Match(options.match),
            keep_without_events=schema.without_events == "kept",
            withdrawn=withdrawn,
            simulated=is_simulated(events) and is_simulated(scores),
        )
        step.advance()
    if joined.simulated:
        joined = replace(joined, schema=replace(joined.schema, data_set=""))
    return activity, listed, joined


def _with_private_cuts(joined: Joined, epsilon: float, charge: Charge) -> Cohort:
    schema = joined.schema
    return joined.binned(
        lambda values: private_cuts(
            values, schema.score_bounds, schema.n_labels, epsilon=epsilon, noise=charge.noise
        ),
        "private",
        epsilon,
    )


def _write(cohort: Cohort, out: Path) -> None:
    if cohort.real:
        _add_to_declaration(schema_path(out), cohort.schema)
    write_cohort(cohort, out)
    if cohort.simulated:
        mark_simulated(out)


def _day(given: date | str) -> date:
    if isinstance(given, datetime):
        return given.date()
    if isinstance(given, date):
        return given
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise UsageError(
            "the first day of the term is not a date.",
            hint="give it as 2024-09-02.",
            settings=("term_start",),
        ) from None


def _check_overwriting(out: Path, source: Path | None, declared: Schema, cuts: Cuts) -> Schema:
    """What was declared by hand or paid for is not overwritten, nor paid for again; a table built before is.

    Returns the declaration with the random name that the table's learners have already, or with a new one: it is
    the learners' of one table, not that of a declaration which serves for others too.
    """
    beside = schema_path(out)
    if beside.exists():
        try:
            there = Schema.read(beside)
        except UnderstudyError:
            there = None
        if cuts == "declared" and there is not None and _same_but_found(there, declared):
            check_replaceable(out)
            # It stays as it is, with its comments, and what it notes goes on holding.
            return replace(there, data_set=there.data_set or new_data_set())
        if there is not None and there.cuts_source == "private":
            raise UsageError(
                f"{beside} holds cuts that were estimated privately and paid for; this would overwrite them.",
                hint=f"to use them, build with the schema {beside} and ask for no cuts; or choose another name.",
                code="already-exists",
                settings=("schema", "out"),
            )
        if cuts == "declared" and source is not None and source.exists() and beside.samefile(source):
            raise UsageError(
                f"{beside} is the schema itself, and does not say what was asked about learners without events.",
                hint=f'write without_events = "{declared.without_events}" in it, or choose another name.',
                code="already-exists",
                settings=("without_events", "out"),
            )
        raise _there_already(beside, "which is there already and says something else", "choose another name.")
    if cuts != "declared" and out.exists():
        raise _there_already(
            out,
            "which is there already",
            "choose another name: the cuts are written into the schema beside it.",
        )
    check_replaceable(out)
    return replace(declared, data_set=new_data_set())


def _there_already(path: Path, what: str, hint: str, *settings: str) -> UsageError:
    return UsageError(
        f"asked to write {path}, {what}.", hint=hint, code="already-exists", settings=("out", *settings)
    )


def _same_but_found(first: Schema, second: Schema) -> bool:
    """Whether two declarations say the same, but for what a build finds out and notes."""
    return replace(first, without_score=second.without_score) == second


def _add_to_declaration(path: Path, schema: Schema) -> None:
    """Note on top of a declaration that is there already what this build found out; its own lines stay."""
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
    joined: Joined, learners: Digests, out: Path, sources: tuple[Path, ...], options: BuildOptions
) -> tuple[Account, tuple[str, ...]]:
    """The ledger is kept with the cohort: from now on that is the data, and what follows adds up there."""
    account = Account.open(
        options,
        Origin(out, digests=learners),
        simulated=joined.simulated,
        files=sources,
        data_sets=() if joined.simulated else (joined.schema.data_set,),
    )
    if account.simulated:
        return account, ()
    assert account.ledger is not None  # there is a file
    kept = account.ledger.path
    elsewhere = [source for source in sources if source.resolve().parent != kept.resolve().parent]
    if options.ledger is not None:
        apart = kept.resolve() != ledger_path(out).resolve()
        return account, (f"The ledger is {kept}: name it for everything about {out.name}.",) if apart else ()
    for source in elsewhere:
        other = source.resolve().parent / FILE_NAME
        if other.exists():
            raise RefusedError(
                f"a ledger lies beside {source.name}, {other}, and another one would be kept with {out.name}: what is "
                "released about the same learners would not add up.",
                hint=f"name that ledger, here and for everything about {out.name}.",
                code="ledger-elsewhere",
                settings=("ledger",),
                ledger=str(other),
            )
    if not elsewhere:
        return account, ()
    names = " and ".join(source.name for source in elsewhere)
    return account, (
        f"{names}: not in the folder of the ledger {kept}. If anything is released about the same learners there, name "
        "this ledger, or the releases do not add up.",
    )


def _public_number(cohort: Cohort) -> str:
    """What the size of the cohort gives away, since every summary states it."""
    said = f"The number of learners, {cohort.n_learners}, is public: every summary states it."
    left_out = (
        (cohort.schema.without_events, "Learners without an event were dropped"),
        (cohort.schema.without_score, "Learners listed without a score were left out"),
    )
    for kept, what in left_out:
        if kept == "dropped":
            said += (
                f" {what}, so it says how many had one, and no epsilon covers that; the schema and every summary "
                "say so."
            )
    return said
