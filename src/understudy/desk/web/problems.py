"""What went wrong, as an answer: a page with words and what to do, or the same as JSON for programs."""

from __future__ import annotations

import logging
from urllib.parse import quote

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from understudy.desk.domain.people import NotAllowedError, NotFoundError
from understudy.desk.service.accounts import WINDOW, SlowDownError
from understudy.desk.web import pages
from understudy.desk.web.guards import API, NotSignedInError
from understudy.errors import MissingError, RefusedError, UnderstudyError, UsageError, safe_location

_ACCESS = logging.getLogger("understudy.desk.access")
_ERRORS = logging.getLogger("understudy.desk.errors")

# The first kind that fits.
_STATUS: tuple[tuple[type[UnderstudyError], int], ...] = (
    (NotSignedInError, 401),
    (SlowDownError, 429),
    (NotAllowedError, 403),
    (NotFoundError, 404),
    (RefusedError, 409),
    (MissingError, 503),
)
_BY_STATUS = {
    404: NotFoundError("there is no such page.", hint="go to the start page, and look from there."),
    405: UsageError("this address does not accept that.", hint="go to the start page, and look from there."),
    413: UsageError("this is larger than the desk accepts.", hint="leave out what is not needed."),
}
_TITLES = {
    403: "Not for you",
    404: "Nothing here",
    409: "Not now",
    413: "Too large",
    429: "Slow down",
    500: "A fault of the desk",
    503: "Not available",
}
_UNREADABLE = UsageError("this request cannot be read.", hint="send plain text.")
_FAULT = UnderstudyError(
    "an unexpected error occurred; it is not your fault.",
    hint="try again; if it happens again, tell the custodian of this desk when it was.",
)


def status_of(error: UnderstudyError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def headers_of(error: Exception) -> dict[str, str]:
    """Headers besides the status, for programs."""
    if isinstance(error, NotSignedInError):
        return {"www-authenticate": "Bearer"}
    if isinstance(error, SlowDownError):
        return {"retry-after": str(int(WINDOW.total_seconds()))}
    return dict(error.headers or {}) if isinstance(error, HTTPException) else {}


def answer(request: Request, error: Exception) -> Response:
    """An error as an answer. An unforeseen one is not described; its type and place are logged."""
    if isinstance(error, NotSignedInError) and not request.url.path.startswith(API):
        return RedirectResponse(f"/sign-in{_way_back(request)}", status_code=303)
    status, described = _as_described(error)
    headers = headers_of(error)
    if request.url.path.startswith(API):
        content = {"error": described.message, "hint": described.hint, "code": described.code}
        return JSONResponse(content, status_code=status, headers=headers)
    try:
        response: Response = pages.render(
            request,
            "error.html",
            person=getattr(request.state, "person", None),
            status=status,
            problem=described,
            title=_TITLES.get(status, "That did not work"),
        )
    except Exception as second:
        _log(second)
        response = PlainTextResponse(f"{described.message}\n{described.hint}\n", status_code=status)
    response.headers.update(headers)
    return response


class Problems:
    """The outermost layer: a line in the log for every request, and an answer whatever happens below.

    The log has the pattern of the address, never the address itself: it may hold an invitation or a name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception as error:
            response = answer(Request(scope, receive), error)
            if not status:
                await response(scope, receive, send_on)
        _ACCESS.info("%s %s %d", scope["method"], _pattern(scope), status)


def _as_described(error: Exception) -> tuple[int, UnderstudyError]:
    if isinstance(error, UnderstudyError):
        return status_of(error), error
    if isinstance(error, HTTPException):
        return error.status_code, _BY_STATUS.get(error.status_code, _UNREADABLE)
    if isinstance(error, RequestValidationError):
        # Where, and what is wanted there; never what was sent.
        places = sorted({".".join(str(part) for part in one["loc"][1:]) for one in error.errors()})
        known = ", ".join(place for place in places if place.isprintable())[:200]
        return 422, UsageError(f"something is missing or not valid: {known}.", hint="correct it.")
    _log(error)
    return 500, _FAULT


def _log(error: Exception) -> None:
    _ERRORS.error("%s", safe_location(error))


def _pattern(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path", "")) or "(no route)"


def _way_back(request: Request) -> str:
    if request.method != "GET" or request.url.path == "/":
        return ""
    query = f"?{request.url.query}" if request.url.query else ""
    return "?next=" + quote(request.url.path + query, safe="")
