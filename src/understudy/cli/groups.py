"""The command on groups of an exam's learners: difficulties compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, Quiet, grouped
from understudy.cli.terminal import echo_json, print_table, show, tell, tell_reading
from understudy.errors import UsageError
from understudy.exams.compare import CompareOptions, GroupComparison, compare_groups, foresee
from understudy.exams.formats.reading import ResponseOptions, read_responses
from understudy.exams.responses import Responses

app = command_group()

# More than a screen of items is for a file.
_MOST_ITEMS = 60


@app.command("difficulties compare")
@grouped
def compare(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A sheet with a row per learner and a column per item.")
    ],
    group: Annotated[str, typer.Option(help="Column that says in which group a learner is.")],
    groups: Annotated[
        str,
        typer.Option(
            help="The groups that are compared, 'A,B': values of that column, declared and never looked up. Others "
            "are compared with the first one; learners with another value are in none."
        ),
    ],
    options: CompareOptions,
    reading: ResponseOptions,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, json; it must not be there yet.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show which differences each epsilon could decide; spend and write nothing."
        ),
    ] = False,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="For --explain: the groups' sizes as far as they are public, '300,200' (default: equal)."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find items that are harder for one group than for another, privately.

    Abilities of the groups may differ; an item differs if it is harder for learners of the same
    ability. For each item the answer is that it differs, that it is alike, or that this cannot be
    decided at this size.

    Example: understudy difficulties compare exam.csv --group track --groups A,B --epsilon 1 -o compared.json
    """
    if out is None and not explain:
        raise UsageError(
            "no file to write was given.", hint="give a name that ends in .json.", settings=("out",)
        )
    responses = read_responses(file, reading, group=group, groups=groups)
    tell_reading(responses.origin, reading, as_json or quiet)
    if explain:
        _explain(responses, options, sizes, as_json)
        return
    found = compare_groups(responses, options, out=out)
    if as_json:
        echo_json(found.to_json())
        return
    _print(found)
    show(found, as_json=False)
    tell(found.warnings(), quiet=False)
    typer.echo(f"Written: {out}.")


def _print(found: GroupComparison) -> None:
    print_table(
        f"{len(found.groups)} groups; sizes are estimates from noisy ones",
        ["group", "learners", f"ability, compared with {found.groups[0].name}"],
        [
            [
                group.name,
                f"about {group.learners:.0f}",
                ""
                if group.ability is None
                else f"{group.ability:+.2f} ± {1.96 * (group.standard_error or 0.0):.2f}",
            ]
            for group in found.groups
        ],
    )
    clearest = sorted(found.items, key=lambda item: item.p_value)
    print_table(
        "Items, the clearest difference first"
        + (f", the first {_MOST_ITEMS}" if len(clearest) > _MOST_ITEMS else ""),
        ["item", "group", "harder by", "95 % interval", "verdict"],
        [
            [
                item.item,
                item.group,
                f"{item.difference:+.2f}",
                f"{item.low:+.2f} to {item.high:+.2f}",
                item.in_words(found.alike),
            ]
            for item in clearest[:_MOST_ITEMS]
        ],
    )


def _explain(responses: Responses, options: CompareOptions, sizes: str | None, as_json: bool) -> None:
    rows = foresee(responses, options, sizes)
    if as_json:
        echo_json({"spent": 0, "predictions": [row.to_json() for row in rows]})
        return
    print_table(
        f"What could be decided with {responses.n_learners:,} learners, {responses.n_items:,} items and "
        f"{len(responses.groups)} groups; nothing was spent",
        [
            "epsilon",
            "method",
            "noise",
            "item solved by",
            "error",
            "found if it differs by",
            "alike can be told within",
        ],
        [
            [
                f"{row.epsilon:g}",
                row.method,
                f"{row.noise:.1f} learners",
                f"{row.solved:.0%}",
                f"{row.standard_error:.2f}",
                f"{row.differs:.1f}",
                f"±{row.alike:.1f}",
            ]
            for row in rows
        ],
    )
    typer.echo(
        "In log-odds, each in four of five exams. "
        + (
            "Groups are taken as equally large; --sizes declares others. "
            if sizes is None
            else "Sizes are as declared. "
        )
        + "A difference above 1 is large, one below 0.5 is small."
    )
