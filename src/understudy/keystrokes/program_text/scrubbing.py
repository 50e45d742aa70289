"""Decides what in a learner's programs is replaced, and replaces it.

All texts of a learner are read before the first is changed. A name goes unless it is known: a word
of the language or of a library. It has the same replacement in all texts, whatever its scope.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from understudy.errors import UsageError
from understudy.keystrokes.program_text import tokens as uses
from understudy.keystrokes.program_text.languages import Language
from understudy.keystrokes.program_text.people import Addresses, People, Span, merged
from understudy.keystrokes.program_text.replacements import Replacements
from understudy.keystrokes.program_text.tokens import WORD, Program, Token, parse

# Names inside of a string count in both kinds: the report says what was there.
KINDS: dict[str, str] = {
    "names": "mentions of listed names and numbers",
    "emails": "e-mail addresses",
    "urls": "web addresses",
    "paths": "user names in paths",
    "strings": "string literals",
    "comments": "comments",
    "identifiers": "names in the code that no library has",
    "uncertain": "pieces whose kind a broken program does not show",
}


@dataclass(frozen=True)
class Report:
    """Totals over all texts; `n_broken` counts the texts that do not parse."""

    n_texts: int = 0
    n_broken: int = 0
    n_learners: int = 0
    replaced: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Report) -> Report:
        return Report(
            self.n_texts + other.n_texts,
            self.n_broken + other.n_broken,
            self.n_learners + other.n_learners,
            Counter(self.replaced) + Counter(other.replaced),
        )

    def __str__(self) -> str:
        return f"{self.n_texts} texts of {self.n_learners} learners, {self.n_broken} of them do not parse"

    def to_json(self) -> dict[str, object]:
        """The figures under plain names, every kind present."""
        return {
            "n_texts": self.n_texts,
            "n_broken": self.n_broken,
            "n_learners": self.n_learners,
            "replaced": {kind: int(self.replaced.get(kind, 0)) for kind in KINDS},
        }


DEFAULT = ("names", "emails", "strings", "comments", "identifiers")
# The test that a Python program makes of itself says nothing about its author.
_KEPT_STRINGS = ("__main__",)
# Words that are written as one, and what may stand between two words of a name.
_COMPOUND = re.compile(rf"{WORD.pattern}(?:\\?['’.-]{WORD.pattern})*")
_BETWEEN = re.compile(r"[ ,.'’_-]{0,2}")
_KEPT_FOLDERS = ("src", "main", "test", "tests", "java", "python")


@dataclass(frozen=True)
class Wanted:
    """What is replaced; "emails" takes web addresses and user names in paths with it."""

    kinds: frozenset[str] = frozenset(DEFAULT)

    @classmethod
    def of(cls, text: str) -> Wanted:
        """From a list with commas, as the command line has it."""
        kinds = frozenset(part.strip() for part in text.split(",") if part.strip())
        if not kinds or not kinds <= set(DEFAULT):
            raise UsageError(
                "asked to replace something that is not known here, or nothing.",
                hint=f"give some of {','.join(DEFAULT)}.",
                settings=("replace",),
            )
        return cls(kinds)

    def __contains__(self, kind: str) -> bool:
        return kind in self.kinds


@dataclass(frozen=True, repr=False)
class Scrubbed:
    """The texts after replacement, in the order given, the file names if asked for, and totals."""

    texts: tuple[str, ...]
    titles: tuple[str, ...]
    report: Report


def scrub_texts(
    texts: Sequence[str],
    languages: Sequence[Language],
    replacements: Replacements,
    *,
    people: People | None = None,
    wanted: Wanted | None = None,
    titles: Sequence[str] = (),
) -> Scrubbed:
    """Replace in all texts of one learner; `languages` has one entry per text.

    `titles` are names that stand for the texts outside of them, as the paths of files do (parts
    with a slash between): their parts are declared names here, and come back replaced.
    """
    programs = [parse(text, language) for text, language in zip(texts, languages, strict=True)]
    learner = _Learner(replacements, people or People(), wanted or Wanted())
    for program, language in zip(programs, languages, strict=True):
        learner.read(program, language)
    learner.settle({part for title in titles for part in title.split("/")})
    new = [learner.replace(program, language) for program, language in zip(programs, languages, strict=True)]
    new_titles = [
        "/".join(learner.title(part, language) for part in title.split("/"))
        for title, language in zip(titles, languages, strict=False)
    ]
    n_broken = sum(program.broken for program in programs)
    return Scrubbed(tuple(new), tuple(new_titles), Report(len(texts), n_broken, 1, dict(learner.counts)))


class _Learner:
    """The names of one learner's programs, and what becomes of them."""

    def __init__(self, replacements: Replacements, people: People, wanted: Wanted) -> None:
        self.replacements = replacements
        self.people = people if "names" in wanted else People()
        self.wanted = wanted
        self.counts: Counter[str] = Counter()
        self.declared: set[str] = set()
        self.members: set[str] = set()
        self.imported: set[str] = set()
        self.sound: set[str] = set()  # used without a declaration where a program parses
        self.pointing: set[str] = set()  # part of what points at people, an address for example
        self.names: set[str] = set()
        self.in_code: set[str] = set()  # what the programs declare, file names apart
        self.forbidden: set[str] = set()
        self.beginnings: set[str] = set()

    def read(self, program: Program, language: Language) -> None:
        """Learn which names a program declares, imports and uses."""
        for token in program.tokens:
            if token.kind != "names":
                continue
            name = program.text[token.start : token.end]
            self.names.add(name)
            if token.use == uses.DECLARED:
                self.declared.add(name)
            elif token.use == uses.DECLARED_MEMBER:
                self.members.add(name)
            elif not program.broken:
                (self.imported if token.use == uses.LIBRARY else self.sound).add(name)
        for token in self._tokens_in(program, [span[:2] for span in self._addresses(program)]):
            self.pointing.add(program.text[token.start : token.end])
        for token in self._tokens_in(program, self.people.across(program.text)):
            self.pointing.add(program.text[token.start : token.end])
        self.forbidden |= language.keywords | language.fixed | language.members

    def settle(self, titles: set[str]) -> None:
        """After all programs were read: which names a replacement must not take."""
        self.in_code = self.declared | self.members
        self.declared |= titles
        own = self.declared | self.members
        self.forbidden |= self.names - own | self.imported
        if "identifiers" not in self.wanted:
            self.forbidden |= self.names
        # A name that is being typed is a beginning of one that is declared.
        self.beginnings = {name[:end] for name in own - self.forbidden for end in range(1, len(name))}

    def title(self, title: str, language: Language) -> str:
        """The replacement of a file's name."""
        if _stays(title, language) or title in _KEPT_FOLDERS:
            return title
        if "identifiers" not in self.wanted and title in self.in_code and self._names_nobody(title):
            return title  # Java wants the class to have its file's name
        return self.replacements.name(title, self._may_be_name)

    def replace(self, program: Program, language: Language) -> str:
        """The program's text after replacement."""
        text, new = program.text, []
        addresses = self._addresses(program)
        strict = self._strict(program, addresses, language)
        numbers = {token.start for token in self._tokens_in(program, self.people.across(text), "numbers")}
        changes = []
        for token in program.tokens:
            if token.start in strict:
                replacement = self.replacements.name(text[token.start : token.end], self._may_be_name)
            elif token.start in numbers:
                self.counts["names"] += 1
                replacement = self.replacements.number(text[token.start : token.end], self._names_nobody)
            else:
                replacement = self._token(program, token, language)
            changes.append((token.start, token.end, replacement))
        if program.broken and "emails" in self.wanted:
            changes = self._addresses_in_code(program, changes)
        at = 0
        for start, end, replacement in sorted(changes):
            new += [text[at:start], replacement]
            at = end
        return "".join([*new, text[at:]])

    def _token(self, program: Program, token: Token, language: Language) -> str:
        content = program.text[token.start : token.end]
        if token.kind == "names":
            return self._name(content, token, language, broken=program.broken)
        if token.kind == "numbers":
            if not self.people.is_named(content):
                return content
            self.counts["names"] += 1
            return self.replacements.number(content, self._names_nobody)
        return self._content(program, token, content, language)

    def _name(self, name: str, token: Token, language: Language, *, broken: bool) -> str:
        if _stays(name, language):
            return name
        pointing = name in self.pointing and name not in language.members
        named = bool(self.people) and name not in language.members and self.people.is_named(name)
        self.counts["names"] += named
        verdict = self._verdict(name, token.use, language, broken=broken)
        if "identifiers" in self.wanted and verdict:
            self.counts[verdict] += 1
        elif not named and not pointing:
            return name
        return self.replacements.name(name, self._may_be_name)

    def _verdict(self, name: str, use: str, language: Language, *, broken: bool) -> str:
        """As what a name is replaced: "identifiers", "uncertain" or, if it stays, ""."""
        if name in language.members and (
            name in self.members or name not in self.declared or use in (uses.MEMBER, uses.LIBRARY)
        ):
            return ""
        if use == uses.LIBRARY and not broken:
            return ""
        if name in self.declared or name in self.members:
            return "identifiers"
        if name in self.imported:
            return ""
        # Nothing known: a typing error, a forgotten declaration, quotation mark or comment mark.
        known = not broken or use == uses.BARE or name in self.beginnings or name in self.sound
        return "identifiers" if known else "uncertain"

    def _content(self, program: Program, token: Token, content: str, language: Language) -> str:
        """A string or a comment: whole if asked for, else what in it points at people."""
        mentions = self.people.mentions(content)
        self.counts["names"] += len(mentions)
        found: list[Span] = []
        for run in _COMPOUND.finditer(content) if mentions else ():
            if any(start < run.end() and run.start() < end for start, end in mentions):
                found.append(run.span())
        found = _joined(content, merged(found + mentions))
        if "emails" in self.wanted:
            for start, end, kind in Addresses.in_text(content):
                self.counts[kind] += 1
                found.append((start, end))
            label = program.text[max(0, token.start - 8) : token.start]
            if token.kind == "comments" and label.endswith("://"):
                # Java reads `https://x` as a label and a comment.
                behind = content.split(maxsplit=1)
                found.append((0, content.index(behind[0]) + len(behind[0]) if behind else 0))
        mode = _mode(token, language)
        if token.kind in self.wanted:
            if content in _KEPT_STRINGS or not content:
                return content
            self.counts[token.kind] += 1
            self.counts["uncertain"] += not token.certain
            if language.name == "java" and token.certain and program.text[token.start - 1] == "'":
                return self.replacements.character(content, self._names_nobody)
            if not token.certain and not self.replacements.keep_shape:
                # Where it begins and where its lines end is all that is sure about it.
                marks = content[: len(content) - len(content.lstrip("\"'"))]
                lines = content[len(marks) :].split("\n")
                return marks + "\n".join(
                    self.replacements.text(line, mode, self._names_nobody) for line in lines
                )
            return self.replacements.text(content, mode, self._names_nobody)
        return self._within(content, found, mode)

    def _within(self, content: str, found: list[Span], mode: str) -> str:
        new, at = [], 0
        for start, end in merged(found):
            new += [content[at:start], self.replacements.text(content[start:end], mode, self._names_nobody)]
            at = end
        return "".join([*new, content[at:]])

    def _addresses(self, program: Program) -> list[tuple[int, int, str]]:
        """Addresses in code that parses: `a.b@c.fi` is a product of matrices to Python."""
        if program.broken or "emails" not in self.wanted:
            return []
        return Addresses.in_text(program.text)

    def _strict(
        self, program: Program, addresses: list[tuple[int, int, str]], language: Language
    ) -> set[int]:
        """Where words of an address begin that go even if a library has them: `max.li@uni.fi`."""
        places: set[int] = set()
        for start, end, kind in addresses:
            found = self._tokens_in(program, [(start, end)])
            if not found:
                continue
            self.counts[kind] += 1
            first = program.text[found[0].start : found[0].end]
            # What begins with a name of the program is a product: its words are judged one by one.
            if first not in self.in_code | self.imported and first not in ("self", "cls"):
                places |= {token.start for token in found}
        return places

    @staticmethod
    def _tokens_in(program: Program, spans: Sequence[Span], kind: str = "names") -> list[Token]:
        if not spans:
            return []
        return [
            token
            for token in program.tokens
            if token.kind == kind and any(token.start < end and start < token.end for start, end in spans)
        ]

    def _addresses_in_code(
        self, program: Program, changes: list[tuple[int, int, str]]
    ) -> list[tuple[int, int, str]]:
        """Addresses that stand in broken code, outside of what was taken for a string or comment."""
        inside = [
            (token.start, token.end) for token in program.tokens if token.kind in ("strings", "comments")
        ]
        for start, end, kind in Addresses.in_text(program.text):
            if any(start < other_end and other_start < end for other_start, other_end in inside):
                continue
            self.counts[kind] += 1
            changes = [change for change in changes if change[1] <= start or change[0] >= end]
            new = self.replacements.text(program.text[start:end], "plain", self._names_nobody)
            changes.append((start, end, new))
        return changes

    def _names_nobody(self, text: str) -> bool:
        return not self.people or not self.people.is_named(text)

    def _may_be_name(self, name: str) -> bool:
        return name not in self.forbidden and self._names_nobody(name)


def _stays(name: str, language: Language) -> bool:
    return name in language.keywords or name in language.fixed


def _joined(content: str, spans: list[Span]) -> list[Span]:
    """Spans with only a space or mark between made one: the lengths of a name's words would reveal it."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and _BETWEEN.fullmatch(content, joined[-1][1], start):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _mode(token: Token, language: Language) -> str:
    if token.kind == "comments":
        return "commented" if language.name == "java" else "plain"
    return "plain" if token.raw else "escaped"
