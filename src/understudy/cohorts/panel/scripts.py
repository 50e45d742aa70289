"""Scripts as artefacts that a person can review: the source, and where it came from."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.cohorts.panel.brief import repair_request
from understudy.cohorts.panel.findings import LONGEST_SCRIPT, Finding
from understudy.errors import DataError, UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?P<language>[A-Za-z0-9+_-]*)[^\n]*\n(?P<code>.*?)^[ \t]*```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_PYTHON = ("", "python", "py", "python3")
_ENTRY_LINE = re.compile(r"^def generate\b", re.MULTILINE)
# A line that a program has and a letter has not.
_PROGRAM_LINE = re.compile(r"^(?:import \w|from [\w.]+ import |def \w|class \w|\w+ = )", re.MULTILINE)


@dataclass(frozen=True)
class Tokens:
    """How much a panelist read and wrote."""

    read: int = 0
    written: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.read + other.read, self.written + other.written)


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Script:
    """A generator that somebody wrote, with its provenance.

    `author` is the panelist's name in this panel, `model` what it says it is, `prompt_hash` the
    SHA-256 of the exact text it was given (empty when we did not give it one), `cost` in US dollars
    (None: no price is known). `suggestions` from validation were in that text: no epsilon covers them.
    """

    source: str
    author: str
    model: str
    prompt_hash: str
    written_at: str
    tokens: Tokens = NO_TOKENS
    cost: float | None = None
    suggestions: tuple[str, ...] = ()

    def provenance(self) -> dict[str, Any]:
        """Everything but the source, for the file beside it."""
        return {
            "author": self.author,
            "model": self.model,
            "prompt_sha256": self.prompt_hash or None,
            "written_at": self.written_at or None,
            "tokens_read": self.tokens.read,
            "tokens_written": self.tokens.written,
            "cost_usd": self.cost,
            **({"suggestions": list(self.suggestions)} if self.suggestions else {}),
        }


def extract_code(answer: str) -> str | None:
    """The script in a chat's answer: the last fenced block of Python that defines the entry.

    An answer that is a script and nothing else is taken as it is; None when there is neither.
    """
    answer = answer.replace("\r\n", "\n")
    blocks = [match["code"] for match in _FENCE.finditer(answer) if match["language"].lower() in _PYTHON]
    for code in reversed(blocks):
        if _ENTRY_LINE.search(code):
            return code.strip("\n") + "\n"
    if blocks:
        return blocks[-1].strip("\n") + "\n"
    if "```" not in answer and _ENTRY_LINE.search(answer):
        return answer.strip("\n") + "\n"
    return None


def read_script(path: Path) -> str:
    """The script in a file that a person saved from a chat: the code alone, or the whole answer."""
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.", hint="save the script that the chat gave, then name it."
        )
    if path.stat().st_size > 4 * LONGEST_SCRIPT:
        raise UsageError(
            f"{path.name} is too long for a script.",
            hint=f"a script has at most {LONGEST_SCRIPT:,} characters.",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path.name} is not text in UTF-8.", hint="save it as plain text.") from None
    text = text.replace("\r\n", "\n")
    code = extract_code(text)
    if code is not None or ("```" not in text and _PROGRAM_LINE.search(text)):
        _refuse_syntax(path, text, code or text)
    if code is None:
        raise UsageError(
            f"{path.name} holds no function generate(n, label, summary, rng).",
            hint="ask the chat for the script in one fenced block, and save that.",
        )
    return code


def _refuse_syntax(path: Path, text: str, code: str) -> None:
    """Say in which line of the file Python stops understanding; the chat knows the line of its own block."""
    try:
        ast.parse(code)
    except SyntaxError as error:
        line = error.lineno or 1
        before = text[: max(text.find(code.strip("\n")), 0)].count("\n")
        raise DataError(
            f"{path.name}: syntax error, line {before + line}.",
            hint="to paste back to the chat: " + repair_request(Finding("SyntaxError", line)).strip(),
        ) from None
    except (ValueError, RecursionError, MemoryError):
        # Found again by the check of every script, which names it.
        return


def check_names(names: Sequence[str]) -> None:
    """Panelists' names become file names: plain, and different even where case does not count."""
    for name in names:
        # `prompt` and `report` are the folder's own files.
        if not NAME.fullmatch(name) or name.lower() in ("prompt", "report"):
            raise UsageError(
                f"a panelist is called {json.dumps(name)[:80]}.",
                hint="names are letters, digits, - and _, up to 64, and not prompt or report.",
            )
    lowered = [name.lower() for name in names]
    for name in lowered:
        if lowered.count(name) > 1:
            raise UsageError(f"two panelists are called '{name}'.", hint="give each its own name.")
