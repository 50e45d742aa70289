"""scrub(): programs in files, folders and tables, read, given to `scrub_texts` learner by learner, written.

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
from typing import Annotated, Any, Literal

import polars as pl

from understudy.core.files.columns import KNOWN_NAMES, ColumnChooser
from understudy.core.files.delimited import guess_separator, read_delimited
from understudy.core.files.json_records import load_records
from understudy.core.files.people.identifiers import EMAIL
from understudy.core.files.source import decode, open_source
from understudy.core.files.writing import check_not_input, new_folder, write_bytes
from understudy.core.options import settled
from understudy.core.pages.notebook import notebook_table
from understudy.errors import DataError, UsageError
from understudy.keystrokes.program_text.languages import SUFFIXES, Language, language_of
from understudy.keystrokes.program_text.people import People, read_people
from understudy.keystrokes.program_text.replacements import Replacements
from understudy.keystrokes.program_text.scrubbing import KINDS, Report, Scrubbed, Wanted, scrub_texts

_TEXT_NAMES = ("code", "sourcecode", "source", "text", "snapshot", "content", "program", "codestate")
_JSON = (".jsonl", ".ndjson", ".json")
_TABLES = (".csv", ".tsv", ".txt", *_JSON)

REMAINS = (
    "No guarantee: the structure and style of a program, the words of names that stay, numbers, and the "
    "rhythm of typing can still identify its author."
)
SHAPE = (
    "Names in the code keep their lengths and capitals, strings and comments their total lengths: a reader who "
    "has a class list may recognise a name by them. Without the shape neither can be seen."
)


@dataclass(frozen=True)
class ScrubOptions:
    """What is replaced in the text of programs, and how."""

    language: Annotated[
        Literal["java", "python"] | None, "Language, where a file's name does not show it."
    ] = None
    names: Annotated[
        Path | None,
        "List of people, one per line: names and student numbers. Found without case and accents.",
    ] = None
    replace: Annotated[
        str,
        "What is replaced; emails includes web addresses and user names in paths, identifiers "
        "all names in the code that no known library has.",
    ] = "names,emails,strings,comments,identifiers"
    column: Annotated[str | None, "Table: column with the source text."] = None
    learner: Annotated[str | None, "Table: column that names the learner."] = None
    keep: Annotated[
        list[str] | None, "Table: column of order or time to keep as it is; all others are dropped."
    ] = None
    across: Annotated[bool, "Replace alike for all learners: their texts become linkable."] = False
    keep_shape: Annotated[
        bool, "Same lengths, so that positions stay; names in the code letter for letter."
    ] = True
    seed: Annotated[int | None, "Seed of the replacements, for tests only: it undoes them."] = None

    def __post_init__(self) -> None:
        """Find wrong settings before anything is read."""
        Wanted.of(self.replace)

    def scrubber(self) -> Scrubber:
        """How to replace, with the list of people read."""
        return Scrubber(
            people=People() if self.names is None else read_people(Path(self.names)),
            wanted=Wanted.of(self.replace),
            keep_shape=self.keep_shape,
            across=self.across,
            chance=random.SystemRandom() if self.seed is None else random.Random(self.seed),
        )

    def notes(self) -> list[str]:
        """What the custodian should know about texts that were scrubbed so."""
        notes = [REMAINS, *([SHAPE] if self.keep_shape else [])]
        if "names" in Wanted.of(self.replace) and self.names is None:
            notes.append(
                "No list of names was given: people are replaced only where they are part of what else is replaced."
            )
        if self.seed is not None:
            notes.append("Replacements were drawn with a seed: it undoes them. For tests only.")
        return notes


@dataclass(frozen=True)
class Scrub:
    """Programs that were scrubbed: how much was replaced, and what remains in them."""

    report: Report
    options: ScrubOptions
    out: Path

    def to_json(self) -> dict[str, Any]:
        """The figures for machines."""
        return {
            **self.report.to_json(),
            "replace": sorted(Wanted.of(self.options.replace).kinds),
            "seeded": self.options.seed is not None,
            "notes": self.options.notes(),
        }

    def lines(self) -> list[str]:
        """The notes for people."""
        return self.options.notes()

    def to_frame(self) -> pl.DataFrame:
        """How often each kind was replaced."""
        counts = [self.report.replaced.get(kind, 0) for kind in KINDS]
        return pl.DataFrame({"what": list(KINDS.values()), "count": counts})

    def _repr_html_(self) -> str:
        return notebook_table(" ".join([f"{self.report}.", *self.lines()]), self.to_frame())


def scrub(
    path: Path | str,
    out: Path | str,
    options: ScrubOptions = ScrubOptions(),  # noqa: B008 (frozen)
    **settings: Any,
) -> Scrub:
    """Replace names, addresses, strings and comments in a program, a folder of programs or a table of them.

    The settings of `ScrubOptions` may be given as keywords.
    """
    options = settled(options, settings)
    path, out = Path(path), Path(out)
    if not path.exists():
        raise UsageError("there is no such file or folder to read.", hint="check its path.")
    columns = TableColumns(options.column, options.learner, tuple(options.keep or ()))
    table = path.is_file() and is_table(path)
    if not table and columns != TableColumns():
        raise UsageError(
            "asked for columns, but this is not a table.",
            hint="tables end in .csv, .tsv or .jsonl.",
            settings=("column", "learner", "keep"),
        )
    scrubber = options.scrubber()
    if path.is_dir():
        report = scrub_folder(path, out, scrubber, options.language)
    elif table:
        report = scrub_table(path, out, scrubber, columns, options.language)
    else:
        report = scrub_file(path, out, scrubber, options.language)
    return Scrub(report, options, out)


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
            f"'{path.name}' does not show its language by its name.",
            hint="name it: java or python.",
            settings=("language",),
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
            "a table does not show the language of its programs.",
            hint="name it: java or python.",
            settings=("language",),
        )
    rows, header = _read_table(path, columns, across=scrubber.across)
    ids = list(dict.fromkeys(row[0] for row in rows))
    _check_kept(path, rows, header.keep, scrubber.people, ids)
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
    # In the order of pseudonyms: the order of a class list would show who is who.
    order = sorted(range(len(rows)), key=lambda at: pseudonyms[rows[at][0]])
    content = [
        [*([] if header.learner is None else [pseudonyms[rows[at][0]]]), *rows[at][2], texts[at]]
        for at in order
    ]
    _write_table(out, header.written(), content, as_json=_is_json(out if is_table(out) else path))
    return Report(report.n_texts, report.n_broken, len(ids), report.replaced)


Row = tuple[str, str, list[Any]]


@dataclass(frozen=True)
class _Header:
    """The names of the columns in use; the learner's is None where all rows are replaced alike."""

    learner: str | None
    text: str
    keep: tuple[str, ...]

    def written(self) -> list[str]:
        """The header of what is written."""
        return [*(["learner"] if self.learner is not None else []), *self.keep, self.text]


def _read_table(path: Path, columns: TableColumns, *, across: bool) -> tuple[list[Row], _Header]:
    text = decode(open_source(path), latin=True)
    if _is_json(path):
        objects, place = load_records(text)
        records = list(objects)
        names = list(dict.fromkeys(name for _, record in records for name in record))
        header = _choose(names, columns, path, across=across)
        return [
            (
                "" if header.learner is None else str(record.get(header.learner, "")),
                _program_in(record.get(header.text), f"{path.name}: {place} {number}"),
                [record.get(name) for name in header.keep],
            )
            for number, record in records
        ], header
    separator = "\t" if _suffix(path) == ".tsv" else guess_separator(text.data.split(b"\n", 1)[0].decode())
    table = read_delimited(text, separator)
    header = _choose(table.names, columns, path, across=across)
    wanted = [name for name in (header.learner, header.text, *header.keep) if name is not None]
    frame = table.read({name: table.names.index(name) for name in wanted}).fill_null("")
    return [
        (
            "" if header.learner is None else str(row[header.learner]),
            row[header.text],
            [row[name] for name in header.keep],
        )
        for row in frame.iter_rows(named=True)
    ], header


def _program_in(value: Any, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"{place} has no text in the column of programs.",
            hint="choose the column that holds the source text.",
            settings=("column",),
        )
    return value


def _choose(names: Sequence[str], columns: TableColumns, path: Path, *, across: bool) -> _Header:
    """The columns of the learner and of the text, as asked or by a name that is known, and those to keep."""
    asked = {"text": columns.text, "learner": columns.learner}
    known = {"text": _TEXT_NAMES, "learner": KNOWN_NAMES["learner"]}
    chooser = ColumnChooser(names, path.name, asked, known, {"text": "column"})
    chooser.require("text")
    if not chooser.allow("learner") and not across:
        raise DataError(
            f"{path.name}: no column is known to name the learner.",
            hint="name it, or replace alike in all rows.",
            code="no-such-column",
            settings=("learner", "across"),
            roles=["learner"],
        )
    kept = ColumnChooser(
        names, path.name, {name: name for name in columns.keep}, settings=dict.fromkeys(columns.keep, "keep")
    )
    learner, text = chooser.columns.get("learner"), chooser.columns["text"]
    header = _Header(learner, text, tuple(kept.columns.values()))
    if learner in header.keep or text in header.keep or header.written().count("learner") > 1:
        raise UsageError(
            "asked to use one column twice, or to keep the column that names the learner.",
            hint="learners get pseudonyms; keep a column of order or time.",
            code="column-for-two-roles",
            settings=("keep",),
        )
    return header


def _check_kept(
    path: Path, rows: Sequence[Row], keep: tuple[str, ...], people: People, ids: list[str]
) -> None:
    """A kept column leaves as it is: refuse one that points at people."""
    names = {name for name in ids if not name.isdigit()} | people.numbers
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


def _is_json(path: Path) -> bool:
    return _suffix(path) in _JSON


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
