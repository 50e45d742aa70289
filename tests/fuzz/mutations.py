"""Breaks the content of a file: by bytes, by lines and cells, by values of JSON, and inside what is compressed.

Bytes alone seldom get past the first check of a reader, so values are also exchanged where they stand, and archives are
packed again after a member was broken. All choices are made by one `random.Random`, which Hypothesis may drive.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

# Words that mean something to most readers, and values at the edge of what a type can hold.
WORDS: tuple[bytes, ...] = (
    *(b"0 1 2 -1 -0 0.5 1.0 1e300 -1e999 nan NaN inf -Infinity null true false None NA".split()),
    *(b"127 128 255 65536 2147483647 2147483648 9223372036854775807 9223372036854775808".split()),
    *(b"-9223372036854775809 18446744073709551616 99999999999999999999999 1_000 0x1F 007 1,5 50%".split()),
    *(b"1970-01-01 9999-12-31 10000-01-01 0000-00-00 2024-02-30 2024-01-02T03:04:05.678Z 24:60:61".split()),
    *(b"2024-W01-1 2024-01-02T03:04:05+99:99 0001-01-01T00:00:00 -292277-01-21 1e12 1700000000000".split()),
    *(b"learner action outcome time user_id correct skill_name item points score session week key".split()),
    *(b"event_type username context actor object result verb value meta data eventTime Outcome".split()),
    *("é ß İ ﬁ 𝔘 \u202e \ufeff \u2028 \x85 a\u0301".encode().split(b" ")),
    *(b"\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\x00", b"\x1a", b"\x1b[31m"),
    *(b"", b" ", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b"\\", b"#", b"="),
    *(b"{", b"}", b"[", b"]", b"[[", b"]]", b":", b"{}", b"[]", b'"""', b"PAR1", b"PK\x03\x04", b"\x1f\x8b"),
    *(b"[" * 3000, b'{"a":' * 2000, b"9" * 5000, b"a" * 70_000, b"," * 300, b"\n" * 300),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, 1e300, 2**31, 2**63, -(2**63) - 1, 10**30),
    *("", " ", "x", "0", "1", "true", "nan", "inf", "é", "\x00", "\ud800", "9" * 400, "2024-01-02T03:04:05Z"),
    *([], {}, [[]], [None], {"": None}, {"id": 1}, [1, "a", {}], {"en": {"en": []}}),
)
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_CELL = re.compile(rb"[^,;\t\n\r]+")

Chance = random.Random
Donors = Sequence[bytes]


def mutate(content: bytes, chance: Chance, donors: Donors = ()) -> bytes:
    """The content with a few breaks; `donors` are contents of other files, pieces of which may be put in."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        way = chance.choice(_WAYS_OF_PACKED if _packed(content) and chance.random() < 0.7 else _WAYS)
        content = way(content, chance, donors)
    return content


def _packed(content: bytes) -> bool:
    return content.startswith((b"\x1f\x8b", b"PK"))


def _place(content: bytes, chance: Chance) -> int:
    # Readers decide by what stands first.
    end = min(len(content), 200) if chance.random() < 0.3 else len(content)
    return chance.randint(0, end)


def _put_word(content: bytes, chance: Chance, _: Donors) -> bytes:
    at, removed = _place(content, chance), chance.choice((0, 0, 1, 4, 20))
    return content[:at] + chance.choice(WORDS) + content[at + removed :]


def _change_byte(content: bytes, chance: Chance, _: Donors) -> bytes:
    changed = bytearray(content)
    for _n in range(min(len(changed), chance.choice((1, 2, 8)))):
        at = chance.randrange(len(changed))
        changed[at] = chance.choice((changed[at] ^ (1 << chance.randrange(8)), chance.randrange(256), 0, 255))
    return bytes(changed)


def _cut(content: bytes, chance: Chance, _: Donors) -> bytes:
    return content[: _place(content, chance)] if chance.random() < 0.7 else content[_place(content, chance) :]


def _repeat(content: bytes, chance: Chance, _: Donors) -> bytes:
    first, last = sorted((_place(content, chance), _place(content, chance)))
    piece = content[first:last][:5000]
    return content[:last] + piece * chance.choice((1, 1, 2, 30)) + content[last:]


def _move(content: bytes, chance: Chance, _: Donors) -> bytes:
    first, last = sorted((_place(content, chance), _place(content, chance)))
    rest = content[:first] + content[last:]
    at = chance.randint(0, len(rest))
    return rest[:at] + content[first:last] + rest[at:]


def _splice(content: bytes, chance: Chance, donors: Donors) -> bytes:
    donor = chance.choice(donors) if donors else content
    first, last = sorted((_place(donor, chance), _place(donor, chance)))
    at = _place(content, chance)
    return content[:at] + donor[first:last] + content[at:]


def _exchange(pattern: re.Pattern[bytes]) -> Callable[[bytes, Chance, Donors], bytes]:
    """Another word in the place of one that the pattern finds, or of all that are equal to it."""

    def change(content: bytes, chance: Chance, donors: Donors) -> bytes:
        found = list(pattern.finditer(content, 0, 20_000))
        if not found:
            return _put_word(content, chance, donors)
        match = chance.choice(found)
        word = chance.choice((chance.choice(WORDS), chance.choice(found).group(), match.group() * 2))
        if chance.random() < 0.2:
            return content.replace(match.group(), word)[: 4 * len(content) + 100_000]
        return content[: match.start()] + word + content[match.end() :]

    return change


def _lines(content: bytes, chance: Chance, _: Donors) -> bytes:
    """Lines lost, doubled, in another order, or with a cell more or less."""
    lines = content.split(b"\n")
    at = chance.randrange(min(len(lines), 3) if chance.random() < 0.4 else len(lines))
    kind = chance.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[at])
    elif kind == 2:
        chance.shuffle(lines)
    else:
        mark = chance.choice((b",", b";", b"\t"))
        cells = lines[at].split(mark)
        cell = chance.randrange(len(cells))
        if kind == 3:
            del cells[cell]
        elif kind == 4:
            cells.insert(cell, chance.choice(cells))
        else:
            cells[cell] = b'"' + cells[cell] + b'"' * chance.randrange(3)
        lines[at] = mark.join(cells)
    return b"\n".join(lines)


def _json_value(content: bytes, chance: Chance, donors: Donors) -> bytes:
    """Another value, another key, or one key more in the JSON of a file or of one of its lines."""
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    for text in (content, lines[at]):
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            continue
        whole = text is content and len(lines) > 1
        changed = _other_value(tree, chance)
        written = json.dumps(changed, indent=1 if whole else None).encode()
        return written if text is content else b"\n".join([*lines[:at], written, *lines[at + 1 :]])
    return _exchange(_CELL)(content, chance, donors)


def _other_value(tree: Any, chance: Chance) -> Any:
    if not isinstance(tree, dict | list) or not tree or chance.random() < 0.15:
        return chance.choice((*_VALUES, [tree], {"x": tree}, str(tree)))
    key: Any = chance.choice(sorted(tree)) if isinstance(tree, dict) else chance.randrange(len(tree))
    if isinstance(tree, list):
        if chance.random() < 0.2:
            return [*tree, *([tree[key]] * chance.choice((1, 3))), *tree[:0]]
        return [*tree[:key], _other_value(tree[key], chance), *tree[key + 1 :]]
    rest = dict(tree)
    kind = chance.random()
    if kind < 0.1:
        del rest[key]
    elif kind < 0.2:
        rest[chance.choice(("", "x", "id", chance.choice(sorted(tree)) + " "))] = rest.pop(key)
    else:
        rest[key] = _other_value(tree[key], chance)
    return rest


def _inside(content: bytes, chance: Chance, donors: Donors) -> bytes:
    """Break what is compressed and compress it again, so that the breaks get past the check of the archive."""
    if content.startswith(b"\x1f\x8b"):
        try:
            return gzip.compress(mutate(gzip.decompress(content), chance, donors), 1, mtime=0)
        except (OSError, EOFError, zlib.error):
            return _change_byte(content, chance, donors)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    # Whatever Python's own reader makes of a broken archive: break it some more.
    except Exception:
        return _change_byte(content, chance, donors)
    if not members:
        return content
    name = chance.choice(sorted(members))
    if chance.random() < 0.05:
        del members[name]
    else:
        members[name] = mutate(members[name], chance, donors)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data)
    return sink.getvalue()


_WAYS = (
    *(_put_word, _put_word, _change_byte, _cut, _repeat, _move, _splice, _lines, _lines),
    *(_exchange(_NUMBER), _exchange(_CELL), _exchange(_CELL), _json_value, _json_value),
)
_WAYS_OF_PACKED = (_inside, _inside, _inside, _change_byte)
