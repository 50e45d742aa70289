"""E-mail to users for whom something waits. It says only that, and where to look.

The worker calls `send_waiting(desk)` every minute. What a mail says must not depend on the data, and mail is read
on the way: so not even whether a result was released or withheld is in it, only a link to the desk.
"""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from urllib.parse import urlsplit

from understudy.desk.service import Desk
from understudy.desk.service.notices import UnmailedNotices, claim_unmailed, give_back_unmailed
from understudy.desk.store.settings import Mail, Settings

_log = logging.getLogger("understudy.desk.worker.mail")
_SECONDS = 20.0
_BODY = """Hello {name},

something waits for you at {title}:

{address}

You get this because you have an account there.
"""


def send_waiting(desk: Desk) -> int:
    """Mail each user who has unmailed notices, once for all of them; gives how many mails were taken.

    Without a mail server in the settings nothing happens. A mail that fails is tried again at the next call.
    """
    if not desk.settings.mail.host:
        return 0
    waiting = claim_unmailed(desk)
    unsent = list(waiting)
    try:
        # Nothing is opened when nothing waits.
        if waiting:
            with _server(desk.settings.mail) as server:
                for person in waiting:
                    try:
                        server.send_message(_message(desk.settings, person))
                        unsent.remove(person)
                    except (smtplib.SMTPException, ValueError) as error:
                        # Its words may hold an address.
                        _log.warning("a notice could not be mailed (%s)", type(error).__name__)
    except (OSError, smtplib.SMTPException) as error:
        _log.warning("the mail server cannot be used (%s); notices wait", type(error).__name__)
    finally:
        give_back_unmailed(desk, unsent)
    return len(waiting) - len(unsent)


@contextmanager
def _server(mail: Mail) -> Iterator[smtplib.SMTP]:
    with smtplib.SMTP(mail.host, mail.port, timeout=_SECONDS) as server:
        if mail.encrypted:
            server.starttls(context=ssl.create_default_context())
        if mail.user:
            server.login(mail.user, Path(mail.password_file).read_text(encoding="utf-8").strip())
        yield server


def _message(settings: Settings, person: UnmailedNotices) -> EmailMessage:
    message = EmailMessage()
    host = urlsplit(settings.address).hostname or "localhost"
    message["Subject"] = f"Something waits for you at {settings.title}"
    message["From"] = settings.mail.sender or f"desk@{host}"
    message["To"] = person.email
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=host)
    # So that no answering machine answers.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        _BODY.format(name=person.name, title=settings.title, address=settings.address.rstrip("/") + "/")
    )
    return message
