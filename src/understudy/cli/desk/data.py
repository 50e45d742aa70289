"""`understudy desk data`: registering tables, their limits, and learners who withdraw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli.desk.options import (
    DEFAULT_FOLDER,
    DeskFolder,
    TableOptions,
    a_table,
    at_the_machine,
    existing,
    opened,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, grouped
from understudy.cli.terminal import echo_json, listen_to_ctrl_c, print_table
from understudy.core.files.words import counted
from understudy.desk.domain.policy import Policy
from understudy.desk.store.settings import POLICY
from understudy.errors import UsageError

app = command_group(
    "data",
    "Data sets: the real table, which is never shown to anyone, and its stand-in.\n\n"
    'Example: understudy desk data add cohort.parquet synthetic.parquet --title "Autumn term"',
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The data set's name, as `desk data list` shows it.")
]


@app.command()
@grouped
def add(
    real: Annotated[Path, typer.Argument(metavar="REAL", help="The real table, csv or parquet.")],
    synthetic: Annotated[
        Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic table that stands in for it.")
    ],
    title: Annotated[str, typer.Option(help="The title that users of the desk see.")],
    options: TableOptions,
    description: Annotated[str, typer.Option(help="What it holds, for researchers.")] = "",
    policy: Annotated[
        Path | None, typer.Option(help="Its limits (default: policy.toml of the desk's folder).")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Register a data set. The real table stays where it is; analyses see the synthetic table's columns only.

    Example: understudy desk data add cohort.parquet synthetic.parquet --title "Autumn term" --summary summary.json
    """
    a_table(real, "the real table")
    a_table(synthetic, "the synthetic table")
    if options.summary is not None:
        existing(options.summary, "the summary")
    if options.schema is not None:
        existing(options.schema, "the schema")
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        view = data_sets.register(
            desk,
            at_the_machine(),
            title=title,
            real=real,
            synthetic=synthetic,
            policy=Policy.read(policy or folder / POLICY),
            description=description,
            **vars(options),
        )
    if as_json:
        echo_json({"name": view.name, "learners": view.n_learners, "columns": list(view.columns)})
        return
    typer.echo(
        f"Data set {view.name} ({view.title}): {counted(view.n_learners, 'learner')}, "
        f"{counted(len(view.columns), 'column')}"
        + ("; the learners are simulated, so no budget is spent." if view.simulated else ".")
    )


@app.command("list")
def list_(folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """List the data sets.

    Example: understudy desk data list
    """
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        views = data_sets.listed(desk, at_the_machine())
    if as_json:
        echo_json(
            [
                {
                    "name": view.name,
                    "title": view.title,
                    "learners": view.n_learners,
                    "columns": list(view.columns),
                    "requests": view.n_requests,
                    "simulated": view.simulated,
                    "closed": view.closed,
                }
                for view in views
            ]
        )
        return
    if not views:
        typer.echo("No data yet: understudy desk data add REAL SYNTHETIC --title ...")
        return
    rows = [
        [
            *(view.name, view.title, str(view.n_learners), str(len(view.columns)), str(view.n_requests)),
            ", ".join(["simulated"] * view.simulated + ["closed"] * view.closed),
        ]
        for view in views
    ]
    print_table("Data sets", ["name", "title", "learners", "columns", "requests", ""], rows)


@app.command()
def policy(
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", help="A policy file: its limits apply from now on.")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show the limits of a data set, or set them.

    Example: understudy desk data policy NAME --file policy.toml
    """
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        if file is not None:
            data_sets.set_policy(desk, at_the_machine(), name, Policy.read(existing(file, "the policy")))
        found = data_sets.view(desk, at_the_machine(), name).policy
    if as_json:
        echo_json(vars(found))
    elif file is not None:
        typer.echo(f"The limits of {name} are those of {file} from now on.")
    else:
        typer.echo(found.to_toml(), nl=False)


@app.command()
def schema(
    name: Name,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A cohort's toml file, or one with [[columns]]: public from now on."),
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show what is public about the columns of a data set, or declare it. Private questions need it.

    Example: understudy desk data schema NAME --file cohort.toml
    """
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        if file is not None:
            data_sets.set_schema(desk, at_the_machine(), name, existing(file, "the schema"))
        found = data_sets.view(desk, at_the_machine(), name).schema
    columns = [] if found is None else found.to_json()["columns"]
    if as_json:
        echo_json(None if found is None else found.to_json())
        return
    if not columns:
        typer.echo(f"{name} has no public schema: no private questions can be asked.")
        return
    rows = [[column["name"], column["kind"], _public_values(column)] for column in columns]
    print_table("Public schema", ["column", "kind", "values"], rows)


def _public_values(column: dict[str, Any]) -> str:
    if "low" in column:
        return f"{column['low']:g} to {column['high']:g}"
    return ", ".join(column.get("values", ("no", "yes")))


@app.command()
def close(name: Name, folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """Take no more requests for a data set; those that were made go on.

    Example: understudy desk data close NAME
    """
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        data_sets.close(desk, at_the_machine(), name)
    if as_json:
        echo_json({"name": name, "closed": True})
    else:
        typer.echo(f"{name} takes no more requests.")


@app.command()
def remove(name: Name, folder: DeskFolder = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """Remove a data set that has no requests. Its files stay where they are.

    Example: understudy desk data remove NAME
    """
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        data_sets.remove(desk, at_the_machine(), name)
    if as_json:
        echo_json({"name": name, "removed": True})
    else:
        typer.echo(f"{name} is removed; its files stay where they are.")


@app.command()
def withdraw_learner(
    name: Name,
    learner_file: Annotated[
        Path | None, typer.Option(help="File with the learner's name (default: typed, and not shown).")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Leave a learner out of every later run. You type the name at a prompt, so that no shell remembers it.

    What was released before stays released. Only a keyed hash of the name is kept. Outputs that are held have to
    be run again before they can be released.

    Example: understudy desk data withdraw-learner NAME
    """
    with opened(folder) as desk:
        from understudy.desk.service import data_sets

        # A mistyped data set is reported before a name is typed.
        data_sets.view(desk, at_the_machine(), name)
        data_sets.withdraw_learner(desk, at_the_machine(), name, _learner(learner_file))
        left = data_sets.view(desk, at_the_machine(), name).n_learners
    if as_json:
        echo_json({"name": name, "learners": left})
    else:
        typer.echo(f"Left out from now on. {name} has {counted(left, 'learner')}.")


def _learner(file: Path | None) -> str:
    if file is not None:
        found = existing(file, "the learner's name").read_text(encoding="utf-8-sig")
    elif sys.stdin.isatty():
        listen_to_ctrl_c()
        found = typer.prompt("The learner's name as the table has it (not shown)", hide_input=True)
    else:
        found = sys.stdin.read()
    lines = [line.strip() for line in found.splitlines() if line.strip()]
    if len(lines) != 1:
        raise UsageError(
            f"one learner is left out at a time, and {len(lines)} were named.",
            hint="give one name on one line.",
        )
    return lines[0]
