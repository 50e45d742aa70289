"""Contracts of files: TOML and JSON read into dataclasses or pydantic models.

An error names the file, the line and the key, and never a value. The contract of a file is a class whose
annotations say the form and whose `__post_init__` checks what has a meaning, raising `ContractError`.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from understudy.errors import DataError, UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Contract = TypeVar("Contract")
Location = tuple[int | str, ...]


class ContractError(DataError, ValueError):
    """A file, or a value made in Python, that breaks a contract; `key` is the key of the file that is wrong."""

    code = "contract"


def contract(**keys: str) -> dict[str, Any]:
    """The pydantic settings of a contract: `__pydantic_config__ = contract(n_weeks="weeks")`.

    Unknown keys are errors, nothing is converted (a text is no number), and no error shows an input. `keys` are
    the names in the file of fields that have another name in Python.
    """
    return {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "hide_input_in_errors": True,
        "alias_generator": lambda field: keys.get(field, field),
    }


def read_toml(path: Path, form: type[Contract], *, hint: str = "") -> Contract:
    """What a TOML file declares; `hint` says what to do where there is no such file."""
    text, content = parse_toml(path, hint=hint, keys=_all_keys(form))
    return checked(content, form, path.name, text)


def read_json(path: Path, form: type[Contract], *, hint: str = "") -> Contract:
    """What a JSON file holds; `hint` says what to do where there is no such file."""
    text, content = parse_json(path, hint=hint)
    return checked(content, form, path.name, text)


def read_text(path: Path, *, hint: str = "") -> str:
    """The text of a file."""
    try:
        if not path.is_file():
            raise UsageError(f"there is no file {path}.", hint=hint, code="no-such-file")
        return path.read_text(encoding="utf-8-sig")
    except OSError:
        raise UsageError(f"'{path.name}' cannot be opened.", hint="check who may read the file.") from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path.name} is not text in UTF-8.", hint="save it as plain text in UTF-8.", code="not-text"
        ) from None


def parse_toml(path: Path, *, hint: str = "", keys: Collection[str] = ()) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and what it holds, in any form; an error may name the key it is in, if known."""
    text = read_text(path, hint=hint)
    try:
        return text, tomllib.loads(text)
    # A number of thousands of digits, or a file of brackets only, is more than the parser takes.
    except (ValueError, RecursionError) as error:
        # The error's own words may quote the file, which may be any file; its place is enough.
        found = re.search(r"line (\d+), column (\d+)", str(error))
        lines = text.splitlines()
        line = int(found.group(1)) if found else max(len(lines), 1)
        place = f"line {line}, column {found.group(2)}" if found else f"line {line}"
        key = _ASSIGNED.match(lines[line - 1]) if line <= len(lines) else None
        named = f", in `{key.group(1)}`," if key and key.group(1) in keys else ""
        if key and not lines[line - 1][key.end() :].partition("#")[0].strip():
            raise DataError(
                f"{path.name}, {place}{named} has no value.",
                hint="fill the value in behind the =, or write a # before the line to leave it out.",
                code="not-toml",
                file=path.name,
                line=line,
            ) from None
        raise DataError(
            f"{path.name}, {place}{named} is not TOML.",
            hint="check the quotes and brackets there, and in the line before.",
            code="not-toml",
            file=path.name,
            line=line,
        ) from None


def parse_json(path: Path, *, hint: str = "") -> tuple[str, Any]:
    """The text of a JSON file and what it holds, in any form."""
    text = read_text(path, hint=hint)
    try:
        return text, json.loads(text)
    # A number of thousands of digits, or a file of brackets only, is more than the parser takes.
    except (ValueError, RecursionError) as error:
        place = error if isinstance(error, json.JSONDecodeError) else None
        raise DataError(
            f"{path.name}{f', line {place.lineno}, column {place.colno}' if place else ''}: not JSON.",
            hint="check the quotes and brackets there, and in the line before.",
            code="not-json",
            file=path.name,
            line=place.lineno if place else None,
        ) from None


def checked(content: Any, form: type[Contract], source: str, text: str = "") -> Contract:
    """Parsed content as its contract takes it; the error names `source` and, found in `text`, the line."""
    from pydantic import ValidationError

    adapter = _adapter(form)
    try:
        # As JSON, since there a list may stand for a tuple and still a text for no number.
        return adapter.validate_json(json.dumps(content, default=str))
    except ValidationError as error:
        raise _as_contract_error(error, adapter, source, text) from None


def _adapter(form: type[Contract]) -> TypeAdapter[Contract]:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def _all_keys(form: type[Any]) -> set[str]:
    schema = _adapter(form).json_schema()
    return {key for node in (schema, *schema.get("$defs", {}).values()) for key in node.get("properties", ())}


_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")


def _as_contract_error(
    error: ValidationError, adapter: TypeAdapter[Any], source: str, text: str
) -> ContractError:
    faults = error.errors(include_input=False, include_url=False)
    # A misspelled key that is required is unknown and missing: the first says more.
    fault = min(faults, key=lambda fault: fault["type"] not in _UNKNOWN)
    where: Location = fault["loc"]
    while where and not isinstance(where[-1], str):
        where = where[:-1]  # an element of a list: the key of the list is wrong
    raised = fault.get("ctx", {}).get("error")
    schema = adapter.json_schema()
    if isinstance(raised, ContractError):
        message, hint = raised.message, raised.hint
        where = (*fault["loc"], *filter(None, [raised.fields.get("key")]))
    elif fault["type"] in _UNKNOWN:
        known = _node(schema, where[:-1]).get("properties", ())
        near = difflib.get_close_matches(str(where[-1]), known, 1)
        message = f"unknown key '{where[-1]}'."
        hint = f"did you mean '{near[0]}'?" if near else f"the keys are {', '.join(known)}."
    elif fault["type"] == "missing" and where == fault["loc"]:
        message, hint = f"`{where[-1]}` is missing.", f"`{where[-1]}` is {_in_words(_node(schema, where))}."
    else:
        form, name = _in_words(_node(schema, where)), f"`{where[-1]}`" if where else "the content"
        message, hint = f"{name} is not {form}.", f"{name} is {form}."
    line = line_of(text, where)
    place = source if line is None else f"{source}, line {line}"
    return ContractError(
        f"{place}: {message}", hint=hint, file=source, line=line, key=where[-1] if where else ""
    )


def _node(schema: Mapping[str, Any], where: Location) -> Mapping[str, Any]:
    """The part of a JSON schema that is about a place."""
    node: Mapping[str, Any] = schema
    for place in (*where, None):
        while "$ref" in node or "anyOf" in node:
            if "$ref" in node:
                node = schema["$defs"][node["$ref"].rpartition("/")[2]]
            else:
                node = next((choice for choice in node["anyOf"] if choice.get("type") != "null"), {})
        if place is not None:
            parts = node.get("properties", {})
            node = parts.get(place, {}) if isinstance(place, str) else node.get("items", {})
    return node


_NOUNS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "truth value"}


def _in_words(node: Mapping[str, Any]) -> str:
    """What a contract wants at a place, such as "a list of two whole numbers"."""
    if "enum" in node:
        return " or ".join(f"'{choice}'" for choice in node["enum"])
    kind = node.get("type", "")
    if kind == "array":
        items = node.get("prefixItems") or [node.get("items", {})]
        noun = _NOUNS.get(items[0].get("type", ""), "table")
        many = {2: "two ", 3: "three "}.get(len(items), "one or more " if node.get("minItems") == 1 else "")
        return f"a list of {many}{noun}s"
    bounds = (
        f" from {node['minimum']:g} to {node['maximum']:g}" if {"minimum", "maximum"} <= set(node) else ""
    )
    return {"boolean": "true or false", "object": "a table of keys"}.get(
        kind, f"a {_NOUNS.get(kind, 'value of another kind')}{bounds}"
    )


def line_of(text: str, where: Location) -> int | None:
    """The line of a TOML or JSON text on which the value at `where` stands, or the nearest thing around it."""
    found = _toml_places(text) if not text.lstrip().startswith(("{", "[{", "[\n")) else _json_places(text)
    lines: dict[Location, int] = {}
    for place, line in found:
        lines.setdefault(place, line)
    for n in range(len(where), 0, -1):
        if where[:n] in lines:
            return lines[where[:n]]
    return None


_ASSIGNED = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*=""")
_HEADER = re.compile(r"""\s*(\[\[?)\s*([A-Za-z0-9_."'\s-]+?)\s*\]\]?\s*(?:#.*)?$""")


def _toml_places(text: str) -> Iterator[tuple[Location, int]]:
    """Where tables begin and keys are assigned, by their place in the content."""
    counts: dict[Location, int] = {}
    table: Location = ()
    inside = False
    for at, line in enumerate(text.splitlines(), 1):
        begins_inside = inside
        inside ^= bool((line.count('"""') + line.count("'''")) % 2)
        if begins_inside:
            continue  # words of a long text
        if header := _HEADER.match(line):
            table = ()
            parts = [part.strip(" \"'") for part in header.group(2).split(".")]
            for depth, part in enumerate(parts, 1):
                table = (*table, part)
                if depth == len(parts) and header.group(1) == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    yield table, at
                if table in counts:
                    table = (*table, counts[table])
            yield table, at
        elif assigned := _ASSIGNED.match(line):
            yield (*table, assigned.group(1)), at


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|\n|[^\s\[\]{}:,"]+')


def _json_places(text: str) -> Iterator[tuple[Location, int]]:
    """Where keys and elements of lists stand, by their place in the content."""
    # For each open bracket the place inside it: an index of a list, a key of an object or None before one.
    stack: list[int | str | None] = []
    line, last, is_next = 1, "", False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n":
            line += 1
            continue
        if is_next and token != "]":
            yield tuple(place for place in stack if place is not None), line
        is_next = False
        if token in "]}" and stack:
            stack.pop()
        elif token in "[{":
            stack.append(0 if token == "[" else None)
            is_next = token == "["
        elif token == "," and stack:
            place = stack[-1]
            is_next = isinstance(place, int)
            stack[-1] = place + 1 if isinstance(place, int) else None
        elif token == ":" and stack:
            stack[-1] = json.loads(last)
            yield tuple(place for place in stack if place is not None), line
        last = token
