"""E-mail to people for whom something waits. It says that, and where to look, and nothing else.

The worker calls `send_waiting(desk)` every minute. What a mail says must not depend on the data, and mail is read
on the way: so not even whether a result was released or withheld is in it, only a link to the desk.
"""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import select, update

from understudy.desk.service.desk import Desk
from understudy.desk.store.settings import Mail, Settings
from understudy.desk.store.tables import NoticeRow, PersonRow, now

_log = logging.getLogger("understudy.desk.worker.mail")
# What nobody could be told for a week is on the page and in the feed; telling it then would only puzzle.
OLDEST = timedelta(days=7)
_SECONDS = 20.0
_BODY = """Hello {name},

something waits for you at {title}:

{address}

You get this because you have an account there.
"""


def send_waiting(desk: Desk) -> int:
    """Mail everybody who was not told yet, once for all that waits; gives how many mails were taken.

    Without a mail server in the settings nothing happens. A mail that fails is tried again at the next call.
    """
    if not desk.settings.mail.host:
        return 0
    waiting = _claimed(desk)
    sent: set[int] = set()
    try:
        # Nothing is opened when nothing waits.
        if waiting:
            with _server(desk.settings.mail) as server:
                for person, (name, email, _) in waiting.items():
                    try:
                        server.send_message(_message(desk.settings, name, email))
                        sent.add(person)
                    except (smtplib.SMTPException, ValueError) as error:
                        # Its words may hold an address.
                        _log.warning("a notice could not be mailed (%s)", type(error).__name__)
    except (OSError, smtplib.SMTPException) as error:
        _log.warning("the mail server cannot be used (%s); notices wait", type(error).__name__)
    finally:
        _give_back(
            desk, [one for person, (_, _, ids) in waiting.items() if person not in sent for one in ids]
        )
    return len(sent)


def _claimed(desk: Desk) -> dict[int, tuple[str, str, list[int]]]:
    """Who has to be told, with their notices, marked as told: two workers do not tell the same."""
    waiting: dict[int, tuple[str, str, list[int]]] = {}
    with desk.database.writing() as session:
        rows = session.scalars(
            select(NoticeRow)
            .join(PersonRow)
            .where(
                PersonRow.active,
                NoticeRow.mailed_at.is_(None),
                NoticeRow.read_at.is_(None),
                NoticeRow.at > now() - OLDEST,
            )
            .order_by(NoticeRow.id)
        ).all()
        for row in rows:
            row.mailed_at = now()
            waiting.setdefault(row.person_id, (row.person.name, row.person.email, []))[2].append(row.id)
    return waiting


def _give_back(desk: Desk, notices: list[int]) -> None:
    if not notices:
        return
    with desk.database.writing() as session:
        session.execute(update(NoticeRow).where(NoticeRow.id.in_(notices)).values(mailed_at=None))


@contextmanager
def _server(mail: Mail) -> Iterator[smtplib.SMTP]:
    with smtplib.SMTP(mail.host, mail.port, timeout=_SECONDS) as server:
        if mail.encrypted:
            server.starttls(context=ssl.create_default_context())
        if mail.user:
            server.login(mail.user, Path(mail.password_file).read_text(encoding="utf-8").strip())
        yield server


def _message(settings: Settings, name: str, email: str) -> EmailMessage:
    message = EmailMessage()
    host = urlsplit(settings.address).hostname or "localhost"
    message["Subject"] = f"Something waits for you at {settings.title}"
    message["From"] = settings.mail.sender or f"desk@{host}"
    message["To"] = email
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=host)
    # So that no answering machine answers.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        _BODY.format(name=name, title=settings.title, address=settings.address.rstrip("/") + "/")
    )
    return message
