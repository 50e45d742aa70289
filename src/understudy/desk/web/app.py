"""Puts the server together: routes, layers around them, and the check that every route has a guard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi import APIRouter, Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import understudy
from understudy.desk.service import Desk
from understudy.desk.web import guards, limits, pages, problems, single_sign_on
from understudy.desk.web.routes import account, api, data_sets, people, requests
from understudy.desk.web.sessions import Sessions, is_https
from understudy.errors import UnderstudyError

STATIC = "/static/"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_ALWAYS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Headers:
    """Puts them on every answer, also on errors."""

    def __init__(self, app: ASGIApp, https: bool) -> None:
        self._app = app
        self._https = https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_ALWAYS)
                # Pages hold what only their reader may see; the stylesheet's address changes with its content.
                static = scope["path"].startswith(STATIC) and message["status"] in (200, 304)
                headers["cache-control"] = "public, max-age=86400" if static else "no-store"
                if self._https:
                    headers["strict-transport-security"] = "max-age=31536000"
                if "server" in headers:
                    del headers["server"]
            await send(message)

        await self._app(scope, receive, send_on)


_MODULES = (account, people, requests, data_sets, api, single_sign_on)
# Public routes. A route that is not here has to have a guard, or the server does not start.
PUBLIC = frozenset(
    {
        ("GET", "/sign-in"),
        ("POST", "/sign-in"),
        ("GET", "/single-sign-on"),
        ("GET", "/single-sign-on/back"),
        ("GET", "/invitation/{secret}"),
        ("POST", "/invitation/{secret}"),
        # Its address is the secret.
        ("GET", "/feed/{secret}.xml"),
        # Readers of a paper have no account.
        ("GET", "/certificates/{number}"),
        ("GET", "/certificates/{number}.json"),
        ("GET", "/health"),
        # The same for every desk.
        ("GET", "/api/openapi.json"),
    }
)


def make_app(desk: Desk) -> FastAPI:
    """The server of a desk."""
    routers = [module.router for module in _MODULES]
    routes = sorted(_checked(routers))
    app = FastAPI(
        title="Understudy validation desk",
        summary="Questions to data that stays where it is.",
        description=(
            "Ask a question about real data by code that ran on its synthetic stand-in. A person reviews the "
            "code, it runs inside, the output is checked and priced, and only what a person released is "
            "given out. Errors are JSON with `error` (what was asked and found) and `hint` (what to do)."
        ),
        version=understudy.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(guards.from_our_own_page)],
    )
    app.state.desk = desk
    app.state.sign_in_rate = limits.SignInRate()
    app.state.routes = routes
    app.mount("/static", StaticFiles(directory=pages.STATIC), name="static")
    for router in routers:
        app.include_router(router)
    for kind in (UnderstudyError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, problems.answer)
    # The last added is the outermost.
    app.add_middleware(Sessions, settings=desk.settings)
    app.add_middleware(limits.BodySize, most=lambda: limits.most_bytes_at(desk))
    app.add_middleware(problems.Problems)
    app.add_middleware(Headers, https=is_https(desk.settings))
    return app


def _checked(routers: Iterable[APIRouter]) -> Iterator[tuple[str, str]]:
    """Every route as method and path; raises for one without a guard."""
    for router in routers:
        for route in router.routes:
            if not isinstance(route, APIRoute):
                raise UnderstudyError(
                    "the server has a route of a kind that cannot be checked for its guard.",
                    hint="write it as a function of a router.",
                )
            for method in sorted(route.methods or ()):
                if (method, route.path) not in PUBLIC and not _guarded(route.dependant):
                    raise UnderstudyError(
                        f"no guard protects {method} {route.path}.",
                        hint="let it depend on a guard, or put it into the list of public ones.",
                    )
                yield method, route.path


def _guarded(dependant: Dependant) -> bool:
    return dependant.call in guards.GUARDS or any(_guarded(one) for one in dependant.dependencies)
