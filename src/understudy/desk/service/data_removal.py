"""Taking a data set back that nobody has asked about: it was registered by mistake, or without its summary."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from understudy.desk.domain import permissions
from understudy.desk.domain.people import Person, Role
from understudy.desk.service import data_sets
from understudy.desk.service.desk import Desk
from understudy.desk.store import audit_log
from understudy.desk.store.tables import RequestRow, WithdrawalRow
from understudy.errors import RefusedError


def remove(desk: Desk, who: Person, name: str) -> None:
    """Remove a data set without requests; its files and its ledger stay, and the log says that it was here."""
    permissions.require_role(who, Role.CUSTODIAN)
    with desk.database.writing() as session:
        row = data_sets.find(session, name)
        if session.scalar(select(func.count()).where(RequestRow.data_set_id == row.id)):
            raise RefusedError(
                "there are requests about this data set, which have to stay with what they were about.",
                hint=f"close it instead: understudy desk data close {name}",
            )
        session.execute(delete(WithdrawalRow).where(WithdrawalRow.data_set_id == row.id))
        audit_log.append(session, who, "remove data", detail={"data set": name, "title": row.title})
        session.delete(row)
