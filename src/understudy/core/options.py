"""Options values of verbs: given whole, or by their settings as keywords."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from understudy.errors import UsageError

Options = TypeVar("Options")


def settled(options: Options, settings: dict[str, Any]) -> Options:
    """The options with some settings replaced; a setting that does not exist is named, with those that do."""
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]
    if unknown := [name for name in settings if name not in known]:
        raise UsageError(
            f"there is no setting '{unknown[0]}'.",
            hint=f"there are: {', '.join(known)}.",
            code="no-such-setting",
        )
    return replace(options, **settings)  # type: ignore[type-var]
