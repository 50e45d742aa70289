"""Any table with a learner, an action and an outcome: the columns are found by name or given."""

from __future__ import annotations

from understudy.core.events.event_table import Draft, Request, used_columns
from understudy.core.files.columns import Columns, choose_columns, reject_duplicates
from understudy.core.files.tables import Table

# In these files an item trains a skill, and the skill is what is learned.
USER_ITEM_SKILL = Columns(learner="user", action="skill", outcome="correct", item="item")


def draft_table(table: Table, request: Request, *, defaults: Columns | None = None) -> Draft:
    """The rows of a table with one attempt per row."""
    reject_duplicates(table.names, table.file)
    positions = choose_columns(table.names, request.columns, table.file, defaults=defaults or Columns())
    columns = used_columns(table.names, positions)
    draft = Draft(table.file, table.read(positions), columns, list(table.notes), table.place)
    draft.find_people(table)
    draft.tidy(request)
    return draft
