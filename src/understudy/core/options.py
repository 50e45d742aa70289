"""Options values of verbs: given whole, or by their settings as keywords."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from understudy.errors import UsageError

Options = TypeVar("Options")


def settled(options: Options, settings: dict[str, Any]) -> Options:
    """The options with some settings replaced; a setting or choice that does not exist is named, with those that do."""
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]
    if unknown := [name for name in settings if name not in known]:
        raise UsageError(
            f"there is no setting '{unknown[0]}'.",
            hint=f"there are: {', '.join(known)}.",
            code="no-such-setting",
        )
    chosen = replace(options, **settings)  # type: ignore[type-var]
    for name, kind in get_type_hints(type(options)).items():
        choices = _choices(kind)
        if choices and (value := getattr(chosen, name)) not in choices:
            raise UsageError(
                f"'{value}' is not a choice of '{name}'.",
                hint=f"there are: {', '.join(str(choice) for choice in choices if choice is not None)}.",
                code="no-such-choice",
                settings=(name,),
            )
    return chosen


def _choices(kind: Any) -> tuple[Any, ...]:
    """What a setting can be, where its type is a Literal, or one or None."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    parts = get_args(kind)
    literals = [part for part in parts if get_origin(part) is Literal]
    if len(parts) == 2 and len(literals) == 1 and type(None) in parts:
        return (*get_args(literals[0]), None)
    return ()
