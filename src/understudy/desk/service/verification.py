"""Whether the desk's books agree: the chained log, the releases, the ledger and the certificates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.core.privacy.ledger import Ledger
from understudy.desk.domain import certificate
from understudy.desk.service import Desk
from understudy.desk.service.releases import KIND, PRIVATE_KIND, facts_of
from understudy.desk.store import audit_log
from understudy.desk.store.tables import DataSetRow, EventRow, ReleaseRow, RequestRow
from understudy.errors import DataError

_HANDED_OUT = "hand out"


@dataclass(frozen=True)
class Verified:
    """Books that agree."""

    n_events: int
    newest: str
    """Hash of the newest line of the log, to be kept elsewhere."""
    n_releases: int
    key: str
    """With which anyone can verify the desk's certificates."""


def verify(desk: Desk, known: str | None = None) -> Verified:
    """Check everything; raise at the first thing that does not agree."""
    with desk.database.reading() as session:
        chain = audit_log.verify(session, known)
        key = certificate.public_key(desk.settings.secret)
        handed_out = Counter(
            session.scalars(select(EventRow.request).where(EventRow.action == _HANDED_OUT)).all()
        )
        charged = _charged(session)
        releases = session.scalars(select(ReleaseRow).order_by(ReleaseRow.id)).all()
        for release in releases:
            out = release.released_at is not None
            # One that is being released may be charged already.
            if charged[release.certificate] not in ((1,) if out else (0, 1)):
                raise DataError(
                    f"release {release.certificate} is {charged[release.certificate]} times in the ledger.",
                    hint="restore the ledger and the database from the same backup.",
                )
            if handed_out[release.request.name] != int(out):
                raise DataError(
                    f"the log and the releases do not agree about request {release.request.name}.",
                    hint="compare with a backup.",
                )
            if out:
                signed = release.document or {}
                certificate.verify(signed, key)
                if not certificate.agrees(signed, facts_of(desk, release)):
                    raise DataError(
                        f"the stored result, code or number of release {release.certificate} is not what its "
                        "certificate says.",
                        hint="the certificate is signed and holds what was released; compare with a backup.",
                    )
        if unknown := sorted(set(charged) - {release.certificate for release in releases}):
            raise DataError(
                f"the ledger holds release {unknown[0]}, and the desk does not know it.",
                hint="the database may be older than the ledger: compare with a backup.",
            )
        return Verified(chain.n_events, chain.newest, sum(handed_out.values()), key)


def _charged(session: Session) -> Counter[str]:
    """How often the ledgers hold each answer to a request of this desk; other desks may write to the same ledger."""
    ours = {f"desk request {name}" for name in session.scalars(select(RequestRow.name))}
    return Counter(
        entry.card
        for path in sorted(set(session.scalars(select(DataSetRow.ledger))))
        for entry in Ledger(Path(path)).entries()
        if entry.kind in (KIND, PRIVATE_KIND) and entry.method in ours
    )
