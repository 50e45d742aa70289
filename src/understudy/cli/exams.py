"""Commands on exams: difficulties, ability, page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import echo_json, print_table, show, tell, tell_reading
from understudy.core.privacy.risk import RISK_COLUMNS, RISK_LEGEND
from understudy.errors import UsageError
from understudy.exams.ability import AbilityOptions, AbilityReport
from understudy.exams.ability import ability as find_abilities
from understudy.exams.difficulties import DifficultiesOptions
from understudy.exams.difficulties import difficulties as find_difficulties
from understudy.exams.estimation import PRIVATE
from understudy.exams.forecast import forecast
from understudy.exams.formats.reading import ResponseOptions, read_responses
from understudy.exams.plan import plan_for
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Responses
from understudy.exams.student_page import PageOptions, english_strings
from understudy.exams.student_page import page as make_page

app = command_group()

DifficultiesPath = Annotated[
    Path, typer.Argument(metavar="DIFFICULTIES", help="The file that `understudy difficulties` wrote.")
]

# More than a screen of items or students is for a file.
_MOST_ITEMS, _MOST_STUDENTS = 40, 20


@app.command()
@grouped
def difficulties(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses: a row per learner and a column per item, or rows of learner, item, correct; or a log.",
        ),
    ],
    options: DifficultiesOptions,
    reading: ResponseOptions,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show what precision each risk and epsilon buys; spend and write nothing."
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Release how hard each item of an exam is, with a guarantee.

    Example: understudy difficulties responses.csv --epsilon 1 -o difficulties.json
    """
    if out is None and not explain:
        raise UsageError(
            "no file to write was given.", hint="give a name that ends in .json.", settings=("out",)
        )
    responses = read_responses(file, reading)
    tell_reading(responses.origin, reading, as_json or quiet)
    if explain:
        _explain(responses, options, as_json)
        return
    tell(_about_missing(responses, options), as_json or quiet)
    found = find_difficulties(responses, options, out=out)
    if as_json:
        echo_json(found.to_json())
        return
    _print_difficulties(found)
    tell(options.asked(found.guarantee), quiet)
    tell(found.warnings(), quiet=False)
    students = f" For the students: understudy page {out} -o page.html" if found.guarantee.formal else ""
    typer.echo(f"Written: {out}.{students}")


@app.command()
@grouped
def ability(
    file: DifficultiesPath,
    answers: Annotated[
        Path,
        typer.Option(
            help="A table with a row per student and a column per item, or with learner, item and correct, "
            "or one student's own with item and correct."
        ),
    ],
    options: AbilityOptions,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File for the table, csv.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compute abilities and chances of passing from difficulties.

    Needs nothing but the two files, sends nothing and spends nothing of a budget: the
    difficulties were paid for when they were released.

    Example: understudy ability difficulties.json --answers answers.csv
    """
    found = find_abilities(file, answers, options, out=out)
    if as_json:
        echo_json(found.to_json())
        return
    tell(found.notes, quiet)
    if blanks := found.about_blanks():
        other = "skipped" if found.blanks_are_wrong else "wrong"
        change = f" To change that: --missing {other}." if options.missing is None else ""
        tell([blanks + change], quiet)
    _print_abilities(found)
    show(found, as_json)
    if found.n_to_enter:
        typer.echo("--missing wrong says that the rest was wrong, --missing skipped that it was not asked.")


def _print_strings(wanted: bool) -> None:
    if wanted:
        typer.echo(english_strings(), nl=False)
        raise typer.Exit


@app.command()
@grouped
def page(
    file: DifficultiesPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the page, html.")],
    options: PageOptions,
    print_strings: Annotated[
        bool,
        typer.Option(
            "--print-strings",
            callback=_print_strings,
            is_eager=True,
            help="Print the English texts as JSON, to be translated for --strings, and stop.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a page on which students compute their own ability.

    One file without any connection: what a student enters leaves the device in no way and is not
    stored. Difficulties without a formal guarantee are refused (exit code 4) unless --accept-risk
    gives a reason.

    Example: understudy page difficulties.json -o page.html --title "Statistics, first test"
    """
    show(make_page(file, options, out=out), as_json)


def _about_missing(responses: Responses, options: DifficultiesOptions) -> list[str]:
    if not responses.n_missing:
        return []
    share = f"{responses.n_missing} answers ({responses.n_missing / responses.correct.size:.0%}) are missing"
    if options.missing_in(responses.origin.layout) == "skipped":
        return [f"{share} and count as not asked."]
    if options.method in PRIVATE and (responses.points is not None or options.discriminations):
        # These are fitted with all answers only.
        return [f"{share} and count as wrong."]
    return [f"{share} and count as wrong; if these learners were not asked: --missing skipped."]


def _print_difficulties(found: Difficulties) -> None:
    n_items = len(found.items)
    slopes = any(item.discrimination != 1.0 for item in found.items)
    print_table(
        f"{n_items} items from easy to hard"
        + (f", the first {_MOST_ITEMS}" if n_items > _MOST_ITEMS else ""),
        ["item", "difficulty", "standard error", *(["discrimination"] if slopes else []), "reading", "place"],
        [
            [
                item.name,
                "unbounded" if item.difficulty is None else f"{item.difficulty:.2f}",
                "" if item.standard_error is None else f"{item.standard_error:.2f}",
                *([f"{item.discrimination:.2f}"] if slopes else []),
                item.reading,
                item.place,
            ]
            for item in found.from_easy_to_hard()[:_MOST_ITEMS]
        ],
    )
    show(found, as_json=False)


def _explain(responses: Responses, options: DifficultiesOptions, as_json: bool) -> None:
    """Print what precision each risk and epsilon would buy."""
    if responses.points is not None or options.discriminations:
        raise UsageError(
            "what precision an epsilon buys is predicted for difficulties of right and wrong answers only.",
            hint="leave points and discriminations out to see that.",
            code="no-forecast",
            settings=("points", "discriminations"),
        )
    if options.method not in PRIVATE and any(responses.guesses or ()):
        # Without an epsilon guessing is not fitted, but what is predicted has one.
        options = replace(options, method=PRIVATE[0], epsilon=1.0, penalty=None, penalty_from=None)
    answers = (responses.correct.size - responses.n_missing) / max(responses.n_learners, 1)
    rows = forecast(
        plan_for(responses, options).options,
        responses.n_items,
        responses.n_learners,
        answers,
        responses.origin.layout,
        responses.guesses,
    )
    if as_json:
        echo_json({"spent": 0, "internal": True, "predictions": [row.to_json() for row in rows]})
        return
    print_table(
        f"Expected precision for {responses.n_learners:,} learners and {responses.n_items:,} items; nothing was spent",
        [*RISK_COLUMNS, "method", "noise", "error", "correlation", "in order"],
        [
            [
                *row.risk.cells(),
                row.method,
                f"{row.total_noise:.1f} learners"
                + (f" ({row.better} {row.better_noise:.1f})" if row.better else ""),
                row.error.cells(),
                row.correlation.cells(),
                f"{row.ordered:.0%}",
            ]
            for row in rows
        ],
    )
    typer.echo(
        "Error: that of a difficulty, in log-odds; correlation: with "
        "the true difficulties; in order: pairs of items whose order would be known. Nine of ten simulated exams of "
        "this size lie within the bounds."
    )
    if options.missing_in(responses.origin.layout) == "skipped":
        typer.echo("Internal: this rests on how many answers these learners gave. Keep it inside.")
    if better := next((row.better for row in rows if row.better), ""):
        typer.echo(f"In brackets: the noise of another method, if you choose it (--method {better}).")
    typer.echo(f"{RISK_LEGEND} State a risk with --risk, or an epsilon.")
    typer.echo("Items: " + ", ".join(responses.items[:30]) + (", …" if responses.n_items > 30 else "."))


def _print_abilities(report: AbilityReport) -> None:
    """Print the students, unless they are in a file, and the items of one student."""
    rows = report.to_frame().to_dicts()
    count = "right" if report.abilities.points is None else "points"
    if report.out is None:
        print_table(
            "Abilities on the scale of the difficulties",
            ("student", "answered", count, "ability", "interval", "chance of passing"),
            [
                [
                    row["learner"],
                    str(row["answered"]),
                    f"{row[count]:g}",
                    *(
                        ["–"] * 3
                        if row["ability"] is None
                        else [
                            f"{row['ability']:.2f}",
                            "–" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}",
                            f"{100 * row['pass_chance']:.0f} %",
                        ]
                    ),
                ]
                for row in rows[:_MOST_STUDENTS]
            ],
        )
        if len(rows) > _MOST_STUDENTS:
            typer.echo(f"... and {len(rows) - _MOST_STUDENTS} more students: -o FILE.csv writes all of them.")
    if len(rows) == 1 and not report.n_to_enter and report.abilities.points is not None:
        print_table(
            "Points in another sitting",
            ("item", "of", "expected", "stands out"),
            [
                [row["item"], f"{row['points']:g}", f"{row['expected_points']:.1f}", row["stands_out"] or ""]
                for row in report.chances()
            ],
        )
    elif len(rows) == 1 and not report.n_to_enter:
        words = {1: "right", 0: "wrong", -1: "not answered"}
        answers = zip(report.given[0].tolist(), report.counted_as[0].tolist(), strict=True)
        print_table(
            "Chances in another sitting",
            ("item", "answer", "chance next time", "stands out"),
            [
                [
                    row["item"],
                    words[answer] if answer == counted_as else "blank: wrong",
                    f"{100 * row['chance']:.0f} %",
                    row["stands_out"] or "",
                ]
                for row, (answer, counted_as) in zip(report.chances(), answers, strict=True)
            ],
        )
