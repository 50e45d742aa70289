"""Which columns of a table a log is read from: what is missing is asked for, outcomes included."""

from __future__ import annotations

from functools import partial

from understudy.core.events.event_table import ReadOptions
from understudy.core.files.columns import REQUIRED, Columns, choose_columns, reject_duplicates
from understudy.core.files.suggestions import with_suggestions
from understudy.core.files.tables import Table
from understudy.errors import DataError

_WITHOUT_OUTCOMES = ("learner", "action")


def log_columns(table: Table, options: ReadOptions, defaults: Columns | None = None) -> dict[str, int]:
    """The position of each role's column; an error says what columns look like that were not found.

    A log may lack outcomes. But a column that looks like them is asked about: that there are none is then for the user
    to say.
    """
    reject_duplicates(table.names, table.file)
    choose = partial(choose_columns, table.names, options.columns, table.file, defaults=defaults or Columns())
    try:
        return choose(required=_WITHOUT_OUTCOMES if options.outcomes == "left out" else REQUIRED)
    except DataError as error:
        looked = with_suggestions(error, table, mark=options.mark)
    lacking, suggested = looked.fields.get("roles", ()), looked.fields.get("suggested", ())
    if options.outcomes != "wanted" or "outcome" not in lacking or "column" in looked.fields:
        raise looked
    if list(lacking) == ["outcome"] and "outcome" not in suggested:
        return choose(required=_WITHOUT_OUTCOMES)
    raise DataError(
        looked.message,
        hint=f"{looked.hint} Or declare that the log has no outcomes.",
        code=looked.code,
        settings=(*looked.settings, "no_outcomes"),
        **looked.fields,
    )
