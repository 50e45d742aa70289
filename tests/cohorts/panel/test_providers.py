"""Panelists at an endpoint: three protocols against a server on this machine, and what leaves for it."""

import json
import os
import subprocess
import sys

import pytest

from tests.cohorts.support.chat_server import ChatServer, Reply
from understudy.cohorts.panel import providers
from understudy.cohorts.panel.outbound import request_url
from understudy.cohorts.panel.providers import (
    BASE_URLS,
    ModelPanelist,
    PanelistError,
    read_panel,
)
from understudy.cohorts.panel.scripts import Tokens
from understudy.errors import DataError, MissingError, UsageError

PROMPT = 'The prompt: é, "quotes",\n\ttabs, and 数 at the end.\n'
PROVIDERS = ("openai", "anthropic", "google")
KEY = "planted-key-1234"


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("PANEL_KEY", KEY)
    # A vendor's own key must not go to another server, and none of these may redirect a prompt.
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "planted-vendor-key")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/elsewhere")


def panelist(server, provider, **more):
    url = server.url + ("/v1" if provider == "openai" else "")
    settings = {"key_env": "PANEL_KEY", "timeout": 20.0, "pause": 0.01, **more}
    return ModelPanelist("one", provider, "m", base_url=url, **settings)


def failure(one):
    with pytest.raises(PanelistError) as caught:
        one.write([PROMPT])
    # In our words, not in the server's, which could say anything.
    assert "planted" not in str(caught.value)
    return caught.value.kind


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_prompt_is_all_that_is_sent(provider):
    with ChatServer({"m": [Reply("answer é")]}) as server:
        answer = panelist(server, provider, temperature=0.5).write([PROMPT])
        (request,) = server.requests
    assert answer.text == "answer é"
    assert answer.tokens == Tokens(1000, 200)
    assert answer.cost is None
    assert answer.written_at.startswith("20")
    assert request.texts == [PROMPT]
    content = json.loads(request.body)
    assert set(content) <= {
        *("model", "messages", "stream", "temperature", "max_tokens"),
        *("contents", "generationConfig"),
    }
    assert set(content.get("generationConfig", {})) <= {"temperature", "responseModalities"}
    assert headers_of(request) == all_headers(provider, server, request)


KEY_HEADERS = {
    "openai": {"authorization": f"Bearer {KEY}"},
    "anthropic": {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
    "google": {"x-goog-api-key": KEY},
}


def headers_of(request):
    return {name.lower(): value for name, value in request.headers.items()}


def all_headers(provider, server, request):
    """Every header that may leave, with its value."""
    return {
        "host": server.url.removeprefix("http://"),
        "connection": "close",
        "content-length": str(len(request.body)),
        "accept": "application/json",
        "accept-encoding": "gzip",
        "content-type": "application/json",
        "user-agent": "understudy",
        **KEY_HEADERS[provider],
    }


# What the libraries of the vendors and of HTTP read from the environment and would send, or be led by.
TELLING = {
    "OPENAI_ORG_ID": "planted-organisation",
    "OPENAI_PROJECT_ID": "planted-project",
    "OPENAI_ADMIN_KEY": "planted-admin",
    "OPENAI_CUSTOM_HEADERS": "X-Planted: planted-custom\nAuthorization: Bearer planted-custom",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Planted: planted-custom\nX-Api-Key: planted-custom",
    "ANTHROPIC_AUTH_TOKEN": "planted-token",
    "GOOGLE_GENAI_API_VERSION": "planted-version",
    "GOOGLE_CLOUD_PROJECT": "planted-project",
    "GOOGLE_CLOUD_LOCATION": "planted-location",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_HTTP_CLIENT": "aiohttp",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_of_the_environment_is_sent(provider, monkeypatch):
    for name, value in TELLING.items():
        monkeypatch.setenv(name, value)
    with ChatServer({"m": [Reply("answer")]}) as server:
        assert panelist(server, provider).write([PROMPT]).text == "answer"
        (request,) = server.requests
    assert headers_of(request) == all_headers(provider, server, request)
    assert "planted" not in request.path + request.body.decode().replace(PROMPT, "")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_proxy_is_used_only_when_the_panel_names_it(provider, monkeypatch):
    with ChatServer({"m": [Reply("by way of the proxy")]}) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with ChatServer({"m": [Reply("straight")]}) as server:
            assert panelist(server, provider).write([PROMPT]).text == "straight"
            assert proxy.requests == []
            named = panelist(server, provider, proxy=proxy.url)
            assert named.write([PROMPT]).text == "by way of the proxy"
            assert len(server.requests) == 1
        (request,) = proxy.requests
    assert request.path.startswith(server.url)
    assert headers_of(request) == all_headers(provider, server, request)


def test_a_models_name_leads_nowhere_else():
    """A name with a path in it stays a name."""
    with ChatServer({"m": [Reply("answer")]}) as server:
        address = request_url("google", server.url, "models/../../elsewhere?key=1")
    assert address == f"{server.url}/v1beta/models/..%2F..%2Felsewhere%3Fkey%3D1:generateContent"
    assert request_url("google", "https://g", "models/m") == "https://g/v1beta/models/m:generateContent"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_is_sent_in_turns(provider):
    with ChatServer({"m": [Reply("second")]}) as server:
        assert panelist(server, provider).write([PROMPT, "first", "again"]).text == "second"
        (request,) = server.requests
    assert request.texts == [PROMPT, "first", "again"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_key_env_no_key_goes_to_a_server_of_ones_own(provider):
    with ChatServer({"m": [Reply("answer")]}) as server:
        panelist(server, provider, key_env="").write([PROMPT])
        (request,) = server.requests
    assert "planted" not in str(request.headers)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_passing_failure_is_repeated(provider):
    with ChatServer({"m": [Reply(status=500), Reply("answer")]}) as server:
        assert panelist(server, provider).write([PROMPT]).text == "answer"
        assert len(server.requests) == 2


class WaitServer(ChatServer):
    """Says with every failure how long to wait."""

    def __init__(self, replies, **headers):
        self._more = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(replies)

    def _handler(outer):
        class Handler(super()._handler()):
            def end_headers(self):
                for name, value in outer._more.items():
                    self.send_header(name, value)
                super().end_headers()

        return Handler


@pytest.fixture
def waits(monkeypatch):
    """How long a panelist would have waited; the test does not."""
    seconds = []

    async def wait(time):
        seconds.append(time)

    monkeypatch.setattr(providers, "_wait", wait)
    return seconds


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_says_when_to_ask_again(provider, status, waits):
    with WaitServer({"m": [Reply(status=status), Reply("answer")]}, Retry_After="7") as server:
        assert panelist(server, provider).write([PROMPT]).text == "answer"
    assert waits == [7.0]
    waits.clear()
    with WaitServer({"m": [Reply(status=status), Reply("answer")]}, Retry_After="0") as server:
        assert panelist(server, provider, pause=0.5).write([PROMPT]).text == "answer"
    assert waits == [0.5]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("after", ["21", "Fri, 31 Dec 2199 23:59:59 GMT"])
def test_a_server_that_asks_for_more_than_the_timeout_is_given_up(provider, waits, after):
    with WaitServer({"m": [Reply(status=429)]}, Retry_After=after) as server:
        kind = failure(panelist(server, provider, timeout=20.0))
        assert len(server.requests) == 1
    assert kind == "HTTP 429, to be asked again after more than 20 seconds"
    assert waits == []


@pytest.mark.parametrize("after", ["soon", "-5", "nan", "inf", "9" * 400])
def test_a_wait_that_is_not_one_is_left_out(waits, after):
    with WaitServer({"m": [Reply(status=429), Reply("answer")]}, Retry_After=after) as server:
        try:
            assert panelist(server, "openai").write([PROMPT]).text == "answer"
        except PanelistError as error:
            assert error.kind.startswith("HTTP 429, to be asked again")  # noqa: PT017
        else:
            assert waits == [0.01]


def test_an_empty_purse_is_not_asked_again(waits):
    body = json.dumps({"error": {"message": "planted", "type": "x", "code": "insufficient_quota"}}).encode()
    with ChatServer({"m": [Reply(status=429, body=body)]}) as server:
        assert failure(panelist(server, "openai")) == "the quota or credit at the provider is used up"
        assert len(server.requests) == 1


# US dollars for a million tokens read and written, from the vendors' lists.
LIST_PRICES = {
    "openai": ("gpt-4o", 2.5, 10.0),
    "anthropic": ("claude-sonnet-4-5", 3.0, 15.0),
    "google": ("gemini-2.5-flash", 0.3, 2.5),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_cost_is_tokens_times_list_prices(provider, monkeypatch):
    model, read, written = LIST_PRICES[provider]
    monkeypatch.setenv({"google": "GOOGLE_API_KEY"}.get(provider, f"{provider.upper()}_API_KEY"), KEY)
    with ChatServer({model: [Reply("answer")]}) as server:
        monkeypatch.setitem(BASE_URLS, provider, server.url + ("/v1" if provider == "openai" else ""))
        answer = ModelPanelist("one", provider, model, timeout=20.0).write([PROMPT])
        (request,) = server.requests
    assert headers_of(request) == all_headers(provider, server, request)
    assert answer.tokens == Tokens(1000, 200)
    assert answer.cost == pytest.approx((1000 * read + 200 * written) / 1e6)


def test_a_model_without_a_list_price_has_no_cost(monkeypatch):
    with ChatServer({"m": [Reply("answer")]}) as server:
        monkeypatch.setitem(BASE_URLS, "openai", server.url + "/v1")
        assert ModelPanelist("one", "openai", "m", timeout=20.0).write([PROMPT]).cost is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_lasting_failure_ends_after_the_repeats(provider):
    with ChatServer({"m": [Reply(status=500)]}) as server:
        assert failure(panelist(server, provider, retries=2)) == "HTTP 500"
        assert len(server.requests) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_wrong_request_is_not_repeated(provider, status):
    with ChatServer({"m": [Reply(status=status)]}) as server:
        assert failure(panelist(server, provider)) == f"HTTP {status}"
        assert len(server.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_slow_panelist_is_given_up(provider):
    with ChatServer({"m": [Reply("answer", delay=3.0)]}) as server:
        assert failure(panelist(server, provider, timeout=0.3)) == "no answer within 0.3 seconds"
        assert len(server.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_redirect_is_not_followed(provider):
    with ChatServer({"m": [Reply("stolen")]}) as other:
        target = other.url + "/v1/chat/completions"
        with ChatServer({"m": [Reply(status=307, location=target)]}) as server:
            failure(panelist(server, provider, retries=0))
        assert other.requests == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b"{}", b'{"choices": []}', b"<html>planted</html>"]
)
def test_garbage_instead_of_an_answer(provider, body):
    with ChatServer({"m": [Reply(body=body)]}) as server:
        one = panelist(server, provider, retries=0)
        try:
            assert one.write([PROMPT]).text == ""
        except PanelistError as error:
            assert "planted" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refusal_is_an_empty_answer_or_said_so(provider):
    with ChatServer({"m": [Reply(refusal=True)]}) as server:
        try:
            answer = panelist(server, provider, retries=0).write([PROMPT])
        except PanelistError as error:
            assert error.kind in ("the provider refused (content filter)", "an answer that is not one")  # noqa: PT017
        else:
            assert "```" not in answer.text


def test_nobody_there():
    one = ModelPanelist("one", "openai", "m", base_url="http://127.0.0.1:9/v1", pause=0.01, timeout=5)
    assert failure(one) == "no connection"


def test_a_key_that_is_missing_is_named(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MissingError, match="OPENAI_API_KEY"):
        ModelPanelist("one", "openai", "m").ready()
    assert {ModelPanelist("one", name, "m").address for name in PROVIDERS} == set(BASE_URLS.values())


PANEL = """
[[panelist]]
name = "first"
provider = "openai"
model = "gpt-x"

[[panelist]]
name = "local"
provider = "openai"
model = "small"
base_url = "http://localhost:11434/v1"
timeout = 600
temperature = 0.7

[[panelist]]
name = "copula"
provider = "offline"
"""


def test_a_panel_is_read_from_toml(tmp_path):
    path = tmp_path / "panel.toml"
    path.write_text(PANEL)
    first, local, own = read_panel(path)
    assert first == ModelPanelist("first", "openai", "gpt-x")
    assert local == ModelPanelist(
        "local", "openai", "small", base_url="http://localhost:11434/v1", timeout=600, temperature=0.7
    )
    assert own == "copula"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('api_key = "planted"', "secret"),
        ('key = "planted"', "secret"),
        ('auth_token = "planted"', "secret"),
        ('key_env = "sk-planted"', "not the name of an environment variable"),
        ('base_url = "https://planted:planted@example.org/v1"', "plain address"),
        ('base_url = "https://example.org/v1?key=planted"', "plain address"),
        ('base_url = "ftp://example.org"', "plain address"),
        ('base_url = "http://[planted/v1"', "plain address"),
        ('proxy = "http://planted:planted@example.org:3128"', "plain address"),
        ('base_url = "http://example.org/v1"\nkey_env = "PANEL_KEY"', "in the clear"),
        ("colour = 3", "unknown key 'colour'"),
        ("timeout = 0", "positive"),
        ('timeout = "long"', "line 5: `timeout` is not a number"),
        ("retries = 1.5", "line 5: `retries` is not a whole number"),
        ('provider2 = "x', "not TOML"),
    ],
)
def test_a_panel_that_is_wrong_is_refused_without_its_secrets(tmp_path, entry, words):
    path = tmp_path / "panel.toml"
    path.write_text(f'[[panelist]]\nname = "first"\nprovider = "openai"\nmodel = "m"\n{entry}\n')
    with pytest.raises(DataError, match=words) as caught:
        read_panel(path)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    "content", ["", "[panelist]\n", "title = 1\n" + PANEL, "panelist = [1]", PANEL + PANEL, "\xff"]
)
def test_something_else_than_a_panel_is_refused(tmp_path, content):
    path = tmp_path / "panel.toml"
    path.write_text(content, encoding="latin-1")
    with pytest.raises((DataError, UsageError)):
        read_panel(path)


def test_a_missing_extra_is_one_sentence_with_the_command():
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from understudy.cohorts.panel.providers import require_extra\n"
        "from understudy.errors import MissingError\n"
        "try:\n    require_extra()\nexcept MissingError as error:\n    print(error.message, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == (
        "asking language models needs libraries that are not installed (the extra `panel`). in the folder of "
        "Understudy's source, run: python -m pip install -e '.[panel]'; without a panel everything runs offline.\n"
    )


def test_nothing_is_sent_anywhere_else():
    """Every connection and every name that is looked up while a panelist writes, by Python's own audit hook."""
    code = """
import os, sys
seen = []
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request", "http.client.connect"):
        seen.append((event, arguments[1] if event == "socket.connect" else arguments[0]))
    if event in ("subprocess.Popen", "os.system", "os.fork", "os.posix_spawn"):
        seen.append((event, arguments[1] if event == "subprocess.Popen" else ""))
sys.addaudithook(hook)
import time
from understudy.cohorts.panel.providers import ModelPanelist
for provider in ("openai", "anthropic", "google"):
    url = sys.argv[1] + ("/v1" if provider == "openai" else "")
    ModelPanelist("one", provider, "m", base_url=url).write(["prompt"])
time.sleep(0.5)
for event, what in seen:
    print(event, what)
"""
    with ChatServer({"m": [Reply("answer")]}) as server:
        done = subprocess.run(
            [sys.executable, "-c", code, server.url],
            capture_output=True,
            text=True,
            # Even where somebody's tracing is set up for everything that runs.
            env={
                **os.environ,
                "LOGFIRE_TOKEN": "planted",
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            },
        )
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 3
    port = server.url.rpartition(":")[2]
    connections = [line for line in done.stdout.splitlines() if line.startswith("socket.connect")]
    assert connections == [f"socket.connect ('127.0.0.1', {port})"] * 3
    others = [line for line in done.stdout.splitlines() if not line.startswith("socket.connect")]
    # openai's library asks what machine this is, for a header that is taken away again.
    assert set(others) <= {
        *("socket.getaddrinfo 127.0.0.1", "socket.getaddrinfo b'127.0.0.1'"),
        "subprocess.Popen ['uname', '-p']",
    }
