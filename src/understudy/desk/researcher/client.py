"""A desk over HTTP, with a researcher's token: submits analyses and reports their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from understudy.errors import MissingError, RefusedError, UsageError

_SECONDS = 30.0
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


class DeskClient:
    """An open connection to a desk; use it as a context manager, or close it."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"'{url}' is not the address of a desk.", hint="such as https://desk.school.example."
            )
        if parts.scheme == "http" and parts.hostname not in _THIS_MACHINE:
            raise RefusedError(
                f"{url} is plain http: your token could be read on the way.",
                hint="use the desk's https address.",
            )
        if not token.isascii() or not token.isprintable():
            raise UsageError(
                "this is not a token of a desk.", hint="copy it again from the page of your account."
            )
        self.url = url.rstrip("/")
        self._client = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def submit(
        self, data_set: str, code: str, *, question: str, shown: str = "", kind: str = "", draft: bool = False
    ) -> dict[str, Any]:
        """Make a request about a data set, named by its title or its name; hand it in unless it is a draft."""
        content = {
            "data_set": data_set_named(self._ask("GET", "data-sets"), data_set),
            "question": question,
            "code": code,
            "shown": shown,
            "kind": kind,
            "submit": not draft,
        }
        answer: dict[str, Any] = self._ask("POST", "requests", content)
        return answer

    def schema(self, data_set: str) -> dict[str, Any] | None:
        """The public schema of a data set, named by its title or its name; None if none is declared."""
        name = data_set_named(self._ask("GET", "data-sets"), data_set)
        found: dict[str, Any] | None = self._ask("GET", f"data-sets/{name}")["public_schema"]
        return found

    def requests(self) -> list[dict[str, Any]]:
        """The requests of the token's owner, newest first."""
        answer: list[dict[str, Any]] = self._ask("GET", "requests")
        return answer

    def request(self, name: str) -> dict[str, Any]:
        """One of them."""
        answer: dict[str, Any] = self._ask("GET", f"requests/{name}")
        return answer

    def _ask(self, method: str, path: str, content: dict[str, Any] | None = None) -> Any:
        """The desk's answer, or its refusal as our error."""
        try:
            answer = self._client.request(method, f"/api/v1/{path}", json=content)
        except httpx2.HTTPError as error:
            raise MissingError(
                f"the desk at {self.url} does not answer ({type(error).__name__}).",
                hint="check the address; if it is right, try later.",
            ) from None
        try:
            found = answer.json()
        except ValueError:
            found = {}
        if answer.is_success and isinstance(found, dict | list):
            return found
        problem = found if isinstance(found, dict) else {}
        message = str(problem.get("error") or f"the desk answered {answer.status_code}.")
        hint, code = str(problem.get("hint") or ""), str(problem.get("code") or "")
        if answer.status_code == 401:
            raise UsageError(
                "the desk does not know this token.", hint="make a new one on the page of your account."
            )
        if answer.status_code in (403, 409, 429):
            raise RefusedError(message, hint=hint, code=code)
        if answer.status_code >= 500:
            raise MissingError(
                message, hint=hint or "try later, or tell the people who run the desk.", code=code
            )
        raise UsageError(message, hint=hint, code=code)


def data_set_named(known: Sequence[dict[str, Any]], title_or_name: str) -> str:
    """The name of a data set that is called by its title or name, in whatever case and spacing."""
    wanted = " ".join(title_or_name.split()).casefold()
    titles = {str(data_set["name"]): " ".join(str(data_set["title"]).split()) for data_set in known}
    by_name = [name for name in titles if name.casefold() == wanted]
    found = by_name or [name for name, title in titles.items() if title.casefold() == wanted]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{title} ({name})" for name, title in titles.items())
    if found:
        raise UsageError(
            f"{len(found)} data sets have the title '{title_or_name}'.", hint=f"give the name: {listed}."
        )
    raise UsageError(
        f"the desk has no data set '{title_or_name}'.",
        hint=f"it has: {listed}." if listed else "it has none yet.",
    )
