"""Columns of a file beside those that have a role: read only where the custodian declared them.

They keep their own names, which may be those of roles, so in a table of events each is called `further(name)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from understudy.core.files.columns import plain
from understudy.core.files.origin import DECLARED
from understudy.errors import DataError


def further(name: str) -> str:
    """What a declared column is called in a table of events."""
    return f"{DECLARED}{name}"


def further_positions(names: Sequence[str], wanted: Iterable[str], file: str) -> dict[str, int]:
    """Where declared columns stand, as far as they are there: by their name, or by the same one written otherwise."""
    plains = [plain(name) for name in names]
    positions = {}
    for name in wanted:
        places = [place for place, found in enumerate(names) if found == name.strip()]
        places = places or [place for place, found in enumerate(plains) if found == plain(name)]
        if len(places) > 1:
            raise DataError(
                f"{file}: {len(places)} columns could be the declared column '{name}'.",
                hint="write its name as it stands in the file's first line, or rename the others.",
                code="ambiguous-column",
            )
        if places:
            positions[further(name)] = places[0]
    return positions
