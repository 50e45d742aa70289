"""Options of commands, made from the options values of the library.

A parameter of a command that is annotated with a dataclass stands for one option per field: `grouped` writes
them into the command's signature and hands the value back. The text behind a field's type is its help:

    population: Annotated[str | None, "Whose data this is."] = None
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.models import ParameterInfo

from understudy.cli.plan import load
from understudy.cli.terminal import OPTION_NAMES

F = TypeVar("F", bound=Callable[..., Any])

AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and any error as JSON on the error stream.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no notes and no progress.")]
Seed = Annotated[int, typer.Option(help="Seed of everything left to chance (noise of a guarantee aside).")]


# Whoever starts a command at a terminal is asked before it spends; `app.run` looks for this option.
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Spend without asking, as a command without a terminal (a script, a pipe) does. "
        "The price is printed all the same.",
    ),
]


def grouped(command: F) -> F:
    """Write the fields of a command's options values into its signature, and `--yes` for what spends."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    taken = _own_options(hints)
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if not dataclasses.is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))
            continue
        fields = [field for field in dataclasses.fields(hints[name]) if field.init]
        kinds = get_type_hints(hints[name], include_extras=True)
        groups[name] = hints[name], [field.name for field in fields]
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_default(field),
                annotation=_option(field.name, kinds[field.name], taken),
            )
            for field in fields
        ]
        if _spends(hints[name]):
            parameters.append(
                inspect.Parameter("yes", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Yes)
            )

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        # Not before a command runs: its help comes without the libraries behind it.
        from understudy.core.files.writing import Written

        spends = given.pop("yes", None) is not None
        for name, (kind, fields) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in fields})
        written = Written([given["out"]] if isinstance(given.get("out"), Path) else [])
        try:
            return command(**given)
        except (KeyboardInterrupt, SystemExit) as stop:
            # What was charged is noted where that is known; before that, nothing was.
            if "out" in given and not hasattr(stop, "__notes__"):
                charged = ", and nothing was charged" if spends else ""
                result = written.sentence()
                stop.add_note(f"{result[0].upper()}{result[1:]}{charged}.")
            raise

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return typing.cast(F, call)


def _spends(kind: type) -> bool:
    """Whether a verb with these options charges a budget. Who does has loaded the module; nobody else needs to."""
    spending = sys.modules.get("understudy.core.privacy.spending")
    return spending is not None and issubclass(kind, spending.Spending)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def _own_options(hints: dict[str, Any]) -> set[str]:
    """What the fields of all options values would be called by their own names."""
    values = [hint for hint in hints.values() if dataclasses.is_dataclass(hint)]
    return {"--" + field.name.replace("_", "-") for value in values for field in dataclasses.fields(value)}


def _option(name: str, kind: Any, taken: set[str]) -> Any:
    """The option of a field: its type, its help, and its name if that is not the field's own."""
    bare, *more = typing.get_args(kind) if typing.get_origin(kind) is Annotated else (kind,)
    if any(isinstance(one, ParameterInfo) for one in more):
        return kind
    text = next((one for one in more if isinstance(one, str)), "")
    names = OPTION_NAMES.get(name, ("--" + name.replace("_", "-"),) if bare is bool else ())
    others = taken - {"--" + name.replace("_", "-")}
    names = tuple(option for option in names if option not in others)
    kinds = {*typing.get_args(bare)} - {type(None)}
    if str in kinds and len(kinds) > 1:
        # The options value takes a text as people type it, whatever else it takes.
        bare = str | None if type(None) in typing.get_args(bare) else str
    if name == "plan":
        # Before any other option is read: what the plan has for this command stands for what was not typed.
        return Annotated[bare, typer.Option(*names, is_eager=True, callback=load, help=text)]
    return Annotated[bare, typer.Option(*names, help=text)]
