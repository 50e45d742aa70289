"""Who gets what from the desk's server: every route with everybody, forms from elsewhere, cookies, headers, limits."""

import logging
import re
import sqlite3
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace

import httpx2
import polars as pl
import pytest
import uvicorn
from fastapi import APIRouter

from tests.desk.support.client import (
    ADDRESS,
    PASSWORD,
    Browser,
    browser_of,
    give_password,
    quick_passwords,
    token_in,
)
from tests.desk.support.fixtures import (
    MEAN,
    OTHER,
    PRIVATE,
    fill,
    school_frame,
)  # fmt: skip
from understudy.core.names import SIMULATED_PREFIX
from understudy.desk.domain.people import Role
from understudy.desk.service import Desk, accounts, data_sets, requests, tokens
from understudy.desk.store import audit_log
from understudy.desk.store.settings import DATABASE, Settings
from understudy.desk.store.tables import EventRow, InvitationRow, JobRow, RequestRow
from understudy.desk.web import app as server
from understudy.desk.web import limits, sessions
from understudy.desk.web.app import PUBLIC, make_app
from understudy.desk.web.routes.data_sets import FIGURES
from understudy.errors import UnderstudyError

pytestmark = pytest.mark.functional

CANARIES = (f"{SIMULATED_PREFIX}wren-4711", "canary-7f3a91")
EVERYBODY = ("nobody", "owner", "other", "reviewer", "custodian", "closed", "token", "other token")

# What everybody gets, in the order of EVERYBODY; `in` is the way to the sign-in page. After it which request is
# meant, and what is sent.
_PAGE = "in 200 200 200 200 in in in"
_API = "401 401 401 401 401 401 200 200"
_OWN_API = "401 401 401 401 401 401 200 404"
_ANYBODY = "200 200 200 200 200 200 200 200"
_DONE = "in 303 303 303 303 in 403 403"
_OWNER = "in 303 404 {} {} in 403 403"
_REVIEW = "in {} 404 303 303 in 403 403"
_CUSTODIAN = "in 403 403 403 {} in 403 403"
_QUESTION = {"question": "How many minutes in the morning?", "code": OTHER}
TABLE = {
    ("GET", "/"): (_PAGE,),
    ("GET", "/account"): (_PAGE,),
    ("GET", "/api/openapi.json"): (_ANYBODY,),
    ("GET", "/api/v1/certificates/{number}"): (_API,),
    ("GET", "/api/v1/data-sets"): (_API,),
    ("GET", "/api/v1/data-sets/{name}"): (_API, "data"),
    ("GET", "/api/v1/data-sets/{name}/synthetic"): (_API, "data"),
    ("GET", "/api/v1/requests"): (_API,),
    ("GET", "/api/v1/requests/{name}"): (_OWN_API, "held"),
    ("GET", "/api/v1/requests/{name}/result"): (_OWN_API, "released"),
    ("GET", "/certificates/{number}"): (_ANYBODY,),
    ("GET", "/certificates/{number}.json"): (_ANYBODY,),
    ("GET", "/data"): (_PAGE,),
    ("GET", "/data/{name}"): (_PAGE, "data"),
    ("GET", "/data/{name}/schema.json"): (_PAGE, "data"),
    ("GET", "/data/{name}/synthetic"): (_PAGE, "data"),
    ("GET", "/feed/{secret}.xml"): (_ANYBODY,),
    ("GET", "/figures/{name}"): ("in 403 403 200 200 in in in", "data"),
    ("GET", "/figures/{name}/{key}.svg"): ("in 403 403 200 200 in in in", "data"),
    ("GET", "/health"): (_ANYBODY,),
    ("GET", "/invitation/{secret}"): (_ANYBODY,),
    ("GET", "/people"): ("in 403 403 403 200 in in in",),
    ("GET", "/requests"): (_PAGE,),
    ("GET", "/requests/new"): (_PAGE,),
    ("GET", "/requests/{name}"): ("in 200 404 200 200 in in in", "held"),
    ("GET", "/requests/{name}/edit"): ("in 200 404 404 404 in in in", "draft"),
    ("GET", "/requests/{name}/progress"): ("in 200 404 200 200 in in in", "held"),
    ("GET", "/sign-in"): ("200 303 303 303 303 200 200 200",),
    ("GET", "/single-sign-on"): ("404 404 404 404 404 404 404 404",),
    ("GET", "/single-sign-on/back"): ("404 404 404 404 404 404 404 404",),
    ("POST", "/account/feed"): (_DONE,),
    ("POST", "/account/password"): (
        _DONE,
        "",
        {"old": PASSWORD, "password": "green tram eats ten", "again": "green tram eats ten"},
    ),
    ("POST", "/account/sign-out-everywhere"): (_DONE,),
    ("POST", "/account/tokens"): (_DONE, "", {"name": "script"}),
    ("POST", "/account/tokens/{token_id}/revoke"): ("in 303 404 404 404 in 403 403",),
    ("POST", "/api/v1/requests"): (
        "401 401 401 401 401 401 201 201",
        "",
        {**_QUESTION, "submit": True},
    ),
    ("POST", "/api/v1/requests/{name}/feedback"): (_OWN_API, "released", {"precision": 0.5}),
    ("POST", "/api/v1/requests/{name}/submit"): (_OWN_API, "draft"),
    ("POST", "/api/v1/requests/{name}/withdraw"): (_OWN_API, "draft"),
    ("POST", "/invitation/{secret}"): (
        "303 303 303 303 303 303 403 403",
        "",
        {"password": "green tram eats ten", "again": "green tram eats ten"},
    ),
    ("POST", "/people/invite"): (
        _CUSTODIAN.format(303),
        "",
        {"email": "new@school.example", "name": "New", "role": "reviewer"},
    ),
    ("POST", "/people/{person_id}/close"): (_CUSTODIAN.format(303),),
    ("POST", "/people/{person_id}/link"): (_CUSTODIAN.format(303),),
    ("POST", "/people/{person_id}/open"): (_CUSTODIAN.format(303),),
    ("POST", "/people/{person_id}/role"): (_CUSTODIAN.format(303), "", {"role": "custodian"}),
    ("POST", "/requests/new"): (_DONE, "", {**_QUESTION, "then": "submit"}),
    ("POST", "/requests/{name}/answer"): (_REVIEW.format(403), "asked privately"),
    ("POST", "/requests/{name}/approve"): (_REVIEW.format(403), "in review"),
    ("POST", "/requests/{name}/cancel"): (_REVIEW.format(403), "approved"),
    ("POST", "/requests/{name}/edit"): (_OWNER.format(404, 404), "draft", _QUESTION),
    ("POST", "/requests/{name}/refuse"): (_REVIEW.format(403), "in review", {"note": "not this one"}),
    ("POST", "/requests/{name}/release"): (
        _REVIEW.format(403),
        "held",
        {"reason": "many learners behind it"},
    ),
    ("POST", "/requests/{name}/report"): (_OWNER.format(403, 403), "released", {"precision": "1"}),
    ("POST", "/requests/{name}/return"): (_REVIEW.format(403), "in review", {"note": "say more please"}),
    ("POST", "/requests/{name}/run-again"): (_REVIEW.format(403), "held"),
    ("POST", "/requests/{name}/submit"): (_OWNER.format(404, 404), "draft"),
    ("POST", "/requests/{name}/withdraw"): (_OWNER.format(403, 403), "in review"),
    ("POST", "/requests/{name}/withhold"): (_REVIEW.format(403), "held", {"note": "not this one"}),
    ("POST", "/sign-in"): (
        "303 303 303 303 303 303 403 403",
        "",
        {"email": "rita@school.example", "password": PASSWORD},
    ),
    ("POST", "/sign-out"): (_DONE,),
}


@dataclass
class House:
    """A filled desk with its server, and a browser or a token for everybody."""

    filled: object
    app: object
    browsers: dict
    tokens: dict
    csrf: dict
    names: dict
    forbidden: tuple
    pristine: object

    @property
    def desk(self):
        return self.filled.desk

    def restore(self):
        """As it was before anybody did anything."""
        with sqlite3.connect(self.desk.settings.folder / DATABASE, timeout=30) as now:
            self.pristine.backup(now)
        now.close()

    def ask(self, who, method, path, body=None, **more):
        """One request; a browser's cookies are as they were before, whatever the answer sets."""
        if "token" in who:
            browser, headers = Browser(self.app), {"authorization": f"Bearer {self.tokens[who]}"}
        else:
            browser, headers = self.browsers[who], {}
        kept = dict(browser.cookies)
        if path.startswith("/api/"):
            sent = {"json": body} if body is not None else {}
        else:
            sent = {"data": {"csrf": self.csrf.get(who, ""), **(body or {})}} if method == "POST" else {}
        answer = browser.request(method, path, headers=headers, **{**sent, **more})
        browser.cookies.clear()
        browser.cookies.update(kept)
        return answer

    def n_events(self):
        with self.desk.database.reading() as session:
            return session.query(EventRow).count()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house")
    with pytest.MonkeyPatch.context() as patch:
        quick_passwords(patch)
        yield from _house(folder)


def _house(folder):
    real = school_frame(1).with_row_index("row")
    first = pl.col("row") == 0
    real = real.with_columns(
        learner=pl.when(first).then(pl.lit(CANARIES[0])).otherwise(pl.col("learner").cast(str)),
        achievement=pl.when(first).then(pl.lit(CANARIES[1])).otherwise(pl.col("achievement").cast(str)),
    ).drop("row")
    filled = fill(folder, real=real, schema=True)
    desk = filled.desk
    invitation = accounts.invite(desk, filled.custodian, "ida@school.example", "Ida", Role.RESEARCHER)
    closed = filled.second_reviewer
    give_password(desk, *filled.people)
    names = {"data": filled.data_set, "released": filled.released(), "held": filled.held(OTHER)}
    filled.answered()
    names["asked privately"] = filled.in_review(PRIVATE)
    names["approved"] = filled.in_review()
    names["in review"] = filled.in_review()
    requests.approve(desk, filled.reviewer, names["approved"])
    names["draft"] = filled.draft()
    app = make_app(desk)
    people = {
        "owner": filled.researcher,
        "other": filled.second_researcher,
        "reviewer": filled.reviewer,
        "custodian": filled.custodian,
        "closed": closed,
    }
    browsers = {who: browser_of(app, person) for who, person in people.items()}
    csrf = {who: browser.csrf for who, browser in browsers.items()}
    browsers["nobody"] = Browser(app)
    csrf["nobody"] = token_in(browsers["nobody"].get("/sign-in").text)
    accounts.deactivate(desk, filled.custodian, closed.id)
    by_token = {
        "token": tokens.make_token(desk, filled.researcher, "mine"),
        "other token": tokens.make_token(desk, filled.second_researcher, "theirs"),
    }
    with desk.database.reading() as session:
        number = session.query(RequestRow).filter_by(name=names["released"]).one()
        certificate = session.connection().exec_driver_sql(
            f"SELECT certificate FROM releases WHERE request_id = {number.id}"
        )
        names["number"] = certificate.scalar_one()
    names |= {
        "secret": invitation,
        "feed": tokens.feed_address(desk, filled.researcher),
        "token_id": tokens.list_tokens(desk, filled.researcher)[0].id,
        "person_id": filled.second_researcher.id,
    }
    pristine = sqlite3.connect(":memory:")
    with sqlite3.connect(desk.settings.folder / DATABASE) as now:
        now.backup(pristine)
    now.close()
    forbidden = (*CANARIES, "real.csv", str(folder), str(desk.settings.folder), desk.settings.secret)
    yield House(filled, app, browsers, by_token, csrf, names, forbidden, pristine)
    desk.close()


@pytest.fixture
def fresh(house):
    house.restore()
    # Everybody here knocks from one address.
    house.app.state.sign_in_rate = limits.SignInRate(most=10_000)
    yield house
    house.restore()


def _row(method, path):
    """Statuses, target and body of a row of the table."""
    return (
        (*TABLE[method, path], "", {})[:3] if len(TABLE[method, path]) < 2 else (*TABLE[method, path], {})[:3]
    )


def _filled_in(house, path, target):
    names = {**house.names, "name": house.names.get(target, ""), "key": next(iter(FIGURES))}
    if path.startswith("/feed"):
        names["secret"] = house.names["feed"]
    if path.endswith("/open"):
        names["person_id"] = house.filled.second_reviewer.id
    if path == "/requests/new":
        return f"{path}?data={house.names['data']}"
    return re.sub(r"\{(\w+)\}", lambda match: str(names[match.group(1)]), path)


def _body(house, path, body):
    if path.endswith("/requests") and body:
        return {**body, "data_set": house.names["data"]}
    return {**body, "data": house.names["data"]} if path == "/requests/new" else body


def _leaks(house, answer):
    told = answer.text + str(answer.headers)
    return [word for word in house.forbidden if word in told]


def test_the_table_names_every_route(house):
    assert sorted(TABLE) == house.app.state.routes
    assert set(TABLE) >= PUBLIC


def test_the_table_leaves_no_page_to_nobody_that_is_not_public():
    for route, (row, *_) in TABLE.items():
        first, *_, closed, _, _ = row.split()
        assert (first in ("in", "401")) == (route not in PUBLIC), route
        if route not in PUBLIC:
            assert closed in ("in", "401"), route


@pytest.mark.parametrize(("method", "path"), sorted(TABLE), ids=lambda part: part)
def test_every_route_with_everybody(fresh, method, path, caplog):
    caplog.set_level(logging.DEBUG, "understudy")
    expected, target, body = _row(method, path)
    address = _filled_in(fresh, path, target)
    found, leaked, changed = [], [], []
    for who in EVERYBODY:
        before = fresh.n_events()
        answer = fresh.ask(who, method, address, _body(fresh, path, body))
        into = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in?next=")
        into = into or (answer.status_code == 303 and answer.headers["location"] == "/sign-in")
        found.append("in" if into else str(answer.status_code))
        leaked += [(who, word) for word in _leaks(fresh, answer)]
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        if fresh.n_events() != before:
            changed.append(who)
            fresh.restore()
    assert " ".join(found) == expected
    assert leaked == []
    # Who is turned away changes nothing, and reading changes nothing; all else is in the log.
    allowed = [who for who, status in zip(EVERYBODY, found, strict=True) if status in ("200", "201", "303")]
    assert changed == (allowed if method == "POST" else [])
    told = caplog.text
    assert [word for word in (*fresh.forbidden, "@school", *fresh.tokens.values()) if word in told] == []
    assert fresh.names["secret"] not in told


def test_no_page_of_any_request_tells_what_stays_inside(fresh):
    for name in ("draft", "in review", "approved", "held", "released"):
        for who in EVERYBODY[:5]:
            for address in (f"/requests/{fresh.names[name]}", "/", "/requests"):
                assert _leaks(fresh, fresh.ask(who, "GET", address)) == []


def test_requests_that_make_no_sense_are_answered_with_words(fresh):
    name, data = fresh.names["draft"], fresh.names["data"]
    for who, method, address, body, status in (
        ("owner", "GET", "/nowhere", None, 404),
        ("nobody", "GET", "/nowhere/at/all", None, 404),
        ("owner", "GET", "/requests/ffffffffffffffff", None, 404),
        ("owner", "GET", f"/data/{data}/../../secret.key", None, 404),
        ("owner", "GET", "/static/../app.py", None, 404),
        ("owner", "GET", "/static/%2e%2e/app.py", None, 404),
        ("owner", "DELETE", "/account", None, 405),
        ("custodian", "POST", "/people/none/close", {}, 422),
        ("custodian", "POST", "/people/4711/close", {}, 404),
        ("custodian", "POST", f"/people/{fresh.names['person_id']}/role", {"role": "king"}, 400),
        ("owner", "POST", f"/requests/{name}/edit", {"question": "x" * 9000, "code": "x"}, 400),
        ("token", "POST", "/api/v1/requests", {"data_set": data}, 422),
        ("token", "POST", "/api/v1/requests", {"data_set": data, "question": "no", "code": "x"}, 400),
        ("token", "GET", "/api/v1/nowhere", None, 404),
        ("token", "GET", "/api/v1/certificates/4711", None, 404),
        ("token", "GET", f"/api/v1/requests/{name}/result", None, 409),
    ):
        answer = fresh.ask(who, method, address, body)
        assert answer.status_code == status, address
        assert "Traceback" not in answer.text
        if address.startswith("/api/"):
            assert set(answer.json()) == {"error", "hint", "code"}
        else:
            assert answer.text.count("<h1") == 1
        _has_headers(answer)


def _has_headers(answer):
    headers = answer.headers
    for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"):
        assert part in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


_FORMS = sorted(path for method, path in TABLE if method == "POST" and not path.startswith("/api/"))


@pytest.mark.parametrize("path", _FORMS)
def test_a_form_from_elsewhere_changes_nothing(fresh, path):
    row, target, body = _row("POST", path)
    # Somebody who would be let in with the right form.
    who = next(who for who, status in zip(EVERYBODY, row.split(), strict=True) if status in ("200", "303"))
    other = "other" if who != "other" else "owner"
    address, body, before = _filled_in(fresh, path, target), _body(fresh, path, body), fresh.n_events()
    right = fresh.csrf[who]
    for token, headers in (
        (None, {}),
        ("", {}),
        ("0" * 64, {}),
        ("é", {}),
        (fresh.csrf[other], {}),
        (right, {"origin": "https://elsewhere.example"}),
        (right, {"origin": "http://127.0.0.1:9999"}),
        (right, {"sec-fetch-site": "cross-site"}),
        (right, {"sec-fetch-site": "same-site", "origin": "null"}),
    ):
        sent = body if token is None else {**body, "csrf": token}
        browser = fresh.browsers[who]
        answer = browser.post(address, data=sent, headers=headers)
        assert answer.status_code == 403, (token, headers)
        # In the address it does not count.
        joined = "&" if "?" in address else "?"
        assert browser.post(f"{address}{joined}csrf={right}", data=body).status_code == 403
    assert fresh.n_events() == before
    for headers in ({"origin": ADDRESS, "sec-fetch-site": "same-origin"}, {"origin": "null"}):
        kept = dict(fresh.browsers[who].cookies)
        answer = fresh.browsers[who].post(address, data={**body, "csrf": right}, headers=headers)
        assert answer.status_code in (200, 303)
        fresh.browsers[who].cookies.clear()
        fresh.browsers[who].cookies.update(kept)
        fresh.restore()


def test_a_session_is_no_token_and_a_token_no_session(fresh):
    assert fresh.ask("owner", "GET", "/api/v1/requests").status_code == 401
    secret = fresh.tokens["token"]
    for headers in (
        {"authorization": f"Basic {secret}"},
        {"authorization": secret},
        {"authorization": f"Bearer {secret}x"},
        {"authorization": "Bearer "},
        {"cookie": f"{_name(fresh)}={secret}"},
    ):
        answer = Browser(fresh.app).get("/api/v1/requests", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    assert Browser(fresh.app).get(f"/api/v1/requests?token={secret}").status_code == 401
    accounts.deactivate(fresh.desk, fresh.filled.custodian, fresh.filled.researcher.id)
    assert fresh.ask("token", "GET", "/api/v1/requests").status_code == 401


def _name(fresh):
    return sessions.cookie_name(fresh.desk.settings)


def _new_cookies(answer):
    return {one.partition("=")[0]: one for one in answer.headers.get_list("set-cookie")}


def test_cookies_of_a_desk_by_https_go_nowhere_else(fresh):
    secure = replace(fresh.desk.settings, address="https://desk.school.example")
    app = make_app(Desk(secure, fresh.desk.database))
    browser = Browser(app, "https://desk.school.example")
    page = browser.get("/sign-in")
    visit = _new_cookies(page)[sessions.cookie_name(secure, "understudy-visit")]
    assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= set(visit.split("; "))
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    answer = browser.sign_in("selma@school.example")
    (cookie,) = _new_cookies(answer).values()
    name = sessions.cookie_name(secure)
    assert name.startswith("__Host-understudy-session-")
    assert cookie.startswith(f"{name}=")
    assert {"Secure", "HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "domain" not in cookie.lower()
    assert browser.get("/account").status_code == 200
    # The same cookie under the name without the prefix is not looked at.
    value = browser.cookies[name]
    plain = Browser(app, "https://desk.school.example").get(
        "/account", headers={"cookie": f"{name.removeprefix('__Host-')}={value}"}
    )
    assert plain.status_code == 303


def test_cookies_of_a_desk_on_this_machine(fresh):
    answer = Browser(fresh.app).sign_in("selma@school.example")
    (cookie,) = _new_cookies(answer).values()
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "strict-transport-security" not in answer.headers


def test_signing_in_makes_a_new_session_whatever_the_browser_had(fresh):
    planted = fresh.browsers["other"].cookies[_name(fresh)]
    browser = Browser(fresh.app)
    before = browser.get("/sign-in")
    visit = browser.cookies[sessions.cookie_name(fresh.desk.settings, "understudy-visit")]
    assert browser.sign_in("selma@school.example").status_code == 303
    assert browser.cookies[_name(fresh)] != planted
    assert browser.csrf != token_in(before.text)
    # The token of the visit is worth nothing in the session.
    answer = browser.post("/account/feed", data={"csrf": token_in(before.text)})
    assert answer.status_code == 403
    for made_up in (visit, planted[:-2], planted.replace(".", "x.", 1), "x", ""):
        stranger = Browser(fresh.app).get("/account", headers={"cookie": f"{_name(fresh)}={made_up}"})
        assert stranger.status_code == 303


def test_signing_out_ends_this_session_and_no_other(fresh):
    here, there = (browser_of(fresh.app, fresh.filled.researcher) for _ in range(2))
    stolen = here.cookies[_name(fresh)]
    assert here.fill_in("/sign-out").status_code == 303
    assert _name(fresh) not in here.cookies
    thief = Browser(fresh.app)
    thief.cookies.set(_name(fresh), stolen)
    assert thief.get("/account").status_code == 303
    assert there.get("/account").status_code == 200
    assert there.fill_in("/account/sign-out-everywhere").headers["location"].startswith("/sign-in")
    assert fresh.ask("owner", "GET", "/account").status_code == 303


def test_a_new_password_keeps_this_session_and_ends_the_others(fresh):
    here = browser_of(fresh.app, fresh.filled.researcher)
    new = "green tram eats ten"
    wrong = here.fill_in("/account/password", old=PASSWORD, password=new, again="other")
    assert wrong.status_code == 400
    assert here.fill_in("/account/password", old=PASSWORD, password=new, again=new).status_code == 303
    assert here.get("/account").status_code == 200
    assert fresh.ask("owner", "GET", "/account").status_code == 303
    assert Browser(fresh.app).sign_in("selma@school.example", new).status_code == 303


def test_a_session_ends_when_it_is_idle_or_old(fresh):
    settings, who = fresh.desk.settings, fresh.filled.researcher
    with fresh.desk.database.reading() as session:
        number = session.connection().exec_driver_sql(f"SELECT session FROM people WHERE id = {who.id}")
        number = number.scalar_one()
    moment = int(time.time())
    for begun, seen, status in (
        (0, 0, 200),
        (sessions.LONGEST_SECONDS - 60, 60, 200),
        (sessions.IDLE_SECONDS + 60, sessions.IDLE_SECONDS + 60, 303),
        (sessions.LONGEST_SECONDS + 60, 0, 303),
    ):
        content = [who.id, number, "an-id", moment - begun, moment - seen]
        cookie = sessions.sealed(settings, "session", content)
        answer = Browser(fresh.app).get("/account", headers={"cookie": f"{_name(fresh)}={cookie}"})
        assert answer.status_code == status
    # Who is active gets a new cookie, with the same beginning.
    cookie = sessions.sealed(settings, "session", [who.id, number, "an-id", moment - 7000, moment - 3000])
    answer = Browser(fresh.app).get("/account", headers={"cookie": f"{_name(fresh)}={cookie}"})
    renewed = _new_cookies(answer)[_name(fresh)].partition("=")[2].partition(";")[0]
    content = sessions.opened(settings, "session", renewed)
    assert content[:4] == [who.id, number, "an-id", moment - 7000]
    assert content[4] >= moment
    # What was sealed for another purpose is no session.
    other = sessions.sealed(settings, "visit", [who.id, number, "an-id", moment, moment])
    assert (
        Browser(fresh.app).get("/account", headers={"cookie": f"{_name(fresh)}={other}"}).status_code == 303
    )


def test_an_invitation_by_its_page(fresh):
    custodian = browser_of(fresh.app, fresh.filled.custodian)
    answer = custodian.post(
        "/people/invite",
        data={
            "csrf": custodian.csrf,
            "email": "zoe@school.example",
            "name": "Zoe <b>",
            "role": "reviewer",
        },
    )
    assert answer.headers["location"] == "/people"
    invited = custodian.get("/people")
    assert "A link for Zoe &lt;b&gt;" in invited.text
    assert "A link for" not in custodian.get("/people").text, "shown once"
    link = re.search(rf'value="{ADDRESS}(/invitation/[\w-]+)"', invited.text).group(1)
    browser = Browser(fresh.app)
    token = token_in(browser.get(link).text)
    easy = browser.post(link, data={"csrf": token, "password": "password1234", "again": "password1234"})
    assert easy.status_code == 400
    fields = {"csrf": token, "password": PASSWORD, "again": PASSWORD}
    assert browser.post(link, data=fields).headers["location"] == "/sign-in?done=password"
    for answer in (browser.get(link), browser.post(link, data=fields)):
        assert answer.status_code == 404
    assert browser.sign_in("zoe@school.example", next="/data").headers["location"] == "/data"


def test_a_token_is_made_once_and_shown_once(fresh):
    browser = browser_of(fresh.app, fresh.filled.researcher)
    before = len(tokens.list_tokens(fresh.desk, fresh.filled.researcher))
    made = browser.fill_in("/account/tokens", name="weekly")
    assert (made.status_code, made.headers["location"]) == (303, "/account")
    assert 'id="shown-token"' in browser.get("/account").text
    assert 'id="shown-token"' not in browser.get("/account").text
    assert len(tokens.list_tokens(fresh.desk, fresh.filled.researcher)) == before + 1


def test_two_desks_on_one_machine_keep_their_sessions_apart(fresh):
    other = replace(fresh.desk.settings, secret="ab" * 32)
    assert sessions.cookie_name(other) != sessions.cookie_name(fresh.desk.settings)


def test_closing_an_account_is_asked_twice_and_said(fresh):
    custodian = browser_of(fresh.app, fresh.filled.custodian)
    whom = fresh.filled.researcher
    assert f"Yes, close {whom.name}'s account" in custodian.get("/people").text
    closed = custodian.fill_in(f"/people/{whom.id}/close")
    assert (
        "account is closed. “Open again” lets them in again."
        in custodian.get(closed.headers["location"]).text
    )


def test_an_old_invitation_leads_nowhere(fresh):
    link = f"/invitation/{fresh.names['secret']}"
    assert Browser(fresh.app).get(link).status_code == 200
    with fresh.desk.database.writing() as session:
        for row in session.query(InvitationRow):
            row.expires_at = row.expires_at.replace(year=2020)
    assert Browser(fresh.app).get(link).status_code == 404


@pytest.mark.parametrize(
    ("next", "led"),
    [
        ("/requests?x=1", "/requests?x=1"),
        ("https://elsewhere.example/", "/"),
        ("//elsewhere.example", "/"),
        ("/\\elsewhere.example", "/"),
        ("/a\r\nset-cookie: x", "/"),
        ("javascript:alert(1)", "/"),
        ("/sign-out", "/"),
    ],
)
def test_signing_in_leads_back_to_this_desk_only(fresh, next, led):
    browser = Browser(fresh.app)
    assert browser.sign_in("selma@school.example", next=next).headers["location"] == led
    assert browser.get("/sign-in", params={"next": next}).headers["location"] == led


def test_who_is_sent_to_sign_in_comes_back(fresh):
    browser = Browser(fresh.app)
    sent = browser.get(f"/requests/new?data={fresh.names['data']}").headers["location"]
    page = browser.get(sent)
    kept = re.search(r'name="next" value="([^"]+)"', page.text).group(1)
    assert kept == f"/requests/new?data={fresh.names['data']}"


def test_guessing_passwords_is_slowed_down(fresh):
    browser = Browser(fresh.app)
    told = [browser.sign_in("selma@school.example", "wrong") for _ in range(accounts.MOST_OF_ACCOUNT)]
    assert {answer.status_code for answer in told} == {403}
    for password in ("wrong", PASSWORD):
        answer = browser.sign_in("selma@school.example", password)
        assert answer.status_code == 429
        assert "retry-after" in answer.headers
    # The words are those for an account that nobody has.
    unknown = [browser.sign_in("none@school.example", "wrong") for _ in range(accounts.MOST_OF_ACCOUNT + 1)]
    assert [answer.status_code for answer in unknown] == [403] * accounts.MOST_OF_ACCOUNT + [429]
    plain = [re.sub(r"selma|none|[0-9a-f]{64}", "", page.text) for page in (told[0], unknown[0])]
    assert plain[0] == plain[1]
    assert browser.sign_in("rita@school.example").status_code == 303


def test_an_address_that_knocks_too_often_waits(fresh):
    fresh.app.state.sign_in_rate = limits.SignInRate(most=3)
    browser = Browser(fresh.app)
    told = [browser.sign_in("none@school.example", "wrong").status_code for _ in range(5)]
    assert told == [403, 403, 403, 429, 429]
    # Nobody else is slowed down: only the door is.
    assert fresh.ask("owner", "GET", "/").status_code == 200


def test_what_is_too_large_is_refused_with_words(fresh):
    large = b"code=" + b"x" * limits.USUAL_BYTES
    kind = {"content-type": "application/x-www-form-urlencoded"}
    pieces = lambda: (large[start : start + 50_000] for start in range(0, len(large), 50_000))  # noqa: E731
    for who, address in (("nobody", "/sign-in"), ("owner", "/requests/new"), ("token", "/api/v1/requests")):
        for content in (large, pieces()):
            headers = {**kind, "authorization": f"Bearer {fresh.tokens['token']}"}
            browser = fresh.browsers.get(who) or Browser(fresh.app)
            answer = browser.post(address, content=content, headers=headers)
            assert answer.status_code == 413
            assert "arger than the desk accepts" in answer.text
            _has_headers(answer)


def test_a_policy_that_allows_more_code_lets_more_in(fresh):
    view = data_sets.view(fresh.desk, fresh.filled.custodian, fresh.names["data"])
    code = OTHER + "# " + "x" * 2_000_000
    asked = {"data_set": view.name, "question": "Is a long program taken?", "code": code}
    assert fresh.ask("token", "POST", "/api/v1/requests", asked).status_code == 413
    policy = replace(view.policy, most_code_bytes=3_000_000)
    data_sets.set_policy(fresh.desk, fresh.filled.custodian, view.name, policy)
    assert fresh.ask("token", "POST", "/api/v1/requests", asked).status_code == 201


def test_a_fault_tells_nothing(fresh, monkeypatch, caplog):
    def broken(*_):
        raise ValueError(f"row of {CANARIES[0]} in {fresh.forbidden[2]}")

    monkeypatch.setattr(accounts, "own_account", broken)
    answer = fresh.ask("owner", "GET", "/account?secret=4711")
    assert answer.status_code == 500
    assert "not your fault" in answer.text
    assert _leaks(fresh, answer) == []
    _has_headers(answer)
    assert "ValueError in" in caplog.text
    assert [word for word in (*fresh.forbidden, "4711", "Traceback") if word in caplog.text] == []


def test_the_log_of_requests_has_patterns_and_nobody(fresh, caplog):
    caplog.set_level(logging.INFO, "understudy")
    fresh.ask("owner", "GET", f"/requests/{fresh.names['held']}?from=selma")
    fresh.ask("nobody", "GET", f"/invitation/{fresh.names['secret']}")
    lines = [one.message for one in caplog.records if one.name == "understudy.desk.access"]
    assert lines == ["GET /requests/{name} 200", "GET /invitation/{secret} 200"]


def test_a_server_with_a_route_that_nobody_guards_does_not_start(fresh, monkeypatch):
    class Careless:
        router = APIRouter()

    Careless.router.add_api_route("/secrets", lambda: {})
    monkeypatch.setattr(server, "_MODULES", (*server._MODULES, Careless))
    with pytest.raises(UnderstudyError, match="no guard protects GET /secrets"):
        make_app(fresh.desk)


def test_the_feed_tells_that_something_happened_and_no_more(fresh):
    answer = fresh.ask("nobody", "GET", f"/feed/{fresh.names['feed']}.xml")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    assert "Your result was released." in answer.text
    assert f"{ADDRESS}/requests/{fresh.names['released']}" in answer.text
    assert set(re.findall(r"<updated>.{10}(.*?)</updated>", answer.text)) == {"T00:00:00Z"}
    assert fresh.ask("nobody", "GET", "/feed/none.xml").status_code == 404


def test_pages_on_both_databases(tmp_path, database_url, monkeypatch):
    quick_passwords(monkeypatch)
    Settings.write(tmp_path / "desk", "Test desk", database=database_url)
    desk = Desk.open(tmp_path / "desk")
    secret = accounts.first_custodian(desk, "ann@school.example", "Ann")
    app = make_app(desk)
    browser = Browser(app)
    token = token_in(browser.get(f"/invitation/{secret}").text)
    browser.post(f"/invitation/{secret}", data={"csrf": token, "password": PASSWORD, "again": PASSWORD})
    assert browser.sign_in("ann@school.example").status_code == 303
    for address in ("/", "/people", "/account", "/data", "/requests", "/health"):
        assert browser.get(address).status_code == 200
    # What one of the databases cannot take is not found, or cannot be read.
    for address in ("/data/%00", "/requests/%00", "/requests/%ff", "/certificates/%00.json", "/feed/%00.xml"):
        assert browser.get(address).status_code in (400, 404)
    assert browser.get("/requests/new?data=%00").status_code in (400, 404)
    assert browser.fill_in("/people/99999999999999999999/close").status_code == 422
    assert browser.fill_in("/people/invite", email="a\0@b", name="A", role="reviewer").status_code == 400
    assert Browser(app).sign_in("a\0@school.example").status_code in (400, 403)
    desk.close()


@contextmanager
def served(app):
    """The server on a port of this machine."""
    run = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=run.run)
    thread.start()
    try:
        while not run.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{run.servers[0].sockets[0].getsockname()[1]}"
    finally:
        run.should_exit = True
        thread.join()


def test_fifty_researchers_submit_at_once(fresh):
    desk, custodian = fresh.desk, fresh.filled.custodian
    made = []
    for number in range(50):
        email = f"researcher{number}@school.example"
        accounts.invite(desk, custodian, email, f"Researcher {number}", Role.RESEARCHER)
        made.append(tokens.make_token(desk, accounts.by_email(desk, email), "script"))
    with desk.database.reading() as session:
        waiting = session.query(JobRow).filter_by(ended_at=None).count()
    asked = {"data_set": fresh.names["data"], "question": "How many at once?", "code": MEAN, "submit": True}
    gate, told = threading.Barrier(len(made) + 1), {}

    def submit(address, number, token):
        gate.wait()
        headers = {"authorization": f"Bearer {token}"}
        told[number] = httpx2.post(f"{address}/api/v1/requests", json=asked, headers=headers, timeout=120)

    with served(make_app(desk)) as address:
        threads = [threading.Thread(target=submit, args=(address, *one)) for one in enumerate(made)]
        for thread in threads:
            thread.start()
        gate.wait()
        pages = [
            httpx2.get(f"{address}{page}", timeout=120).status_code for page in ("/sign-in", "/health") * 5
        ]
        for thread in threads:
            thread.join()
    assert pages == [200] * 10
    assert len(told) == 50
    # Accepted, or told to wait.
    assert {answer.status_code for answer in told.values()} <= {201, 409, 503}
    accepted = [answer.json()["name"] for answer in told.values() if answer.status_code == 201]
    assert len(accepted) > 25, Counter(answer.status_code for answer in told.values())
    with desk.database.reading() as session:
        assert session.query(JobRow).filter_by(ended_at=None).count() == waiting + len(accepted)
        states = {row.state for row in session.query(RequestRow) if row.name in accepted}
        assert states == {"submitted"}
        audit_log.verify(session)
