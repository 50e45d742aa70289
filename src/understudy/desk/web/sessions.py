"""Sessions in signed cookies, and the token that a form has to carry.

A cookie names a person, the number of their sessions (raised to end all of them), a random id, and when the session
began and was last seen. Nothing in it is secret but the signature. Who has not signed in has a visit: a random id
alone, so that the sign-in form carries a token as well.
"""

from __future__ import annotations

import hmac
import secrets
import time
from dataclasses import dataclass, replace
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from understudy.desk.service.accounts import SESSION_LASTS, SignedIn
from understudy.desk.store.settings import Settings

IDLE_SECONDS = 2 * 3600
LONGEST_SECONDS = int(SESSION_LASTS.total_seconds())
# A cookie is written anew when it is older than this, not at every request.
_RENEW_SECONDS = 300
_SESSION, _VISIT, _SHOWN = "understudy-session", "understudy-visit", "understudy-shown"
# How long a page may take to show what it shows once.
_SHOWN_SECONDS = 60


@dataclass(frozen=True)
class BrowserSession:
    """The content of the cookie of a user who signed in."""

    person: int
    number: int
    id: str
    begun: int
    seen: int

    @property
    def over(self) -> bool:
        """Whether it lasted too long, or nothing was heard of it for too long."""
        moment = time.time()
        return moment - self.begun > LONGEST_SECONDS or moment - self.seen > IDLE_SECONDS


def is_https(settings: Settings) -> bool:
    """Whether people reach the desk by https."""
    return settings.address.lower().startswith("https://")


def cookie_name(settings: Settings, name: str = _SESSION) -> str:
    """This desk's own: desks on one host would share it. By https with a prefix that binds it to the host."""
    name = f"{name}-{settings.keyed('cookies', 'name')[:8]}"
    return f"__Host-{name}" if is_https(settings) else name


def sealed(settings: Settings, purpose: str, content: Any) -> str:
    """Content that only this desk can have written, for this purpose."""
    return str(_serializer(settings, purpose).dumps(content))


def opened(settings: Settings, purpose: str, text: str | None) -> Any:
    """What was sealed for this purpose; None if it was not, or changed since."""
    if not text or len(text) > 4000:
        return None
    try:
        return _serializer(settings, purpose).loads(text)
    except BadData:
        return None


def set_cookie(response: Response, settings: Settings, name: str, value: str, **more: Any) -> None:
    """A cookie that no script reads; lax, since links in mails and the way back from single sign-on lead here."""
    response.set_cookie(
        cookie_name(settings, name),
        value,
        **{"path": "/", "httponly": True, "secure": is_https(settings), "samesite": "lax", **more},
    )


def begin(request: Request, response: Response, signed_in: SignedIn) -> None:
    """Start a session with a new id, whatever the browser had before."""
    moment = int(time.time())
    session = BrowserSession(
        signed_in.person.id, signed_in.session, secrets.token_urlsafe(18), moment, moment
    )
    _write(response, _settings(request), session)
    request.state.renew = None


def carry_on(request: Request, response: Response, number: int) -> None:
    """Keep this session when all others of the person were ended."""
    session = request.state.session
    _write(response, _settings(request), replace(session, number=number, seen=int(time.time())))
    request.state.renew = None


def end(request: Request, response: Response) -> None:
    """Delete the cookie."""
    _delete(response, _settings(request), _SESSION)
    request.state.renew = None


def show_once(request: Request, response: Response, page: str, **content: str) -> None:
    """Let the page that comes next show a secret: to load it again neither makes nor shows another."""
    settings = _settings(request)
    kept = sealed(settings, "shown", [request.state.session.id, int(time.time()), page, content])
    set_cookie(response, settings, _SHOWN, kept, max_age=_SHOWN_SECONDS, samesite="strict")


def shown_once(request: Request, page: str) -> dict[str, str]:
    """What this session's page was left to show; nothing if it is older than a minute."""
    settings = _settings(request)
    found = opened(settings, "shown", request.cookies.get(cookie_name(settings, _SHOWN)))
    if found is None or found[0] != request.state.session.id or found[2] != page:
        return {}
    return dict(found[3]) if time.time() - found[1] <= _SHOWN_SECONDS else {}


def forget_shown(request: Request, response: Response) -> None:
    """Forget the secret once it was shown."""
    _delete(response, _settings(request), _SHOWN)


def token_is_right(request: Request, token: object) -> bool:
    """Whether a form belongs to this session."""
    return isinstance(token, str) and hmac.compare_digest(token.encode(), request.state.csrf.encode())


class Sessions:
    """Reads the cookies of a request, gives pages their token, and renews the cookie of an active user.

    `request.state.session` is what the cookie says, if it is in force; whether the person still has this session
    is for the guards. `request.state.csrf` is the token that a form of this page has to carry.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settings = self._settings
        connection = HTTPConnection(scope)
        state = connection.state
        session = _read(settings, connection.cookies.get(cookie_name(settings)))
        visit = opened(settings, "visit", connection.cookies.get(cookie_name(settings, _VISIT)))
        fresh = None
        if session is None and not isinstance(visit, str):
            visit = fresh = secrets.token_urlsafe(18)
        state.session = session
        state.csrf = settings.keyed("csrf", f"session {session.id}" if session else f"visit {visit}")
        # Set by the guard once the person is known to have this session.
        state.renew = None

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                response = Response()
                if state.renew is not None and time.time() - state.renew.seen > _RENEW_SECONDS:
                    _write(response, settings, replace(state.renew, seen=int(time.time())))
                if fresh is not None and headers.get("content-type", "").startswith("text/html"):
                    sealed_visit = sealed(settings, "visit", fresh)
                    set_cookie(response, settings, _VISIT, sealed_visit, samesite="strict")
                for name, value in response.raw_headers:
                    if name == b"set-cookie":
                        headers.append("set-cookie", value.decode("latin-1"))
            await send(message)

        await self._app(scope, receive, send_on)


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.desk.settings
    return settings


def _serializer(settings: Settings, purpose: str) -> URLSafeSerializer:
    # itsdangerous derives by HMAC-SHA1 of its own; the key is this desk's and this purpose's alone.
    return URLSafeSerializer(settings.keyed("cookies", purpose), salt=purpose)


def _delete(response: Response, settings: Settings, name: str) -> None:
    response.delete_cookie(
        cookie_name(settings, name), path="/", httponly=True, secure=is_https(settings), samesite="lax"
    )


def _write(response: Response, settings: Settings, session: BrowserSession) -> None:
    content = [session.person, session.number, session.id, session.begun, session.seen]
    set_cookie(response, settings, _SESSION, sealed(settings, "session", content))


def _read(settings: Settings, text: str | None) -> BrowserSession | None:
    content = opened(settings, "session", text)
    if content is None:
        return None
    session = BrowserSession(*content)
    return None if session.over else session
