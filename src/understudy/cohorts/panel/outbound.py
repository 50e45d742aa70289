"""What leaves over HTTP beside the conversation: one address, and headers that are written here.

The vendors' libraries add headers of their own (system, versions) and read more from the
environment (organisation, project, custom headers, other addresses); the HTTP library reads proxies
from there. So the address and all headers are set anew just before a request is sent, and the
environment is not asked. What is not written here does not leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import httpx2

USER_AGENT = "understudy"
# For Anthropic, whose protocol wants it.
ANTHROPIC_VERSION = "2023-06-01"


def request_url(provider: str, address: str, model: str) -> str:
    """The one address that a request goes to."""
    # A model's name is the user's: it may have slashes, and must not become another path.
    named = quote(model.removeprefix("models/"), safe="")
    paths = {
        "openai": "/chat/completions",
        "anthropic": "/v1/messages",
        "google": f"/v1beta/models/{named}:generateContent",
    }
    return address.rstrip("/") + paths[provider]


def request_headers(provider: str, key: str) -> dict[str, str]:
    """All headers but those that HTTP itself needs (host, length, connection)."""
    own = {
        "openai": {"Authorization": f"Bearer {key}"},
        "anthropic": {"X-Api-Key": key, "Anthropic-Version": ANTHROPIC_VERSION},
        "google": {"X-Goog-Api-Key": key},
    }
    return {
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        **own[provider],
    }


def pinned_client(
    provider: str, address: str, model: str, key: str, timeout: float, proxy: str = ""
) -> httpx2.AsyncClient:
    """A client whose every request goes to `request_url` with `request_headers`, whatever a library asked it for."""
    import httpx2

    url = httpx2.URL(request_url(provider, address, model))

    async def rewrite(request: Any) -> None:
        length = request.headers.get("Content-Length")
        framing = {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": length}
        request.url = url
        request.headers = httpx2.Headers(
            {
                "Host": url.netloc.decode("ascii"),
                "Connection": "close",
                **framing,
                **request_headers(provider, key),
            }
        )

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout, connect=min(10.0, timeout)),
        # A redirect would carry the key to another address.
        follow_redirects=False,
        # Proxies, certificates and passwords (.netrc) of the environment stay there.
        trust_env=False,
        proxy=proxy or None,
        event_hooks={"request": [rewrite]},
    )
