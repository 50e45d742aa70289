"""draft_plan(): the part `[log]` of a plan, drafted from a log's header and the types of its cells.

What a column is called and whether its cells are numbers is public; what the numbers are is not. So bounds and
categories are left to the custodian, and whatever is synthesized beside actions and outcomes is commented out until
they decide about it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from understudy.core.events.learner_table import LearnerTable
from understudy.core.events.reading import table_of
from understudy.core.files.columns import COMPOSED, plain
from understudy.core.files.outcomes import is_missing
from understudy.core.files.people.identifiers import Identifier, identifiers_in, without_titles
from understudy.core.files.suggestions import WORDS, kind_of
from understudy.core.files.tables import Table
from understudy.core.files.times import unit_in_name
from understudy.core.files.writing import check_new, write_text
from understudy.core.options import settled
from understudy.logs.declared.columns import Kind
from understudy.logs.declared.term import RESOLUTIONS, SESSION_MINUTES
from understudy.logs.interactions import Interactions
from understudy.logs.reading import LogOptions, read_log, usual_resolution

_KINDS = {"0 and 1": Kind.flag, WORDS: Kind.flag, "times": Kind.time, "numbers": Kind.number}
# A text that is another one in more than this share of the rows is no category, and may hold anything.
MAX_SHARE_OF_DIFFERENT_TEXTS = 0.2

# Columns that hold whom a page is about or who was at it, by names as `plain` writes them.
_PERSONAL = {
    **dict.fromkeys(("url", "uri", "referer", "referrer", "httpreferer"), "address of a page"),
    **dict.fromkeys(("sessionid", "sessionkey", "sesskey", "phpsessid", "requestid"), "session"),
}

_WHY = """\
# Further columns. To have one in the synthetic data, remove the # before its lines and fill it in.
# Take categories and bounds from what you know before you see any data: the form, the scale of grades, the manual of
# the platform. Do not read them off the data: the one learner with an unusual value would then decide what everybody's
# synthetic rows may hold, and no guarantee covers that. Where nothing is known beforehand, write found = true in their
# place: they are found privately then, for a part of the budget."""
_TIMES = """\
# Times put the rows in order. To have them in the synthetic data, remove the # before the line below, and declare the
# days of the course if they are public; otherwise they are found privately, for a part of the budget."""


@dataclass(frozen=True)
class DraftedColumn:
    """A column that could be declared, and what it seems to be."""

    name: str
    of: Literal["row", "learner"]
    kind: Kind

    def lines(self) -> list[str]:
        """Its declaration, commented out."""
        given = {"name": self.name, "of": self.of, "kind": self.kind.value}
        lines = ["[[log.columns]]", *(f"{key} = {_quoted(value)}" for key, value in given.items())]
        if self.kind is Kind.category:
            lines.append("values = []")
        elif self.kind is Kind.number:
            lines += ["low = ", "high = ", "step = ", 'unit = ""']
        elif self.kind is Kind.time:
            lines += ["low = ", "high = "]
        return [f"# {line}".rstrip() for line in lines]


@dataclass(frozen=True)
class PlanDraft:
    """A drafted plan: its text, the columns that could be declared, and those that could not."""

    text: str
    roles: Mapping[str, str]
    columns: Sequence[DraftedColumn]
    identifiers: Sequence[Identifier]
    free_texts: Sequence[str]
    has_times: bool
    out: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """The draft for machines."""
        return {
            "out": None if self.out is None else str(self.out),
            "roles": dict(self.roles),
            "columns": [
                {"name": column.name, "of": column.of, "kind": column.kind.value} for column in self.columns
            ],
            "identifiers": [vars(identifier) for identifier in self.identifiers],
            "free_texts": list(self.free_texts),
            "plan": self.text,
        }

    def lines(self) -> list[str]:
        """The draft for people."""
        lines = ["Columns: " + ", ".join(f"{role} = {name}" for role, name in self.roles.items()) + "."]
        for column in self.columns:
            lines.append(f"Could be declared: {column.name} ({column.kind.value}, of the {column.of}).")
        for identifier in self.identifiers:
            lines.append(
                f"Identifies people, and is left out: {identifier.column} ({identifier.kind}, {identifier.evidence})."
            )
        for name in self.free_texts:
            lines.append(f"Free text or names, and left out: {name}.")
        if self.has_times:
            lines.append("Times are left out until the plan names their column.")
        if self.out is not None:
            lines.append(
                f"Draft: {self.out}. Read it, fill it in, and give it to every command that reads the log."
            )
        return lines


def draft_plan(
    path: Path | str,
    options: LogOptions = LogOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    **settings: Any,
) -> PlanDraft:
    """Draft the part `[log]` of a plan, and write it if `out` is given.

    The settings of `LogOptions` may be given as keywords. With a table of learners its columns are drafted too.
    """
    options, path = replace(settled(options, settings), plan=None), Path(path)
    place = None if out is None else Path(out)
    if place is not None:
        check_new(place)
    log = read_log(path, options)
    found = _Columns()
    if (table := table_of(path, log.origin.format, options.sheet)) is not None:
        found.look(table, log.origin.columns, log.origin.identifiers, of=None)
    if options.learners is not None:
        opened = LearnerTable.open(options.learners)
        of_learners = opened.table
        at = opened.learner_at(options.learners_key, log.origin.columns["learner"])
        key = {"learner": of_learners.names[at]}
        found.look(of_learners, key, without_titles(*identifiers_in(of_learners, key)), of="learner")
    folder = Path.cwd() if place is None else place.resolve().parent
    drafted = PlanDraft(
        _text(log, options, found, path, folder),
        dict(log.origin.columns),
        found.columns,
        found.identifiers,
        found.free_texts,
        log.time is not None and options.time is None,
        place,
    )
    if place is not None:
        write_text(place, drafted.text)
    return drafted


class _Columns:
    """What was seen of the columns without a role."""

    def __init__(self) -> None:
        self.columns: list[DraftedColumn] = []
        self.identifiers: list[Identifier] = []
        self.free_texts: list[str] = []

    def look(
        self,
        table: Table,
        roles: Mapping[str, str],
        identifiers: Sequence[Identifier],
        of: Literal["learner"] | None,
    ) -> None:
        """Look at a table, all of whose columns are of learners if `of` says so."""
        sample = table.sample()
        learner = roles["learner"]
        # The log was read with its table of learners, so that its origin may have those of both.
        self.identifiers += [
            each for each in identifiers if each.role == "not read" and each not in self.identifiers
        ]
        identifying = {each.column for each in identifiers}
        parts = {part for name in roles.values() for part in name.split(COMPOSED)}
        for at, name in enumerate(table.names):
            if (kind_of_person := _PERSONAL.get(plain(name.removeprefix("value.")))) is not None:
                if name not in parts and name not in identifying:
                    self.identifiers.append(Identifier(name, kind_of_person, "by its name", "not read"))
                continue
            known = name in parts or name in identifying or f"column {at + 1}" in identifying
            if known or str(at) not in sample.columns or any(name == each.name for each in self.columns):
                continue
            cells = sample[str(at)].drop_nulls()
            cells = cells.filter(~is_missing(cells))
            kind = _KINDS.get(kind_of(cells), Kind.category)
            many = cells.n_unique() > max(2.0, MAX_SHARE_OF_DIFFERENT_TEXTS * len(cells))
            if kind is Kind.category and (many or not len(cells)):
                self.free_texts.append(name)
                continue
            self.columns.append(DraftedColumn(name, of or _described(table, at, learner), kind))


def _described(table: Table, at: int, learner: str) -> Literal["row", "learner"]:
    """Whether a column seems to describe rows or learners: the custodian decides."""
    if learner not in table.names:
        return "row"
    pairs = table.read({"learner": table.names.index(learner), "cell": at}).cast(pl.String, strict=False)
    if pairs["cell"].n_unique() < 2:
        return "row"
    of_learner = pairs.drop_nulls().group_by("learner").agg(pl.col("cell").n_unique(), pl.len())
    constant = bool((of_learner["cell"] == 1).all()) and bool((of_learner["len"] > 1).any())
    return "learner" if constant else "row"


def _text(log: Interactions, options: LogOptions, found: _Columns, path: Path, folder: Path) -> str:
    origin = log.origin
    lines = [
        f"# A draft, from the header of {path.name} and the types of its cells.",
        "# Nothing is declared until you have read it. Remove the # before what you want.",
        "[log]",
        f"format = {_quoted(origin.format)}",
    ]
    roles = {role: name for role, name in origin.columns.items() if role not in ("time", "item")}
    lines += [f"{role} = {_quoted(name)}" for role, name in roles.items() if " + " not in name]
    lines += [] if log.outcome is not None else ["no_outcomes = true"]
    for setting in ("pass_from", "time_unit", "first_day"):
        if (value := getattr(options, setting)) is not None:
            lines.append(f"{setting} = {_quoted(value)}")
    if options.date_order is not None:
        lines.append(f"date_order = {_quoted(options.date_order.value)}")
    for setting in ("learners", "results"):
        if (file := getattr(options, setting)) is not None:
            lines.append(f"{setting} = {_quoted(os.path.relpath(Path(file).resolve(), folder))}")
    if options.learners_key is not None:
        lines.append(f"learners_key = {_quoted(options.learners_key)}")
    if options.language != LogOptions.language:
        lines.append(f"language = {_quoted(options.language)}")
    lines += [
        "# If the names of actions are public, as those of a curriculum are:",
        "# public_actions = true",
    ]
    if times := _times(log, found):
        usual = {seconds: word for word, seconds in RESOLUTIONS.items()}[usual_resolution(origin.format)]
        mark = "" if options.time is not None else "# "
        lines += ["", _TIMES, *(f"{mark}time = {_quoted(name)}" for name in times), "", "# [log.term]"]
        lines += ["# first = 2024-09-01", "# last = 2025-02-28"]
        lines += [f"# resolution = {_quoted(usual)} # {', '.join(RESOLUTIONS)}, or a number of seconds"]
        lines += [f"# session_minutes = {SESSION_MINUTES:g}"]
    if found.identifiers or found.free_texts:
        lines += ["", "# Left out:"]
        lines += [f"# - {each.column}: identifies people ({each.kind})" for each in found.identifiers]
        lines += [f"# - {_quoted(name)}: free text or names" for name in found.free_texts]
    if found.columns:
        lines += ["", _WHY]
        for column in found.columns:
            lines += ["", *column.lines()]
    return "\n".join(lines) + "\n"


def _times(log: Interactions, found: _Columns) -> list[str]:
    """The columns that could be the time of a row."""
    if "time" in log.origin.columns:
        return [log.origin.columns["time"]]
    rows = [column for column in found.columns if column.of == "row"]
    return [each.name for each in rows if each.kind is Kind.time or unit_in_name(each.name)]


def _quoted(value: Any) -> str:
    """A value as TOML: what JSON escapes, TOML reads."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
