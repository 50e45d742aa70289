"""Strings and comments of a program that does not parse, found line by line.

A parser of half-typed code guesses, and a guess may take a string for code. Here every doubt
ends the other way: a quotation mark that is not closed makes a string of its line from the
first mark on, and an open comment or an open text of several lines runs to the end. Marks of a
word processor, which no compiler takes, make a string of the rest of their line.
"""

from __future__ import annotations

from dataclasses import dataclass

_TYPESET = "“”„‟‘’‚‛«»‹›「」"


@dataclass(frozen=True)
class Region:
    """Characters start:end without the marks around them; `certain` if the marks are complete."""

    start: int
    end: int
    kind: str
    certain: bool = True


def scan(text: str, language: str) -> list[Region]:
    """The strings and comments of a text, in order and without overlap."""
    scanner = _Scanner(text, language)
    scanner.run()
    return scanner.regions


class _Scanner:
    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.line_mark = "//" if language == "java" else "#"
        self.blocks = language == "java"
        self.long_marks = ('"""',) if language == "java" else ('"""', "'''")
        self.regions: list[Region] = []
        self.line_start = 0
        self.first_quote: int | None = None  # of this line
        self.first_long: int | None = None  # of this text

    def run(self) -> None:
        text, at = self.text, 0
        while at < len(text):
            if text[at] in "\n\r\f":
                at += 1
                self.line_start, self.first_quote = at, None
            elif text.startswith(self.line_mark, at):
                end = self._line_end(at)
                self.regions.append(Region(at + len(self.line_mark), end, "comments"))
                at = end
            elif self.blocks and text.startswith("/*", at):
                at = self._block(at)
            elif self.blocks and text.startswith("*/", at):
                # The beginning is missing: what is before it on the line is a comment's text.
                self._cover(self.line_start, at, "comments")
                at += 2
            elif mark := next((mark for mark in self.long_marks if text.startswith(mark, at)), ""):
                at = self._long(at, mark)
            elif text[at] in "\"'":
                at = self._short(at)
            elif text[at] in _TYPESET:
                end = self._line_end(at)
                self._cover(at, end, "strings")
                at = end
            else:
                at += 1

    def _line_end(self, at: int) -> int:
        while at < len(self.text) and self.text[at] not in "\n\r":
            at += 1
        return at

    def _block(self, at: int) -> int:
        end = self.text.find("*/", at + 2)
        closed = end >= 0
        end = end if closed else len(self.text)
        self.regions.append(Region(at + 2, end, "comments", closed))
        return end + 2

    def _long(self, at: int, mark: str) -> int:
        if self.first_long is None:
            self.first_long = at
        end = at + 3
        while end < len(self.text) and not self.text.startswith(mark, end):
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            # One mark too few or too many: which texts are inside is unknown.
            self._cover(self.first_long, len(self.text), "strings")
            return len(self.text)
        self.regions.append(Region(at + 3, end, "strings"))
        return end + 3

    def _short(self, at: int) -> int:
        if self.first_quote is None:
            self.first_quote = at
        end = at + 1
        while end < len(self.text) and self.text[end] not in "\n\r" and self.text[end] != self.text[at]:
            # In Python a backslash goes on to the next line; so does a half-typed Java string.
            end += 2 if self.text[end] == "\\" else 1
        end = min(end, len(self.text))
        if end < len(self.text) and self.text[end] == self.text[at]:
            self.regions.append(Region(at + 1, end, "strings"))
            return end + 1
        self._cover(self.first_quote, end, "strings")
        return end

    def _cover(self, start: int, end: int, kind: str) -> None:
        """One uncertain region from start to end, with everything that was found in it."""
        while self.regions and self.regions[-1].end > start:
            start = min(start, self.regions.pop().start)
        self.regions.append(Region(start, end, kind, certain=False))
