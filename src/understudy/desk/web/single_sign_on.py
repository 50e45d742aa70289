"""Single sign-on by OpenID Connect: authorization code with PKCE. It says who somebody is; invitations say who may in.

State, nonce and verifier of an attempt are in a signed cookie of ten minutes. The provider's keys are fetched when
they are needed, and tokens are taken only if they are signed by one of two algorithms.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Annotated, Any, cast
from urllib.parse import urlencode, urlsplit

import httpx
from fastapi import APIRouter, Query, Request, Response
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from starlette.responses import RedirectResponse

from understudy.desk.domain.people import NotAllowedError
from understudy.desk.service import accounts
from understudy.desk.store.settings import Settings
from understudy.desk.web import sessions
from understudy.desk.web.guards import TheDesk, local_address
from understudy.desk.web.limits import client_address
from understudy.errors import DataError, MissingError, UsageError

router = APIRouter(include_in_schema=False)

ALGORITHMS = ("RS256", "ES256")
_FLOW = "understudy-flow"
_FLOW_SECONDS = 600
_KEYS_SECONDS = 3600.0
# A clock may be this many seconds wrong.
_LEEWAY = 60


@dataclass(frozen=True)
class Identity:
    """Who somebody is to the provider."""

    subject: str
    verified_email: str | None


@dataclass(frozen=True)
class Flow:
    """One attempt to come in, from the way out to the way back."""

    state: str
    nonce: str
    verifier: str
    next: str
    begun: int


class Provider:
    """The provider of the settings: where it is, its keys, and what its tokens say."""

    def __init__(self, settings: Settings) -> None:
        self._single = settings.single_sign_on
        self._issuer = self._single.issuer
        self._back = f"{settings.address.rstrip('/')}/single-sign-on/back"
        self._secret = ""
        if self._single.secret_file:
            try:
                path = settings.folder / self._single.secret_file
                self._secret = path.read_text(encoding="utf-8").strip()
            except OSError:
                raise DataError(
                    "the file with the secret of the single sign-on cannot be read.",
                    hint="check secret_file in the settings.",
                ) from None
        self._lock = threading.Lock()
        self._places: dict[str, Any] = {}
        self._keys: KeySet | None = None
        self._fetched = 0.0

    def way_out(self, flow: Flow) -> str:
        """Where to send the browser."""
        challenge = hashlib.sha256(flow.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._single.client_id,
            "redirect_uri": self._back,
            "scope": "openid email",
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        place = self._place("authorization_endpoint")
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"

    def identity(self, code: str, flow: Flow) -> Identity:
        """Exchange the code, and read who it is from the signed token."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._back,
            "code_verifier": flow.verifier,
            "client_id": self._single.client_id,
        }
        place = self._place("token_endpoint")
        login: tuple[str, str] | None = None
        methods = self._places.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self._secret and "client_secret_basic" in methods:
            login = (_quoted(self._single.client_id), _quoted(self._secret))
        elif self._secret:
            form["client_secret"] = self._secret
        answer = self._asked("POST", place, data=form, auth=login)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise _refused()
        return self._read(token, flow)

    def _read(self, token: str, flow: Flow) -> Identity:
        try:
            try:
                claims = jwt.decode(token, self._key_set(), algorithms=list(ALGORITHMS)).claims
            except InvalidKeyIdError:
                # The provider may have new keys.
                claims = jwt.decode(token, self._key_set(fresh=True), algorithms=list(ALGORITHMS)).claims
            jwt.JWTClaimsRegistry(
                leeway=_LEEWAY,
                iss={"essential": True, "value": self._issuer},
                sub={"essential": True},
                aud={"essential": True, "value": self._single.client_id},
                exp={"essential": True},
                iat={"essential": True},
                nonce={"essential": True, "value": flow.nonce},
            ).validate(claims)
        except (JoseError, ValueError, TypeError, KeyError):
            raise _refused() from None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (several or "azp" in claims) and claims.get("azp") != self._single.client_id:
            raise _refused()
        email = claims.get("email")
        verified = claims.get("email_verified") is True and isinstance(email, str)
        return Identity(f"{self._issuer} {claims['sub']}", email if verified else None)

    def _place(self, name: str) -> str:
        self._discover()
        place = self._places.get(name)
        if not isinstance(place, str) or not _trusted(place):
            raise _unreachable()
        return place

    def _discover(self) -> None:
        with self._lock:
            if self._places and time.monotonic() - self._fetched < _KEYS_SECONDS:
                return
            if not _trusted(self._issuer):
                raise DataError(
                    "the issuer of the single sign-on is not https.", hint="correct the settings."
                )
            found = self._asked("GET", self._issuer.rstrip("/") + "/.well-known/openid-configuration")
            if found.get("issuer") != self._issuer:
                raise _unreachable()
            self._places, self._keys, self._fetched = found, None, time.monotonic()

    def _key_set(self, fresh: bool = False) -> KeySet:
        place = self._place("jwks_uri")
        with self._lock:
            if self._keys is None or fresh:
                self._keys = KeySet.import_key_set(cast(Any, self._asked("GET", place)))
            return self._keys

    def _asked(self, method: str, address: str, **more: Any) -> dict[str, Any]:
        try:
            answer = httpx.request(method, address, timeout=10.0, follow_redirects=False, **more)
            if answer.status_code == 400:
                # The code was used, made up, or not meant for us.
                raise _refused()
            answer.raise_for_status()
            content = answer.json()
        except (httpx.HTTPError, ValueError):
            raise _unreachable() from None
        if not isinstance(content, dict):
            raise _unreachable()
        return content


@router.get("/single-sign-on")
def start(request: Request, desk: TheDesk, next: Annotated[str, Query()] = "/") -> Response:
    """Send the browser to the provider."""
    provider = _provider(request, desk.settings)
    request.app.state.knocking.knock(client_address(request))
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    flow = Flow(state, nonce, verifier, local_address(next)[:500], int(time.time()))
    response = RedirectResponse(provider.way_out(flow), status_code=303)
    sealed = sessions.sealed(desk.settings, "flow", list(vars(flow).values()))
    sessions.set_cookie(response, desk.settings, _FLOW, sealed, max_age=_FLOW_SECONDS)
    return response


@router.get("/single-sign-on/back")
def back(
    request: Request,
    desk: TheDesk,
    code: Annotated[str, Query()] = "",
    state: Annotated[str, Query()] = "",
    iss: Annotated[str, Query()] = "",
) -> Response:
    """The browser comes back with a code, or with a refusal."""
    provider = _provider(request, desk.settings)
    request.app.state.knocking.knock(client_address(request))
    name = sessions.cookie_name(desk.settings, _FLOW)
    content = sessions.opened(desk.settings, "flow", request.cookies.get(name))
    flow = None if content is None else Flow(*content)
    if (
        flow is None
        or time.time() - flow.begun > _FLOW_SECONDS
        or not hmac.compare_digest(flow.state.encode(), state.encode())
        or not code
        or (iss and iss != desk.settings.single_sign_on.issuer)
    ):
        raise _refused()
    found = provider.identity(code, flow)
    signed_in = accounts.enter_by_subject(desk, found.subject, found.verified_email)
    response = RedirectResponse(flow.next, status_code=303)
    sessions.begin(request, response, signed_in)
    sessions.set_cookie(response, desk.settings, _FLOW, "", max_age=0)
    return response


def _provider(request: Request, settings: Settings) -> Provider:
    if not settings.single_sign_on.issuer:
        raise UsageError("there is no such way in at this desk.", hint="sign in with your password.")
    if not hasattr(request.app.state, "provider"):
        request.app.state.provider = Provider(settings)
    provider: Provider = request.app.state.provider
    return provider


def _trusted(address: str) -> bool:
    """By https, or on this machine."""
    parts = urlsplit(address)
    here = parts.hostname in ("127.0.0.1", "::1", "localhost")
    return parts.scheme == "https" or (parts.scheme == "http" and here)


def _quoted(text: str) -> str:
    # RFC 6749, 2.3.1: form-encoded before it goes into the header.
    return urlencode({"": text})[1:]


def _refused() -> NotAllowedError:
    return NotAllowedError(
        "the single sign-on did not say who you are, or not to this browser.",
        hint="begin again on the sign-in page.",
    )


def _unreachable() -> MissingError:
    return MissingError(
        "the single sign-on does not answer as it should.",
        hint="try again later, or sign in with your password.",
    )
