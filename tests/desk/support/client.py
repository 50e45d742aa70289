"""A browser without a screen for tests of the desk's pages: keeps cookies, and fills the token into forms."""

import re

from fastapi.testclient import TestClient
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from understudy.desk.domain.people import WORKER
from understudy.desk.service import accounts

ADDRESS = "http://127.0.0.1:8765"
PASSWORD = "blue tram eats nine"


def quick_passwords(monkeypatch):
    """The same hash with the least work: a test that signs in often need not wait for what slows down guessing."""
    hashes = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
    monkeypatch.setattr(accounts, "_HASHES", hashes)
    monkeypatch.setattr(accounts, "_NOBODYS", hashes.hash("nobody's"))


def give_password(desk, *people):
    """Accounts of the fixtures have none: they take up an invitation."""
    for person in people:
        accounts.accept(desk, accounts.reset(desk, WORKER, person.id), PASSWORD)


def token_in(page):
    """The token of the first form on a page."""
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', page).group(1)


class Browser(TestClient):
    """Signs in by the form, as people do; redirects are not followed."""

    def __init__(self, app, address=ADDRESS):
        super().__init__(app, base_url=address, follow_redirects=False)

    def sign_in(self, email, password=PASSWORD, **fields):
        """Fill in the form."""
        token = token_in(self.get("/sign-in").text)
        return self.post("/sign-in", data={"email": email, "password": password, "csrf": token, **fields})

    @property
    def csrf(self):
        """The token of this session."""
        return token_in(self.get("/account").text)

    def fill_in(self, address, **fields):
        """Post a form of this session."""
        return self.post(address, data={"csrf": self.csrf, **fields})


def browser_of(app, person, address=ADDRESS):
    """Somebody of the fixtures, signed in."""
    browser = Browser(app, address)
    answer = browser.sign_in(f"{person.name.lower()}@school.example")
    assert answer.status_code == 303, answer.text
    return browser
