"""Keystrokes as plain rows to compare with, and small files that hold them."""

from __future__ import annotations

from understudy.keystrokes.formats.reading import KeystrokeSource

START = 1_700_000_000_000  # milliseconds since 1970


def presses(source: KeystrokeSource) -> list[list[tuple[str, int, bool]]]:
    """Per learner: key, milliseconds since the file's first press, and whether it follows the one before."""
    record = source.keystrokes
    first = record.time.min()
    rows = [
        (record.keys[key], int((time - first) // 1_000_000), bool(follows))
        for key, time, follows in zip(record.key, record.time, record.follows, strict=True)
    ]
    return [rows[a:b] for a, b in zip(record.offsets[:-1], record.offsets[1:], strict=True)]


def csv(header: str, *rows: str) -> str:
    return "\n".join([header, *rows]) + "\n"
