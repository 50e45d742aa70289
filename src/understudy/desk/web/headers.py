"""Headers of every answer: what a browser may load, keep and tell others."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
