"""The log of what happened: appended in the same transaction as what it records, each line chained to the last.

The chain shows that no line in the middle was changed or removed. A person who can write the database could write
the whole chain anew: keep the newest hash elsewhere (`understudy desk verify` prints it).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.domain.people import Person
from understudy.desk.store.tables import EventRow, now
from understudy.errors import DataError

FIRST = "0" * 64


def append(
    session: Session,
    who: Person,
    action: str,
    *,
    request: str | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Add a line. Only inside a writing transaction, of which there is one at a time."""
    session.flush()
    previous = session.scalar(select(EventRow.hash).order_by(EventRow.id.desc()).limit(1)) or FIRST
    line = EventRow(
        at=now().isoformat(timespec="seconds"),
        who=f"{who.name} ({who.id})",
        action=action,
        request=request,
        detail=detail or {},
        previous=previous,
        hash="",
    )
    line.hash = _hash(line)
    session.add(line)
    session.flush()


@dataclass(frozen=True)
class Chain:
    """A chain that holds: how many lines, and the newest hash, to be kept elsewhere."""

    n_events: int
    newest: str


def verify(session: Session, known: str | None = None) -> Chain:
    """Check every line; raise where the chain breaks. `known` is a newest hash that was kept elsewhere."""
    previous, n_events, seen = FIRST, 0, known in (None, FIRST)
    for line in session.scalars(select(EventRow).order_by(EventRow.id).execution_options(yield_per=500)):
        if line.previous != previous or line.hash != _hash(line):
            raise DataError(
                f"the log is broken at line {line.id}: it was changed, or a line before it removed.",
                hint="compare with a backup; nothing after this line can be trusted.",
            )
        previous, n_events = line.hash, n_events + 1
        seen = seen or previous == known
    if not seen:
        raise DataError(
            "the log does not hold the line that was kept elsewhere: its end was removed, or it was written anew.",
            hint="compare with a backup.",
        )
    return Chain(n_events, previous)


def _hash(line: EventRow) -> str:
    content = [line.previous, line.at, line.who, line.action, line.request, line.detail]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
