"""Programs in files, folders and tables: read, given to `scrub_texts` learner by learner, written.

Nothing else of the input is written: of a table the text, a pseudonym and the columns that were
asked for; of a folder the programs, under replaced names.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.core.files.delimited import guess_separator, read_delimited
from understudy.core.files.identifiers import EMAIL
from understudy.core.files.source import decode, open_source
from understudy.core.files.writing import check_not_input, new_folder, write_bytes
from understudy.errors import DataError, UsageError
from understudy.keystrokes.scrub.languages import SUFFIXES, Language, language_of
from understudy.keystrokes.scrub.people import People
from understudy.keystrokes.scrub.replacements import Replacements
from understudy.keystrokes.scrub.scrubbing import Report, Scrubbed, Wanted, scrub_texts

_TEXT_NAMES = ("code", "sourcecode", "source", "text", "snapshot", "content", "program", "codestate")
_TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, repr=False)
class Scrubber:
    """How to replace: whom the list names, what is wanted, and where chance comes from."""

    people: People = field(default_factory=People)
    wanted: Wanted = field(default_factory=Wanted)
    keep_shape: bool = True
    across: bool = False
    chance: random.Random = field(default_factory=random.SystemRandom)

    def scrub(
        self, texts: Sequence[str], languages: Sequence[Language], more: People, titles: Sequence[str] = ()
    ) -> Scrubbed:
        """One learner's texts, with replacements of their own."""
        replacements = Replacements(self.chance, keep_shape=self.keep_shape)
        people = self.people | more
        return scrub_texts(texts, languages, replacements, people=people, wanted=self.wanted, titles=titles)


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table are read; all others are dropped."""

    text: str | None = None
    learner: str | None = None
    keep: tuple[str, ...] = ()


def is_table(path: Path) -> bool:
    """Whether a file is a table of texts rather than a program."""
    return _suffix(path) in _TABLES


def scrub_file(path: Path, out: Path, scrubber: Scrubber, language: str | None = None) -> Report:
    """One program; the result has the name that the user gives it."""
    check_not_input(out, path)
    name = language or SUFFIXES.get(path.suffix.lower())
    if name is None:
        raise UsageError(
            f"'{path.name}' does not tell its language by its name.", hint="give --language java or python."
        )
    scrubbed = scrubber.scrub([_program(path)], [language_of(name)], People())
    _write(out, scrubbed.texts[0])
    return scrubbed.report


def scrub_folder(path: Path, out: Path, scrubber: Scrubber, language: str | None = None) -> Report:
    """All programs below a folder. A folder in it holds one learner's; its name becomes a pseudonym."""
    files = [
        (file, SUFFIXES[file.suffix.lower()])
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in SUFFIXES and file.is_file() and not file.is_symlink()
    ]
    files = [(file, name) for file, name in files if language in (None, name)]
    if not files:
        raise DataError(
            f"{path}: the folder holds no {language or 'java or python'} program.",
            hint="programs are files that end in .java or .py.",
        )
    learners: dict[str, list[tuple[Path, str]]] = {}
    for file, name in files:
        parts = file.relative_to(path).parts
        learners.setdefault(parts[0] if len(parts) > 1 else "", []).append((file, name))
    folders = [folder for folder in learners if folder]
    pseudonyms = dict(zip(folders, _pseudonyms(len(folders), scrubber.chance), strict=True)) | {"": ""}
    groups = [list(learners)] if scrubber.across else [[folder] for folder in learners]
    report = Report()
    with new_folder(out) as temporary:
        for group in groups:
            entries = [(folder, *entry) for folder in group for entry in learners[folder]]
            titles = [
                str(file.relative_to(path / folder).with_suffix("").as_posix()) for folder, file, _ in entries
            ]
            scrubbed = scrubber.scrub(
                [_program(file) for _, file, _ in entries],
                [language_of(name) for _, _, name in entries],
                People.of_ids(folders),
                titles,
            )
            report += scrubbed.report
            for (folder, file, _), title, text in zip(entries, scrubbed.titles, scrubbed.texts, strict=True):
                place = temporary / pseudonyms[folder] / (title + file.suffix.lower())
                place.parent.mkdir(parents=True, exist_ok=True)
                _write(place, text)
    return Report(report.n_texts, report.n_broken, len(learners), report.replaced)


def scrub_table(
    path: Path, out: Path, scrubber: Scrubber, columns: TableColumns, language: str | None = None
) -> Report:
    """A table with a text in each row, as snapshots have it; rows come out by pseudonym."""
    check_not_input(out, path)
    if language is None:
        raise UsageError(
            "a table does not tell the language of its programs.", hint="give --language java or python."
        )
    rows, names = _read_table(path, columns, across=scrubber.across)
    ids = list(dict.fromkeys(row[0] for row in rows))
    _check_kept(path, rows, columns.keep, scrubber.people, ids)
    pseudonyms = dict(zip(ids, _pseudonyms(len(ids), scrubber.chance), strict=True))
    groups: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        groups.setdefault("" if scrubber.across else row[0], []).append(at)
    report, texts = Report(), [""] * len(rows)
    known, spoken = People.of_ids(ids), language_of(language)
    for group in groups.values():
        scrubbed = scrubber.scrub([rows[at][1] for at in group], [spoken] * len(group), known)
        report += scrubbed.report
        for at, text in zip(group, scrubbed.texts, strict=True):
            texts[at] = text
    with_learner = names[0] is not None
    header = [*(["learner"] if with_learner else []), *columns.keep, names[1]]
    # In the order of pseudonyms: the order of a class list would tell who is who.
    order = sorted(range(len(rows)), key=lambda at: pseudonyms[rows[at][0]])
    content = [
        [*([pseudonyms[rows[at][0]]] if with_learner else []), *rows[at][2], texts[at]] for at in order
    ]
    _write_table(
        out, header, content, as_json=_suffix(out if is_table(out) else path).startswith((".j", ".n"))
    )
    return Report(report.n_texts, report.n_broken, len(ids), report.replaced)


Row = tuple[str, str, list[Any]]


def _read_table(
    path: Path, columns: TableColumns, *, across: bool
) -> tuple[list[Row], tuple[str | None, str]]:
    text = decode(open_source(path), latin=True)
    if _suffix(path) in (".jsonl", ".ndjson", ".json"):
        records = [
            _record(line, number, path) for number, line in enumerate(text.lines, start=1) if line.strip()
        ]
        header = list(dict.fromkeys(key for record in records for key in record))
        learner, program = _choose(header, columns, path, across=across)
        return [
            (
                str(record.get(learner, "")) if learner is not None else "",
                _as_text(record.get(program), path, number),
                [record.get(name) for name in columns.keep],
            )
            for number, record in enumerate(records, start=1)
        ], (learner, program)
    separator = "\t" if _suffix(path) == ".tsv" else guess_separator(text.data.split(b"\n", 1)[0].decode())
    table = read_delimited(text, separator)
    learner, program = _choose(table.names, columns, path, across=across)
    wanted = {"text": table.names.index(program)}
    if learner is not None:
        wanted["learner"] = table.names.index(learner)
    wanted |= {f"keep {at}": table.names.index(name) for at, name in enumerate(columns.keep)}
    frame = table.read(wanted).fill_null("")
    ids = frame["learner"].to_list() if learner is not None else [""] * frame.height
    kept = [frame[f"keep {at}"].to_list() for at in range(len(columns.keep))]
    rows = [
        (str(one), program_text, [column[at] for column in kept])
        for at, (one, program_text) in enumerate(zip(ids, frame["text"].to_list(), strict=True))
    ]
    return rows, (learner, program)


def _record(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise DataError(
            f"{path.name}: line {number} is no JSON object.", hint="give one object a line (JSON lines)."
        )
    return record


def _as_text(value: Any, path: Path, number: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"{path.name}: record {number} has no text in the column of programs.",
            hint="choose the column that holds the source text with --column.",
        )
    return value


def _choose(
    names: Sequence[str], columns: TableColumns, path: Path, *, across: bool
) -> tuple[str | None, str]:
    """The columns of the learner and of the text: as asked, or by a name that is known."""
    for name in (columns.text, columns.learner, *columns.keep):
        if name is not None and name not in names:
            # A user's word, not the file's: it may be shown.
            raise DataError(f"{path.name}: there is no column '{name}'.", hint="check its spelling.")
    text = columns.text or _known(names, _TEXT_NAMES)
    if text is None:
        raise DataError(
            f"{path.name}: no column is known to hold source text.", hint="name it with --column."
        )
    learner = columns.learner or _known([name for name in names if name != text], KNOWN_NAMES["learner"])
    if learner is None and not across:
        raise DataError(
            f"{path.name}: no column is known to name the learner.",
            hint="name it with --learner, or give --across to replace alike in all rows.",
        )
    header = [*(["learner"] if learner else []), *columns.keep, text]
    if learner in (text, *columns.keep) or len(set(header)) < len(header):
        raise UsageError(
            "asked to use one column twice, or to keep the column that names the learner.",
            hint="learners get pseudonyms; keep a column of order or time.",
        )
    return learner, text


def _known(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    plains = [plain(name) for name in names]
    return next((names[plains.index(name)] for name in wanted if name in plains), None)


def _check_kept(
    path: Path, rows: Sequence[Row], keep: tuple[str, ...], people: People, ids: list[str]
) -> None:
    """A kept column leaves as it is: refuse one that points at people."""
    names = {one for one in ids if not one.isdigit()} | people.numbers
    letters, email = People(people.anywhere, people.words), re.compile(EMAIL)
    for at, column in enumerate(keep):
        values = {str(row[2][at]) for row in rows}
        n_bad = sum(v.strip() in names or bool(email.search(v)) or letters.is_named(v) for v in values)
        if n_bad:
            raise DataError(
                f"{path.name}: column '{column}' is to be kept, but {n_bad} of its values point at people.",
                hint="keep a column of order or time only.",
            )


def _pseudonyms(n_learners: int, chance: random.Random) -> list[str]:
    """Numbers dealt out by chance, as wide as the largest."""
    width = len(str(n_learners))
    dealt = [f"learner-{number:0{width}d}" for number in range(1, n_learners + 1)]
    chance.shuffle(dealt)
    return dealt


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _program(path: Path) -> str:
    """A program's text with its own line ends; an empty one is a program too."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError:
        raise UsageError("a program cannot be opened.", hint="check who may read the files.") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _write(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8", "replace"))


def _write_table(out: Path, header: list[str], rows: list[list[Any]], *, as_json: bool) -> None:
    if as_json:
        lines = (json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) for row in rows)
        _write(out, "".join(line + "\n" for line in lines))
        return
    content = io.StringIO(newline="")
    writer = csv.writer(content, delimiter="\t" if _suffix(out) == ".tsv" else ",", lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    _write(out, content.getvalue())
