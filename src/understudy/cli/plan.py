"""Plan files: what one would type every time, kept in `understudy.toml`, checked and signed before it is run.

A plan has a table named after its command, with a key for each option under the name that Python has for it. Options
that are typed win over the plan's. Paths are relative to the plan's folder. What the table `[log]` declares about a log
is read with the log (`logs/plan_file.py`), for every command that reads one.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from understudy.cli.terminal import option_of
from understudy.core.files.databases.addresses import database_address
from understudy.core.files.documents import parse_toml
from understudy.errors import DataError, UsageError

# A seed would undo part of the randomness, and belongs in no file that others sign.
LEFT_OUT = ("seed",)
# Keys of [log] that a draft leaves to be filled in.
FILLED_IN = ("values", "low", "high", "step", "unit", "first", "last", "resolution", "session_minutes")
# A plan says what is done, never that it is done without asking, how the result is shown, or what to do with the plan.
NOT_PLANNED = (*LEFT_OUT, "yes", "plan", "write_plan", "plan_page", "explain", "within", "as_json", "quiet")


def load(context: typer.Context, plan: Path | None) -> Path | None:
    """Let the values of a plan stand for options that were not typed; called before any other option is read."""
    if plan is not None:
        command = context.info_name or ""
        names = [parameter.name for parameter in context.command.params]
        context.default_map = _read(
            plan, command, [name for name in names if name and name not in NOT_PLANNED]
        )
    return plan


def typed_over(context: typer.Context) -> list[str]:
    """A sentence on the options that were typed and stand in the plan otherwise: what is typed wins."""
    names = [
        name
        for name, planned in (context.default_map or {}).items()
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
        and str(context.params[name]) != str(planned)
    ]
    if not names:
        return []
    options = ", ".join("FILE" if name == "file" else option_of(name) for name in names)
    return [f"These options override the plan: {options}."]


def _read(plan: Path, command: str, known: list[str]) -> dict[str, Any]:
    if not plan.is_file():
        raise UsageError(
            f"there is no plan {plan}.",
            hint="check its path; a plan is drafted from the command that you would type.",
            code="no-such-file",
            settings=("write_plan",),
        )
    _, content = parse_toml(plan, keys=(*known, *FILLED_IN))
    table = content.get(command, {} if "log" in content else None)
    if not isinstance(table, dict):
        raise DataError(
            f"the plan {plan} has no table [{command}].",
            hint="draft one from the command that you would type.",
            code="bad-plan",
            settings=("write_plan",),
        )
    if unknown := [name for name in table if name not in known]:
        # Plans use Python's names; a user may write the option's name instead.
        by_option = [name for name in known if option_of(name) == f"--{unknown[0].replace('_', '-')}"]
        near = by_option or difflib.get_close_matches(unknown[0], known, 1)
        raise DataError(
            f"the plan {plan} has a key '{unknown[0]}' in [{command}], which is not an option of it.",
            hint=f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known)}.",
            code="bad-plan",
        )
    if "file" in known and "file" not in table:
        # One plan serves several commands on the same log.
        others = [other.get("file") for other in content.values() if isinstance(other, dict)]
        files = {file for file in others if isinstance(file, str)}
        table = {**table, "file": files.pop()} if len(files) == 1 else table
    paths = ("file", "out", "ledger", "actions_file", "exclude", "learners", "results")
    return {
        name: _seen_from(plan.parent, value) if name in paths and isinstance(value, str) else value
        for name, value in table.items()
    }


def _seen_from(folder: Path, written: str) -> str:
    """A path that is relative to a folder, or the address of a database whose file may be."""
    address = database_address(written)
    return str(folder / written) if address is None else address.seen_from(folder).text()


def draft(plan: Path, command: str, settings: Mapping[str, Any], *options: Any) -> None:
    """Write a plan: the settings given, and those of the options values that are not the usual ones."""
    from understudy.core.files.writing import check_new, write_text

    check_new(plan)
    lines = [f"# Run it: understudy {command} --plan {plan.name}", f"[{command}]"]
    for name, value in settings.items():
        lines.append(f"{name} = {_written(value, plan)}")
    for group in options:
        helps = get_type_hints(type(group), include_extras=True)
        for field in fields(group):
            value = getattr(group, field.name)
            if field.name in (*settings, *NOT_PLANNED) or value is None or value == _usual(field):
                continue
            lines += ["", f"# {_help(helps[field.name])}", f"{field.name} = {_written(value, plan)}"]
    write_text(plan, "\n".join(lines) + "\n")


def _usual(field: Any) -> Any:
    return None if field.default is MISSING else field.default


def _help(kind: Any) -> str:
    texts = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((text for text in texts if isinstance(text, str)), "")


def _written(value: Any, plan: Path) -> str:
    """A value as TOML: what JSON escapes, TOML reads; the one character that only TOML escapes is added."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, Path):
        value = os.path.relpath(value, plan.parent)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
