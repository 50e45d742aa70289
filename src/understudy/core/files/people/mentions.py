"""People in the names of actions: synthetic data would carry these names on, so commands refuse them.

An action is compared with what the file itself says about people: the learners' ids (those
of learners who withdrew too) and the values of every other column that identifies people.
Addresses and telephone numbers are known by their form.

What this cannot do: a person's name that stands in the actions only, and in no other column
and no list, looks like a title ("Box Plot", "Venn Diagram"). It is not searched for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from understudy.core.files.people.identifiers import (
    EMAIL,
    PHONES,
    Identifier,
    NamedPeople,
    is_any,
    is_ip_address,
    without_nobody,
)

_GAP = r"[\s./()-]{0,2}"
_BEFORE, _AFTER = r"(?:^|[^\w.,/+-])", r"(?:[^\w/-]|$)"
_NEXT = r"(?: ?[/-] ?| )"
# Within a longer text a number needs the form of a telephone number, not only its length:
# a country's prefix, or an area code that begins with zero, and nine digits in all.
_PHONES_WITHIN = (
    rf"(?:^|[^\w+])\+[1-9](?:{_GAP}\d){{8,14}}(?:\D|$)",
    rf"{_BEFORE}00[1-9]\d{{0,2}}{_NEXT}\(?\d{{1,4}}\)?{_NEXT}?\d{{5,8}}{_AFTER}",
    rf"{_BEFORE}\(?0[1-9]\d{{2,4}}\)?{_NEXT}\d{{5,9}}{_AFTER}",
    rf"{_BEFORE}\(?0[1-9]\d\)?{_NEXT}\d{{6,9}}{_AFTER}",
    rf"{_BEFORE}\(?0[1-9]\)?{_NEXT}\d{{7}}{_AFTER}",
    rf"{_BEFORE}\(?0[1-9]\d{{1,4}}\)?{_NEXT}\d{{3}}(?:(?:[ -]\d{{2}}){{2,3}}|[ -]\d{{3,4}}){_AFTER}",
    rf"{_BEFORE}(?:\(0[1-9]\d{{1,4}}\) ?|0[1-9]\d{{1,4}} ?/ ?)\d{{2,3}}(?:[ -]\d{{2,4}}){{2,3}}{_AFTER}",
    rf"{_BEFORE}0[1-9](?: \d{{2}}){{4}}{_AFTER}",
    rf"{_BEFORE}\(\d{{3}}\) ?\d{{3}}[ .-]\d{{4}}{_AFTER}",
    r"(?i)\b(?:tel|telefon|telephone|phone|handy|whatsapp)\b[.:]{0,2} ?(?:\d[ /-]?){7,}",
)
_DATE = r"\b(?:19|20)\d\d([-./]?)[01]\d[-./]?[0-3]\d\b"
# A number behind these words counts things, even if a learner has the same number.
_NUMBERED_THING = (
    r"\b(?:problem|question|item|skill|kc|concept|topic|frage|pregunta|assignment|quiz|discussion|discussiontopic|page|"
    r"wikipage|contextmodule|contenttag|attachment|announcement|contextexternaltool|course|module)s?(?: id)? \d+"
)
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]"
MIN_ID, MIN_LOCAL, MIN_DIGITS = 3, 4, 5
# From this share on, actions that are numbers and equal learners' numbers are no accident.
NO_ACCIDENT = 0.2


def identifiers_in_actions(
    column: str, actions: pl.Series, learners: pl.Series, people: Iterable[NamedPeople] = ()
) -> list[Identifier]:
    """What in the names of actions points at people.

    `learners` holds every name by which the file or a list knows a learner, `people` the
    values of other columns that identify people. Any single mention counts.
    """
    texts = _Texts.of(actions)
    undated = actions.str.replace_all(_DATE, " ")
    checks = [
        ("e-mail address", "an e-mail address", actions.str.contains(EMAIL)),
        ("IP address", "an IP address", is_ip_address(actions)),
        ("phone number", "a phone number", is_any(undated, _PHONES_WITHIN) | is_any(actions, PHONES)),
        ("learner id", "a learner's id", texts.mention(_of_learners(learners))),
    ]
    for named in (each for each in people if each.are_people):
        shown = named.column if named.by_position else f"column '{named.column}'"
        checks.append((named.kind, f"what {shown} says of a person", texts.mention(_of_people(named))))
    return [
        Identifier(column, kind, f"{n_matches} of {len(actions)} actions contain {what}", "action")
        for kind, what, matches in checks
        if (n_matches := int(matches.sum()))
    ]


@dataclass(frozen=True, repr=False)
class _Patterns:
    """What to search: anywhere in a text, as whole words, and as a number of its own."""

    anywhere: pl.Series
    words: pl.Series
    numbers: pl.Series


@dataclass(frozen=True, repr=False)
class _Texts:
    """The actions as they are compared: without case and accents, and as words between spaces."""

    folded: pl.Series
    words: pl.Series

    @classmethod
    def of(cls, actions: pl.Series) -> _Texts:
        folded = _fold(actions)
        return cls(folded, " " + _words(folded) + " ")

    def mention(self, patterns: _Patterns) -> pl.Series:
        """Whether each action contains one of the patterns."""
        inside = _contains_any(self.folded, patterns.anywhere)
        whole = _contains_any(self.words, " " + patterns.words + " ")
        return inside | whole | self._number(patterns.numbers)

    def _number(self, numbers: pl.Series) -> pl.Series:
        """Whether an action holds one of the numbers as a token of its own.

        Task numbers and learners' numbers may coincide. So an action that is nothing but a
        number counts only if a large share of the actions equal a learner's number.
        """
        things = self.words.str.replace_all(_NUMBERED_THING, " ")
        tokens = things.str.extract_all(rf"\b\d{{{MIN_DIGITS},}}\b")
        rows = pl.DataFrame({"row": pl.int_range(len(tokens), eager=True), "token": tokens})
        rows = rows.explode("token").drop_nulls()
        rows = rows.with_columns(_number(rows["token"]).alias("token"))
        hits = rows.filter(pl.col("token").is_in(numbers.implode()))["row"].unique()
        hit = pl.int_range(len(tokens), eager=True).is_in(hits.implode())
        bare = ~self.folded.str.contains(r"\p{L}")
        if int((hit & bare).sum()) < NO_ACCIDENT * len(self.words):
            hit = hit & ~bare
        return hit.fill_null(False)


def _of_learners(learners: pl.Series) -> _Patterns:
    ids = _fold(learners.drop_nulls().unique())
    with_letters = ids.filter((ids.str.len_chars() >= MIN_ID) & ids.str.contains(r"\p{L}"))
    # A short id, or one of five letters, may be part of an ordinary word; it has to stand alone.
    alone = (with_letters.str.len_chars() == MIN_ID) | with_letters.str.contains(r"^\p{L}{4,5}$")
    alone &= ~with_letters.str.contains(_UNSPACED)
    words = pl.concat([_phrases(with_letters), _phrases(_local_parts(ids))])
    return _Patterns(with_letters.filter(~alone), words, _numbers(pl.concat([ids, _local_parts(ids)])))


def _of_people(named: NamedPeople) -> _Patterns:
    values = _fold(named.values.drop_nulls().unique())
    if named.kind == "e-mail address":
        values = _local_parts(values)
    elif named.kind in ("student number", "phone number", "postal address"):
        enough = MIN_DIGITS + 1 if named.kind == "phone number" else 1
        values = values.filter(values.str.count_matches(r"\d") >= enough)
    elif named.kind in ("IP address", "computer"):  # known by its form, or nobody's name
        values = values.clear()
    values = without_nobody(values)
    unspaced = (values.str.len_chars() >= MIN_ID) & values.str.contains(_UNSPACED)
    phone = named.kind == "phone number"
    phrases = _words(values).filter(values.str.contains(r"\D")) if phone else _phrases(values)
    return _Patterns(values.filter(unspaced), phrases, _numbers(values))


def _phrases(values: pl.Series) -> pl.Series:
    """Names as words: as they stand, with the part behind a comma first, and written together."""
    swapped = values.filter(values.str.contains(r"^[^,]+,[^,]+$")).str.replace(r"^([^,]+),(.+)$", "$2 $1")
    words = _words(pl.concat([values, swapped]))
    together = words.str.replace_all(" ", "", literal=True)
    enough = (together.str.len_chars() >= MIN_ID) & together.str.contains(r"\p{L}")
    words, together = words.filter(enough), together.filter(enough)
    return pl.concat([words, together.filter(together.str.len_chars() >= 2 * MIN_LOCAL)])


def _local_parts(values: pl.Series) -> pl.Series:
    """What stands before the @ of every e-mail address, without what follows a plus."""
    addresses = values.filter(values.str.contains("@", literal=True)).str.extract_all(EMAIL)
    local = addresses.explode().drop_nulls().str.replace(r"(?:\+.*)?@.*$", "")
    return without_nobody(local.filter(local.str.len_chars() >= MIN_LOCAL))


def _numbers(values: pl.Series) -> pl.Series:
    return _number(values.filter(values.str.contains(rf"^\d{{{MIN_DIGITS},}}$"))).unique()


def _number(digits: pl.Series) -> pl.Series:
    """Numbers without leading zeros, unless too little would be left."""
    return digits.str.replace(rf"^0+(\d{{{MIN_DIGITS},}})$", "$1")


def _fold(values: pl.Series) -> pl.Series:
    lower = values.str.to_lowercase()
    if lower.str.contains(r"[^\x00-\x7F]").any():
        # Letters of ASCII are what they are; of a million ids it takes a quarter of a second to find that out.
        lower = lower.str.normalize("NFKD").str.replace_all(r"\p{M}", "")
    return lower.str.strip_chars()


def _words(folded: pl.Series) -> pl.Series:
    return folded.str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()


def _contains_any(texts: pl.Series, patterns: pl.Series) -> pl.Series:
    found = _occurring(patterns, texts).unique()
    return texts.str.contains_any(found.to_list()) if len(found) else texts.is_null()


def _occurring(patterns: pl.Series, texts: pl.Series) -> pl.Series:
    """Those of the patterns that may occur in a text, for the search in each text.

    An automaton of a million learners' ids takes a minute to build, and the names of items are few: where they have
    fewer pieces of the patterns' lengths than the patterns have letters, the pieces are looked up among the patterns.
    """
    lengths = patterns.str.len_chars()
    sizes = lengths.unique().to_list()
    different = texts.drop_nulls().unique()
    if int(different.str.len_chars().sum()) * len(sizes) > int(lengths.sum()):
        return patterns
    pieces = {
        text[at : at + size]
        for text in different.to_list()
        for size in sizes
        for at in range(len(text) - size + 1)
    }
    return patterns.filter(patterns.is_in(pl.Series(list(pieces), dtype=pl.String).implode()))
