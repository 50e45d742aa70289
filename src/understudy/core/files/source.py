"""A file's bytes and text: opened, unpacked and decoded, with errors that name a line and never a value."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from understudy.core.files.databases.addresses import refuse_address
from understudy.core.files.notes import Count, CountingNote
from understudy.errors import DataError, UnderstudyError, UsageError

GZIP_MAGIC = b"\x1f\x8b"
# Tab, line feed, form feed and carriage return occur in text; these do not.
CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")


@dataclass(frozen=True, repr=False)
class Source:
    """The unpacked content of a file, and the name by which messages call it.

    Of a file that is read in blocks it is the header and some lines further down: `above` lines of the file come before
    these.
    """

    name: str
    data: bytes
    above: int = 1


@dataclass(frozen=True, repr=False)
class Text:
    """A file's text as UTF-8 with line feeds, and what had to be done to get it."""

    name: str
    data: bytes
    notes: tuple[str, ...] = ()
    above: int = 1
    """See `Source`."""

    @property
    def lines(self) -> list[str]:
        """The lines, without what may follow the last line feed if that is nothing."""
        lines = self.data.decode().split("\n")
        return lines[:-1] if lines[-1] == "" else lines


@dataclass(frozen=True)
class Guess:
    """Something about a file that a reader decided by looking at learners' rows.

    `what` reads on from "it was guessed"; `settings` declare it instead, or `hint` says what to change in the file.
    `because` replaces both where a declaration that was made does not help.
    """

    what: str
    settings: tuple[str, ...] = ()
    hint: str = ""
    declare: Mapping[str, str | bool] = field(default_factory=dict)
    """The guess itself, as values of settings: what a user would declare if it is right."""
    because: str = ""


def refuse_guesses(guesses: Sequence[Guess]) -> None:
    """Refuse what no guarantee can rest on: what one learner's rows decide would change how all others are read."""
    if guesses:
        raise UsageError(
            f"{guesses[0].because or 'it was guessed ' + guesses[0].what}; a guarantee holds only if no learner's rows "
            "decide how a file is read.",
            hint=guesses[0].hint or "declare it.",
            code="guessed",
            settings=guesses[0].settings,
            **({"declare": dict(guesses[0].declare)} if guesses[0].declare else {}),
        )


def open_source(path: Path | str) -> Source:
    """Read a file whole, unpacking gzip; an absent file is wrong use, a broken one bad data."""
    place = Path(path)
    refuse_address(place)
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"there is no file '{place}'.", hint="check the path.", code="no-such-file"
        ) from None
    except IsADirectoryError:
        raise UsageError(f"'{place}' is a folder, not a file.", hint="give one file of the folder.") from None
    except (OSError, ValueError):
        raise UsageError(f"'{place.name}' cannot be opened.", hint="check who may read the file.") from None
    if data.startswith(GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise damaged_gzip(place.name) from None
    if not data or data.isspace():
        raise DataError(f"{place.name}: the file is empty.", hint="check the export.")
    return Source(place.name, data)


def damaged_gzip(name: str) -> DataError:
    """The error of a file that cannot be unpacked."""
    return DataError(
        f"{name}: the gzip compression is damaged or cut short.",
        hint="copy or download the file again; `gzip -t` checks whether it is whole.",
    )


def decode(source: Source, *, latin: bool) -> Text:
    """The file as UTF-8 text with line feeds.

    UTF-8 comes first, then UTF-16 if its mark is there; with `latin`, a line that is not UTF-8 is taken
    for Windows-1252, which holds Latin-1: that line only, so that no learner's row decides how others
    are read. Control bytes show that the file is no text at all.
    """
    data, notes = source.data, []
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError:
            raise DataError(
                f"{source.name}: the file begins like UTF-16 text, but is not UTF-16 throughout.",
                hint="save it as UTF-8.",
            ) from None
        notes.append("The text was UTF-16.")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if (start := _first_bad_byte(data)) is not None:
        data, note = _from_latin(source, data, start, allowed=latin)
        notes.append(note)
    if (zero := data.find(b"\0")) >= 0:
        raise _no_text(source, data, zero)
    if b"\r" in data:
        if b"\n" not in data:
            notes.append("Lines ended with a carriage return alone.")
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data[:4096].decode(errors="ignore").strip() and not data.decode().strip():
        raise DataError(f"{source.name}: the file is empty.", hint="check the export.")
    return Text(source.name, data, tuple(notes), source.above)


def first_lines(text: Text, n_lines: int) -> list[str]:
    """The first lines that are not blank, without decoding the whole text."""
    lines: list[str] = []
    begin = 0
    while len(lines) < n_lines and begin < len(text.data):
        end = text.data.find(b"\n", begin)
        end = len(text.data) if end < 0 else end
        line = text.data[begin:end].decode()
        if line.strip():
            lines.append(line)
        begin = end + 1
    return lines


def _first_bad_byte(data: bytes) -> int | None:
    # A function of its own: the decoder's error holds the data, and is gone when this returns.
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _from_latin(source: Source, data: bytes, start: int, *, allowed: bool) -> tuple[bytes, str]:
    if control := CONTROL_BYTES.search(data):
        raise _no_text(source, data, min(control.start(), start))
    if not allowed:
        raise DataError(
            f"{source.name}: line {_line_at(source, data, start)} holds bytes that are not UTF-8.",
            hint="save the file as UTF-8.",
        )
    lines = data.split(b"\n")
    other = [number for number, line in enumerate(lines) if _first_bad_byte(line) is not None]
    for number in other:
        try:
            lines[number] = lines[number].decode("cp1252").encode()
        except UnicodeDecodeError:
            line = line_in_file(number + 1, source.above)
            raise DataError(
                f"{source.name}: line {line} holds bytes that are neither UTF-8 nor Latin-1.",
                hint="save the file as UTF-8.",
            ) from None
    note = CountingNote("Read as Windows-1252 (Latin-1): ", Count(len(other), "line"), " not in UTF-8.")
    return b"\n".join(lines), note


def line_in_file(line: int, above: int) -> int:
    """The line of a file that a line of a block is; the block's first one is the file's header (see `Source`)."""
    return line if line == 1 else line + above - 1


def _no_text(source: Source, data: bytes, position: int) -> DataError:
    return DataError(
        f"{source.name}: line {_line_at(source, data, position)} holds bytes that do not occur in text.",
        hint="the file may be in another format or damaged; open it in a text editor and save it as UTF-8.",
    )


def _line_at(source: Source, data: bytes, position: int) -> int:
    before = data[:position]
    return line_in_file(1 + (before.count(b"\n") or before.count(b"\r")), source.above)


@contextmanager
def keeping_values_inside(
    message: str, *, hint: str, also: type[MemoryError] | tuple[()] = ()
) -> Iterator[None]:
    """Turn whatever a library raises into a DataError: the library's message may quote a learner's value.

    Rust libraries raise panics that are no `Exception`, hence the wide net. A lack of memory is the machine's matter,
    unless the caller wants that `also`: where a file says how much it takes.
    """
    try:
        yield
    except also:
        raise DataError(message, hint=hint) from None
    except (UnderstudyError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException:
        raise DataError(message, hint=hint) from None
