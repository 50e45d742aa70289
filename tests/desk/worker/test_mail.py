"""Mail to who waits: against a mail server of the test's own."""

import logging
import socketserver
import threading
from dataclasses import replace
from datetime import timedelta
from email import message_from_string

import pytest
from sqlalchemy import select

from understudy.desk.service import Desk
from understudy.desk.store.settings import Mail
from understudy.desk.store.tables import NoticeRow, PersonRow, now
from understudy.desk.worker import mail


class _Talk(socketserver.StreamRequestHandler):
    """As much of SMTP as sending a mail needs."""

    def handle(self):
        self._say("220 test")
        while line := self.rfile.readline().decode().strip():
            verb = line[:4].upper()
            if verb == "QUIT":
                return self._say("221 bye")
            if verb == "RCPT" and any(one in line for one in self.server.refused):
                self._say("550 no such person")
            elif verb == "DATA":
                self._say("354 go on")
                lines = []
                while (part := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(part)
                self.server.mails.append(message_from_string("\n".join(lines)))
                self._say("250 taken")
            else:
                self._say("250 ok")
        return None

    def _say(self, words):
        self.wfile.write(f"{words}\r\n".encode())


@pytest.fixture
def server():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Talk) as made:
        made.mails, made.refused = [], set()
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def mailing(small, server, **mail):
    settings = Mail(
        host="127.0.0.1", port=server.server_address[1], sender="desk@school.example", encrypted=False
    )
    return Desk(replace(small.desk.settings, mail=replace(settings, **mail)), small.desk.database)


def told(small):
    with small.desk.database.reading() as session:
        return [row.mailed_at is not None for row in session.scalars(select(NoticeRow))]


def test_who_reviews_gets_one_mail_that_says_nothing_but_where_to_look(small, server):
    desk = mailing(small, server)
    small.in_review()
    small.in_review()
    assert mail.send_waiting(desk) == 3
    assert sorted(letter["To"] for letter in server.mails) == [
        "corinna@school.example",
        "ravi@school.example",
        "rita@school.example",
    ]
    for letter in server.mails:
        assert letter["From"] == "desk@school.example"
        text = letter.get_payload()
        assert desk.settings.address + "/" in text
        for word in ("review", "minutes", "request", "held", "A school"):
            assert word not in text
            assert word not in letter["Subject"]
    assert all(told(small))
    assert mail.send_waiting(desk) == 0
    assert len(server.mails) == 3


def test_a_mail_that_fails_is_tried_again_and_logged_without_an_address(small, server, caplog):
    desk = mailing(small, server)
    small.in_review()
    server.refused.add("rita@school.example")
    with caplog.at_level(logging.INFO):
        assert mail.send_waiting(desk) == 2
    assert "rita" not in caplog.text
    assert "SMTPRecipientsRefused" in caplog.text
    assert sorted(told(small)) == [False, True, True]
    server.refused.clear()
    assert mail.send_waiting(desk) == 1
    assert server.mails[-1]["To"] == "rita@school.example"


def test_a_server_that_is_away_loses_nothing(small, server, caplog):
    small.in_review()
    away = mailing(small, server, port=1)
    assert mail.send_waiting(away) == 0
    assert "notices wait" in caplog.text
    assert not any(told(small))
    assert mail.send_waiting(mailing(small, server)) == 3


def test_an_unencrypted_server_gets_no_password_if_encryption_is_asked_for(small, server, tmp_path):
    """The server of this test offers no STARTTLS: then nothing is sent."""
    (tmp_path / "password").write_text("secret")
    small.in_review()
    desk = mailing(small, server, encrypted=True, user="desk", password_file=str(tmp_path / "password"))
    assert mail.send_waiting(desk) == 0
    assert server.mails == []


def test_without_a_server_nothing_happens(small):
    small.in_review()
    assert mail.send_waiting(small.desk) == 0
    assert not any(told(small))


def test_who_left_and_what_is_old_is_not_mailed(small, server):
    small.in_review()
    with small.desk.database.writing() as session:
        session.get(PersonRow, small.reviewer.id).active = False
        old = session.scalar(select(NoticeRow).where(NoticeRow.person_id == small.custodian.id))
        old.at = now() - timedelta(days=8)
    assert mail.send_waiting(mailing(small, server)) == 1
    assert server.mails[0]["To"] == "ravi@school.example"
