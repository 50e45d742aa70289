"""Limits on the size of a request and on the rate of sign-ins."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from understudy.desk.domain.policy import Policy
from understudy.desk.service import Desk
from understudy.desk.service.accounts import SlowDownError
from understudy.desk.service.data_sets import largest_code_bytes
from understudy.desk.service.requests import MOST_WORDS

# Question, findings and the rest of a form, in characters of up to four bytes.
_WORDS_BYTES = 3 * 4 * MOST_WORDS
# A form writes a byte that is no letter as three.
_ENCODED = 3


def most_bytes(code_bytes: int) -> int:
    """Of a request whose code may have so many bytes."""
    return _ENCODED * (code_bytes + _WORDS_BYTES)


USUAL_BYTES = most_bytes(Policy().most_code_bytes)


def most_bytes_at(desk: Desk) -> int:
    """What the most generous policy of the desk allows; policies may change while it runs."""
    return max(USUAL_BYTES, most_bytes(largest_code_bytes(desk)))


class BodySize:
    """Refuses bodies past the bound: by the length that they announce, or when they reach it."""

    def __init__(self, app: ASGIApp, most: Callable[[], int]) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        got, most = 0, USUAL_BYTES

        async def check(size: int) -> None:
            nonlocal most
            if size > most:
                most = max(most, await anyio.to_thread.run_sync(self._most))
            if size > most:
                raise HTTPException(413)

        async def receive_on() -> Message:
            nonlocal got
            message = await receive()
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                await check(got)
            return message

        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit():
            await check(int(announced))
        await self._app(scope, receive_on, send)


def client_address(request: Request) -> str:
    """Where a request comes from, to slow down guessing."""
    return request.client.host if request.client is not None else "unknown"


class SignInRate:
    """How often an address may try to sign in per minute. Forgotten when the server ends."""

    def __init__(self, most: int = 60, seconds: float = 60.0) -> None:
        self._most = most
        self._seconds = seconds
        self._times: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Raise if this address asks too often."""
        moment = time.monotonic()
        with self._lock:
            if len(self._times) > 10_000:
                self._times = {
                    key: times for key, times in self._times.items() if self._recent(times, moment)
                }
            times = self._times.setdefault(address, deque())
            self._recent(times, moment)
            if len(times) >= self._most:
                raise SlowDownError(
                    "there were too many attempts to sign in from where you are.",
                    hint="wait a minute, then try again.",
                )
            times.append(moment)

    def _recent(self, times: deque[float], moment: float) -> bool:
        while times and times[0] < moment - self._seconds:
            times.popleft()
        return bool(times)
