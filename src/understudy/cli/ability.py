"""`understudy ability`: what a student can make of released difficulties."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.exams import Missing
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.exams.ability import Abilities
    from understudy.exams.difficulties_file import Difficulties
    from understudy.exams.formats.own_answers import Answers
    from understudy.exams.responses import Responses

app = command_group()


DifficultiesPath = Annotated[
    Path, typer.Argument(metavar="DIFFICULTIES", help="The file that `understudy difficulties` wrote.")
]
PassMark = Annotated[
    float, typer.Option("--pass-mark", help="Share of the items that must be right to pass.")
]

# More than a screen of students is for a file.
_MOST_SHOWN = 20


@app.command()
def ability(
    file: DifficultiesPath,
    answers: Annotated[
        Path,
        typer.Option(
            "--answers",
            help="A table with a row per student and a column per item, or with learner, item and correct, "
            "or one student's own with item and correct.",
        ),
    ],
    missing: Annotated[
        Missing | None,
        typer.Option(
            help="A blank answer is wrong or was skipped (default: as in the difficulties; what a list of "
            "learner, item and correct lacks is skipped). Items that the file does not name never count."
        ),
    ] = None,
    passing: Annotated[
        float | None,
        typer.Option(
            "--pass",
            help="Share of an item's points from which on it counts as right (default: as in the difficulties).",
        ),
    ] = None,
    pass_mark: PassMark = 0.5,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File for the table, csv.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute abilities and chances of passing from difficulties.

    Needs nothing but the two files, sends nothing and spends nothing of a budget: the
    difficulties were paid for when they were released.

    Example: understudy ability difficulties.json --answers answers.csv
    """
    from understudy.core.files.words import counted
    from understudy.core.files.writing import check_not_input, check_parent
    from understudy.errors import UsageError
    from understudy.exams.ability import abilities, matched, pass_share
    from understudy.exams.difficulties_file import Difficulties
    from understudy.exams.formats.own_answers import read_answers

    if out is not None:
        if out.suffix.lower() != ".csv":
            raise UsageError(
                f"asked to write {out.name}; abilities are written as .csv.", hint="choose a name with .csv."
            )
        check_parent(out)
        check_not_input(out, file, answers)
    released = Difficulties.read(file)
    given = read_answers(answers, passing if passing is not None else pass_share(released) or 0.5)
    responses = matched(released, given.responses)
    n_blank = responses.n_missing
    wrong = _blanks_are_wrong(missing, released, given)
    correct = responses.missing_as_wrong() if wrong else responses
    found = abilities(released, correct, pass_mark)
    if not as_json:
        for note in given.notes:
            typer.echo(note, err=True)
        if n_blank:
            typer.echo(_about_blanks(n_blank, wrong, missing, released, given), err=True)
    if out is not None:
        _write(out, given.students, found)
    if as_json:
        blanks = {"count": n_blank, "counted_as": "wrong" if wrong else "skipped"}
        echo_json(_for_machines(given.students, found, str(released.guarantee), blanks))
        return
    if found.left_out:
        typer.echo(
            f"{len(found.left_out)} of {counted(len(released.items), 'item')} "
            f"{'has' if len(found.left_out) == 1 else 'have'} no finite difficulty and "
            f"{'is' if len(found.left_out) == 1 else 'are'} left out.",
            err=True,
        )
    if out is not None:
        typer.echo(f"{out}: abilities of {counted(len(given.students), 'student')}.")
    else:
        _show(given.students, found)
    if len(given.students) == 1:
        _show_items(found, responses.with_items(found.items).correct[0].tolist(), correct)
    typer.echo(
        f"Passing: at least {found.needed} of {len(found.items)} items right in another sitting. "
        f"Intervals hold the ability with 95 % certainty."
    )


def _blanks_are_wrong(missing: Missing | None, released: Difficulties, given: Answers) -> bool:
    from understudy.exams.ability import blanks_are_wrong

    if missing is not None:
        return missing is Missing.wrong
    return given.lists_blanks and blanks_are_wrong(released)


def _about_blanks(
    n_blank: int, wrong: bool, missing: Missing | None, released: Difficulties, given: Answers
) -> str:
    from understudy.core.files.words import counted
    from understudy.exams.ability import blanks_are_wrong

    one = n_blank == 1
    does = (
        ("counts as wrong" if one else "count as wrong") if wrong else ("is" if one else "are") + " left out"
    )
    if missing is not None:
        why = ", as asked."
    elif wrong:
        why = ", as in the difficulties; --missing skipped leaves blanks out."
    elif blanks_are_wrong(released) and not given.lists_blanks:
        why = ": a list does not tell who left a task blank; --missing wrong counts it as wrong."
    else:
        why = "; --missing wrong counts blanks as wrong."
    return f"{counted(n_blank, 'missing answer')} {does}{why}"


def _rows(students: tuple[str, ...], found: Abilities) -> list[dict[str, Any]]:
    return [
        {
            "learner": student,
            "answered": int(found.n_answered[k]),
            "right": int(found.n_right[k]),
            "ability": float(found.ability[k]),
            "sd": float(found.sd[k]),
            "low": float(found.low[k]),
            "high": float(found.high[k]),
            "pass_chance": float(found.passing[k]),
        }
        for k, student in enumerate(students)
    ]


def _write(path: Path, students: tuple[str, ...], found: Abilities) -> None:
    import polars as pl

    from understudy.core.files.writing import write_with

    columns = ("learner", "answered", "right", "ability", "sd", "low", "high", "pass_chance")
    rows = _rows(students, found)
    table = pl.DataFrame({name: [row[name] for row in rows] for name in columns})
    write_with(path, lambda temporary: table.write_csv(temporary, float_precision=6))


def _items(found: Abilities) -> list[dict[str, Any]]:
    return [
        {
            "item": name,
            "chance": float(found.chances[0, k]),
            "chance_by_other_answers": float(found.by_others[0, k]),
            "stands_out": _stands_out(found, k),
        }
        for k, name in enumerate(found.items)
    ]


def _stands_out(found: Abilities, k: int) -> str | None:
    if found.should_have[0, k]:
        return "should have passed"
    return "surprisingly passed" if found.surprising[0, k] else None


def _for_machines(
    students: tuple[str, ...], found: Abilities, guarantee: str, blanks: dict[str, Any]
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "guarantee_of_difficulties": guarantee,
        "items": len(found.items),
        "left_out": list(found.left_out),
        "needed_to_pass": found.needed,
        "missing_answers": blanks,
        "students": _rows(students, found),
    }
    if len(students) == 1:
        content["chances"] = _items(found)
    return content


def _show(students: tuple[str, ...], found: Abilities) -> None:
    from understudy.cli.terminal import print_table

    lines = [
        (
            student,
            str(found.n_answered[k]),
            str(found.n_right[k]),
            f"{found.ability[k]:.2f}",
            f"{found.low[k]:.2f} to {found.high[k]:.2f}",
            f"{100 * found.passing[k]:.0f} %",
        )
        for k, student in enumerate(students[:_MOST_SHOWN])
    ]
    columns = ("student", "answered", "right", "ability", "interval", "chance of passing")
    print_table("Abilities on the scale of the difficulties", columns, lines)
    if len(students) > _MOST_SHOWN:
        typer.echo(f"... and {len(students) - _MOST_SHOWN} more students: -o FILE.csv writes all of them.")


def _show_items(found: Abilities, answers: list[int], counted_as: Responses) -> None:
    from understudy.cli.terminal import print_table

    counts = counted_as.with_items(found.items).correct[0].tolist()
    words = {1: "right", 0: "wrong", -1: "not answered"}
    lines = [
        (
            name,
            words[answers[k]] if answers[k] == counts[k] else "blank: wrong",
            f"{100 * found.chances[0, k]:.0f} %",
            _stands_out(found, k) or "",
        )
        for k, name in enumerate(found.items)
    ]
    print_table("Chances in another sitting", ("item", "answer", "chance next time", "stands out"), lines)
