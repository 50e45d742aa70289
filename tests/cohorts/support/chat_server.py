"""A server on this machine that speaks the three chat protocols, with panelists of every character."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD_SCRIPT = '''\
"""Zero-inflated gamma minutes; the same for every label."""
import numpy as np
import pandas as pd


def generate(n, label, summary, rng):
    columns = summary["schema"]["columns"]
    active = rng.random((n, len(columns))) < 0.6
    minutes = np.minimum(rng.gamma(2.0, 20.0, size=active.shape), 600.0)
    return pd.DataFrame(np.where(active, minutes, 0.0), columns=columns)
'''


def fenced(script):
    return f"Here is the script.\n\n```python\n{script}```\n"


@dataclass
class Reply:
    """One answer: text, or another status, after a delay; `refusal` is the provider's own refusal."""

    text: str = ""
    status: int = 200
    delay: float = 0.0
    refusal: bool = False
    body: bytes | None = None
    location: str = ""


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes
    model: str
    texts: list[str] = field(default_factory=list)


class ChatServer:
    """`replies` gives for each model the list of its replies; the last one is repeated."""

    def __init__(self, replies):
        self.replies = replies
        self.requests = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def of(self, model):
        return [one for one in self.requests if one.model == model]

    def _next(self, model):
        with self._lock:
            replies = self.replies[model]
            return replies[min(len(self.of(model)), len(replies)) - 1]

    def _handler(outer):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                content = json.loads(body)
                if self.path.endswith("/chat/completions"):
                    protocol, model = "openai", content["model"]
                    texts = [one["content"] for one in content["messages"]]
                elif self.path.endswith("/messages"):
                    protocol, model = "anthropic", content["model"]
                    texts = [_joined(one["content"]) for one in content["messages"]]
                else:
                    protocol, model = "google", self.path.rpartition("/")[2].partition(":")[0]
                    texts = [_joined(one["parts"]) for one in content["contents"]]
                with outer._lock:
                    outer.requests.append(Request(self.path, dict(self.headers), body, model, texts))
                reply = outer._next(model)
                time.sleep(reply.delay)
                answer = reply.body
                if answer is None:
                    made = {"error": {"message": "planted-server-text", "type": "server_error"}}
                    if reply.status == 200:
                        made = _BODIES[protocol](reply, model)
                    answer = json.dumps(made).encode()
                try:
                    self.send_response(reply.status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(answer)))
                    if reply.location:
                        self.send_header("location", reply.location)
                    self.end_headers()
                    self.wfile.write(answer)
                except (BrokenPipeError, ConnectionResetError):
                    pass

        return Handler


def _joined(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _openai(reply, model):
    message = {"role": "assistant", "content": None if reply.refusal else reply.text}
    if reply.refusal:
        message["refusal"] = "I cannot help with that."
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200},
    }


def _anthropic(reply, model):
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [] if reply.refusal else [{"type": "text", "text": reply.text}],
        "stop_reason": "refusal" if reply.refusal else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 200},
    }


def _google(reply, model):
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 200, "totalTokenCount": 1200}
    if reply.refusal:
        return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage, "modelVersion": model}
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": reply.text}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": usage,
        "modelVersion": model,
    }


_BODIES = {"openai": _openai, "anthropic": _anthropic, "google": _google}
