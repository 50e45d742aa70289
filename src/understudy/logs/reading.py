"""Read a log: the events of a file as Interactions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from understudy.core.events.event_table import ReadOptions
from understudy.core.events.reading import read_events
from understudy.core.files.columns import Columns
from understudy.core.files.simulated import is_simulated
from understudy.core.files.withdrawals import read_withdrawn
from understudy.errors import DataError, UsageError
from understudy.logs.interactions import Interactions


def read_log(
    path: Path | str,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008 (frozen)
    exclude: Path | str | None = None,
    skills: Literal["merge", "keep"] = "merge",
    single_rows: bool = False,
) -> Interactions:
    """The log in a file; its `origin` says how it was read.

    The format is found from the content unless `format` names it. Rows of learners listed in the file
    `exclude` are removed before anything else. `skills` says whether the skills of one attempt become one
    action or rows of their own, in formats that have several. `single_rows` admits a log in which no
    learner has two rows.
    """
    if skills not in ("merge", "keep"):
        raise UsageError(f"skills can be 'merge' or 'keep', not '{skills}'.", hint="choose one.")
    options = ReadOptions(columns, None if exclude is None else read_withdrawn(exclude), skills, single_rows)
    events, format = read_events(path, options, format)
    time, item, group = (role if role in events.columns else None for role in ("time", "item", "group"))
    try:
        log = Interactions.from_frame(events.frame, time=time, item=item, group=group, single_rows=True)
    except DataError as error:
        raise error.about(events.file) from None
    return replace(
        log, origin=events.origin(Path(path), format, log.actions), simulated=is_simulated(Path(path))
    )
