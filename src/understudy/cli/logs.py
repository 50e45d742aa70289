"""Commands on logs of learners' actions: inspect, synthesize, audit, study, release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from understudy.cli.expectation import explain_release
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, Seed, grouped
from understudy.cli.plan import draft, typed_over
from understudy.cli.terminal import echo_json, print_table, recognised, show, tell, tell_reading, with_options
from understudy.core.engine.engine import EngineOptions, running_on
from understudy.core.files.columns import named_columns
from understudy.core.files.databases.addresses import database_address
from understudy.core.files.words import counted
from understudy.core.files.writing import check_not_input, write_text
from understudy.core.privacy.spending import Account
from understudy.errors import DataError, UsageError
from understudy.logs.audit import Audit
from understudy.logs.audit import audit as audit_logs
from understudy.logs.declared.columns import Declared
from understudy.logs.declared.companions import learners_beside
from understudy.logs.expectation import Goal
from understudy.logs.generators.registry import chosen_generator
from understudy.logs.inspect import Inspection
from understudy.logs.inspect import inspect as inspect_log
from understudy.logs.interactions import Interactions
from understudy.logs.log_in_database import open_log_in_database
from understudy.logs.reading import LogOptions, planned, read_log, read_planned_log
from understudy.logs.release.bundle import ReleaseOptions
from understudy.logs.release.bundle import release as release_log
from understudy.logs.release.plan import plan_page as release_plan_page
from understudy.logs.study import Study, StudyOptions
from understudy.logs.study import study as study_log
from understudy.logs.study_report import NO_NAMES
from understudy.logs.synthesize import SynthesizeOptions
from understudy.logs.synthesize import synthesize as synthesize_log
from understudy.logs.utility import METRICS

app = command_group()

LogPath = Annotated[
    str,  # of an address, a path would drop a slash
    typer.Argument(
        metavar="FILE",
        help="The log: csv, tsv, xlsx, parquet, json lines, another known format, or a folder. Or a table or query of "
        "a database: duckdb:FILE?table=NAME, postgresql://USER@HOST/DATABASE?query=SELECT ...",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "-m",
        "--method",
        help="The generator: runs-dp (options epsilon, delta, longest: runs-dp:epsilon=2:longest=200), markov-dp (the "
        "same options), gru-dp (the same; needs public names and the extra deep); without a guarantee markov, runs "
        "(runs:outcomes=das3h), gru (gru:outcomes=learned; needs the extra deep), drop:RATIO, module:Class or "
        "run:COMMAND {train} {out}. "
        "Choose longest by what is plausible, not from the data.",
    ),
]

OwnColumns = Annotated[
    str, typer.Option(metavar="ROLE=COLUMN,...", help="Columns of this file, if it names them differently.")
]


OwnLearners = Annotated[Path | None, typer.Option(help="Table of the learners of this file, one row each.")]


@app.command()
@grouped
def inspect(
    file: LogPath,
    options: LogOptions,
    engine: EngineOptions,
    html: Annotated[
        Path | None, typer.Option(help="Also write the result as a page with a picture, to read or to print.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show what is in a log, and how few points single a learner out.

    Sizes, repeats and lengths, columns that identify people, and uniqueness. The result is internal. With --html it
    is also a page that can be shown to a board.

    Example: understudy inspect log.csv --html inspection.html
    """
    with running_on(engine.engine, engine.scratch):
        found = inspect_log(read_log(file, options), rng=np.random.default_rng(seed))
    if html is not None:
        check_not_input(html, *found.origin.files)
        write_text(html, found.page())
    if as_json:
        echo_json(found.to_json())
        return
    tell(with_options(found.origin.notes, options), quiet=False)
    _print_inspection(found)
    typer.echo(
        "As a page with a picture: --html inspection.html (it stays inside)"
        if html is None
        else f"Page: {html}"
    )


@app.command()
@grouped
def synthesize(
    file: LogPath,
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            help="File to write, csv or parquet by extension; without one, a folder of Parquet files, which the "
            "workers of an engine write themselves.",
        ),
    ],
    reading: LogOptions,
    options: SynthesizeOptions,
    engine: EngineOptions,
    method: Method = "runs-dp",
    in_database: Annotated[
        bool,
        typer.Option(
            "--in-database",
            help="Rows of a log in a database stay there: the sums of markov-dp are computed as SQL. Names of actions "
            "have to be public.",
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a synthetic log, and say what is guaranteed about it.

    The generator is runs-dp unless another is given, with epsilon 8, or 4 where more actions are public than there are
    learners. It is charged like a release, and measures no risk. To try things at no cost, run it on a stand-in of the
    same shape that simulate made, or compare methods inside with study.

    Example: understudy synthesize log.csv -o synthetic.csv -m runs-dp --public-actions
    """
    with running_on(engine.engine, engine.scratch):
        log = _read(file, reading, as_json or quiet, in_database=in_database)
        made = synthesize_log(log, method, options, out=out)
    show(made, as_json)
    tell(options.asked(made.guarantee), as_json or quiet)


@app.command()
@grouped
def audit(
    members: Annotated[Path, typer.Option(help="Log of the learners whom the generator learned from.")],
    outsiders: Annotated[Path, typer.Option(help="Log of learners of the same kind whom it never saw.")],
    synthetic: Annotated[Path, typer.Option(help="The synthetic log.")],
    options: LogOptions,
    members_columns: OwnColumns = "",
    outsiders_columns: OwnColumns = "",
    synthetic_columns: OwnColumns = "",
    members_learners: OwnLearners = None,
    outsiders_learners: OwnLearners = None,
    synthetic_learners: OwnLearners = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Attack any generator's files, and measure what they are worth.

    Every attack and metric that needs no more than three files. The shadow attack is left out: it refits the
    generator, which files cannot do. The result is internal: it is computed from real learners and costs no budget.

    A column that is named for all files (--learner) is that of the files which have it; where files name their
    columns differently, --synthetic-columns learner=id,action=skill names those of one. With a --plan that declares
    columns of learners, each log has its own table of them: LOG-learners beside it, or the one that is given.

    Example: understudy audit --members train.csv --outsiders rest.csv --synthetic fake.csv
    """
    options, declared = planned(replace(options, single_rows=True))
    logs = [
        _read_one_of(path, options, declared, own, table, as_json or quiet)
        for path, own, table in (
            (members, members_columns, members_learners),
            (outsiders, outsiders_columns, outsiders_learners),
            (synthetic, synthetic_columns, synthetic_learners),
        )
    ]
    found = audit_logs(*logs, rng=np.random.default_rng(seed))
    if as_json:
        echo_json(found.to_json())
    else:
        _print_audit(found)


def _with_columns(options: LogOptions, columns: Mapping[str, str | None]) -> LogOptions:
    return LogOptions(**{**vars(options), **columns})


def _read_one_of(
    path: Path,
    options: LogOptions,
    declared: Sequence[Declared],
    own: str,
    table: Path | None,
    quiet: bool,
) -> Interactions:
    """One of several logs: its own columns come first, and of those named for all only the ones that it has."""
    named = named_columns(own)
    timed = options.time is not None or "time" in named
    options = _with_columns(options, named)
    table = table or (learners_beside(path) if declared else None)
    # A table that is given for all of the logs has learners of the others, too.
    options = (
        replace(options, active_only=True)
        if table is None
        else replace(options, learners=table, learners_key=None)
    )
    while True:
        try:
            log = read_planned_log(path, options, declared)
            break
        except DataError as error:
            role = next(iter(error.fields.get("roles", ())), "")
            if error.code != "no-such-column" or "column" not in error.fields or role in named:
                raise
            options = _with_columns(options, {role: None})
    if timed and log.time is not None and log.term is None and not options.time_for_order:
        # Named for all, and called otherwise here.
        log = replace(log, term=options.declared_term())
    columns = ", ".join(f"{role} = {name}" for role, name in log.origin.columns.items())
    tell([f"{path.name}: {columns}."], quiet)
    return log


@app.command()
@grouped
def study(
    file: LogPath,
    method: Annotated[list[str], typer.Option("-m", "--method", help="A generator; give it several times.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Folder for the results; resumed and added to when it is there."),
    ],
    reading: LogOptions,
    options: StudyOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare generators: what their logs are worth and what attacks find.

    The results are internal: they are computed from real learners and cost no budget.

    Example: understudy study log.csv -m drop:0.5 -m markov --seeds 3 -o study
    """
    found = study_log(_read(file, reading, as_json or quiet), method, options, out=out)
    if as_json:
        echo_json(found.to_json())
    else:
        _print_study(found)


@app.command()
@grouped
def release(
    context: typer.Context,
    file: LogPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the bundle; must not be there yet.")],
    reading: LogOptions,
    options: ReleaseOptions,
    engine: EngineOptions,
    method: Method = "runs-dp",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Spend nothing: show what accuracy each risk and epsilon would buy. It stays inside, as it uses the "
            "log's own numbers.",
        ),
    ] = False,
    write_plan: Annotated[
        Path | None,
        typer.Option(
            help="Spend nothing: write this command as a plan, with the columns that were recognised."
        ),
    ] = None,
    plan_page: Annotated[
        Path | None,
        typer.Option(help="Spend nothing: write what would be done as a page (html) to be read and signed."),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            help="Like --explain, and which epsilon it takes: 'difficulties 0.3' (log-odds), 'steps 0.2', 'shares 0.1'."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a bundle: synthetic data and card, and what was measured.

    What may leave is in share/, what was measured in keep/. The generator is runs-dp unless another is
    given, with epsilon 8, or 4 where more actions are public than there are learners. The risk is measured on
    halves of the learners; a generator without a formal guarantee is refused when its learners can be
    distinguished from others, and one that would pass the budget always (exit code 4).

    Example: understudy release log.csv -o bundle --public-actions
    """
    tell(typed_over(context), as_json or quiet)
    with running_on(engine.engine, engine.scratch):
        log = _read(file, reading, as_json or quiet)
        if write_plan is not None or plan_page is not None:
            _plan(log, file, out, method, reading, options, write_plan, plan_page, as_json)
            return
        if explain or within:
            log.origin.refuse_people("the synthetic file", log.actions)
            goals = [Goal.parse(text) for text in within or ()]
            account = Account.open(options, log.origin, simulated=log.simulated)
            balance = None if account.simulated else account.balance()
            generator = chosen_generator(method, None, options.risk, log)
            explain_release(log, generator, options.n_learners, out, goals, balance, as_json)
            return
        show(release_log(log, out, method, options), as_json)


def _plan(
    log: Interactions,
    file: str,
    out: Path,
    method: str,
    reading: LogOptions,
    options: ReleaseOptions,
    plan: Path | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Write what would be done, as a file to run or as a page to sign."""
    if plan is not None:
        if reading.plan is not None and planned(reading)[1]:
            raise UsageError(
                f"the columns of the log are declared in the plan {reading.plan}, and another one was to be written.",
                hint="add the table [release] to that plan.",
                code="two-plans",
                settings=("write_plan", "plan"),
            )
        address = database_address(file)
        written = Path(file) if address is None else address.text(plan.parent)
        settings = {"file": written, "out": out, "method": method, **recognised(log.origin, reading)}
        draft(plan, "release", settings, reading, options)
    if page is not None:
        check_not_input(page, *log.origin.files)
        write_text(page, release_plan_page(log, out, method, options))
    if as_json:
        echo_json({"spent": 0, "plan": plan and str(plan), "page": page and str(page)})
        return
    if plan is not None:
        typer.echo(f"Plan: {plan}. Run it: understudy release --plan {plan}")
    if page is not None:
        typer.echo(f"Page: {page}")
    typer.echo("Nothing was spent.")


def _read(file: str, options: LogOptions, quiet: bool, *, in_database: bool = False) -> Interactions:
    log = open_log_in_database(file, options) if in_database else read_log(file, options)
    tell_reading(log.origin, planned(options)[0], quiet)
    return log


def _print_inspection(found: Inspection) -> None:
    origin = found.origin
    typer.echo("Columns: " + ", ".join(f"{role} = {name}" for role, name in origin.columns.items()) + ".")
    print_table(origin.name, ["what", "value"], [list(pair) for pair in found.facts()])
    if origin.identifiers:
        print_table(
            f"Columns that identify people: {found.identifying}",
            ["column", "kind", "evidence", "role"],
            [[i.column, i.kind, i.evidence, i.role] for i in origin.identifiers],
        )
    else:
        typer.echo("No column looks like a name, e-mail address, phone or student number, or IP address.")
    print_table(
        "What is declared, and what is missing",
        ["what", "declared", "what to do"],
        [[d.what, d.state, d.missing or "–"] for d in found.declarations],
    )
    shares = found.uniqueness
    kinds = dict.fromkeys(share.points for share in shares)
    by_k: dict[int, list[str]] = {}
    for share in shares:
        interval = f"{100 * share.low:.1f}–{100 * share.high:.1f}"
        by_k.setdefault(share.k, []).append(f"{100 * share.share:.1f} ({interval})")
    print_table(
        f"Share of learners singled out by k random points, in percent, with 95 % intervals "
        f"({counted(shares[0].n_targets, 'learner')})",
        ["k", *(f"by {kind}" for kind in kinds)],
        [[str(k), *cells] for k, cells in by_k.items()],
    )


def _print_audit(found: Audit) -> None:
    risk = found.risk
    for note in found.notes:
        typer.echo(f"Note: {note}")
    if found.strange_share:
        typer.echo(
            f"{100 * found.strange_share:.1f} % of the synthetic rows have actions that no real log has."
        )
    print_table(
        "Risk (internal: computed from real learners, covered by no guarantee)",
        ["attack", "AUC", "interval", "TPR at 1 %"],
        [
            [e.attack, f"{e.auc:.3f}", f"{e.low:.3f}–{e.high:.3f}", f"{100 * e.tpr_at_1pct:.1f} %"]
            for e in risk.estimates
        ],
    )
    typer.echo("Left out: pairwise, shadow and stacked, which refit the generator; files cannot do that.")
    typer.echo(
        f"Strongest: {risk.worst.attack}, AUC {risk.worst.auc:.3f} "
        f"(simultaneous interval {risk.low:.3f}–{risk.high:.3f}; 0.5 is guessing)."
    )
    typer.echo(
        f"Most found at 1 % false alarms: {100 * risk.most_found.tpr_at_1pct:.1f} % by {risk.most_found.attack} "
        f"(simultaneous interval {100 * risk.found_low:.1f}–{100 * risk.found_high:.1f} %; "
        f"by luck alone up to {100 * found.chance.found_high:.1f} %)."
    )
    if found.attribute is not None:
        typer.echo(
            f"Attribute attack: advantage {found.attribute.advantage:+.3f} over the baseline "
            f"({found.attribute.low:+.3f} to {found.attribute.high:+.3f})."
        )
    for estimate in found.column_attributes:
        typer.echo(
            f"Attribute attack on column {estimate.of}: advantage {estimate.advantage:+.3f} over the baseline "
            f"({estimate.low:+.3f} to {estimate.high:+.3f})."
        )
    print_table(
        "Utility",
        ["metric", "value", "best", "meaning"],
        [
            [m.name, f"{found.utility[m.name]:.3f}", f"{m.best:g}", m.meaning]
            for m in METRICS
            if m.name in found.utility
        ],
    )


def _print_study(found: Study) -> None:
    measures = [
        name
        for name in ("wrmse", "action_tv", "transition_tv")
        if any(name in summary for summary in found.summaries)
    ]
    print_table(
        "Internal: computed from real learners, covered by no guarantee",
        ["method", "names", *measures, "strongest attack", "AUC", "interval", "by luck alone", "TPR at 1 %"],
        [
            [
                s["method"],
                f"{s['names']} ({100 * s['names_kept']:.0f} % of rows)"
                if s.get("names_kept", 1) < 1
                else s["names"],
                *(f"{s[name]:.3f}" if name in s else "" for name in measures),
                ", ".join(s["worst_attacks"]),
                f"{s['auc_worst']:.3f}",
                f"{s['auc_worst_low']:.3f}–{s['auc_worst_high']:.3f}",
                f"{s['auc_chance_low']:.3f}–{s['auc_chance_high']:.3f}",
                f"{100 * s['tpr_at_1pct']:.1f} % (luck {100 * s['tpr_chance_high']:.1f})",
            ]
            for s in found.summaries
        ],
    )
    for summary in found.summaries:
        if summary.get("names_kept", 1) == 0:
            typer.echo(f"{summary['method']}: {NO_NAMES}")
    assert found.folder is not None
    typer.echo(f"Report: {found.folder / 'report.html'}")
