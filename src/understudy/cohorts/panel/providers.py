"""Panelists at a language model's endpoint: OpenAI-compatible (also local), Anthropic, Google.

A panel is a TOML list. Keys come from the environment only. What leaves is the conversation: the
brief and, when a script failed, its own text with the kind of error and the line; address and HTTP
headers are those of `outbound`, not what the vendors' libraries add. Nothing is traced, and prices
come from a table that is installed with the library.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from understudy.cohorts.panel.outbound import pinned_client
from understudy.cohorts.panel.scripts import NO_TOKENS, Tokens, check_names
from understudy.core.extras import install_hint
from understudy.core.files.documents import ContractError, checked, contract, parse_toml
from understudy.errors import MissingError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

# Given always, so that no variable of the environment sends the prompt elsewhere.
BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY"}

# Failures that pass: too many requests, and trouble on the server's side.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_SECRET_WORDS = ("key", "token", "secret", "password", "credential", "auth")


class PanelistError(Exception):
    """A panelist did not answer; `kind` is the reason, in our words and never in the server's."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True)
class Answer:
    """A panelist's answer, when it came and what it cost, in US dollars; None if no price is known."""

    text: str
    model: str
    tokens: Tokens = NO_TOKENS
    cost: float | None = None
    written_at: str = ""


@dataclass(frozen=True)
class ModelPanelist:
    """One `[[panelist]]` of a panel file.

    `timeout` is for one request, in seconds; a request that timed out is not repeated. Passing
    failures are repeated `retries` times, after 1, 2, 4, ... times `pause` seconds, or later when the
    server asks for it (Retry-After); a server that asks for more than `timeout` is given up. `proxy` is
    used when it is named here: proxies of the environment are not.
    """

    __pydantic_config__: ClassVar = contract()

    name: str
    provider: Literal["openai", "anthropic", "google", "offline"]
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    timeout: float = 300.0
    temperature: float | None = None
    max_tokens: int = 16_000
    retries: int = 2
    pause: float = 1.0
    proxy: str = ""

    reads_brief: ClassVar = True

    def __post_init__(self) -> None:
        if self.provider == "offline":
            return  # a script of our own: nothing is asked, and only its name counts
        if not self.model:
            raise ContractError(
                f"panelist {self.name} has no model.", hint='write model = "...".', key="model"
            )
        if self.key_env and not _VARIABLE.fullmatch(self.key_env):
            # Perhaps the key itself: not to be repeated on a screen.
            raise ContractError(
                f"panelist {self.name}: key_env is not the name of an environment variable.",
                hint='write the variable\'s name, such as key_env = "OPENAI_API_KEY", never the key.',
                key="key_env",
            )
        if not self.timeout > 0 or self.retries < 0 or self.max_tokens < 1:
            raise ContractError(
                f"panelist {self.name}: timeout and max_tokens are positive numbers.",
                hint="or leave them out.",
            )
        for key in ("base_url", "proxy"):
            if getattr(self, key) and not _is_plain(getattr(self, key)):
                raise ContractError(
                    f"panelist {self.name}: {key} is not a plain address.",
                    hint=f'such as {key} = "http://localhost:11434/v1", without a name, password or key in it.',
                    key=key,
                )
        url = urlsplit(self.base_url)
        if url.scheme == "http" and self.key_env and url.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ContractError(
                f"panelist {self.name}: the key would travel to {url.hostname} in the clear.",
                hint="use https, or leave key_env out.",
                key="base_url",
            )

    @property
    def address(self) -> str:
        """Where the prompt goes."""
        return self.base_url or BASE_URLS[self.provider]

    def key(self) -> str:
        """The key from the environment; a server of one's own may need none."""
        if self.base_url and not self.key_env:
            # Never the vendor's key: it would go to a server that is not the vendor's.
            return "no-key"
        variable = self.key_env or KEY_VARIABLES[self.provider]
        key = os.environ.get(variable, "")
        if not key:
            raise MissingError(
                f"panelist {self.name} needs a key in the environment variable {variable}.",
                hint=f"export {variable}=..., or leave the panel out to work offline.",
                settings=("panel",),
            )
        return key

    def ready(self) -> None:
        """Raise what a user has to do before this panelist can be asked."""
        require_extra()
        self.key()

    def write(self, conversation: Sequence[str]) -> Answer:
        """The answer to a conversation: our words and the panelist's in turn, ours first and last."""
        require_extra()
        return asyncio.run(self._write(conversation))

    async def _write(self, conversation: Sequence[str]) -> Answer:
        import httpx2
        from pydantic_ai.exceptions import (
            AgentRunError,
            ContentFilterError,
            ModelAPIError,
            ModelConnectionError,
            ModelHTTPError,
            ModelQuotaExceededError,
            ModelRequestTimeout,
            ModelTimeoutError,
        )

        key = self.key()
        async with pinned_client(
            self.provider, self.address, self.model, key, self.timeout, self.proxy
        ) as client:
            model = self._model(client)
            for attempt in range(self.retries + 1):
                asked_to_wait = 0.0
                try:
                    return await self._ask(model, conversation)
                except (ModelRequestTimeout, ModelTimeoutError):
                    raise PanelistError(f"no answer within {self.timeout:g} seconds") from None
                except ContentFilterError:
                    raise PanelistError("the provider refused (content filter)") from None
                except ModelQuotaExceededError:
                    kind, passing = "the quota or credit at the provider is used up", False
                except ModelHTTPError as error:
                    kind, passing = f"HTTP {error.status_code}", error.status_code in _PASSING
                    asked_to_wait = error.retry_after or 0.0
                except ModelConnectionError:
                    kind, passing = "no connection", True
                except ModelAPIError:
                    kind, passing = "the provider's interface failed", False
                except AgentRunError:
                    kind, passing = "an answer that is not one", False
                except (httpx2.HTTPError, ValueError, TypeError, KeyError, AttributeError):
                    # What the libraries let through when a server speaks half of the protocol.
                    kind, passing = "an answer that is not one", False
                if not passing or attempt == self.retries:
                    raise PanelistError(kind)
                if asked_to_wait > self.timeout:
                    # Asking sooner than that would be turned away again.
                    raise PanelistError(f"{kind}, to be asked again after more than {self.timeout:g} seconds")
                await _wait(max(asked_to_wait, self.pause * 2**attempt))
        raise AssertionError("unreachable: every turn of the loop returns or raises")

    async def _ask(self, model: Model[Any], conversation: Sequence[str]) -> Answer:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
        from pydantic_ai.settings import ModelSettings

        messages: list[ModelMessage] = [
            ModelRequest.user_text_prompt(text)
            if place % 2 == 0
            else ModelResponse(parts=[TextPart(text)], model_name=self.model)
            for place, text in enumerate(conversation)
        ]
        # Repeats are ours, so that they are the same for every provider.
        settings = ModelSettings(request_timeout=self.timeout, max_retries=0)
        if self.provider == "anthropic":
            # Its protocol wants a limit; elsewhere a limit may be more than a small server has.
            settings["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            settings["temperature"] = self.temperature
        response = await model_request(model, messages, model_settings=settings, instrument=False)
        try:
            # A server at an address of one's own has no list price, whatever it calls its model.
            cost = None if self.base_url else float(response.cost().total_price)
        except (LookupError, ValueError, AssertionError):
            cost = None
        return Answer(
            text=response.text or "",
            model=response.model_name or self.model,
            tokens=Tokens(response.usage.input_tokens, response.usage.output_tokens),
            cost=cost,
            written_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _model(self, client: Any) -> Model[Any]:
        if self.provider == "openai":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider

            return OpenAIChatModel(
                self.model,
                provider=OpenAIProvider(base_url=self.address, api_key=self.key(), http_client=client),
            )
        if self.provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(
                self.model,
                provider=AnthropicProvider(base_url=self.address, api_key=self.key(), http_client=client),
            )
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(
            self.model,
            provider=GoogleProvider(base_url=self.address, api_key=self.key(), http_client=client),
        )


async def _wait(seconds: float) -> None:
    """Let time pass before a request is repeated."""
    await asyncio.sleep(seconds)


def _is_plain(address: str) -> bool:
    """Whether an address holds no name, password or key."""
    try:
        url = urlsplit(address)
        _ = url.port
    except ValueError:
        return False
    return (
        url.scheme in ("http", "https")
        and bool(url.hostname)
        and not (url.username or url.query or url.fragment)
    )


def require_extra() -> None:
    """Say how to install what asks language models, when it is missing."""
    try:
        import pydantic_ai.direct  # noqa: F401
    except ImportError:
        raise MissingError(
            "asking language models needs libraries that are not installed (the extra `panel`).",
            hint=f"{install_hint('panel')}; without a panel everything runs offline.",
            settings=("panel",),
        ) from None


@dataclass(frozen=True)
class _PanelFile:
    """A panel: a list of [[panelist]] and nothing else."""

    __pydantic_config__: ClassVar = contract(panelists="panelist")

    panelists: tuple[ModelPanelist, ...]

    def __post_init__(self) -> None:
        if not self.panelists:
            raise ContractError("no panelist.", hint="a panel is a list of [[panelist]].", key="panelist")


def read_panel(path: Path) -> tuple[ModelPanelist | str, ...]:
    """The panelists of a TOML file; a string is the name of an offline script."""
    text, content = parse_toml(path, hint="see docs/explanation/panel.md for an example.")
    _refuse_secrets(content, path.name)
    found = checked(content, _PanelFile, path.name, text).panelists
    check_names([panelist.name for panelist in found])
    return tuple(panelist.name if panelist.provider == "offline" else panelist for panelist in found)


def _refuse_secrets(content: dict[str, Any], source: str) -> None:
    """A key in the file is not an unknown entry: it has been in a file."""
    known = {field.name for field in fields(ModelPanelist)}
    entries = content.get("panelist", [])
    for entry in entries if isinstance(entries, list) else []:
        for key in entry if isinstance(entry, dict) else ():
            if key not in known and any(word in key.lower() for word in _SECRET_WORDS):
                raise ContractError(
                    f"{source}: a panelist has a secret in the file ('{key}').",
                    hint='put it into an environment variable and write key_env = "NAME_OF_THE_VARIABLE"; '
                    "then make a new key, since this one has been in a file.",
                    key=key,
                )
