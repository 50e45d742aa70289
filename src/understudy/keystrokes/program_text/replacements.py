"""Replacements drawn by chance and remembered: equal texts get equal ones, and nothing is a hash.

A hash of a name is undone by hashing a list of names. Here each replacement is drawn from the
operating system's entropy and kept in memory until the learner is done; nothing stores it.

With the shape kept, a name's letter gets a letter of its case and a digit a digit. Strings and
comments keep their lengths only: what is letters, digits and the marks between words becomes small
letters with spaces drawn anew, since the lengths of words would find a name in a class list.

A text is replaced unit by unit (a letter, a digit, an escape), and the draw for a unit
is remembered under all that is before it on the line. So a text that grows by a letter grows by
a letter after replacement too, and snapshots of typing stay in step, while equal words in different
places get different letters. Two texts show that they begin alike, no more.
"""

from __future__ import annotations

import random
import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

_UNITS = re.compile(
    r"\\u+[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\x[0-9a-fA-F]{2}|\\N\{[^{}\n]*\}|\\[0-7]{1,3}|\\.|.", re.DOTALL
)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_BLANK_LINE = re.compile(r"[^\S\n]*\n")
_SAME_ESCAPES = "abfnrtv"
# No escape begins with these, in Python or in Java.
_FREE = {"lower": "cdghijklmpqyz", "upper": "".join(set(string.ascii_uppercase) - set("NU"))}
_ALPHABETS = {
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "digit": string.digits,
}
# For the rare learner with more than 26 names of one letter.
_MORE = {
    "lower": "".join(map(chr, range(0xE0, 0xFF))).replace("÷", ""),
    "upper": "".join(map(chr, range(0xC0, 0xDF))).replace("×", ""),
    "digit": "",
}
_TRIES = 50
# Between words of a text these are drawn anew: they would show where a name begins and ends.
_JOINING = " -'’.,_@+:;!?&()=~\u2010\u2011\u2013\u2014\u00a0"
# A space for one in six, about as in a text.
_RUNNING = string.ascii_lowercase + " " * 5

Accept = Callable[[str], bool]


def _class(character: str) -> str | None:
    """The kind of character that replaces this one; None if it stays: a space or a punctuation mark."""
    if character.isascii():
        if character.isalpha():
            return "lower" if character.islower() else "upper"
        return "digit" if character.isdigit() else None
    category = unicodedata.category(character)
    if category == "Nd":
        return "digit"
    if category[0] in "PZ" or character in "\x85\u2028\u2029":
        return None
    # Marks, signs and invisible characters too: they show a name's accents.
    return "upper" if category in ("Lu", "Lt") else "lower"


class Replacements:
    """The replacements of the texts, names and numbers of one learner (or of all, if so asked)."""

    def __init__(self, chance: random.Random | None = None, *, keep_shape: bool = True) -> None:
        self.chance = chance if chance is not None else random.SystemRandom()
        self.keep_shape = keep_shape
        self._texts: dict[str, Any] = {}
        self._characters: dict[str, Any] = {}
        self._names: dict[str, Any] = {}
        self._memory: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def text(self, content: str, mode: str, accept: Accept = lambda _: True) -> str:
        """The replacement of a string's or a comment's content.

        `mode` says what a backslash means: "plain" nothing, "escaped" an escape, "commented" an
        escape of a letter only. `accept` refuses what must not appear by chance.
        """
        if self.keep_shape:
            return "".join(self._line(line, mode, accept) for line in _LINES.findall(content))
        if not any(map(_class, content)):
            return content
        # A text block of Java begins on the line after its mark.
        first = _BLANK_LINE.match(content)
        return (first[0] if first else "") + self._remember(("text", content), accept, lambda at: f"t{at}")

    def character(self, content: str, accept: Accept = lambda _: True) -> str:
        """The replacement of one character, whose shape is all that it has."""
        return self._line(content, "escaped", accept, shape=True)

    def name(self, name: str, accept: Accept) -> str:
        """The replacement of a declared name: never one that is refused or replaces another."""
        key = ("name", name)
        if key not in self._memory:
            if not any(map(_class, name)):
                return name
            if self.keep_shape:
                new = self._grown(name, self._names, "plain", more=True)
                if not self._fits(name, new, accept):
                    new = self._other_name(name, accept)
            else:
                letter = "V" if _class(name.lstrip("_$")[:1] or "v") == "upper" else "v"
                return self._remember(key, accept, lambda at: f"{letter}{at}")
            self._memory[key] = new
            self._taken.add(new)
        return self._memory[key]

    def number(self, literal: str, accept: Accept = lambda _: True) -> str:
        """The replacement of a number's digits, of the same length and base."""
        key = ("number", literal)
        if key not in self._memory:
            for _ in range(_TRIES):
                new = self._digits(literal)
                if accept(new):
                    break
            self._memory[key] = new
        return self._memory[key]

    def _line(self, line: str, mode: str, accept: Accept, *, shape: bool = False) -> str:
        key = (mode + " shape" * shape, line)
        if key not in self._memory:
            grow = self._grown if shape else self._run_on
            new = grow(line, self._characters if shape else self._texts, mode)
            for _ in range(_TRIES):
                if accept(new):
                    break
                # A draw that names a person by chance: this line gets letters of its own.
                new = grow(line, {}, mode)
            self._memory[key] = new
        return self._memory[key]

    def _run_on(self, text: str, branch: dict[str, Any], mode: str) -> str:
        """As `_grown`, but neither case nor the lengths of words are kept."""
        units = text if mode == "plain" else _UNITS.findall(text)
        drawn, running = [], False
        for unit in units:
            word = len(unit) == 1 and _class(unit) is not None
            running_on = word or (running and unit in _JOINING)
            if unit not in branch:
                if running_on:
                    taken = {letter for letter, _ in branch.values()}
                    letters = _RUNNING if running else string.ascii_lowercase
                    free = [letter for letter in letters if letter not in taken] or letters
                    branch[unit] = (self.chance.choice(free), {})
                elif unit == "\\'":
                    branch[unit] = ("\\\\", {})
                else:
                    branch[unit] = (self._unit(unit, mode, set(), False), {})
            new, branch = branch[unit]
            drawn.append(new)
            running = running_on or unit == "\\'"
        return "".join(drawn)

    def _grown(self, text: str, branch: dict[str, Any], mode: str, *, more: bool = False) -> str:
        """The text unit by unit down the branches of what was drawn before."""
        units = text if mode == "plain" else _UNITS.findall(text)
        drawn = []
        for unit in units:
            if unit not in branch:
                taken = {letter for letter, _ in branch.values()} if _class(unit[-1:]) else set()
                branch[unit] = (self._unit(unit, mode, taken, more), {})
            new, branch = branch[unit]
            drawn.append(new)
        return "".join(drawn)

    def _unit(self, unit: str, mode: str, taken: set[str], more: bool) -> str:
        if len(unit) == 1:
            kind = _class(unit)
            if kind is None:
                return unit
            letters = _ALPHABETS[kind]
            free = [letter for letter in letters if letter not in taken]
            if not free and more:
                free = [letter for letter in _MORE[kind] if letter not in taken]
            return self.chance.choice(free or letters)
        return self._escape(unit, commented=mode == "commented")

    def _escape(self, unit: str, *, commented: bool) -> str:
        """An escape of the same form for another letter; those for spaces and marks stay."""
        head, code = unit[1], unit[2:]
        letter = self.chance.choice(string.ascii_lowercase)
        if head in "uUx" and code:
            n_head = len(unit) - len(unit.lstrip("\\").lstrip("u")) if head == "u" else 2
            return unit[:n_head] + f"{ord(letter):x}".zfill(len(unit) - n_head)
        if head == "N" and code:
            return "\\N{" + self._character_name(len(unit) - 4) + "}"
        if head in string.octdigits:
            if commented:  # digits behind a backslash, no more
                return "\\" + "".join(self.chance.choice(string.digits) for _ in unit[1:])
            tens, ones = self.chance.choice("456"), self.chance.choice("1234567")
            return {2: unit, 3: "\\6" + ones, 4: "\\1" + tens + ones}[len(unit)]
        kind = _class(head)
        if head in _SAME_ESCAPES and not commented:
            return unit
        if kind in _FREE:
            return "\\" + self.chance.choice(sorted(_FREE[kind]))
        return "\\" + (self.chance.choice(string.digits[8:]) if kind == "digit" else head)

    def _character_name(self, length: int) -> str:
        names = _character_names().get(length)
        return self.chance.choice(names) if names else "A" * length

    def _digits(self, literal: str) -> str:
        body = literal.lower()
        binary, octal = body.startswith("0b"), re.match(r"0o|0[0-7_]", body)
        allowed = "01" if binary else "01234567" if octal else string.digits
        n_digits = sum(map(str.isdigit, literal))
        new = []
        for at, character in enumerate(literal):
            if not character.isdigit() or (at == 0 and character == "0"):
                new.append(character)
            elif at == 0:
                # Ten digits may pass what an int holds, unless they begin with a one.
                new.append("1" if n_digits > 9 else self.chance.choice("123456789"))
            else:
                new.append(self.chance.choice(allowed))
        return "".join(new)

    def _fits(self, name: str, new: str, accept: Accept) -> bool:
        same = new == name and len(name) > 1
        return not same and new not in self._taken and accept(new)

    def _other_name(self, name: str, accept: Accept) -> str:
        """A name of the same shape that is free; letters outside of ASCII when none is left."""
        for _ in range(_TRIES):
            new = self._grown(name, {}, "plain")
            if self._fits(name, new, accept):
                return new
        for at, character in enumerate(name):
            kind = _class(character)
            if kind in _FREE:
                letters = list(_ALPHABETS[kind] + _MORE[kind])
                self.chance.shuffle(letters)
                for letter in letters:
                    new = self._grown(name[:at], {}, "plain") + letter
                    new += self._grown(name[at + 1 :], {}, "plain")
                    if self._fits(name, new, accept):
                        return new
        # Every name of this shape is taken: only here does a name change its length.
        return self._remember(
            ("longer", name), accept, lambda at: f"{name[0] if name[0] in '_$' else 'v'}{at}"
        )

    def _remember(self, key: tuple[str, str], accept: Accept, numbered: Callable[[int], str]) -> str:
        """The next number that is free, and what it is made into."""
        if key not in self._memory:
            at = len(self._taken) + 1
            while numbered(at) in self._taken or not accept(numbered(at)):
                at += 1
            self._memory[key] = numbered(at)
            self._taken.add(numbered(at))
        return self._memory[key]


@cache
def _character_names() -> dict[int, list[str]]:
    """Names of Unicode's letters by their length, for `\\N{...}`."""
    names: dict[int, list[str]] = {}
    for code in range(0x20, 0x3000):
        if name := unicodedata.name(chr(code), ""):
            names.setdefault(len(name), []).append(name)
    return names
