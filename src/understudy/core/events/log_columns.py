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
    """The position of each role's column; an error says what columns look like that were not found."""
    reject_duplicates(table.names, table.file)
    choose = partial(choose_columns, table.names, options.columns, table.file, defaults=defaults or Columns())
    try:
        positions = choose(required=REQUIRED if options.outcomes == "needed" else _WITHOUT_OUTCOMES)
        if options.outcomes == "wanted" and "outcome" not in positions:
            _ask_about_outcomes(table, options, choose)
    except DataError as error:
        raise with_suggestions(error, table, mark=options.mark) from None
    return positions


def _ask_about_outcomes(table: Table, options: ReadOptions, choose: partial[dict[str, int]]) -> None:
    """Ask about a column that looks like outcomes: that a log has none is for the user to say then."""
    try:
        choose(required=REQUIRED)
    except DataError as error:
        looked = with_suggestions(error, table, mark=options.mark)
        if "outcome" in looked.fields.get("suggested", ()):
            settings = (*error.settings, "no_outcomes")
            hint = f"{error.hint} Or declare that the log has no outcomes."
            raise DataError(
                error.message, hint=hint, code=error.code, settings=settings, **error.fields
            ) from None
