"""Single sign-on against a small provider on this machine that really signs its tokens."""

import base64
import hashlib
import hmac
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from tests.desk.support.client import PASSWORD, Browser
from understudy.desk.domain.people import Role
from understudy.desk.service import Desk, accounts
from understudy.desk.store import audit_log
from understudy.desk.store.settings import Settings, SingleSignOn
from understudy.desk.store.tables import PersonRow
from understudy.desk.web import sessions
from understudy.desk.web.app import make_app

pytestmark = pytest.mark.functional

CLIENT, SECRET = "the desk", "s3cret: with/signs"
RSA = RSAKey.generate_key(2048, parameters={"kid": "rsa", "use": "sig"})
EC = ECKey.generate_key("P-256", parameters={"kid": "ec", "use": "sig"})
STRANGER = RSAKey.generate_key(2048, parameters={"kid": "rsa", "use": "sig"})


class SmallProvider:
    """Hands out codes to who is `person`, and exchanges each once for a signed token."""

    def __init__(self):
        self.issuer = ""
        self.begin()

    def begin(self):
        """As at the beginning of a test."""
        self.person = {"sub": "4711", "email": "bob@school.example", "email_verified": True}
        self.changed = {}
        self.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "rsa"}, claims, RSA)
        self.keys = [RSA, EC]
        self.methods = ["client_secret_basic"]
        self.codes = {}
        self.asked = []

    def authorize(self, address):
        """What happens in the browser at the provider: gives the query of the way back."""
        asked = {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def token(self, form, login):
        asked = self.codes.pop(form.get("code"), None)
        expected = base64.b64encode(b"the+desk:s3cret%3A+with%2Fsigns").decode()
        known = login == f"Basic {expected}" or form.get("client_secret") == SECRET
        if asked is None or not known or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        moment = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": moment,
            "exp": moment + 300,
            "nonce": asked["nonce"],
            **self.person,
            **self.changed,
        }
        told = {name: value for name, value in claims.items() if value is not None}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(told)}

    def answer(self, path, form, login):
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint_auth_methods_supported": self.methods,
            }
        if path == "/keys":
            return 200, KeySet(self.keys).as_dict(private=False)
        return self.token(form, login) if path == "/token" else (404, {})


@contextmanager
def _running(provider):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer({})

        def do_POST(self):
            content = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer({name: value for name, (value,) in parse_qs(content).items()})

        def _answer(self, form):
            status, content = provider.answer(self.path, form, self.headers.get("authorization"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def running():
    with _running(SmallProvider()) as provider:
        yield provider


@pytest.fixture(scope="module")
def opened(tmp_path_factory, running):
    folder = tmp_path_factory.mktemp("oidc") / "desk"
    plain = Settings.write(folder, "Test desk")
    (folder / "oidc.secret").write_text(SECRET + "\n")
    single = SingleSignOn(running.issuer, CLIENT, "oidc.secret", "the school's account")
    made = Desk(replace(plain, single_sign_on=single), Desk.open(folder).database)
    ann = accounts.accept(made, accounts.first_custodian(made, "ann@school.example", "Ann"), PASSWORD)
    accounts.invite(made, ann, "bob@school.example", "Bob", Role.REVIEWER)
    yield made
    made.close()


@pytest.fixture
def provider(running):
    running.begin()
    return running


@pytest.fixture
def desk(opened):
    """Bob is invited, and has never come in."""
    with opened.database.writing() as session:
        bob = session.query(PersonRow).filter_by(email="bob@school.example").one()
        bob.subject, bob.active = None, True
    return opened


@pytest.fixture
def app(desk):
    return make_app(desk)


def _enter(app, provider, browser=None, **query):
    """From the link on the sign-in page to the way back; gives the browser and the last answer."""
    browser = browser or Browser(app)
    out = browser.get("/single-sign-on", params={"next": "/data"})
    assert out.status_code == 303, out.text
    back = {**provider.authorize(out.headers["location"]), **query}
    return browser, browser.get("/single-sign-on/back", params=back)


def test_who_was_invited_comes_in_and_is_known_by_subject_later(app, desk, provider):
    page = Browser(app).get("/sign-in").text
    assert "Sign in with the school&#39;s account" in page
    browser, answer = _enter(app, provider)
    assert (answer.status_code, answer.headers["location"]) == (303, "/data")
    assert "Bob" in browser.get("/account").text
    cookies = {one.partition("=")[0]: one for one in answer.headers.get_list("set-cookie")}
    assert "Max-Age=0" in cookies[sessions.cookie_name(desk.settings, "understudy-flow")]
    assert {"HttpOnly", "SameSite=lax"} <= set(cookies[sessions.cookie_name(desk.settings)].split("; "))
    # The same person at the provider with another address, not even verified.
    provider.person = {"sub": "4711", "email": "robert@elsewhere.example", "email_verified": False}
    assert "Bob" in _enter(app, provider)[0].get("/account").text
    # The same address with another person behind it.
    provider.person = {"sub": "4712", "email": "bob@school.example", "email_verified": True}
    assert _enter(app, provider)[1].status_code == 403
    with desk.database.reading() as session:
        audit_log.verify(session)
    # The provider was asked for its addresses and keys once.
    assert provider.asked.count("/keys") == provider.asked.count("/.well-known/openid-configuration") == 1


def test_the_other_algorithm_and_the_other_way_to_show_the_secret(app, provider):
    provider.sign = lambda claims: jwt.encode({"alg": "ES256", "kid": "ec"}, claims, EC)
    provider.methods = ["client_secret_post"]
    assert _enter(app, provider)[1].status_code == 303


def _plain(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _unsigned(claims, head=None):
    parts = (head or {"alg": "none", "typ": "JWT"}, claims)
    return ".".join([*(_plain(json.dumps(one).encode()) for one in parts), ""])


def _by_public_key(claims):
    # The public key taken for a shared secret: known to everybody. The library does not help with this.
    head, content, _ = _unsigned(claims, {"alg": "HS256", "kid": "rsa"}).split(".")
    signature = hmac.digest(RSA.as_pem(private=False), f"{head}.{content}".encode(), "sha256")
    return ".".join([head, content, _plain(signature)])


def _changed_after(claims):
    head, _, signature = jwt.encode({"alg": "RS256", "kid": "rsa"}, claims, RSA).split(".")
    return ".".join([head, _plain(json.dumps({**claims, "sub": "1"}).encode()), signature])


@pytest.mark.parametrize(
    "sign",
    [
        _unsigned,
        _by_public_key,
        _changed_after,
        lambda claims: jwt.encode({"alg": "RS256", "kid": "rsa"}, claims, STRANGER),
        lambda claims: jwt.encode({"alg": "PS256", "kid": "rsa"}, claims, RSA, algorithms=["PS256"]),
        lambda claims: "no token",
        lambda claims: None,
    ],
    ids=["none", "HS256", "changed", "other key", "PS256", "no token", "nothing"],
)
def test_a_token_that_the_provider_did_not_sign_is_refused(app, desk, provider, sign):
    provider.sign = sign
    _refused(app, desk, provider)


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": None},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": 4711},
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
        {"email": "nobody@school.example"},
        {"email": None},
        {"email": ["bob@school.example"]},
    ],
    ids=str,
)
def test_a_token_that_says_something_else_is_refused(app, desk, provider, changed):
    provider.changed = changed
    _refused(app, desk, provider)


def _refused(app, desk, provider):
    with desk.database.reading() as session:
        before = audit_log.verify(session)
    browser, answer = _enter(app, provider)
    assert answer.status_code == 403
    assert answer.text.count("<h1") == 1
    assert sessions.cookie_name(desk.settings) not in browser.cookies
    with desk.database.reading() as session:
        assert audit_log.verify(session) == before
    # It was this that was wrong, and nothing else.
    provider.begin()
    assert _enter(app, provider)[1].status_code == 303


def test_the_way_back_belongs_to_the_browser_that_went_out(app, provider):
    browser = Browser(app)
    back = provider.authorize(browser.get("/single-sign-on").headers["location"])
    # Another browser, that somebody led here with their own code.
    assert Browser(app).get("/single-sign-on/back", params=back).status_code == 403
    victim = Browser(app)
    victim.get("/single-sign-on")
    assert victim.get("/single-sign-on/back", params=back).status_code == 403
    for wrong in (
        {"state": "x"},
        {"state": ""},
        {"code": ""},
        {"code": "x"},
        {"iss": "https://elsewhere.example"},
    ):
        assert browser.get("/single-sign-on/back", params={**back, **wrong}).status_code == 403
    assert browser.get("/single-sign-on/back", params={"error": "access_denied"}).status_code == 403
    assert browser.get("/single-sign-on/back", params=back).status_code == 303
    # A code works once, and its cookie is gone.
    assert browser.get("/single-sign-on/back", params=back).status_code == 403


def test_an_attempt_is_over_after_ten_minutes(app, desk, provider):
    browser = Browser(app)
    back = provider.authorize(browser.get("/single-sign-on").headers["location"])
    content = sessions.opened(
        desk.settings, "flow", browser.cookies[sessions.cookie_name(desk.settings, "understudy-flow")]
    )
    browser.cookies.clear()
    old = sessions.sealed(desk.settings, "flow", [*content[:4], content[4] - 601])
    headers = {"cookie": f"{sessions.cookie_name(desk.settings, 'understudy-flow')}={old}"}
    assert browser.get("/single-sign-on/back", params=back, headers=headers).status_code == 403


def test_new_keys_of_the_provider_are_fetched_when_they_are_needed(app, provider):
    assert _enter(app, provider)[1].status_code == 303
    newer = RSAKey.generate_key(2048, parameters={"kid": "newer", "use": "sig"})
    provider.keys = [newer, EC]
    provider.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "newer"}, claims, newer)
    assert _enter(app, provider)[1].status_code == 303
    assert provider.asked.count("/keys") == 2


def test_a_closed_account_stays_closed(app, desk, provider):
    browser, _ = _enter(app, provider)
    bob = accounts.by_email(desk, "bob@school.example")
    accounts.deactivate(desk, accounts.by_email(desk, "ann@school.example"), bob.id)
    assert browser.get("/account").status_code == 303
    assert _enter(app, provider)[1].status_code == 403


def test_a_provider_that_is_another_or_gone_is_told(desk, provider, monkeypatch):
    settings = desk.settings
    for issuer in (f"{provider.issuer}/elsewhere", "http://127.0.0.1:9"):
        single = replace(settings.single_sign_on, issuer=issuer)
        browser = Browser(make_app(Desk(replace(settings, single_sign_on=single), desk.database)))
        answer = browser.get("/single-sign-on")
        assert answer.status_code == 503
        assert "sign in with your password" in answer.text
    monkeypatch.setattr(provider, "answer", lambda *_: (200, {"issuer": "https://elsewhere.example"}))
    assert Browser(make_app(desk)).get("/single-sign-on").status_code == 503
    # Keys over a wire that others can write on are no keys.
    single = replace(settings.single_sign_on, issuer="http://provider.example")
    app = make_app(Desk(replace(settings, single_sign_on=single), desk.database))
    assert Browser(app).get("/single-sign-on").status_code == 400
