"""Single sign-on by OpenID Connect, with Authlib: the provider identifies people, invitations decide who may enter.

State, nonce and verifier of an attempt are in a signed cookie of ten minutes. Tokens are taken only if they are signed
by one of two algorithms, whatever the provider offers.
"""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote_plus, urlsplit

import httpx2
from authlib.integrations.base_client import BaseApp, OAuthError
from authlib.integrations.base_client.sync_app import OAuth2Mixin
from authlib.integrations.base_client.sync_openid import OpenIDMixin
from authlib.integrations.httpx_client import OAuth2Client
from fastapi import APIRouter, Query, Request, Response
from joserfc.errors import JoseError
from starlette.responses import RedirectResponse

from understudy.desk.domain.people import NotAllowedError, NotFoundError
from understudy.desk.service import accounts
from understudy.desk.store.settings import Settings
from understudy.desk.web import sessions
from understudy.desk.web.guards import TheDesk, local_address
from understudy.desk.web.limits import client_address
from understudy.errors import DataError, MissingError

router = APIRouter(include_in_schema=False)

ALGORITHMS = ("RS256", "ES256")
_FLOW = "understudy-flow"
_FLOW_SECONDS = 600
# The provider's addresses and keys are fetched again after this; a key that is not known, at once.
_KEPT_SECONDS = 3600.0
# A clock may be this many seconds wrong.
_LEEWAY = 60
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True)
class Flow:
    """One attempt to sign on, from the redirect to the provider to the return from it."""

    state: str
    nonce: str
    verifier: str
    next: str
    begun: int


class _Client(OAuth2Mixin, OpenIDMixin, BaseApp):  # type: ignore[misc]
    """Authlib's client of OpenID Connect, over httpx and without a framework."""

    client_cls = OAuth2Client


class Provider:
    """The provider of the settings: its addresses, its keys, and what its tokens state."""

    def __init__(self, settings: Settings) -> None:
        single = settings.single_sign_on
        if not _trusted(single.issuer):
            raise DataError("the issuer of the single sign-on is not https.", hint="correct the settings.")
        self._issuer = single.issuer
        self._return_address = f"{settings.address.rstrip('/')}/single-sign-on/back"
        self._client = _Client(
            None,
            client_id=single.client_id,
            client_secret=_secret(settings),
            server_metadata_url=f"{single.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_auth_methods=[("quoted", _quoted_login)],
            client_kwargs={
                "scope": "openid email",
                "code_challenge_method": "S256",
                "timeout": 10.0,
                "follow_redirects": False,
            },
        )
        with _explained():
            self._client.server_metadata.update(self._checked(self._client.load_server_metadata()))
        self.fetched = time.monotonic()

    def _checked(self, metadata: dict[str, Any]) -> dict[str, Any]:
        endpoints = [metadata.get(name) for name in _ENDPOINTS]
        if metadata.get("issuer") != self._issuer or not all(map(_trusted, endpoints)):
            raise _unreachable()
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        method = "quoted" if "client_secret_basic" in methods else "client_secret_post"
        self._client.client_kwargs["token_endpoint_auth_method"] = (
            method if self._client.client_secret else "none"
        )
        return {**metadata, "id_token_signing_alg_values_supported": list(ALGORITHMS)}

    def begin(self, next_address: str) -> tuple[str, Flow]:
        """Where to send the browser, and what to remember until it returns."""
        with _explained():
            made = self._client.create_authorization_url(self._return_address)
        flow = Flow(made["state"], made["nonce"], made["code_verifier"], next_address, int(time.time()))
        return made["url"], flow

    def identify(self, code: str, flow: Flow) -> tuple[str, str | None]:
        """Exchange the code, and read from the signed token who it is: the subject, and a verified e-mail address."""
        expected = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client.client_id},
            "sub": {"essential": True},
        }
        with _explained(token=True):
            token = self._client.fetch_access_token(
                self._return_address, code=code, code_verifier=flow.verifier
            )
            claims = self._client.parse_id_token(token, flow.nonce, expected, leeway=_LEEWAY) or {}
        subject, email = claims.get("sub"), claims.get("email")
        if not isinstance(subject, str):
            raise _refused()
        verified = claims.get("email_verified") is True and isinstance(email, str)
        return f"{self._issuer} {subject}", email if verified else None


@router.get("/single-sign-on")
def start(request: Request, desk: TheDesk, next: Annotated[str, Query()] = "/") -> Response:
    """Send the browser to the provider."""
    provider = _provider(request, desk.settings)
    request.app.state.sign_in_rate.check(client_address(request))
    address, flow = provider.begin(local_address(next)[:500])
    response = RedirectResponse(address, status_code=303)
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
    """The browser returns with a code, or with a refusal."""
    provider = _provider(request, desk.settings)
    request.app.state.sign_in_rate.check(client_address(request))
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
    signed_in = accounts.enter_by_subject(desk, *provider.identify(code, flow))
    response = RedirectResponse(flow.next, status_code=303)
    sessions.begin(request, response, signed_in)
    sessions.set_cookie(response, desk.settings, _FLOW, "", max_age=0)
    return response


def _provider(request: Request, settings: Settings) -> Provider:
    if not settings.single_sign_on.issuer:
        raise NotFoundError("this desk has no single sign-on.", hint="sign in with your password.")
    found: Provider | None = getattr(request.app.state, "provider", None)
    if found is None or time.monotonic() - found.fetched > _KEPT_SECONDS:
        request.app.state.provider = found = Provider(settings)
    return found


def _secret(settings: Settings) -> str:
    if not settings.single_sign_on.secret_file:
        return ""
    try:
        path = settings.folder / settings.single_sign_on.secret_file
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        raise DataError(
            "the file with the secret of the single sign-on cannot be read.",
            hint="check secret_file in the settings.",
        ) from None


def _quoted_login(client: Any, method: str, uri: str, headers: Any, body: Any) -> tuple[str, Any, Any]:
    # RFC 6749, 2.3.1: form-encoded before it goes into the header, which Authlib leaves out.
    login = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    return uri, headers, body


def _trusted(address: object) -> bool:
    """Whether an address is by https, or on this machine."""
    parts = urlsplit(address) if isinstance(address, str) else urlsplit("")
    here = parts.hostname in ("127.0.0.1", "::1", "localhost")
    return parts.scheme == "https" or (parts.scheme == "http" and here)


@contextmanager
def _explained(*, token: bool = False) -> Iterator[None]:
    """Errors of the provider, or of a code or a `token`, as ours, without anything that either says."""
    try:
        yield
    except (
        httpx2.HTTPError,
        OAuthError,
        JoseError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:
        # A code that was used or made up, or a token that is not signed or not meant for us.
        refused = token and not isinstance(error, httpx2.HTTPError)
        raise (_refused() if refused else _unreachable()) from None


def _refused() -> NotAllowedError:
    return NotAllowedError(
        "the single sign-on did not identify you, or not for this browser.",
        hint="start again on the sign-in page.",
    )


def _unreachable() -> MissingError:
    return MissingError(
        "the single sign-on does not answer as it should.",
        hint="try again later, or sign in with your password.",
    )
